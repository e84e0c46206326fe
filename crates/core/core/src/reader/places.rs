//! The places of the contract's values in an answer.

use formwork_json::{JsonPath, Segment};

use crate::{Lift, LiftOp, Lowered};

/// The places of the contract's values in an answer.
#[derive(Debug)]
pub(crate) enum Places {
    Same,
    /// The contract's document is the member of this name.
    Below(String),
    /// Lifting moves values.
    Moved,
}

impl Places {
    pub(crate) fn of(lowered: &Lowered) -> Self {
        let mut places = Self::Same;
        for LiftOp { at, lift } in &lowered.lift {
            places = match (lift, places) {
                (Lift::Reorder(_) | Lift::DropNull(_) | Lift::DropAbsent { .. }, places) => places,
                (Lift::Unwrap(name), Self::Same) if at.is_empty() => Self::Below(name.clone()),
                _ => return Self::Moved,
            };
        }
        places
    }

    /// Returns the path in the contract's document of a path in the answer.
    pub(crate) fn lifted(&self, path: JsonPath) -> JsonPath {
        match (self, path.segments()) {
            (Self::Below(name), [Segment::Key(first), rest @ ..]) if first == name => {
                rest.iter().cloned().collect()
            }
            (Self::Moved, _) => JsonPath::root(),
            _ => path,
        }
    }
}
