use serde::de::DeserializeOwned;
use serde_json::{Number, Value};

use crate::{JsonPath, Segment, Stage, Violation};

/// Returns the place and reason of a decoding error.
pub(crate) fn undecodable<T: DeserializeOwned>(value: &Value) -> Violation {
    use serde_path_to_error::Segment as At;
    let Err(error) = serde_path_to_error::deserialize::<_, T>(value) else {
        return Violation::new(JsonPath::root(), "type", Stage::Type);
    };
    let path = error.path().iter().filter_map(|segment| match segment {
        At::Seq { index } => Some(Segment::Index(*index)),
        At::Map { key } => Some(Segment::Key(key.clone())),
        At::Enum { .. } | At::Unknown => None,
    });
    Violation::new(path.collect(), "type", Stage::Type).with_found(error.inner().to_string())
}

/// Decodes a JSON value into a Rust type. A number without a fraction (`612.0`, `6.12e2`) decodes as an integer, as JSON
/// Schema defines it.
///
/// # Errors
/// serde's error, if the value does not fit the type.
///
/// ```
/// let pages: u16 = formwork_core::decode(&serde_json::json!(612.0))?;
/// assert_eq!(pages, 612);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn decode<T: DeserializeOwned>(value: &Value) -> Result<T, serde_json::Error> {
    T::deserialize(value).or_else(|error| match integral(value) {
        Some(value) => T::deserialize(value),
        None => Err(error),
    })
}

/// Returns a copy with every integral fraction written as an integer; `None` if there is none.
fn integral(value: &Value) -> Option<Value> {
    /// The bound below which a float holds every integer exactly (2^53).
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < EXACT)?;
            Some(Value::Number(Number::from(float as i64)))
        }
        Value::Array(items) => {
            let changed: Vec<_> = items.iter().map(integral).collect();
            changed.iter().any(Option::is_some).then(|| {
                changed.into_iter().zip(items).map(|(new, old)| new.unwrap_or_else(|| old.clone())).collect()
            })
        }
        Value::Object(members) => {
            let changed: Vec<_> = members.values().map(integral).collect();
            changed.iter().any(Option::is_some).then(|| {
                let pairs = changed.into_iter().zip(members);
                Value::Object(
                    pairs
                        .map(|(new, (name, old))| (name.clone(), new.unwrap_or_else(|| old.clone())))
                        .collect(),
                )
            })
        }
        _ => None,
    }
}
