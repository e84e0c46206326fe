//! From forms to forms that a dialect can say: what it cannot, in another shape, with the way back.

mod members;

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use formwork_core::{Lift, LossKind, Segment};
use serde_json::Value;

use crate::expand::Receipt;
use crate::form::{Alternative, ArrayForm, Form, Literals, ObjectForm, Property, Role, Shared, StringForm};
use crate::order::Order;
use crate::outline::outline;
use crate::profile::{Any, Maps, Profile, Tuples};

/// A tuple may be made so much longer by `minItems`; beyond that it is a list.
const MAX_TUPLE: u64 = 64;

/// Rewrites a form for a dialect. The members of objects come out in the order in which they are generated.
pub(crate) fn reshape(
    form: &Shared,
    profile: &Profile,
    order: &Order,
    losses: &mut BTreeSet<Receipt>,
) -> Shared {
    let mut work = Reshaper { profile, losses, known: HashMap::new(), nullable: HashMap::new() };
    let reshaped = work.form(form, order, 1);
    match profile.wrap {
        Some(name) if !is_object(&reshaped) => {
            // One level deeper than thought.
            let inner = work.form(form, order, 2);
            Rc::new(Form { alternatives: vec![wrapped(name, inner)], description: None })
        }
        _ => reshaped,
    }
}

fn is_object(form: &Form) -> bool {
    match form.alternatives.as_slice() {
        [Alternative::Mapped(inner, _)] => matches!(**inner, Alternative::Object(_)),
        [one] => matches!(one, Alternative::Object(_)),
        _ => false,
    }
}

fn wrapped(name: &str, form: Shared) -> Alternative {
    let property = Property { name: name.to_owned(), form, required: true };
    let object = Alternative::Object(closed(vec![property], String::new()));
    Alternative::Mapped(Box::new(object), vec![Lift::Unwrap(name.to_owned())])
}

/// An object with these members and no others.
fn closed(properties: Vec<Property>, origin: String) -> ObjectForm {
    ObjectForm { name: None, properties, extras: Vec::new(), min: 0, max: None, origin }
}

fn shared(alternative: Alternative) -> Shared {
    Rc::new(Form { alternatives: vec![alternative], description: None })
}

struct Reshaper<'p> {
    profile: &'p Profile,
    losses: &'p mut BTreeSet<Receipt>,
    /// By form and depth, so that what is shared stays shared.
    known: HashMap<(*const Form, usize), Shared>,
    /// With the form itself, so that no other one comes to stand in its place.
    nullable: HashMap<*const Form, (Shared, Shared)>,
}

impl Reshaper<'_> {
    fn form(&mut self, form: &Shared, order: &Order, depth: usize) -> Shared {
        // Depth matters only where it is counted.
        let counted = if self.profile.limits.is_some() { depth } else { 0 };
        let key = (Rc::as_ptr(form), counted);
        if let Some(known) = self.known.get(&key).filter(|_| order.is_empty()) {
            return Rc::clone(known);
        }
        let mut alternatives = Vec::with_capacity(form.alternatives.len());
        for alternative in &form.alternatives {
            self.alternative(alternative, order, depth, &mut alternatives);
        }
        let reshaped = Rc::new(Form { alternatives, description: form.description.clone() });
        if order.is_empty() {
            self.known.insert(key, Rc::clone(&reshaped));
        }
        reshaped
    }

    fn alternative(
        &mut self,
        alternative: &Alternative,
        order: &Order,
        depth: usize,
        out: &mut Vec<Alternative>,
    ) {
        match alternative {
            Alternative::Any(origin) if self.profile.any == Any::Text => {
                self.lose(origin, "type", LossKind::Loosened);
                out.push(json_text(origin, None));
            }
            Alternative::Literals(literals) if self.profile.typed_literals => split(literals, out),
            Alternative::Array(array) if self.fits(depth, 1) => out.push(self.array(array, order, depth)),
            Alternative::Object(object) if self.fits(depth, self.levels(object)) => {
                out.push(self.object(object, order, depth));
            }
            Alternative::Array(ArrayForm { origin, .. }) | Alternative::Object(ObjectForm { origin, .. }) => {
                self.lose(origin, "type", LossKind::Loosened);
                let held = Form { alternatives: vec![alternative.clone()], description: None };
                out.push(json_text(origin, Some(outline(&held))));
            }
            Alternative::Mapped(inner, lifts) => {
                let mut mapped = Vec::new();
                self.alternative(inner, order, depth, &mut mapped);
                out.extend(mapped.into_iter().map(|one| Alternative::Mapped(Box::new(one), lifts.clone())));
            }
            other => out.push(other.clone()),
        }
    }

    /// Whether so many levels from this one on are not too deep.
    fn fits(&self, depth: usize, levels: usize) -> bool {
        self.profile.limits.as_ref().is_none_or(|limits| depth + levels - 1 <= limits.depth)
    }

    /// How many levels an object takes without what is in its members.
    fn levels(&self, object: &ObjectForm) -> usize {
        match (object.extras.is_empty() || self.profile.maps == Maps::Counted, object.properties.is_empty()) {
            (true, _) => 1,
            (false, true) => 2,
            (false, false) => 3,
        }
    }

    fn array(&mut self, array: &ArrayForm, order: &Order, depth: usize) -> Alternative {
        if array.prefix.is_empty() || self.profile.tuples == Tuples::Native {
            let prefix = array.prefix.iter().enumerate();
            let prefix =
                prefix.map(|(index, form)| self.form(form, &order.below(&Segment::Index(index)), depth + 1));
            let prefix = prefix.collect();
            // No dependency names an item of an open list.
            let items = array.items.as_ref().map(|form| self.form(form, &Order::default(), depth + 1));
            return Alternative::Array(ArrayForm { prefix, items, ..array.clone() });
        }
        let wanted = (array.prefix.len() as u64).max(array.min);
        let length = array.max.map_or(wanted, |max| wanted.min(max));
        if length > MAX_TUPLE + array.prefix.len() as u64 {
            return self.list(array, depth);
        }
        if array.min < length {
            self.lose(&array.origin, "minItems", LossKind::Tightened);
        }
        if array.items.is_some() && array.max.is_none_or(|max| max > length) {
            self.lose(&array.origin, "maxItems", LossKind::Tightened);
        }
        let places = array.prefix.iter().chain(array.items.iter().cycle()).take(length as usize).enumerate();
        let places: Vec<Shared> = places
            .map(|(index, form)| self.form(form, &order.below(&Segment::Index(index)), depth + 1))
            .collect();
        if self.profile.tuples == Tuples::Whole {
            let array =
                ArrayForm { prefix: places, items: None, min: length, max: Some(length), ..array.clone() };
            return Alternative::Array(array);
        }
        let names: Vec<String> = (0..places.len()).map(|index| format!("_{index}")).collect();
        let properties = names.iter().cloned().zip(places);
        let properties = properties.map(|(name, form)| Property { name, form, required: true }).collect();
        let object = Alternative::Object(closed(properties, array.origin.clone()));
        Alternative::Mapped(Box::new(object), vec![Lift::Tuple(names)])
    }

    /// A long tuple as a list of what may stand anywhere in it.
    fn list(&mut self, array: &ArrayForm, depth: usize) -> Alternative {
        self.lose(&array.origin, "prefixItems", LossKind::Loosened);
        let mut alternatives = Vec::new();
        for form in array.prefix.iter().chain(&array.items) {
            alternatives.extend(self.form(form, &Order::default(), depth + 1).alternatives.iter().cloned());
        }
        crate::union::merge(&mut alternatives);
        let items = Some(Rc::new(Form { alternatives, description: None }));
        Alternative::Array(ArrayForm { prefix: Vec::new(), items, ..array.clone() })
    }

    /// A form with `null` beside it.
    fn or_null(&mut self, form: &Shared) -> Shared {
        let (_, nullable) = self.nullable.entry(Rc::as_ptr(form)).or_insert_with(|| {
            let mut alternatives = form.alternatives.clone();
            alternatives.push(Alternative::Null);
            let nullable = Form { alternatives, description: form.description.clone() };
            (Rc::clone(form), Rc::new(nullable))
        });
        Rc::clone(nullable)
    }

    fn lose(&mut self, origin: &str, keyword: &str, kind: LossKind) {
        self.losses.insert((origin.to_owned(), keyword.to_owned(), kind));
    }
}

/// JSON in a string.
fn json_text(origin: &str, holds: Option<String>) -> Alternative {
    let string = StringForm { role: Role::Json, origin: origin.to_owned(), holds, ..StringForm::default() };
    Alternative::Mapped(Box::new(Alternative::String(string)), vec![Lift::ParseJson])
}

/// Objects and arrays among listed values become their text.
fn split(literals: &Literals, out: &mut Vec<Alternative>) {
    let is_deep = |value: &&Value| value.is_object() || value.is_array();
    let (deep, plain): (Vec<&Value>, Vec<&Value>) = literals.values.iter().partition(is_deep);
    let listed =
        |values: Vec<Value>| Alternative::Literals(Literals { values, origin: literals.origin.clone() });
    if !plain.is_empty() {
        out.push(listed(plain.into_iter().cloned().collect()));
    }
    if !deep.is_empty() {
        let texts = deep.into_iter().map(|value| Value::from(value.to_string())).collect();
        out.push(Alternative::Mapped(Box::new(listed(texts)), vec![Lift::ParseJson]));
    }
}
