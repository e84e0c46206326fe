//! The engine that submits rows to Restate and stores their results.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use formwork_core::{Clock as _, Cost, ErrorKind, Fault};
use formwork_extract::{CancellationToken, TokioClock};
use formwork_ledger::RecordId;
use formwork_wire::SharedTransport;
use futures_util::future::{join_all, try_join_all};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::ingress::{Client, Response};
use super::message::{CONTRACTS, Hello, Lost, PROTOCOL, ROWS, RowReply, RowRequest, digest};
use super::pool::Pool;
use crate::drive::{AsksRows, Outcome, Turn, drive, settle};
use crate::row::{RunError, total};
use crate::{BatchError, Ended, Engine, OpenRow, RowState, Stop, Store};

/// The beginning of the keys of rows in Restate.
const KEY: &str = "restate-";

/// The cost of a call that a worker makes: its prices are not known here.
const UNKNOWN: Cost = Cost { tokens: 0, micro_usd: None };

/// The time within which a worker answers the first question.
const HELLO: Duration = Duration::from_secs(20);

/// The shortest and the longest pause between two requests while Restate does not answer.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// The engine that submits rows to a Restate server, whose workers call models.
///
/// Each row is submitted under its own key. If this process ends, submitted rows continue in Restate; the next process submits them
/// under the same keys and receives their results. The workers (`formwork worker`) have the targets, the policies and the prices.
///
/// ```
/// use std::time::Duration;
///
/// use formwork_batch::{Pool, Restate};
/// use formwork_wire::SharedTransport;
/// use serde_json::json;
///
/// /// `transport` sends to Restate's ingress.
/// fn engine(transport: SharedTransport) -> Restate {
///     let contract = json!({"schema": {"type": "object", "properties": {"age": {"type": "integer"}}}});
///     // The settings of the providers and policies, as the workers have them.
///     let pool = Pool::of(&json!({"model": "gpt-5.4-mini"}));
///     Restate::new(transport, "http://127.0.0.1:8080", pool, contract, 256)
///         .with_ahead(10_000)
///         .with_budget(5_000_000) // 5 US dollars
///         .with_patience(Duration::from_secs(60))
/// }
/// ```
#[must_use]
#[derive(Debug, Clone)]
pub struct Restate {
    ingress: Client,
    url: String,
    pool: Pool,
    contract: Value,
    rows: usize,
    ahead: usize,
    /// In millionths of a US dollar.
    budget: Option<u64>,
    patience: Duration,
    clock: TokioClock,
}

impl Restate {
    /// Creates an engine for a contract and the workers of a pool, which waits for the results of `rows` rows at the same time (at
    /// least 1), the oldest first. `url` is the address of Restate's ingress that `transport` sends to, for messages.
    pub fn new(
        transport: SharedTransport,
        url: impl Into<String>,
        pool: Pool,
        contract: Value,
        rows: usize,
    ) -> Self {
        Self {
            ingress: Client(transport),
            url: url.into(),
            pool,
            contract,
            rows: rows.max(1),
            ahead: 4096,
            budget: None,
            patience: Duration::from_secs(300),
            clock: TokioClock::new(),
        }
    }

    formwork_core::setters! {
        /// Sets the number of rows that are submitted and have no result (default: 4,096; at least the number of
        /// [`new`](Self::new)).
        pub const fn with_ahead(ahead: usize);

        /// Sets the cost in millionths of a US dollar from which on no further row is submitted (default: no limit). Rows in progress are
        /// finished, and may exceed it.
        pub const fn with_budget(Some(budget): u64);

        /// Sets the time after which the batch ends if Restate or all providers do not respond (default: 5 minutes).
        pub const fn with_patience(patience: Duration);
    }

    /// Checks that workers of this version answer, and gives them the contract.
    async fn begin(&self) -> Result<Result<(), Ended>, BatchError> {
        let url = &self.url;
        let not_restate = || {
            BatchError::Engine(format!(
                "{url} is not the ingress of Restate: name it with --ingress, for example http://127.0.0.1:8080 (9070 is the \
                 administration)"
            ))
        };
        match self.ingress.get("/restate/health", HELLO).await {
            Ok(response) if response.status.is_success() => {}
            Ok(_) => return Err(not_restate()),
            Err(fault) => return Ok(Err(Ended::Unavailable(self.unreachable(&fault)))),
        }
        let path = format!("/{}/hello", self.pool.service(ROWS));
        let response = self.ingress.post(&path, None, "null", Some(HELLO)).await;
        let response = match response {
            Ok(response) if response.status.as_u16() == 404 => {
                return Err(BatchError::Engine(format!(
                    "no worker of the pool `{}` is registered with Restate at {url}: start one with the same configuration, or the same \
                     --pool, by `formwork worker --listen ADDR --register ADMIN_URL --advertise URL`",
                    self.pool.name()
                )));
            }
            Ok(response) => response,
            Err(fault) => {
                return Ok(Err(Ended::Unavailable(format!(
                    "no worker answers Restate at {url}: {}; start `formwork worker` behind the address that is registered",
                    fault.message
                ))));
            }
        };
        let hello: Hello = response.read().ok_or_else(not_restate)?;
        if hello.protocol < PROTOCOL {
            return Err(BatchError::Engine(format!(
                "the workers at Restate {url} have version {}, which is older than this batch needs: start workers of version {} \
                 behind an address of their own",
                hello.version,
                env!("CARGO_PKG_VERSION")
            )));
        }
        if let (Some(own), Some(found)) = (self.pool.target(), &hello.target)
            && own != found
        {
            return Err(BatchError::Engine(format!(
                "the workers of the pool `{}` at {url} have other providers or policies ({found}) than this command ({own}): name the \
                 pool of other workers with --pool, or start workers with this configuration",
                self.pool.name()
            )));
        }
        let path = format!("/{}/{}/put", self.pool.service(CONTRACTS), digest(&self.contract));
        match self.ingress.post(&path, None, self.contract.to_string(), Some(HELLO)).await {
            Ok(response) if response.status.is_success() => Ok(Ok(())),
            Ok(response) => Err(BatchError::Engine(format!(
                "Restate at {url} does not take the contract: {}",
                response.message()
            ))),
            Err(fault) => Ok(Err(Ended::Unavailable(self.unreachable(&fault)))),
        }
    }

    fn unreachable(&self, fault: &Fault) -> String {
        format!(
            "Restate does not answer at {}: {}; start it, or name its ingress with --ingress",
            self.url, fault.message
        )
    }
}

/// A batch that is worked on.
struct Session<'a> {
    engine: &'a Restate,
    digest: String,
    spent: Mutex<u64>,
    /// The numbers, keys and bodies of rows that were cut off.
    cut: Mutex<Vec<(u64, String, String)>>,
    /// The permits to wait for results, given in the order of the rows.
    waits: Semaphore,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl AsksRows for Session<'_> {
    fn room(&self, open: usize) -> usize {
        self.engine.ahead.max(self.engine.rows).saturating_sub(open)
    }

    async fn row(&self, store: &Arc<dyn Store>, row: OpenRow, turn: Turn) -> Result<Outcome, BatchError> {
        if let Some(budget) = self.engine.budget.filter(|budget| *held(&self.spent) >= *budget) {
            let message = format!("the batch has cost {:.2} US dollars", budget as f64 / 1e6);
            return Ok(Outcome::Deferred(ErrorKind::Budget, message, None));
        }
        let OpenRow { number, input, state, handle, .. } = row;
        let mut state = state.unwrap_or_default();
        let request = RowRequest {
            protocol: PROTOCOL,
            contract: self.digest.clone(),
            target: self.engine.pool.target().map(str::to_owned),
            input,
            run: state.run.clone(),
            stored: state.stored,
        };
        let body = serde_json::to_string(&request).map_err(|error| BatchError::Engine(error.to_string()))?;
        let key = match handle.filter(|handle| handle.starts_with(KEY)) {
            // An earlier process submitted the row, and Restate has it still.
            Some(key) => key,
            None => {
                let key = format!("{}-{number}", RecordId::next().to_string().replace("run_", KEY));
                store.intend(number, self.engine.pool.name(), UNKNOWN, Some(&key)).await?;
                key
            }
        };
        let answered = tokio::select! {
            biased;
            answered = self.answered(&key, &body) => answered,
            () = turn.cut.cancelled() => {
                held(&self.cut).push((number, key, body));
                return Ok(Outcome::Cut);
            }
        };
        let reply = match answered {
            Ok(response) => understood(&response),
            Err(fault) => {
                let message = self.engine.unreachable(&fault);
                return Ok(Outcome::Deferred(ErrorKind::Unavailable, message, None));
            }
        };
        if reply.restarted {
            state = state.restarted();
        }
        let Lost { calls: lost, micro_usd: lost_micro_usd } = reply.lost;
        let micro_usd = total(reply.end.calls()).1.micro_usd.unwrap_or_default();
        *held(&self.spent) += micro_usd + lost_micro_usd;
        let RowState { history, deferred, .. } = state;
        // A call that may have been made counts with the most that it can cost.
        let each = lost_micro_usd.div_ceil(u64::from(lost.max(1)));
        let most = Cost { micro_usd: Some(each).filter(|each| *each > 0), ..UNKNOWN };
        for _ in 0..lost {
            // The open call becomes an uncertain one, and has a successor under the same key. A process that dies here gets the same
            // reply again, so the uncertain calls are then counted twice, never too few.
            store.intend(number, self.engine.pool.name(), most, Some(&key)).await?;
        }
        let (has_history, has_calls) = (!history.is_empty(), !reply.end.calls().is_empty());
        let (result, now) = (reply.end.into_result(), self.engine.clock.now());
        let outcome = settle(store.as_ref(), number, history, deferred, result, &turn, now).await?;
        if !has_calls {
            // Restate keeps the result of the key: the next submission needs another one.
            store.drop_call(number, true).await?;
        }
        if !has_calls && !has_history && matches!(outcome, Outcome::Deferred(..)) {
            let state = RowState {
                stored: now,
                deferred: deferred + u32::from(turn.may_reject),
                ..RowState::default()
            };
            store.checkpoint(number, state).await?;
        }
        Ok(outcome)
    }
}

impl Session<'_> {
    /// Submits a row at once, and waits for its result when it is one of the oldest.
    async fn answered(&self, key: &str, body: &str) -> Result<Response, Fault> {
        let path = format!("/{}/run", self.engine.pool.service(ROWS));
        let submitted = async {
            // A failure is that of the request for the result.
            if self.waits.available_permits() == 0 {
                _ = self
                    .engine
                    .ingress
                    .post(&format!("{path}/send"), Some(key), body.to_owned(), Some(HELLO))
                    .await;
            }
        };
        // Both begin here, so that rows wait for a permit in their order. The semaphore is never closed.
        let ((), _permit) = tokio::join!(submitted, self.waits.acquire());
        let (mut pause, mut since) = (PAUSES.0, None);
        loop {
            let begun = Instant::now();
            let fault = match self.engine.ingress.post(&path, Some(key), body.to_owned(), None).await {
                Ok(response) if !is_passing(&response) => return Ok(response),
                Ok(response) => Fault::new(formwork_core::FaultKind::Overloaded, response.message()),
                Err(fault) => fault,
            };
            if begun.elapsed() > self.engine.patience {
                // The connection broke after a long wait for the result, so this is not an outage.
                (pause, since) = (PAUSES.0, None);
            }
            let since = *since.get_or_insert_with(Instant::now);
            if since.elapsed() > self.engine.patience {
                return Err(fault);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// Cancels the invocations of rows that were cut off, whose calls may have been made.
    async fn cancel(&self, store: &dyn Store) -> Result<(), BatchError> {
        let cut = std::mem::take(&mut *held(&self.cut));
        try_join_all(cut.iter().map(|(number, ..)| store.drop_call(*number, true))).await?;
        let ids = cut.iter().map(|(_, key, body)| async move {
            let path = format!("/{}/run/send", self.engine.pool.service(ROWS));
            let sent = self.engine.ingress.post(&path, Some(key), body.clone(), Some(HELLO)).await.ok()?;
            sent.read::<Value>()?.get("invocationId").and_then(Value::as_str).map(str::to_owned)
        });
        let ids: Vec<String> = join_all(ids).await.into_iter().flatten().collect();
        if !ids.is_empty() {
            let path = format!("/{}/cancel", self.engine.pool.service(ROWS));
            let sent = self.engine.ingress.post(&path, None, json!(ids).to_string(), Some(HELLO)).await;
            if let Err(fault) = sent {
                tracing::warn!(target: "formwork", "{} rows go on in Restate: {}", ids.len(), fault.message);
            }
        }
        Ok(())
    }
}

/// Returns whether a response is one of a server that will be there again soon.
fn is_passing(response: &Response) -> bool {
    // Restate also sends 408 and 429; errors of workers have other statuses below 500.
    response.status.is_server_error() || matches!(response.status.as_u16(), 408 | 429)
}

/// Returns the reply of a worker, or its failure.
fn understood(response: &Response) -> RowReply {
    if let Some(reply) = response.read() {
        return reply;
    }
    let (kind, message) = match response.status.as_u16() {
        413 => (ErrorKind::Rejected, "the row is longer than Restate takes (message-size-limit)".to_owned()),
        _ => (ErrorKind::Unavailable, format!("Restate has no result of the row: {}", response.message())),
    };
    let end = super::message::RunEnd::Failed(RunError {
        kind,
        message,
        calls: Vec::new(),
        best: None,
        not_stated: Vec::new(),
    });
    RowReply { restarted: false, lost: Lost::default(), end }
}

#[async_trait]
impl Engine for Restate {
    async fn run(&self, store: Arc<dyn Store>, cancel: &CancellationToken) -> Result<Ended, BatchError> {
        let before = store.progress().await?;
        let (began, mut pause) = (Instant::now(), PAUSES.0);
        // Workers that are away are waited for if they have worked on this batch. Before its first row, an address is rather wrong.
        while let Err(ended) = self.begin().await? {
            let knows_workers = before.finished() + before.in_flight > 0;
            if !knows_workers || began.elapsed() >= self.patience {
                return Ok(ended);
            }
            tracing::debug!(target: "formwork", "no worker yet: {ended:?}");
            tokio::select! {
                () = cancel.cancelled() => return Ok(Ended::Interrupted),
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(PAUSES.1),
            }
        }
        let spent = before.micro_usd + before.uncertain_micro_usd;
        let session = Session {
            engine: self,
            digest: digest(&self.contract),
            spent: Mutex::new(spent),
            cut: Mutex::default(),
            waits: Semaphore::new(self.rows.min(Semaphore::MAX_PERMITS)),
        };
        let ended = drive(&session, &store, cancel, self.patience).await?;
        if ended == Ended::Stopped(Stop::Cancelled) {
            session.cancel(store.as_ref()).await?;
        }
        Ok(ended)
    }
}
