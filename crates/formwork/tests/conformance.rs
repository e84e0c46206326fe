//! The contract of kinds: the pass-through and the batch API of every kind that has one, as a section of a configuration opens them.

use std::process::ExitCode;

use formwork::config::{Config, ConfigError, Section};
use formwork::providers::Providers;
use formwork_conformance::{ServerOfSection, Suite};

fn main() -> ExitCode {
    let mut suite = Suite::new();
    for kind in Providers::builtin().kinds() {
        let (name, providers) = (kind.name().to_owned(), Providers::builtin());
        if kind.has_raw() {
            suite = suite.pass_through(kind.name(), move |server| {
                let raw = section(&name, server).and_then(|section| providers.raw(&section));
                let raw = raw.map_err(|error| error.to_string())?.ok_or("the section has no pass-through")?;
                Ok(raw.transport)
            });
        }
        let (name, providers) = (kind.name().to_owned(), Providers::builtin());
        if kind.has_batch() {
            suite = suite.batches_of_section(kind.name(), move |server| {
                let api = section(&name, server).and_then(|section| providers.batch(&section));
                Ok(api.map_err(|error| error.to_string())?.ok_or("the section has no batch API")?)
            });
        }
    }
    suite.run()
}

fn section(kind: &str, server: &ServerOfSection) -> Result<Section, ConfigError> {
    let (url, key) = (&server.base_url, server.key_file.display().to_string());
    let text = format!(
        "[providers.a]\nkind = {kind:?}\nmodel = \"m\"\nbase_url = {url:?}\napi_key_file = {key:?}\n"
    );
    Config::from_toml(&text)?.section("a").cloned()
}
