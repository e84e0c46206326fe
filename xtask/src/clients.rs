//! `cargo xtask clients`: the official clients of other languages, against `formwork serve` and beside `formwork extract`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::workspace;

/// The clients whose requests are compared with those of the command.
const VENDORS: [&str; 3] = ["openai", "anthropic", "google-genai"];

/// The clients, in their newest versions. `instructor` is checked where it is installed: its releases ask for older versions of
/// `openai`.
const PACKAGES: [&str; 3] = ["openai", "anthropic", "ollama"];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The Python that makes the environment for the clients
    #[arg(long, default_value = "python3")]
    python: PathBuf,
}

/// Builds the command, installs the clients from their registry into `target/clients`, compares their requests with those of the
/// command, and runs them against the gateway.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    let root = workspace::root();
    let target = workspace::target();
    done(workspace::cargo().args(["build", "--package", "formwork-cli"]), "cargo build")?;
    let environment = target.join("clients");
    let python = environment.join("bin").join("python");
    if !python.exists() {
        done(Command::new(&args.python).args(["-m", "venv"]).arg(&environment), "python -m venv")?;
    }
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"];
    done(Command::new(&python).args(install).args(PACKAGES).args(VENDORS), "pip install")?;
    let script = |name: &str| -> PathBuf {
        [root.as_path(), Path::new("xtask/clients"), Path::new(name)].iter().collect()
    };
    let formwork = target.join("debug").join("formwork");
    done(Command::new(&python).arg(script("requests.py")).arg(&formwork), "the comparison of requests")?;
    done(Command::new(&python).arg(script("clients.py")).arg(&formwork), "the checks")
}

fn done(command: &mut Command, name: &str) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{name} does not start: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name} failed")) }
}
