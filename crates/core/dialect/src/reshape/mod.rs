//! Converts forms to forms that a dialect can express, with the operations that lift the answers.

mod budget;
mod encoded;
mod members;
mod prepare;
mod recursion;
mod texts;
mod tuples;

use std::collections::VecDeque;

use foldhash::{HashMap, HashSet};
use formwork_core::{Lift, LossKind};
use serde_json::Value;

use crate::depth::{too_deep, too_often};
use crate::expand::Losses;
use crate::form::{
    Alternative, ArrayForm, Form, FormId, Forms, Literal, Literals, Notes, ObjectForm, Property, Shape, Use,
};
use crate::order::Order;
use crate::place::PlaceId;
use crate::profile::{self, Any, Maps, Profile, References};
use budget::Savings;
use encoded::Outlines;
use prepare::{spell_any, spread_texts};

/// Rewrites forms for a dialect. The members of objects get the order of generation.
///
/// Forms that are nested too deeply for the dialect become JSON in a string.
pub(crate) fn reshape(
    source: &mut Forms,
    profile: &Profile,
    order: &Order,
    is_bounded: bool,
    losses: &mut Losses,
) -> Forms {
    let unrolled = if profile.recursion { HashSet::default() } else { recursion::unroll(source) };
    if profile.any == Any::Spelled || is_bounded && profile.any == Any::Native {
        spell_any(source, is_bounded);
    }
    let names = Names::free(source);
    let mut unsayable = texts::unsayable(source, profile);
    unsayable.extend(unrolled);
    let mut texts = if profile.any == Any::Leaves {
        Texts { leaves: unsayable, ..Texts::default() }
    } else {
        Texts { json: unsayable, ..Texts::default() }
    };
    spread_texts(source, &mut texts);
    let siblings = Siblings::all(source, profile);
    let mut savings = Savings::default();
    loop {
        let mut work = Reshaper {
            source,
            profile,
            is_bounded,
            names: &names,
            siblings: &siblings,
            texts: &texts,
            savings: &savings,
            out: Forms::new(source.places.clone()),
            sources: Vec::new(),
            losses: Losses::new(),
            known: HashMap::default(),
            nullable: HashMap::default(),
            queue: VecDeque::new(),
            leaf: None,
            current: None,
        };
        work.run(order);
        let Reshaper { out, sources, losses: own, .. } = work;
        let mut deep = profile.limits.as_ref().map(|limits| too_deep(&out, limits.depth)).unwrap_or_default();
        if deep.is_empty() && profile.references == References::Inlined {
            deep.extend(too_often(&out));
        }
        let deep: HashSet<FormId> = deep.into_iter().filter_map(|id| sources[id.index()]).collect();
        // Each round makes JSON text of at least one form more, so this ends.
        let count = texts.json.len();
        texts.json.extend(deep);
        spread_texts(source, &mut texts);
        if texts.json.len() > count {
            continue;
        }
        // Each round saves at least one more form to stay within the limits, so this ends as well.
        let limits = profile.limits.as_ref();
        if limits.is_none_or(|limits| !savings.extend(source, &out, &sources, &siblings, &texts, limits)) {
            losses.extend(own);
            return out;
        }
    }
}

/// The forms whose values are encoded, because the dialect cannot express them.
#[derive(Debug, Default)]
struct Texts {
    /// The forms that become JSON in a string.
    json: HashSet<FormId>,
    /// The forms that become lists of leaves.
    leaves: HashSet<FormId>,
    outlines: Outlines,
}

impl Texts {
    fn contains(&self, id: &FormId) -> bool {
        self.json.contains(id) || self.leaves.contains(id)
    }
}

/// Names for additional members, which no member of the schema has.
struct Names {
    /// The marker of an absent member.
    absent: String,
    /// The member with the entries of a map.
    entries: String,
    /// The member with the items after the prefix of a tuple.
    rest: String,
}

impl Names {
    fn free(forms: &Forms) -> Self {
        let mut taken = HashSet::default();
        for id in forms.ids() {
            for alternative in &forms[id].alternatives {
                if let Shape::Object(object) = &alternative.shape {
                    taken.extend(object.properties.iter().map(|property| property.name.as_str()));
                }
            }
        }
        let free = |name: &str| free_name(name, &taken);
        Self { absent: free("absent"), entries: free("entries"), rest: free("rest") }
    }
}

/// Returns a name that is not taken.
fn free_name(name: &str, taken: &HashSet<&str>) -> String {
    let mut name = name.to_owned();
    while taken.contains(name.as_str()) {
        name.push('_');
    }
    name
}

/// Returns an object with these members and no others.
fn closed(properties: Vec<Property>, origin: PlaceId) -> ObjectForm {
    ObjectForm { properties, origin, ..ObjectForm::default() }
}

fn required(name: &str, value: Use) -> Property {
    Property { name: name.to_owned(), value, required: true }
}

struct Reshaper<'p> {
    source: &'p Forms,
    profile: &'p Profile,
    /// Whether the number of members of a map will be bounded.
    is_bounded: bool,
    names: &'p Names,
    siblings: &'p HashMap<FormId, Siblings>,
    texts: &'p Texts,
    savings: &'p Savings,
    out: Forms,
    /// The source of each resulting form.
    sources: Vec<Option<FormId>>,
    losses: Losses,
    known: HashMap<FormId, FormId>,
    nullable: HashMap<(FormId, Option<Value>), FormId>,
    queue: VecDeque<(FormId, FormId, Order)>,
    /// The form of one leaf of a value.
    leaf: Option<FormId>,
    /// The form that is being reshaped.
    current: Option<FormId>,
}

impl Reshaper<'_> {
    fn run(&mut self, order: &Order) {
        let root = self.form(self.source.root, order);
        while let Some((id, source, order)) = self.queue.pop_front() {
            self.current = Some(source);
            let form = self.reshaped(source, &order);
            self.out.set(id, form);
        }
        self.current = Some(self.source.root);
        self.out.root = root;
        if let Some(name) = self.profile.wrap {
            // A root that only refers to another form is replaced by that form.
            while let [Alternative { shape: Shape::Same(inner), lifts, .. }] =
                self.out[self.out.root].alternatives.as_slice()
                && lifts.is_empty()
            {
                self.out.root = *inner;
            }
            let root = self.out.root;
            let is_object = matches!(
                self.out[root].alternatives.as_slice(),
                [Alternative { shape: Shape::Object(_), .. }]
            );
            if !is_object {
                let object = closed(vec![required(name, Use::of(root))], PlaceId::default());
                let lifts = vec![Lift::Unwrap(name.to_owned())];
                self.out.root = self.add(Alternative::of(Shape::Object(object)).with_lifts(lifts));
            }
        }
    }

    /// Adds a form of one alternative.
    fn add(&mut self, alternative: Alternative) -> FormId {
        self.add_form(Form { alternatives: vec![alternative], ..Form::default() })
    }

    fn add_form(&mut self, form: Form) -> FormId {
        let id = self.out.add(form);
        self.sources.resize(id.index() + 1, self.current);
        id
    }

    /// Returns the result for a form.
    fn form(&mut self, source: FormId, order: &Order) -> FormId {
        if let Some(known) = self.known.get(&source).filter(|_| order.is_empty()) {
            return *known;
        }
        let id = self.out.reserve();
        self.sources.resize(id.index() + 1, Some(source));
        if order.is_empty() {
            self.known.insert(source, id);
        }
        self.queue.push_back((id, source, order.clone()));
        id
    }

    fn value(&mut self, value: &Use, order: &Order) -> Use {
        Use { form: self.form(value.form, order), notes: value.notes.clone() }
    }

    fn reshaped(&mut self, source: FormId, order: &Order) -> Form {
        let form = &self.source[source];
        let mut out = Form { alternatives: Vec::new(), notes: form.notes.clone(), name: form.name.clone() };
        if self.texts.leaves.contains(&source) {
            out.alternatives.push(self.leaves(source));
            return out;
        }
        if self.texts.json.contains(&source) {
            let listed = texts::listed(form);
            out.alternatives.push(listed.unwrap_or_else(|| self.json_text(source)));
            return out;
        }
        let alone = Siblings::default();
        let siblings = self.siblings.get(&source).unwrap_or(&alone);
        for alternative in &form.alternatives {
            let from = out.alternatives.len();
            self.alternative(alternative, order, siblings, &mut out.alternatives);
            for new in out.alternatives.iter_mut().skip(from) {
                new.notes = alternative.notes.clone();
                new.is_unsaid = alternative.is_unsaid;
            }
        }
        if self.savings.is_chosen(source) { self.choice(out) } else { out }
    }

    fn alternative(
        &mut self,
        alternative: &Alternative,
        order: &Order,
        siblings: &Siblings,
        out: &mut Vec<Alternative>,
    ) {
        match &alternative.shape {
            Shape::Same(inner) => {
                let inner = self.form(*inner, order);
                out.push(Alternative::of(Shape::Same(inner)));
            }
            Shape::Literals(literals) if self.profile.typed_literals => self.literals(literals, out),
            Shape::Array(array) => self.array(array, order, out),
            Shape::Object(object) => {
                let object = self.object(object, order, siblings);
                out.push(object);
            }
            other => out.push(Alternative::of(other.clone())),
        }
    }

    /// Converts enumerated objects and arrays to objects and arrays of enumerated values.
    fn literals(&mut self, literals: &Literals, out: &mut Vec<Alternative>) {
        let is_deep = |literal: &&Literal| literal.value.is_object() || literal.value.is_array();
        let (deep, plain): (Vec<&Literal>, Vec<&Literal>) = literals.values.iter().partition(is_deep);
        if !plain.is_empty() {
            let values = plain.into_iter().cloned().collect();
            out.push(Alternative::of(Shape::Literals(Literals { values, origin: literals.origin })));
        }
        for literal in deep {
            match &literal.value {
                Value::Object(members) => {
                    let properties = members.iter().map(|(name, value)| {
                        let value = Use::of(self.constant(value, literals.origin));
                        required(name, value)
                    });
                    let object = closed(properties.collect(), literals.origin);
                    out.push(Alternative::of(Shape::Object(object)));
                }
                Value::Array(items) => {
                    let prefix: Vec<_> =
                        items.iter().map(|item| Use::of(self.constant(item, literals.origin))).collect();
                    let length = prefix.len() as u64;
                    let array = ArrayForm {
                        prefix,
                        min: length,
                        max: Some(length),
                        origin: literals.origin,
                        ..ArrayForm::default()
                    };
                    self.tuple(array, &[], out);
                }
                _ => {}
            }
        }
    }

    /// Returns the form of one value.
    fn constant(&mut self, value: &Value, origin: PlaceId) -> FormId {
        let literal = Literal { value: value.clone(), description: None };
        let mut alternatives = Vec::new();
        self.literals(&Literals { values: vec![literal], origin }, &mut alternatives);
        self.add_form(Form { alternatives, ..Form::default() })
    }

    /// Returns a form with an additional value for an absent member: `null`, or a [marker](Self::marker) if `null` is a
    /// value of the member.
    fn optional(&mut self, name: &str, value: Optional, lifts: &mut Vec<Lift>) -> FormId {
        let Optional { form, notes, marker } = value;
        let known = lifts.iter_mut().find_map(|lift| match (lift, &marker) {
            (Lift::DropNull(names), None) => Some(names),
            (Lift::DropAbsent { names, marker: known }, Some(marker)) if known == marker => Some(names),
            _ => None,
        });
        match known {
            Some(names) => names.push(name.to_owned()),
            None => {
                let names = vec![name.to_owned()];
                let lift = match &marker {
                    None => Lift::DropNull(names),
                    Some(marker) => Lift::DropAbsent { names, marker: marker.clone() },
                };
                lifts.insert(0, lift);
            }
        }
        let key = (form, marker);
        if let Some(known) = self.nullable.get(&key) {
            return *known;
        }
        let other = match &key.1 {
            None => Alternative::of(Shape::Null),
            Some(marker) => {
                let notes = Notes::described("Left out.");
                let shape = Shape::Same(self.constant(marker, PlaceId::default()));
                Alternative { notes, ..Alternative::of(shape) }
            }
        };
        let alternatives = vec![Alternative::of(Shape::Same(form)), other];
        let id = self.add_form(Form { alternatives, notes, name: None });
        self.nullable.insert(key, id);
        id
    }

    /// Returns the value for an absent member of this form; `None` for `null`.
    fn marker(&self, source: FormId, null_is_a_value: bool) -> Option<Value> {
        // An encoded value has a `null` of its own.
        if !null_is_a_value || self.texts.contains(&source) {
            return None;
        }
        let has_boolean = self.source.any(source, |alternative| match &alternative.shape {
            Shape::Boolean | Shape::Any => true,
            Shape::Literals(literals) => literals.values.iter().any(|literal| literal.value.is_boolean()),
            _ => false,
        });
        Some(if has_boolean { serde_json::json!({&self.names.absent: true}) } else { Value::Bool(false) })
    }

    fn lose(&mut self, origin: PlaceId, keyword: &str, kind: LossKind) {
        self.losses.insert((self.source.places.pointer(origin), keyword.to_owned(), kind));
    }
}

/// An optional member, in a dialect that requires every member.
struct Optional {
    form: FormId,
    /// The annotations of the form.
    notes: Notes,
    /// The value for its absence; `None` for `null`.
    marker: Option<Value>,
}

/// The alternatives beside an object that an answer could be confused with.
#[derive(Debug, Default)]
struct Siblings {
    /// Whether one of them is an array, so that a map cannot become an array as well.
    has_array: bool,
    /// The names of members for which some alternative allows `null`.
    nullable: HashSet<String>,
    /// The number of objects among them, including the object itself.
    objects: usize,
}

impl Siblings {
    /// Returns the siblings of the objects of each form with several alternatives, or among the alternatives of others.
    /// Objects of other forms have none.
    fn all(forms: &Forms, profile: &Profile) -> HashMap<FormId, Self> {
        let mut all: HashMap<FormId, Self> = HashMap::default();
        let is_needed = profile.maps != Maps::Native || profile.optional == profile::Optional::Nullable;
        for id in forms.ids().filter(|id| is_needed && forms[*id].alternatives.len() > 1) {
            let group = forms.same(id);
            let (mut has_array, mut nullable, mut objects) = (false, HashSet::default(), 0);
            for alternative in group.iter().flat_map(|id| &forms[*id].alternatives) {
                objects += usize::from(matches!(alternative.shape, Shape::Object(_)));
                match &alternative.shape {
                    Shape::Array(_) => has_array = true,
                    Shape::Literals(literals) => {
                        has_array |= literals.values.iter().any(|literal| literal.value.is_array());
                        objects += literals.values.iter().filter(|literal| literal.value.is_object()).count();
                    }
                    Shape::Object(object) if profile.optional == profile::Optional::Nullable => {
                        let nulls = object.properties.iter().filter(|one| forms.allows_null(one.value.form));
                        nullable.extend(nulls.map(|property| property.name.as_str()));
                    }
                    _ => {}
                }
            }
            for id in group {
                let siblings = all.entry(id).or_default();
                siblings.has_array |= has_array;
                siblings.objects = siblings.objects.max(objects);
                siblings.nullable.extend(nullable.iter().map(|name| (*name).to_owned()));
            }
        }
        all
    }
}
