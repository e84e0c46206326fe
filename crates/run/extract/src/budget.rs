use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use formwork_core::Cost;

/// A limit on tokens and money that several runs share.
///
/// Before each call, a run reserves the maximum cost of the call. Afterwards it settles the actual cost. Therefore concurrent runs
/// together stay within the limit, as far as the estimates hold. A run without a reservation ends with
/// [`ErrorKind::Budget`](formwork_core::ErrorKind). Clones share the same budget.
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
    /// Creates a budget with a limit. `u64::MAX` tokens mean no limit on tokens, and `None` money means no limit on money.
    pub fn new(limit: Cost) -> Self {
        Self(Arc::new(Shared { limit, state: Mutex::default() }))
    }

    /// Reserves the maximum cost of a call. Returns `None` if the sum of this cost, the spent and the reserved cost exceeds
    /// the limit. An unknown price exceeds every limit on money.
    pub fn reserve(&self, worst: Cost) -> Option<Reservation> {
        let mut state = self.state();
        // An unknown price counts as 0 here: it is rejected below if the budget limits money.
        let set_aside = Cost { micro_usd: worst.micro_usd.or(Some(0)), ..worst };
        let reserved = state.reserved.plus(set_aside);
        let is_known = worst.micro_usd.is_some() || self.0.limit.micro_usd.is_none();
        if !is_known || !state.spent.plus(reserved).fits(self.0.limit) {
            return None;
        }
        state.reserved = reserved;
        Some(Reservation { budget: self.clone(), set_aside, actual: worst })
    }

    /// Adds a cost that was not reserved.
    ///
    /// ```
    /// use formwork_core::Cost;
    /// use formwork_extract::Budget;
    ///
    /// let budget = Budget::new(Cost { tokens: 1_000, micro_usd: None });
    /// budget.spend(Cost { tokens: 300, micro_usd: Some(45) });
    /// assert_eq!(budget.remaining().tokens, 700);
    /// ```
    pub fn spend(&self, cost: Cost) {
        let mut state = self.state();
        state.spent = state.spent.plus(cost);
    }

    /// Returns the limit.
    pub fn limit(&self) -> Cost {
        self.0.limit
    }

    /// Returns the settled cost.
    pub fn spent(&self) -> Cost {
        self.state().spent
    }

    /// Returns the cost that can still be reserved.
    pub fn remaining(&self) -> Cost {
        let State { spent, reserved } = *self.state();
        self.0.limit.minus(spent.plus(reserved))
    }

    /// Returns whether both are clones of one budget.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is a plain assignment, so the numbers are correct even after a panic in another thread.
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

/// A part of a [`Budget`] that is reserved for one call.
///
/// A reservation that is dropped without [`settle`](Self::settle) counts as spent in full, because the actual cost of a dropped call
/// is unknown.
///
/// ```
/// use formwork_core::Cost;
/// use formwork_extract::Budget;
///
/// let budget = Budget::new(Cost { tokens: 1_000, micro_usd: None });
/// let worst = Cost { tokens: 400, micro_usd: None };
/// budget.reserve(worst).unwrap().settle(Cost { tokens: 100, micro_usd: None });
/// drop(budget.reserve(worst));
/// assert_eq!(budget.spent().tokens, 500);
/// ```
#[derive(Debug)]
#[must_use = "a reservation that is dropped counts as spent in full"]
pub struct Reservation {
    budget: Budget,
    set_aside: Cost,
    actual: Cost,
}

impl Reservation {
    /// Records the actual cost of the call, and releases the rest of the reservation.
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
