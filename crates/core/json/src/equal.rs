use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Returns whether two values are equal by JSON Schema (2020-12 core, section 4.2.2): numbers are compared by value, so
/// that `1` equals `1.0`, and the order of members is ignored.
///
/// ```
/// use formwork_json::is_same;
/// use serde_json::json;
///
/// assert!(is_same(&json!({"a": 1, "b": [2.0]}), &json!({"b": [2], "a": 1.0})));
/// assert!(!is_same(&json!(9_007_199_254_740_993_u64), &json!(9_007_199_254_740_992.0)));
/// ```
pub fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => compare(one, other).is_eq(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, one)| other.get(name).is_some_and(|other| is_same(one, other)))
        }
        _ => one == other,
    }
}

/// Compares two numbers by value. Integers are compared exactly, also with a float.
///
/// ```
/// use std::cmp::Ordering;
///
/// use formwork_json::compare;
///
/// assert_eq!(compare(&u64::MAX.into(), &(u64::MAX - 1).into()), Ordering::Greater);
/// ```
pub fn compare(one: &Number, other: &Number) -> Ordering {
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => float(one).total_cmp(&float(other)),
    }
}

/// Returns the number as an integer, if it has no fraction and fits into 128 bits.
fn whole(number: &Number) -> Option<i128> {
    /// 2 to the power of 127.
    const BEYOND: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;

    number.as_i128().or_else(|| {
        let float = number.as_f64()?;
        (float.fract() == 0.0 && float.abs() < BEYOND).then_some(float as i128)
    })
}

/// Returns the number as a float, with negative zero as zero.
fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or_default() + 0.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_compared_by_their_value() {
        let number = |value: Value| match value {
            Value::Number(number) => number,
            other => unreachable!("{other}"),
        };
        let big = 9_007_199_254_740_993_u64;
        let ascending = [
            json!(f64::MIN),
            json!(i64::MIN),
            json!(-1.5),
            json!(-1),
            json!(0),
            json!(0.5),
            json!(1),
            json!(big - 1),
            json!(big),
            json!(u64::MAX),
            json!(1e300),
        ]
        .map(number);
        for (at, one) in ascending.iter().enumerate() {
            for (other_at, other) in ascending.iter().enumerate() {
                assert_eq!(compare(one, other), at.cmp(&other_at), "{one} {other}");
            }
        }
        for (one, other) in
            [(json!(1), json!(1.0)), (json!(0), json!(-0.0)), (json!(big - 1), json!((big - 1) as f64))]
        {
            assert_eq!(
                compare(&number(one.clone()), &number(other.clone())),
                Ordering::Equal,
                "{one} {other}"
            );
        }
        assert_eq!(compare(&number(json!(big)), &number(json!(big as f64))), Ordering::Greater);
    }
}
