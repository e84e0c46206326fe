//! Budgets: the maximum cost of a call is reserved before it, and its actual cost is settled after it.
//!
//! Both are on the disk when the call returns (`synchronous=FULL`); all reservations and settlements that wait at the same time share one
//! commit. What is reserved counts as spent until it is settled. So a process that dies, and a disk that is full, leave an upper
//! bound: a budget is never exceeded by more than what calls cost beyond their reservations, which is the caller's estimate.
//!
//! While the file cannot be written, reservations and settlements are kept in memory (at most 16,384) and written once it can. Other
//! processes do not see them, and they are lost if the process ends before. Without room, or if nothing is known of the key, a reservation is
//! an error.

use formwork_core::Time;
use rusqlite::{Connection, OptionalExtension as _, params};
use tokio::sync::oneshot;

use crate::insert::{self, number};
use crate::queue::Task;
use crate::settle::settle;
use crate::task::{Committed, Job, block_on};
use crate::usd::{self, MAX_AMOUNT};
use crate::{Error, KeyId, Ledger, Period, RecordId};

/// The reason why an amount could not be reserved. The call must not be made.
///
/// ```
/// use formwork_core::Time;
/// use formwork_ledger::{Ledger, NewKey, ReserveError, Settings};
///
/// let ledger = Ledger::in_memory(Settings::default())?;
/// let now = Time(1_795_000_000_000);
/// let (key, _) = ledger.add_key(NewKey { budget: Some(1_000), ..NewKey::new("alice") }, now)?;
/// let refused = ledger.reserve_blocking(key.id, 1_001, None, now).unwrap_err();
/// let ReserveError::Exceeded(exceeded) = refused else { panic!("{refused}") };
/// assert_eq!((exceeded.budget, exceeded.amount), (1_000, 1_001));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReserveError {
    /// The budget does not allow it.
    #[error(transparent)]
    Exceeded(#[from] BudgetExceeded),
    /// The key was removed, revoked, or has expired.
    #[error("the API key may not be used any more")]
    KeyEnded,
    /// The reservation cannot be written, and the spending of the key is not known.
    #[error(transparent)]
    Ledger(#[from] Error),
}

/// The error of a reservation that exceeds the budget. Amounts are in millionths of a US dollar.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the budget of the API key `{name}` does not allow another call: of {} US dollars {} are spent and {} reserved, and \
     the call may cost {}",
    usd::format(*.budget), usd::format(*.spent), usd::format(*.held), usd::format(*.amount)
)]
pub struct BudgetExceeded {
    /// The name of the key.
    pub name: String,
    /// The budget of the key, in millionths of a US dollar.
    pub budget: u64,
    /// The amount that was spent, since the beginning of the period if the key has one, in millionths of a US dollar.
    pub spent: u64,
    /// The amount that is reserved for other calls, in millionths of a US dollar.
    pub held: u64,
    /// The amount of the refused reservation, in millionths of a US dollar.
    pub amount: u64,
}

/// An amount that is reserved for one call.
///
/// [`Hold::settle`] replaces it by the actual cost of the call. A dropped hold is settled at its full amount, because the actual cost
/// is unknown. If the process dies, the amount stays reserved and counts as spent. While the file cannot be written, reservations are kept
/// in memory, and their settlements are written once it can; if the process dies before, they are lost.
///
/// ```
/// use formwork_core::Time;
/// use formwork_ledger::{Ledger, NewKey, Settings};
///
/// let ledger = Ledger::in_memory(Settings::default())?;
/// let now = Time(1_795_000_000_000);
/// let (key, _) = ledger.add_key(NewKey::new("alice"), now)?;
/// let hold = ledger.reserve_blocking(key.id, 20_000, None, now)?; // 2 cents
/// assert_eq!(hold.amount(), 20_000);
/// hold.settle_blocking(1_234)?;
/// assert_eq!(ledger.key("alice")?.spent, 1_234);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "a hold that is dropped is spent"]
pub struct Hold {
    ledger: Ledger,
    key: KeyId,
    place: Place,
    amount: u64,
    is_settled: bool,
}

/// The place of a reservation.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// The number of its row in the file.
    File(i64),
    /// The memory, because the file could not be written.
    Memory { run: Option<RecordId>, at: Time },
}

/// Spending.
impl Ledger {
    /// Returns whether the next reservation of a known key can be counted: in the file, or in memory while the file cannot be written.
    /// Only a memory that is full, with 16,384 reservations and charges, refuses it.
    ///
    /// ```
    /// # let ledger = formwork_ledger::Ledger::in_memory(formwork_ledger::Settings::default())?;
    /// assert!(ledger.counts_spending());
    /// # Ok::<(), formwork_ledger::Error>(())
    /// ```
    pub fn counts_spending(&self) -> bool {
        !self.core().memory.is_full()
    }

    /// Reserves the maximum cost of a call, in millionths of a US dollar, and waits until the reservation is durable. Keys without a
    /// budget are not limited, but their spending is counted. The future can be awaited in any runtime; if it is dropped
    /// before its end, the amount is given back.
    ///
    /// # Errors
    /// [`ReserveError`]: the call must not be made.
    pub async fn reserve(
        &self,
        key: KeyId,
        amount: u64,
        run: Option<RecordId>,
        now: Time,
    ) -> Result<Hold, ReserveError> {
        if amount > MAX_AMOUNT {
            let most = usd::format(MAX_AMOUNT);
            return Err(
                Error::Invalid(format!("at most {most} US dollars can be reserved for one call")).into()
            );
        }
        let hold = |place| Hold { ledger: self.clone(), key, place, amount, is_settled: false };
        let in_memory = Place::Memory { run, at: now };
        if let Some(error) = self.core().failure() {
            return self.reserve_in_memory(key, amount, now, error).map(|()| hold(in_memory));
        }
        let process = self.core().process().map(str::to_owned);
        let reserve = move |connection: &Connection| reserve(connection, key, amount, (run, process), now);
        let core = self.weak();
        let unclaimed = move |reserved: Result<i64, ReserveError>| -> Result<_, ReserveError> {
            let place = Place::File(reserved?);
            let (reserved, actual, is_in_memory, done) = (amount, 0, false, None);
            let returned = Settlement { key, place, reserved, actual, is_in_memory, core, done };
            Ok(Unclaimed { place, returned: Some(returned) })
        };
        match self.submit_then(reserve, unclaimed).await {
            Ok(reserved) => Ok(hold(reserved?.claim())),
            Err(error @ Error::Storage { .. }) => {
                self.reserve_in_memory(key, amount, now, error).map(|()| hold(in_memory))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Reserves an amount in memory, by what is known of the key.
    fn reserve_in_memory(&self, id: KeyId, amount: u64, now: Time, error: Error) -> Result<(), ReserveError> {
        let Some(key) = self.known_key(id) else { return Err(error.into()) };
        if key.revoked.is_some() || key.expires.is_some_and(|expires| expires <= now) {
            return Err(ReserveError::KeyEnded);
        }
        match self.core().memory.reserve(&key, amount, now, error)? {
            None => Ok(()),
            Some(pending) => Err(ReserveError::Exceeded(BudgetExceeded {
                budget: key.budget.unwrap_or_default(),
                spent: key.spent_in_period(now),
                held: pending,
                name: key.name,
                amount,
            })),
        }
    }

    /// The same as [`Ledger::reserve`] for callers without a runtime: blocks the thread.
    ///
    /// # Errors
    /// [`ReserveError`]: the call must not be made.
    pub fn reserve_blocking(
        &self,
        key: KeyId,
        amount: u64,
        run: Option<RecordId>,
        now: Time,
    ) -> Result<Hold, ReserveError> {
        block_on(self.reserve(key, amount, run, now))
    }
}

fn reserve(
    connection: &Connection,
    KeyId(key): KeyId,
    amount: u64,
    (run, process): (Option<RecordId>, Option<String>),
    now: Time,
) -> rusqlite::Result<Result<i64, ReserveError>> {
    let (reserved, at) = (number(amount), number(now.0));
    let [day, week, month] =
        [Period::Day, Period::Week, Period::Month].map(|period| number(period.start(now).0));
    connection
        .prepare_cached(
            "UPDATE key SET spent_before = spent, period_start = iif(period = 'day', ?2, iif(period = 'week', ?3, ?4))
             WHERE id = ?1 AND period IS NOT NULL AND period_start < iif(period = 'day', ?2, iif(period = 'week', ?3, ?4))",
        )?
        .execute(params![key, day, week, month])?;
    let held = connection
        .prepare_cached(
            "UPDATE key SET held = held + ?2 WHERE id = ?1 AND revoked IS NULL AND (expires IS NULL OR expires > ?3)
             AND (budget IS NULL OR budget - (spent - spent_before) - held >= ?2)",
        )?
        .execute(params![key, reserved, at])?;
    if held > 0 {
        connection
            .prepare_cached(
                "INSERT INTO spending (key, run, reserved, reserved_at, process) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![key, run.map(|run| run.0), reserved, at, process])?;
        return Ok(Ok(connection.last_insert_rowid()));
    }
    let sql = "SELECT name, budget, spent - spent_before, held FROM key
        WHERE id = ?1 AND revoked IS NULL AND (expires IS NULL OR expires > ?2)";
    let exceeded = connection.prepare_cached(sql)?.query_row(params![key, at], |row| {
        let amount_of = |column| insert::amount(row, column).map(Option::unwrap_or_default);
        Ok(BudgetExceeded {
            name: row.get(0)?,
            budget: amount_of(1)?,
            spent: amount_of(2)?,
            held: amount_of(3)?,
            amount,
        })
    });
    Ok(Err(exceeded.optional()?.map_or(ReserveError::KeyEnded, ReserveError::Exceeded)))
}

impl Hold {
    /// Returns the amount, in millionths of a US dollar.
    pub const fn amount(&self) -> u64 {
        self.amount
    }

    /// Replaces the reservation by the actual cost of the call, in millionths of a US dollar, and waits until that is on the
    /// disk. It may be more than was reserved; 0 gives everything back. Once it was polled, dropping the future does not
    /// take the settlement back.
    ///
    /// # Errors
    /// [`Error::Storage`] if it cannot be written: the amount stays reserved, and the settlement is tried again
    /// together with the next writes, as long as the process lives.
    pub async fn settle(mut self, actual: u64) -> Result<(), Error> {
        self.submit(actual).await
    }

    /// Settles like [`Hold::settle`], but blocks the thread, for callers without an async runtime.
    ///
    /// # Errors
    /// The errors of [`Hold::settle`].
    pub fn settle_blocking(mut self, actual: u64) -> Result<(), Error> {
        self.submit(actual).wait()
    }

    fn submit(&mut self, actual: u64) -> Committed<()> {
        self.is_settled = true;
        let (done, end) = oneshot::channel();
        let (core, actual) = (self.ledger.weak(), actual.min(MAX_AMOUNT));
        let mut done = Some(done);
        let Self { key, place, amount, .. } = *self;
        let is_in_memory = matches!(place, Place::Memory { .. });
        if is_in_memory {
            self.ledger.core().memory.settle(key, amount, actual);
            // The caller does not wait for a file that may stay as it is for long.
            done.take().map(|done| done.send(Ok(())));
        }
        let reserved = if is_in_memory { 0 } else { amount };
        let settlement = Settlement { key, place, reserved, actual, is_in_memory, core, done };
        self.ledger.core().memory.settling(actual);
        self.ledger.submit_job(Box::new(settlement));
        Committed::new(end)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if !self.is_settled {
            // `drop` cannot wait for the commit.
            drop(self.submit(self.amount));
        }
    }
}

/// A reservation in the file. It is given back unless its caller, who may have stopped waiting, claims it.
struct Unclaimed {
    place: Place,
    returned: Option<Settlement>,
}

impl Unclaimed {
    fn claim(mut self) -> Place {
        self.returned = None;
        self.place
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if let Some(settlement) = self.returned.take()
            && let Some(core) = settlement.core.upgrade()
        {
            // A closed ledger leaves the upper bound.
            core.memory.settling(settlement.actual);
            let _ = core.queue.push_task(Task::Write(Box::new(settlement)));
        }
    }
}

/// A settlement that is kept until it is written.
struct Settlement {
    key: KeyId,
    place: Place,
    /// The amount that is reserved in the file.
    reserved: u64,
    /// Whether the memory has the cost.
    is_in_memory: bool,
    actual: u64,
    core: std::sync::Weak<crate::core::Core>,
    done: Option<oneshot::Sender<Result<(), Error>>>,
}

impl Job for Settlement {
    fn run(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let id = match self.place {
            Place::File(id) => id,
            Place::Memory { run, at } => {
                let KeyId(key) = self.key;
                let (run, actual) = (run.map(|run| run.0), number(self.actual));
                connection
                    .prepare_cached(
                        "INSERT INTO spending (key, run, reserved, actual, reserved_at) VALUES (?1, ?2, ?3, ?3, ?4)",
                    )?
                    .execute(params![key, run, actual, number(at.0)])?;
                connection
                    .prepare_cached("UPDATE key SET spent = spent + ?2 WHERE id = ?1")?
                    .execute(params![key, actual])?;
                return Ok(());
            }
        };
        settle(connection, id, self.actual)
    }

    fn report(mut self: Box<Self>, committed: Result<(), Error>) {
        if let Some(done) = self.done.take() {
            let _ = done.send(committed.clone());
        }
        let core = self.core.upgrade();
        match (&committed, &core) {
            (Ok(()), Some(core)) => {
                core.memory.settled(self.actual);
                if self.is_in_memory {
                    core.memory.written(self.key, self.reserved, self.actual);
                }
            }
            (Err(Error::Storage { .. }), Some(core)) if !self.is_in_memory => {
                core.memory.ended(self.key, self.reserved, self.actual);
                self.is_in_memory = true;
            }
            _ => {}
        }
        // A closed ledger does not try again: the amount stays reserved.
        if let (Err(Error::Storage { .. }), Some(core)) = (committed, core) {
            core.push_unsettled(self);
        }
    }
}
