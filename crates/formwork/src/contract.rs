//! Named contracts: files with a schema, rules, members that a text may lack, instructions and examples.

use std::fs;
use std::path::Path;

use formwork_core::{Absent, Coerce, RULES, Rule, Schema as _};
use formwork_json::{Rounded, line_column, read_exact};
use formwork_review::document::{Document, DocumentError, Format};
use formwork_schema::wrapped;
use formwork_shape::Shape;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::Places;

/// The maximum size of the file of a contract in bytes (1 MiB).
const MAX: u64 = 1 << 20;

/// The endings of the files of contracts, in the order in which a folder is searched for a name.
pub const ENDINGS: [&str; 4] = ["yaml", "yml", "json", "shape"];

/// A contract of a file: a JSON Schema (`.json`), a shape (`.shape`), or YAML with `schema`, `rules`, `absent` ([`Absent`]),
/// `coerce` ([`Coerce`]), `instructions`, `examples` and `evidence` ([`Places`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NamedContract {
    /// Its name: that of the file, without its ending.
    #[serde(skip)]
    pub name: String,
    /// The schema of the answer, with the marks of `absent` and `coerce`.
    pub schema: Value,
    /// Rules beside the schema.
    pub rules: Vec<Rule>,
    /// Instructions for the model, as a system message.
    pub instructions: Option<String>,
    /// Inputs with their right answers.
    pub examples: Vec<(String, Value)>,
    /// The search for the places of the values by `formwork extract` (default: that of the configuration). The service and
    /// batches search and ask for no quotes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Places>,
    /// The fractions of the file that were rounded to a double (default: none).
    #[serde(skip)]
    pub rounded: Vec<Rounded>,
}

/// The reason why a contract cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContractError {
    /// There is no such contract; the names that there are.
    #[error("there is no such contract; there are {}", .0.join(", "))]
    Unknown(Vec<String>),
    /// Its file cannot be read: the file and the reason.
    #[error("{0}")]
    Unusable(String),
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Written {
    schema: Value,
    #[serde(default)]
    #[schemars(with = "Vec<Value>")]
    rules: Vec<Rule>,
    #[serde(default)]
    #[schemars(with = "Value")]
    absent: Option<Absent>,
    #[serde(default)]
    #[schemars(with = "Value")]
    coerce: Option<Coerce>,
    instructions: Option<String>,
    #[serde(default)]
    examples: Vec<Example>,
    evidence: Option<Places>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Example {
    input: String,
    output: Value,
}

/// Removes the rules in `x-formwork-rules` from a schema, which may have a wrapper around it, and returns them.
///
/// # Errors
/// A message for a value that is no list of rules.
///
/// ```
/// let mut schema = serde_json::json!({"x-formwork-rules": [{"rule": "grounded", "target": "$.name"}]});
/// assert_eq!(formwork::contract::take_rules(&mut schema)?.len(), 1);
/// assert_eq!(schema, serde_json::json!({}));
/// # Ok::<(), String>(())
/// ```
pub fn take_rules(schema: &mut Value) -> Result<Vec<Rule>, String> {
    let pointer = wrapped(schema).unwrap_or_default();
    let inner = schema.pointer_mut(&pointer).and_then(Value::as_object_mut);
    let Some(rules) = inner.and_then(|schema| schema.remove(RULES)) else { return Ok(Vec::new()) };
    serde_json::from_value(rules).map_err(|error| format!("{RULES}: {error}"))
}

/// Reads a contract from its file.
///
/// # Errors
/// [`ContractError::Unusable`] with the file and the reason.
///
/// ```
/// use std::path::Path;
///
/// let contract = formwork::contract::read_contract(Path::new("../../examples/person.schema.json"))?;
/// assert_eq!(contract.name, "person.schema");
/// assert_eq!(contract.schema["type"], "object");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_contract(path: &Path) -> Result<NamedContract, ContractError> {
    let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let unusable = |reason: String| ContractError::Unusable(format!("{file_name}: {reason}"));
    let length = fs::metadata(path).map_err(|error| unusable(error.to_string()))?.len();
    if length > MAX {
        return Err(unusable(format!("a contract has at most {MAX} bytes")));
    }
    let text = fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
    // A byte order mark is no part of the text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let plain = |schema| Written { schema, ..Written::default() };
    let mut rounded = Vec::new();
    let mut written = match ending {
        "json" => {
            let document = read_exact(text).map_err(|error| {
                let (line, column) = line_column(text, error.at().unwrap_or(0));
                ContractError::Unusable(format!("{file_name}:{line}:{column}: {error}"))
            })?;
            rounded = document.rounded;
            plain(document.value)
        }
        "shape" => {
            let shape =
                Shape::parse(text).map_err(|error| ContractError::Unusable(error.pointed(&file_name)))?;
            plain(shape.document().clone())
        }
        _ => {
            // Only this reader knows the digits of numbers in YAML. Its errors name the file.
            let unusable = |error: DocumentError| ContractError::Unusable(error.to_string());
            let document = Document::parse(&file_name, text, Format::Yaml).map_err(unusable)?;
            rounded = document.rounded().to_vec();
            document.read().map_err(unusable)?
        }
    };
    if let Value::String(shape) = &written.schema {
        let shape =
            Shape::parse(shape).map_err(|error| ContractError::Unusable(error.pointed(&file_name)))?;
        written.schema = shape.document().clone();
    }
    written.rules.extend(take_rules(&mut written.schema).map_err(unusable)?);
    if let Some(absent) = written.absent.take() {
        absent.declare(&mut written.schema);
    }
    if let Some(coerce) = written.coerce.take() {
        coerce.declare(&mut written.schema);
    }
    let Written { schema, rules, instructions, examples, evidence, .. } = written;
    let examples = examples.into_iter().map(|example| (example.input, example.output)).collect();
    Ok(NamedContract { name, schema, rules, instructions, examples, evidence, rounded })
}
