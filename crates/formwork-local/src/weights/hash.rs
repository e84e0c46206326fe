use std::fs::File;
use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::LocalError;

/// Returns the SHA-256 of a file, in lower-case hexadecimal; `report` receives the number of hashed bytes.
pub(crate) fn sha256(path: &Path, report: impl Fn(u64)) -> Result<String, LocalError> {
    let mut file = File::open(path).map_err(|error| LocalError::file(path, error))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    let mut done = 0;
    loop {
        let read = file.read(&mut buffer).map_err(|error| LocalError::file(path, error))?;
        if read == 0 {
            return Ok(hex(hash));
        }
        hash.update(&buffer[..read]);
        done += read as u64;
        report(done);
    }
}

/// Returns a finished hash in lower-case hexadecimal.
pub(crate) fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
