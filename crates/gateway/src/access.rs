//! Keys: who asks, for which models, how often and for how much.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::http::HeaderMap;
use formwork_core::Time;
use formwork_ledger::{Error, Hold, Key, KeyId, KeyRole, Ledger, RecordId, ReserveError};
use formwork_serve::{Seat, Seats, Turn, presented_key};
use tokio::sync::Notify;

use crate::names::Names;
use crate::problem::{Kind, Problem};

/// Checks keys, their budgets and their request rates.
#[derive(Debug)]
pub(crate) struct Access {
    ledger: Option<Ledger>,
    /// The earliest time of the next request of each key, and of the next token.
    rates: Mutex<HashMap<KeyId, Rates>>,
    /// The open requests of each key that has a limit.
    open: Seats<KeyId>,
    /// Tells waiting reservations that another one was settled.
    settled: Notify,
    /// Held by each record until it is written and its reservation is settled.
    settling: Arc<()>,
}

/// The times from which a key may make its next request, and use its next token.
#[derive(Debug, Clone, Copy)]
struct Rates {
    requests: Instant,
    tokens: Instant,
}

/// The time in which a key may use all that its rates allow.
const MINUTE: Duration = Duration::from_secs(60);

/// The client that makes a request; without a key where the service has none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Client(pub(crate) Option<Arc<Key>>);

impl Client {
    pub(crate) fn id(&self) -> Option<KeyId> {
        self.0.as_ref().map(|key| key.id)
    }

    pub(crate) fn name(&self) -> &str {
        self.0.as_ref().map_or("", |key| key.name.as_str())
    }

    /// Returns whether it may read the data of others.
    pub(crate) fn is_admin(&self) -> bool {
        self.0.as_ref().is_none_or(|key| key.role == KeyRole::Admin)
    }

    /// Returns whether the client may ask for this name: its key has it, or each target that the name means.
    pub(crate) fn may_use(&self, names: &Names, name: &str) -> bool {
        let Some(key) = &self.0 else { return true };
        let plain = names.plain(name);
        key.allows(name)
            || key.allows(plain)
            || names.meant(plain).is_some_and(|mut targets| targets.all(|target| key.allows(target)))
    }

    /// Checks that the client may ask for this model: each name of a list.
    ///
    /// # Errors
    /// [`Kind::Forbidden`].
    pub(crate) fn may_ask(&self, names: &Names, model: &str) -> Result<(), Problem> {
        let Some(key) = &self.0 else { return Ok(()) };
        match model.split(',').map(str::trim).find(|name| !self.may_use(names, name)) {
            None => Ok(()),
            Some(name) => {
                let name: String = name.chars().take(100).collect();
                let models = key.models.join(", ");
                let message =
                    format!("the API key `{}` may not ask for `{name}`; it may ask for: {models}", key.name);
                Err(Problem { param: Some("model".to_owned()), ..Problem::new(Kind::Forbidden, message) })
            }
        }
    }
}

impl Access {
    pub(crate) fn new(ledger: Option<Ledger>) -> Self {
        Self {
            ledger,
            rates: Mutex::default(),
            open: Seats::default(),
            settled: Notify::new(),
            settling: Arc::default(),
        }
    }

    pub(crate) const fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_ref()
    }

    /// Returns the client of a request: its key is in `Authorization: Bearer` or `x-api-key`.
    ///
    /// # Errors
    /// [`Kind::Unauthorized`] where there are keys and none of them is presented.
    pub(crate) fn client(&self, headers: &HeaderMap) -> Result<Client, Problem> {
        let Some(ledger) = &self.ledger else { return Ok(Client::default()) };
        let now = now();
        if !ledger.has_keys(now).map_err(|error| unread(&error))? {
            return Ok(Client::default());
        }
        let presented = presented_key(headers).ok_or_else(|| {
            Problem::new(Kind::Unauthorized, "send an API key as `Authorization: Bearer …` or as `x-api-key`")
        })?;
        match ledger.find_key(presented, now) {
            Ok(key) => Ok(Client(Some(Arc::new(key)))),
            Err(formwork_ledger::KeyError::Ledger(error)) => Err(unread(&error)),
            Err(error) => Err(Problem::new(Kind::Unauthorized, error.to_string())),
        }
    }

    /// Counts a request of a client. The request is open until its seat is dropped.
    ///
    /// # Errors
    /// [`Kind::RateLimited`] with the time until the next request may be made.
    pub(crate) fn count(&self, client: &Client) -> Result<Option<Seat<KeyId>>, Problem> {
        let Some(key) = &client.0 else { return Ok(None) };
        let refused = |what: String, retry_after| {
            let message = format!("the API key `{}` may {what}", key.name);
            Err(Problem { retry_after, ..Problem::new(Kind::RateLimited, message) })
        };
        if key.rpm.is_some() || key.tpm.is_some() {
            let now = Instant::now();
            let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
            let rates = rates.entry(key.id).or_insert(Rates { requests: now, tokens: now });
            if let Some(tpm) = key.tpm {
                // The tokens of a request are known at its end, so the last one may go beyond the limit; later ones wait for it.
                let ahead = rates.tokens.saturating_duration_since(now);
                if ahead >= MINUTE {
                    let what = format!("use {tpm} tokens a minute");
                    return refused(what, Some((ahead - MINUTE).max(Duration::from_secs(1))));
                }
            }
            if let Some(rpm) = key.rpm {
                // The generic cell rate algorithm: one minute of requests may come at once, and each share restores one.
                let share = MINUTE / rpm.max(1);
                let next = rates.requests.max(now);
                let ahead = next.saturating_duration_since(now);
                if ahead + share > MINUTE {
                    let retry_after = (ahead + share).saturating_sub(MINUTE);
                    return refused(format!("make {rpm} requests a minute"), Some(retry_after));
                }
                rates.requests = next + share;
            }
        }
        let Some(max) = key.max_open else { return Ok(None) };
        match self.open.take(key.id, max as usize) {
            None => refused(format!("have {max} requests open at once"), None),
            seat => Ok(seat),
        }
    }

    /// Counts the tokens that a request of a key has used.
    pub(crate) fn used(&self, key: &Key, tokens: u64) {
        let Some(tpm) = key.tpm else { return };
        let took = MINUTE.mul_f64(tokens as f64 / f64::from(tpm.max(1)));
        let now = Instant::now();
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        let rates = rates.entry(key.id).or_insert(Rates { requests: now, tokens: now });
        // A year is more than any limit needs, and no overflow.
        rates.tokens = rates.tokens.max(now) + took.min(MINUTE * 525_600);
    }

    /// Returns a guard of a record: the service does not end before it is dropped.
    pub(crate) fn settling(&self) -> Arc<()> {
        Arc::clone(&self.settling)
    }

    /// Waits until all records are written and their reservations settled, for `within` at most.
    pub(crate) async fn all_settled(&self, within: Duration) {
        let until = Instant::now() + within;
        while Arc::strong_count(&self.settling) > 1 && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Tells waiting reservations that another one was settled.
    pub(crate) fn settled(&self) {
        self.settled.notify_waiters();
    }

    /// Reserves up to `most` for a request, at least `least`, both in millionths of a US dollar; `None` if costs are not counted. While
    /// the reservations of open requests are all that is in the way, it ends the turn and waits for them, for `wait` at most.
    ///
    /// # Errors
    /// [`Kind::OutOfBudget`], [`Kind::Invalid`] for more than any request may reserve, [`Kind::RateLimited`] if open requests still reserve
    /// too much, [`Kind::Unauthorized`] for a key that ended meanwhile, [`Kind::Busy`] if it cannot be written, and the spending of the key
    /// is not known.
    pub(crate) async fn reserve(
        &self,
        client: &Client,
        (least, most): (u64, u64),
        run: Option<RecordId>,
        (turn, wait): (&Turn, Duration),
    ) -> Result<Option<Hold>, Problem> {
        /// The time between two attempts, because requests of other processes end without a notice.
        const STEP: Duration = Duration::from_millis(100);

        let (Some(ledger), Some(key)) = (&self.ledger, client.id()) else { return Ok(None) };
        let until = tokio::time::Instant::now() + wait;
        let mut amount = most.max(least);
        loop {
            // Created before the attempt, so that no settlement after it is missed.
            let settled = self.settled.notified();
            let error = match ledger.reserve(key, amount, run, now()).await {
                Ok(hold) => return Ok(Some(hold)),
                Err(ReserveError::Exceeded(exceeded)) => exceeded,
                Err(error @ ReserveError::KeyEnded) => {
                    return Err(Problem::new(Kind::Unauthorized, error.to_string()));
                }
                Err(ReserveError::Ledger(error @ Error::Invalid(_))) => {
                    return Err(Problem::invalid(
                        "max_tokens",
                        format!("{error}: set a lower limit of tokens"),
                    ));
                }
                Err(error) => return Err(unknown(&error)),
            };
            let possible = error.budget.saturating_sub(error.spent);
            if least > possible {
                let message = format!("{error}: set a lower limit of tokens, or use a key with more budget");
                return Err(Problem::new(Kind::OutOfBudget, message));
            }
            let is_late = tokio::time::Instant::now() >= until;
            match possible.saturating_sub(error.held) {
                free if free >= least && !is_late => amount = free.min(most).max(least),
                _ if is_late => return Err(Problem::new(Kind::RateLimited, error.to_string())),
                _ => {
                    turn.end();
                    _ = tokio::time::timeout_at(until.min(tokio::time::Instant::now() + STEP), settled).await
                }
            }
        }
    }
}

/// The message for clients about [`Error::Replaced`], whose own message has a path, which is no business of theirs.
pub(crate) const REPLACED: &str = "the file of the ledger was deleted or replaced: start the service again";

/// Returns the problem of a ledger that cannot be used, where neither the key nor its spending is known from before.
fn unknown(error: &impl std::fmt::Display) -> Problem {
    Problem::new(Kind::Busy, format!("the API key cannot be checked now: {error}"))
}

/// Returns the problem of a ledger whose keys cannot be read.
pub(crate) fn unread(error: &Error) -> Problem {
    match error {
        Error::Replaced { .. } => unknown(&REPLACED),
        error => unknown(error),
    }
}

/// Returns the present time.
pub(crate) fn now() -> Time {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(passed.as_millis()).unwrap_or(u64::MAX))
}

/// Returns bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
