//! Downloads and installs Python packages with pip.

use std::path::Path;
use std::process::{Command, Stdio};

use super::place;
use crate::workspace::stdout;

/// The Python program that extracts files from downloaded archives.
const UNPACK: &str = include_str!("unpack.py");

/// The file with the name of the installed package. It is written when the installation is complete.
const STAMP: &str = "installed";

/// Returns a working Python interpreter: `python3`, else `python`, which is older or missing on most systems.
pub(super) fn interpreter() -> Result<&'static str, String> {
    let runs = |name: &&str| {
        let mut command = Command::new(name);
        command.args(["-c", "import sys; sys.exit(sys.version_info < (3, 10))"]).stdin(Stdio::null());
        command.output().is_ok_and(|output| output.status.success())
    };
    ["python3", "python"].into_iter().find(runs).ok_or_else(|| {
        "there is no Python 3.10 or later on the PATH: install it with its pip (Debian: python3 and python3-pip)"
            .to_owned()
    })
}

/// Returns whether downloads are forbidden.
pub(super) fn offline() -> bool {
    std::env::var_os("FORMWORK_OFFLINE").is_some_and(|value| !value.is_empty() && value != "0")
}

/// Returns whether a folder contains exactly this package.
pub(crate) fn is_installed(package: &str, folder: &Path) -> bool {
    std::fs::read_to_string(folder.join(STAMP)).is_ok_and(|there| there == package)
}

/// Installs a package into its own folder. It is not a virtual environment, because Debian's Python cannot create one without an
/// additional package.
pub(crate) fn install(package: &str, into: &Path) -> Result<(), String> {
    place::clear(into)?;
    let mut pip = pip(package)?;
    pip.args(["install", "--only-binary", ":all:", "--target"]).arg(into).arg(package);
    stdout(&mut pip)?;
    place::write(&into.join(STAMP), package)
}

/// Downloads the file of a package into a folder: its wheel, or else its source distribution.
pub(super) fn download(package: &str, source: bool, into: &Path) -> Result<(), String> {
    let mut pip = pip(package)?;
    let name = package.split_once("==").map_or(package, |(name, _)| name);
    // Build dependencies are excluded, because compiling them takes minutes.
    let kind = if source { "--no-binary" } else { "--only-binary" };
    pip.args(["download", "--no-deps", kind, name, "--dest"]).arg(into).arg(package);
    stdout(&mut pip).map(drop)
}

/// Extracts the files below `inside` from the only archive in a folder.
pub(super) fn unpack(archives: &Path, inside: &str, into: &Path) -> Result<(), String> {
    let mut python = Command::new(interpreter()?);
    python.args(["-c", UNPACK]).args([archives.as_os_str(), inside.as_ref(), into.as_os_str()]);
    stdout(python.stdin(Stdio::null())).map(drop)
}

fn pip(package: &str) -> Result<Command, String> {
    if offline() {
        return Err(format!("{package} is not here and FORMWORK_OFFLINE is set: unset it"));
    }
    let mut command = Command::new(interpreter()?);
    command.args(["-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check"]);
    command.stdin(Stdio::null());
    Ok(command)
}
