//! The service: its parts, and how it is started.

mod asker;
mod beside;
mod chat;
mod extract;
mod heard;
mod job;
mod judge;
mod kept;
mod lists;
mod native;
mod once;
mod open;
mod page;
mod pages;
mod passed;
mod ready;
mod received;
mod refused;
mod reserve;
mod routes;
mod shared;
mod stream;
mod talk;
mod turns;
mod way;

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::TcpListener;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use formwork::config::Defaults;
use formwork_core::Time;
use formwork_ledger::{Ledger, Prune};
use formwork_serve::{Connections, Tls};

use crate::access::{Access, now};
use crate::contracts::{Cache, Folder, Known};
use crate::engine::Engine;
use crate::guard::Guard;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::names::{DEFAULT, Names, Target};
use crate::telemetry::Telemetry;

pub(crate) use extract::ExtractRequest;
use page::Batches;
use routes::Routes;
pub(crate) use shared::Shared;
use turns::Turns;

/// Builds a [`Gateway`].
///
/// ```
/// use std::sync::{Arc, PoisonError, RwLock};
///
/// use formwork_extract::Backend;
/// use formwork_gateway::{Gateway, Target};
/// use formwork_testkit::Scripted;
///
/// let small = Backend::from(Arc::new(Scripted::new(["{}"]))).with_name("small");
/// let gateway = Gateway::builder()
///     .with_target(Target::new(small, None, "scripted"))
///     .with_alias("fast", &["small".to_owned()])
///     .build();
/// assert_eq!(gateway.names().collect::<Vec<_>>(), ["small", "default", "fast"]);
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct GatewayBuilder {
    names: Names,
    defaults: Defaults,
    limits: Limits,
    contracts: Option<PathBuf>,
    guard: Guard,
    ledger: Option<Ledger>,
    keeps_bodies: bool,
    is_view: bool,
    cache_ttl: Option<Duration>,
    tls: Option<Tls>,
    batches: Option<PathBuf>,
    telemetry: Option<Telemetry>,
}

impl GatewayBuilder {
    /// Adds a target (default: none). The targets that are added before any [alias](Self::with_alias) are what the model
    /// `default` means.
    pub fn with_target(mut self, target: Target) -> Self {
        self.names.add(target);
        self
    }

    /// Adds a name for a list of targets (default: `default` for all of them). Names of targets that do not exist are left out.
    pub fn with_alias(mut self, name: &str, targets: &[String]) -> Self {
        self.names.alias(name, targets);
        self
    }

    /// Adds a name for a list of targets that are asked first in turns, each as often as its weight says (default: lists are asked
    /// in their order); the others are its backups. Names of targets that do not exist are left out.
    pub fn with_weighted_alias(mut self, name: &str, targets: &[(String, u32)]) -> Self {
        self.names.weighted(name, targets);
        self
    }

    formwork_core::setters! {
        /// Sets how models are asked unless a request says otherwise (default: [`Defaults::default`]).
        pub fn with_defaults(defaults: Defaults);

        /// Sets the limits (default: [`Limits::default`]).
        pub fn with_limits(limits: Limits);

        /// Sets the folder of named contracts (default: none).
        pub fn with_contracts(Some(contracts): impl Into<PathBuf>);

        /// Sets the ledger (default: none). It has the keys that clients need, once it has any, and gets every run.
        pub fn with_ledger(Some(ledger): Ledger);

        /// Answers a contract from the cache for so long after the same request of the same key had an accepted value (default: never).
        /// Needs a ledger.
        pub const fn with_cache(Some(cache_ttl): Duration);

        /// Sets a folder of batches, or the folder of one batch, which the page for admins shows (default: none). It is only read.
        pub fn with_batches(Some(batches): impl Into<PathBuf>);

        /// Sets the collector of traces and metrics (default: none).
        pub fn with_telemetry(Some(telemetry): Telemetry);

        /// Sets the certificate, for connections over TLS (default: none, connections are not encrypted).
        pub fn with_tls(Some(tls): Tls);

        /// Records the texts of requests, if the ledger's settings keep them as well (default: no).
        pub const fn with_bodies(keeps_bodies = true);

        /// Shows the pages of the ledger to every visitor, without forms, and serves nothing else (default: no): for a ledger of another
        /// service, opened with [`Ledger::view`].
        pub const fn as_view(is_view = true);
    }

    formwork_core::setters! {
        in guard:
        /// Sets names of hosts that clients may call the service by, beside `localhost` and addresses (default: none).
        pub fn with_hosts(hosts: Vec<String>);

        /// Sets origins of web pages that may call the service (default: none).
        pub fn with_origins(origins: Vec<String>);
    }

    /// Returns the service.
    pub fn build(self) -> Gateway {
        let shared = Arc::new(self.shared(None));
        Gateway(Arc::new(Service { routes: RwLock::new(Routes::new(Arc::clone(&shared))), first: shared }))
    }

    /// Returns the state of a service; of one that runs already, it keeps what its requests share.
    fn shared(mut self, running: Option<&Shared>) -> Shared {
        if !self.names.all().any(|name| name == DEFAULT) {
            let all: Vec<String> =
                self.names.targets().iter().map(|target| target.name().to_owned()).collect();
            self.names.alias(DEFAULT, &all);
        }
        let bounds = |limits: &Limits| (limits.max_concurrent, limits.max_waiting);
        let same = running.filter(|running| bounds(&running.engine.limits) == bounds(&self.limits));
        let turns =
            same.map_or_else(|| Arc::new(Turns::new(&self.limits)), |running| Arc::clone(&running.turns));
        let engine = Engine {
            names: self.names,
            defaults: self.defaults,
            cache: Cache::new(self.limits.max_contracts),
            schemas: Known::new(self.limits.max_contracts),
            outages: Default::default(),
            limits: self.limits,
        };
        let read = running.and_then(|running| running.folder.as_ref());
        Shared {
            turns,
            folder: self.contracts.map(|path| Folder::new(path, read, &engine)),
            engine,
            guard: self.guard,
            metrics: running.map_or_else(|| Arc::new(Metrics::new()), |running| Arc::clone(&running.metrics)),
            draining: running.map(|running| running.draining.clone()).unwrap_or_default(),
            access: running
                .map_or_else(|| Arc::new(Access::new(self.ledger)), |running| Arc::clone(&running.access)),
            keeps_bodies: self.keeps_bodies,
            is_view: self.is_view,
            cache_ttl: self.cache_ttl,
            tls: running.map_or(self.tls, |running| running.tls.clone()),
            batches: self.batches.map(Batches::new),
            telemetry: running.map_or(self.telemetry, |running| running.telemetry.clone()),
            sessions: running.map(|running| Arc::clone(&running.sessions)).unwrap_or_default(),
            ready: running.map(|running| Arc::clone(&running.ready)).unwrap_or_default(),
            once: running.map(|running| Arc::clone(&running.once)).unwrap_or_default(),
        }
    }
}

/// The service. Clones share everything.
///
/// ```
/// use std::{net::TcpListener, sync::Arc};
///
/// use formwork_extract::Backend;
/// use formwork_gateway::{Gateway, Target};
/// use formwork_testkit::Scripted;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// let backend = Backend::from(Arc::new(Scripted::new([r#"{"age": 34}"#])));
/// let gateway = Gateway::builder().with_target(Target::new(backend, None, "scripted")).build();
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// // Ends at once here; a program would wait for a signal.
/// gateway.serve(listener, async {}).await
/// # }
/// ```
#[derive(Clone)]
pub struct Gateway(Arc<Service>);

struct Service {
    /// The state that the service was built with.
    first: Arc<Shared>,
    /// The routes of new requests, with the state of the last reload.
    routes: RwLock<Routes>,
}

impl Service {
    /// Returns the state of the last reload.
    fn shared(&self) -> Arc<Shared> {
        self.routes.read().unwrap_or_else(PoisonError::into_inner).shared()
    }

    /// Returns the limits of a connection that begins now.
    fn connections(&self) -> Connections {
        let shared = self.shared();
        let limits = &shared.engine.limits;
        Connections {
            read_timeout: limits.head_timeout,
            write_timeout: limits.write_timeout,
            max: limits.max_connections,
            max_per_address: limits.max_per_address,
            drain: limits.drain,
            accept_while_draining: true,
            tls: shared.tls.clone(),
        }
    }
}

impl Gateway {
    /// Returns a builder without targets.
    pub fn builder() -> GatewayBuilder {
        GatewayBuilder::default()
    }

    /// Returns every name that clients may ask for, as the service was built.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.first.engine.names.all()
    }

    /// Answers requests that arrive from now on with the targets, defaults, limits, contracts, hosts and origins of another builder, and
    /// connections that begin from now on with its certificate and limits. Open requests end as they began. The ledger, the telemetry,
    /// [`Limits::max_connections`] and whether there is TLS stay those that the service was built with; keys are read from the ledger
    /// anyway.
    ///
    /// Returns the [`problems`](Self::problems) of the contracts.
    pub fn reload(&self, builder: GatewayBuilder) -> Vec<String> {
        let first = &self.0.first;
        if let (Some(own), Some(new)) = (&first.tls, &builder.tls) {
            own.replace(new);
        }
        let running = self.0.shared();
        let shared = Arc::new(builder.shared(Some(&running)));
        *self.0.routes.write().unwrap_or_else(PoisonError::into_inner) = Routes::new(shared);
        self.problems()
    }

    /// Returns a sentence for each contract of the folder whose file is wrong or that cannot be used. Its last version stays in use, if
    /// there is one.
    pub fn problems(&self) -> Vec<String> {
        let shared = self.0.shared();
        shared.folder.as_ref().map(|folder| folder.problems(&shared.engine)).unwrap_or_default()
    }

    /// Serves until `shutdown` is done, then refuses new requests with 503 and ends when the open ones have their responses, or
    /// [`Limits::drain`] has passed. Then the ledger has five seconds to write the last runs and costs; [`Ledger::close_within`] says which
    /// it could not. Needs tokio with time and IO.
    ///
    /// # Errors
    /// If the listener cannot be used. A connection that fails ends alone.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send,
    ) -> io::Result<()> {
        let first = Arc::clone(&self.0.first);
        if let Some(ledger) = first.access.ledger().filter(|_| !first.is_view) {
            release(ledger);
        }
        let draining = first.draining.clone();
        let service = Arc::clone(&self.0);
        let answer = move |request| {
            let routes = service.routes.read().unwrap_or_else(PoisonError::into_inner).clone();
            routes.answer(request)
        };
        let serving =
            formwork_serve::serve_with(listener, answer, || self.0.connections(), draining, shutdown);
        let serving = async {
            match &first.telemetry {
                Some(telemetry) => telemetry.export_while(serving).await,
                None => serving.await,
            }
        };
        let served = tokio::select! {
            served = serving => served,
            never = prune(&self.0) => match never {},
        };
        let mut written = pin!(async {
            first.access.all_settled(SETTLE).await;
            if let Some(ledger) = first.access.ledger() {
                // The ledger counts records that it cannot write, so the error is ignored here.
                _ = ledger.flush().await;
            }
        });
        if tokio::time::timeout(SILENCE, written.as_mut()).await.is_err() {
            tracing::warn!(target: "formwork_gateway", "the service has ended and waits for the ledger, which cannot be written yet");
            _ = tokio::time::timeout(SETTLE.saturating_sub(SILENCE), written).await;
        }
        served
    }
}

/// The most time in which the last requests are settled and written, once their responses have ended.
const SETTLE: Duration = Duration::from_secs(5);

/// The time after which the service says that it waits for that.
const SILENCE: Duration = Duration::from_secs(1);

/// Deletes what the ledger keeps no longer, at the start and every hour.
async fn prune(service: &Service) -> Infallible {
    loop {
        let shared = service.shared();
        let Limits { keep_runs, keep_bodies, .. } = shared.engine.limits;
        let before = |keep: Duration| Time(now().0.saturating_sub(keep.as_millis() as u64));
        let old = Prune { runs: keep_runs.map(before), bodies: keep_bodies.map(before), ..Prune::default() };
        if let Some(ledger) = shared.access.ledger().filter(|_| !shared.is_view && old != Prune::default()) {
            let ledger = ledger.clone();
            let pruned = tokio::task::spawn_blocking(move || ledger.prune(old)).await;
            if let Ok(Err(error)) = pruned {
                tracing::warn!(target: "formwork_gateway", %error, "old runs cannot be deleted");
            }
        }
        tokio::time::sleep(Duration::from_secs(3_600)).await;
    }
}

/// Gives budgets back what processes reserved that ended before they settled it.
fn release(ledger: &Ledger) {
    match ledger.release_ended() {
        Ok(released) if released.count > 0 => {
            let (count, usd) = (released.count, formwork_ledger::format_usd(released.amount));
            tracing::warn!(
                target: "formwork_gateway",
                count,
                "reservations of a process that ended are released: their calls have cost up to {usd} US dollars"
            );
        }
        Ok(_) => {}
        Err(error) => tracing::warn!(target: "formwork_gateway", %error, "reservations cannot be released"),
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("engine", &self.0.first.engine).finish_non_exhaustive()
    }
}
