use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use formwork_core::keywords::find;
use formwork_core::{
    Context, Contract, JsonPath, PathPattern, Report, Schema, Stage, Structure, Typed, Validator, Violation,
    is_old_draft, nearest,
};
use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{Draft, PatternOptions, ValidationError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::bounds::{Deepest, bounded, is_deeper, shallow};
use crate::places::missing;
use crate::shape::shape;
use crate::stepwise::{stepwise, vague};
use crate::subschema::subschema;
use crate::work::{MAX_ASKED, MAX_REPORTED, is_more_work};

/// Whether `format` rejects values. JSON Schema leaves it open; a contract that names a format means it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Formats {
    /// A known format rejects what does not have it; an unknown one rejects nothing. The default.
    #[default]
    Assert,
    /// Formats reject nothing.
    Annotate,
}

/// A schema that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("the schema cannot be used: #{pointer}: {message}")]
pub struct SchemaError {
    /// RFC 6901 JSON Pointer into the schema.
    pub pointer: String,
    /// The reason, and what to do.
    pub message: String,
}

/// A schema ready to validate.
///
/// It reports *all* violations, one root cause for each place, with the path, what was expected and what was found.
/// Where a value fits no variant of `anyOf` or `oneOf`, the variant that it was meant to be is told by its tags, and
/// that one's violations are reported. A number without a fraction (`612.0`) is an integer.
///
/// Validation is bounded, whatever the schema and the value: a value that is nested too deeply for the stack, or whose
/// way through the schema's unions has no end in sight, is not valid, and the violation says so.
pub struct Compiled {
    validator: jsonschema::Validator,
    /// The validator of the schema with its variants guarded, where one value can be more work than it is large.
    entangled: Option<jsonschema::Validator>,
    normal: Value,
    formats: Formats,
    deepest: Deepest,
}

/// Compiles a schema; the same document is compiled once per process.
///
/// # Errors
/// [`SchemaError`] if it is no JSON Schema, refers to something outside of itself, or is so large, so deep or so entangled
/// that work with it would have no bound.
pub fn compile(schema: &Value) -> Result<Arc<Compiled>, SchemaError> {
    compile_with(schema, Formats::default())
}

/// Compiles a schema, with a choice of what `format` means.
///
/// # Errors
/// As [`compile`].
pub fn compile_with(schema: &Value, formats: Formats) -> Result<Arc<Compiled>, SchemaError> {
    static CACHE: LazyLock<Mutex<Cache>> = LazyLock::new(Mutex::default);
    shallow(schema)?;
    let key = (formats, Sha256::digest(schema.to_string()).into());
    let cached = CACHE.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
    if let Some(compiled) = cached {
        return Ok(compiled);
    }
    let bounded = bounded(schema)?;
    let deepest = bounded.deepest();
    let validator = build(schema, formats)?;
    let entangled = bounded.guarded.as_ref().map(|guarded| build(guarded, formats)).transpose()?;
    let compiled = Compiled { validator, entangled, normal: bounded.normal, formats, deepest };
    let compiled = Arc::new(compiled);
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if cache.len() >= MAX_CACHED {
        cache.clear();
    }
    cache.insert(key, Arc::clone(&compiled));
    Ok(compiled)
}

/// Compiled schemas by the hash of their document.
type Cache = HashMap<(Formats, [u8; 32]), Arc<Compiled>>;

/// How many schemas are kept compiled: more than any program has, few enough for one that makes them up as it goes.
const MAX_CACHED: usize = 512;

/// How often a pattern with look-around may backtrack on one value.
const BACKTRACK_LIMIT: usize = 10_000;

pub(crate) fn build(schema: &Value, formats: Formats) -> Result<jsonschema::Validator, SchemaError> {
    if !schema.is_object() && !schema.is_boolean() {
        return Err(SchemaError {
            pointer: String::new(),
            message: "a schema is an object, or true or false".to_owned(),
        });
    }
    let options = || {
        let options = jsonschema::options()
            .offline()
            .should_validate_formats(formats == Formats::Assert)
            .should_ignore_unknown_formats(true);
        match schema.get("$schema") {
            None if is_old_draft(schema) => options.with_draft(Draft::Draft7),
            _ => options,
        }
    };
    options().with_pattern_options(PatternOptions::regex()).build(schema).or_else(|error| {
        let backtracking = PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_LIMIT);
        // The first error is the better one: the second try differs only in the patterns that it takes.
        options().with_pattern_options(backtracking).build(schema).map_err(|_| unusable(schema, &error))
    })
}

fn unusable(schema: &Value, error: &ValidationError<'_>) -> SchemaError {
    let pointer = error.instance_path().to_string();
    let message = match error.kind() {
        Kind::Referencing(reason) => match remote_reference(schema) {
            Some((pointer, uri)) => {
                let message = format!(
                    "`$ref` to another document ({uri}): nothing is fetched, copy its schema into `$defs`"
                );
                return SchemaError { pointer, message };
            }
            None => reason.to_string(),
        },
        kind => {
            let value = schema.pointer(&pointer).unwrap_or(&Value::Null);
            mistake(&pointer, kind, value).unwrap_or_else(|| crate::words::capped(&error.to_string()))
        }
    };
    SchemaError { pointer, message }
}

/// Returns what a keyword takes and what it has instead, where the schema of schemas says no more than that it is wrong.
fn mistake(pointer: &str, kind: &Kind, value: &Value) -> Option<String> {
    /// JSON Schema 2020-12 validation, section 6.1.1.
    const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

    if pointer.ends_with("/type") && matches!(kind, Kind::AnyOf { .. }) {
        let all = TYPES.join(", ");
        let mut words = value.as_array().into_iter().flatten().chain([value]).filter_map(Value::as_str);
        return Some(match words.find(|word| !TYPES.contains(word)) {
            Some(word) => match nearest(word, TYPES) {
                Some(meant) => format!("there is no type `{word}`: did you mean `{meant}`? There are {all}"),
                None => format!("there is no type {}; there are {all}", crate::words::shown(&word.into())),
            },
            None => format!(
                "expected a type or a list of different types ({all}), found {}",
                crate::words::shown(value)
            ),
        });
    }
    let is_told = matches!(
        kind,
        Kind::Type { .. } | Kind::Enum { .. } | Kind::Minimum { .. } | Kind::ExclusiveMinimum { .. }
    );
    is_told.then(|| {
        let (expected, found) = crate::shape::words(kind, value);
        format!("expected {expected}, found {found}")
    })
}

/// The first `$ref` that leads out of the document.
fn remote_reference(schema: &Value) -> Option<(String, String)> {
    let mut uri = None;
    let pointer = find(schema, |part| {
        uri = part.get("$ref").and_then(Value::as_str).filter(|uri| !uri.starts_with('#'));
        uri.is_some()
    })?;
    Some((format!("{pointer}/$ref"), crate::words::capped(uri?)))
}

impl Compiled {
    /// Whether a value satisfies the schema: the fast answer, without reasons.
    pub fn is_valid(&self, value: &Value) -> bool {
        self.unasked(value).is_none() && self.asked().is_valid(value)
    }

    /// The schema in the form of [`normalise`](formwork_core::normalise).
    pub const fn normal(&self) -> &Value {
        &self.normal
    }

    /// Returns the violation of a value that cannot be validated, because that has no bound.
    fn unasked(&self, value: &Value) -> Option<Violation> {
        if let Some(deepest) = self.deepest.asked
            && is_deeper(value, deepest)
        {
            let violation = Violation::new(JsonPath::root(), "depth", Stage::Schema);
            return Some(violation.with_expected(format!("at most {deepest} levels inside of each other")));
        }
        let is_endless = self.entangled.is_some() && is_more_work(&self.normal, value, true, MAX_ASKED);
        is_endless.then(|| vague(JsonPath::root(), value))
    }

    /// Returns the validator that says fastest whether a value is valid.
    fn asked(&self) -> &jsonschema::Validator {
        self.entangled.as_ref().unwrap_or(&self.validator)
    }
}

impl Validator for Compiled {
    fn validate(&self, value: &Value, _: &Context<'_>, out: &mut Report) {
        if let Some(violation) = self.unasked(value) {
            out.push(violation);
        } else if !self.asked().is_valid(value) {
            let is_deep = self.deepest.reported.is_some_and(|deepest| is_deeper(value, deepest));
            if is_deep || (self.entangled.is_some() && is_more_work(&self.normal, value, false, MAX_REPORTED))
            {
                stepwise(&self.normal, self.formats, self.deepest.reported, value, out);
            } else {
                shape(self.validator.iter_errors(value), value, out);
            }
        }
    }
}

impl Structure for Compiled {
    fn subschema(&self, path: &JsonPath, document: &Value) -> Option<Value> {
        subschema(&self.normal, path, document)
    }

    fn missing(&self, place: &PathPattern) -> Option<String> {
        missing(&self.normal, place)
    }
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled").finish_non_exhaustive()
    }
}

/// The contract of a Rust type: its schema, and that it deserialises.
///
/// # Errors
/// As [`compile`].
///
/// ```
/// #[derive(schemars::JsonSchema, serde::Deserialize)]
/// struct Person {
///     name: String,
///     age: u8,
/// }
///
/// let contract = formwork_schema::contract::<Person>()?;
/// assert_eq!(contract.schema().document()["required"], serde_json::json!(["name", "age"]));
/// # Ok::<(), formwork_schema::SchemaError>(())
/// ```
pub fn contract<T: JsonSchema + DeserializeOwned + Send + 'static>() -> Result<Contract, SchemaError> {
    Ok(contract_for(Arc::new(Typed::<T>::new()))?.with_type::<T>())
}

/// The contract of a schema alone.
///
/// # Errors
/// As [`compile`].
pub fn contract_for(schema: Arc<dyn Schema>) -> Result<Contract, SchemaError> {
    let structure = compile(schema.document())?;
    Ok(Contract::new(schema, structure))
}
