//! Writes a schema in the shape of its answers, which models follow best.

use std::fmt::Write as _;

use crate::form::{
    Alternative, ArrayForm, Bound, FormId, Forms, Literal, Notes, NumberForm, ObjectForm, Role, Shape,
    StringForm, Use,
};

/// The maximum number of characters of a description.
const MAX_DESCRIPTION: usize = 200;

/// The maximum size of the outline of a whole schema in bytes.
pub(crate) const MAX_OUTLINE: usize = 32_768;

/// The maximum number of members of a shared definition that is repeated at each place.
const SMALL: usize = 3;

/// Returns the outline of a form: `{"name": string, "age"?: integer, "tags": ["a" | "b", ...]}`.
///
/// It takes one line without descriptions. With descriptions it has one line per member, and each description is in
/// `/* */`. Recursive definitions, and large ones with several uses, follow after `where`. Values after `max` bytes become
/// `...`. `on_one_line` leaves out line ends between members: very small models fill in more values rightly from such an outline.
pub(crate) fn outline(forms: &Forms, root: FormId, max: usize, on_one_line: bool) -> String {
    let mut uses = vec![0_usize; forms.len()];
    let broken = has_descriptions(forms, root, &mut uses) && !on_one_line;
    let mut pen =
        Pen { forms, out: String::new(), max, within: Vec::new(), named: Vec::new(), uses, broken, depth: 0 };
    pen.value(&Use::of(root));
    let mut explained = 0;
    while let Some(form) = pen.named.get(explained).copied() {
        explained += 1;
        let _ = write!(pen.out, "\nwhere {} is ", pen.name(form));
        pen.form(form);
    }
    pen.out
}

/// Returns whether a member below a form has a description, and counts the uses of each form.
fn has_descriptions(forms: &Forms, root: FormId, uses: &mut [usize]) -> bool {
    let mut queue = vec![root];
    let mut found = false;
    while let Some(id) = queue.pop() {
        uses[id.index()] += 1;
        if uses[id.index()] > 1 {
            continue;
        }
        for alternative in &forms[id].alternatives {
            if let Shape::Object(object) = &alternative.shape {
                found |= object
                    .properties
                    .iter()
                    .any(|property| words(&notes_of(forms, &property.value), &property.name).is_some());
            }
            alternative.shape.each_inner(|inner| queue.push(inner));
        }
    }
    found
}

/// Returns the annotations of a place and of its form.
fn notes_of(forms: &Forms, value: &Use) -> Notes {
    let mut notes = value.notes.clone();
    notes.or(forms[value.form].notes.clone());
    notes
}

/// Returns the description for a member of this name; `None` if there is none.
fn words(notes: &Notes, name: &str) -> Option<String> {
    let annotations = notes.get()?;
    let mut parts = Vec::new();
    match (&annotations.description, &annotations.title) {
        (Some(description), _) => parts.push(one_line(description)),
        // Generated titles repeat the name.
        (None, Some(title)) if plain(title) != plain(name) => parts.push(one_line(title)),
        _ => {}
    }
    if let Some(default) = &annotations.default {
        parts.push(one_line(&format!("default: {}", formwork_core::spaced(default))));
    }
    if !annotations.examples.is_empty() {
        let listed: Vec<_> = annotations.examples.iter().map(formwork_core::spaced).collect();
        parts.push(one_line(&format!("for example: {}", listed.join(", "))));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

struct Pen<'f> {
    forms: &'f Forms,
    out: String,
    max: usize,
    /// The forms that are being written.
    within: Vec<FormId>,
    /// The forms that were written as a name.
    named: Vec<FormId>,
    uses: Vec<usize>,
    /// Whether each member has a line of its own.
    broken: bool,
    depth: usize,
}

impl Pen<'_> {
    fn value(&mut self, value: &Use) {
        let id = value.form;
        if self.within.contains(&id) || self.is_shared(id) {
            if !self.named.contains(&id) {
                self.named.push(id);
            }
            let name = self.name(id);
            self.out.push_str(&name);
            return;
        }
        self.form(id);
    }

    /// Returns whether a definition is written once, after `where`.
    fn is_shared(&self, id: FormId) -> bool {
        let form = &self.forms[id];
        form.name.is_some()
            && self.uses[id.index()] > 1
            && !self.within.is_empty()
            && form.alternatives.iter().any(
                |alternative| matches!(&alternative.shape, Shape::Object(object) if object.properties.len() > SMALL),
            )
    }

    fn name(&self, id: FormId) -> String {
        self.forms[id].name.clone().unwrap_or_else(|| format!("form_{}", id.index()))
    }

    fn form(&mut self, id: FormId) {
        if self.out.len() > self.max {
            self.out.push_str("...");
            return;
        }
        self.within.push(id);
        let forms = self.forms;
        let all = &forms[id].alternatives;
        // Alternatives that the schema only allows implicitly are no help to a model.
        let says_all = all.iter().all(|alternative| alternative.is_unsaid);
        let mut first = true;
        for alternative in all.iter().filter(|alternative| says_all || !alternative.is_unsaid) {
            if !std::mem::take(&mut first) {
                self.out.push_str(" | ");
            }
            self.alternative(alternative);
            let mut notes = alternative.notes.clone();
            if let Shape::Same(inner) = alternative.shape {
                notes.or(forms[inner].notes.clone());
            }
            if all.len() > 1
                && notes != forms[id].notes
                && let Some(words) = words(&notes, "")
            {
                let _ = write!(self.out, " /* {words} */");
            }
        }
        self.within.pop();
    }

    fn alternative(&mut self, alternative: &Alternative) {
        match &alternative.shape {
            Shape::Any => self.out.push_str("any value"),
            Shape::Same(inner) => self.value(&Use::of(*inner)),
            Shape::Literals(literals) => {
                for (index, Literal { value, description }) in literals.values.iter().enumerate() {
                    let separator = if index > 0 { " | " } else { "" };
                    let _ = write!(self.out, "{separator}{}", formwork_core::spaced(value));
                    if let Some(description) = description {
                        let _ = write!(self.out, " /* {} */", one_line(description));
                    }
                }
            }
            Shape::Null => self.out.push_str("null"),
            Shape::Boolean => self.out.push_str("true | false"),
            Shape::Number(number) => self.out.push_str(&number_words(number)),
            Shape::String(string) => self.out.push_str(&string_words(string)),
            Shape::Array(array) => self.array(array),
            Shape::Object(object) => self.members(object),
        }
    }

    fn array(&mut self, array: &ArrayForm) {
        self.out.push('[');
        for (index, item) in array.prefix.iter().chain(&array.items).enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            self.value(item);
        }
        if array.items.is_some() {
            self.out.push_str(", ...");
        }
        self.out.push(']');
    }

    fn members(&mut self, object: &ObjectForm) {
        self.out.push('{');
        self.depth += 1;
        let mut first = true;
        for property in &object.properties {
            self.separate(&mut first);
            let optional = if property.required { "" } else { "?" };
            let _ = write!(self.out, "{}{optional}: ", serde_json::Value::from(property.name.as_str()));
            self.value(&property.value);
            if let Some(words) = words(&notes_of(self.forms, &property.value), &property.name) {
                // A comment after the comma would look like JavaScript; before it, it is next to the described type.
                let _ = write!(self.out, " /* {words} */");
            }
        }
        for extra in object.extras.iter().filter(|_| !object.is_unsaid) {
            self.separate(&mut first);
            match &extra.pattern {
                Some(pattern) => {
                    let _ = write!(self.out, "(name matching {}): ", pattern.source);
                }
                None => self.out.push_str("(any name): "),
            }
            self.value(&extra.value);
            self.out.push_str(", ...");
        }
        self.depth -= 1;
        if self.broken && !first {
            self.line();
        }
        self.out.push('}');
    }

    fn separate(&mut self, first: &mut bool) {
        if !*first {
            self.out.push(',');
        }
        if self.broken {
            self.line();
        } else if !*first {
            self.out.push(' ');
        }
        *first = false;
    }

    fn line(&mut self) {
        self.out.push('\n');
        self.out.push_str(&"  ".repeat(self.depth));
    }
}

fn number_words(number: &NumberForm) -> String {
    let mut words = if number.integer { "integer" } else { "number" }.to_owned();
    match (&number.min, &number.max) {
        (Some(min), Some(max)) if !min.exclusive && !max.exclusive => {
            let _ = write!(words, " from {} to {}", min.at, max.at);
        }
        (min, max) => {
            for (bound, sign) in [(min, '>'), (max, '<')] {
                if let Some(Bound { at, exclusive }) = bound {
                    let _ = write!(words, " {sign}{} {at}", if *exclusive { "" } else { "=" });
                }
            }
        }
    }
    if let Some(step) = &number.multiple_of {
        let _ = write!(words, " multiple of {step}");
    }
    words
}

fn string_words(string: &StringForm) -> String {
    let mut words = match string.role {
        Role::Json => "string that holds JSON".to_owned(),
        Role::Text | Role::Name => "string".to_owned(),
    };
    if let Some(format) = &string.format {
        let _ = write!(words, " ({format})");
    }
    for pattern in &string.patterns {
        let _ = write!(words, " matching {}", pattern.source);
    }
    words
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ").replace("*/", "* /");
    formwork_core::cut(&line, MAX_DESCRIPTION).into_owned()
}
