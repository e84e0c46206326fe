//! The uses of secrets and programs that a configuration file needs the user's trust for.

use formwork_http::{is_loopback, is_same_server};

use super::server::Server;
use crate::config::{Config, ConfigError, Section, without_secrets};

/// Returns the uses by a section: the command that it runs, and each secret that it sends to an address which the file chose, other
/// than the vendor's own and those on this machine. Each one is a phrase in the third person.
fn uses(section: &Section, server: &Server) -> Vec<String> {
    let common = &section.common;
    let command = common.api_key_command.as_deref().map(|command| {
        format!("`api_key_command` runs a program, `{}`, and sends its output", command.join(" "))
    });
    let file = common.api_key_file.as_ref();
    let command =
        command.or(file.map(|path| format!("`api_key_file` sends the contents of {}", path.display())));
    let cloud = common.credentials.map(|_| "`credentials` sends a token of your cloud account".to_owned());
    let of_variable = |name: &str| format!("it sends the secret in {}", shown(name));
    let key = server.api_key_env.as_deref();
    let key = key.filter(|name| !name.is_empty() && command.is_none() && cloud.is_none());
    let of_headers = common.secret_headers.values().map(|name| of_variable(name));
    let secrets = command.iter().cloned().chain(cloud).chain(key.map(of_variable)).chain(of_headers);
    let address = &server.base_url;
    let is_own = server.own_address.as_ref().is_some_and(|own| is_same_server(own, address));
    let is_foreign = !is_own && !is_loopback(address) && section.chooses_address("base_url", address);
    let proxy =
        common.proxy.as_ref().filter(|proxy| !is_loopback(proxy) && section.chooses_address("proxy", proxy));
    secrets
        .enumerate()
        .flat_map(|(at, secret)| {
            // A program needs trust wherever its output goes.
            let runs = at == 0 && command.is_some();
            let to = (is_foreign || runs).then(|| format!("{secret} to {}", without_secrets(address)));
            let through = proxy.map(|proxy| format!("{secret} through the proxy {}", without_secrets(proxy)));
            to.into_iter().chain(through)
        })
        .collect()
}

/// Returns an error if a file that was found, and neither named nor trusted, has such uses.
pub(super) fn check(section: &Section, server: &Server) -> Result<(), ConfigError> {
    let uses = if section.is_trusted() { Vec::new() } else { uses(section, server) };
    if uses.is_empty() {
        return Ok(());
    }
    let has_key = server.api_key_env.as_deref().is_some_and(|name| !name.is_empty());
    let or = if has_key { ", or set `api_key_env = \"\"` to send no key" } else { "" };
    let message = format!("{}: {}{or}", refusal(), uses.join("; "));
    Err(ConfigError { uses, ..section.error(message) })
}

fn refusal() -> &'static str {
    "this file was found and not named: read it, then run `formwork config trust`, or name it with --config"
}

/// Returns the uses by the section `[telemetry]`, each as a phrase in the third person: the command that it runs, and each secret
/// that it sends to another machine.
///
/// ```
/// use formwork::config::Config;
/// use formwork::providers::telemetry_uses;
///
/// let text = "[telemetry]\nendpoint = \"http://collector.example:4318\"\napi_key_env = \"K\"\n[providers.a]\nkind = \"local\"";
/// let uses = telemetry_uses(&Config::from_toml(text)?);
/// assert_eq!(uses, ["it sends the secret in `K` to http://collector.example:4318"]);
/// # Ok::<(), formwork::config::ConfigError>(())
/// ```
pub fn telemetry_uses(config: &Config) -> Vec<String> {
    let own = config.telemetry();
    let Some(endpoint) = &own.endpoint else { return Vec::new() };
    let to = without_secrets(endpoint);
    let command = own.api_key_command.as_deref();
    let command = command.map(|command| {
        format!("`api_key_command` runs a program, `{}`, and sends its output to {to}", command.join(" "))
    });
    let is_foreign = !is_loopback(endpoint) && config.is_set_by_file("telemetry", "endpoint");
    let key = own.api_key_env.iter().filter(|name| !name.is_empty());
    let names = key.chain(own.secret_headers.values()).filter(|_| is_foreign);
    command
        .into_iter()
        .chain(names.map(|name| format!("it sends the secret in {} to {to}", shown(name))))
        .collect()
}

/// Returns an error if a file that was found, and neither named nor trusted, needs trust for its section `[telemetry]`.
///
/// # Errors
/// [`ConfigError`] with the place of the section, and every use.
pub fn check_telemetry(config: &Config) -> Result<(), ConfigError> {
    let uses = if config.is_trusted() { Vec::new() } else { telemetry_uses(config) };
    match uses.is_empty() {
        true => Ok(()),
        false => Err(config.telemetry_error("endpoint", format!("{}: {}", refusal(), uses.join("; ")))),
    }
}

/// Returns the name of a variable in quotation marks, unless it looks like the key itself.
fn shown(name: &str) -> String {
    if formwork_core::looks_like_key(name) { "a setting".to_owned() } else { format!("`{name}`") }
}
