use std::fmt;
use std::sync::Arc;

use formwork_json::{JsonPath, PathPattern};
use serde_json::Value;

use crate::Report;

/// The data besides the value that a validator may use.
///
/// ```
/// use formwork_core::{Context, Report, Validator};
/// use serde_json::{Value, json};
///
/// let known_customer = |value: &Value, cx: &Context<'_>, out: &mut Report| {
///     let known = cx.data["customers"].as_array().is_some_and(|all| all.contains(&value["customer"]));
///     assert!(known && out.is_empty());
/// };
/// let cx = Context { source: "Order of Maria", data: &json!({"customers": ["Maria"]}) };
/// known_customer.validate(&json!({"customer": "Maria"}), &cx, &mut Report::default());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The text that the answer is about; empty if there is none.
    pub source: &'a str,
    /// The caller's own data; `null` if there is none.
    pub data: &'a Value,
}

impl Context<'_> {
    /// The context without text and data.
    pub const EMPTY: Context<'static> = Context { source: "", data: &Value::Null };
}

/// Examines a value and reports *all* its violations.
///
/// A validator is pure: no IO, no clock. A check that has to wait is an async validator of the driver instead.
///
/// A closure `Fn(&Value, &Context, &mut Report)` is a validator too.
///
/// ```
/// use formwork_core::{Context, Report, Stage, Validator, Violation};
/// use serde_json::{Value, json};
///
/// struct Adult;
///
/// impl Validator for Adult {
///     fn validate(&self, value: &Value, _: &Context<'_>, out: &mut Report) {
///         if value["age"].as_u64().is_some_and(|age| age < 18) {
///             let path = "$.age".parse().unwrap();
///             out.push(Violation::new(path, "adult", Stage::Check).with_expected("at least 18"));
///         }
///     }
/// }
///
/// let mut report = Report::default();
/// Adult.validate(&json!({"age": 17}), &Context::EMPTY, &mut report);
/// assert_eq!(report.violations()[0].to_string(), "adult at $.age: expected at least 18");
/// ```
pub trait Validator: Send + Sync {
    /// Adds every violation of `value` to `out`.
    fn validate(&self, value: &Value, cx: &Context<'_>, out: &mut Report);

    /// Returns the paths of the values that the validator reads (default: empty, the whole document). It runs only if these
    /// values have no violation yet.
    fn reads(&self) -> Vec<JsonPath> {
        Vec::new()
    }
}

impl<F: Fn(&Value, &Context<'_>, &mut Report) + Send + Sync> Validator for F {
    fn validate(&self, value: &Value, cx: &Context<'_>, out: &mut Report) {
        self(value, cx, out);
    }
}

/// The facts about a member that a schema names in `properties`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Member {
    /// Whether the schema requires the member.
    pub is_required: bool,
    /// Whether `null` may be a value of the member; `true` in doubtful cases.
    pub allows_null: bool,
    /// Whether a text may lack the member, see [`Absent`](crate::Absent).
    pub may_be_absent: bool,
}

/// A [`Validator`] of the whole document that also knows its structure: the compiled schema of a contract.
///
/// ```
/// use formwork_core::{Context, JsonPath, Report, Stage, Structure, Validator, Violation};
/// use serde_json::{Value, json};
///
/// /// `{"age": integer}`.
/// struct Person;
///
/// impl Validator for Person {
///     fn validate(&self, value: &Value, _: &Context<'_>, out: &mut Report) {
///         if !value["age"].is_u64() {
///             out.push(Violation::new(JsonPath::root().key("age"), "type", Stage::Schema));
///         }
///     }
/// }
///
/// impl Structure for Person {
///     fn subschema(&self, path: &JsonPath, _: &Value) -> Option<Value> {
///         (path.to_string() == "$.age").then(|| json!({"type": "integer"}))
///     }
/// }
/// ```
pub trait Structure: Validator {
    /// Returns a self-contained schema for the value at `path` of `document`; `None` if no part of the schema describes it.
    ///
    /// If the schema has variants there, the variant that `document` follows is returned.
    fn subschema(&self, path: &JsonPath, document: &Value) -> Option<Value>;

    /// Returns what the schema says about the member of `document` at `path`, which may be missing; `None` if the schema does not name
    /// it in `properties` (default: `None`, so that `null` never counts as absent).
    fn member(&self, path: &JsonPath, document: &Value) -> Option<Member> {
        let _ = (path, document);
        None
    }

    /// Returns the names of the members that a [text may lack](crate::Absent) and that the object at `path` lacks: a list for each variant
    /// of a union there that the object may follow (default: none).
    fn lacking(&self, path: &JsonPath, document: &Value) -> Vec<Vec<String>> {
        let _ = (path, document);
        Vec::new()
    }

    /// Returns the reason why no value of the schema can have anything at this place, with the nearest existing place;
    /// `None` if a value can, or if that is unknown (default: `None`).
    fn missing(&self, place: &PathPattern) -> Option<String> {
        let _ = place;
        None
    }

    /// Returns another schema, compiled with the same settings; `None` if that is not possible (default: `None`). A
    /// [`Reader`](crate::Reader) judges parts of an unfinished document by it.
    fn compiled(&self, schema: &Value) -> Option<Arc<dyn Structure>> {
        let _ = schema;
        None
    }
}

impl fmt::Debug for dyn Validator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Validator")
    }
}

impl fmt::Debug for dyn Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Structure")
    }
}
