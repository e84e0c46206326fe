use std::fmt;

use formwork_json::{JsonPath, PathPattern};
use serde_json::Value;

use crate::Report;

/// The data beside the value that a validator may look at.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The text that the answer is about; empty if there is none.
    pub source: &'a str,
    /// The caller's own data; `null` if there is none.
    pub data: &'a Value,
}

impl Context<'_> {
    /// No text and no data.
    pub const EMPTY: Context<'static> = Context { source: "", data: &Value::Null };
}

/// Examines a value and reports *all* that is wrong with it.
///
/// Pure: no IO, no clock. What needs to wait is an async validator of the driver.
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
    /// Pushes every violation of `value` into `out`.
    fn validate(&self, value: &Value, cx: &Context<'_>, out: &mut Report);

    /// The values that it looks at. It runs only where nothing of these is wrong already; empty means the whole
    /// document.
    fn reads(&self) -> Vec<JsonPath> {
        Vec::new()
    }
}

impl<F: Fn(&Value, &Context<'_>, &mut Report) + Send + Sync> Validator for F {
    fn validate(&self, value: &Value, cx: &Context<'_>, out: &mut Report) {
        self(value, cx, out);
    }
}

/// A [`Validator`] that knows the structure of the whole document: the compiled schema of a contract.
pub trait Structure: Validator {
    /// The schema that governs the value at `path` of `document`, able to stand alone; `None` if nothing does.
    ///
    /// Where the schema has variants, the one that `document` chose counts.
    fn subschema(&self, path: &JsonPath, document: &Value) -> Option<Value>;

    /// Returns why no value of the schema can have anything at this place, with the nearest place that there is; `None`
    /// if one can, or if that is not known (the default).
    fn missing(&self, place: &PathPattern) -> Option<String> {
        let _ = place;
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
