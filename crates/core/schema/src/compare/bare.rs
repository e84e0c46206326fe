//! A schema without annotations.

use std::collections::BTreeSet;

use formwork_core::keywords::{Keyword, Role, definition_name, keyword, map_parts, parts_mut};
use formwork_core::normalise;
use serde_json::{Map, Value, json};

/// A schema in the form of [`normalise`], without keywords that have no effect on validity.
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
        while let Some(name) = definition_name(node).filter(|_| only_reference(node)) {
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

    /// Returns the schema with every object closed that names its members and does not mention further ones; `None` if
    /// closing one part would reject members that another part names or requires.
    pub(super) fn closed(&self) -> Option<Value> {
        let mut closed = self.0.clone();
        close(&mut closed)?;
        Some(closed)
    }
}

/// Returns whether a schema has no keyword but `$ref`, apart from the definitions of a document.
fn only_reference(node: &Value) -> bool {
    node.as_object().is_some_and(|keywords| keywords.keys().all(|name| name == "$ref" || name == "$defs"))
}

/// The keywords that apply further schemas to the same value, or depend on neighbouring schemas.
const TANGLED: &[&str] =
    &["allOf", "contains", "dependentSchemas", "if", "not", "unevaluatedItems", "unevaluatedProperties"];

fn close(node: &mut Value) -> Option<()> {
    let Value::Object(keywords) = &*node else { return Some(()) };
    let names_members = keywords.contains_key("properties");
    let applied =
        ["$ref", "anyOf", "oneOf"].iter().filter(|keyword| keywords.contains_key(**keyword)).count();
    let tangled = TANGLED.iter().any(|keyword| keywords.contains_key(*keyword));
    if tangled || applied > 1 || (names_members && applied > 0) {
        return None;
    }
    parts_mut(node).try_for_each(close)?;
    let Value::Object(keywords) = node else { return Some(()) };
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

/// Returns whether a keyword can make a value invalid in some draft, or is a target of references. Everything else is an
/// annotation.
fn has_effect(name: &str) -> bool {
    name.starts_with('$')
        || keyword(name).is_some_and(|known| known.constrains() || known.role == Role::Content)
}

fn bare(node: &Value) -> Value {
    let Value::Object(keywords) = node else { return node.clone() };
    let mut out = Map::new();
    for (name, value) in keywords.iter().filter(|(name, _)| has_effect(name)) {
        let value = match (keyword(name), value) {
            (Some(Keyword { name: "required", .. }), Value::Array(list)) => {
                list.iter().filter_map(Value::as_str).collect::<BTreeSet<_>>().into_iter().collect()
            }
            (Some(known), _) => map_parts(known, value, bare),
            (None, _) => value.clone(),
        };
        out.insert(name.clone(), value);
    }
    if out.get("required") == Some(&json!([])) {
        out.remove("required");
    }
    Value::Object(out)
}
