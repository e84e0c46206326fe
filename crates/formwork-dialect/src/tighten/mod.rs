//! Tightening: the acts that make a schema exclude answers which the original allows. Each is listed in the losses.

mod caps;

use formwork_core::LossKind;

use crate::expand::Losses;
use crate::form::{Forms, Shape};

pub use caps::TokenBudget;
pub(crate) use caps::bound;

/// Closes the objects that name their members and leave open whether there are others.
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
