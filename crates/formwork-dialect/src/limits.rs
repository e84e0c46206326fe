//! How large a written schema is, for providers that count.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::profile::Limits;

/// From so many values on a list has a limit of its own.
pub(crate) const LONG_LIST: usize = 250;

/// What is counted in a schema.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) properties: usize,
    pub(crate) depth: usize,
    pub(crate) values: usize,
    pub(crate) characters: usize,
    /// Of the longest of the long lists.
    pub(crate) list_characters: usize,
}

impl Size {
    pub(crate) fn of(schema: &Value) -> Self {
        let mut size = Self { depth: depth(schema, schema, &mut BTreeSet::new()), ..Self::default() };
        size.count(schema);
        size
    }

    fn count(&mut self, schema: &Value) {
        let Value::Object(keywords) = schema else { return };
        for (keyword, value) in keywords {
            match (keyword.as_str(), value) {
                ("properties" | "$defs" | "definitions", Value::Object(named)) => {
                    if keyword == "properties" {
                        self.properties += named.len();
                    }
                    self.characters += named.keys().map(|name| name.chars().count()).sum::<usize>();
                    named.values().for_each(|schema| self.count(schema));
                }
                ("enum", Value::Array(values)) => {
                    let characters: usize = values.iter().map(length).sum();
                    self.values += values.len();
                    self.characters += characters;
                    if values.len() > LONG_LIST {
                        self.list_characters = self.list_characters.max(characters);
                    }
                }
                ("const", value) => self.characters += length(value),
                ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                    schemas.iter().for_each(|schema| self.count(schema));
                }
                ("items" | "additionalProperties" | "not" | "if" | "then" | "else", schema) => {
                    self.count(schema)
                }
                _ => {}
            }
        }
    }

    /// The first limit that is broken: what there is too much of, how much there is, and how much may be.
    pub(crate) fn over(&self, limits: &Limits) -> Option<(&'static str, usize, usize)> {
        [
            ("properties", self.properties, limits.properties),
            ("levels of nesting", self.depth, limits.depth),
            ("listed values", self.values, limits.values),
            ("characters in names and listed values", self.characters, limits.characters),
            ("characters in one list of values", self.list_characters, limits.list_characters),
        ]
        .into_iter()
        .find(|(_, size, most)| size > most)
    }
}

fn length(value: &Value) -> usize {
    value.as_str().map_or_else(|| value.to_string().len(), |text| text.chars().count())
}

/// How many objects and arrays stand inside each other; a definition counts where it is used, inside itself once.
fn depth<'s>(schema: &'s Value, root: &'s Value, within: &mut BTreeSet<&'s str>) -> usize {
    let Value::Object(keywords) = schema else { return 0 };
    let mut deepest = 0;
    if let Some(pointer) = keywords.get("$ref").and_then(Value::as_str)
        && let Some(target) = pointer.strip_prefix('#').and_then(|pointer| root.pointer(pointer))
        && within.insert(pointer)
    {
        deepest = depth(target, root, within);
        within.remove(pointer);
    }
    let mut inside = 0;
    let mut is_container = false;
    for (keyword, value) in keywords {
        match (keyword.as_str(), value) {
            ("anyOf" | "oneOf" | "allOf", Value::Array(schemas)) => {
                deepest = schemas.iter().map(|schema| depth(schema, root, within)).fold(deepest, usize::max);
            }
            ("properties", Value::Object(named)) => {
                is_container = true;
                inside = named.values().map(|schema| depth(schema, root, within)).fold(inside, usize::max);
            }
            ("prefixItems", Value::Array(schemas)) => {
                is_container = true;
                inside = schemas.iter().map(|schema| depth(schema, root, within)).fold(inside, usize::max);
            }
            ("items" | "additionalProperties", schema) => {
                is_container = true;
                inside = inside.max(depth(schema, root, within));
            }
            _ => {}
        }
    }
    deepest.max(if is_container { inside + 1 } else { 0 })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_is_counted_once_and_depth_goes_through_references() {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/x"}, "b": {"type": "array", "items": {"enum": ["one", 2]}}},
            "$defs": {"x": {"type": "object", "properties": {"cc": {"anyOf": [{"$ref": "#/$defs/x"}, {"const": "é"}]}}}},
        });
        let size = Size::of(&schema);
        assert_eq!(
            size,
            Size {
                properties: 3,
                depth: 2,
                values: 2,
                characters: 1 + 1 + 1 + 2 + 4 + 1,
                list_characters: 0
            }
        );
        let limits = Limits { properties: 9, depth: 1, values: 9, characters: 99, list_characters: 9 };
        assert_eq!(size.over(&limits), Some(("levels of nesting", 2, 1)));
    }
}
