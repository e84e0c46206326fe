//! `formwork serve`: the protocols of OpenAI, Anthropic and Ollama in front of the configured models.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use formwork::config::{Config, Named, Section, Serve, TargetList};
use formwork::providers::Providers;
use formwork_gateway::{Gateway, GatewayBuilder, Limits, Target, Telemetry, Tls};
use formwork_ledger::Ledger;
use tokio::runtime::Builder;

use crate::exit::{Failed, Status};
use crate::flags::set;
use crate::ledger::{Recording, now};
use crate::stderr::say;
use crate::targets::{RetryArgs, make, of_alias};
use crate::{configuration, log, service, signals};

const AFTER_HELP: &str = "\
Examples:
  formwork serve
  formwork serve --listen 0.0.0.0:8190 --config formwork.toml --ledger runs.db
  curl http://127.0.0.1:8190/v1/models

Clients keep their library and change its base URL: http://127.0.0.1:8190/v1 for OpenAI's, http://127.0.0.1:8190 for
Anthropic's and Ollama's. `model` is a provider in `targets` of the configuration, a list, an alias, or `default`. SIGINT and SIGTERM end the
service when open requests have their answers, within --drain and one second; while another process locks the ledger, up to 10 seconds
later, and runs and costs that it could not write are logged. SIGHUP reads the configuration, the contracts and the
certificate again; open requests end as they began, and a wrong file changes nothing. The address, the ledger and [telemetry] need a
new start.

Traces and metrics are sent to the collector in `endpoint` of the configuration's [telemetry], or in OTEL_EXPORTER_OTLP_ENDPOINT, such
as http://localhost:4318 (OTLP, protobuf over HTTP). OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_TIMEOUT and OTEL_SERVICE_NAME
have precedence over the settings of that section as well.

Exit codes:
  0    ended by a signal
  2    wrong usage, or an invalid file, key or address
  3    the model cannot be opened
  130  ended at once by a second signal; the next start releases what the open requests reserved";

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
    /// Answer a repeated request of a key from the ledger for this number of seconds [default: `cache` of the configuration's
    /// [serve], else never]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    cache: Option<u64>,
    #[command(flatten)]
    retries: RetryArgs,
    /// Accept schemas that say nothing about values, such as `{}`: every JSON value is valid
    #[arg(long)]
    any: bool,
    /// The seconds that open requests have to end once the service stops
    #[arg(long, value_name = "SECONDS", default_value_t = 14, value_parser = clap::value_parser!(u64).range(..=86_400))]
    drain: u64,
    /// Log every request on standard error, as one line of JSON when it is over
    #[arg(long, short)]
    verbose: bool,
}

pub(crate) fn run(args: &Args, providers: &Providers) -> Result<Status, Failed> {
    log::start_json(args.verbose);
    let (config, is_file) = find(args, providers)?;
    let is_loopback = args.listen.ip().is_loopback();
    let ledger = args.recording.open()?;
    if !is_loopback && !ledger.as_ref().is_some_and(|ledger| ledger.has_keys(now()).unwrap_or(false)) {
        let message = format!(
            "whoever reaches {} could spend your money: name a file with --ledger and add a key to it with `formwork keys add \
             NAME --ledger FILE`, or listen at 127.0.0.1",
            args.listen
        );
        return Err(Failed::usage(message));
    }
    let tls = tls(args, config.serve())?;
    let listener = service::listen(args.listen)?;
    let address = listener.local_addr().map_err(Failed::usage)?;
    let served = service::run(Builder::new_multi_thread(), async {
        let builder = gateway(args, &config, providers, ledger.as_ref()).await?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let has_tls = tls.is_some();
        let gateway = set(builder, tls, GatewayBuilder::with_tls).build();
        let names: Vec<&str> = gateway.names().collect();
        let mut hangups = signals::Hangups::new();
        say!("listening at {scheme}://{address}, models: {}", names.join(", "));
        gateway.problems().iter().for_each(|problem| say!("{problem}"));
        let reloads = async {
            loop {
                hangups.next().await;
                match reloaded(args, providers, ledger.as_ref(), (has_tls, is_file, config.telemetry())).await
                {
                    Ok(builder) => {
                        let problems = gateway.reload(builder);
                        say!("read the configuration again");
                        problems.iter().for_each(|problem| say!("{problem}"));
                    }
                    Err(error) => say!("the configuration is not read again: {error}"),
                }
            }
        };
        tokio::select! {
            served = gateway.clone().serve(listener, signals::ended()) => served.map_err(service::failed),
            () = reloads => Ok(()),
        }
    });
    // The ledger logs what it could not write.
    if let Some(ledger) = &ledger {
        ledger.close_within(CLOSE);
    }
    served
}

/// The most time for the ledger to write what waits, once the service has ended. The service has waited five seconds for it before.
const CLOSE: Duration = Duration::from_secs(5);

/// Finds the configuration, or the one of the local model. Returns also whether it is that of a file.
fn find(args: &Args, providers: &Providers) -> Result<(Config, bool), Failed> {
    match configuration::find(args.config.as_deref(), providers)? {
        Some(config) => Ok((config, true)),
        None if cfg!(feature = "local") => Ok((Config::in_process().map_err(Failed::usage)?, false)),
        None => {
            let message = "there is no configuration, and this build has no model in it (feature `local`): write a formwork.toml";
            Err(Failed::usage(message))
        }
    }
}

/// Reads configuration, contracts and certificate again, for a running service.
async fn reloaded(
    args: &Args,
    providers: &Providers,
    ledger: Option<&Ledger>,
    (has_tls, was_file, telemetry): (bool, bool, &formwork::config::Telemetry),
) -> Result<GatewayBuilder, Failed> {
    let (config, is_file) = find(args, providers)?;
    if was_file && !is_file {
        return Err(Failed::usage("the file of the configuration is gone"));
    }
    let tls = tls(args, config.serve())?;
    if tls.is_some() != has_tls {
        return Err(Failed::usage("[serve]: TLS cannot be switched while the service runs: start it again"));
    }
    let builder = gateway(args, &config, providers, ledger).await?;
    if config.telemetry() != telemetry {
        say!("[telemetry] has changed, which needs a new start: the service goes on with the former section");
    }
    Ok(set(builder, tls, GatewayBuilder::with_tls))
}

async fn gateway(
    args: &Args,
    config: &Config,
    providers: &Providers,
    ledger: Option<&Ledger>,
) -> Result<GatewayBuilder, Failed> {
    let Serve { hosts, origins, .. } = config.serve().clone();
    // A request names its targets, so the target that answers decides about the calibration.
    let defaults = config.defaults().with_calibrations(None).map_err(Failed::usage)?;
    let mut builder = Gateway::builder()
        .with_defaults(defaults)
        .with_limits(limits(config.serve(), args))
        .with_hosts(hosts)
        .with_origins(origins);
    // An invalid setting is reported before a model is loaded.
    let telemetry = Telemetry::from_config(config).map_err(Failed::usage)?;
    builder = set(builder, telemetry, GatewayBuilder::with_telemetry);
    for name in config.targets() {
        let section = config.section(name).map_err(Failed::usage)?;
        builder = builder.with_target(target(section, providers, &args.retries).await?);
    }
    // `default` is defined first, so that it does not include targets that only aliases name.
    builder = of_list(builder, "default", config.target_list());
    let mut known = config.targets().to_vec();
    for section in config.sections() {
        let is_listed = config.lists().values().any(|list| list.targets.contains(&section.name));
        let is_named = config.aliases().values().any(|aliased| *aliased == section.name);
        if (is_listed || is_named) && !known.contains(&section.name) {
            known.push(section.name.clone());
            builder = builder.with_target(target(section, providers, &args.retries).await?);
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
                    builder = builder.with_target(target(&section, providers, &args.retries).await?);
                }
                vec![section.name]
            }
        };
        builder = builder.with_alias(alias, &names);
    }
    let contracts = folder("contracts", args.contracts.as_deref().or(config.contracts()))?;
    builder = set(builder, contracts, GatewayBuilder::with_contracts);
    builder = set(builder, folder("batches", args.batches.as_deref())?, GatewayBuilder::with_batches);
    let has_ledger = ledger.is_some();
    if let Some(ledger) = ledger {
        builder = builder.with_ledger(ledger.clone());
        if args.recording.keeps_bodies() {
            builder = builder.with_bodies();
        }
    }
    if let Some(seconds) = args.cache.or(config.serve().cache.map(|seconds| seconds as u64)) {
        if !has_ledger {
            let name = if args.cache.is_some() { "--cache" } else { "[serve]: `cache`" };
            return Err(Failed::usage(format!("{name} keeps values in the ledger: name one with --ledger")));
        }
        builder = builder.with_cache(Duration::from_secs(seconds));
    }
    Ok(builder)
}

/// Checks that a folder of a setting exists.
fn folder<'p>(of: &str, path: Option<&'p Path>) -> Result<Option<&'p Path>, Failed> {
    match path {
        Some(path) if !path.is_dir() => {
            Err(Failed::usage(format!("the folder of {of}, {}, does not exist", path.display())))
        }
        path => Ok(path),
    }
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

async fn target(section: &Section, providers: &Providers, retries: &RetryArgs) -> Result<Target, Failed> {
    let mut made = make(section, providers).await?;
    // A server that does not respond to the probe fails later, at its first call.
    if let Ok(Some(weaker)) = made.ask_server(false).await {
        say!("{}: {weaker}", section.name);
    }
    let model = made.model.clone();
    let backend = retries.set(providers.backend_of(made, section).map_err(Failed::usage)?);
    Ok(Target::new(backend, providers.raw(section).map_err(Failed::usage)?, model))
}

fn limits(serve: &Serve, args: &Args) -> Limits {
    let mut limits = Limits::of(serve);
    (limits.any, limits.drain) = (args.any, Duration::from_secs(args.drain));
    limits
}
