//! The accepted values of the arguments of a function, as the benchmark of function arguments compares them.

use serde_json::Value;

/// Returns whether each member is one of the accepted values of its name, and each name without an accepted absence is there.
pub(crate) fn is_accepted(value: &Value, accepted: &Value) -> bool {
    let (Some(members), Some(names)) = (value.as_object(), accepted.as_object()) else { return false };
    let may_be_absent =
        |values: &Value| values.as_array().is_some_and(|values| values.iter().any(|one| one == ""));
    members.iter().all(|(name, value)| is_accepted_member(name, value, accepted))
        && names.iter().all(|(name, values)| members.contains_key(name) || may_be_absent(values))
}

/// Returns whether a member is one of the accepted values of its name.
pub(crate) fn is_accepted_member(name: &str, value: &Value, accepted: &Value) -> bool {
    let values = accepted.get(name).and_then(Value::as_array);
    values.is_some_and(|values| values.iter().any(|one| is_equal(value, one)))
}

/// Compares as the benchmark does: texts by their lower-case letters without spaces and ` ,./-_*^`, numbers by their value, and
/// members of nested objects by their lists of accepted values.
fn is_equal(value: &Value, accepted: &Value) -> bool {
    match (value, accepted) {
        (Value::String(value), Value::String(accepted)) => letters(value) == letters(accepted),
        (Value::Number(value), Value::Number(accepted)) => value.as_f64() == accepted.as_f64(),
        (Value::Array(values), Value::Array(accepted)) => {
            values.len() == accepted.len()
                && values.iter().zip(accepted).all(|(value, one)| is_equal(value, one))
        }
        (Value::Object(_), Value::Object(_)) => is_accepted(value, accepted),
        _ => value == accepted,
    }
}

fn letters(text: &str) -> String {
    let letters = text.chars().filter(|letter| !" ,./-_*^".contains(*letter));
    letters.flat_map(char::to_lowercase).map(|letter| if letter == '\'' { '"' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::is_accepted;

    #[test]
    fn a_value_counts_where_each_member_is_accepted_and_none_is_missing() {
        let accepted =
            json!({"base": [10], "unit": ["units", ""], "names": [["A", "b c"]], "of": [{"x": [1, 2]}]});
        let value = |unit| json!({"base": 10.0, "unit": unit, "names": ["a", "B_C"], "of": {"x": 2}});
        assert!(is_accepted(&value("Units"), &accepted));
        assert!(!is_accepted(&value("cm"), &accepted));
        for (change, is_right) in [
            (json!({"unit": null}), true),
            (json!({"base": null}), false),
            (json!({"base": 11}), false),
            (json!({"names": ["a"]}), false),
            (json!({"of": {"x": 3}}), false),
            (json!({"other": 1}), false),
        ] {
            let mut changed = value("units");
            let members = changed.as_object_mut().unwrap();
            for (name, value) in change.as_object().unwrap() {
                members.insert(name.clone(), value.clone());
            }
            members.retain(|_, value| !value.is_null());
            assert_eq!(is_accepted(&changed, &accepted), is_right, "{changed}");
        }
    }
}
