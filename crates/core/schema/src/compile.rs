use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use formwork_core::{
    COERCE, Coerce, Context, Contract, Inline, JsonPath, Member, PathPattern, RULES, Report, Rule, Schema,
    Stage, Structure, Validator, Violation, absence_mistake, coercion_mistake, declares_absence,
};
use schemars::JsonSchema;
use serde::Deserialize as _;
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
use crate::subschema::{lacking, member, subschema};

/// A compiled JSON Schema.
///
/// Validation reports *all* violations, one root cause for each path, with the expected and the found value. If a value
/// fits no variant of `anyOf` or `oneOf`, its tags select the intended variant, whose violations are reported. A number
/// without a fraction (`612.0`) is an integer.
///
/// A member with the mark `x-formwork-absent` ([`formwork_core::Absent`]) is required and may be `null`.
///
/// Validation is bounded for every schema and value: a value that is nested too deeply for the stack, or that would take
/// too many comparisons with the schema's unions, is invalid, and the violation says so.
///
/// ```
/// use formwork_core::{Context, Report, Structure, Validator};
/// use serde_json::json;
///
/// let schema = json!({"properties": {"age": {"type": "integer", "minimum": 0}}, "required": ["age"]});
/// let compiled = formwork_schema::compile(&schema)?;
/// assert!(compiled.is_valid(&json!({"age": 34.0})));
///
/// let mut report = Report::default();
/// compiled.validate(&json!({"age": -1}), &Context::EMPTY, &mut report);
/// assert_eq!(report.violations()[0].detail(), "expected at least 0, found -1");
/// # Ok::<(), formwork_schema::SchemaError>(())
/// ```
pub struct Compiled {
    validator: jsonschema::Validator,
    /// The validator of the schema with guarded variants, if one value can take more work than its size suggests.
    entangled: Option<jsonschema::Validator>,
    normal: Value,
    formats: Formats,
    deepest: Deepest,
}

/// Compiles a schema. The result is cached: the same document is compiled once per process.
///
/// # Errors
/// [`SchemaError`], if the document is not a JSON Schema, refers to another document, or exceeds the [bounds](crate#bounds)
/// on size, depth and references.
///
/// ```
/// use serde_json::json;
///
/// assert!(formwork_schema::compile(&json!({"type": "string"}))?.is_valid(&json!("Lisbon")));
/// let error = formwork_schema::compile(&json!({"minimum": "3"})).unwrap_err();
/// assert_eq!(error.pointer, "/minimum");
/// # Ok::<(), formwork_schema::SchemaError>(())
/// ```
pub fn compile(schema: &Value) -> Result<Arc<Compiled>, SchemaError> {
    compile_with(schema, Formats::default())
}

/// Compiles a schema like [`compile`], with a choice of what `format` means.
///
/// # Errors
/// The errors of [`compile`].
///
/// ```
/// use formwork_schema::{Formats, compile_with};
/// use serde_json::json;
///
/// let (schema, value) = (json!({"format": "date"}), json!("tomorrow"));
/// assert!(!compile_with(&schema, Formats::Assert)?.is_valid(&value));
/// assert!(compile_with(&schema, Formats::Annotate)?.is_valid(&value));
/// # Ok::<(), formwork_schema::SchemaError>(())
/// ```
pub fn compile_with(schema: &Value, formats: Formats) -> Result<Arc<Compiled>, SchemaError> {
    static CACHE: LazyLock<Mutex<Cache>> = LazyLock::new(Mutex::default);
    shallow(schema)?;
    let key = (formats, Sha256::digest(schema.to_string()).into());
    let cached = CACHE.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
    if let Some(compiled) = cached {
        return Ok(compiled);
    }
    let bounded = bounded(schema)?;
    if let Some((pointer, message)) = absence_mistake(schema) {
        let path = schema.pointer(&pointer).and_then(Value::as_str).and_then(|path| path.parse().ok());
        let nearest = path.and_then(|path| missing(&bounded.normal, &path));
        return Err(SchemaError { pointer, message: nearest.unwrap_or(message) });
    }
    if let Some((pointer, message)) = coercion_mistake(schema) {
        return Err(SchemaError { pointer, message });
    }
    if let Some(Ok(places)) = Coerce::of(schema)
        && let Some(message) = places.paths().find_map(|path| missing(&bounded.normal, path))
    {
        return Err(SchemaError { pointer: format!("/{COERCE}"), message });
    }
    let deepest = bounded.deepest();
    let mut validator = build(schema, formats)?;
    if declares_absence(schema) {
        // In the normal form, marked members are required and nullable.
        validator = build(&bounded.normal, formats)?;
    }
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

/// Compiled schemas, by the hash of their document.
type Cache = HashMap<(Formats, [u8; 32]), Arc<Compiled>>;

/// The maximum number of cached schemas: enough for any fixed set of schemas, and a limit for programs that generate them.
const MAX_CACHED: usize = 512;

impl Compiled {
    /// Returns whether a value satisfies the schema, without reasons and faster than validation.
    pub fn is_valid(&self, value: &Value) -> bool {
        self.exceeded_limit(value).is_none() && self.checker().is_valid(value)
    }

    /// Returns the schema in the form of [`normalise`](formwork_core::normalise).
    pub const fn normal(&self) -> &Value {
        &self.normal
    }

    /// Returns the violation of a value that cannot be validated within the bounds.
    fn exceeded_limit(&self, value: &Value) -> Option<Violation> {
        if let Some(deepest) = self.deepest.validated
            && is_deeper(value, deepest)
        {
            let violation = Violation::new(JsonPath::root(), "depth", Stage::Schema);
            return Some(violation.with_expected(format!("at most {deepest} nested levels")));
        }
        let is_endless = self.entangled.is_some() && is_more_work(&self.normal, value, true, MAX_WORK);
        is_endless.then(|| vague(JsonPath::root(), value))
    }

    /// Returns the fastest validator without reasons.
    fn checker(&self) -> &jsonschema::Validator {
        self.entangled.as_ref().unwrap_or(&self.validator)
    }
}

impl Validator for Compiled {
    fn validate(&self, value: &Value, _: &Context<'_>, out: &mut Report) {
        if let Some(violation) = self.exceeded_limit(value) {
            out.push(violation);
        } else if !self.checker().is_valid(value) {
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

    fn member(&self, path: &JsonPath, document: &Value) -> Option<Member> {
        member(&self.normal, path, document)
    }

    fn lacking(&self, path: &JsonPath, document: &Value) -> Vec<Vec<String>> {
        lacking(&self.normal, path, document)
    }

    fn missing(&self, place: &PathPattern) -> Option<String> {
        missing(&self.normal, place)
    }

    fn compiled(&self, schema: &Value) -> Option<Arc<dyn Structure>> {
        let compiled = compile_with(schema, self.formats).ok()?;
        Some(compiled)
    }
}

formwork_core::debug_fields!(Compiled {});

/// Creates the contract of a Rust type: an answer has to satisfy its schema and deserialise.
///
/// # Errors
/// The errors of [`compile`].
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
    Ok(contract_for(Arc::new(Inline::of::<T>()))?.with_type::<T>())
}

/// Creates the contract of a schema without a Rust type. The rules in `x-formwork-rules` become rules of the contract, and are no part
/// of its schema.
///
/// # Errors
/// The errors of [`compile`], and one for rules that cannot be read.
///
/// ```
/// use std::sync::Arc;
/// use formwork_core::{Context, Inline};
/// use serde_json::json;
///
/// let schema = Inline::new("age", json!({"type": "integer"}));
/// let contract = formwork_schema::contract_for(Arc::new(schema))?;
/// assert!(contract.judge(&json!(34), &Context::EMPTY).is_accepted());
/// # Ok::<(), formwork_schema::SchemaError>(())
/// ```
pub fn contract_for(schema: Arc<dyn Schema>) -> Result<Contract, SchemaError> {
    let Some(rules) = schema.document().get(RULES) else {
        let structure = compile(schema.document())?;
        return Ok(Contract::new(schema, structure));
    };
    let rules = Vec::<Rule>::deserialize(rules).map_err(|error| SchemaError {
        pointer: format!("/{RULES}"),
        message: format!("{error}: expected a list of rules"),
    })?;
    let mut document = schema.document().clone();
    document.as_object_mut().map(|document| document.remove(RULES));
    let schema = Inline::new(schema.name(), document);
    let structure = compile(schema.document())?;
    Ok(rules.into_iter().fold(Contract::new(Arc::new(schema), structure), Contract::with_rule))
}
