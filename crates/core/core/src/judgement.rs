use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use crate::Violation;

/// The result of [`Contract::judge`](crate::Contract::judge).
///
/// ```
/// use formwork_core::{Context, Contract};
///
/// fn decoded<T: 'static>(contract: &Contract, value: &serde_json::Value) -> Result<Option<T>, String> {
///     let judgement = contract.judge(value, &Context::EMPTY);
///     match judgement.violations.first() {
///         None => Ok(judgement.into_decoded()),
///         Some(first) => Err(format!("{first}, and {} more", judgement.violations.len() - 1)),
///     }
/// }
/// ```
#[non_exhaustive]
pub struct Judgement {
    /// The violations that reject the value, in the order of the stages.
    pub violations: Vec<Violation>,
    /// The violations that soft checks found.
    pub warnings: Vec<Violation>,
    /// The number of violations beyond [`Report::CAP`](crate::Report::CAP).
    pub left_out: usize,
    pub(crate) decoded: Option<Box<dyn Any + Send>>,
}

/// A value of the contract's type that a judgement has decoded, for callers who need the answer as that type. Clones share it, and
/// the first to take it has it. It is not stored: a run that was stored decodes again.
#[derive(Clone, Default)]
pub(crate) struct Decoded(Option<Arc<Slot>>);

/// A value that can be taken once.
type Slot = Mutex<Option<Box<dyn Any + Send>>>;

impl Decoded {
    /// Takes the value, if it is a `T` and was not taken yet.
    pub(crate) fn take<T: 'static>(&self) -> Option<T> {
        let mut slot = self.0.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        match slot.take()?.downcast::<T>() {
            Ok(value) => Some(*value),
            Err(other) => {
                *slot = Some(other);
                None
            }
        }
    }
}

// Two runs are equal whether or not they have decoded the value.
crate::equal::always_equal!(Decoded);

crate::debug_fields!(Decoded {});

impl Judgement {
    /// The decoded value, if the contract has a type and the value is one.
    pub(crate) fn take_decoded(&mut self) -> Decoded {
        Decoded(self.decoded.take().map(|decoded| Arc::new(Mutex::new(Some(decoded)))))
    }

    /// Returns whether there are no violations.
    pub fn is_accepted(&self) -> bool {
        self.violations.is_empty()
    }

    /// Returns the decoded value, if the contract has the type `T` and the value is valid.
    pub fn into_decoded<T: 'static>(self) -> Option<T> {
        self.decoded?.downcast().ok().map(|decoded| *decoded)
    }
}

crate::debug_fields!(Judgement { violations, warnings });
