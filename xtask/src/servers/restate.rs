//! Restate's server, which makes the rows of a batch durable on many machines.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{Address, Place, Server, http, place, python};
use crate::workspace::stdout;

/// The program lies in the package itself. The package without the platform in its name brings a script that reports installations.
const PACKAGE: &str = "@restatedev/restate-server-linux-x64";
const VERSION: &str = "1.7.12";

/// The program, installed if it is missing.
fn program(place: &Place) -> Result<PathBuf, String> {
    let folder = place.folder().join(format!("restate-{VERSION}"));
    let program = folder.join("node_modules").join(PACKAGE).join("bin").join("restate-server");
    if program.is_file() {
        return Ok(program);
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(format!(
            "{PACKAGE} is for Linux on x86-64: start Restate {VERSION} yourself and set FORMWORK_RESTATE"
        ));
    }
    if python::offline() {
        return Err(format!("{PACKAGE} is not here and FORMWORK_OFFLINE is set: unset it"));
    }
    Server::Restate.say(&format!("needs {PACKAGE} {VERSION}, 226 MB"));
    let scratch = place.scratch()?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"])
        .arg(&scratch);
    stdout(npm.arg(format!("{PACKAGE}@{VERSION}")).stdin(Stdio::null()))?;
    place::clear(&folder)?;
    // A rename is atomic, so a folder of this name is always complete.
    std::fs::rename(&scratch, &folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    if program.is_file() {
        Ok(program)
    } else {
        Err(format!("{PACKAGE} {VERSION} has no {}", program.display()))
    }
}

/// The command that serves: the ingress at the address, the administration one port above, the nodes' own port two above.
pub(super) fn command(place: &Place, address: &Address) -> Result<Command, String> {
    let mut command = Command::new(program(place)?);
    command.env("RESTATE_BASE_DIR", place.folder().join("restate"));
    for (name, value) in settings(address.port()) {
        command.env(name, value);
    }
    Ok(command)
}

/// The settings of a server on this machine alone, with the ingress at a port.
fn settings(port: u16) -> Vec<(&'static str, String)> {
    let at = |port: u16| format!("127.0.0.1:{port}");
    let text = str::to_owned;
    vec![
        ("RESTATE_NODE_NAME", text("formwork")),
        ("RESTATE_LISTEN_MODE", text("tcp")),
        ("RESTATE_BIND_IP", text("127.0.0.1")),
        ("RESTATE_INGRESS__BIND_ADDRESS", at(port)),
        ("RESTATE_ADMIN__BIND_ADDRESS", at(port + 1)),
        ("RESTATE_BIND_ADDRESS", at(port + 2)),
        ("RESTATE_ADVERTISED_ADDRESS", format!("http://{}/", at(port + 2))),
        ("RESTATE_DISABLE_TELEMETRY", text("true")),
        ("RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE", text("512MB")),
        // Each of the 24 partitions of the default writes and reads a log of its own: a machine with two cores needs twice the CPU per row.
        ("RESTATE_DEFAULT_NUM_PARTITIONS", text("4")),
        ("RESTATE_LOG_FILTER", text("warn,restate=warn")),
        ("RESTATE_LOG_DISABLE_ANSI_CODES", text("true")),
    ]
}

/// The version is said by the administration, one port above the ingress.
pub(super) fn version(address: &Address) -> Option<String> {
    let answer = http::get(&address.next_port()?, "/version")?;
    let version = answer.get("version").and_then(Value::as_str)?;
    http::answers(address, "/restate/health").then(|| format!("Restate {version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_listens_on_this_machine_alone() {
        let settings = settings(9000);
        for (name, value) in settings.iter().filter(|(name, _)| name.contains("ADDRESS")) {
            assert!(value.contains("127.0.0.1:900"), "{name}={value}");
        }
        assert!(settings.contains(&("RESTATE_DISABLE_TELEMETRY", "true".to_owned())));
    }
}
