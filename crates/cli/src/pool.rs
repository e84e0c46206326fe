//! The pool of Restate workers that a configuration belongs to, and the way to Restate.

use std::sync::Arc;

use formwork::http::{HttpTransport, Key};
use formwork::providers::Providers;
use formwork::wire::{Auth, SharedTransport};
use formwork_batch::Pool;
use serde_json::{Value, json};

use crate::exit::Failed;
use crate::targets::{Chosen, Named, RetryArgs};

/// Returns the pool of this name, else that of the configuration. The pool knows the providers and policies if `knows` or if it has
/// no name of its own.
pub(crate) fn pool(
    name: Option<&str>,
    named: &Named,
    retries: &RetryArgs,
    providers: &Providers,
    knows: bool,
) -> Result<Pool, Failed> {
    let settings = || -> Result<Value, Failed> { settings(&named.choose(providers)?, retries) };
    match name {
        Some(name) if knows => Pool::named(name, Some(&settings()?)).map_err(Failed::usage),
        Some(name) => Pool::named(name, None).map_err(Failed::usage),
        None => Ok(Pool::of(&settings()?)),
    }
}

/// Returns everything that decides how rows are processed, without secrets.
fn settings(chosen: &Chosen, retries: &RetryArgs) -> Result<Value, Failed> {
    let mut sections = Vec::new();
    for section in &chosen.sections {
        let own: Value = section.read().map_err(Failed::usage)?;
        sections.push(json!({"name": section.name, "own": own, "common": &section.common}));
    }
    let mut settings = json!({
        "sections": sections, "defaults": &chosen.defaults, "retries": retries.retries, "retry_delays": retries.retry_delays,
    });
    remove_secrets(&mut settings);
    Ok(settings)
}

/// Removes the members that hold secrets, name their source, or say how this machine reaches the network.
fn remove_secrets(value: &mut Value) {
    let is_secret = |name: &str| {
        ["key", "header", "secret", "command", "password"].iter().any(|part| name.contains(part))
            || matches!(name, "proxy" | "ca_file")
    };
    match value {
        Value::Object(members) => {
            members.retain(|name, _| !is_secret(name));
            members.values_mut().for_each(remove_secrets);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_secrets),
        _ => {}
    }
}

/// Returns the way to one of Restate's addresses, with the token of an environment variable.
pub(crate) fn transport(url: &str, token_env: Option<&str>) -> Result<SharedTransport, Failed> {
    let transport = HttpTransport::new(url).map_err(Failed::usage)?;
    let transport = match token_env {
        Some(name) => {
            let key = Key::from_env(name).map_err(Failed::usage)?;
            transport.with_key(Auth::BEARER, key).map_err(Failed::usage)?
        }
        None => transport,
    };
    Ok(Arc::new(transport))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_their_names_are_no_part_of_a_pool() {
        let mut settings = json!({"sections": [{"own": {
            "api_key_env": "A", "headers": {"x": "y"}, "model": "m", "max_tokens": 5, "secret_headers": {}}, "common": {"proxy": "p"}}]});
        remove_secrets(&mut settings);
        assert_eq!(settings, json!({"sections": [{"own": {"model": "m", "max_tokens": 5}, "common": {}}]}));
    }
}
