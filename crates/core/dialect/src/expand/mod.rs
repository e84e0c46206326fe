//! Expands a JSON Schema to the forms from which dialects are written.
//!
//! A form allows at least the values of its schema. The report has the differences: `Unenforced` for a keyword that no
//! form expresses, `Loosened` for one that is expressed partly.

mod containers;
mod flat;
mod kinds;
mod prune;
mod scalars;
mod union;

use std::collections::{BTreeSet, VecDeque};

use foldhash::HashMap;
use formwork_core::{Loss, LossKind, Refused, is_old_draft, normalise_with_origins};
use serde_json::Value;

use crate::form::{
    Alternative, ArrayForm, Form, FormId, Forms, Literal, Literals, Notes, NumberForm, Shape, StringForm, Use,
};
use crate::pattern::Matcher;
use crate::place::{PlaceId, Places};
use flat::{At, Definitions, Flat, Union, is_annotation};
use kinds::Kinds;

pub(crate) use scalars::{MAX_SAFE, count};

/// The maximum number of alternatives from combining several unions.
const MAX_PRODUCT: usize = 64;

/// The number of object members that may be expanded for each schema of the document, over all combinations of
/// alternatives. Beyond it, unions beside other keywords are left to validation.
const WORK_PER_SCHEMA: usize = 8;

/// The minimum of that number for the whole document.
const LEAST_WORK: usize = 2_000;

/// A schema as forms, with its losses.
#[derive(Debug)]
pub(crate) struct Expanded {
    pub(crate) forms: Forms,
    pub(crate) losses: Losses,
}

/// The losses, sorted by pointer, keyword and kind.
pub(crate) type Losses = BTreeSet<(String, String, LossKind)>;

/// Converts the losses for the report.
pub(crate) fn reported(losses: Losses) -> Vec<Loss> {
    losses.into_iter().map(|(pointer, keyword, kind)| Loss::new(pointer, keyword, kind)).collect()
}

/// Expands a schema.
///
/// # Errors
/// [`Refused`] if it is proved that no value satisfies the schema.
pub(crate) fn expand(schema: &Value, dialect: &str) -> Result<Expanded, Refused> {
    let (normal, origins) = normalise_with_origins(schema);
    let places = Places::new(origins, is_old_draft(schema));
    let objects = objects(&normal);
    let mut expander = Expander {
        definitions: Definitions::new(&normal),
        forms: Forms::new(places),
        losses: Losses::new(),
        single: HashMap::default(),
        several: HashMap::default(),
        queue: VecDeque::new(),
        any: None,
        work: LEAST_WORK.max(objects * WORK_PER_SCHEMA),
        most_several: objects / 2 + 8,
    };
    let root = At { node: &normal, place: PlaceId::default() };
    let root = expander.value(vec![root]);
    while let Some((id, schemas)) = expander.queue.pop_front() {
        let form = expander.expand(id, schemas);
        expander.forms.set(id, form);
    }
    let Expander { mut forms, mut losses, .. } = expander;
    // The annotations of a root that is only a reference move to the definition, which becomes the root.
    forms.root = match root {
        Use { form, notes } if notes.is_empty() => form,
        Use { form, notes } => {
            let alternatives = vec![Alternative::of(Shape::Same(form))];
            forms.add(Form { alternatives, notes, name: None })
        }
    };
    prune::prune(&mut forms, &mut losses);
    if forms[forms.root].alternatives.is_empty() {
        return Err(Refused::new(dialect, "no value satisfies it"));
    }
    Ok(Expanded { forms, losses })
}

struct Expander<'a> {
    definitions: Definitions<'a>,
    forms: Forms,
    losses: Losses,
    /// The forms of single schemas, by identity.
    single: HashMap<usize, FormId>,
    /// The forms of schemas that apply together.
    several: HashMap<Vec<usize>, FormId>,
    /// The reserved forms that are not expanded yet.
    queue: VecDeque<(FormId, Vec<At<'a>>)>,
    any: Option<FormId>,
    /// The number of members that may still be expanded in combinations of alternatives.
    work: usize,
    /// The maximum number of forms for schemas that apply together: recursion can combine them in exponentially many
    /// ways.
    most_several: usize,
}

impl<'a> Expander<'a> {
    /// Returns the form of all values.
    fn any(&mut self) -> FormId {
        *self.any.get_or_insert_with(|| self.forms.add_shape(Shape::Any))
    }

    /// Returns the values that satisfy all of these schemas, at their place of use. Without schemas that is any value.
    fn value(&mut self, mut schemas: Vec<At<'a>>) -> Use {
        let mut notes = Notes::NONE;
        if let [only] = schemas.as_mut_slice() {
            let mut name = None;
            // The limit of a chain of definitions without a cycle.
            for _ in 0..64 {
                if !only.says_only("$ref") {
                    break;
                }
                let Some((target, at)) = self.definitions.target(only.node, &mut self.forms.places) else {
                    break;
                };
                notes.or(Notes::of(only.node));
                (name, *only) = (Some(target), at);
            }
            let form = match self.single.get(&only.key()) {
                Some(form) => *form,
                None => {
                    let (key, at) = (only.key(), *only);
                    let form = self.reserve(vec![at]);
                    self.forms.get_mut(form).name = name.map(str::to_owned);
                    self.single.insert(key, form);
                    form
                }
            };
            return Use { form, notes };
        }
        if schemas.is_empty() {
            return Use::of(self.any());
        }
        let key: Vec<usize> = schemas.iter().map(At::key).collect();
        let form = match self.several.get(&key) {
            Some(form) => *form,
            None if self.several.len() >= self.most_several => {
                self.lose_each(&schemas, "allOf", LossKind::Unenforced);
                self.any()
            }
            None => {
                let form = self.reserve(schemas);
                self.several.insert(key, form);
                form
            }
        };
        Use { form, notes }
    }

    fn reserve(&mut self, schemas: Vec<At<'a>>) -> FormId {
        let id = self.forms.reserve();
        self.queue.push_back((id, schemas));
        id
    }

    fn expand(&mut self, id: FormId, schemas: Vec<At<'a>>) -> Form {
        let mut form = std::mem::take(self.forms.get_mut(id));
        let mut flat = Flat::default();
        for at in schemas {
            if !self.definitions.flatten(at, &mut flat, &mut self.forms.places) {
                return form;
            }
        }
        form.notes = std::mem::take(&mut flat.notes);
        let says_nothing = |at: &At<'_>| {
            at.keywords()
                .all(|(name, _)| is_annotation(name) || matches!(name, "anyOf" | "oneOf" | "allOf" | "$ref"))
        };
        let is_plain = flat.loose.is_empty() && !flat.is_unknown && flat.members.iter().all(says_nothing);
        if let [union] = flat.unions.as_slice()
            && is_plain
        {
            self.note_overlap(union);
            for branch in flat.unions.swap_remove(0).branches {
                let Use { form: inner, notes } = self.value(branch);
                form.alternatives.push(Alternative { notes, ..Alternative::of(Shape::Same(inner)) });
            }
        } else {
            self.bound_unions(&mut flat);
            self.choose(flat, Notes::NONE, &mut form.alternatives);
        }
        form
    }

    /// Drops unions with too many combinations.
    fn bound_unions(&mut self, flat: &mut Flat<'a>) {
        let members: usize = flat.members.iter().map(|at| size(at.node, "properties")).sum();
        let mut product = 1_usize;
        for union in std::mem::take(&mut flat.unions) {
            let next = product.saturating_mul(union.branches.len());
            let cost = next.saturating_mul(members + 1);
            if (product == 1 || next <= MAX_PRODUCT) && cost <= self.work {
                product = next;
                flat.unions.push(union);
            } else {
                self.lose(union.at, union.keyword, LossKind::Unenforced);
                flat.loose.extend(union.branches.into_iter().flatten());
            }
        }
        self.work = self.work.saturating_sub(product.saturating_mul(members + 1));
    }

    /// Combines the branches of all unions.
    fn choose(&mut self, mut flat: Flat<'a>, notes: Notes, out: &mut Vec<Alternative>) {
        if flat.unions.is_empty() {
            let from = out.len();
            out.extend(self.alternatives(&flat));
            out.iter_mut().skip(from).for_each(|alternative| alternative.notes.or(notes.clone()));
            return;
        }
        let union = flat.unions.remove(0);
        self.note_overlap(&union);
        for branch in union.branches {
            let mut chosen = flat.clone();
            let mut places = std::mem::take(&mut self.forms.places);
            let possible =
                branch.into_iter().all(|part| self.definitions.flatten(part, &mut chosen, &mut places));
            self.forms.places = places;
            if possible {
                let mut own = std::mem::take(&mut chosen.notes);
                own.or(notes.clone());
                self.choose(chosen, own, out);
            }
        }
    }

    fn note_overlap(&mut self, union: &Union<'a>) {
        match union.keyword {
            "if" => self.lose(union.at, "if", LossKind::Loosened),
            "oneOf" => {
                let branches: Vec<_> = union.branches.iter().flatten().copied().collect();
                if !union::are_disjoint(&mut self.definitions, &mut self.forms.places, &branches) {
                    self.lose(union.at, "oneOf", LossKind::Loosened);
                }
            }
            _ => {}
        }
    }

    /// Returns the alternatives that satisfy schemas without unions.
    fn alternatives(&mut self, flat: &Flat<'a>) -> Vec<Alternative> {
        let members = &flat.members;
        self.note_unsaid(members);
        let kinds = members.iter().fold(Kinds::ALL, |kinds, at| kinds.and(Kinds::of(at.node)));
        let kinds = kinds::without_negated(kinds, members);
        if let Some(values) = kinds::literals(members, kinds) {
            let lists = |at: &&At<'a>| at.node.get("enum").or(at.node.get("const")).is_some();
            let origin = members.iter().find(lists).map(|at| at.place).unwrap_or_default();
            let values = self.fitting(values, members);
            if values.is_empty() {
                return Vec::new();
            }
            let values = values.into_iter().map(|value| Literal { value, description: None }).collect();
            return vec![Alternative::of(Shape::Literals(Literals { values, origin }))];
        }
        let kinds_of_members = if kinds == Kinds::ALL { Kinds::meant_by(members) } else { kinds };
        if kinds_of_members == Kinds::ALL && kinds == Kinds::ALL {
            return vec![Alternative::of(Shape::Any)];
        }
        let mut out = Vec::new();
        if kinds_of_members.has(Kinds::OBJECT) {
            out.extend(self.object(flat).map(Shape::Object));
        }
        if kinds_of_members.has(Kinds::ARRAY) {
            out.extend(self.array(flat).map(Shape::Array));
        }
        if kinds_of_members.has(Kinds::STRING) {
            out.extend(self.string(members).map(Shape::String));
        }
        if kinds_of_members.has(Kinds::NUMBER) {
            out.extend(self.number(members, !kinds_of_members.has(Kinds::FRACTION)).map(Shape::Number));
        }
        if kinds_of_members.has(Kinds::BOOLEAN) {
            out.push(Shape::Boolean);
        }
        if kinds_of_members.has(Kinds::NULL) {
            out.push(Shape::Null);
        }
        let mut out: Vec<_> = out.into_iter().map(Alternative::of).collect();
        if kinds_of_members != kinds {
            let place = members.first().map(|at| at.place).unwrap_or_default();
            out.extend(self.unsaid(kinds.minus(kinds_of_members), place));
        }
        out
    }

    /// Returns the enumerated values that satisfy the other keywords, as far as this is decidable here; the rest is a
    /// loss.
    fn fitting(&mut self, mut values: Vec<Value>, members: &[At<'a>]) -> Vec<Value> {
        for at in members {
            for (keyword, value) in at.keywords() {
                let is_asked: fn(&Value) -> bool = match keyword {
                    "pattern" | "format" => Value::is_string,
                    "multipleOf" => Value::is_number,
                    "items" | "prefixItems" | "minItems" | "maxItems" => Value::is_array,
                    "properties"
                    | "required"
                    | "additionalProperties"
                    | "patternProperties"
                    | "propertyNames"
                    | "minProperties"
                    | "maxProperties" => Value::is_object,
                    _ => continue,
                };
                let matcher = value.as_str().filter(|_| keyword == "pattern").and_then(Matcher::of);
                match matcher {
                    Some(matcher) => {
                        values.retain(|value| value.as_str().is_none_or(|text| matcher.matches(text)));
                    }
                    None if values.iter().any(is_asked) => self.lose(at.place, keyword, LossKind::Unenforced),
                    None => {}
                }
            }
        }
        values
    }

    /// Returns the types of values that a schema without `type` does not constrain: `{"minLength": 1}` allows every
    /// number.
    fn unsaid(&mut self, kinds: Kinds, origin: PlaceId) -> Vec<Alternative> {
        let any = Use::of(self.any());
        let shapes = [
            (Kinds::OBJECT, self.open_object(any.clone(), origin)),
            (Kinds::ARRAY, Shape::Array(ArrayForm { items: Some(any), origin, ..ArrayForm::default() })),
            (Kinds::STRING, Shape::String(StringForm { origin, ..StringForm::default() })),
            (Kinds::FRACTION, Shape::Number(NumberForm { origin, ..NumberForm::default() })),
            (Kinds::BOOLEAN, Shape::Boolean),
            (Kinds::NULL, Shape::Null),
        ];
        let there = shapes.into_iter().filter(|(kind, _)| kinds.has(*kind));
        there.map(|(_, shape)| Alternative { is_unsaid: true, ..Alternative::of(shape) }).collect()
    }

    /// Reports the keywords that no form expresses.
    fn note_unsaid(&mut self, members: &[At<'a>]) {
        for at in members {
            for (keyword, value) in at.keywords() {
                let unsaid = match keyword {
                    "contains" | "minContains" | "maxContains" | "dependentRequired" | "dependentSchemas" => {
                        true
                    }
                    "if" => !(at.node.get("then").is_some() && at.node.get("else").is_some()),
                    "uniqueItems" => value == &Value::Bool(true),
                    "unevaluatedProperties" | "unevaluatedItems" => !value.is_boolean(),
                    "propertyNames" => !kinds::is_said_of_names(value),
                    "not" => !kinds::is_said_negation(value),
                    "$ref" => self.definitions.target(at.node, &mut self.forms.places).is_none(),
                    _ => false,
                };
                if unsaid {
                    self.lose(at.place, keyword, LossKind::Unenforced);
                }
            }
        }
    }

    fn lose_each(&mut self, members: &[At<'a>], keyword: &str, kind: LossKind) {
        if let Some(at) = members.first() {
            self.lose(at.place, keyword, kind);
        }
    }

    fn lose(&mut self, place: PlaceId, keyword: &str, kind: LossKind) {
        self.losses.insert((self.forms.places.pointer(place), keyword.to_owned(), kind));
    }
}

/// Returns the number of objects in a document, an upper bound of its schemas.
fn objects(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(objects).sum::<usize>(),
        Value::Array(items) => items.iter().map(objects).sum(),
        _ => 0,
    }
}

/// Returns the number of schemas under a keyword.
fn size(node: &Value, keyword: &str) -> usize {
    node.get(keyword).and_then(Value::as_object).map_or(0, serde_json::Map::len)
}
