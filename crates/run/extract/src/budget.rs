use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use formwork_core::Cost;
use tokio::sync::Notify;

/// A limit on tokens and money that several runs share.
///
/// Before each call, a run reserves the maximum cost of the call. Afterwards it settles the actual cost. Therefore concurrent runs
/// together stay within the limit, as far as the estimates hold. A run without a reservation waits in order until open calls give
/// enough back. If the limit cannot allow its call any more, it ends with
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
    /// The callers that wait for a reservation, in order. Only the first is woken by a change.
    waiting: VecDeque<Arc<Notify>>,
}

impl State {
    fn wake_first(&self) {
        if let Some(first) = self.waiting.front() {
            first.notify_one();
        }
    }
}

impl Budget {
    /// Creates a budget with a limit. `u64::MAX` tokens mean no limit on tokens, and `None` money means no limit on money.
    pub fn new(limit: Cost) -> Self {
        Self(Arc::new(Shared { limit, state: Mutex::default() }))
    }

    /// Reserves the maximum cost of a call at once. Returns `None` if the sum of this cost, the spent and the reserved cost exceeds
    /// the limit, or other callers [wait](Budgets::reserve). An unknown price exceeds every limit on money.
    pub fn reserve(&self, worst: Cost) -> Option<Reservation> {
        Budgets::default().with(self.clone()).try_reserve(worst).ok()
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
        // The first caller may have to give up.
        state.wake_first();
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
        let state = self.state();
        self.0.limit.minus(state.spent.plus(state.reserved))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is a plain assignment, so the numbers are correct even after a panic in another thread.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Budget")
            .field("limit", &self.0.limit)
            .field("spent", &state.spent)
            .field("reserved", &state.reserved)
            .field("waiting", &state.waiting.len())
            .finish()
    }
}

/// Budgets from which a call reserves in one step: either all of them allow its cost, or nothing is reserved. Therefore two
/// callers cannot block each other by each holding what the other one waits for.
///
/// ```
/// use formwork_core::Cost;
/// use formwork_extract::{Budget, Budgets};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let limit = |tokens| Budget::new(Cost { tokens, micro_usd: None });
/// let (mine, ours) = (limit(1_000), limit(5_000));
/// let budgets = Budgets::default().with(mine.clone()).with(ours.clone());
/// let worst = Cost { tokens: 800, micro_usd: None };
/// let first = budgets.reserve(worst).await.unwrap();
/// // The second call would wait for the first one.
/// assert!(budgets.try_reserve(worst).is_err());
/// first.settle(Cost { tokens: 150, micro_usd: None });
/// budgets.reserve(worst).await.unwrap().settle(Cost { tokens: 250, micro_usd: None });
/// // 600 tokens are left of `mine`, so no waiting can help.
/// assert_eq!(budgets.reserve(worst).await.unwrap_err().tokens, 600);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Budgets(
    /// In the order of their addresses, in which they are locked, and without duplicates.
    Vec<Budget>,
);

/// The result of an attempt to reserve.
enum Attempt {
    /// The cost is reserved.
    Reserved,
    /// An open call may give enough back, or another caller is first.
    Wait,
    /// A budget has only this rest beside the open calls, and cannot allow the cost any more.
    Exceeded(Cost),
}

impl Budgets {
    /// Adds a budget, unless it is a clone of one of these.
    #[must_use]
    pub fn with(mut self, budget: Budget) -> Self {
        let place = self.0.binary_search_by_key(&Arc::as_ptr(&budget.0), |known| Arc::as_ptr(&known.0));
        if let Err(place) = place {
            self.0.insert(place, budget);
        }
        self
    }

    /// Returns the budgets.
    pub fn iter(&self) -> impl Iterator<Item = &Budget> {
        self.0.iter()
    }

    /// Reserves the maximum cost of a call in every budget at once, without overtaking callers that wait.
    ///
    /// # Errors
    /// The rest of the first budget that does not allow the cost now.
    pub fn try_reserve(&self, worst: Cost) -> Result<Reservation, Cost> {
        let attempt = self.attempt(&mut self.lock(), worst, None);
        match attempt {
            Attempt::Reserved => Ok(self.reservation(worst)),
            Attempt::Exceeded(left) => Err(left),
            Attempt::Wait => Err(self.remaining().unwrap_or_default()),
        }
    }

    /// Reserves the maximum cost of a call in every budget, and waits for this while open calls may give enough back. Callers are
    /// served in order. Dropping the future leaves the queue. The future works on every executor.
    ///
    /// A caller that holds a reservation must not wait for another one of the same budget.
    ///
    /// # Errors
    /// The rest of the first budget that cannot allow the cost any more, whatever open calls cost.
    pub async fn reserve(&self, worst: Cost) -> Result<Reservation, Cost> {
        let turn = Turn { budgets: self, woken: Arc::new(Notify::new()) };
        let mut attempt = {
            let mut states = self.lock();
            let attempt = self.attempt(&mut states, worst, None);
            if matches!(attempt, Attempt::Wait) {
                states.iter_mut().for_each(|state| state.waiting.push_back(Arc::clone(&turn.woken)));
            }
            attempt
        };
        loop {
            match attempt {
                Attempt::Reserved => return Ok(self.reservation(worst)),
                Attempt::Exceeded(left) => return Err(left),
                Attempt::Wait => turn.woken.notified().await,
            }
            attempt = self.attempt(&mut self.lock(), worst, Some(&turn.woken));
        }
    }

    /// Adds a cost that was not reserved to every budget.
    pub fn spend(&self, cost: Cost) {
        self.iter().for_each(|budget| budget.spend(cost));
    }

    /// Returns the cost that can still be reserved in every budget; `None` without a budget.
    pub fn remaining(&self) -> Option<Cost> {
        self.iter().map(Budget::remaining).reduce(tighter)
    }

    fn lock(&self) -> Vec<MutexGuard<'_, State>> {
        self.iter().map(Budget::state).collect()
    }

    /// Reserves the cost if every budget allows it and no other caller is before `own`.
    fn attempt(
        &self,
        states: &mut [MutexGuard<'_, State>],
        worst: Cost,
        own: Option<&Arc<Notify>>,
    ) -> Attempt {
        let is_known = worst.micro_usd.is_some();
        let mut must_wait = false;
        for (budget, state) in self.iter().zip(&*states) {
            let limit = budget.limit();
            let is_allowed = is_known || limit.micro_usd.is_none();
            if !is_allowed || !state.spent.plus(set_aside(worst)).fits(limit) {
                return Attempt::Exceeded(limit.minus(state.spent));
            }
            let is_first = match (state.waiting.front(), own) {
                (Some(first), Some(own)) => Arc::ptr_eq(first, own),
                (first, _) => first.is_none(),
            };
            must_wait |= !is_first || !state.spent.plus(state.reserved).plus(set_aside(worst)).fits(limit);
        }
        if must_wait {
            return Attempt::Wait;
        }
        for state in states {
            state.reserved = state.reserved.plus(set_aside(worst));
        }
        Attempt::Reserved
    }

    fn reservation(&self, worst: Cost) -> Reservation {
        Reservation { budgets: self.clone(), set_aside: set_aside(worst), actual: worst }
    }
}

impl FromIterator<Budget> for Budgets {
    fn from_iter<I: IntoIterator<Item = Budget>>(budgets: I) -> Self {
        budgets.into_iter().fold(Self::default(), Self::with)
    }
}

/// The place of a caller in the queues of all its budgets, which it leaves when it is served or gives up.
struct Turn<'b> {
    budgets: &'b Budgets,
    woken: Arc<Notify>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        for budget in self.budgets.iter() {
            let mut state = budget.state();
            state.waiting.retain(|other| !Arc::ptr_eq(other, &self.woken));
            state.wake_first();
        }
    }
}

/// A part of one or more [`Budget`]s that is reserved for one call.
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
    budgets: Budgets,
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
        for budget in self.budgets.iter() {
            let mut state = budget.state();
            state.reserved = minus(state.reserved, self.set_aside);
            state.spent = state.spent.plus(self.actual);
            state.wake_first();
        }
    }
}

/// Returns the reserved part of a budget. An unknown price counts as 0: only budgets without a limit on money allow it.
fn set_aside(worst: Cost) -> Cost {
    Cost { micro_usd: worst.micro_usd.or(Some(0)), ..worst }
}

fn minus(from: Cost, cost: Cost) -> Cost {
    Cost {
        tokens: from.tokens.saturating_sub(cost.tokens),
        micro_usd: from.micro_usd.zip(cost.micro_usd).map(|(from, cost)| from.saturating_sub(cost)),
    }
}

/// Returns the minimum of two limits.
pub(crate) fn tighter(one: Cost, other: Cost) -> Cost {
    let micro_usd = [one.micro_usd, other.micro_usd].into_iter().flatten().min();
    Cost { tokens: one.tokens.min(other.tokens), micro_usd }
}
