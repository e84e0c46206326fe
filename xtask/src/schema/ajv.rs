//! The schema files in Ajv: the validator that most other programs will read them with.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::workspace;

const AJV: &str = "ajv@8.17.1";
const FORMATS: &str = "ajv-formats@3.0.1";
const SCRIPT: &str = include_str!("ajv.mjs");

/// Compiles these files of a folder in Ajv's strict mode.
pub(super) fn compile<'n>(folder: &Path, names: impl Iterator<Item = &'n String>) -> Result<(), String> {
    let place = workspace::target().join("ajv");
    install(&place)?;
    let script = place.join("ajv.mjs");
    fs::write(&script, SCRIPT).map_err(|error| format!("{}: {error}", script.display()))?;
    let mut node = Command::new("node");
    node.arg(&script).args(names.map(|name| folder.join(name)));
    let status = node.status().map_err(|error| missing("node", &error))?;
    if status.success() { Ok(()) } else { Err("Ajv does not compile a schema, see above".to_owned()) }
}

/// Puts Ajv into a folder of its own, once.
fn install(place: &Path) -> Result<(), String> {
    let stamp = place.join("installed");
    let wanted = format!("{AJV} {FORMATS}\n");
    if fs::read_to_string(&stamp).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    fs::create_dir_all(place).map_err(|error| format!("{}: {error}", place.display()))?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-save", "--no-audit", "--no-fund", "--silent", "--prefix"]).arg(place);
    let output = npm.args([AJV, FORMATS]).output().map_err(|error| missing("npm", &error))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!("npm cannot install {AJV} and {FORMATS}: {}", words.trim()));
    }
    fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))
}

fn missing(program: &str, error: &std::io::Error) -> String {
    format!(
        "cannot run {program}: {error}; `cargo xtask schema --ajv` needs Node 18 or later with npm: install it, or leave `--ajv` out"
    )
}
