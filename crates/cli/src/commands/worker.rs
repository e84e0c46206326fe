//! `formwork worker`: processes the rows of batches that a Restate server assigns to it.

use std::net::SocketAddr;

use formwork::providers::Providers;

use crate::exit::{Failed, Status};
use crate::flags::within;
use crate::targets::{Named, RetryArgs};

const AFTER_HELP: &str = "\
Examples:
  formwork worker --listen 127.0.0.1:9080 --register http://127.0.0.1:9070 --advertise http://127.0.0.1:9080
  formwork worker --listen 0.0.0.0:9080 --register http://restate:9070 --advertise http://workers-2:9080 --config production.toml
  formwork batch run letters.jsonl --contract person.schema.json --out letters --engine restate --ingress http://127.0.0.1:8080

Restate (https://restate.dev, a separate server) stores the rows, and calls the worker over HTTP/2 at the advertised address. Several
workers can share one address behind a load balancer for HTTP/2. A worker gets the rows of its pool only: by default those of batches
with the same providers and policies, with --pool those of batches with the same --pool. Workers with other settings, or of another
version, need a separate address. Requests to the listening address cause costs: allow only Restate to connect to it, or check
their signatures with --identity-key.

SIGINT and SIGTERM end the worker. Calls in flight have 10 seconds to finish; another worker repeats the others.

Exit codes:
  0    ended by a signal
  2    wrong usage, an invalid file, or an address that Restate rejects
  3    Restate does not respond, or a model cannot be opened";

/// Process rows of batches for a Restate server (`formwork batch run --engine restate`)
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The address to listen at, for HTTP/2 without TLS
    #[arg(long, value_name = "ADDRESS")]
    listen: SocketAddr,
    /// The address of Restate's administration, such as http://127.0.0.1:9070
    #[arg(long, value_name = "URL")]
    register: String,
    /// The address at which Restate reaches this worker, or the load balancer in front of several workers
    #[arg(long, value_name = "URL")]
    advertise: String,
    #[command(flatten)]
    named: Named,
    #[command(flatten)]
    retries: RetryArgs,
    /// The pool of this worker: only batches of the same pool get here [default: a digest of the providers and policies]
    #[arg(long, value_name = "NAME")]
    pool: Option<String>,
    /// A public key of the Restate server, such as publickeyv1_...; requests without a signature by one of the keys are refused
    /// (repeatable) [default: requests need no signature]
    #[arg(long = "identity-key", value_name = "KEY")]
    identity_keys: Vec<String>,
    /// The environment variable with the bearer token for Restate's administration and ingress [default: no token]
    #[arg(long, value_name = "VARIABLE")]
    token_env: Option<String>,
    /// Maximum number of concurrent calls of this worker
    #[arg(long, value_name = "CALLS", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    concurrency: u16,
    /// Maximum number of calls per second of all workers together to each target; the same for every worker [default: no limit]
    #[arg(long, value_name = "CALLS", value_parser = rate)]
    calls_per_second: Option<f64>,
    /// The address of Restate's ingress, which has the contracts [default: the address that Restate's administration reports]
    #[arg(long, value_name = "URL")]
    ingress: Option<String>,
    /// Print the source of the configuration on standard error
    #[arg(long, short)]
    verbose: bool,
}

fn rate(text: &str) -> Result<f64, String> {
    within(text, 0.001..=1e6, "expected a number of calls, from 0.001 to 1000000")
}

#[cfg(not(feature = "restate"))]
pub(crate) fn run(args: &Args, _providers: &Providers) -> Result<Status, Failed> {
    let Args { listen, register, advertise, named, retries, concurrency, calls_per_second, .. } = args;
    let Args { pool, identity_keys, token_env, ingress, verbose, .. } = args;
    let _ = (listen, register, advertise, named, retries, concurrency, calls_per_second, ingress, verbose);
    let _ = (pool, identity_keys, token_env, crate::pool::pool);
    Err(Failed::usage(
        "this build has no worker (feature `restate`): install one with `cargo install formwork-cli --features restate`",
    ))
}

#[cfg(feature = "restate")]
pub(crate) fn run(args: &Args, providers: &Providers) -> Result<Status, Failed> {
    use crate::service;

    let listener = service::listen(args.listen)?;
    listener.set_nonblocking(true).map_err(service::failed)?;
    service::run(tokio::runtime::Builder::new_multi_thread(), serve(args, providers, listener))
}

#[cfg(feature = "restate")]
async fn serve(args: &Args, providers: &Providers, listener: std::net::TcpListener) -> Result<(), Failed> {
    use std::sync::Arc;

    use formwork_batch::{Admin, AdminError, Worker};
    use serde_json::Value;

    use crate::commands::batch::contract::extractor_of;
    use crate::commands::eval::calibration;
    use crate::pool;
    use crate::stderr::say;
    use crate::targets::Targets;

    let failed = |error: AdminError| match error {
        AdminError::Unreachable { .. } => Failed::unavailable(error),
        error => Failed::usage(error),
    };
    let token = args.token_env.as_deref();
    let admin = Admin::new(pool::transport(&args.register, token)?, &args.register);
    let pool = pool::pool(args.pool.as_deref(), &args.named, &args.retries, providers, true)?;
    let name = pool.name().to_owned();
    // Restate is contacted before the model is loaded, so that a missing server is reported at once.
    let (version, ingress) = admin.version().await.map_err(failed)?;
    let targets = Targets::limited(args.named.clone(), args.retries.clone(), None);
    let mut opened = targets.open(providers, args.verbose).await?;
    calibration::open(&mut opened, None, targets.name(), 0)?;
    let names: Vec<String> = opened.backends.iter().map(|backend| backend.name().to_owned()).collect();
    let (defaults, backends) = (opened.defaults, opened.backends);
    let make = move |contract: &Value| extractor_of(contract, defaults.clone(), backends.iter().cloned());
    let ingress = args.ingress.clone().or(ingress);
    let ingress =
        ingress.ok_or_else(|| Failed::usage("Restate does not say where its ingress is: add --ingress"))?;
    let worker = Worker::new(pool, pool::transport(&ingress, token)?, Arc::new(make));
    let mut worker = worker.with_concurrency(usize::from(args.concurrency));
    if let Some(calls) = args.calls_per_second {
        worker = worker.with_calls_per_second(calls);
    }
    for key in &args.identity_keys {
        worker = worker.with_identity_key(key).map_err(Failed::usage)?;
    }
    let listener = tokio::net::TcpListener::from_std(listener).map_err(Failed::usage)?;
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let served = tokio::spawn(worker.serve(listener, async move {
        tokio::select! {
            () = crate::signals::ended() => {}
            _ = &mut stopped => {}
        }
    }));
    if let Err(error) = admin.register(&args.advertise).await {
        _ = stop.send(());
        return Err(failed(error));
    }
    say!(
        "listening at {}, registered at Restate {version} as {} in the pool {name}, targets: {}",
        args.listen,
        args.advertise,
        names.join(", ")
    );
    served.await.map_err(crate::service::failed)?;
    drop(stop);
    Ok(())
}
