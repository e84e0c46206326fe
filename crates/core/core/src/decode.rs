use serde::de::DeserializeOwned;
use serde_json::{Number, Value};
use serde_path_to_error::Segment as At;

use crate::{JsonPath, Segment, Stage, Violation};

/// Returns the place and reason of a decoding error.
pub(crate) fn undecodable<T: DeserializeOwned>(value: &Value) -> Violation {
    let Err(error) = serde_path_to_error::deserialize::<_, T>(value) else {
        return Violation::new(JsonPath::root(), "type", Stage::Type);
    };
    let path = error.path().iter().filter_map(|segment| match segment {
        At::Seq { index } => Some(Segment::Index(*index)),
        At::Map { key } => Some(Segment::Key(key.clone())),
        At::Enum { .. } | At::Unknown => None,
    });
    let (reason, violation) =
        (error.inner().to_string(), Violation::new(path.collect(), "type", Stage::Type));
    // serde writes `invalid value: integer `300`, expected u8`. The first part has the value.
    match reason.rsplit_once(", expected ") {
        Some((found, expected)) => violation.with_expected(expected).with_found(found),
        None => violation.with_found(reason),
    }
}

/// Decodes a JSON value into a Rust type. Where the type has an integer, a number without a fraction (`612.0`, `6.12e2`) decodes as
/// one, as JSON Schema defines it; in all items of a list if in one. serde does not say which numbers of flattened members and untagged
/// enums have to be integers: if one has to be, all of them are.
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
    /// The maximum number of places that are changed one after the other; beyond it, all are.
    const MAX_PLACES: usize = 64;
    T::deserialize(value).or_else(|error| {
        let Some(all) = integral(value) else { return Err(error) };
        let mut value = value.clone();
        for _ in 0..MAX_PLACES {
            match serde_path_to_error::deserialize::<_, T>(&value) {
                Ok(decoded) => return Ok(decoded),
                Err(at) => {
                    let steps: Vec<_> = at.path().iter().collect();
                    if !make_integral(&mut value, &steps) {
                        return Err(error);
                    }
                }
            }
        }
        T::deserialize(all)
    })
}

/// Writes the integral fractions at a path as integers, in all items of the lists on its way. Returns whether there are any.
fn make_integral(value: &mut Value, steps: &[&At]) -> bool {
    match (steps.split_first(), value) {
        (Some((At::Seq { .. }, rest)), Value::Array(items)) => {
            items.iter_mut().filter_map(|item| make_integral(item, rest).then_some(())).count() > 0
        }
        (Some((At::Map { key }, rest)), Value::Object(members)) => {
            members.get_mut(key).is_some_and(|member| make_integral(member, rest))
        }
        (Some((At::Seq { .. } | At::Map { .. }, _)), _) => false,
        (_, value) => integral(value).map(|integers| *value = integers).is_some(),
    }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(untagged)]
    enum Number {
        Integer(i64),
        Float(f64),
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Page {
        pages: u32,
        #[serde(default)]
        counts: Vec<u8>,
        #[serde(default)]
        readings: Vec<Number>,
        #[serde(default)]
        extra: BTreeMap<String, Value>,
    }

    #[test]
    fn a_value_that_a_type_cannot_hold_has_what_the_type_expects() {
        for (value, says) in [
            (json!({"pages": -1}), "Type mismatch at $.pages: expected u32"),
            (json!({"pages": 1, "counts": [1, 300]}), "Type mismatch at $.counts[1]: expected u8"),
            (json!({"pages": 1, "readings": ["x"]}), "Type mismatch at $.readings[0]"),
        ] {
            let found = undecodable::<Page>(&value);
            assert_eq!(found.masked(), found.masked().replace("300", ""), "values are masked");
            assert!(found.to_string().starts_with(says), "{found}");
        }
    }

    #[test]
    fn only_numbers_that_have_to_be_integers_become_integers() {
        let decoded = |pages: Value, counts: Value| {
            let value = json!({
                "pages": pages, "counts": counts, "readings": [1.0, 2.5, 3], "extra": {"price": 4.0},
            });
            decode::<Page>(&value).map_err(|error| error.to_string())
        };
        let expected = decoded(json!(12), json!([1, 2, 3])).unwrap();
        assert_eq!(expected.readings[0], Number::Float(1.0));
        for (pages, counts) in [
            (json!(12.0), json!([1, 2, 3])),
            (json!(12), json!([1, 2.0, 3.0])),
            (json!(1.2e1), json!([1.0, 2.0, 3])),
        ] {
            assert_eq!(decoded(pages, counts).as_ref(), Ok(&expected));
        }
        assert!(decoded(json!(12.5), json!([])).is_err());
        assert!(decoded(json!(12.0), json!([1.5])).is_err());
        let many = json!({"pages": 1, "extra": {}, "counts": vec![7.0; 1000]});
        assert_eq!(decode::<Page>(&many).unwrap().counts, vec![7; 1000]);
        let map: Value = (0..200).map(|nth| (format!("k{nth}"), json!(f64::from(nth)))).collect();
        assert_eq!(decode::<BTreeMap<String, u32>>(&map).unwrap()["k199"], 199);
    }
}
