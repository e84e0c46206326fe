use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::LocalError;

/// Returns the SHA-256 of a file, in lower-case hexadecimal; `report` receives the number of hashed bytes.
pub(crate) fn sha256(path: &Path, report: impl Fn(u64)) -> Result<String, LocalError> {
    let failed = |error| LocalError::file(path, error);
    let mut hash = Sha256::new();
    let mut done = 0;
    blocks(File::open(path).map_err(failed)?, failed, |block| {
        hash.update(block);
        done += block.len() as u64;
        report(done);
        Ok(())
    })?;
    Ok(hex(hash))
}

/// Reads to the end, in blocks of at most 1 MiB.
pub(super) fn blocks(
    mut from: impl Read,
    failed: impl Fn(io::Error) -> LocalError,
    mut each: impl FnMut(&[u8]) -> Result<(), LocalError>,
) -> Result<(), LocalError> {
    let mut buffer = vec![0; 1 << 20];
    loop {
        match from.read(&mut buffer).map_err(&failed)? {
            0 => return Ok(()),
            read => each(&buffer[..read])?,
        }
    }
}

/// Returns a finished hash in lower-case hexadecimal.
pub(crate) fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
