use std::collections::BTreeSet;
use std::rc::Rc;

use formwork_core::{Lift, LossKind, Segment};
use serde_json::Value;

use super::{Reshaper, closed, shared};
use crate::caps::MAX_NAME;
use crate::form::{Alternative, ArrayForm, Extra, Form, ObjectForm, Property, Role, Shared, StringForm};
use crate::order::Order;
use crate::profile::{Maps, Optional};

impl Reshaper<'_> {
    pub(super) fn object(&mut self, object: &ObjectForm, order: &Order, depth: usize) -> Alternative {
        let is_counted = self.profile.maps == Maps::Counted;
        let counted = if is_counted { as_it_is(object) } else { self.counted(object) };
        if counted.properties.is_empty() && !counted.extras.is_empty() && !is_counted {
            let Counted { extras, min, max, .. } = counted;
            return self.pairs(extras, min, max, &object.origin, depth);
        }
        let mut lifts = Vec::new();
        let mut properties = self.ordered(object, counted.properties, order, &mut lifts);
        for property in &mut properties {
            let below = order.below(&Segment::Key(property.name.clone()));
            let form = self.form(&property.form, &below, depth + 1);
            property.form = match (property.required, self.profile.optional) {
                (false, Optional::Nullable) => {
                    let nulls = allows_null(&property.form);
                    property.required = true;
                    if nulls == Nulls::Meant {
                        self.lose(&object.origin, "required", LossKind::Tightened);
                        form
                    } else {
                        if nulls == Nulls::Possible {
                            self.lose(&object.origin, "required", LossKind::Tightened);
                        }
                        dropped(&mut lifts, &property.name);
                        self.or_null(&form)
                    }
                }
                _ => form,
            };
        }
        if self.profile.sorts_keys {
            rename_where_sorting_hurts(&mut properties, order, &mut lifts);
        }
        let mut reshaped =
            ObjectForm { name: object.name.clone(), ..closed(properties, object.origin.clone()) };
        if is_counted {
            (reshaped.min, reshaped.max) = (object.min, object.max);
            reshaped.extras = counted.extras.iter().map(|extra| self.extra(extra, depth)).collect();
        } else if !counted.extras.is_empty() {
            let Counted { extras, min, max, .. } = counted;
            let name = free_name(reshaped.properties.iter().chain(&object.properties));
            let required = min > 0 || self.profile.optional == Optional::Nullable;
            let form = shared(self.pairs(extras, min, max, &object.origin, depth + 1));
            reshaped.properties.push(Property { name: name.clone(), form, required });
            // Before members get their order back.
            let place = lifts.iter().position(|lift| matches!(lift, Lift::Reorder(_))).unwrap_or(lifts.len());
            lifts.insert(place, Lift::Spread(name));
        }
        let object = Alternative::Object(reshaped);
        if lifts.is_empty() { object } else { Alternative::Mapped(Box::new(object), lifts) }
    }

    fn extra(&mut self, extra: &Extra, depth: usize) -> Extra {
        Extra { pattern: extra.pattern.clone(), form: self.form(&extra.form, &Order::default(), depth + 1) }
    }

    /// Members whose names are not listed, as an array of `{"key", "value"}`.
    fn pairs(
        &mut self,
        extras: &[Extra],
        min: u64,
        max: Option<u64>,
        origin: &str,
        depth: usize,
    ) -> Alternative {
        let mut alternatives = Vec::with_capacity(extras.len());
        for extra in extras {
            let key = StringForm {
                min: 1,
                max: Some(MAX_NAME),
                patterns: extra.pattern.iter().cloned().collect(),
                origin: origin.to_owned(),
                role: Role::Name,
                ..StringForm::default()
            };
            let value = self.form(&extra.form, &Order::default(), depth + 2);
            let member = |name: &str, form| Property { name: name.to_owned(), form, required: true };
            let members = vec![member("key", shared(Alternative::String(key))), member("value", value)];
            alternatives.push(Alternative::Object(closed(members, origin.to_owned())));
        }
        let items = Some(Rc::new(Form { alternatives, description: None }));
        let array = ArrayForm { prefix: Vec::new(), items, min, max, origin: origin.to_owned() };
        Alternative::Mapped(Box::new(Alternative::Array(array)), vec![Lift::PairsToMap])
    }

    /// Meets the bounds on the number of members by which members there are.
    fn counted<'o>(&mut self, object: &'o ObjectForm) -> Counted<'o> {
        let fixed = object.properties.iter().filter(|property| property.required).count() as u64;
        let mut spare = object.max.map_or(u64::MAX, |max| max.saturating_sub(fixed));
        let mut properties = Vec::with_capacity(object.properties.len());
        for property in &object.properties {
            if !property.required {
                if spare == 0 {
                    self.lose(&object.origin, "properties", LossKind::Tightened);
                    continue;
                }
                spare -= 1;
            }
            properties.push(property.clone());
        }
        let max = object.max.map(|_| spare);
        let extras: &[Extra] = if spare == 0 { &[] } else { &object.extras };
        if extras.len() < object.extras.len() {
            self.lose(&object.origin, "additionalProperties", LossKind::Tightened);
        }
        let mut missing = object.min.saturating_sub(fixed);
        // What the others cannot make up for, named members have to.
        if extras.is_empty() || max.is_some_and(|max| max < missing) {
            for property in properties.iter_mut().filter(|property| !property.required) {
                if missing == 0 {
                    break;
                }
                property.required = true;
                missing -= 1;
                self.lose(&object.origin, "required", LossKind::Tightened);
            }
        }
        Counted { properties, extras, min: missing, max }
    }

    /// The members in the order in which they are generated.
    fn ordered(
        &mut self,
        object: &ObjectForm,
        mut properties: Vec<Property>,
        order: &Order,
        lifts: &mut Vec<Lift>,
    ) -> Vec<Property> {
        let declared: Vec<String> = properties.iter().map(|property| property.name.clone()).collect();
        let names: Vec<&str> = declared.iter().map(String::as_str).collect();
        if let Some(sorted) = order.sorted(&names) {
            properties.sort_by_key(|property| sorted.iter().position(|name| *name == property.name));
        }
        if self.profile.optional == Optional::RequiredFirst {
            // What a required member depends on would come after it.
            for name in order.before(&properties) {
                for property in properties.iter_mut().filter(|property| property.name == name) {
                    property.required = true;
                    self.lose(&object.origin, "required", LossKind::Tightened);
                }
            }
            properties.sort_by_key(|property| !property.required);
        }
        if properties.iter().map(|property| &property.name).ne(&declared) {
            lifts.push(Lift::Reorder(declared));
        }
        properties
    }
}

/// The members of an object when there is no need to count them any more.
struct Counted<'o> {
    properties: Vec<Property>,
    extras: &'o [Extra],
    /// How many members of other names there are.
    min: u64,
    max: Option<u64>,
}

fn as_it_is(object: &ObjectForm) -> Counted<'_> {
    Counted {
        properties: object.properties.clone(),
        extras: &object.extras,
        min: object.min,
        max: object.max,
    }
}

/// Whether `null` in the original is something else than an absent member.
#[derive(PartialEq, Eq)]
enum Nulls {
    No,
    /// As one of all values there are: absent is what is meant more often.
    Possible,
    Meant,
}

fn allows_null(form: &Shared) -> Nulls {
    let mut nulls = Nulls::No;
    for alternative in &form.alternatives {
        match alternative {
            Alternative::Null => return Nulls::Meant,
            Alternative::Literals(literals) if literals.values.contains(&Value::Null) => return Nulls::Meant,
            Alternative::Any(_) => nulls = Nulls::Possible,
            _ => {}
        }
    }
    nulls
}

/// Nulls are dropped first, by the names that were sent.
fn dropped(lifts: &mut Vec<Lift>, name: &str) {
    match lifts.first_mut() {
        Some(Lift::DropNull(names)) => names.push(name.to_owned()),
        _ => lifts.insert(0, Lift::DropNull(vec![name.to_owned()])),
    }
}

/// A name for the members that have no place of their own.
fn free_name<'a>(properties: impl Iterator<Item = &'a Property>) -> String {
    let taken: BTreeSet<&str> = properties.map(|property| property.name.as_str()).collect();
    let mut name = "others".to_owned();
    while taken.contains(name.as_str()) {
        name.push('_');
    }
    name
}

/// Puts a letter before each name where the alphabet would bring a member before what it depends on.
fn rename_where_sorting_hurts(properties: &mut [Property], order: &Order, lifts: &mut Vec<Lift>) {
    let by_alphabet: BTreeSet<&str> = properties.iter().map(|property| property.name.as_str()).collect();
    let by_alphabet: Vec<&str> = by_alphabet.into_iter().collect();
    if order.sorted(&by_alphabet).is_none() {
        return;
    }
    let width = if properties.len() <= 26 { 1 } else { 3 };
    let mut names = Vec::with_capacity(properties.len());
    for (index, property) in properties.iter_mut().enumerate() {
        let sent = format!("{}_{}", letters(index, width), property.name);
        names.push((sent.clone(), std::mem::replace(&mut property.name, sent)));
    }
    for lift in lifts.iter_mut() {
        if let Lift::DropNull(dropped) = lift {
            for name in dropped {
                if let Some((sent, _)) = names.iter().find(|(_, original)| original == name) {
                    name.clone_from(sent);
                }
            }
        }
    }
    let place = lifts.iter().position(|lift| matches!(lift, Lift::Reorder(_))).unwrap_or(lifts.len());
    lifts.insert(place, Lift::Rename(names));
}

/// A number in letters: `a`, `b`; `aab` for 1 in three letters.
fn letters(mut index: usize, width: usize) -> String {
    let mut out = vec!['a'; width];
    for place in out.iter_mut().rev() {
        *place = char::from(b'a' + (index % 26) as u8);
        index /= 26;
    }
    out.into_iter().collect()
}
