//! `formwork worker`: processes the rows of batches that a Restate server assigns to it.

use std::net::SocketAddr;

use formwork::providers::Providers;

use crate::exit::{Failed, Status};
use crate::targets::{Named, RetryArgs};

const AFTER_HELP: &str = "\
Examples:
  formwork worker --listen 127.0.0.1:9080 --register http://127.0.0.1:9070 --advertise http://127.0.0.1:9080
  formwork worker --listen 0.0.0.0:9080 --register http://restate:9070 --advertise http://workers-2:9080 --config production.toml
  formwork batch run letters.jsonl --contract person.schema.json --out letters --engine restate --ingress http://127.0.0.1:8080

Restate (https://restate.dev, a separate server) stores the rows, and calls the worker over HTTP/2 at the advertised address. Several
workers can share one address behind a load balancer for HTTP/2. Workers with other settings, or of another version, need a separate
address: Restate assigns new rows to the workers that were registered last, and the older workers finish their rows. Requests to the
listening address are not authenticated and cause costs, so allow only Restate to connect to it.

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
    /// Maximum number of concurrent calls of this worker
    #[arg(long, value_name = "CALLS", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    concurrency: u16,
    /// Maximum number of calls per second of all workers together to each target; the same for every worker [default: no limit]
    #[arg(long, value_name = "CALLS", value_parser = rate)]
    calls_per_second: Option<f64>,
    /// The address of Restate's ingress, for --calls-per-second [default: the address that Restate's administration reports]
    #[arg(long, value_name = "URL")]
    ingress: Option<String>,
    /// Print the source of the configuration on standard error
    #[arg(long, short)]
    verbose: bool,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| (0.001..=1e6).contains(rate));
    rate.ok_or_else(|| "expected a number of calls, from 0.001 to 1000000".to_owned())
}

#[cfg(not(feature = "restate"))]
pub(crate) fn run(args: &Args, _providers: &Providers) -> Result<Status, Failed> {
    let Args { listen, register, advertise, named, retries, concurrency, calls_per_second, ingress, verbose } =
        args;
    let _ = (listen, register, advertise, named, retries, concurrency, calls_per_second, ingress, verbose);
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

    use formwork::http::HttpTransport;
    use formwork_batch::{Admin, AdminError, Worker};
    use serde_json::Value;

    use crate::commands::batch::contract::extractor_of;
    use crate::stderr::say;
    use crate::targets::Targets;

    let failed = |error: AdminError| match error {
        AdminError::Unreachable { .. } => Failed::unavailable(error),
        error => Failed::usage(error),
    };
    let transport = HttpTransport::new(&args.register).map_err(Failed::usage)?;
    let admin = Admin::new(Arc::new(transport), &args.register);
    // Restate is contacted before the model is loaded, so that a missing server is reported at once.
    let (version, ingress) = admin.version().await.map_err(failed)?;
    let opened = Targets::limited(args.named.clone(), args.retries.clone(), None)
        .open(providers, args.verbose)
        .await?;
    let names: Vec<String> = opened.backends.iter().map(|backend| backend.name().to_owned()).collect();
    let (defaults, backends) = (opened.defaults, opened.backends);
    let make = move |contract: &Value| extractor_of(contract, defaults, backends.iter().cloned());
    let mut worker =
        Worker::new(admin.clone(), Arc::new(make)).with_concurrency(usize::from(args.concurrency));
    if let Some(calls) = args.calls_per_second {
        let ingress = args.ingress.clone().or(ingress);
        let ingress = ingress
            .ok_or_else(|| Failed::usage("Restate does not say where its ingress is: add --ingress"))?;
        let ingress = HttpTransport::new(&ingress).map_err(Failed::usage)?;
        worker = worker.with_calls_per_second(calls, Arc::new(ingress));
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
        "listening at {}, registered at Restate {version} as {}, targets: {}",
        args.listen,
        args.advertise,
        names.join(", ")
    );
    served.await.map_err(crate::service::failed)?;
    drop(stop);
    Ok(())
}
