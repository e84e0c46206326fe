//! Arrays, and arrays whose items have schemas by position.

use formwork_core::{Lift, LossKind, Segment};
use serde_json::Value;

use super::{Reshaper, closed};
use crate::form::{Alternative, ArrayForm, Form, Notes, ObjectForm, Property, Shape, Use};
use crate::order::Order;
use crate::profile::{Optional, Tuples};

/// The maximum length of a tuple whose items keep their positions; a longer one becomes a list.
const MAX_TUPLE: usize = 64;

/// The maximum number of lengths of an array that are written as one tuple each.
const MAX_LENGTHS: u64 = 4;

impl Reshaper<'_> {
    pub(super) fn array(&mut self, array: &ArrayForm, order: &Order, out: &mut Vec<Alternative>) {
        let prefix = array.prefix.iter().enumerate();
        let prefix =
            prefix.map(|(index, item)| self.value(item, &order.below(&Segment::Index(index)))).collect();
        // Dependencies never name an item of a list.
        let items = array.items.as_ref().map(|items| self.value(items, &Order::default()));
        let markers =
            array.prefix.iter().map(|item| self.marker(item.form, self.source.allows_null(item.form)));
        let markers: Vec<_> = markers.collect();
        self.tuple(ArrayForm { prefix, items, ..array.clone() }, &markers, out);
    }

    /// Writes an array of reshaped items in the dialect's notation of tuples. `markers` are the values of absent items
    /// of the prefix.
    pub(super) fn tuple(&mut self, array: ArrayForm, markers: &[Option<Value>], out: &mut Vec<Alternative>) {
        let length = array.prefix.len() as u64;
        if array.prefix.is_empty() || self.profile.tuples == Tuples::Native {
            out.push(Alternative::of(Shape::Array(array)));
        } else if array.prefix.len() > MAX_TUPLE {
            out.push(self.list(array));
        } else if self.profile.tuples == Tuples::Whole
            && array.items.is_none()
            && length - array.min.min(length) < MAX_LENGTHS
        {
            for length in (array.min.min(length)..=length).rev() {
                let prefix = array.prefix.iter().take(length as usize).cloned().collect();
                let array = ArrayForm { prefix, min: length, max: Some(length), ..array.clone() };
                out.push(Alternative::of(Shape::Array(array)));
            }
        } else {
            out.push(self.tuple_object(array, markers));
        }
    }

    /// Returns a tuple as an object `{"_0", "_1"}`, with a member for the items after its prefix.
    fn tuple_object(&mut self, array: ArrayForm, markers: &[Option<Value>]) -> Alternative {
        let ArrayForm { prefix, items, min, max, origin, .. } = array;
        let length = prefix.len() as u64;
        let mut lifts = Vec::new();
        let mut properties = Vec::with_capacity(prefix.len() + 1);
        for (index, mut value) in prefix.into_iter().enumerate() {
            let name = format!("_{index}");
            let mut required = (index as u64) < min;
            if !required && self.profile.optional == Optional::Nullable {
                let marker = markers.get(index).cloned().unwrap_or_default();
                let optional = super::Optional { form: value.form, notes: Notes::NONE, marker };
                value.form = self.optional(&name, optional, &mut lifts);
                required = true;
            }
            properties.push(Property { name, value, required });
        }
        let names = properties.iter().map(|property| property.name.clone()).collect();
        let rest = items.map(|items| {
            let max = max.map(|max| max.saturating_sub(length));
            let rest = ArrayForm {
                items: Some(items),
                min: min.saturating_sub(length),
                max,
                origin,
                ..ArrayForm::default()
            };
            let value = Use::of(self.add(Alternative::of(Shape::Array(rest))));
            let name = self.names.rest.clone();
            let required = min > length || self.profile.optional == Optional::Nullable;
            properties.push(Property { name: name.clone(), value, required });
            name
        });
        lifts.push(Lift::Tuple { items: names, rest });
        Alternative::of(Shape::Object(ObjectForm { ..closed(properties, origin) })).with_lifts(lifts)
    }

    /// Returns a long tuple as a list with the union of its items.
    fn list(&mut self, array: ArrayForm) -> Alternative {
        self.lose(array.origin, "prefixItems", LossKind::Loosened);
        let mut forms: Vec<_> = array.prefix.iter().chain(&array.items).map(|item| item.form).collect();
        forms.sort();
        forms.dedup();
        let alternatives = forms.into_iter().map(|form| Alternative::of(Shape::Same(form))).collect();
        let items = Use::of(self.add_form(Form { alternatives, ..Form::default() }));
        Alternative::of(Shape::Array(ArrayForm { prefix: Vec::new(), items: Some(items), ..array }))
    }
}
