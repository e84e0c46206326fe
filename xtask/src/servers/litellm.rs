//! LiteLLM's proxy in front of llama.cpp's server. Teams use such a proxy to reach many vendors.

use std::process::Command;

use serde_json::{Value, json};

use super::{Address, MODEL, Place, Server, http, place, python};

/// The pinned version. Later versions require packages that not every mirror has.
const PACKAGE: &str = "litellm[proxy]==1.106.2";

/// Installs the proxy, and returns the Python interpreter that has it.
pub(crate) fn python(place: &Place) -> Result<Command, String> {
    let modules = place.folder().join("litellm");
    if !python::is_installed(PACKAGE, &modules) {
        Server::Litellm.say(&format!("needs {PACKAGE}, 720 MB with all that comes with it"));
        python::install(PACKAGE, &modules)?;
    }
    let mut python = Command::new(python::interpreter()?);
    python.env("PYTHONPATH", modules);
    Ok(python)
}

/// Returns the command that serves the model of llama.cpp's server at `behind`.
pub(super) fn command(place: &Place, behind: &Address, address: &Address) -> Result<Command, String> {
    let config = place.folder().join("litellm.json");
    place::write(&config, &configuration(behind).to_string())?;
    let mut python = python(place)?;
    python.args(["-u", "-c", "from litellm import run_server; run_server()", "--config"]).arg(config);
    python.args(["--telemetry", "False", "--host", address.host(), "--port"]);
    python.arg(address.port().to_string());
    // The proxy refuses to start without a key. It listens on loopback only.
    python.env("LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY", "true");
    Ok(python)
}

/// Returns the proxy's configuration as JSON, which is a subset of YAML.
fn configuration(behind: &Address) -> Value {
    let api_base = format!("{behind}/v1");
    let parameters = json!({"model": format!("openai/{MODEL}"), "api_base": api_base, "api_key": "none"});
    json!({"model_list": [{"model_name": MODEL, "litellm_params": parameters}]})
}

/// Returns the name of the proxy, or `None` if another server responds at the address. The proxy does not report its version.
pub(super) fn version(address: &Address) -> Option<String> {
    let health = http::get(address, "/health/readiness")?;
    let good = health.get("status").and_then(Value::as_str) == Some("healthy");
    good.then(|| "LiteLLM's proxy".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_behind_it_is_called_under_its_own_name() {
        let written = configuration(&Address::loopback(1));
        let row = &written["model_list"][0];
        assert_eq!(row["model_name"], MODEL);
        assert_eq!(row["litellm_params"]["api_base"], "http://127.0.0.1:1/v1");
    }
}
