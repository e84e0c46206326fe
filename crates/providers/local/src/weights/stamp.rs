//! Stamps of verified files: the hash of a file in the cache, with its state at the time of hashing.
//!
//! Hashing a model takes a tenth of a second or more, so it is done once: a stamp beside the file has its hash, its
//! size and the times of its last change. A stamp that differs from the file system is invalid. Stamps detect damage,
//! not attacks: whoever can write a wrong stamp into the cache can write wrong weights as well.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{Scratch, Store, hash};
use crate::LocalError;

/// The state of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The file does not exist.
    Nothing,
    /// The file has the expected hash.
    Whole,
    /// The file has this hash instead.
    Damaged(String),
}

/// Compares a file with its expected hash, by its stamp or by hashing it and writing a stamp.
///
/// # Errors
/// [`LocalError::File`] if the file cannot be read.
pub(crate) fn verify(store: &Store, file: &Path, sha256: &str) -> Result<Found, LocalError> {
    verify_at(store, file, sha256, SystemTime::now())
}

fn verify_at(store: &Store, file: &Path, sha256: &str, now: SystemTime) -> Result<Found, LocalError> {
    let metadata = match fs::metadata(file) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(LocalError::file(file, error)),
    };
    let stamp = text(&metadata, sha256);
    if fs::read_to_string(beside(file)).is_ok_and(|found| found == stamp) {
        return Ok(Found::Whole);
    }
    let total = metadata.len();
    let found = hash::sha256(file, |done| store.report("verifying", done, total))?;
    if found != sha256 {
        return Ok(Found::Damaged(found));
    }
    if is_settled(&metadata, now) {
        // A cache that cannot be written costs the next start the time of hashing, and must not fail this one.
        let _ = write(store, file, &stamp);
    }
    Ok(Found::Whole)
}

/// Returns the hash in the stamp of a file, whether the stamp is still valid or not.
pub(crate) fn noted(file: &Path) -> Option<String> {
    let text = fs::read_to_string(beside(file)).ok()?;
    text.lines().next()?.strip_prefix("sha256 ").map(str::to_owned)
}

/// Moves a finished file from `scratch` to its place, with a stamp of its hash. The validity of the stamp is determined
/// by the file's times later.
///
/// # Errors
/// [`LocalError::File`] if the cache cannot be written.
pub(crate) fn place(
    store: &Store,
    scratch: &Scratch,
    file: &Path,
    to: &Path,
    sha256: &str,
) -> Result<(), LocalError> {
    // The hash is written first, so that a file never exists without it.
    write(store, to, &format!("sha256 {sha256}\n"))?;
    scratch.finish(file, to)
}

/// Removes the stamp of a file, if there is one.
pub(crate) fn remove(file: &Path) {
    let _ = fs::remove_file(beside(file));
}

fn beside(file: &Path) -> PathBuf {
    file.with_added_extension("verified")
}

fn write(store: &Store, file: &Path, stamp: &str) -> Result<(), LocalError> {
    let scratch = Scratch::new(store.folder())?;
    let unfinished = scratch.path().join("verified");
    fs::write(&unfinished, stamp).map_err(|error| LocalError::file(&unfinished, error))?;
    scratch.finish(&unfinished, &beside(file))
}

/// Returns the text of a stamp: the hash and the file system's metadata.
fn text(metadata: &Metadata, sha256: &str) -> String {
    let nanos = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let modified = metadata.modified().map(nanos).unwrap_or_default();
    let mut text = format!("sha256 {sha256}\nsize {}\nmodified {modified}\n", metadata.len());
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        // The change time changes with every write and every change of the other times, and cannot be set.
        let changed = (metadata.ctime(), metadata.ctime_nsec());
        text.push_str(&format!("changed {}.{:09}\ninode {}\n", changed.0, changed.1, metadata.ino()));
    }
    text
}

/// Returns whether the last change of a file is so long ago that another change would have another time: some file
/// systems have a resolution of two seconds.
fn is_settled(metadata: &Metadata, now: SystemTime) -> bool {
    const TICK: Duration = Duration::from_secs(2);

    metadata.modified().is_ok_and(|modified| now.duration_since(modified).is_ok_and(|since| since > TICK))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_file_is_hashed_once_and_again_when_it_was_touched() {
        let folder = tempfile::tempdir().unwrap();
        let hashed = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&hashed);
        let store = Store::at(folder.path()).with_progress(move |_: &str, _, _| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let file = folder.path().join("model.gguf");
        let later = SystemTime::now() + Duration::from_secs(3600);
        let verified = |sha256: &str, now| {
            let before = hashed.load(Ordering::Relaxed);
            let found = verify_at(&store, &file, sha256, now).unwrap();
            (found, hashed.load(Ordering::Relaxed) > before)
        };
        assert_eq!(verified("", later), (Found::Nothing, false));
        fs::write(&file, "weights").unwrap();
        let sha256 = hash::sha256(&file, |_| ()).unwrap();
        assert_eq!(verified(&sha256, SystemTime::now()), (Found::Whole, true));
        assert_eq!(verified(&sha256, later), (Found::Whole, true), "no stamp for what was just written");
        assert_eq!(verified(&sha256, later), (Found::Whole, false));
        assert_eq!(noted(&file), Some(sha256.clone()));
        assert_eq!(verified("another", later), (Found::Damaged(sha256.clone()), true));
        // The length and the last write time stay the same, but the change time differs.
        let modified = fs::metadata(&file).unwrap().modified().unwrap();
        fs::write(&file, "wrights").unwrap();
        fs::File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();
        if cfg!(unix) {
            assert!(matches!(verified(&sha256, later), (Found::Damaged(found), true) if found != sha256));
        }
        fs::write(&file, "weights").unwrap();
        assert_eq!(verified(&sha256, later), (Found::Whole, true));
        // A stamp with nothing but the hash does not prove that the file is unchanged.
        let scratch = Scratch::new(folder.path()).unwrap();
        let copy = scratch.path().join("copy");
        fs::copy(&file, &copy).unwrap();
        place(&store, &scratch, &copy, &file, &sha256).unwrap();
        assert_eq!(noted(&file), Some(sha256.clone()));
        assert_eq!(verified(&sha256, later), (Found::Whole, true));
        assert_eq!(verified(&sha256, later), (Found::Whole, false));
        remove(&file);
        assert_eq!(noted(&file), None);
    }
}
