//! Writes forms in a dialect.

mod describe;
mod scalars;

use foldhash::{HashMap, HashSet};
use formwork_core::{AddedBound, LiftOp, LossKind, escape};
use serde_json::{Map, Value, json};

use crate::depth::{circles, uses};
use crate::expand::Losses;
use crate::form::{Alternative, ArrayForm, FormId, Forms, Notes, ObjectForm, Property, Shape, Use};
use crate::place::PlaceId;
use crate::profile::{Lengths, Optional, Profile, References, Tuples};

/// The maximum nesting of forms that are written inline; deeper ones become definitions, because some parsers limit the
/// nesting.
const MAX_NESTING: usize = 24;

/// A written schema, with the operations that lift answers, and the losses.
pub(crate) struct Written {
    pub(crate) schema: Value,
    pub(crate) lift: Vec<LiftOp>,
    pub(crate) bounds: Vec<AddedBound>,
    pub(crate) losses: Losses,
}

/// Writes forms. Lists of more than `most_values` are left out, and so are annotations beside references unless there are
/// `noted` ones: beside a reference they take a union of one.
pub(crate) fn write(forms: &Forms, profile: &Profile, most_values: usize, noted: bool) -> Written {
    let mut writer = Writer {
        forms,
        profile,
        most_values,
        noted,
        shared: match profile.references {
            References::Native => shared(forms),
            References::Inlined => HashSet::default(),
        },
        items_left: profile.limits.as_ref().map_or(u64::MAX, |limits| limits.max_items),
        names: HashMap::default(),
        taken: HashSet::default(),
        unwritten: Vec::new(),
        lift: Vec::new(),
        bounds: Vec::new(),
        losses: Losses::new(),
    };
    let root = forms.root;
    let is_shared = writer.shared.contains(&root);
    let mut schema = if is_shared && !profile.refers_to_root {
        writer.reference(root)
    } else {
        writer.names.extend(is_shared.then_some((root, String::new())));
        writer.inline(root, &Notes::NONE, &Notes::NONE, String::new(), 0)
    };
    let mut definitions = Map::new();
    let mut written = 0;
    while let Some(id) = writer.unwritten.get(written).copied() {
        written += 1;
        let name = writer.names.get(&id).cloned().unwrap_or_default();
        let definition = writer.inline(id, &Notes::NONE, &Notes::NONE, format!("/$defs/{name}"), 0);
        definitions.insert(name, definition);
    }
    if let Value::Object(root) = &mut schema
        && !definitions.is_empty()
    {
        root.insert("$defs".to_owned(), Value::Object(definitions));
    }
    let Writer { lift, bounds, losses, .. } = writer;
    Written { schema, lift, bounds, losses }
}

/// Returns the forms that become definitions: shared ones that are large enough, and recursive ones.
fn shared(forms: &Forms) -> HashSet<FormId> {
    let uses = uses(forms);
    let often = forms.ids().filter(|id| uses[id.index()] > 1 && is_large(forms, *id));
    circles(forms).into_iter().map(|(_, inner)| inner).chain(often).collect()
}

/// Returns whether a form is longer than a reference to it.
fn is_large(forms: &Forms, id: FormId) -> bool {
    let form = &forms[id];
    form.alternatives.len() > 1
        || form.alternatives.iter().any(|alternative| {
            matches!(
                alternative.shape,
                Shape::Array(_) | Shape::Object(_) | Shape::Literals(_) | Shape::Same(_)
            ) || matches!(&alternative.shape, Shape::String(string) if !string.patterns.is_empty())
        })
        || !form.notes.is_empty()
}

struct Writer<'f> {
    forms: &'f Forms,
    profile: &'f Profile,
    most_values: usize,
    noted: bool,
    shared: HashSet<FormId>,
    /// The maximum sum of the `maxItems` to come.
    items_left: u64,
    /// The names of definitions; empty for the root.
    names: HashMap<FormId, String>,
    taken: HashSet<String>,
    /// The definitions that were referred to, in this order.
    unwritten: Vec<FormId>,
    lift: Vec<LiftOp>,
    bounds: Vec<AddedBound>,
    losses: Losses,
}

impl Writer<'_> {
    /// Writes a form at a JSON Pointer of the lowered schema, `depth` levels below its definition.
    fn value(&mut self, value: &Use, at: String, depth: usize) -> Value {
        self.value_within(value, &Notes::NONE, at, depth)
    }

    /// Writes a form whose annotations may repeat those beside it, which are left out.
    fn value_within(&mut self, value: &Use, outer: &Notes, at: String, depth: usize) -> Value {
        let is_nested = depth < MAX_NESTING || self.profile.references == References::Inlined;
        if !self.shared.contains(&value.form) && is_nested {
            return self.inline(value.form, &value.notes, outer, at, depth);
        }
        let reference = self.reference(value.form);
        if self.profile.describes_schema || !self.noted || value.notes.is_empty() {
            return reference;
        }
        // OpenAI's strict mode allows no keyword beside a reference.
        let mut wrapped = json!({"anyOf": [reference]});
        describe::annotate(&mut wrapped, &value.notes, &[], self.profile, self.most_values);
        wrapped
    }

    fn reference(&mut self, id: FormId) -> Value {
        if !self.names.contains_key(&id) {
            let mut name =
                self.forms[id].name.clone().unwrap_or_else(|| format!("d{}", self.names.len() + 1));
            while !self.taken.insert(name.clone()) {
                name.push('_');
            }
            self.names.insert(id, name);
            self.unwritten.push(id);
        }
        match self.names.get(&id).filter(|name| !name.is_empty()) {
            Some(name) => json!({"$ref": format!("#/$defs/{name}")}),
            None => json!({"$ref": "#"}),
        }
    }

    fn inline(&mut self, id: FormId, notes: &Notes, outer: &Notes, at: String, depth: usize) -> Value {
        let form = &self.forms[id];
        let mut notes = notes.clone();
        notes.or(form.notes.clone());
        if notes == *outer {
            notes = Notes::NONE;
        }
        if let [only] = form.alternatives.as_slice() {
            notes.or(only.notes.clone());
            return self.alternative(only, &notes, outer, at, depth);
        }
        let mut branches = Vec::with_capacity(form.alternatives.len());
        for (index, alternative) in form.alternatives.iter().enumerate() {
            let at = format!("{at}/anyOf/{index}");
            branches.push(self.alternative(alternative, &alternative.notes, &notes, at, depth + 1));
        }
        let mut schema = json!({"anyOf": branches});
        if !self.profile.describes_schema {
            describe::annotate(&mut schema, &notes, &[], self.profile, self.most_values);
        }
        schema
    }

    fn alternative(
        &mut self,
        alternative: &Alternative,
        notes: &Notes,
        outer: &Notes,
        at: String,
        depth: usize,
    ) -> Value {
        self.lift.extend(alternative.lifts.iter().map(|lift| LiftOp { at: at.clone(), lift: lift.clone() }));
        let mut schema = match &alternative.shape {
            Shape::Any => json!({}),
            Shape::Same(inner) => {
                let value = Use { form: *inner, notes: notes.clone() };
                return self.value_within(&value, outer, at, depth);
            }
            Shape::Literals(literals) => self.literals(literals),
            Shape::Null => json!({"type": "null"}),
            Shape::Boolean => json!({"type": "boolean"}),
            Shape::Number(number) => self.number(number),
            Shape::String(string) => self.string(string, &at),
            Shape::Array(array) => self.array(array, at, depth),
            Shape::Object(object) => self.object(object, at, depth),
        };
        // A model with an outline in its prompt reads the descriptions there.
        if !self.profile.describes_schema {
            let written = std::slice::from_ref(alternative);
            describe::annotate(&mut schema, notes, written, self.profile, self.most_values);
        }
        schema
    }

    fn array(&mut self, form: &ArrayForm, at: String, depth: usize) -> Value {
        let mut out = Map::from_iter([("type".to_owned(), json!("array"))]);
        if !form.prefix.is_empty() {
            let mut prefix = Vec::with_capacity(form.prefix.len());
            for (index, item) in form.prefix.iter().enumerate() {
                prefix.push(self.value(item, format!("{at}/prefixItems/{index}"), depth + 1));
            }
            out.insert("prefixItems".to_owned(), Value::Array(prefix));
        }
        match &form.items {
            Some(items) => {
                let items = self.value(items, format!("{at}/items"), depth + 1);
                out.insert("items".to_owned(), items);
            }
            // llama.cpp does not accept `false`; its tuples are closed anyway.
            None if self.profile.tuples == Tuples::Native => {
                out.insert("items".to_owned(), json!(false));
            }
            // The type of the items is irrelevant, because there are none.
            None if form.prefix.is_empty() => {
                out.insert("items".to_owned(), json!({"type": "null"}));
            }
            None => {}
        }
        let (min, mut max) = self.limited(form.origin, ["minItems", "maxItems"], form.min, form.max);
        if max.is_some_and(|max| max > self.items_left) {
            // A bound from tightening is not a keyword of the schema.
            if !form.is_bounded {
                self.lose(form.origin, "maxItems", LossKind::Unenforced);
            }
            max = None;
        }
        if min > 0 {
            out.insert("minItems".to_owned(), json!(min));
        }
        if let Some(max) = max {
            if form.is_bounded {
                self.bounds.push(AddedBound::new(at, max));
            }
            self.items_left -= max;
            out.insert("maxItems".to_owned(), json!(max));
        }
        Value::Object(out)
    }

    /// Returns the least and the largest count as the dialect accepts them, of the characters of a string or the items of a list.
    fn limited(
        &mut self,
        origin: PlaceId,
        [min_name, max_name]: [&str; 2],
        mut min: u64,
        mut max: Option<u64>,
    ) -> (u64, Option<u64>) {
        let limit = self.limit();
        if min > limit {
            self.lose(origin, min_name, LossKind::Loosened);
            min = limit;
        }
        if max.is_some_and(|max| max > limit || !self.profile.lengths.of_lists()) {
            self.lose(origin, max_name, LossKind::Unenforced);
            max = None;
        }
        (min, max)
    }

    /// Returns the largest count that a dialect accepts for the characters of a string or the items of a list.
    const fn limit(&self) -> u64 {
        match self.profile.lengths {
            Lengths::None => 0,
            Lengths::NotEmpty => 1,
            Lengths::UpTo(limit) => limit,
            Lengths::Any | Lengths::ListsOnly => u64::MAX,
        }
    }

    fn object(&mut self, form: &ObjectForm, at: String, depth: usize) -> Value {
        let mut properties = Map::new();
        for Property { name, value, .. } in &form.properties {
            let schema = self.value(value, format!("{at}/properties/{}", escape(name)), depth + 1);
            properties.insert(name.clone(), schema);
        }
        let required = form.properties.iter().filter(|property| property.required);
        let required: Vec<&str> = required.map(|property| property.name.as_str()).collect();
        let mut out = Map::from_iter([("type".to_owned(), json!("object"))]);
        let mut patterns = Map::new();
        let mut rest = json!(false);
        for extra in &form.extras {
            match &extra.pattern {
                Some(pattern) => {
                    let step = escape(&pattern.translated);
                    let schema =
                        self.value(&extra.value, format!("{at}/patternProperties/{step}"), depth + 1);
                    patterns.insert(pattern.translated.clone(), schema);
                }
                None => rest = self.value(&extra.value, format!("{at}/additionalProperties"), depth + 1),
            }
        }
        if !properties.is_empty() || form.extras.is_empty() {
            out.insert("properties".to_owned(), Value::Object(properties));
        }
        // Providers that require every member also require the list.
        if !required.is_empty() || self.profile.optional == Optional::Nullable {
            out.insert("required".to_owned(), json!(required));
        }
        if !patterns.is_empty() {
            out.insert("patternProperties".to_owned(), Value::Object(patterns));
        }
        if form.min > required.len() as u64 {
            out.insert("minProperties".to_owned(), json!(form.min));
        }
        if let Some(max) = form.max {
            if form.is_bounded {
                self.bounds.push(AddedBound::new(at, max));
            }
            out.insert("maxProperties".to_owned(), json!(max));
        }
        out.insert("additionalProperties".to_owned(), rest);
        Value::Object(out)
    }

    fn lose(&mut self, origin: PlaceId, keyword: &str, kind: LossKind) {
        self.losses.insert((self.forms.places.pointer(origin), keyword.to_owned(), kind));
    }
}
