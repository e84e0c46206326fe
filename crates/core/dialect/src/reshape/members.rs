//! Objects: optional members, members with other names, and the order of all members.

use std::collections::BTreeSet;

use foldhash::HashMap;
use formwork_core::{Lift, LossKind, Segment};

use super::{Reshaper, Siblings, closed, free_name, required};
use crate::form::{Alternative, ArrayForm, Extra, Form, ObjectForm, Property, Role, Shape, StringForm, Use};
use crate::order::Order;
use crate::place::PlaceId;
use crate::profile::{Maps, Optional};

/// The number of members with other names.
#[derive(Debug, Clone, Copy)]
struct Counts {
    min: u64,
    max: Option<u64>,
}

impl Reshaper<'_> {
    pub(super) fn object(&mut self, object: &ObjectForm, order: &Order, siblings: &Siblings) -> Alternative {
        let fixed = object.properties.iter().filter(|property| property.required).count() as u64;
        let named = object.properties.len() as u64;
        let extras: Vec<Extra> = object.extras.iter().map(|extra| self.extra(extra)).collect();
        let others = Counts {
            min: object.min.saturating_sub(named),
            max: object.max.map(|max| max.saturating_sub(fixed)),
        };
        let extras = if others.max == Some(0) { Vec::new() } else { extras };
        let as_pairs = match self.profile.maps {
            Maps::Native => false,
            Maps::Plain => {
                !extras.is_empty() && self.is_bounded
                    || extras.iter().any(|extra| extra.pattern.is_some())
                    || named == 0 && !extras.is_empty() && (object.min > 0 || object.max.is_some())
            }
            Maps::Pairs => !extras.is_empty(),
        };
        if as_pairs && object.properties.is_empty() {
            return self.map(extras, others, object.origin, siblings);
        }
        let mut lifts = Vec::new();
        let listed = self.current.map(|source| self.savings.listed(source, object)).unwrap_or_default();
        let mut properties = self.ordered(object, order, &listed, &mut lifts);
        for property in &mut properties {
            let below = order.below(&Segment::Key(property.name.clone()));
            let source = property.value.form;
            property.value.form = self.form(source, &below);
            if listed.contains(&property.name) {
                self.as_list(property);
            }
            if !property.required && self.profile.optional == Optional::Nullable {
                let allows_null =
                    self.source.allows_null(source) || siblings.nullable.contains(&property.name);
                property.required = true;
                let value = super::Optional {
                    form: property.value.form,
                    notes: self.source[source].notes.clone(),
                    marker: self.marker(source, allows_null),
                };
                property.value.form = self.optional(&property.name, value, &mut lifts);
            }
        }
        if !listed.is_empty() {
            lifts.insert(0, Lift::Unlist(listed.clone()));
        }
        if self.profile.sorts_keys {
            rename_where_sorting_hurts(&mut properties, order, &mut lifts);
        }
        let mut reshaped = closed(properties, object.origin);
        if as_pairs {
            let properties = reshaped.properties.iter().chain(&object.properties);
            let name = free_name("others", &properties.map(|property| property.name.as_str()).collect());
            let is_required =
                others.min > 0 || !listed.is_empty() || self.profile.optional == Optional::Nullable;
            let pairs = self.pairs(extras, others, object.origin);
            let value = Use::of(self.add(pairs));
            let is_optional = |property: &Property| !property.required;
            let first = reshaped.properties.iter().position(is_optional).filter(|_| is_required);
            let place = first.unwrap_or(reshaped.properties.len());
            reshaped.properties.insert(place, Property { name: name.clone(), value, required: is_required });
            // This precedes the step that restores the order of members.
            let place = lifts.iter().position(|lift| matches!(lift, Lift::Reorder(_))).unwrap_or(lifts.len());
            lifts.insert(place, Lift::Spread(name));
        } else {
            reshaped.extras = self.distinct(extras, named > 0, object.origin);
        }
        self.counts(object, as_pairs, &mut reshaped);
        Alternative::of(Shape::Object(reshaped)).with_lifts(lifts)
    }

    fn extra(&mut self, extra: &Extra) -> Extra {
        Extra { value: self.value(&extra.value, &Order::default()), ..extra.clone() }
    }

    /// Keeps bounds of the number of members if the dialect supports them.
    fn counts(&mut self, object: &ObjectForm, as_pairs: bool, reshaped: &mut ObjectForm) {
        let fixed = object.properties.iter().filter(|property| property.required).count() as u64;
        let optional = object.properties.len() as u64 - fixed;
        let is_said = self.profile.maps == Maps::Native && {
            let has_one = object.min.saturating_sub(fixed) <= 1
                && object.max.is_none_or(|max| max.saturating_sub(fixed) == 1);
            optional == 0 || has_one && reshaped.extras.is_empty()
        };
        if is_said {
            (reshaped.min, reshaped.max) = (object.min, object.max);
            return;
        }
        // The pairs of a map have bounds of their own, which suffice if every named member is present.
        let is_met = as_pairs && optional == 0;
        let has_others = !object.extras.is_empty();
        let losses = [
            ("minProperties", object.min > fixed),
            ("maxProperties", object.max.is_some_and(|max| has_others || max < fixed + optional)),
        ];
        for (keyword, is_lost) in losses {
            if is_lost && !is_met {
                self.lose(object.origin, keyword, LossKind::Unenforced);
            }
        }
    }

    /// Returns the members with other names in the keywords of the dialect: llguidance rejects overlapping patterns,
    /// and a pattern also applies to named members.
    fn distinct(&mut self, mut extras: Vec<Extra>, has_named: bool, origin: PlaceId) -> Vec<Extra> {
        if self.profile.maps != Maps::Native {
            return extras;
        }
        let count = extras.len();
        for extra in extras.iter_mut().filter(|extra| extra.is_rest && (has_named || count > 1)) {
            if extra.pattern.take().is_some() {
                self.lose(origin, "propertyNames", LossKind::Unenforced);
            }
        }
        let patterns: Vec<&str> =
            extras.iter().filter_map(|extra| Some(extra.pattern.as_ref()?.translated.as_str())).collect();
        if are_apart(&patterns) {
            return extras;
        }
        self.lose(origin, "patternProperties", LossKind::Loosened);
        let same = |extra: Extra| Alternative {
            notes: extra.value.notes,
            ..Alternative::of(Shape::Same(extra.value.form))
        };
        let alternatives = extras.into_iter().map(same).collect();
        let value = Use::of(self.add_form(Form { alternatives, ..Form::default() }));
        vec![Extra { pattern: None, is_rest: true, value }]
    }

    /// Returns an object without named members.
    fn map(
        &mut self,
        extras: Vec<Extra>,
        counts: Counts,
        origin: PlaceId,
        siblings: &Siblings,
    ) -> Alternative {
        let pairs = self.pairs(extras, counts, origin);
        if !siblings.has_array {
            return pairs;
        }
        let name = self.names.entries.clone();
        let value = Use::of(self.add(pairs));
        let object = closed(vec![required(&name, value)], origin);
        Alternative::of(Shape::Object(object)).with_lifts(vec![Lift::Unwrap(name)])
    }

    /// Returns members with other names as an array of `{"key", "value"}`.
    fn pairs(&mut self, extras: Vec<Extra>, counts: Counts, origin: PlaceId) -> Alternative {
        if extras.iter().any(|extra| extra.pattern.is_none()) && extras.len() > 1 {
            self.lose(origin, "additionalProperties", LossKind::Loosened);
        }
        let mut alternatives = Vec::with_capacity(extras.len());
        for Extra { pattern, value, .. } in extras {
            let patterns = pattern.into_iter().collect();
            let key = StringForm { patterns, origin, role: Role::Name, ..StringForm::default() };
            let key = Use::of(self.out.add_shape(Shape::String(key)));
            self.sources.resize(self.out.len(), self.current);
            let members = vec![required("key", key), required("value", value)];
            alternatives.push(Alternative::of(Shape::Object(closed(members, origin))));
        }
        let items = Some(Use::of(self.add_form(Form { alternatives, ..Form::default() })));
        let array = ArrayForm { items, min: counts.min, max: counts.max, origin, ..ArrayForm::default() };
        Alternative::of(Shape::Array(array)).with_lifts(vec![Lift::PairsToMap])
    }

    /// The members in the order in which they are generated.
    fn ordered(
        &mut self,
        object: &ObjectForm,
        order: &Order,
        listed: &[String],
        lifts: &mut Vec<Lift>,
    ) -> Vec<Property> {
        let names: Vec<&str> = object.properties.iter().map(|property| property.name.as_str()).collect();
        let mut properties = object.properties.clone();
        if let Some(sorted) = order.sorted(&names) {
            let place: HashMap<&str, usize> =
                sorted.into_iter().enumerate().map(|(n, name)| (name, n)).collect();
            properties.sort_by_key(|property| place.get(property.name.as_str()).copied());
        }
        if self.profile.optional == Optional::RequiredFirst {
            properties.sort_by_key(|property| !property.required && !listed.contains(&property.name));
        }
        if properties.iter().map(|property| property.name.as_str()).ne(names.iter().copied()) {
            lifts.push(Lift::Reorder(names.into_iter().map(str::to_owned).collect()));
        }
        properties
    }
}

/// Returns whether the prefixes of these patterns prove that no name matches two of them.
fn are_apart(patterns: &[&str]) -> bool {
    let prefixes: Vec<_> = patterns.iter().map(|pattern| crate::pattern::prefix(pattern)).collect();
    let apart = |one: &Option<String>, other: &Option<String>| match (one, other) {
        (Some(one), Some(other)) => !one.starts_with(other.as_str()) && !other.starts_with(one.as_str()),
        _ => false,
    };
    prefixes
        .iter()
        .enumerate()
        .all(|(index, one)| prefixes[index + 1..].iter().all(|other| apart(one, other)))
}

/// Adds a letter to each name if the alphabetical order would generate a member before its dependencies.
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

/// Returns a number in letters: `a`, `b`; `aab` for 1 in three letters.
fn letters(mut index: usize, width: usize) -> String {
    let mut out = vec!['a'; width];
    for place in out.iter_mut().rev() {
        *place = char::from(b'a' + (index % 26) as u8);
        index /= 26;
    }
    out.into_iter().collect()
}
