use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use formwork_core::{Error, Outcome, Time};
use formwork_extract::{Observer, RunId, Started};
use serde_json::Value;

use crate::{KeyId, Ledger, RunRecord};

/// Records every run of an extractor that it observes. The request is the messages of the run's first call, as JSON, if the ledger
/// keeps bodies.
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
    models: HashMap<String, String>,
    open: Arc<Mutex<HashMap<RunId, Opened>>>,
}

/// The facts that are known of a run before it ends.
#[derive(Debug)]
struct Opened {
    schema: String,
    request: Option<String>,
}

/// How many runs may be open: of those whose futures were dropped nobody says that they ended.
const MAX_OPEN: usize = 4096;

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
            models: HashMap::new(),
            open: Arc::default(),
        }
    }

    /// Sets the name and the digest of the contract (default: the schema's name and no digest).
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

    /// Adds the model behind a target (default: the target's name stands for it).
    #[must_use]
    pub fn with_model(mut self, target: impl Into<String>, model: impl Into<String>) -> Self {
        self.models.insert(target.into(), model.into());
        self
    }
}

impl Observer for Recorder {
    fn attempt_started(&self, run: RunId, started: &Started<'_>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.contains_key(&run) {
            return;
        }
        if open.len() >= MAX_OPEN {
            open.clear();
        }
        let request =
            self.ledger.keeps_bodies().then(|| serde_json::to_string(&started.call.messages).ok()).flatten();
        open.insert(run, Opened { schema: started.call.schema_name.clone(), request });
    }

    fn done(&self, run: RunId, result: &Result<Outcome<Value>, Error>) {
        let ended = now();
        let attempts = match result {
            Ok(outcome) => &outcome.attempts[..],
            Err(error) => error.attempts(),
        };
        let started = attempts.first().map_or(ended, |first| first.started);
        let opened = self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
        let (schema, request) = opened.map(|opened| (opened.schema, opened.request)).unzip();
        let contract = self.contract.clone().or(schema);
        let run = RunRecord::new(self.source.clone(), started)
            .of(result, ended)
            .with_models(|target| self.models.get(target).cloned())
            .with_contract(contract, self.digest.clone())
            .with_key(self.key)
            .with_labels(self.user.clone(), self.tags.clone())
            .with_request(request.flatten());
        self.ledger.record(run);
    }
}

/// Returns the time of the system's clock.
fn now() -> Time {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}
