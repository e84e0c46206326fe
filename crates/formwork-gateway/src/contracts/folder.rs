//! Named contracts: files of a folder.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use formwork_core::{Rule, Schema as _};
use formwork_shape::Shape;
use serde::Deserialize;
use serde_json::Value;

/// The most bytes of a contract's file.
const MAX: u64 = 1 << 20;

/// The endings of contracts, in the order in which they are looked for.
const ENDINGS: [&str; 4] = ["yaml", "yml", "json", "shape"];

/// The member of a schema that holds its rules.
const RULES: &str = "x-formwork-rules";

/// A contract of a file: a JSON Schema (`.json`), a shape (`.shape`), or YAML with `schema`, `rules`, `instructions` and
/// `examples`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct NamedContract {
    /// Its name: that of the file, without its ending.
    pub name: String,
    /// The schema of the answer.
    pub schema: Value,
    /// Rules beside the schema.
    pub rules: Vec<Rule>,
    /// Instructions for the model, as a system message.
    pub instructions: Option<String>,
    /// Inputs with their right answers.
    pub examples: Vec<(String, Value)>,
}

/// The reason why a contract cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContractError {
    /// There is no such contract; the names that there are.
    Unknown(Vec<String>),
    /// Its file cannot be read: the file and the reason.
    Unusable(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    schema: Value,
    #[serde(default)]
    rules: Vec<Rule>,
    #[serde(default)]
    instructions: Option<String>,
    #[serde(default)]
    examples: Vec<Example>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Example {
    input: String,
    output: Value,
}

/// Reads a contract from its file.
///
/// # Errors
/// [`ContractError::Unusable`] with the file and the reason.
pub fn read_contract(path: &Path) -> Result<NamedContract, ContractError> {
    let shown = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let unusable = |reason: String| ContractError::Unusable(format!("{shown}: {reason}"));
    let length = fs::metadata(path).map_err(|error| unusable(error.to_string()))?.len();
    if length > MAX {
        return Err(unusable(format!("a contract has at most {MAX} bytes")));
    }
    let text = fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let plain = |schema| Written { schema, rules: Vec::new(), instructions: None, examples: Vec::new() };
    let mut written = match ending {
        "json" => plain(serde_json::from_str(&text).map_err(|error| unusable(error.to_string()))?),
        "shape" => {
            let shape =
                Shape::parse(&text).map_err(|error| ContractError::Unusable(error.pointed(&shown)))?;
            plain(shape.document().clone())
        }
        _ => serde_saphyr::from_str(&text).map_err(|error| unusable(error.to_string()))?,
    };
    if let Value::String(shape) = &written.schema {
        let shape = Shape::parse(shape).map_err(|error| ContractError::Unusable(error.pointed(&shown)))?;
        written.schema = shape.document().clone();
    }
    if let Some(rules) = written.schema.as_object_mut().and_then(|schema| schema.remove(RULES)) {
        let own: Vec<Rule> =
            serde_json::from_value(rules).map_err(|error| unusable(format!("{RULES}: {error}")))?;
        written.rules.extend(own);
    }
    let Written { schema, rules, instructions, examples } = written;
    let examples = examples.into_iter().map(|example| (example.input, example.output)).collect();
    Ok(NamedContract { name, schema, rules, instructions, examples })
}

/// The contracts of a folder, read again when their files change.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    read: Mutex<HashMap<PathBuf, Entry>>,
}

#[derive(Debug, Clone)]
struct Entry {
    /// When the file was changed, and its length.
    stamp: (Option<SystemTime>, u64),
    contract: Result<Arc<NamedContract>, ContractError>,
}

impl Folder {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, read: Mutex::default() }
    }

    /// Returns the contract of this name.
    ///
    /// # Errors
    /// [`ContractError::Unknown`] for a name that no file has, or that would leave the folder.
    pub(crate) fn get(&self, name: &str) -> Result<Arc<NamedContract>, ContractError> {
        let path = self.file(name).ok_or_else(|| ContractError::Unknown(self.names()))?;
        let metadata = fs::metadata(&path).map_err(|error| ContractError::Unusable(error.to_string()))?;
        let stamp = (metadata.modified().ok(), metadata.len());
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = read.get(&path).filter(|entry| entry.stamp == stamp) {
            return entry.contract.clone();
        }
        let contract = read_contract(&path).map(Arc::new);
        read.insert(path, Entry { stamp, contract: contract.clone() });
        contract
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
