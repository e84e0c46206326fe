//! The rounds of a batch: files are planned, submitted and polled.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use formwork_core::{Clock, Cost, ErrorKind, Fault, FaultKind, Time};
use formwork_extract::{Budget, Budgets, CancellationToken, Extractor, Reservation, TokioClock};
use formwork_wire::batch::{FileLimits, FileRequest, FileStatus, Found, SharedBatchApi};
use serde_json::Value;

use super::record::{File, FileState, Files};
use super::rows::{Active, Next, NextCall};
use crate::drive::{Outcome, READ};
use crate::{BatchError, Control, Ended, Engine, OpenRow, Stop, Store};

/// The interval at which the control of the store is read during a wait.
const LOOK: Duration = Duration::from_secs(1);

/// The engine that calls models through the batch APIs of their providers, within a day and at half the price.
///
/// It works in rounds: a round begins with one call of each open run. The calls are written to files, and the files are submitted.
/// When a file has ended, its rows with an invalid answer get their next call in a further file at once, while other files are open.
/// Rows that the provider did not process wait for the next round; after three files they are rejected, if other rows are answered.
///
/// Each file is recorded before it is submitted, with its id before it is waited for. If the process dies between the provider's acceptance and
/// the record, the next engine looks for the file in the provider's listing before it submits it again. A process that ends while
/// files are open leaves them to the provider, and the next one reads their results.
///
/// Delays between the calls of a run are skipped, and the time that a file takes does not count towards the deadlines of
/// runs. Give the targets of the extractor the [price of the batch API](formwork_core::Price::in_batch).
///
/// ```
/// use std::time::Duration;
///
/// use formwork_batch::ProviderBatch;
/// use formwork_extract::Extractor;
/// use formwork_wire::batch::SharedBatchApi;
/// use serde_json::Value;
///
/// /// `extractor` has one target, `openai`.
/// fn engine(extractor: Extractor<Value>, api: SharedBatchApi) -> ProviderBatch {
///     ProviderBatch::new(extractor)
///         .with_target("openai", api)
///         .with_interval(Duration::from_secs(60))
/// }
/// ```
#[must_use]
#[derive(Debug, Clone)]
pub struct ProviderBatch {
    pub(super) extractor: Extractor<Value>,
    targets: HashMap<String, SharedBatchApi>,
    pub(super) clock: Arc<dyn Clock>,
    budgets: Budgets,
    interval: Duration,
    patience: Duration,
    pub(super) limits: FileLimits,
}

impl ProviderBatch {
    /// Creates an engine without targets.
    pub fn new(extractor: Extractor<Value>) -> Self {
        Self {
            extractor,
            targets: HashMap::new(),
            clock: Arc::new(TokioClock::new()),
            budgets: Budgets::default(),
            interval: Duration::from_secs(30),
            patience: Duration::from_secs(3600),
            limits: FileLimits::default(),
        }
    }

    /// Sets the batch API of the target of this name (default: none). Each target of the extractor needs one.
    pub fn with_target(mut self, name: impl Into<String>, api: SharedBatchApi) -> Self {
        self.targets.insert(name.into(), api);
        self
    }

    formwork_core::setters! {
        /// Sets the clock (default: [`TokioClock`]).
        pub fn with_clock(clock: Arc<dyn Clock>);

        /// Sets the interval between requests for the state of open files (default: 30 s).
        pub const fn with_interval(interval: Duration);

        /// Sets the time after which the engine ends if no request to the provider succeeds (default: 1 hour).
        pub const fn with_patience(patience: Duration);

        /// Sets the limits of a file (default: 64 MiB, any number of requests). The limits of the provider apply as well.
        pub const fn with_file_limits(limits: FileLimits);
    }

    /// Adds a budget (default: none). A row is submitted only if every budget allows the maximum cost of its call.
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.budgets = self.budgets.with(budget);
        self
    }

    /// Returns the message for the first target without a batch API.
    fn unsupported(&self, files: &Files) -> Option<String> {
        let targets = self.extractor.plan().targets();
        if let Some(name) = targets.into_iter().find(|name| !self.targets.contains_key(*name)) {
            return Some(format!(
                "the provider `{name}` has no batch API: name a provider whose kind has one, or leave out --mode provider-batch"
            ));
        }
        let gone = files.files().find(|file| !self.targets.contains_key(&file.target))?;
        Some(format!(
            "files of this batch are open at the provider `{}`, which is not asked now: name it, so that their results can be read",
            gone.target
        ))
    }
}

#[async_trait]
impl Engine for ProviderBatch {
    async fn run(&self, store: Arc<dyn Store>, cancel: &CancellationToken) -> Result<Ended, BatchError> {
        let files = Files::read(Arc::clone(&store)).await?;
        if let Some(message) = self.unsupported(&files) {
            return Ok(Ended::Config(message));
        }
        let mut work = Work {
            engine: self,
            store,
            files,
            held: HashMap::new(),
            answered: false,
            round: Round::default(),
            trouble: None,
            has_results: false,
        };
        // Every step is stored before the next one, so this future can be dropped at any point.
        tokio::select! {
            biased;
            () = cancel.cancelled() => Ok(Ended::Interrupted),
            ended = work.rounds() => match ended {
                Ok(ended) | Err(Halted::Ended(ended)) => Ok(ended),
                Err(Halted::Batch(error)) => Err(error),
                Err(Halted::Fault(fault)) => Ok(Ended::Unavailable(fault.to_string())),
            },
        }
    }
}

/// The reason why a step of the engine was not carried out.
pub(super) enum Halted {
    /// A failed operation of the store.
    Batch(BatchError),
    /// A failed request.
    Fault(Fault),
    /// The batch ends.
    Ended(Ended),
}

impl From<BatchError> for Halted {
    fn from(error: BatchError) -> Self {
        Self::Batch(error)
    }
}

impl From<Fault> for Halted {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// The results of a round, as far as they decide whether there is another one.
#[derive(Default)]
pub(super) struct Round {
    /// Whether the provider has answered any row.
    pub(super) answered: bool,
    /// A reason why rows stay open that is not their own.
    pub(super) deferred: Option<(ErrorKind, String)>,
    /// The rows that wait for the next round.
    pub(super) held_back: HashSet<u64>,
}

/// The state of the engine in this process.
pub(super) struct Work<'e> {
    pub(super) engine: &'e ProviderBatch,
    pub(super) store: Arc<dyn Store>,
    pub(super) files: Files,
    /// The reservations of rows in open files.
    held: HashMap<u64, Reservation>,
    /// Whether a provider has answered any row of this process.
    pub(super) answered: bool,
    pub(super) round: Round,
    /// The time of the first of the requests that failed since the last success.
    trouble: Option<Time>,
    /// Whether results were read since the last plan.
    has_results: bool,
}

/// The progress of the plan of a round.
#[derive(Default)]
pub(super) struct Planned {
    /// Whether there were rows that no file has.
    pub(super) has_rows: bool,
    /// The message of the budget that has no room for a call.
    pub(super) over_budget: Option<String>,
    /// Whether a file was planned.
    pub(super) has_files: bool,
}

impl Work<'_> {
    async fn rounds(&mut self) -> Result<Ended, Halted> {
        self.hold_open().await?;
        loop {
            self.check_control().await?;
            let was_open = !self.files.is_empty();
            let planned = self.plan().await?;
            while !self.files.is_empty() {
                let mut is_idle = true;
                for number in self.files.numbers() {
                    self.check_control().await?;
                    is_idle &= !self.advance(number).await?;
                }
                if std::mem::take(&mut self.has_results) && !self.files.is_empty() {
                    self.plan().await?;
                }
                if is_idle {
                    self.wait().await?;
                }
            }
            let Round { answered, deferred, .. } = std::mem::take(&mut self.round);
            match (deferred, planned) {
                (Some((ErrorKind::Budget, message)), _) => return Ok(Ended::OverBudget(message)),
                // Rows of files that were already open at the start have their next calls in the next round.
                _ if was_open => {}
                (_, Planned { over_budget: Some(message), has_files: false, .. }) => {
                    return Ok(Ended::OverBudget(message));
                }
                (Some((ErrorKind::Unavailable, message)), _) if !answered => {
                    return Ok(Ended::Unavailable(message));
                }
                (Some((_, message)), _) if !answered => return Ok(Ended::Config(message)),
                (None, Planned { has_rows: false, .. }) => return Ok(Ended::Done),
                _ => {}
            }
        }
    }

    /// Ends the engine if the user stopped the batch.
    pub(super) async fn check_control(&self) -> Result<(), Halted> {
        let Control::Stop(stop) = self.store.control().await? else { return Ok(()) };
        if stop == Stop::Cancelled {
            for file in self.files.files() {
                if let FileState::Submitted { id } = &file.state
                    && let Err(fault) = self.api(&file.target)?.cancel(id).await
                {
                    tracing::warn!(target: "formwork", "the file {id} is not cancelled at the provider: {fault}");
                }
            }
        }
        Err(Halted::Ended(Ended::Stopped(stop)))
    }

    /// Waits for the next look at the provider.
    async fn wait(&self) -> Result<(), Halted> {
        let clock = self.engine.clock.as_ref();
        let until = clock.now().after(self.engine.interval);
        while clock.now() < until {
            clock.sleep_until(until.min(clock.now().after(LOOK))).await;
            self.check_control().await?;
        }
        Ok(())
    }

    pub(super) fn api(&self, target: &str) -> Result<&SharedBatchApi, BatchError> {
        let api = self.engine.targets.get(target);
        api.ok_or_else(|| BatchError::Engine(format!("the provider `{target}` has no batch API")))
    }

    /// Reserves the maximum cost of the calls in files that an earlier process has submitted.
    async fn hold_open(&mut self) -> Result<(), Halted> {
        if self.engine.budgets.iter().next().is_none() {
            return Ok(());
        }
        let keys: Vec<String> = self.files.files().map(|file| file.key.clone()).collect();
        for key in keys {
            let mut rest = self.store.rows_of(&key).await?;
            while !rest.is_empty() {
                for (active, next) in self.waiting(&mut rest, &key).await? {
                    _ = self.reserve(active.number, next.reserve);
                }
            }
        }
        Ok(())
    }

    /// Returns the first rows among these that wait for their call in the file with this key, and passes over them.
    pub(super) async fn waiting(
        &self,
        numbers: &mut Vec<u64>,
        key: &str,
    ) -> Result<Vec<(Active, NextCall)>, BatchError> {
        let chunk = &numbers[..numbers.len().min(READ)];
        let open = self.store.rows_among(chunk).await?;
        // The store may return fewer rows than there are.
        let passed = open.last().map_or(chunk.len(), |last| chunk.partition_point(|row| *row <= last.number));
        numbers.drain(..passed);
        let (extractor, now) = (&self.engine.extractor, self.engine.clock.now());
        let mut waiting = Vec::new();
        for row in open {
            let OpenRow { number, state: Some(state), handle: Some(handle), .. } = row else { continue };
            if handle != key {
                continue;
            }
            let Ok(active) = Active::continued(extractor, number, state, now) else { continue };
            if let Next::Call(active, next) = active.next(extractor).await? {
                waiting.push((*active, next));
            }
        }
        Ok(waiting)
    }

    /// Reserves the maximum cost of a call in every budget; returns the message of a budget that does not allow it.
    pub(super) fn reserve(&mut self, row: u64, worst: Cost) -> Result<(), String> {
        let reservation = self.engine.budgets.try_reserve(worst).map_err(|left| {
            let left = left.micro_usd.unwrap_or_default() as f64 / 1e6;
            format!("the budget has no room for another call: ${left:.6} are left")
        })?;
        self.held.insert(row, reservation);
        Ok(())
    }

    /// Books the cost of a call.
    pub(super) fn book(&mut self, row: u64, cost: Cost) {
        match self.held.remove(&row) {
            Some(reservation) => reservation.settle(cost),
            None => self.engine.budgets.spend(cost),
        }
    }

    /// Notes the end of a row in this round.
    pub(super) fn note(&mut self, row: u64, outcome: Outcome) {
        match outcome {
            Outcome::Finished(answered) => self.round.answered |= answered,
            Outcome::Deferred(kind, message, _) => {
                self.round.held_back.insert(row);
                // An exhausted budget ends the batch, whatever the results of other rows are.
                let is_budget = kind == ErrorKind::Budget;
                if is_budget || self.round.deferred.is_none() {
                    self.round.deferred = Some((kind, message));
                }
            }
            Outcome::Cut => {}
        }
    }

    /// Submits a file.
    pub(super) async fn submit(&mut self, number: u64, requests: Vec<FileRequest>) -> Result<(), Halted> {
        let Some(file) = self.files.get(number).cloned() else { return Ok(()) };
        self.files.set(number, FileState::Uncertain).await?;
        match self.api(&file.target)?.submit(&file.key, requests).await {
            Ok(id) => {
                self.trouble = None;
                Ok(self.files.set(number, FileState::Submitted { id }).await?)
            }
            Err(fault) => {
                let is_refused = fault.status.is_some_and(|status| (400..500).contains(&status));
                let is_unsent = matches!(fault.kind, FaultKind::Unsupported | FaultKind::BadRequest);
                if is_refused || is_unsent {
                    self.files.set(number, FileState::Planned).await?;
                }
                Err(fault.into())
            }
        }
    }

    /// Brings a file on; returns whether anything changed.
    async fn advance(&mut self, number: u64) -> Result<bool, Halted> {
        let Some(file) = self.files.get(number).cloned() else { return Ok(false) };
        match self.step(number, &file).await {
            Ok(changed) => {
                self.trouble = None;
                Ok(changed)
            }
            Err(halted) => self.endure(halted, &file.target),
        }
    }

    async fn step(&mut self, number: u64, file: &File) -> Result<bool, Halted> {
        let api = Arc::clone(self.api(&file.target)?);
        match &file.state {
            FileState::Uncertain => {
                let submitted = self.files.files().filter_map(|file| match &file.state {
                    FileState::Submitted { id } => Some(id.clone()),
                    _ => None,
                });
                let known: Vec<String> = submitted.collect();
                match api.find(&file.key, file.requests, file.planned, &known).await? {
                    Found::Id(id) => {
                        self.files.set(number, FileState::Submitted { id }).await?;
                        return Ok(true);
                    }
                    Found::Perhaps => return Ok(false),
                    Found::No => {}
                }
            }
            FileState::Planned => {}
            FileState::Submitted { id } => {
                return match api.status(id).await? {
                    FileStatus::Open { finished } => {
                        tracing::debug!(target: "formwork", "{id}: {finished} of {} requests", file.requests);
                        Ok(false)
                    }
                    FileStatus::Ended => {
                        self.collect(number, file, id).await?;
                        self.has_results = true;
                        Ok(true)
                    }
                    FileStatus::Refused { message, is_transient: true } => {
                        tracing::warn!(target: "formwork", "`{}` takes the file later: {message}", file.target);
                        self.files.set(number, FileState::Planned).await?;
                        Ok(false)
                    }
                    FileStatus::Refused { message, .. } => {
                        self.drop_calls(self.store.rows_of(&file.key).await?, false).await?;
                        self.files.remove(number).await?;
                        let message =
                            format!("the provider `{}` refused the file {id}: {message}", file.target);
                        Err(Halted::Ended(Ended::Config(message)))
                    }
                };
            }
        }
        let requests = self.rewritten(number).await?;
        if requests.is_empty() {
            self.files.remove(number).await?;
        } else {
            self.submit(number, requests).await?;
        }
        Ok(true)
    }

    /// Decides whether the engine continues after a failed request: returns `false`, because nothing changed.
    pub(super) fn endure(&mut self, halted: Halted, target: &str) -> Result<bool, Halted> {
        let Halted::Fault(fault) = halted else { return Err(halted) };
        let message = format!("the batch API of `{target}` failed: {fault}");
        let now = self.engine.clock.now();
        let since = *self.trouble.get_or_insert(now);
        if !fault.kind.is_transient() && fault.kind != FaultKind::BadWire {
            return Err(Halted::Ended(Ended::Config(message)));
        }
        if now.since(since) >= self.engine.patience {
            return Err(Halted::Ended(Ended::Unavailable(message)));
        }
        tracing::warn!(target: "formwork", "{message}");
        Ok(false)
    }
}
