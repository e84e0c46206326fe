//! Writes forms in a dialect.

mod describe;
mod scalars;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use formwork_core::{LiftOp, LossKind};
use serde_json::{Map, Value, json};

use crate::caps::{Caps, MAX_NAME};
use crate::expand::Receipt;
use crate::form::{Alternative, ArrayForm, Form, ObjectForm, Property, Shared};
use crate::profile::{Any, Lengths, Profile, Tuples};

/// A written schema, with the way back and what it does not say.
pub(crate) struct Written {
    pub(crate) schema: Value,
    pub(crate) lift: Vec<LiftOp>,
    pub(crate) losses: BTreeSet<Receipt>,
}

/// Writes a form. Lists of more than `most_values` are left out.
pub(crate) fn write(form: &Shared, profile: &Profile, caps: Caps, most_values: usize) -> Written {
    let mut writer = Writer {
        profile,
        caps,
        most_values,
        uses: HashMap::new(),
        defined: HashMap::new(),
        definitions: BTreeMap::new(),
        lift: Vec::new(),
        losses: BTreeSet::new(),
    };
    count_uses(form, &mut writer.uses);
    let mut schema = writer.form(form, String::new());
    if let Value::Object(root) = &mut schema
        && !writer.definitions.is_empty()
    {
        root.insert("$defs".to_owned(), Value::Object(writer.definitions.into_iter().collect()));
    }
    Written { schema, lift: writer.lift, losses: writer.losses }
}

/// How often each form is used, for those that are worth a definition.
fn count_uses(form: &Shared, uses: &mut HashMap<*const Form, usize>) {
    let count = uses.entry(Rc::as_ptr(form)).or_insert(0);
    *count += 1;
    if *count > 1 {
        return;
    }
    for alternative in &form.alternatives {
        match inner(alternative) {
            Alternative::Array(array) => {
                array.prefix.iter().chain(&array.items).for_each(|form| count_uses(form, uses))
            }
            Alternative::Object(object) => {
                object.properties.iter().for_each(|property| count_uses(&property.form, uses));
                object.extras.iter().for_each(|extra| count_uses(&extra.form, uses));
            }
            _ => {}
        }
    }
}

/// What is sent.
fn inner(alternative: &Alternative) -> &Alternative {
    match alternative {
        Alternative::Mapped(sent, _) => inner(sent),
        other => other,
    }
}

struct Writer<'p> {
    profile: &'p Profile,
    caps: Caps,
    most_values: usize,
    uses: HashMap<*const Form, usize>,
    /// The definitions of shared forms.
    defined: HashMap<*const Form, String>,
    definitions: BTreeMap<String, Value>,
    lift: Vec<LiftOp>,
    losses: BTreeSet<Receipt>,
}

impl Writer<'_> {
    /// Writes a form that stands at a JSON Pointer of the lowered schema.
    fn form(&mut self, form: &Shared, at: String) -> Value {
        let place = Rc::as_ptr(form);
        let shared = !at.is_empty()
            && self.uses.get(&place).is_some_and(|uses| *uses > 1)
            && form.alternatives.iter().any(is_large);
        if !shared {
            return self.inline(form, at);
        }
        let name = match self.defined.get(&place) {
            Some(name) => name.clone(),
            None => {
                let name = format!("d{}", self.defined.len() + 1);
                self.defined.insert(place, name.clone());
                let schema = self.inline(form, format!("/$defs/{name}"));
                self.definitions.insert(name.clone(), schema);
                name
            }
        };
        json!({"$ref": format!("#/$defs/{name}")})
    }

    fn inline(&mut self, form: &Shared, at: String) -> Value {
        let mut schema = match form.alternatives.as_slice() {
            [one] => self.alternative(one, at),
            several => {
                let branches = several.iter().enumerate();
                let branches =
                    branches.map(|(index, one)| self.alternative(one, format!("{at}/anyOf/{index}")));
                json!({"anyOf": branches.collect::<Vec<_>>()})
            }
        };
        // Who is shown an outline has the words in it.
        if !self.profile.shown
            && let Value::Object(keywords) = &mut schema
            && let Some(words) = describe::words(form, self.profile, self.most_values)
        {
            keywords.insert("description".to_owned(), Value::from(words));
        }
        schema
    }

    fn alternative(&mut self, alternative: &Alternative, at: String) -> Value {
        match alternative {
            Alternative::Any(origin) => self.any(origin),
            Alternative::Literals(literals) => self.literals(literals),
            Alternative::Null => json!({"type": "null"}),
            Alternative::Boolean => json!({"type": "boolean"}),
            Alternative::Number(number) => self.number(number),
            Alternative::String(string) => self.string(string),
            Alternative::Array(array) => self.array(array, at),
            Alternative::Object(object) => self.object(object, at),
            Alternative::Mapped(sent, lifts) => {
                self.lift.extend(lifts.iter().map(|lift| LiftOp { at: at.clone(), lift: lift.clone() }));
                self.alternative(sent, at)
            }
        }
    }

    /// Any value, two levels deep.
    fn any(&mut self, origin: &str) -> Value {
        self.tightened(origin, "maxLength");
        const NAME: &str = "any";
        if !self.definitions.contains_key(NAME) {
            let scalar = json!({"anyOf": [
                {"type": "string", "maxLength": self.caps.text},
                {"type": "number"}, {"type": "boolean"}, {"type": "null"},
            ]});
            let inner = json!({"$ref": "#/$defs/scalar"});
            let any = json!({"anyOf": [
                inner,
                {"type": "array", "items": inner, "maxItems": self.caps.items},
                match self.profile.any {
                    Any::Uncounted => json!({"type": "object", "properties": {}, "additionalProperties": inner}),
                    Any::Counted | Any::Text => json!({
                        "type": "object", "patternProperties": {short_name(): inner},
                        "additionalProperties": false, "maxProperties": self.caps.items,
                    }),
                },
            ]});
            self.definitions.insert("scalar".to_owned(), scalar);
            self.definitions.insert(NAME.to_owned(), any);
        }
        json!({"$ref": format!("#/$defs/{NAME}")})
    }

    fn array(&mut self, form: &ArrayForm, at: String) -> Value {
        let mut out = Map::from_iter([("type".to_owned(), json!("array"))]);
        if !form.prefix.is_empty() {
            let prefix = form
                .prefix
                .iter()
                .enumerate()
                .map(|(index, form)| self.form(form, format!("{at}/prefixItems/{index}")));
            out.insert("prefixItems".to_owned(), prefix.collect());
        }
        match &form.items {
            Some(items) => {
                let items = self.form(items, format!("{at}/items"));
                out.insert("items".to_owned(), items);
            }
            // llama.cpp takes no `false`; its tuples are closed anyway.
            None if self.profile.tuples == Tuples::Native => {
                out.insert("items".to_owned(), json!(false));
            }
            // Nothing stands in it, whatever that would be.
            None if form.prefix.is_empty() => {
                out.insert("items".to_owned(), json!({"type": "null"}));
            }
            None => {}
        }
        let limit = self.limit();
        let mut min = form.min;
        let mut max = Some(self.caps.array(form));
        if min > limit {
            self.losses.insert((form.origin.clone(), "minItems".to_owned(), LossKind::Loosened));
            (min, max) = (limit, None);
        }
        if min > 0 {
            out.insert("minItems".to_owned(), json!(min));
        }
        if max.is_some_and(|max| form.max.is_none_or(|original| max < original)) {
            self.tightened(&form.origin, "maxItems");
        }
        if let Some(max) = max {
            out.insert("maxItems".to_owned(), json!(max));
        }
        Value::Object(out)
    }

    /// The most that a string or a list may be bounded to.
    const fn limit(&self) -> u64 {
        match self.profile.lengths {
            Lengths::UpTo(limit) => limit,
            Lengths::Any | Lengths::ListsOnly => u64::MAX,
        }
    }

    fn object(&mut self, form: &ObjectForm, at: String) -> Value {
        let Members { names, required, extras } = self.members(form);
        let mut properties = Map::new();
        for index in names {
            let Property { name, form, .. } = &form.properties[index];
            let step = name.replace('~', "~0").replace('/', "~1");
            let schema = self.form(form, format!("{at}/properties/{step}"));
            properties.insert(name.clone(), schema);
        }
        let mut out = Map::from_iter([
            ("type".to_owned(), json!("object")),
            ("properties".to_owned(), Value::Object(properties)),
        ]);
        // A provider that wants every member required wants the list as well.
        if !required.is_empty() || self.profile.limits.is_some() {
            out.insert("required".to_owned(), json!(required));
        }
        let mut rest = json!(false);
        if extras > 0 {
            let mut patterns = Map::new();
            for extra in &form.extras {
                match &extra.pattern {
                    Some(pattern) => {
                        let schema = self.form(&extra.form, format!("{at}/additionalProperties"));
                        patterns.insert(pattern.translated.clone(), schema);
                    }
                    // llguidance applies a pattern to the named members as well.
                    None if form.properties.is_empty() => {
                        let schema = self.form(&extra.form, format!("{at}/additionalProperties"));
                        patterns.insert(short_name(), schema);
                    }
                    None => {
                        rest = self.form(&extra.form, format!("{at}/additionalProperties"));
                    }
                }
            }
            out.insert("patternProperties".to_owned(), Value::Object(patterns));
            let least = form.min.max(required.len() as u64);
            if least > required.len() as u64 {
                out.insert("minProperties".to_owned(), json!(least));
            }
            out.insert("maxProperties".to_owned(), json!(required.len() as u64 + extras));
        }
        out.insert("additionalProperties".to_owned(), rest);
        Value::Object(out)
    }

    /// Which members an object may have. llguidance counts members only where all that are named are required, so
    /// bounds on their number are met here.
    fn members(&mut self, form: &ObjectForm) -> Members {
        let fixed = form.properties.iter().filter(|property| property.required).count() as u64;
        let spare = form.max.map_or(u64::MAX, |max| max.saturating_sub(fixed));
        let mut needed = form.min.saturating_sub(fixed);
        let extras = self.caps.extras(form);
        // Optional members and unnamed ones do not go together when they are counted.
        let optional = form.properties.len() as u64 - fixed;
        let all_required = extras > 0 && optional > 0 && (form.min > fixed || optional <= spare);
        let mut names = Vec::new();
        let mut required = Vec::new();
        let mut taken = 0;
        for (index, property) in form.properties.iter().enumerate() {
            if !property.required {
                if taken >= spare {
                    self.tightened(&form.origin, "properties");
                    continue;
                }
                taken += 1;
            }
            names.push(index);
            if property.required {
                required.push(property.name.clone());
            } else if all_required || needed > 0 {
                self.tightened(&form.origin, "required");
                needed = needed.saturating_sub(1);
                required.push(property.name.clone());
            }
        }
        let extras = if names.len() == required.len() { extras } else { 0 };
        Members { names, required, extras }
    }

    fn tightened(&mut self, origin: &str, keyword: &str) {
        self.losses.insert((origin.to_owned(), keyword.to_owned(), LossKind::Tightened));
    }
}

struct Members {
    /// Indexes into the properties of the form.
    names: Vec<usize>,
    required: Vec<String>,
    /// The most members that are not named.
    extras: u64,
}

/// A pattern for names that are neither empty nor long.
fn short_name() -> String {
    format!(r"^[\x00-\x{{10FFFF}}]{{1,{MAX_NAME}}}$")
}

const fn is_large(alternative: &Alternative) -> bool {
    matches!(alternative, Alternative::Array(_) | Alternative::Object(_) | Alternative::Literals(_))
}
