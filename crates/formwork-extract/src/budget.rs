use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use formwork_core::Cost;

/// Tokens and money that many runs share.
///
/// Before each call a run reserves its worst case; what the call really cost is settled after. So concurrent runs
/// together stay within the limit, as far as worst cases are estimated well. A run that gets no reservation ends with
/// [`ErrorKind::Budget`](formwork_core::ErrorKind). Clones are the same budget.
///
/// ```
/// use formwork_core::Cost;
/// use formwork_extract::Budget;
///
/// let budget = Budget::new(Cost { tokens: 10_000, micro_usd: None });
/// let reservation = budget.reserve(Cost { tokens: 8_000, micro_usd: Some(0) }).unwrap();
/// assert!(budget.reserve(Cost { tokens: 8_000, micro_usd: Some(0) }).is_none());
/// reservation.settle(Cost { tokens: 1_500, micro_usd: Some(0) });
/// assert_eq!((budget.spent().tokens, budget.remaining().tokens), (1_500, 8_500));
/// ```
#[derive(Clone)]
pub struct Budget(Arc<Shared>);

struct Shared {
    limit: Cost,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    spent: Cost,
    reserved: Cost,
}

impl Budget {
    /// A budget with this limit: `u64::MAX` tokens and `None` money do not limit.
    pub fn new(limit: Cost) -> Self {
        Self(Arc::new(Shared { limit, state: Mutex::default() }))
    }

    /// Sets so much aside, or gives `None` if that and all that is spent or set aside exceeds the limit. An unknown price
    /// exceeds every limit of money.
    pub fn reserve(&self, worst: Cost) -> Option<Reservation> {
        let mut state = self.state();
        // Without a limit of money nobody counts what is set aside of it.
        let set_aside = Cost { micro_usd: worst.micro_usd.or(Some(0)), ..worst };
        let reserved = state.reserved.plus(set_aside);
        let is_known = worst.micro_usd.is_some() || self.0.limit.micro_usd.is_none();
        if !is_known || !state.spent.plus(reserved).fits(self.0.limit) {
            return None;
        }
        state.reserved = reserved;
        Some(Reservation { budget: self.clone(), set_aside, actual: worst })
    }

    /// Counts something that was spent without a reservation.
    pub fn spend(&self, cost: Cost) {
        let mut state = self.state();
        state.spent = state.spent.plus(cost);
    }

    /// The limit.
    pub fn limit(&self) -> Cost {
        self.0.limit
    }

    /// Returns what was spent and is settled.
    pub fn spent(&self) -> Cost {
        self.state().spent
    }

    /// Returns what may still be reserved.
    pub fn remaining(&self) -> Cost {
        let State { spent, reserved } = *self.state();
        self.0.limit.minus(spent.plus(reserved))
    }

    /// Whether both are the same budget, not only two with one limit.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is a plain assignment: a panic elsewhere leaves the numbers right.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let State { spent, reserved } = *self.state();
        f.debug_struct("Budget")
            .field("limit", &self.0.limit)
            .field("spent", &spent)
            .field("reserved", &reserved)
            .finish()
    }
}

/// A part of a [`Budget`] that is set aside for one call.
///
/// Dropped without [`settle`](Self::settle) it counts as spent in full: what a call has cost that nobody waited for is
/// not known.
#[derive(Debug)]
#[must_use = "dropped at once, it counts as spent"]
pub struct Reservation {
    budget: Budget,
    set_aside: Cost,
    actual: Cost,
}

impl Reservation {
    /// Says what the call has really cost, and gives the rest back.
    pub fn settle(mut self, actual: Cost) {
        self.actual = actual;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut state = self.budget.state();
        state.reserved = minus(state.reserved, self.set_aside);
        state.spent = state.spent.plus(self.actual);
    }
}

fn minus(from: Cost, cost: Cost) -> Cost {
    Cost {
        tokens: from.tokens.saturating_sub(cost.tokens),
        micro_usd: from.micro_usd.zip(cost.micro_usd).map(|(from, cost)| from.saturating_sub(cost)),
    }
}
