use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use formwork_core::{Error, Outcome, Time};
use formwork_extract::{Observer, RunId};
use serde_json::Value;

use crate::{KeyId, Ledger, RunRecord};

/// Records every run of an extractor that it observes.
///
/// ```no_run
/// use formwork_ledger::{Ledger, Recorder, Settings};
///
/// let ledger = Ledger::open("ledger.db", Settings::default())?;
/// let recorder = Recorder::new(ledger, "invoices").with_contract(Some("invoice".to_owned()), None);
/// // extractor.with_observer(recorder)
/// # let _ = recorder;
/// # Ok::<(), formwork_ledger::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Recorder {
    ledger: Ledger,
    source: String,
    contract: Option<String>,
    digest: Option<String>,
    key: Option<KeyId>,
    user: Option<String>,
    tags: Vec<String>,
    request: Option<String>,
    models: HashMap<String, String>,
}

impl Recorder {
    /// Returns an observer that records runs as coming from `source`: a command or an endpoint.
    pub fn new(ledger: Ledger, source: impl Into<String>) -> Self {
        Self {
            ledger,
            source: source.into(),
            contract: None,
            digest: None,
            key: None,
            user: None,
            tags: Vec::new(),
            request: None,
            models: HashMap::new(),
        }
    }

    /// Sets the name and the digest of the contract (default: neither).
    #[must_use]
    pub fn with_contract(mut self, name: Option<String>, digest: Option<String>) -> Self {
        (self.contract, self.digest) = (name, digest);
        self
    }

    /// Sets the key (default: none).
    #[must_use]
    pub const fn with_key(mut self, key: Option<KeyId>) -> Self {
        self.key = key;
        self
    }

    /// Sets user and tags (default: none).
    #[must_use]
    pub fn with_labels(mut self, user: Option<String>, tags: Vec<String>) -> Self {
        (self.user, self.tags) = (user, tags);
        self
    }

    /// Sets the request's text (default: none).
    #[must_use]
    pub fn with_request(mut self, request: Option<String>) -> Self {
        self.request = request;
        self
    }

    /// Adds the model behind a target (default: the target's name stands for it).
    #[must_use]
    pub fn with_model(mut self, target: impl Into<String>, model: impl Into<String>) -> Self {
        self.models.insert(target.into(), model.into());
        self
    }
}

impl Observer for Recorder {
    fn done(&self, _: RunId, result: &Result<Outcome<Value>, Error>) {
        let ended = now();
        let attempts = match result {
            Ok(outcome) => &outcome.attempts[..],
            Err(error) => error.attempts(),
        };
        let started = attempts.first().map_or(ended, |first| first.started);
        let run = RunRecord::new(self.source.clone(), started)
            .of(result, ended)
            .with_models(|target| self.models.get(target).cloned())
            .with_contract(self.contract.clone(), self.digest.clone())
            .with_key(self.key)
            .with_labels(self.user.clone(), self.tags.clone())
            .with_request(self.request.clone());
        self.ledger.record(run);
    }
}

/// Returns the time of the system's clock.
fn now() -> Time {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}
