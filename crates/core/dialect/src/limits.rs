//! Measures a written schema, for providers with limits.

use foldhash::HashMap;
use formwork_core::keywords::{At, parts, target};
use serde_json::{Map, Value};

use crate::profile::Limits;

/// The minimum number of enumerated values of a list with a limit of its own.
pub(crate) const LONG_LIST: usize = 250;

/// The size of a schema.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) properties: usize,
    pub(crate) depth: usize,
    pub(crate) values: usize,
    pub(crate) characters: usize,
    /// The number of characters in the longest of the long lists.
    pub(crate) list_characters: usize,
    pub(crate) optional: usize,
    pub(crate) unions: usize,
}

impl Size {
    pub(crate) fn of(schema: &Value) -> Self {
        let mut depth = Depth { root: schema, known: HashMap::default() };
        let mut size = Self { depth: depth.once(schema), ..Self::default() };
        size.count(schema);
        size
    }

    fn count(&mut self, schema: &Value) {
        let Value::Object(keywords) = schema else { return };
        let length = |keyword: &str| keywords.get(keyword).and_then(Value::as_array).map_or(0, Vec::len);
        let named = keywords.get("properties").and_then(Value::as_object).map_or(0, Map::len);
        self.optional += named.saturating_sub(length("required"));
        self.unions += usize::from(keywords.contains_key("anyOf") || length("type") > 1);
        for (keyword, value) in keywords {
            match (keyword.as_str(), value) {
                ("properties" | "$defs" | "definitions", Value::Object(named)) => {
                    if keyword == "properties" {
                        self.properties += named.len();
                    }
                    self.characters += named.keys().map(|name| name.chars().count()).sum::<usize>();
                }
                ("enum", Value::Array(values)) => {
                    let characters: usize = values.iter().map(characters_of).sum();
                    self.values += values.len();
                    self.characters += characters;
                    if values.len() > LONG_LIST {
                        self.list_characters = self.list_characters.max(characters);
                    }
                }
                ("const", value) => self.characters += characters_of(value),
                _ => {}
            }
        }
        parts(schema).for_each(|part| self.count(part.schema));
    }

    /// Returns the first exceeded limit: its name, the actual value and the maximum.
    pub(crate) fn over(&self, limits: &Limits) -> Option<(&'static str, usize, usize)> {
        self.structure_over(limits).or_else(|| {
            first_over([
                ("listed values", self.values, limits.values),
                ("characters in names and listed values", self.characters, limits.characters),
                ("characters in one list of values", self.list_characters, limits.list_characters),
            ])
        })
    }

    /// Returns the first exceeded limit that no list of values counts towards.
    pub(crate) fn structure_over(&self, limits: &Limits) -> Option<(&'static str, usize, usize)> {
        first_over([
            ("properties", self.properties, limits.properties),
            ("levels of nesting", self.depth, limits.depth),
            ("optional properties", self.optional, limits.optional),
            ("unions", self.unions, limits.unions),
        ])
    }
}

fn first_over<const N: usize>(
    sizes: [(&'static str, usize, usize); N],
) -> Option<(&'static str, usize, usize)> {
    sizes.into_iter().find(|(_, size, most)| size > most)
}

fn characters_of(value: &Value) -> usize {
    value.as_str().map_or_else(|| value.to_string().len(), |text| text.chars().count())
}

/// Measures the nesting of objects and arrays; a definition counts at each place of use, and once within itself.
struct Depth<'s> {
    root: &'s Value,
    /// The depths of the root and of the targets of references; `None` while one is measured.
    known: HashMap<*const Value, Option<usize>>,
}

impl<'s> Depth<'s> {
    /// Returns the depth of a schema that may be reached repeatedly; 0 within itself.
    fn once(&mut self, schema: &'s Value) -> usize {
        let at = std::ptr::from_ref(schema);
        if let Some(known) = self.known.get(&at) {
            return known.unwrap_or_default();
        }
        self.known.insert(at, None);
        let depth = self.of(schema);
        self.known.insert(at, Some(depth));
        depth
    }

    fn of(&mut self, schema: &'s Value) -> usize {
        let Value::Object(keywords) = schema else { return 0 };
        let mut beside = target(self.root, schema).map_or(0, |target| self.once(target));
        // An object without properties is a level as well.
        let mut inside = keywords.get("properties").map(|_| 0);
        for part in parts(schema) {
            match part.keyword.at {
                At::Here => beside = beside.max(self.of(part.schema)),
                At::Inside => inside = inside.max(Some(self.of(part.schema))),
                At::Names | At::Content | At::Elsewhere => {}
            }
        }
        beside.max(inside.map_or(0, |inside| inside + 1))
    }
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
                list_characters: 0,
                optional: 3,
                unions: 1,
            }
        );
        let limits = Limits { depth: 1, ..Limits::NONE };
        assert_eq!(size.over(&limits), Some(("levels of nesting", 2, 1)));
        let limits = Limits { optional: 2, ..Limits::NONE };
        assert_eq!(size.over(&limits), Some(("optional properties", 3, 2)));
        let several = json!({"anyOf": [{"type": ["string", "null"]}, {"type": ["integer"]}]});
        assert_eq!(Size::of(&several).over(&Limits { unions: 1, ..Limits::NONE }), Some(("unions", 2, 1)));
    }
}
