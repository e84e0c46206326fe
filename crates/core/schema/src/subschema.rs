//! Finds the part of a schema that describes one value of a document.

use std::collections::HashSet;

use formwork_core::keywords::{definition_name, find, fits_type, item, target};
use formwork_core::{JsonPath, Member, Segment, is_marked};
use serde_json::{Map, Value, json};

use crate::build::{Formats, build};

/// Returns a self-contained schema for the value at `path`, with the `$defs` that it needs. `normal` is normalised.
pub(crate) fn subschema(normal: &Value, path: &JsonPath, document: &Value) -> Option<Value> {
    let (parts, _) = reached(normal, path, document, Variants::One);
    let governing: Vec<&Value> = parts.into_iter().filter(|part| **part != Value::Bool(true)).collect();
    let mut schema = match governing.as_slice() {
        [] => return None,
        // The schema allows no value there.
        many if many.iter().any(|part| **part == Value::Bool(false)) => return None,
        [only] => (*only).clone(),
        many => json!({"allOf": many}),
    };
    let needed = needed_definitions(normal, &schema);
    if let Value::Object(schema) = &mut schema
        && !needed.is_empty()
    {
        schema.insert("$defs".to_owned(), Value::Object(needed));
    }
    Some(schema)
}

/// Returns every part of a schema that describes the value at `path`, with everything that these parts include.
pub(crate) fn governing<'s>(normal: &'s Value, path: &JsonPath, document: &Value) -> Vec<&'s Value> {
    let (parts, value) = reached(normal, path, document, Variants::One);
    every_part(normal, parts, value, Variants::One)
}

/// Returns what a schema says about the member at `path`; `None` if no part of it that may describe the object names the member.
pub(crate) fn member(normal: &Value, path: &JsonPath, document: &Value) -> Option<Member> {
    let Some(Segment::Key(name)) = path.last() else { return None };
    let (parts, around) = reached(normal, &path.parent()?, document, Variants::Fitting);
    let parts = every_part(normal, parts, around, Variants::Fitting);
    let named: Vec<&Value> = parts.iter().filter_map(|part| part["properties"].get(name)).collect();
    if named.is_empty() {
        return None;
    }
    let requires =
        |part: &&Value| part["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let may_be_absent = named.iter().any(|part| is_marked(part));
    let described = every_part(normal, named, Some(&Value::Null), Variants::One);
    let allows_null = described
        .iter()
        .all(|part| allows(part, &Value::Null) && fits_type(part, &Value::Null) != Some(false));
    Some(Member { is_required: parts.iter().any(requires), allows_null, may_be_absent })
}

/// Returns the names of the marked members that the object at `path` lacks, for each variant of a union there that it may follow.
pub(crate) fn lacking(normal: &Value, path: &JsonPath, document: &Value) -> Vec<Vec<String>> {
    let (parts, value) = reached(normal, path, document, Variants::Fitting);
    let Some(Value::Object(members)) = value else { return Vec::new() };
    let parts = every_part(normal, parts, value, Variants::Fitting);
    let unions = parts.iter().flat_map(|part| ["anyOf", "oneOf"].map(|keyword| part[keyword].as_array()));
    let variants = unions.flatten().flatten().filter(|variant| fits(normal, variant, value, 0));
    let lacking = |variant| {
        let named = all_parts(normal, variant, value, Variants::One, 0);
        let named = named.into_iter().filter_map(|part| part["properties"].as_object()).flatten();
        let marked = named.filter(|(name, member)| is_marked(member) && !members.contains_key(*name));
        marked.map(|(name, _)| name.clone()).collect::<Vec<_>>()
    };
    variants.map(lacking).filter(|names| !names.is_empty()).collect()
}

/// The variants of a union that describe a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variants {
    /// A single variant whose tags the value has; none if it has those of several.
    One,
    /// All whose tags the value has.
    Fitting,
}

/// Returns the parts at the end of a path, and the value there.
fn reached<'s, 'd>(
    normal: &'s Value,
    path: &JsonPath,
    document: &'d Value,
    variants: Variants,
) -> (Vec<&'s Value>, Option<&'d Value>) {
    let mut parts = vec![normal];
    let mut value = Some(document);
    for segment in path.segments() {
        let inner =
            every_part(normal, parts, value, variants).into_iter().flat_map(|part| step(part, segment));
        parts = distinct(inner.collect());
        value = value.and_then(|value| match segment {
            Segment::Key(name) => value.get(name),
            Segment::Index(index) => value.get(index),
        });
    }
    (parts, value)
}

fn every_part<'s>(
    normal: &'s Value,
    parts: Vec<&'s Value>,
    value: Option<&Value>,
    variants: Variants,
) -> Vec<&'s Value> {
    distinct(parts.into_iter().flat_map(|part| all_parts(normal, part, value, variants, 0)).collect())
}

/// Returns each part once: with several ways to one part, their number would grow with every step of a path.
pub(crate) fn distinct(mut parts: Vec<&Value>) -> Vec<&Value> {
    let mut seen = HashSet::new();
    parts.retain(|part| seen.insert(std::ptr::from_ref::<Value>(part)));
    parts
}

/// Returns a schema and everything that it includes by `$ref`, `allOf`, and the variants whose tags the value has.
fn all_parts<'s>(
    root: &'s Value,
    part: &'s Value,
    value: Option<&Value>,
    chosen: Variants,
    depth: usize,
) -> Vec<&'s Value> {
    let mut parts = vec![part];
    if depth > MAX_DEPTH {
        return parts;
    }
    if let Some(target) = target(root, part) {
        parts.extend(all_parts(root, target, value, chosen, depth + 1));
    }
    for included in part["allOf"].as_array().into_iter().flatten() {
        parts.extend(all_parts(root, included, value, chosen, depth + 1));
    }
    for keyword in ["anyOf", "oneOf"] {
        let Some(variants) = part[keyword].as_array() else { continue };
        let fitting: Vec<_> = variants.iter().filter(|variant| fits(root, variant, value, 0)).collect();
        // If several variants fit the tags, none of them alone describes the value.
        if fitting.len() == 1 || chosen == Variants::Fitting {
            let all =
                fitting.into_iter().flat_map(|variant| all_parts(root, variant, value, chosen, depth + 1));
            parts.extend(all);
        }
    }
    parts
}

const MAX_DEPTH: usize = 32;

/// Returns whether a value has the type and the tags of a variant.
fn fits(root: &Value, variant: &Value, value: Option<&Value>, depth: usize) -> bool {
    let Some(value) = value.filter(|_| depth < MAX_DEPTH) else { return true };
    if let Some(target) = target(root, variant) {
        return fits(root, target, Some(value), depth + 1);
    }
    let typed = fits_type(variant, value) != Some(false);
    // `null` is no tag: it may stand for an absent member.
    let tag = |name: &str| value.get(name).filter(|member| !member.is_null());
    let tagged = variant["properties"].as_object().is_none_or(|properties| {
        properties.iter().all(|(name, schema)| tag(name).is_none_or(|member| allows(schema, member)))
    });
    typed && tagged && allows(variant, value)
}

/// Returns whether `const` and `enum` of a schema allow a value.
fn allows(schema: &Value, value: &Value) -> bool {
    schema.get("const").is_none_or(|constant| constant == value)
        && schema["enum"].as_array().is_none_or(|listed| listed.contains(value))
}

/// Returns the parts of a schema that describe one member or item.
fn step<'s>(schema: &'s Value, segment: &Segment) -> Vec<&'s Value> {
    match segment {
        Segment::Key(name) => {
            let patterns = schema["patternProperties"].as_object().into_iter().flatten();
            let matching = patterns.filter(|(pattern, _)| matches(pattern, name)).map(|(_, inner)| inner);
            let mut inner: Vec<&Value> = schema["properties"].get(name).into_iter().chain(matching).collect();
            if inner.is_empty() {
                inner.extend(schema.get("additionalProperties"));
            }
            inner
        }
        Segment::Index(index) => item(schema, *index).into_iter().collect(),
    }
}

/// Returns whether a name matches a pattern, with the same syntax as the validator.
fn matches(pattern: &str, name: &str) -> bool {
    build(&json!({"pattern": pattern}), Formats::Annotate)
        .is_ok_and(|validator| validator.is_valid(&json!(name)))
}

/// Returns the definitions that a schema refers to, directly or through others.
fn needed_definitions(root: &Value, schema: &Value) -> Map<String, Value> {
    let mut needed = Map::new();
    let mut open = references(schema);
    while let Some(name) = open.pop() {
        if let Some(definition) = root["$defs"].get(&name).filter(|_| !needed.contains_key(&name)) {
            open.extend(references(definition));
            needed.insert(name, definition.clone());
        }
    }
    needed
}

fn references(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    find(schema, |part| {
        found.extend(definition_name(part).map(str::to_owned));
        false
    });
    found
}
