//! Formwork's side: the gateway as `formwork serve` starts it.

use std::net::TcpListener;

use formwork::config::Config;
use formwork::providers::{Providers, raw};
use formwork_gateway::{Gateway, Limits, Target};
use formwork_ledger::{Ledger, Settings};

use crate::{Failure, process};

pub(crate) async fn serve(side: &str, url: &str) -> Result<(), Failure> {
    let config = format!(
        "[providers.primary]\nkind = \"openai\"\nmodel = \"m-1\"\nbase_url = \"{url}\"\nstream = false\napi_key_env = \"\"\n"
    );
    let config = Config::from_toml(&config)?;
    let providers = Providers::builtin();
    let section = config.section("primary")?;
    let made = providers.make(section)?;
    let backend = made.backend(section, providers.dialects())?;
    let mut limits = Limits::default();
    limits.max_streams = 100_000;
    limits.max_concurrent = 100_000;
    let mut builder =
        Gateway::builder().with_target(Target::new(backend, raw(section)?, "m-1")).with_limits(limits);
    let folder = tempfile::tempdir()?;
    if side != "ours" {
        let mut settings = Settings::default();
        settings.bodies = side == "bodies";
        builder = builder.with_ledger(Ledger::open(folder.path().join("runs.db"), settings)?);
        if side == "bodies" {
            builder = builder.with_bodies();
        }
    }
    let listener = TcpListener::bind("127.0.0.1:0")?;
    process::tell(listener.local_addr()?);
    Ok(builder.build().serve(listener, std::future::pending()).await?)
}
