//! `formwork oracle serve`: the oracle over HTTP.

use std::net::SocketAddr;
use std::time::Duration;

use formwork::providers::Providers;
use formwork_oracle::metrics::Metrics;
use formwork_oracle::service::{ApiKey, Limits, Service};
use tokio::runtime::Builder;

use super::asking::Scoring;
use crate::exit::{Failed, Status};
use crate::flags::set;
use crate::stderr::say;
use crate::{log, service, signals};

const AFTER_HELP: &str = "\
Examples:
  formwork oracle serve
  formwork oracle serve --listen 0.0.0.0:8080 --api-key-env ORACLE_KEY --ledger scores.jsonl
  curl -H 'content-type: application/json' -d @wallet.json http://127.0.0.1:8080/v1/score
  curl -H 'content-type: text/csv' --data-binary @history.csv http://127.0.0.1:8080/v1/score

POST /v1/score returns the score of a wallet. `source` shows whether a model or the fallback computed it; the other fields are
the same. There are also GET /health and GET /metrics (Prometheus). Errors are application/problem+json. After SIGINT or
SIGTERM the service completes the open requests and ends.

Exit codes:
  0    ended by a signal
  2    wrong usage, or an invalid file, key or address
  3    no provider answered in time, or the model cannot be opened";

/// The additional time limit of a request beyond that of a score, for the fallback.
const MARGIN: Duration = Duration::from_secs(10);

/// Score wallets over HTTP
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The address to listen at; port 0 selects a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// The environment variable with the API key that requests must contain, at least 16 characters
    #[arg(long, value_name = "NAME")]
    api_key_env: Option<String>,
    /// Maximum size of a request body in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(1..))]
    max_body: u32,
    /// Maximum number of wallets in progress at a time; others wait
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    concurrency: u16,
    #[command(flatten)]
    scoring: Scoring,
}

pub(super) fn run(args: &Args, providers: &Providers) -> Result<Status, Failed> {
    let (checked, prompt) = args.scoring.checked()?;
    let key = args.api_key_env.as_deref().map(ApiKey::from_env).transpose().map_err(Failed::usage)?;
    log::start(args.scoring.asking.verbose);
    let listener = service::listen(args.listen)?;
    let address = listener.local_addr().map_err(Failed::usage)?;
    if key.is_none() && !address.ip().is_loopback() {
        say!("warning: everyone who reaches {address} can request scores: set --api-key-env");
    }
    service::run(Builder::new_current_thread(), async {
        let opened = checked.open(providers).await?;
        let metrics = Metrics::new();
        let oracle = checked.oracle(&opened, prompt, |builder| builder.with_observer(metrics.clone()))?;
        let mut limits = Limits::default();
        limits.max_body = usize::try_from(args.max_body).unwrap_or(usize::MAX);
        limits.max_concurrent = usize::from(args.concurrency);
        limits.timeout = oracle.deadline().saturating_add(MARGIN);
        let prompt = oracle.prompt();
        let hash = prompt.hash.get(..12).unwrap_or(&prompt.hash);
        say!("listening at http://{address}, prompt {} ({hash})", prompt.name);
        let service = Service::new(oracle, metrics).with_limits(limits);
        let service = set(service, key, Service::with_api_key);
        service.serve(listener, signals::ended()).await.map_err(service::failed)
    })
}
