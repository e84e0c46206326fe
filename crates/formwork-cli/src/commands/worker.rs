//! `formwork worker`: asks models about the rows of batches that a Restate server hands out.

use std::net::SocketAddr;

use formwork::providers::Providers;

use crate::exit::{Failed, Status};
use crate::targets::Named;

const AFTER_HELP: &str = "\
Examples:
  formwork worker --listen 127.0.0.1:9080 --register http://127.0.0.1:9070 --advertise http://127.0.0.1:9080
  formwork worker --listen 0.0.0.0:9080 --register http://restate:9070 --advertise http://workers-2:9080 --config production.toml
  formwork batch run letters.jsonl --contract person.schema.json --out letters --engine restate --ingress http://127.0.0.1:8080

Restate (https://restate.dev, a server of its own) keeps the rows, and calls the worker over HTTP/2 at the advertised address. Several
workers may stand behind one address, with a balancer that speaks HTTP/2. Workers with other settings, or of another version, need an
address of their own: Restate gives new rows to the workers that were registered last, and the old ones finish theirs. Whoever reaches
the listening address can spend your money: let nobody but Restate reach it.

SIGINT and SIGTERM end the worker; calls that are in flight have 10 seconds, and others are made again by another worker.

Exit codes:
  0    ended by a signal
  2    wrong usage, an invalid file, or an address that Restate does not take
  3    Restate does not answer, or a model cannot be opened";

/// Ask models about the rows of batches on Restate (`formwork batch run --engine restate`)
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The address to listen at, for HTTP/2 without TLS
    #[arg(long, value_name = "ADDRESS")]
    listen: SocketAddr,
    /// The address of Restate's administration, such as http://127.0.0.1:9070
    #[arg(long, value_name = "URL")]
    register: String,
    /// The address at which Restate reaches this worker, or the balancer before several of them
    #[arg(long, value_name = "URL")]
    advertise: String,
    #[command(flatten)]
    named: Named,
    /// Maximum number of concurrent calls of this worker
    #[arg(long, value_name = "CALLS", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    concurrency: u16,
    /// Maximum number of calls per second of all workers together to each target; the same for every worker [default: no limit]
    #[arg(long, value_name = "CALLS", value_parser = rate)]
    calls_per_second: Option<f64>,
    /// The address of Restate's ingress, for --calls-per-second [default: what its administration says]
    #[arg(long, value_name = "URL")]
    ingress: Option<String>,
    /// Say where the configuration comes from
    #[arg(long, short)]
    verbose: bool,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| (0.001..=1e6).contains(rate));
    rate.ok_or_else(|| "expected a number of calls, from 0.001 to 1000000".to_owned())
}

#[cfg(not(feature = "restate"))]
pub(crate) fn run(args: &Args, _providers: &Providers) -> Result<Status, Failed> {
    let Args { listen, register, advertise, named, concurrency, calls_per_second, ingress, verbose } = args;
    let _ = (listen, register, advertise, named, concurrency, calls_per_second, ingress, verbose);
    Err(Failed::usage(
        "this build has no worker (feature `restate`): install one with `cargo install formwork-cli --features restate`",
    ))
}

#[cfg(feature = "restate")]
pub(crate) fn run(args: &Args, providers: &Providers) -> Result<Status, Failed> {
    let listener = std::net::TcpListener::bind(args.listen)
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
        .map_err(|error| Failed::usage(format!("cannot listen at {}: {error}", args.listen)))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failed::usage(format!("the runtime cannot be started: {error}")))?;
    let served = runtime.block_on(serve(args, providers, listener));
    // Does not wait for blocking work that cannot be cancelled, such as a local model that still generates.
    runtime.shutdown_background();
    served.map(|()| Status::Ok)
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
    let opened = Targets::limited(args.named.clone(), None).open(providers, args.verbose).await?;
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
    served.await.map_err(|error| Failed::usage(format!("cannot serve: {error}")))?;
    drop(stop);
    Ok(())
}
