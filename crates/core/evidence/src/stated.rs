//! Values that state something.

use serde_json::Value;

/// Returns whether a value states something: not null, and not an empty text, list or object.
///
/// ```
/// use formwork_evidence::is_stated;
/// use serde_json::json;
///
/// assert!(is_stated(Some(&json!(0))) && !is_stated(Some(&json!(""))) && !is_stated(None));
/// ```
pub fn is_stated(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(members)) => !members.is_empty(),
        Some(_) => true,
    }
}
