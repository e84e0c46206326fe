//! llama.cpp's server, from a Python package, because no package registry has it as a program.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{Address, MODEL, Place, Server, http, place, python};

const PACKAGE: &str = "xllamacpp==2026.10.11549";
const SCRIPT: &str = include_str!("llama_server.py");

/// Installs the server, and returns the command that serves a model.
pub(super) fn command(place: &Place, weights: &Path, address: &Address) -> Result<Command, String> {
    let modules = place.folder().join("xllamacpp");
    if !python::is_installed(PACKAGE, &modules) {
        Server::Llama.say(&format!("needs {PACKAGE}"));
        python::install(PACKAGE, &modules)?;
    }
    let script = place.folder().join("llama_server.py");
    place::write(&script, SCRIPT)?;
    let mut python = Command::new(python::interpreter()?);
    python.arg("-u").arg(script).arg(weights).args([MODEL, address.host()]).arg(address.port().to_string());
    python.env("PYTHONPATH", modules);
    Ok(python)
}

/// Returns the name of the server, or `None` if another server responds at the address. The server does not report its build.
pub(super) fn version(address: &Address) -> Option<String> {
    let health = http::get(address, "/health")?;
    let good = health.get("status").and_then(Value::as_str) == Some("ok");
    good.then(|| "llama.cpp's server".to_owned())
}

pub(super) fn has_model(address: &Address) -> bool {
    let models = http::get(address, "/v1/models").unwrap_or_default();
    let models = models.get("data").and_then(Value::as_array).into_iter().flatten();
    models.into_iter().any(|model| model.get("id").and_then(Value::as_str) == Some(MODEL))
}
