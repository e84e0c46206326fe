//! The configuration files that may run programs although the user did not name them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::find;

/// The list of files that the user trusts to run programs. A file whose contents change is no longer trusted.
///
/// The list is the file `trusted` in the configuration folder of the user. Each line has the SHA-256 digest of a file in
/// hexadecimal, a space, and its absolute path.
///
/// ```
/// use formwork::config::TrustedFiles;
///
/// let folder = std::env::temp_dir().join(format!("formwork-doc-trust-{}", std::process::id()));
/// std::fs::create_dir_all(&folder)?;
/// let file = folder.join("formwork.toml");
/// std::fs::write(&file, "targets = []")?;
/// let trusted = TrustedFiles::at(folder.join("trusted"));
/// trusted.add(&file)?;
/// assert!(trusted.contains(&file, "targets = []") && !trusted.contains(&file, "changed"));
/// assert!(trusted.remove(&file)?);
/// # std::fs::remove_dir_all(folder)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct TrustedFiles(PathBuf);

impl TrustedFiles {
    /// Returns the list of the current user, or `None` if the user has no configuration folder.
    pub fn of_user() -> Option<Self> {
        find::user_folder().map(|folder| Self(folder.join("trusted")))
    }

    /// Returns the list in a file, which does not have to exist.
    pub const fn at(file: PathBuf) -> Self {
        Self(file)
    }

    /// Returns whether a file is trusted with these contents.
    pub fn contains(&self, file: &Path, text: &str) -> bool {
        let Ok(path) = file.canonicalize() else { return false };
        let entry = line(&path, text);
        fs::read_to_string(&self.0).is_ok_and(|list| list.lines().any(|line| line == entry))
    }

    /// Adds a file with its current contents, and removes its earlier entry.
    ///
    /// # Errors
    /// [`io::Error`] if the file cannot be read or the list cannot be written.
    pub fn add(&self, file: &Path) -> io::Result<()> {
        let path = file.canonicalize()?;
        let text = fs::read_to_string(&path)?;
        self.rewrite(&path, Some(line(&path, &text)))
    }

    /// Removes a file, and returns whether it was on the list.
    ///
    /// # Errors
    /// [`io::Error`] if the list cannot be written.
    pub fn remove(&self, file: &Path) -> io::Result<bool> {
        // A file that no longer exists can be removed from the list.
        let path = file.canonicalize().or_else(|_| std::path::absolute(file))?;
        let before = fs::read_to_string(&self.0).unwrap_or_default();
        self.rewrite(&path, None)?;
        Ok(before.lines().any(|line| of(line, &path)))
    }

    fn rewrite(&self, path: &Path, new: Option<String>) -> io::Result<()> {
        let before = match fs::read_to_string(&self.0) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let kept = before.lines().filter(|line| !of(line, path)).map(ToOwned::to_owned);
        let text: String = kept.chain(new).map(|line| line + "\n").collect();
        if let Some(folder) = self.0.parent() {
            fs::create_dir_all(folder)?;
        }
        // The new list replaces the old one by a rename, so that another process never reads a partial list.
        let draft = self.0.with_extension(format!("{}.new", std::process::id()));
        fs::write(&draft, text)?;
        fs::rename(&draft, &self.0)
    }
}

fn line(path: &Path, text: &str) -> String {
    let digest: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{digest} {}", path.display())
}

fn of(line: &str, path: &Path) -> bool {
    line.split_once(' ').is_some_and(|(_, of)| of == path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::TrustedFiles;

    #[test]
    fn a_file_is_trusted_with_its_contents_until_they_change_or_it_is_removed() {
        let folder = std::env::temp_dir().join(format!("formwork-trust-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let files = TrustedFiles::at(folder.join("deep/trusted"));
        let (one, other) = (folder.join("one.toml"), folder.join("other.toml"));
        std::fs::write(&one, "a = 1").unwrap();
        std::fs::write(&other, "b = 1").unwrap();
        assert!(!files.contains(&one, "a = 1") && !files.remove(&one).unwrap());
        files.add(&one).unwrap();
        files.add(&other).unwrap();
        assert!(files.contains(&one, "a = 1") && files.contains(&other, "b = 1"));
        assert!(!files.contains(&one, "a = 2") && !files.contains(&other, "a = 1"));
        std::fs::write(&one, "a = 2").unwrap();
        files.add(&one).unwrap();
        assert!(files.contains(&one, "a = 2") && !files.contains(&one, "a = 1"));
        assert!(files.remove(&one).unwrap() && !files.contains(&one, "a = 2"));
        assert!(files.contains(&other, "b = 1"), "the others stay");
        assert!(files.add(&folder.join("none.toml")).is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
