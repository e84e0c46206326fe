use serde_json::{Map, Value};

use crate::profile::Profile;

/// A schema inside a document, and the dialect that it is read in.
pub(super) struct Place<'a> {
    pub(super) schema: &'a Value,
    pub(super) is_root: bool,
    pub(super) profile: &'a Profile,
}

impl<'a> Place<'a> {
    pub(super) fn get(&self, keyword: &str) -> Option<&'a Value> {
        self.schema.get(keyword)
    }

    pub(super) fn has(&self, keyword: &str) -> bool {
        self.get(keyword).is_some()
    }

    pub(super) fn text(&self, keyword: &str) -> Option<&'a str> {
        self.get(keyword)?.as_str()
    }

    pub(super) fn named(&self, keyword: &str) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
        self.get(keyword).and_then(Value::as_object).into_iter().flat_map(Map::iter)
    }

    pub(super) fn required(&self) -> Vec<&'a str> {
        self.get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }

    /// Whether its `type` is this, or has this in it.
    pub(super) fn is(&self, kind: &str) -> bool {
        match self.get("type") {
            Some(Value::String(name)) => name == kind,
            Some(Value::Array(names)) => names.iter().any(|name| name == kind),
            _ => false,
        }
    }

    pub(super) fn is_object(&self) -> bool {
        self.is("object") || !self.has("type") && self.has("properties")
    }

    /// The schemas directly inside, with the steps that lead there.
    pub(super) fn inside(&self) -> Vec<(String, Place<'a>)> {
        let mut found = Vec::new();
        let place = |schema| Place { schema, is_root: false, ..*self };
        for (keyword, value) in self.schema.as_object().into_iter().flat_map(Map::iter) {
            match (keyword.as_str(), value) {
                (
                    "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                    Value::Object(named),
                ) => {
                    for (name, schema) in named {
                        let step = name.replace('~', "~0").replace('/', "~1");
                        found.push((format!("/{keyword}/{step}"), place(schema)));
                    }
                }
                ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Value::Array(schemas)) => {
                    let schemas = schemas.iter().enumerate();
                    found.extend(
                        schemas.map(|(index, schema)| (format!("/{keyword}/{index}"), place(schema))),
                    );
                }
                // These are `false` in most schemas, which every dialect takes.
                ("additionalProperties" | "unevaluatedProperties" | "unevaluatedItems", Value::Bool(_)) => {}
                (
                    "items"
                    | "additionalProperties"
                    | "not"
                    | "if"
                    | "then"
                    | "else"
                    | "contains"
                    | "propertyNames"
                    | "unevaluatedProperties"
                    | "unevaluatedItems",
                    schema,
                ) => found.push((format!("/{keyword}"), place(schema))),
                _ => {}
            }
        }
        found
    }
}
