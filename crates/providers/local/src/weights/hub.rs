use std::fs;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use super::download::Source;
use super::{Store, noted};
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

/// The prefix of every name of a file on a hub.
const SCHEME: &str = "hf:";

/// The folder of files from hubs, below the cache folder.
const FOLDER: &str = "hub";

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

    /// Returns the place below the cache folder.
    pub(super) fn place(&self) -> PathBuf {
        Path::new(FOLDER).join(&self.repository).join(&self.revision).join(&self.file)
    }

    fn source(&self) -> Source<'_> {
        Source {
            name: self.path(),
            place: self.place(),
            sha256: self.sha256.as_deref(),
            another: "the file is another one than expected".to_owned(),
            by_hand: None,
        }
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

/// Returns the path of the file, if it is in the cache.
///
/// # Errors
/// [`LocalError::Weights`] if the file in the cache has another hash than the name.
pub(super) fn cached(store: &Store, file: &HubFile) -> Result<Option<PathBuf>, LocalError> {
    let place = store.folder().join(file.place());
    let Some(found) = noted(&place).filter(|_| place.is_file()) else { return Ok(None) };
    file.source().check(&found).map(|()| Some(place))
}

/// Returns the file from the cache, or from the hub of the store.
pub(super) fn fetch(store: &Store, file: &HubFile) -> Result<PathBuf, LocalError> {
    cached(store, file)?;
    file.source().fetch(store, |_, to| {
        let failed = |reason: String| LocalError::weights(&file.path(), reason);
        let Some(hub) = &store.hub else {
            let reason = "not in the cache, and there is no way to a hub here: download it and pass its path";
            return Err(failed(reason.to_owned()));
        };
        let mut report = |done, total: Option<u64>| store.report("downloading", done, total.unwrap_or(0));
        hub.download(&file.path(), to, &mut report).map_err(failed)
    })
}

/// Returns every file in the cache with its name, in the order of names.
pub(super) fn list(store: &Store) -> Vec<(String, PathBuf)> {
    let root = store.folder().join(FOLDER);
    let mut open = vec![root.clone()];
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "gguf")
                && noted(&path).is_some()
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::Hub;
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
        let notices = crate::weights::progress::tests::Notices::default();
        let store = Store::at(folder.path()).with_offline(false).with_hub(hub.clone());
        let store = store.with_progress(notices.clone());
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
            assert!(error.contains("is damaged, and offline"), "{error}");
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
