use formwork_json::JsonPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Lowered, Stage, Violation};

/// How the values that one node of the lowered schema governs are mapped back to the original schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LiftOp {
    /// RFC 6901 JSON Pointer of the node in [`Lowered::schema`].
    pub at: String,
    /// What is done to every value there.
    pub lift: Lift,
}

/// What is done to a value to map it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Lift {
    /// The value is the one member of this name. A value that is not wrapped is taken as it is.
    Unwrap(String),
    /// These members of an object, where they are `null`, were meant as absent.
    DropNull(Vec<String>),
    /// An array of `{"key", "value"}` was meant as an object.
    PairsToMap,
    /// A string was meant as the JSON that it holds.
    ParseJson,
    /// An object's members are put into this order.
    Reorder(Vec<String>),
}

/// Maps an answer back to the original schema, inner values first.
///
/// It follows the lowered schema, through `$ref` and into the variant of `anyOf` that the value took. What cannot be
/// mapped (a string that should hold JSON and does not, a key that stands twice) stays as it is and is reported.
///
/// ```
/// use formwork_core::{Lift, LiftOp, Lowered, lift};
/// use serde_json::json;
///
/// let lowered = Lowered {
///     schema: Some(json!({"type": "object", "properties": {"nick": {"type": ["string", "null"]}}, "required": ["nick"]})),
///     lift: vec![LiftOp { at: String::new(), lift: Lift::DropNull(vec!["nick".into()]) }],
///     ..Lowered::default()
/// };
/// assert_eq!(lift(json!({"nick": null}), &lowered), (json!({}), vec![]));
/// ```
pub fn lift(mut value: Value, lowered: &Lowered) -> (Value, Vec<Violation>) {
    let mut problems = Vec::new();
    if let Some(schema) = lowered.schema.as_ref().filter(|_| !lowered.lift.is_empty()) {
        let lifter = Lifter { schema, ops: &lowered.lift };
        lifter.walk(&mut value, String::new(), &JsonPath::root(), &mut problems, 0);
    }
    (value, problems)
}

struct Lifter<'a> {
    schema: &'a Value,
    ops: &'a [LiftOp],
}

impl Lifter<'_> {
    fn walk(
        &self,
        value: &mut Value,
        at: String,
        path: &JsonPath,
        problems: &mut Vec<Violation>,
        jumps: usize,
    ) {
        let Some(node) = self.schema.pointer(&at) else { return };
        if jumps < MAX_JUMPS {
            if let Some(target) = node["$ref"].as_str().and_then(|target| target.strip_prefix('#')) {
                self.walk(value, target.to_owned(), path, problems, jumps + 1);
            }
            for keyword in ["anyOf", "oneOf"] {
                let Some(variants) = node[keyword].as_array() else { continue };
                if let Some(taken) = variants.iter().position(|variant| self.fits(value, variant, 0)) {
                    self.walk(value, format!("{at}/{keyword}/{taken}"), path, problems, jumps + 1);
                }
            }
        }
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    let place = if node["properties"].get(name).is_some() {
                        format!("{at}/properties/{}", escape(name))
                    } else {
                        format!("{at}/additionalProperties")
                    };
                    self.walk(member, place, &path.key(name.as_str()), problems, 0);
                }
            }
            Value::Array(items) => {
                let prefix = node["prefixItems"].as_array().map_or(0, Vec::len);
                for (index, item) in items.iter_mut().enumerate() {
                    let place = if index < prefix {
                        format!("{at}/prefixItems/{index}")
                    } else {
                        format!("{at}/items")
                    };
                    self.walk(item, place, &path.index(index), problems, 0);
                }
            }
            _ => {}
        }
        for op in self.ops.iter().filter(|op| op.at == at) {
            if let Err((rule, expected, found)) = op.lift.apply(value) {
                let problem = Violation::new(path.clone(), rule, Stage::Read);
                problems.push(problem.with_expected(expected).with_found(found));
            }
        }
    }

    /// Whether a value looks like this variant: by type, constants and the names that it has.
    fn fits(&self, value: &Value, variant: &Value, jumps: usize) -> bool {
        if let Some(target) = variant["$ref"].as_str().and_then(|target| target.strip_prefix('#')) {
            let target = self.schema.pointer(target).filter(|_| jumps < MAX_JUMPS);
            return target.is_some_and(|target| self.fits(value, target, jumps + 1));
        }
        let constant = variant.get("const").is_none_or(|constant| constant == value);
        let listed = variant["enum"].as_array().is_none_or(|values| values.contains(value));
        let typed = match &variant["type"] {
            Value::String(name) => is_type(value, name),
            Value::Array(names) => names.iter().filter_map(Value::as_str).any(|name| is_type(value, name)),
            _ => true,
        };
        let members = value.as_object().is_none_or(|members| {
            let required = variant["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            required.clone().all(|name| members.contains_key(name))
                && members.iter().all(|(name, member)| {
                    let property = &variant["properties"][name];
                    property.get("const").is_none_or(|constant| constant == member)
                        && property["enum"].as_array().is_none_or(|values| values.contains(member))
                })
        });
        constant && listed && typed && members
    }
}

/// How many references and variants are followed without a step into the value: what ends `{"$ref": "#"}`.
const MAX_JUMPS: usize = 32;

fn is_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        _ => false,
    }
}

fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

impl Lift {
    /// Changes the value; what is wrong with it as (rule, expected, found) if that cannot be done.
    fn apply(&self, value: &mut Value) -> Result<(), (&'static str, &'static str, String)> {
        match (self, &mut *value) {
            (Self::Unwrap(key), Value::Object(members)) if members.len() == 1 => {
                if let Some(inner) = members.remove(key) {
                    *value = inner;
                }
            }
            (Self::DropNull(keys), Value::Object(members)) => {
                members.retain(|name, member| !(member.is_null() && keys.contains(name)));
            }
            (Self::PairsToMap, Value::Array(pairs)) => {
                let mut members = Map::new();
                for pair in pairs {
                    let (Some(key), Some(inner)) = (pair["key"].as_str(), pair.get("value")) else {
                        return Ok(());
                    };
                    if members.insert(key.to_owned(), inner.clone()).is_some() {
                        return Err(("uniqueKeys", "each key once", key.to_owned()));
                    }
                }
                *value = Value::Object(members);
            }
            (Self::ParseJson, Value::String(text)) => match serde_json::from_str(text) {
                Ok(parsed) => *value = parsed,
                Err(error) => return Err(("json", "a string that holds JSON", error.to_string())),
            },
            (Self::Reorder(keys), Value::Object(members)) => {
                let mut ordered = Map::new();
                for key in keys {
                    ordered.extend(members.shift_remove_entry(key));
                }
                ordered.append(members);
                *members = ordered;
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lifted(value: Value, schema: Value, ops: &[(&str, Lift)]) -> (Value, Vec<Violation>) {
        let ops = ops.iter().map(|(at, lift)| LiftOp { at: (*at).to_owned(), lift: lift.clone() });
        lift(value, &Lowered { schema: Some(schema), lift: ops.collect(), ..Lowered::default() })
    }

    #[test]
    fn a_recursive_schema_is_followed_as_deep_as_the_value_goes() {
        let schema = json!({
            "$ref": "#/$defs/node",
            "$defs": {"node": {"type": "object", "properties": {
                "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
            }, "required": ["next"]}},
        });
        let ops = [("/$defs/node", Lift::DropNull(vec!["next".into()]))];
        let value = json!({"next": {"next": {"next": null}}});
        assert_eq!(lifted(value, schema, &ops).0, json!({"next": {"next": {}}}));
    }

    #[test]
    fn the_variant_that_the_value_took_is_lifted() {
        let variant = |tag: &str| json!({"type": "object", "properties": {"kind": {"const": tag}, "x": {}}, "required": ["kind", "x"]});
        let schema = json!({"anyOf": [variant("a"), variant("b")]});
        let ops = [("/anyOf/1/properties/x", Lift::ParseJson)];
        assert_eq!(
            lifted(json!({"kind": "b", "x": "[1]"}), schema.clone(), &ops).0,
            json!({"kind": "b", "x": [1]})
        );
        assert_eq!(
            lifted(json!({"kind": "a", "x": "[1]"}), schema, &ops).0,
            json!({"kind": "a", "x": "[1]"})
        );
    }

    #[test]
    fn pairs_become_a_map_and_a_double_key_is_reported() {
        let schema = json!({"type": "object", "properties": {"m": {"type": "array"}}});
        let ops = [("/properties/m", Lift::PairsToMap)];
        let pairs = json!({"m": [{"key": "a", "value": 1}, {"key": "b", "value": 2}]});
        assert_eq!(lifted(pairs, schema.clone(), &ops).0, json!({"m": {"a": 1, "b": 2}}));
        let double = json!({"m": [{"key": "a", "value": 1}, {"key": "a", "value": 2}]});
        let (value, problems) = lifted(double.clone(), schema, &ops);
        assert_eq!(
            (value, problems[0].to_string().as_str()),
            (double, "uniqueKeys at $.m: expected each key once, found a")
        );
    }

    #[test]
    fn a_wrapped_root_is_unwrapped_after_its_inside() {
        let schema = json!({"type": "object", "properties": {"value": {"type": "array", "items": {"type": "string"}}}});
        let ops = [("", Lift::Unwrap("value".into())), ("/properties/value/items", Lift::ParseJson)];
        assert_eq!(lifted(json!({"value": ["1", "{}"]}), schema.clone(), &ops).0, json!([1, {}]));
        assert_eq!(lifted(json!([2]), schema, &ops).0, json!([2]));
    }

    #[test]
    fn members_are_reordered_and_unknown_ones_stay_last() {
        let ops = [("", Lift::Reorder(vec!["score".into(), "parts".into()]))];
        let (value, _) = lifted(json!({"parts": 1, "x": 2, "score": 3}), json!({}), &ops);
        assert_eq!(value.to_string(), r#"{"score":3,"parts":1,"x":2}"#);
    }

    #[test]
    fn a_schema_that_refers_to_itself_alone_ends() {
        let ops = [("/properties/a", Lift::ParseJson)];
        assert_eq!(lifted(json!({"a": "1"}), json!({"$ref": "#"}), &ops).0, json!({"a": "1"}));
    }
}
