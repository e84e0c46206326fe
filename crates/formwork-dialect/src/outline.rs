//! A schema as a model reads it best: in the shape of the answer.

use std::fmt::Write as _;

use crate::form::{Alternative, ArrayForm, Bound, Form, NumberForm, ObjectForm, Role, StringForm};

/// The most characters of a description.
const MAX_DESCRIPTION: usize = 200;

/// The most bytes of an outline; what does not fit is written as `...`.
const MAX_OUTLINE: usize = 32_768;

/// The outline of a form: `{"name": string, "age"?: integer, "tags": ["a" | "b", ...]}`.
///
/// One line without descriptions; with them one line for each member, and a description after `//`.
pub(crate) fn outline(form: &Form) -> String {
    let mut pen = Pen {
        out: String::new(),
        within: Vec::new(),
        recursive: Vec::new(),
        broken: has_descriptions(form, 0),
        depth: 0,
    };
    pen.form(form);
    let mut explained = 0;
    while let Some(object) = pen.recursive.get(explained).copied() {
        explained += 1;
        let _ = write!(pen.out, "\nwhere {} is ", object.name.as_deref().unwrap_or_default());
        pen.object(object);
    }
    pen.out
}

fn has_descriptions(form: &Form, depth: usize) -> bool {
    fn explains(alternative: &Alternative, depth: usize) -> bool {
        match alternative {
            Alternative::Object(object) => object.properties.iter().any(|property| {
                property.form.description.is_some() || has_descriptions(&property.form, depth + 1)
            }),
            Alternative::Mapped(inner, _) => explains(inner, depth),
            Alternative::Array(array) => {
                array.prefix.iter().chain(&array.items).any(|form| has_descriptions(form, depth + 1))
            }
            _ => false,
        }
    }
    depth < 16 && form.alternatives.iter().any(|alternative| explains(alternative, depth))
}

struct Pen<'f> {
    out: String,
    /// The definitions that are being written: inside themselves they are named.
    within: Vec<&'f ObjectForm>,
    /// Those that were named instead of written.
    recursive: Vec<&'f ObjectForm>,
    /// Whether each member has a line.
    broken: bool,
    depth: usize,
}

impl<'f> Pen<'f> {
    fn form(&mut self, form: &'f Form) {
        if self.out.len() > MAX_OUTLINE {
            self.out.push_str("...");
            return;
        }
        for (index, alternative) in form.alternatives.iter().enumerate() {
            if index > 0 {
                self.out.push_str(" | ");
            }
            self.alternative(alternative);
        }
    }

    fn alternative(&mut self, alternative: &'f Alternative) {
        match alternative {
            Alternative::Any(_) => self.out.push_str("any value"),
            Alternative::Literals(literals) => {
                for (index, value) in literals.values.iter().enumerate() {
                    let separator = if index > 0 { " | " } else { "" };
                    let _ = write!(self.out, "{separator}{}", formwork_core::spaced(value));
                }
            }
            Alternative::Null => self.out.push_str("null"),
            Alternative::Boolean => self.out.push_str("true | false"),
            Alternative::Number(number) => self.out.push_str(&number_words(number)),
            Alternative::String(string) => self.out.push_str(&string_words(string)),
            Alternative::Array(array) => self.array(array),
            Alternative::Object(object) => self.object(object),
            Alternative::Mapped(inner, _) => self.alternative(inner),
        }
    }

    fn array(&mut self, array: &'f ArrayForm) {
        self.out.push('[');
        for (index, form) in array.prefix.iter().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            self.form(form);
        }
        if let Some(items) = &array.items {
            if !array.prefix.is_empty() {
                self.out.push_str(", ");
            }
            self.form(items);
            self.out.push_str(", ...");
        }
        self.out.push(']');
    }

    fn object(&mut self, object: &'f ObjectForm) {
        let outer =
            self.within.iter().find(|outer| outer.name.is_some() && outer.name == object.name).copied();
        if let (Some(outer), Some(name)) = (outer, &object.name) {
            self.out.push_str(name);
            if !self.recursive.iter().any(|known| known.name == outer.name) {
                self.recursive.push(outer);
            }
            return;
        }
        self.within.push(object);
        self.members(object);
        self.within.pop();
    }

    fn members(&mut self, object: &'f ObjectForm) {
        self.out.push('{');
        self.depth += 1;
        let mut first = true;
        for property in &object.properties {
            self.separate(&mut first);
            let optional = if property.required { "" } else { "?" };
            let _ = write!(self.out, "{}{optional}: ", serde_json::Value::from(property.name.as_str()));
            self.form(&property.form);
            if let Some(description) = &property.form.description {
                // After the comma would be nearer to JavaScript; here it stands beside what it describes.
                let _ = write!(self.out, " /* {} */", one_line(description));
            }
        }
        for extra in &object.extras {
            self.separate(&mut first);
            match &extra.pattern {
                Some(pattern) => {
                    let _ = write!(self.out, "(name matching {}): ", pattern.source);
                }
                None => self.out.push_str("(any name): "),
            }
            self.form(&extra.form);
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
    let text = |bound: &Bound| bound.at.to_string();
    let _ = match (&number.min, &number.max) {
        (Some(min), Some(max)) if !min.exclusive && !max.exclusive => {
            write!(words, " from {} to {}", text(min), text(max))
        }
        (min, max) => {
            if let Some(min) = min {
                let _ = write!(words, " {} {}", if min.exclusive { ">" } else { ">=" }, text(min));
            }
            match max {
                Some(max) => write!(words, " {} {}", if max.exclusive { "<" } else { "<=" }, text(max)),
                None => Ok(()),
            }
        }
    };
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
    match line.char_indices().nth(MAX_DESCRIPTION) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}
