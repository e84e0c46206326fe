//! The way from a document to what a model would have to send for it: the inverse of lifting, for tests.

use formwork_core::{Lift, Lowered};
use serde_json::{Map, Value, json};

/// What is sent for a document; `None` if nothing is.
pub(crate) fn unlift(document: &Value, lowered: &Lowered) -> Option<Value> {
    let work = Unlifter { sent: lowered.schema.as_ref()?, lowered };
    let value = work.node("", document)?;
    valid(work.sent, work.sent, &value).then_some(value)
}

/// Whether a value satisfies a part of a schema.
fn valid(part: &Value, whole: &Value, value: &Value) -> bool {
    let mut part = part.clone();
    if let (Some(keywords), Some(definitions)) = (part.as_object_mut(), whole.get("$defs")) {
        keywords.insert("$defs".to_owned(), definitions.clone());
    }
    formwork_schema::compile(&part).unwrap().is_valid(value)
}

struct Unlifter<'a> {
    sent: &'a Value,
    lowered: &'a Lowered,
}

impl Unlifter<'_> {
    fn node(&self, at: &str, value: &Value) -> Option<Value> {
        let node = self.sent.pointer(at)?;
        if let Some(target) = node["$ref"].as_str() {
            return self.node(target.strip_prefix('#')?, value);
        }
        if let Some(variants) = node["anyOf"].as_array() {
            return variants.iter().enumerate().find_map(|(index, variant)| {
                let inner = self.node(&format!("{at}/anyOf/{index}"), value)?;
                valid(variant, self.sent, &inner).then_some(inner)
            });
        }
        let mut value = value.clone();
        let lifts: Vec<&Lift> =
            self.lowered.lift.iter().filter(|op| op.at == at).map(|op| &op.lift).collect();
        for lift in lifts.iter().rev() {
            undo(lift, &lifts, node, &mut value)?;
        }
        match &mut value {
            Value::Object(members) => {
                let mut ordered = Map::new();
                for (name, _) in node["properties"].as_object().into_iter().flatten() {
                    if let Some(member) = members.shift_remove(name) {
                        let step = name.replace('~', "~0").replace('/', "~1");
                        ordered.insert(name.clone(), self.node(&format!("{at}/properties/{step}"), &member)?);
                    }
                }
                for (name, member) in std::mem::take(members) {
                    let place = format!("{at}/additionalProperties");
                    let inner = if node["additionalProperties"].is_object() {
                        self.node(&place, &member)?
                    } else {
                        member
                    };
                    ordered.insert(name, inner);
                }
                *members = ordered;
            }
            Value::Array(items) => {
                let prefix = node["prefixItems"].as_array().map_or(0, Vec::len);
                for (index, item) in items.iter_mut().enumerate() {
                    let place = if index < prefix {
                        format!("{at}/prefixItems/{index}")
                    } else {
                        format!("{at}/items")
                    };
                    if self.sent.pointer(&place).is_some() {
                        *item = self.node(&place, item)?;
                    }
                }
            }
            _ => {}
        }
        Some(value)
    }
}

/// Does the opposite of one operation; `None` if the value is nothing that it could have led to.
fn undo(lift: &Lift, all: &[&Lift], node: &Value, value: &mut Value) -> Option<()> {
    match lift {
        Lift::Unwrap(key) => *value = json!({key: value}),
        Lift::ParseJson => *value = json!(value.to_string()),
        Lift::PairsToMap => {
            let members = value.as_object()?;
            *value = members.iter().map(|(key, value)| json!({"key": key, "value": value})).collect();
        }
        Lift::Tuple(keys) => {
            let items = value.as_array()?;
            (items.len() == keys.len()).then_some(())?;
            *value = keys.iter().cloned().zip(items.iter().cloned()).collect();
        }
        Lift::DropNull(keys) => {
            let members = value.as_object_mut()?;
            for key in keys {
                members.entry(key.clone()).or_insert(Value::Null);
            }
        }
        Lift::Rename(names) => {
            let members = value.as_object_mut()?;
            for (name, member) in std::mem::take(members) {
                let sent = names.iter().find(|(_, original)| *original == name).map(|(sent, _)| sent.clone());
                members.insert(sent.unwrap_or(name), member);
            }
        }
        Lift::Spread(key) => {
            let renamed = all.iter().find_map(|lift| match lift {
                Lift::Rename(names) => Some(names.iter().map(|(_, original)| original.clone()).collect()),
                _ => None,
            });
            let known: Vec<String> = renamed.unwrap_or_else(|| {
                node["properties"].as_object().into_iter().flat_map(Map::keys).cloned().collect()
            });
            let members = value.as_object_mut()?;
            let (mine, others): (Map<_, _>, Map<_, _>) = std::mem::take(members)
                .into_iter()
                .partition(|(name, _)| known.contains(name) && name != key);
            *members = mine;
            members.insert(key.clone(), Value::Object(others));
        }
        Lift::Reorder(_) => drop(value.as_object()?),
        other => panic!("{other:?}"),
    }
    Some(())
}
