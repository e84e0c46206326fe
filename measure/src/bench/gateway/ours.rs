//! Formwork's side: the gateway as `formwork serve` starts it.

use std::net::TcpListener;

use formwork::config::Config;
use formwork::providers::Providers;
use formwork_core::Backoff;
use formwork_gateway::{Gateway, GatewayBuilder, Limits, Target};
use formwork_ledger::{Ledger, Settings};

use tokio::signal::unix::{SignalKind, signal};

use super::plant;
use crate::Failure;
use crate::bench::process;

pub(in crate::bench) async fn serve(side: &str, url: &str) -> Result<(), Failure> {
    let config = format!(
        "[providers.primary]\nkind = \"openai\"\nmodel = \"m-1\"\nbase_url = \"{url}\"\nstream = false\napi_key_env = \"\"\n"
    );
    let folder = tempfile::tempdir()?;
    if side == "ours" {
        return start(&config, |builder| builder).await;
    }
    let settings = Settings { bodies: side == "bodies", ..Settings::default() };
    let ledger = Ledger::open(folder.path().join("runs.db"), settings)?;
    let has_bodies = side == "bodies";
    start(&config, |builder| {
        let builder = builder.with_ledger(ledger.clone());
        if has_bodies { builder.with_bodies() } else { builder }
    })
    .await
}

/// Starts a gateway with a configuration, which SIGHUP reads again.
pub(in crate::bench) async fn start(
    config: &str,
    more: impl Fn(GatewayBuilder) -> GatewayBuilder,
) -> Result<(), Failure> {
    let build = || -> Result<GatewayBuilder, Failure> {
        let config = Config::from_toml(config)?;
        let providers = Providers::builtin();
        let mut limits = Limits::default();
        (limits.max_streams, limits.max_concurrent) = (100_000, 100_000);
        limits.backoff = Backoff::none();
        let mut builder = Gateway::builder().with_limits(limits);
        for name in config.targets() {
            let section = config.section(name)?;
            let backend = providers.backend(section)?;
            builder = builder.with_target(Target::new(backend, providers.raw(section)?, "m-1"));
        }
        Ok(more(builder))
    };
    let gateway = build()?.build();
    let mut hangups = signal(SignalKind::hangup())?;
    plant::start();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    process::tell(listener.local_addr()?);
    let reloads = async {
        while hangups.recv().await.is_some() {
            gateway.reload(build()?);
        }
        Ok(())
    };
    tokio::select! {
        served = gateway.clone().serve(listener, std::future::pending()) => Ok(served?),
        reloaded = reloads => reloaded,
    }
}
