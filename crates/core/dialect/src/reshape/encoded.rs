//! Values that a dialect cannot express: as JSON in a string, or as lists of their leaves.

use std::cell::RefCell;

use foldhash::HashMap;
use formwork_core::{Lift, LossKind};

use super::{Reshaper, closed, required, texts};
use crate::form::{
    Alternative, ArrayForm, Form, FormId, Forms, Notes, NumberForm, Role, Shape, StringForm, Use,
};
use crate::outline::outline;
use crate::place::PlaceId;

/// The maximum number of characters of the outline of an encoded value in a description.
const MAX_OUTLINE: usize = 400;

/// The outlines of encoded values. A reshaper that starts again with more encoded values needs the same ones.
#[derive(Debug, Default)]
pub(super) struct Outlines(RefCell<HashMap<FormId, String>>);

impl Outlines {
    fn of(&self, source: &Forms, id: FormId) -> String {
        let mut known = self.0.borrow_mut();
        // No character has more than four bytes.
        known.entry(id).or_insert_with(|| outline(source, id, 4 * MAX_OUTLINE, false)).clone()
    }
}

/// The description of a leaf, for models.
const LEAF: &str = "(A leaf of a value. {\"path\": [\"a\", 0], \"value\": 5} and {\"path\": [\"a\", 1], \"value\": \"x\"} are the leaves of \
    {\"a\": [5, \"x\"]}, and {\"path\": [], \"value\": 5} alone is 5.)";

impl Reshaper<'_> {
    /// Returns JSON in a string, in place of a form.
    pub(super) fn json_text(&mut self, source: FormId) -> Alternative {
        let origin = self.lose_encoded(source);
        let holds = Some(self.texts.outlines.of(self.source, source));
        let string = StringForm { role: Role::Json, origin, holds, ..StringForm::default() };
        Alternative::of(Shape::String(string)).with_lifts(vec![Lift::ParseJson])
    }

    /// Returns a list of the leaves of a value, in place of a form.
    pub(super) fn leaves(&mut self, source: FormId) -> Alternative {
        let origin = self.lose_encoded(source);
        let leaf = Use::of(self.leaf());
        let list = ArrayForm { items: Some(leaf), min: 1, origin, ..ArrayForm::default() };
        let words = if texts::is_any(&self.source[source]) {
            "(Any value, as the list of its leaves.)".to_owned()
        } else {
            let outline: String =
                self.texts.outlines.of(self.source, source).chars().take(MAX_OUTLINE).collect();
            format!("(As the list of its leaves: {outline})")
        };
        let notes = Notes::described(&words);
        Alternative { notes, ..Alternative::of(Shape::Array(list)).with_lifts(vec![Lift::Leaves]) }
    }

    /// Returns the form of one leaf: a path of names and indexes, and a scalar or an object or array without contents.
    fn leaf(&mut self) -> FormId {
        if let Some(known) = self.leaf {
            return known;
        }
        let string = || Alternative::of(Shape::String(StringForm::default()));
        let index = NumberForm { integer: true, ..NumberForm::default() };
        let step = self.union(vec![string(), Alternative::of(Shape::Number(index))]);
        let path = ArrayForm { items: Some(Use::of(step)), ..ArrayForm::default() };
        let path = self.add(Alternative::of(Shape::Array(path)));
        let value = self.union(vec![
            string(),
            Alternative::of(Shape::Number(NumberForm::default())),
            Alternative::of(Shape::Boolean),
            Alternative::of(Shape::Null),
            Alternative::of(Shape::Object(closed(Vec::new(), PlaceId::default()))),
            Alternative::of(Shape::Array(ArrayForm::default())),
        ]);
        let members = vec![required("path", Use::of(path)), required("value", Use::of(value))];
        let object = Alternative::of(Shape::Object(closed(members, PlaceId::default())));
        let name = Some("leaf".to_owned());
        let notes = Notes::described(LEAF);
        let leaf = self.add_form(Form { alternatives: vec![object], notes, name });
        self.leaf = Some(leaf);
        leaf
    }

    fn union(&mut self, alternatives: Vec<Alternative>) -> FormId {
        self.add_form(Form { alternatives, ..Form::default() })
    }

    /// Records that the constraints of a form are lost, and returns the place of its schema.
    fn lose_encoded(&mut self, source: FormId) -> PlaceId {
        let origin = self.source.alternatives(source).find_map(|alternative| match &alternative.shape {
            Shape::Array(array) => Some(array.origin),
            Shape::Object(object) => Some(object.origin),
            _ => None,
        });
        let origin = origin.unwrap_or_default();
        // A form of any value has no constraints.
        if !texts::is_any(&self.source[source]) {
            self.lose(origin, "type", LossKind::Loosened);
        }
        origin
    }
}
