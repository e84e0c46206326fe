//! The envelopes in which servers send error messages.

use serde_json::Value;

/// Returns the message of an error envelope (`{"error": {"message": …}}`, `{"error": "…"}`, `{"message": …}` or `{"detail":
/// …}`), or `None` for any other document.
///
/// ```
/// use formwork_wire::error_in;
/// use serde_json::json;
///
/// assert_eq!(error_in(&json!({"error": {"message": "no such model"}})).as_deref(), Some("no such model"));
/// assert_eq!(error_in(&json!({"choices": []})), None);
/// ```
pub fn error_in(document: &Value) -> Option<String> {
    let error = match document.get("error") {
        None | Some(Value::Null) => None,
        Some(Value::String(words)) => Some(words.clone()),
        Some(error) => Some(match error.get("message") {
            Some(Value::String(words)) => words.clone(),
            _ => error.to_string(),
        }),
    };
    error.or_else(|| {
        let object = document.get("object").and_then(Value::as_str) == Some("error");
        let member = document.get("message").or_else(|| document.get("detail"))?;
        let alone = document.as_object().is_some_and(|all| !all.contains_key("choices"));
        (object || alone).then(|| member.as_str().map_or_else(|| member.to_string(), str::to_owned))
    })
}

/// Returns the document of an error body, `null` for a body that is not JSON. Gemini sends an array with one document.
pub(super) fn document_of(body: &[u8]) -> Value {
    match serde_json::from_slice(body).unwrap_or_default() {
        Value::Array(mut all) if !all.is_empty() => all.swap_remove(0),
        document => document,
    }
}

/// Returns the message of an error: the message of a known envelope, else the body itself.
pub(super) fn message_of(document: &Value, body: &[u8]) -> String {
    error_in(document).unwrap_or_else(|| String::from_utf8_lossy(body).into_owned())
}

/// The maximum length of a code or of the name of a member, in bytes.
const MAX_NAME: usize = 128;

/// Returns a short text of an error of OpenAI's form, such as its `code`; `None` without one.
pub(super) fn name_in(document: &Value, member: &str) -> Option<Box<str>> {
    let name = document["error"][member].as_str()?;
    (1..=MAX_NAME).contains(&name.len()).then(|| name.into())
}
