use formwork_core::keywords::{At, Part, parts};
use serde_json::{Map, Value};

use crate::profile::Profile;

/// A subschema of a document, with its dialect of JSON Schema.
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

    /// Returns whether its `type` is or contains this type.
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

    /// Returns the subschemas directly inside, with their steps.
    pub(super) fn inside(&self) -> Vec<(String, Place<'a>)> {
        let is_read = |part: &Part<'_>| {
            // These are `false` in most schemas, which every dialect accepts.
            let says_rest =
                ["additional", "unevaluated"].iter().any(|rest| part.keyword.name.starts_with(rest));
            part.keyword.at != At::Content && !(says_rest && part.schema.is_boolean())
        };
        let place = |schema| Place { schema, is_root: false, ..*self };
        parts(self.schema).filter(is_read).map(|part| (part.pointer(""), place(part.schema))).collect()
    }
}
