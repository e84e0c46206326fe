//! A schema without annotations.

use std::collections::BTreeSet;

use formwork_core::normalise;
use serde_json::{Map, Value, json};

use crate::graph::{parts, target};

/// A schema in the form of [`normalise`], with nothing left that has no effect on which values are valid.
pub(super) struct Bare(Value);

impl Bare {
    pub(super) fn new(schema: &Value) -> Self {
        Self(bare(&normalise(schema)))
    }

    pub(super) fn document(&self) -> &Value {
        &self.0
    }

    pub(super) fn definition(&self, name: &str) -> Option<&Value> {
        self.0.get("$defs")?.get(name)
    }

    /// Returns the names of all definitions.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.get("$defs").and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name.as_str())
    }

    /// Returns the schema that a chain of references leads to; `node` itself if it is more than a reference.
    pub(super) fn resolve<'a>(&'a self, mut node: &'a Value) -> &'a Value {
        let mut seen = BTreeSet::new();
        while let Some(name) = target(node).filter(|_| only_reference(node)) {
            match self.definition(name) {
                Some(next) if seen.insert(name) => node = next,
                _ => return node,
            }
        }
        node
    }

    /// Returns a part of this document as a document of its own.
    pub(super) fn alone(&self, part: &Value) -> Value {
        let mut alone = part.clone();
        if let (Some(keywords), Some(definitions)) = (alone.as_object_mut(), self.0.get("$defs")) {
            keywords.insert("$defs".to_owned(), definitions.clone());
        }
        normalise(&alone)
    }

    /// Returns the schema with every object closed that names its members and says nothing of further ones; `None` where
    /// closing one part would reject members that another part names or requires.
    pub(super) fn closed(&self) -> Option<Value> {
        let mut closed = self.0.clone();
        if let Some(definitions) = closed.get_mut("$defs").and_then(Value::as_object_mut) {
            definitions.values_mut().try_for_each(close)?;
        }
        close(&mut closed)?;
        Some(closed)
    }
}

/// Returns whether a schema has no keyword but `$ref`, apart from the definitions of a document.
fn only_reference(node: &Value) -> bool {
    node.as_object().is_some_and(|keywords| keywords.keys().all(|name| name == "$ref" || name == "$defs"))
}

/// Keywords that apply further schemas to the same value, or depend on the schemas beside them.
const TANGLED: &[&str] =
    &["allOf", "contains", "dependentSchemas", "if", "not", "unevaluatedItems", "unevaluatedProperties"];

fn close(node: &mut Value) -> Option<()> {
    let Value::Object(keywords) = node else { return Some(()) };
    let names_members = keywords.contains_key("properties");
    let applied =
        ["$ref", "anyOf", "oneOf"].iter().filter(|keyword| keywords.contains_key(**keyword)).count();
    let tangled = TANGLED.iter().any(|keyword| keywords.contains_key(*keyword));
    if tangled || applied > 1 || (names_members && applied > 0) {
        return None;
    }
    for (keyword, value) in keywords.iter_mut() {
        match (keyword.as_str(), value) {
            ("properties" | "patternProperties", Value::Object(map)) => {
                map.values_mut().try_for_each(close)?
            }
            ("anyOf" | "oneOf" | "prefixItems", Value::Array(list)) => list.iter_mut().try_for_each(close)?,
            ("items" | "additionalProperties", value) => close(value)?,
            _ => {}
        }
    }
    if names_members && !keywords.contains_key("patternProperties") {
        let named =
            |name: &Value| name.as_str().is_some_and(|name| keywords["properties"].get(name).is_some());
        if !keywords.get("required").and_then(Value::as_array).is_none_or(|names| names.iter().all(named)) {
            return None;
        }
        keywords.entry("additionalProperties").or_insert(json!(false));
    }
    Some(())
}

/// The keywords that can make a value invalid, and those that they depend on. Everything else is an annotation.
const ASSERTIONS: &[&str] = &[
    "$defs",
    "$ref",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "required",
    "then",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];

fn bare(node: &Value) -> Value {
    let Value::Object(keywords) = node else { return node.clone() };
    let mut out = Map::new();
    for (keyword, value) in keywords {
        if !ASSERTIONS.contains(&keyword.as_str()) && !keyword.starts_with('$') {
            continue;
        }
        let value = match (keyword.as_str(), value) {
            ("$defs" | "properties" | "patternProperties" | "dependentSchemas", Value::Object(map)) => {
                map.iter().map(|(name, part)| (name.clone(), bare(part))).collect()
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(list)) => {
                list.iter().map(bare).collect()
            }
            ("required", Value::Array(list)) => {
                list.iter().filter_map(Value::as_str).collect::<BTreeSet<_>>().into_iter().collect()
            }
            (keyword, value) if is_schema(keyword) => bare(value),
            _ => value.clone(),
        };
        out.insert(keyword.clone(), value);
    }
    if out.get("required") == Some(&json!([])) {
        out.remove("required");
    }
    Value::Object(out)
}

/// Returns whether the value of a keyword is one schema.
fn is_schema(keyword: &str) -> bool {
    parts(&json!({keyword: {}})).next().is_some()
}
