//! Compiles a schema to nodes.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::check::Check;
use super::node::*;
use crate::is_old_draft;
use crate::keywords::{find, target};

/// Returns the nodes of a schema, that of the schema itself first. `normal` is the normalised schema.
pub(super) fn nodes_of(schema: &Value, normal: &Value) -> Vec<Node> {
    let mut build = Build {
        root: normal,
        is_old: is_old_draft(schema),
        unknown: unknown_keywords(schema),
        known: HashMap::new(),
        nodes: Vec::new(),
        open: Vec::new(),
    };
    build.id(normal);
    while let Some((id, part)) = build.open.pop() {
        let node = build.node(part);
        if let Some(place) = build.nodes.get_mut(id as usize) {
            *place = node;
        }
    }
    build.nodes
}

struct Build<'s> {
    root: &'s Value,
    is_old: bool,
    /// The keywords that the draft of the schema does not have.
    unknown: Vec<&'static str>,
    /// The nodes by the addresses of their schemas.
    known: HashMap<*const Value, Id>,
    nodes: Vec<Node>,
    /// Schemas whose nodes are not written yet.
    open: Vec<(Id, &'s Value)>,
}

/// Groups of keywords that the validator judges together when the value ends: the keywords, and the types that they concern.
const CHECKED: [(&[&str], &[&str]); 9] = [
    (&["pattern"], &["string"]),
    (&["format"], &["string"]),
    (&["multipleOf"], &["number"]),
    (&["uniqueItems"], &["array"]),
    (&["contains", "minContains", "maxContains"], &["array"]),
    (&["dependentRequired"], &["object"]),
    (&["dependentSchemas"], &["object"]),
    (&["not"], &[]),
    (&["if", "then", "else"], &[]),
];

/// Returns the keywords that validators ignore in the draft of a schema. Of those that normalising writes for older keywords, the
/// originals cannot be told from the translations, so both are left to the validator.
fn unknown_keywords(schema: &Value) -> Vec<&'static str> {
    const TRANSLATED: [&str; 3] = ["prefixItems", "dependentRequired", "dependentSchemas"];
    const LATER: [&str; 4] = ["unevaluatedProperties", "unevaluatedItems", "minContains", "maxContains"];

    let draft = schema["$schema"].as_str().unwrap_or_default();
    let is_of = |names: &[&str]| names.iter().any(|name| draft.contains(name));
    let mut unknown = Vec::new();
    if is_of(&["draft-03", "draft-04"]) {
        unknown.extend(["const", "contains", "propertyNames", "if"]);
    } else if is_of(&["draft-06"]) {
        unknown.push("if");
    }
    if is_old_draft(schema) {
        unknown.extend(LATER);
    }
    if is_old_draft(schema) || is_of(&["2019-09"]) {
        let has = |keyword: &&&str| find(schema, |node| node.get(**keyword).is_some()).is_some();
        unknown.extend(TRANSLATED.iter().filter(has));
    }
    unknown
}

impl<'s> Build<'s> {
    fn id(&mut self, schema: &'s Value) -> Id {
        let next = self.nodes.len() as Id;
        *self.known.entry(std::ptr::from_ref(schema)).or_insert_with(|| {
            self.nodes.push(Node::default());
            self.open.push((next, schema));
            next
        })
    }

    fn node(&mut self, schema: &'s Value) -> Node {
        let Value::Object(keywords) = schema else {
            let kinds = if schema == &Value::Bool(false) { 0 } else { ALL };
            return Node { kinds, ..Node::default() };
        };
        let mut node = Node { kinds: ALL, ..Node::default() };
        for (keyword, value) in keywords {
            if self.unknown.contains(&keyword.as_str()) {
                continue;
            }
            match (keyword.as_str(), value) {
                ("type", Value::String(_) | Value::Array(_)) => {
                    let names = || value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
                    let named = |name: &str| names().iter().any(|one| one == name);
                    let kinds = names().iter().filter_map(Value::as_str).map(bits_of_type);
                    node.kinds &= kinds.fold(0, |all, kind| all | kind);
                    node.integer = named("integer") && !named("number");
                }
                ("enum", Value::Array(values)) => {
                    node.kinds &= values.iter().map(bits_of_value).fold(0, |all, kind| all | kind);
                    let both = |known: Option<Values>| match known {
                        Some(known) => {
                            values.iter().filter(|one| known.contains(one)).cloned().collect::<Vec<_>>()
                        }
                        None => values.clone(),
                    };
                    node.values = Some(Values::new(&both(node.values.take())));
                }
                ("const", value) => {
                    node.kinds &= bits_of_value(value);
                    let both = node.values.take().is_none_or(|known| known.contains(value));
                    node.values = Some(Values::new(if both { std::slice::from_ref(value) } else { &[] }));
                }
                ("$ref", _) => match target(self.root, schema) {
                    Some(target) => node.all.push(self.id(target)),
                    None => node.unsure = true,
                },
                ("allOf", Value::Array(parts)) => node.all.extend(parts.iter().map(|part| self.id(part))),
                ("anyOf" | "oneOf", Value::Array(variants)) => {
                    let ids = variants.iter().map(|variant| self.id(variant)).collect();
                    node.unions.push((keyword == "oneOf", ids));
                }
                ("properties", Value::Object(members)) => {
                    for (name, member) in members {
                        node.members.entry(name.clone()).or_default().schema = Some(self.id(member));
                    }
                }
                ("required", Value::Array(names)) => {
                    for name in names.iter().filter_map(Value::as_str) {
                        let member = node.members.entry(name.to_owned()).or_default();
                        if member.required.is_none() {
                            member.required = Some(node.required.len() as u32);
                            node.required.push(name.to_owned());
                        }
                    }
                }
                ("patternProperties", Value::Object(patterns)) => {
                    for (pattern, part) in patterns {
                        let check = Check::new("patternProperties", json!({"pattern": pattern}));
                        node.patterns.push((check, self.id(part)));
                    }
                }
                ("additionalProperties", rest) => node.additional = Some(self.id(rest)),
                ("propertyNames", names) => node.names = Some(Check::new("propertyNames", names.clone())),
                ("prefixItems", Value::Array(items)) => {
                    node.prefix.extend(items.iter().map(|item| self.id(item)));
                }
                ("items", Value::Array(items)) => {
                    node.prefix.extend(items.iter().map(|item| self.id(item)));
                }
                ("items", items) => node.items = Some(self.id(items)),
                ("unevaluatedProperties" | "unevaluatedItems", _) => {
                    node.checks.push((ALL, Check::new("unevaluatedProperties", schema.clone())));
                }
                ("$dynamicRef" | "$recursiveRef", _) => node.unsure = true,
                // Older drafts judge encoded text.
                ("contentEncoding" | "contentMediaType", _) => node.unsure |= self.is_old,
                (keyword, value) => {
                    if let Some((_, limit)) = LIMITS.iter().find(|(name, _)| *name == keyword) {
                        match value.as_f64() {
                            // A double may be the neighbour of such a limit.
                            Some(number) if number.abs() >= EXACT => {
                                let keyword = limit.keyword();
                                node.checks.push((ALL, Check::new(keyword, json!({keyword: value}))));
                            }
                            Some(number) => node.limits.push((*limit, number)),
                            None => node.unsure = true,
                        }
                    }
                    if let Some((group, types)) = CHECKED.iter().find(|(group, _)| group[0] == keyword) {
                        let named = group
                            .iter()
                            .filter_map(|name| Some(((*name).to_owned(), keywords.get(*name)?.clone())));
                        let check = Check::new(group[0], Value::Object(named.collect()));
                        let kinds =
                            types.iter().map(|name| bits_of_type(name)).reduce(|all, kind| all | kind);
                        node.checks.push((kinds.unwrap_or(ALL), check));
                    }
                }
            }
        }
        node
    }
}

/// The magnitude up to which whole numbers are exact as `f64`.
const EXACT: f64 = 9_007_199_254_740_992.0;
