//! Named contracts: files of a folder.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use formwork::contract::{ContractError, ENDINGS, NamedContract, read_contract};

use super::Spec;
use crate::engine::Engine;
use crate::problem::Problem;

/// The contracts of a folder, read again when their files change.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    read: Mutex<HashMap<PathBuf, Entry>>,
}

#[derive(Debug, Clone)]
struct Entry {
    /// The modification time of the file, and its length in bytes.
    stamp: (Option<SystemTime>, u64),
    contract: Result<Arc<NamedContract>, ContractError>,
    /// The error of the file, if the contract is its last version that could be used.
    problem: Option<ContractError>,
    /// The version before the last change since the service started.
    before: Option<Arc<NamedContract>>,
}

impl Entry {
    fn is_wrong(&self) -> bool {
        self.problem.is_some() || self.contract.is_err()
    }
}

impl Folder {
    /// Returns a folder, whose contracts are read. The versions that a running service has read stay known.
    pub(crate) fn new(path: PathBuf, running: Option<&Self>, engine: &Engine) -> Self {
        let same = running.filter(|running| running.path == path);
        let read = same.map(|running| running.read.lock().unwrap_or_else(PoisonError::into_inner).clone());
        let mut read = read.unwrap_or_default();
        // Another configuration may be able to use them.
        read.values_mut().filter(|entry| entry.is_wrong()).for_each(|entry| entry.stamp = (None, u64::MAX));
        let folder = Self { path, read: Mutex::new(read) };
        folder.problems(engine);
        folder
    }

    /// Returns the contract of this name. If its file is wrong, or the contract in it cannot be used, its last version stays in use.
    ///
    /// # Errors
    /// [`ContractError::Unknown`] for a name that no file has, or that would leave the folder.
    pub(crate) fn get(&self, name: &str, engine: &Engine) -> Result<Arc<NamedContract>, ContractError> {
        let path = self.file(name).ok_or_else(|| ContractError::Unknown(self.names()))?;
        let metadata = fs::metadata(&path).map_err(|error| ContractError::Unusable(error.to_string()))?;
        let stamp = (metadata.modified().ok(), metadata.len());
        let known = || self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = known().get(&path).filter(|entry| entry.stamp == stamp) {
            return entry.contract.clone();
        }
        // Other contracts are not held up by one that is compiled.
        let new = read_contract(&path).map(Arc::new).and_then(|new| {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            let unusable = |problem: Problem| ContractError::Unusable(format!("{file}: {}", problem.message));
            engine.check(&Spec::from(&*new)).map_err(unusable).map(|()| new)
        });
        let mut read = known();
        let known = read.get(&path);
        let last = known.and_then(|known| known.contract.clone().ok());
        let (contract, before, problem) = match (new, last) {
            (Err(error), Some(last)) => (Ok(last), known.and_then(|known| known.before.clone()), Some(error)),
            (new, last) => (new, last, None),
        };
        read.insert(path, Entry { stamp, contract: contract.clone(), problem, before });
        contract
    }

    /// Returns what is wrong with the file of a contract whose last version is in use.
    pub(crate) fn problem(&self, name: &str) -> Option<ContractError> {
        let path = self.file(name)?;
        self.read.lock().unwrap_or_else(PoisonError::into_inner).get(&path)?.problem.clone()
    }

    /// Reads all contracts. Returns a sentence for each whose file is wrong.
    pub(crate) fn problems(&self, engine: &Engine) -> Vec<String> {
        let problem = |name: String| match (self.get(&name, engine), self.problem(&name)) {
            (Err(problem), _) => Some(format!("the contract {name} cannot be used: {problem}")),
            (Ok(_), Some(problem)) => Some(format!("the contract {name} stays as it was: {problem}")),
            (Ok(_), None) => None,
        };
        self.names().into_iter().filter_map(problem).collect()
    }

    /// Returns the version of a contract before its last change, if it was read since the service started.
    pub(crate) fn before(&self, name: &str) -> Option<Arc<NamedContract>> {
        let path = self.file(name)?;
        self.read.lock().unwrap_or_else(PoisonError::into_inner).get(&path)?.before.clone()
    }

    /// Returns the file of a name. A name has letters, digits, `_`, `-` and `.`, and does not begin with a dot, so it has no
    /// separators; a symbolic link that leads out of the folder is no contract.
    fn file(&self, name: &str) -> Option<PathBuf> {
        let is_name = |name: &str| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
            (1..=128).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(is_plain)
        };
        if !is_name(name) {
            return None;
        }
        let folder = self.path.canonicalize().ok()?;
        ENDINGS.iter().find_map(|ending| {
            let path = folder.join(format!("{name}.{ending}")).canonicalize().ok()?;
            (path.starts_with(&folder) && path.is_file()).then_some(path)
        })
    }

    /// Returns the names of all contracts, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let files = fs::read_dir(&self.path).into_iter().flatten().flatten().map(|entry| entry.path());
        let contracts = files.filter(|path| {
            path.extension()
                .and_then(|ending| ending.to_str())
                .is_some_and(|ending| ENDINGS.contains(&ending))
        });
        let mut names: Vec<_> = contracts
            .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
            .filter(|name| self.file(name).is_some())
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}
