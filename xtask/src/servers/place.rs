//! The folder in which servers are installed, and its layout.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::workspace;

/// The number of log lines in the message of a failure.
const TAIL: usize = 15;

#[derive(Debug)]
pub(super) struct Place(PathBuf);

impl Place {
    pub(super) fn open() -> Result<Self, String> {
        Self::at(workspace::target().join("servers"))
    }

    pub(super) fn at(folder: PathBuf) -> Result<Self, String> {
        make(&folder)?;
        Ok(Self(folder))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.0
    }

    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.log"))
    }

    /// Returns the path of the file with the process identifier of a server.
    pub(super) fn pid(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.pid"))
    }

    /// Removes the file with the process identifier of a server.
    pub(super) fn forget(&self, name: &str) {
        // A file that remains is harmless, because the process in it is always checked.
        let _ = fs::remove_file(self.pid(name));
    }

    /// Returns an empty folder for unfinished installations. It is emptied first, because an interrupted run may have left files.
    pub(super) fn scratch(&self) -> Result<PathBuf, String> {
        let folder = self.0.join("scratch");
        clear(&folder)?;
        make(&folder)?;
        Ok(folder)
    }

    /// Locks the folder, so that only one process at a time installs, starts and stops servers.
    pub(super) fn lock(&self) -> Result<File, String> {
        let path = self.0.join("lock");
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        let file = File::create(&path).map_err(failed)?;
        if file.try_lock().is_err() {
            eprintln!("waiting for another `cargo xtask servers`");
            file.lock().map_err(failed)?;
        }
        Ok(file)
    }

    /// Returns the last lines of a server's log.
    pub(super) fn tail_of_log(&self, name: &str) -> String {
        let bytes = fs::read(self.log(name)).unwrap_or_default();
        tail(&String::from_utf8_lossy(&bytes))
    }
}

/// Returns the last non-empty lines of a text, indented.
pub(super) fn tail(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().rev().filter(|line| !line.trim().is_empty()).take(TAIL).collect();
    lines.reverse();
    lines.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

pub(super) fn make(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

/// Removes a folder with its contents, if it exists.
pub(super) fn clear(folder: &Path) -> Result<(), String> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", folder.display()))
        }
        _ => Ok(()),
    }
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_is_the_last_lines_with_something_in_them() {
        let text: String = (0..40).map(|n| format!("{n}\n\n")).collect();
        let tail = tail(&text);
        assert_eq!(tail.lines().count(), TAIL);
        assert!(tail.starts_with("  25\n") && tail.ends_with("\n  39"), "{tail}");
    }
}
