use std::cell::RefCell;
use std::collections::HashMap;

use formwork_core::Lowered;
use serde_json::Value;

use crate::pattern::Matcher;

/// Converts a valid value to the answer that a provider with this lowered schema would give: the inverse of
/// [`lift`](formwork_core::lift).
///
/// It is [`formwork_core::lower_value`] with patterns. A pattern that cannot be translated matches every text.
///
/// ```
/// use formwork_core::{LowerRequest, Lower, lift};
/// use formwork_dialect::{Native, lower_value};
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "additionalProperties": {"type": "integer"}});
/// let lowered = Native::OPENAI.lower(&LowerRequest::new(&schema))?;
/// let sent = lower_value(&json!({"a": 1}), &lowered).unwrap();
/// assert_eq!(sent, json!({"value": [{"key": "a", "value": 1}]}));
/// assert_eq!(lift(sent, &lowered), (json!({"a": 1}), vec![]));
/// # Ok::<(), formwork_core::Refused>(())
/// ```
pub fn lower_value(value: &Value, lowered: &Lowered) -> Option<Value> {
    let known: RefCell<HashMap<String, Option<Matcher>>> = RefCell::default();
    let matches = |pattern: &str, text: &str| {
        let mut known = known.borrow_mut();
        let matcher = known.entry(pattern.to_owned()).or_insert_with(|| Matcher::of(pattern));
        matcher.as_ref().is_none_or(|matcher| matcher.matches(text))
    };
    formwork_core::lower_value(value, lowered, &matches)
}
