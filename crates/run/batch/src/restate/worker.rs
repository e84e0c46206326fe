//! The worker: answers Restate's requests, and asks models.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use formwork_core::Error;
use formwork_extract::{Extractor, TokioClock};
use formwork_wire::SharedTransport;
use futures_util::future::BoxFuture;
use restate_sdk::endpoint::Endpoint;
use restate_sdk::prelude::{
    Context, ContextClient as _, ContextReadState as _, ContextSideEffects as _, ContextTimers as _,
    ContextWriteState as _, HandlerError, HandlerResult, HttpServer, Json, ObjectContext, RunFuture as _,
    ServiceOptions, SharedObjectContext, TerminalError,
};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, Semaphore};

use super::entry::Entry;
use super::identity;
use super::ingress::Client;
use super::message::{
    CONTRACT, CONTRACTS, Hello, Lost, PACE, PROTOCOL, ROWS, RowReply, RowRequest, RunEnd, digest,
};
use super::pool::Pool;
use super::row::{Calls, Durable, row};
use super::services::{Contracts, Paces, Rows, named};
use super::slots::{Slots, Take};

/// The time for which Restate keeps the result of a row (7 days), so that a restarted submitter can fetch it.
const RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);

/// The time without a message after which Restate asks a worker to let a row go. A call is one step, and may take long.
const INACTIVE: Duration = Duration::from_secs(30 * 60);

/// The longest pause before Restate gives a row to a worker again, after one that died.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The number of times that Restate gives a row to workers that die or do not respond. By default,
/// Restate pauses a row after an hour until it is resumed by hand.
const ATTEMPTS: u64 = 2_000_000;

/// The time in which Restate gives a contract to a worker.
const LIMIT: Duration = Duration::from_secs(30);

/// The reason why a worker has no contract. Restate gives the row to a worker again.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct NoContract(String);

/// A function that creates the extractor of a contract.
pub type MakeExtractor = Arc<dyn Fn(&Value) -> Result<Extractor<Value>, Error> + Send + Sync>;

/// A worker that processes the rows of batches for a Restate server. Several workers can share an address.
///
/// ```
/// use std::sync::Arc;
///
/// use formwork_batch::{MakeExtractor, Pool, Worker};
/// use formwork_wire::SharedTransport;
///
/// /// Serves the rows of a pool until Ctrl-C; `make` builds the extractor of a contract, and `ingress` sends to Restate's ingress.
/// async fn work(pool: Pool, ingress: SharedTransport, make: MakeExtractor) -> std::io::Result<()> {
///     let listener = tokio::net::TcpListener::bind("127.0.0.1:9080").await?;
///     Worker::new(pool, ingress, make).with_concurrency(16).serve(listener, std::future::pending::<()>()).await;
///     Ok(())
/// }
/// ```
#[must_use]
pub struct Worker {
    pool: Pool,
    ingress: Client,
    make: MakeExtractor,
    concurrency: usize,
    slots: Option<Arc<Slots>>,
    keys: Vec<String>,
}

impl Worker {
    /// Creates a worker of a pool with at most 64 concurrent calls. `ingress` sends to Restate's ingress, where the worker fetches the
    /// contracts of batches.
    pub fn new(pool: Pool, ingress: SharedTransport, make: MakeExtractor) -> Self {
        Self { pool, ingress: Client(ingress), make, concurrency: 64, slots: None, keys: Vec::new() }
    }

    /// Sets how many calls the worker makes at the same time (default: 64; at least 1). Further rows wait; that does not count towards their
    /// deadline.
    pub const fn with_concurrency(mut self, calls: usize) -> Self {
        self.concurrency = calls;
        self
    }

    /// Sets how many calls all workers of the pool together make to each target per second (default: no limit). Every worker needs the
    /// same number.
    pub fn with_calls_per_second(mut self, calls: f64) -> Self {
        self.slots = Some(Arc::new(Slots::new(self.ingress.clone(), &self.pool, calls)));
        self
    }

    /// Adds a public key of the Restate server, such as `publickeyv1_...` (default: none, and requests need no signature). With one,
    /// requests that none of the keys has signed are refused.
    ///
    /// # Errors
    /// The message for a text that is no key.
    pub fn with_identity_key(mut self, key: &str) -> Result<Self, String> {
        identity::install();
        Endpoint::builder()
            .identity_key(key)
            .map_err(|error| format!("the identity key {key:?}: {error}"))?;
        self.keys.push(key.to_owned());
        Ok(self)
    }

    /// Answers requests until `end` is done; calls that are in flight then have 10 s.
    pub async fn serve(self, listener: TcpListener, end: impl Future) {
        let Self { pool, ingress, make, concurrency, slots, keys } = self;
        let permits = Arc::new(Semaphore::new(concurrency.clamp(1, Semaphore::MAX_PERMITS)));
        let names = [ROWS, CONTRACTS, PACE].map(|service| pool.service(service));
        let rows = FormworkRow {
            pool,
            ingress,
            make,
            calls: Calls { clock: TokioClock::new(), permits, slots },
            extractors: Mutex::default(),
        };
        let options = ServiceOptions::new()
            .idempotency_retention(RETENTION)
            .journal_retention(Duration::ZERO)
            .inactivity_timeout(INACTIVE)
            .abort_timeout(INACTIVE)
            .retry_policy_initial_interval(Duration::from_millis(100))
            .retry_policy_exponentiation_factor(2.0)
            .retry_policy_max_interval(LONGEST_PAUSE)
            .retry_policy_max_attempts(ATTEMPTS);
        let short = ServiceOptions::new().journal_retention(Duration::ZERO);
        let [row, contract, pace] = names;
        let endpoint = Endpoint::builder()
            .bind(named(rows.serve(), row).options(options))
            .bind(named(FormworkContract.serve(), contract).options(short.clone()))
            .bind(named(FormworkPace.serve(), pace).options(short));
        // The keys were read once.
        let endpoint = keys.iter().try_fold(endpoint, |endpoint, key| endpoint.identity_key(key));
        let Ok(endpoint) = endpoint.map(restate_sdk::endpoint::Builder::build) else { return };
        HttpServer::new(endpoint).serve_with_cancel(listener, end).await;
    }
}

formwork_core::debug_fields!(Worker { pool });

/// The service that takes rows to their results.
struct FormworkRow {
    pool: Pool,
    ingress: Client,
    make: MakeExtractor,
    calls: Calls,
    /// By the digests of their contracts. A contract that cannot be used has its error.
    extractors: Mutex<HashMap<String, Result<Extractor<Value>, Error>>>,
}

impl FormworkRow {
    /// Returns the extractor of a contract. What it depends on is not in the journal, because a digest identifies one contract.
    async fn extractor(&self, digest: &str) -> Result<Result<Extractor<Value>, Error>, HandlerError> {
        let mut extractors = self.extractors.lock().await;
        if let Some(extractor) = extractors.get(digest) {
            return Ok(extractor.clone());
        }
        let path = format!("/{}/{digest}/get", self.pool.service(CONTRACTS));
        let found = self.ingress.post(&path, None, "null", Some(LIMIT)).await;
        let found = found.map(|response| response.read::<Value>());
        let contract = match found {
            Ok(Some(contract)) if self::digest(&contract) == digest => contract,
            Ok(_) => {
                return Err(NoContract(format!("no batch has given Restate the contract {digest}")).into());
            }
            Err(fault) => {
                return Err(NoContract(format!("Restate's ingress does not answer: {fault}")).into());
            }
        };
        let extractor = (self.make)(&contract);
        extractors.insert(digest.to_owned(), extractor.clone());
        Ok(extractor)
    }
}

impl Rows for FormworkRow {
    async fn run(&self, ctx: Context<'_>, request: Json<RowRequest>) -> HandlerResult<Json<RowReply>> {
        let request = request.into_inner();
        if request.protocol > PROTOCOL {
            let message = format!(
                "the worker has version {}, which is older than the batch: start workers of the batch's version",
                env!("CARGO_PKG_VERSION")
            );
            return Err(TerminalError::new_with_code(422, message).into());
        }
        let own = self.pool.target();
        if let Some(target) = request.target.as_deref().filter(|target| Some(*target) != own) {
            let message = format!(
                "the row is for workers with the providers and policies {target}, and this worker has {}",
                own.unwrap_or("others")
            );
            return Err(TerminalError::new_with_code(422, message).into());
        }
        match self.extractor(&request.contract).await? {
            Ok(extractor) => {
                let journal = Invocation(&ctx);
                Ok(Json(row(&journal, &extractor, &self.calls, request).await?))
            }
            Err(error) => {
                Ok(Json(RowReply { restarted: false, lost: Lost::default(), end: RunEnd::from(Err(error)) }))
            }
        }
    }

    async fn hello(&self, _ctx: Context<'_>, _nothing: Json<Value>) -> HandlerResult<Json<Hello>> {
        Ok(Json(Hello::own(self.pool.target())))
    }

    async fn cancel(&self, ctx: Context<'_>, ids: Json<Vec<String>>) -> HandlerResult<()> {
        for id in ids.into_inner() {
            ctx.invocation_handle(id).cancel();
        }
        Ok(())
    }
}

/// The service that keeps contracts, by their digests.
struct FormworkContract;

impl Contracts for FormworkContract {
    async fn put(&self, ctx: ObjectContext<'_>, contract: Json<Value>) -> HandlerResult<()> {
        let contract = contract.into_inner();
        if digest(&contract) != ctx.key() {
            return Err(TerminalError::new_with_code(422, "the contract has another digest").into());
        }
        ctx.set(CONTRACT, Json(contract));
        Ok(())
    }

    async fn get(&self, ctx: SharedObjectContext<'_>, _nothing: Json<Value>) -> HandlerResult<Json<Value>> {
        let contract: Option<Json<Value>> = ctx.get(CONTRACT).await?;
        Ok(Json(contract.map(Json::into_inner).unwrap_or_default()))
    }
}

/// The service that gives the calls to one target their times.
struct FormworkPace;

impl Paces for FormworkPace {
    async fn take(&self, ctx: ObjectContext<'_>, take: Json<Take>) -> HandlerResult<u64> {
        let Take { calls_per_second, count } = take.into_inner();
        let now = ctx.run(|| async { Ok(now()) }).name("now").await?;
        let next: Option<f64> = ctx.get("next").await?;
        let slot = next.unwrap_or_default().max(now);
        ctx.set("next", slot + f64::from(count) * 1000.0 / calls_per_second.max(1e-3));
        Ok((slot - now) as u64)
    }
}

/// The time in milliseconds.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64() * 1000.0)
}

/// The journal of one row in Restate.
struct Invocation<'a, 'ctx>(&'a Context<'ctx>);

#[async_trait]
impl Durable for Invocation<'_, '_> {
    type Error = HandlerError;

    async fn step(&self, work: BoxFuture<'static, Entry>) -> Result<Entry, HandlerError> {
        let kept = self.0.run(move || async move { Ok(Json(work.await)) }).name("call");
        Ok(kept.await?.into_inner())
    }

    async fn sleep(&self, time: Duration) -> Result<(), HandlerError> {
        Ok(self.0.sleep(time).await?)
    }
}
