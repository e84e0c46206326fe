//! Tightening: the changes by which a schema excludes answers that the original allows. Each is a loss in the report.

mod caps;

use formwork_core::LossKind;

use crate::expand::Losses;
use crate::form::{Forms, Shape};

pub(crate) use caps::bound;

/// Closes the objects with `properties` that do not decide about additional ones.
pub(crate) fn close(forms: &mut Forms, losses: &mut Losses) {
    for id in forms.ids() {
        let mut alternatives = std::mem::take(&mut forms.get_mut(id).alternatives);
        for alternative in &mut alternatives {
            if let Shape::Object(object) = &mut alternative.shape
                && object.is_unsaid
            {
                object.is_unsaid = false;
                object.extras.clear();
                let pointer = forms.places.pointer(object.origin);
                losses.insert((pointer, "additionalProperties".to_owned(), LossKind::Tightened));
            }
        }
        forms.get_mut(id).alternatives = alternatives;
    }
}
