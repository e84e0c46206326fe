//! `formwork serve`: the protocols of OpenAI, Anthropic and Ollama in front of the configured models.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use formwork::config::{Config, Named, Section, Serve, TargetList};
use formwork::providers::{Providers, raw};
use formwork_core::Backoff;
use formwork_gateway::{Gateway, GatewayBuilder, Limits, Target, Telemetry, Tls};
use formwork_ledger::Ledger;

use crate::exit::{Failed, Status};
use crate::ledger::{Recording, now};
use crate::stderr::say;
use crate::targets::{make, of_alias};
use crate::{log, signals};

const AFTER_HELP: &str = "\
Examples:
  formwork serve
  formwork serve --listen 0.0.0.0:8190 --config formwork.toml --ledger runs.db
  curl http://127.0.0.1:8190/v1/models

Clients keep their library and change its base URL: http://127.0.0.1:8190/v1 for OpenAI's, http://127.0.0.1:8190 for
Anthropic's and Ollama's. `model` is the name of a provider of the configuration, an alias, or `default`. SIGINT and SIGTERM end the
service when open requests have their answers, within 15 seconds.

Traces and metrics are sent to the collector in `endpoint` of the configuration's [telemetry], or in OTEL_EXPORTER_OTLP_ENDPOINT, such
as http://localhost:4318 (OTLP, protobuf over HTTP). OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_TIMEOUT and OTEL_SERVICE_NAME
have precedence over the settings of that section as well.

Exit codes:
  0    ended by a signal
  2    wrong usage, or an invalid file, key or address
  3    the model cannot be opened";

/// Serve OpenAI's, Anthropic's and Ollama's protocols; every answer to a schema is valid
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The address to listen at; port 0 selects a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8190")]
    listen: SocketAddr,
    /// Configuration file [default: formwork.toml in this folder or a parent, else the local model]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    recording: Recording,
    /// Folder of named contracts [default: `contracts` of the configuration]
    #[arg(long, value_name = "DIR")]
    contracts: Option<PathBuf>,
    /// Show the batches in this folder, or the batch that it is, on the page for admins
    #[arg(long, value_name = "DIR")]
    batches: Option<PathBuf>,
    /// Serve HTTPS with the certificate chain in this file, in PEM [default: `tls_cert` of the configuration's [serve]]
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate, in PEM [default: `tls_key` of the configuration's [serve]]
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Answer repeated requests from the ledger for this number of seconds [default: never]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    cache: Option<u64>,
    /// Log every request on standard error
    #[arg(long, short)]
    verbose: bool,
}

pub(crate) fn run(args: &Args, providers: &Providers) -> Result<Status, Failed> {
    log::start(args.verbose);
    let config = Config::find_with(args.config.as_deref(), providers.dialects()).map_err(Failed::usage)?;
    let config = match config {
        Some(config) => config,
        None if cfg!(feature = "local") => Config::in_process().map_err(Failed::usage)?,
        None => {
            let message = "there is no configuration, and this build has no model in it (feature `local`): write a formwork.toml";
            return Err(Failed::usage(message));
        }
    };
    let is_loopback = args.listen.ip().is_loopback();
    let ledger = args.recording.open_for_service(is_loopback)?;
    if !is_loopback && !ledger.as_ref().is_some_and(|ledger| ledger.has_keys(now()).unwrap_or(false)) {
        let message = format!(
            "whoever reaches {} could spend your money: name a file with --ledger and add a key to it with `formwork keys add \
             NAME --ledger FILE`, or listen at 127.0.0.1",
            args.listen
        );
        return Err(Failed::usage(message));
    }
    let tls = tls(args, config.serve())?;
    // The port is opened before the model is loaded, so that a port in use is reported at once.
    let listener = TcpListener::bind(args.listen)
        .map_err(|error| Failed::usage(format!("cannot listen at {}: {error}", args.listen)))?;
    let address = listener.local_addr().map_err(Failed::usage)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failed::usage(format!("the runtime cannot be started: {error}")))?;
    let served = runtime.block_on(async {
        let mut builder = gateway(args, &config, providers, ledger, is_loopback).await?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        if let Some(tls) = tls {
            builder = builder.with_tls(tls);
        }
        let gateway = builder.build();
        let names: Vec<&str> = gateway.names().collect();
        say!("listening at {scheme}://{address}, models: {}", names.join(", "));
        let served = gateway.clone().serve(listener, signals::ended()).await;
        served.map_err(|error| Failed::usage(format!("cannot serve: {error}")))
    });
    // Does not wait for blocking work that cannot be cancelled, such as a local model that still generates.
    runtime.shutdown_background();
    served.map(|()| Status::Ok)
}

async fn gateway(
    args: &Args,
    config: &Config,
    providers: &Providers,
    ledger: Option<Ledger>,
    is_loopback: bool,
) -> Result<GatewayBuilder, Failed> {
    let Serve { hosts, origins, .. } = config.serve().clone();
    let mut builder = Gateway::builder()
        .with_defaults(config.defaults())
        .with_limits(limits(config.serve()))
        .with_hosts(hosts)
        .with_origins(origins);
    // An invalid setting is reported before a model is loaded.
    if let Some(telemetry) = Telemetry::from_config(config).map_err(Failed::usage)? {
        builder = builder.with_telemetry(telemetry);
    }
    for name in config.targets() {
        let section = config.section(name).map_err(Failed::usage)?;
        builder = builder.with_target(target(section, providers).await?);
    }
    // `default` is defined first, so that it does not include targets that only aliases name.
    builder = of_list(builder, "default", config.target_list());
    let mut known = config.targets().to_vec();
    for section in config.sections() {
        let is_listed = config.lists().values().any(|list| list.targets.contains(&section.name));
        let is_named = config.aliases().values().any(|aliased| *aliased == section.name);
        if (is_listed || is_named) && !known.contains(&section.name) {
            known.push(section.name.clone());
            builder = builder.with_target(target(section, providers).await?);
        }
    }
    for (name, list) in config.lists() {
        builder = of_list(builder, name, list);
    }
    for alias in config.aliases().keys() {
        let names = match config.named(alias).map_err(Failed::usage)? {
            Named::Provider(section) => vec![section.name.clone()],
            Named::List(list) => {
                builder = of_list(builder, alias, list);
                continue;
            }
            Named::Model(aliased) => {
                let section = of_alias(aliased, Some(config), providers)?;
                if !known.contains(&section.name) {
                    known.push(section.name.clone());
                    builder = builder.with_target(target(&section, providers).await?);
                }
                vec![section.name]
            }
        };
        builder = builder.with_alias(alias, &names);
    }
    if let Some(folder) = args.contracts.as_deref().or(config.contracts()) {
        if !folder.is_dir() {
            return Err(Failed::usage(format!(
                "the folder of contracts, {}, does not exist",
                folder.display()
            )));
        }
        builder = builder.with_contracts(folder);
    }
    if let Some(folder) = &args.batches {
        if !folder.is_dir() {
            return Err(Failed::usage(format!(
                "the folder of batches, {}, does not exist",
                folder.display()
            )));
        }
        builder = builder.with_batches(folder);
    }
    let has_ledger = ledger.is_some();
    if let Some(ledger) = ledger {
        builder = builder.with_ledger(ledger);
        if args.recording.keeps_bodies(is_loopback) {
            builder = builder.with_bodies();
        }
    }
    if let Some(seconds) = args.cache {
        if !has_ledger {
            return Err(Failed::usage("--cache keeps values in the ledger: name one with --ledger"));
        }
        builder = builder.with_cache(Duration::from_secs(seconds));
    }
    Ok(builder)
}

/// Returns the certificate that the arguments or the configuration name; `None` for connections that are not encrypted.
fn tls(args: &Args, serve: &Serve) -> Result<Option<Tls>, Failed> {
    let (certificate, key) = match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => (certificate, key),
        _ => match (&serve.tls_cert, &serve.tls_key) {
            (Some(certificate), Some(key)) => (certificate, key),
            (None, None) => return Ok(None),
            _ => {
                return Err(Failed::usage(
                    "[serve]: `tls_cert` and `tls_key` belong together: set both or none",
                ));
            }
        },
    };
    Tls::from_files(certificate, key).map(Some).map_err(|error| Failed::usage(format!("TLS: {error}")))
}

/// Adds a name for a list of the configuration.
fn of_list(builder: GatewayBuilder, name: &str, list: &TargetList) -> GatewayBuilder {
    match list.weights() {
        Some(weights) => {
            let targets: Vec<_> = list.targets.iter().cloned().zip(weights).collect();
            builder.with_weighted_alias(name, &targets)
        }
        None => builder.with_alias(name, &list.targets),
    }
}

async fn target(section: &Section, providers: &Providers) -> Result<Target, Failed> {
    let mut made = make(section, providers).await?;
    // A server that does not respond to the probe fails later, at its first call.
    if let Ok(Some(weaker)) = made.ask_server(false).await {
        say!("{}: {weaker}", section.name);
    }
    let model = made.model.clone();
    let backend = made.backend(section, providers.dialects()).map_err(Failed::usage)?;
    Ok(Target::new(backend, raw(section).map_err(Failed::usage)?, model))
}

fn limits(serve: &Serve) -> Limits {
    let mut limits = Limits::default();
    let Serve { max_body_bytes, max_schema_bytes, max_attempts, concurrency, queue, streams_per_key, .. } =
        serve;
    limits.max_body = max_body_bytes.unwrap_or(limits.max_body);
    limits.max_schema = max_schema_bytes.unwrap_or(limits.max_schema);
    limits.max_attempts = max_attempts.unwrap_or(limits.max_attempts);
    limits.max_concurrent = concurrency.unwrap_or(limits.max_concurrent);
    limits.max_waiting = queue.unwrap_or(limits.max_waiting);
    limits.max_streams = streams_per_key.unwrap_or(limits.max_streams);
    let timeout = serve.timeout_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    limits.timeout = timeout.unwrap_or(limits.timeout);
    if let Some(delays) = &serve.retry_delays_seconds {
        // The conversion saturates negative and too large numbers.
        let waits = delays.iter().map(|seconds| (seconds * 1e3) as u64).collect();
        limits.backoff = Backoff { waits, jitter: 0.0 };
    }
    limits
}
