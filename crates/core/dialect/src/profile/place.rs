use formwork_core::keywords::{At, Part, parts};
use serde_json::{Map, Value};

use super::Profile;

/// A subschema of a document, with the profile of its dialect.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Place<'a> {
    /// The subschema itself.
    pub schema: &'a Value,
    /// Whether the subschema is the whole document.
    pub is_root: bool,
    /// The profile of the dialect that the document is checked for.
    pub profile: &'a Profile,
}

impl<'a> Place<'a> {
    pub(crate) fn get(&self, keyword: &str) -> Option<&'a Value> {
        self.schema.get(keyword)
    }

    pub(crate) fn has(&self, keyword: &str) -> bool {
        self.get(keyword).is_some()
    }

    pub(crate) fn text(&self, keyword: &str) -> Option<&'a str> {
        self.get(keyword)?.as_str()
    }

    pub(crate) fn named(&self, keyword: &str) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
        self.get(keyword).and_then(Value::as_object).into_iter().flat_map(Map::iter)
    }

    pub(crate) fn required(&self) -> Vec<&'a str> {
        self.get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }

    /// Returns whether its `type` is or contains this type.
    pub(crate) fn is(&self, kind: &str) -> bool {
        match self.get("type") {
            Some(Value::String(name)) => name == kind,
            Some(Value::Array(names)) => names.iter().any(|name| name == kind),
            _ => false,
        }
    }

    pub(crate) fn is_object(&self) -> bool {
        self.is("object") || !self.has("type") && self.has("properties")
    }

    /// Returns the subschemas directly inside, with their steps.
    pub(crate) fn inside(&self) -> Vec<(String, Place<'a>)> {
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
