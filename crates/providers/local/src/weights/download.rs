//! Downloads files to the cache: every file from the network takes this way, whatever its source.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use super::{Found, Scratch, Store, hash, noted, stamp, verify};
use crate::LocalError;

/// A model file that can be downloaded.
pub(super) struct Source<'a> {
    /// The name of the model in error messages.
    pub(super) name: String,
    /// The place of the file below the cache folder.
    pub(super) place: PathBuf,
    /// The expected SHA-256. Without one, the file keeps the hash of its first download.
    pub(super) sha256: Option<&'a str>,
    /// The description of a file with another hash than expected.
    pub(super) another: String,
    /// The instructions for getting the file without this program, if the name does not say it.
    pub(super) by_hand: Option<String>,
}

impl Source<'_> {
    /// Returns the file from the cache. If it is missing or damaged, `write` writes it, reports the progress to the store, and
    /// uses the temporary folder for other files.
    pub(super) fn fetch(
        &self,
        store: &Store,
        write: impl FnOnce(&Scratch, &mut Unfinished) -> Result<(), LocalError>,
    ) -> Result<PathBuf, LocalError> {
        let place = store.folder().join(&self.place);
        let expected = self.sha256.map(str::to_owned).or_else(|| noted(&place));
        let found = expected.map_or(Ok(Found::Nothing), |sha256| verify(store, &place, &sha256))?;
        let state = match &found {
            Found::Whole => return Ok(place),
            Found::Damaged(_) => "damaged",
            Found::Nothing => "not there",
        };
        if store.offline {
            let by_hand = self.by_hand.as_ref().map(|by_hand| format!(", or {by_hand}")).unwrap_or_default();
            let reason =
                format!("{} is {state}, and offline: unset FORMWORK_OFFLINE{by_hand}", place.display());
            return Err(LocalError::weights(&self.name, reason));
        }
        if let Found::Damaged(_) = found {
            store.notice(&format!("{} is damaged: it is fetched anew", place.display()));
        }
        let scratch = Scratch::new(store.folder())?;
        let path = scratch.path().join("model.gguf");
        let mut unfinished = Unfinished::create(path)?;
        write(&scratch, &mut unfinished)?;
        let Unfinished { path, file, hash } = unfinished;
        file.sync_all().map_err(|error| LocalError::file(&path, error))?;
        let found = hash::hex(hash);
        self.check(&found)?;
        stamp::place(store, &scratch, &path, &place, &found)?;
        Ok(place)
    }

    /// Returns an error if this is another hash than expected.
    pub(super) fn check(&self, found: &str) -> Result<(), LocalError> {
        match self.sha256.filter(|expected| *expected != found) {
            None => Ok(()),
            Some(expected) => {
                let reason = format!("{}: its sha256 is {found}, not {expected}", self.another);
                Err(LocalError::weights(&self.name, reason))
            }
        }
    }
}

/// An incomplete file, hashed while it is written.
pub(super) struct Unfinished {
    path: PathBuf,
    file: File,
    hash: Sha256,
}

impl Unfinished {
    pub(super) fn create(path: PathBuf) -> Result<Self, LocalError> {
        let file = File::create(&path).map_err(|error| LocalError::file(&path, error))?;
        Ok(Self { path, file, hash: Sha256::new() })
    }

    /// Writes the next part of the file.
    pub(super) fn add(&mut self, part: &[u8]) -> Result<(), LocalError> {
        self.write_all(part).map_err(|error| LocalError::file(&self.path, error))
    }
}

impl Write for Unfinished {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    use crate::weights::progress::tests::Notices;

    /// Fetches a file with this content, and counts the downloads.
    fn fetch(store: &Store, content: &str, downloads: &mut usize) -> Result<PathBuf, LocalError> {
        let mut hash = Sha256::new();
        hash.update("weights");
        let source = Source {
            name: "one".to_owned(),
            place: "models/one.gguf".into(),
            sha256: Some(&hash::hex(hash)),
            another: "the shelf carries another file than expected".to_owned(),
            by_hand: Some("copy it".to_owned()),
        };
        source.fetch(store, |scratch, to| {
            *downloads += 1;
            fs::write(scratch.path().join("archive"), "left over").unwrap();
            to.add(content.as_bytes())
        })
    }

    #[test]
    fn a_damaged_file_is_found_before_it_is_used_and_fetched_anew() {
        let folder = tempfile::tempdir().unwrap();
        let notices = Notices::default();
        let store = Store::at(folder.path()).with_offline(false).with_progress(notices.clone());
        let mut downloads = 0;
        let mut fetch = |store: &Store| fetch(store, "weights", &mut downloads);
        let place = folder.path().join("models/one.gguf");
        assert_eq!(fetch(&store).unwrap(), place);
        assert_eq!((fetch(&store).unwrap(), notices.take()), (place.clone(), vec![]));
        for damage in ["Weights", "weightz", "", "weights!"] {
            fs::write(&place, damage).unwrap();
            fetch(&store).unwrap();
            assert_eq!(fs::read_to_string(&place).unwrap(), "weights", "{damage}");
            let printed = notices.take();
            assert!(
                printed.len() == 1 && printed[0].contains("is damaged: it is fetched anew"),
                "{printed:?}"
            );
        }
        fs::write(&place, "Weights").unwrap();
        let error = fetch(&store.clone().with_offline(true)).unwrap_err().to_string();
        assert_eq!(downloads, 5);
        assert!(error.contains("is damaged, and offline: unset FORMWORK_OFFLINE, or copy it"), "{error}");
    }

    #[test]
    fn another_content_than_expected_is_refused_and_nothing_stays_behind() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path()).with_offline(false);
        let error = fetch(&store, "someone else's", &mut 0).unwrap_err().to_string();
        assert!(error.contains("another file than expected"), "{error}");
        assert!(!folder.path().join("models").exists());
        assert_eq!(fs::read_dir(folder.path().join("tmp")).unwrap().count(), 0);
    }
}
