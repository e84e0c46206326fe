use formwork_core::{JsonPath, Segment, unescape};
use jsonschema::ValidationError;
use serde_json::Value;

/// Returns the path of an error. The document distinguishes names from indexes: in the error's pointer both may be `0`.
pub(crate) fn path(error: &ValidationError<'_>, document: &Value) -> JsonPath {
    let mut rest = error.instance_path().as_str();
    let mut path = JsonPath::root();
    while let Some(from) = rest.strip_prefix('/') {
        let (step, after) = from.split_at(from.bytes().position(|byte| byte == b'/').unwrap_or(from.len()));
        // Most steps are names, for which the document is not needed.
        let index = if step.bytes().all(|byte| byte.is_ascii_digit()) { step.parse().ok() } else { None };
        let index = index.filter(|_| path.get(document).is_some_and(Value::is_array));
        path.push(index.map_or_else(|| Segment::Key(unescape(step).into_owned()), Segment::Index));
        rest = after;
    }
    path
}
