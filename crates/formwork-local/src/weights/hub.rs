use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use sha2::{Digest, Sha256};

use super::{Scratch, Store, hash, stamp};
use crate::LocalError;

/// A GGUF file on a model hub: `hf:OWNER/REPOSITORY[@REVISION]/FILE.gguf[#SHA256]`.
///
/// The default revision is `main`, which can change. Without a SHA-256, any complete file is accepted. Pin both if
/// answers must be reproducible.
///
/// ```
/// let file: formwork_local::HubFile = "hf:owner/models-GGUF@main/small-q8_0.gguf".parse()?;
/// assert_eq!(file.path(), "owner/models-GGUF/resolve/main/small-q8_0.gguf");
/// # Ok::<(), formwork_local::LocalError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubFile {
    repository: String,
    revision: String,
    file: String,
    sha256: Option<String>,
}

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

/// The prefix of every name of a file on a hub.
const SCHEME: &str = "hf:";

const FORM: &str = "a file of a hub is named hf:OWNER/REPOSITORY[@REVISION]/FILE.gguf[#SHA256]";

impl HubFile {
    /// Returns whether a name has the form of a file on a hub, even an invalid one.
    pub fn is_meant(name: &str) -> bool {
        name.starts_with(SCHEME)
    }

    /// Returns whether two names refer to the same file, whatever their SHA-256.
    pub fn is_same(one: &str, other: &str) -> bool {
        let path = |name: &str| name.parse::<Self>().ok().map(|file| file.path());
        path(one).is_some_and(|one| path(other) == Some(one))
    }

    /// Returns the path on the hub.
    pub fn path(&self) -> String {
        format!("{}/resolve/{}/{}", self.repository, self.revision, self.file)
    }

    /// Returns the path below the cache folder of hubs.
    fn place(&self) -> PathBuf {
        Path::new(&self.repository).join(&self.revision).join(&self.file)
    }
}

impl FromStr for HubFile {
    type Err = LocalError;

    fn from_str(name: &str) -> Result<Self, LocalError> {
        let wrong = |reason: &str| LocalError::weights(name, format!("{reason}: {FORM}"));
        let rest = name.strip_prefix(SCHEME).ok_or_else(|| wrong("this is no file of a hub"))?;
        let (rest, sha256) = match rest.split_once('#') {
            Some((rest, sha256)) => (rest, Some(sha256.to_ascii_lowercase())),
            None => (rest, None),
        };
        if sha256.as_ref().is_some_and(|hex| hex.len() != 64 || !hex.bytes().all(|b| b.is_ascii_hexdigit())) {
            return Err(wrong("after `#` come the 64 hexadecimal digits of its SHA-256"));
        }
        let mut parts = rest.splitn(3, '/');
        let (Some(owner), Some(repository), Some(file)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(wrong("its name is not whole"));
        };
        let (repository, revision) = repository.split_once('@').unwrap_or((repository, "main"));
        let steps = [owner, repository, revision].into_iter().chain(file.split('/'));
        if !steps.clone().all(is_step) {
            return Err(wrong("letters, digits, `.`, `-` and `_` make up the parts of its name"));
        }
        if !file.ends_with(".gguf") {
            return Err(wrong("only .gguf files are run"));
        }
        let (repository, revision) = (format!("{owner}/{repository}"), revision.to_owned());
        Ok(Self { repository, revision, file: file.to_owned(), sha256 })
    }
}

/// Returns whether a part of a name is the same in a URL and on every file system.
fn is_step(step: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let is_normal = matches!(Path::new(step).components().next(), Some(Component::Normal(_)));
    is_normal && step.bytes().all(plain)
}

/// Returns the cache folder of files from hubs.
pub(super) fn folder(store: &Store) -> PathBuf {
    store.folder().join("hub")
}

/// Returns the path of the file, if it is in the cache.
pub(super) fn cached(store: &Store, file: &HubFile) -> Result<Option<PathBuf>, LocalError> {
    let place = folder(store).join(file.place());
    let Some(found) = sha256_of(&place)?.filter(|_| place.is_file()) else { return Ok(None) };
    match &file.sha256 {
        Some(expected) if *expected != found => Err(another(file, &found)),
        _ => Ok(Some(place)),
    }
}

/// Downloads a file into the cache.
pub(super) fn fetch(store: &Store, hub: &dyn Hub, file: &HubFile) -> Result<PathBuf, LocalError> {
    let scratch = Scratch::new(store.folder())?;
    let unfinished = scratch.path().join("model.gguf");
    let created = File::create(&unfinished).map_err(|error| LocalError::file(&unfinished, error))?;
    let mut out = Hashing { file: created, hash: Sha256::new() };
    hub.download(&file.path(), &mut out, &mut |done, total| {
        store.report("downloading", done, total.unwrap_or(0));
    })
    .map_err(|reason| LocalError::weights(&file.path(), reason))?;
    out.file.sync_all().map_err(|error| LocalError::file(&unfinished, error))?;
    let found = hash::hex(out.hash);
    if file.sha256.as_ref().is_some_and(|expected| *expected != found) {
        return Err(another(file, &found));
    }
    let place = folder(store).join(file.place());
    // The hash is written first, so that a file never exists without it.
    let noted = scratch.path().join("sha256");
    fs::write(&noted, &found).map_err(|error| LocalError::file(&noted, error))?;
    scratch.finish(&noted, &beside(&place))?;
    scratch.finish(&unfinished, &place)?;
    Ok(place)
}

/// Removes a file from the cache, and returns its hash.
pub(super) fn remove(store: &Store, file: &HubFile) -> Result<Option<String>, LocalError> {
    let place = folder(store).join(file.place());
    let Some(sha256) = sha256_of(&place)? else { return Ok(None) };
    stamp::remove(&place);
    for path in [&place, &beside(&place)] {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(LocalError::file(path, error));
            }
            _ => {}
        }
    }
    Ok(Some(sha256))
}

/// Returns every file in the cache with its name, in the order of names.
pub(super) fn list(store: &Store) -> Vec<(String, PathBuf)> {
    let root = folder(store);
    let mut open = vec![root.clone()];
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "gguf")
                && beside(&path).is_file()
                && let Some(name) = name_of(&root, &path)
            {
                found.push((name, path));
            }
        }
    }
    found.sort();
    found
}

fn name_of(root: &Path, path: &Path) -> Option<String> {
    let steps: Option<Vec<&str>> = path.strip_prefix(root).ok()?.iter().map(|step| step.to_str()).collect();
    match steps?.as_slice() {
        [owner, repository, revision, file @ ..] if !file.is_empty() => {
            Some(format!("{SCHEME}{owner}/{repository}@{revision}/{}", file.join("/")))
        }
        _ => None,
    }
}

/// Returns the path of a file's noted hash.
fn beside(place: &Path) -> PathBuf {
    place.with_extension("sha256")
}

pub(super) fn sha256_of(place: &Path) -> Result<Option<String>, LocalError> {
    let noted = beside(place);
    match fs::read_to_string(&noted) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(LocalError::file(&noted, error)),
    }
}

fn another(file: &HubFile, found: &str) -> LocalError {
    let expected = file.sha256.as_deref().unwrap_or_default();
    let reason = format!("the file is another one than expected: its sha256 is {found}, not {expected}");
    LocalError::weights(&file.path(), reason)
}

/// A writer that hashes what it writes.
struct Hashing {
    file: File,
    hash: Sha256,
}

impl Write for Hashing {
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
    use std::sync::Mutex;

    /// A hub with one file.
    #[derive(Default)]
    struct One {
        content: &'static [u8],
        requests: Mutex<Vec<String>>,
    }

    impl Hub for One {
        fn download(
            &self,
            path: &str,
            to: &mut (dyn Write + Send),
            progress: &mut (dyn FnMut(u64, Option<u64>) + Send),
        ) -> Result<(), String> {
            self.requests.lock().unwrap().push(path.to_owned());
            if self.content.is_empty() {
                return Err("the server says not found".to_owned());
            }
            to.write_all(self.content).map_err(|error| error.to_string())?;
            progress(self.content.len() as u64, None);
            Ok(())
        }
    }

    #[test]
    fn names_are_whole_and_lead_nowhere_else() {
        let file: HubFile = "hf:a/b.c@v1/sub/x_y-1.gguf".parse().unwrap();
        assert_eq!(file.path(), "a/b.c/resolve/v1/sub/x_y-1.gguf");
        for (name, words) in [
            ("hf:a/b", "not whole"),
            ("hf:a/b/x.bin", "only .gguf files"),
            ("hf:a/b/../../x.gguf", "make up the parts"),
            ("hf:a/b@../x.gguf", "make up the parts"),
            ("hf:/b/x.gguf", "make up the parts"),
            ("hf:a/b/x y.gguf", "make up the parts"),
            ("hf:a/b/x.gguf#12", "64 hexadecimal digits"),
        ] {
            let error = name.parse::<HubFile>().unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("hf:OWNER/REPOSITORY"), "{name}: {error}");
        }
    }

    #[test]
    fn a_file_is_fetched_once_listed_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let hub = std::sync::Arc::new(One { content: b"weights", requests: Mutex::default() });
        let store = Store::at(folder.path()).with_offline(false).with_hub(hub.clone());
        let name = "hf:a/b/x.gguf";
        assert_eq!(store.path(name), None);
        let path = store.fetch(name).unwrap();
        assert_eq!(
            (fs::read(&path).unwrap(), store.fetch(name).unwrap()),
            (b"weights".to_vec(), path.clone())
        );
        assert_eq!(*hub.requests.lock().unwrap(), ["a/b/resolve/main/x.gguf"]);
        let names: Vec<String> = store.list().into_iter().map(|file| file.name).collect();
        assert_eq!(names, ["hf:a/b@main/x.gguf"]);
        let wrong = format!("{name}#{}", "0".repeat(64));
        assert!(store.fetch(&wrong).unwrap_err().to_string().contains("another one than expected"));
        assert!(store.remove(name).unwrap() && !store.remove(name).unwrap() && !path.exists());
        assert!(store.fetch(&wrong).unwrap_err().to_string().contains("another one than expected"));
        assert!(store.list().is_empty(), "nothing stays of a file that is another one");
    }

    #[test]
    fn a_damaged_file_is_fetched_anew() {
        let folder = tempfile::tempdir().unwrap();
        let hub = std::sync::Arc::new(One { content: b"weights", requests: Mutex::default() });
        let notices = std::sync::Arc::new(crate::weights::tests::Notices::default());
        let store = Store::at(folder.path()).with_offline(false).with_hub(hub.clone());
        let store = store.with_shared_progress(notices.clone());
        for name in ["hf:a/b/x.gguf", "hf:a/b@v1/y.gguf"] {
            let path = store.fetch(name).unwrap();
            for damage in ["Weights", "", "weights and more"] {
                fs::write(&path, damage).unwrap();
                assert_eq!(
                    (store.fetch(name).unwrap(), fs::read(&path).unwrap()),
                    (path.clone(), b"weights".to_vec())
                );
                let printed = notices.take();
                assert!(
                    printed.len() == 1 && printed[0].contains("is damaged: it is fetched anew"),
                    "{printed:?}"
                );
            }
            fs::write(&path, "Weights").unwrap();
            let error = store.clone().with_offline(true).fetch(name).unwrap_err().to_string();
            assert!(error.contains("damaged in the cache, and offline"), "{error}");
            store.remove(name).unwrap();
        }
    }

    #[test]
    fn what_does_not_come_is_one_message() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path()).with_offline(false);
        let error = store.fetch("hf:a/b/x.gguf").unwrap_err().to_string();
        assert!(error.contains("no way to a hub"), "{error}");
        let store = store.with_hub(std::sync::Arc::new(One::default()));
        let error = store.fetch("hf:a/b/x.gguf").unwrap_err().to_string();
        assert!(error.contains("says not found"), "{error}");
        let error = store.with_offline(true).fetch("hf:a/b/x.gguf").unwrap_err().to_string();
        assert!(error.contains("unset FORMWORK_OFFLINE"), "{error}");
    }
}
