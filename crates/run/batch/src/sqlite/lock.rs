use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;

use crate::BatchError;

/// The name of the file that the working process holds.
pub(super) const NAME: &str = "lock";

/// The right to work on a batch. The operating system takes it back when the process ends, however it ends.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "holds the lock as long as it is open")] File);

impl Lock {
    /// Takes the lock of a folder.
    ///
    /// # Errors
    /// [`BatchError::Locked`] if another process has it.
    pub(super) fn take(folder: &Path) -> Result<Self, BatchError> {
        let path = folder.join(NAME);
        let wrong = |error: std::io::Error| BatchError::file(&path, &error);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path).map_err(wrong)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(BatchError::Locked { path: folder.to_owned(), process: process(&mut file) });
            }
            Err(TryLockError::Error(error)) => return Err(no_locks(&path, &error)),
        }
        // The process id only serves messages, so a full disk does not prevent the lock.
        _ = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| write!(file, "{}", std::process::id()));
        Ok(Self(file))
    }

    /// Returns the id of the process that works on the folder's batch; 0 if it is not known.
    pub(super) fn holder(folder: &Path) -> Option<u32> {
        let mut file = File::open(folder.join(NAME)).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Some(process(&mut file).unwrap_or_default()),
            _ => None,
        }
    }
}

/// Returns the error of a disk that does not lock files, as some network file systems.
fn no_locks(path: &Path, error: &std::io::Error) -> BatchError {
    let message = format!("the disk does not lock files ({error}): name a folder on a local disk with --out");
    BatchError::File { path: path.to_owned(), message }
}

/// Returns the process that is named in the file.
fn process(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    _ = file.read_to_string(&mut text);
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_without_locks_is_named_with_the_remedy() {
        let unsupported = std::io::Error::from(std::io::ErrorKind::Unsupported);
        let message = no_locks(Path::new("share/out/lock"), &unsupported).to_string();
        assert_eq!(
            message,
            "share/out/lock: the disk does not lock files (unsupported): name a folder on a local disk with --out"
        );
    }
}
