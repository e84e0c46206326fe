use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use formwork_core::{
    Context, Contract, JsonPath, PathPattern, Report, Schema, Stage, Structure, Typed, Validator, Violation,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::bounds::{
    Deepest, MAX_REPORTED_WORK, MAX_WORK, bounded, is_deeper, is_more_work, shallow, stepwise, vague,
};
use crate::build::{Formats, build};
use crate::error::SchemaError;
use crate::places::missing;
use crate::shape::shape;
use crate::subschema::subschema;

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
        let is_endless = self.entangled.is_some() && is_more_work(&self.normal, value, true, MAX_WORK);
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
            if is_deep
                || (self.entangled.is_some() && is_more_work(&self.normal, value, false, MAX_REPORTED_WORK))
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
