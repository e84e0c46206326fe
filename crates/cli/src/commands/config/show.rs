use std::fmt::Write as _;
use std::path::Path;

use formwork::config::{Config, Section};
use formwork::providers::Providers;

use crate::exit::{Failed, Status};
use crate::rows::{ConfigOutput, ConfigProvider, ConfigSetting};
use crate::{configuration, model, output};

/// Prints the effective configuration.
pub(super) fn run(file: Option<&Path>, json: bool, providers: &Providers) -> Result<Status, Failed> {
    let config = configuration::find(file, providers)?;
    let found = match &config {
        Some(config) => examined(config, providers)?,
        None => {
            let in_process = Config::in_process().map_err(Failed::usage)?;
            let providers = in_process.sections().iter().map(|section| provider(section, providers));
            ConfigOutput { file: None, trusted: false, settings: Vec::new(), providers: providers.collect() }
        }
    };
    output::either(json, &found, || text(&found))?;
    let problems = found.providers.iter().filter(|provider| provider.problem.is_some()).count();
    match problems {
        0 => Ok(Status::Ok),
        _ => Err(Failed::usage("a provider cannot be used, see above")),
    }
}

fn examined(config: &Config, providers: &Providers) -> Result<ConfigOutput, Failed> {
    let is_target = |section: &&Section| config.targets().contains(&section.name);
    let targets = config.targets().iter().filter_map(|name| config.section(name).ok());
    let others = config.sections().iter().filter(|section| !is_target(section));
    Ok(ConfigOutput {
        file: Some(config.file().to_owned()),
        trusted: config.is_trusted(),
        settings: config.settings().map_err(Failed::usage)?,
        providers: targets.chain(others).map(|section| provider(section, providers)).collect(),
    })
}

/// Returns a provider with its effective settings. A local model is not loaded.
fn provider(section: &Section, providers: &Providers) -> ConfigProvider {
    let mut found = ConfigProvider {
        name: section.name.clone(),
        kind: section.common.kind.clone(),
        ..ConfigProvider::default()
    };
    if section.common.kind == "local" {
        match model::of(section) {
            Ok(model) => (found.model, found.price) = (model, Some((0.0, 0.0))),
            Err(error) => found.problem = Some(error.to_string()),
        }
        return found;
    }
    let made = providers.make(section).and_then(|made| {
        (found.model, found.address) = (made.model.clone(), made.server_address().map(str::to_owned));
        found.modes_source = Some(made.modes_source(section));
        found.price_source = made.price_source(section);
        providers.backend_of(made, section)
    });
    match made {
        Ok(backend) => {
            found.modes = backend.modes().iter().map(|mode| mode.name().to_owned()).collect();
            #[expect(
                clippy::cast_precision_loss,
                reason = "prices are far below 2^53 millionths of a dollar"
            )]
            let dollars = |micro: u64| micro as f64 / 1e6;
            found.price = backend.price().map(|price| (dollars(price.input), dollars(price.output)));
        }
        Err(error) => found.problem = Some(error.to_string()),
    }
    found
}

fn text(found: &ConfigOutput) -> String {
    let mut text = match (&found.file, found.trusted) {
        (Some(file), true) => format!("configuration: {file}\n"),
        (Some(file), false) => {
            format!(
                "configuration: {file} (found, not named: it may run no programs, and send secrets to vendors and this machine only, see formwork config trust)\n"
            )
        }
        (None, _) => "configuration: none was found, the local model is used\n".to_owned(),
    };
    let widest = found.settings.iter().map(width).max().unwrap_or_default().min(72);
    for setting in &found.settings {
        let padding = " ".repeat(widest.saturating_sub(width(setting)));
        let ConfigSetting { path, value, source } = setting;
        _ = writeln!(text, "  {path} = {value}{padding}  # {source}");
    }
    for provider in &found.providers {
        let ConfigProvider { name, kind, model, address, modes, price, problem, .. } = provider;
        let source = |source: &Option<String>| {
            source.as_ref().map_or_else(String::new, |source| format!(" ({source})"))
        };
        _ = write!(text, "{name}: {kind}");
        if !model.is_empty() {
            _ = write!(text, ", model {model}");
        }
        if let Some(address) = address {
            _ = write!(text, ", at {}", formwork::config::without_secrets(address));
        }
        if !modes.is_empty() {
            _ = write!(text, ", output modes {}{}", modes.join(", "), source(&provider.modes_source));
        }
        match price {
            Some((input, output)) if kind != "local" => {
                let source = source(&provider.price_source);
                _ = write!(text, ", {input} and {output} US dollars per million tokens{source}");
            }
            None if problem.is_none() => text.push_str(", price unknown"),
            _ => {}
        }
        text.push('\n');
        if let Some(problem) = problem {
            _ = writeln!(text, "  cannot be used: {problem}");
        }
    }
    text
}

fn width(setting: &ConfigSetting) -> usize {
    setting.path.chars().count() + setting.value.chars().count() + 3
}
