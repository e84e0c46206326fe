use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use formwork_core::{Error, Outcome, Time};
use formwork_extract::{Observer, RunId, Started};
use serde_json::Value;

use crate::{Ledger, RecordId, RunRecord};

/// Records every run of an extractor that it observes. The request is the messages of the run's first call, as JSON, if the ledger
/// keeps bodies.
///
/// ```no_run
/// use formwork_ledger::{Ledger, Recorder, Settings};
///
/// let ledger = Ledger::open("ledger.db", Settings::default())?;
/// let recorder = Recorder::new(ledger, "invoices")
///     .with_run(|run| run.with_contract(Some("invoice".to_owned()), None));
/// // extractor.with_observer(recorder)
/// # let _ = recorder;
/// # Ok::<(), formwork_ledger::Error>(())
/// ```
#[must_use]
#[derive(Debug, Clone)]
pub struct Recorder {
    ledger: Ledger,
    like: RunRecord,
    models: HashMap<String, String>,
    open: Arc<Mutex<HashMap<RunId, Opened>>>,
}

/// The facts that are known of a run before it ends.
#[derive(Debug)]
struct Opened {
    schema: String,
    request: Option<String>,
}

/// The maximum number of open runs. Runs whose futures were dropped never report their end, so all are forgotten at this number.
const MAX_OPEN: usize = 4096;

impl Recorder {
    /// Returns an observer that records runs as coming from `source`: a command or an endpoint.
    pub fn new(ledger: Ledger, source: impl Into<Cow<'static, str>>) -> Self {
        Self { ledger, like: RunRecord::new(source, Time(0)), models: HashMap::new(), open: Arc::default() }
    }

    /// Changes the record that every run begins as: its contract, key, user and tags (default: the schema's name is the contract,
    /// and there is nothing else).
    pub fn with_run(mut self, change: impl FnOnce(RunRecord) -> RunRecord) -> Self {
        self.like = change(self.like);
        self
    }

    /// Adds the model of a target (default: the name of the target).
    pub fn with_model(mut self, target: impl Into<String>, model: impl Into<String>) -> Self {
        self.models.insert(target.into(), model.into());
        self
    }
}

impl Observer for Recorder {
    fn call_started(&self, run: RunId, started: &Started<'_>) {
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
        let calls = match result {
            Ok(outcome) => &outcome.calls[..],
            Err(error) => error.calls(),
        };
        let started = calls.first().map_or(ended, |first| first.started);
        let opened = self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
        let (schema, request) = opened.map(|opened| (opened.schema, opened.request)).unzip();
        let mut run = RunRecord { id: RecordId::next(), started, ..self.like.clone() }
            .of(result, ended)
            .with_evidence_of(result)
            .with_models(|target| self.models.get(target).cloned())
            .with_request(request.flatten());
        run.contract = run.contract.or(schema);
        self.ledger.record(run);
    }
}

/// Returns the time of the system's clock.
fn now() -> Time {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}
