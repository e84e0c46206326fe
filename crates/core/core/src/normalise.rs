use std::collections::{BTreeMap, HashMap, HashSet};

use formwork_json::unescape;
use serde_json::{Map, Value, json};

use crate::absence::declared::{Absent, KEYWORD, declares_absence};
use crate::absence::mark::marked;
use crate::absence::widen::{is_directive, widen};
use crate::coercion::declared::{self as coercion, declares_coercion};
use crate::keywords::{Keyword, Role, find, keyword as known, map_parts, percent_decoded};

/// Rewrites a JSON Schema into a form that is easy to walk: draft 2020-12, every local reference as `#/$defs/name`, only
/// used definitions, no `$schema`, `$id` and anchors.
///
/// The meaning is preserved. A member that a text may lack (`x-formwork-absent`, see [`Absent`]) is required and nullable. Draft 4 to 7 are translated to 2020-12 (`items` as a list, `additionalItems`, `dependencies`,
/// boolean `exclusiveMinimum`, `$ref` hiding its siblings). A reference to a place outside of the document is left
/// unchanged; compiling the schema reports it.
///
/// ```
/// let schema = serde_json::json!({
///     "$schema": "http://json-schema.org/draft-07/schema#",
///     "definitions": {"a b": {"items": [{"$ref": "#"}]}, "unused": {}},
///     "properties": {"x": {"$ref": "#/definitions/a b", "title": "hidden"}},
/// });
/// assert_eq!(formwork_core::normalise(&schema), serde_json::json!({
///     "$ref": "#/$defs/root",
///     "$defs": {
///         "root": {"properties": {"x": {"$ref": "#/$defs/a_b"}}},
///         "a_b": {"prefixItems": [{"$ref": "#/$defs/root"}]},
///     },
/// }));
/// ```
pub fn normalise(document: &Value) -> Value {
    normalise_with_origins(document).0
}

/// Normalises a schema like [`normalise`], and returns for each definition in `$defs` its JSON Pointer in the document.
///
/// ```
/// let schema = serde_json::json!({"properties": {"x": {"$ref": "#/definitions/y"}}, "definitions": {"y": {}}});
/// let (_, origins) = formwork_core::normalise_with_origins(&schema);
/// assert_eq!(origins["y"], "/definitions/y");
/// ```
pub fn normalise_with_origins(document: &Value) -> (Value, BTreeMap<String, String>) {
    let (mut normal, mut origins) = rewritten(document);
    if declares_absence(document) {
        if let Some(Ok(absent)) = Absent::of(document) {
            normal = marked(normal, &mut origins, &absent);
        }
        widen(&mut normal);
    }
    if declares_coercion(document) {
        coercion::strip(&mut normal);
    }
    (normal, origins)
}

/// Normalises a schema without the changes for members that a text may lack, and with the marks of coercions.
pub(crate) fn rewritten(document: &Value) -> (Value, BTreeMap<String, String>) {
    let mut work = Normaliser {
        document,
        old: is_old_draft(document),
        names: BTreeMap::new(),
        taken: HashMap::new(),
        queue: Vec::new(),
    };
    let mut root = work.rewrite(document);
    let mut defs = Map::new();
    // A definition may queue further ones, but each pointer is queued only once, so the loop ends.
    while let Some((pointer, name)) = work.queue.pop() {
        let target = if pointer.is_empty() {
            root.clone()
        } else {
            document.pointer(&pointer).map(|at| work.rewrite(at)).unwrap_or_default()
        };
        defs.insert(name, target);
    }
    if let Some(name) = work.names.get("") {
        root = json!({"$ref": format!("#/$defs/{name}")});
    }
    if let Value::Object(root) = &mut root
        && !defs.is_empty()
    {
        root.insert("$defs".to_owned(), Value::Object(defs));
    }
    (root, work.names.into_iter().map(|(pointer, name)| (name, pointer)).collect())
}

/// Returns the names of the members whose schemas satisfy a condition, and whether other schemas satisfy it.
pub(crate) fn marked_members(schema: &Value, is_marked: impl Fn(&Value) -> bool) -> (HashSet<String>, bool) {
    let (mut names, mut marks, mut named) = (HashSet::new(), 0, 0);
    find(schema, |node| {
        marks += usize::from(is_marked(node));
        let members = node.get("properties").and_then(Value::as_object).into_iter().flatten();
        for (name, _) in members.filter(|(_, member)| is_marked(member)) {
            named += 1;
            names.insert(name.clone());
        }
        false
    });
    (names, marks > named)
}

/// Returns whether a schema is written in draft 4, 6 or 7, by its `$schema` or, without one, by keywords of those drafts
/// (`items` as a list, `additionalItems`, `dependencies`).
///
/// ```
/// use formwork_core::is_old_draft;
/// use serde_json::json;
///
/// assert!(is_old_draft(&json!({"items": [{"type": "string"}]})));
/// assert!(!is_old_draft(&json!({"prefixItems": [{"type": "string"}]})));
/// ```
pub fn is_old_draft(document: &Value) -> bool {
    match document["$schema"].as_str() {
        Some(uri) => ["draft-03", "draft-04", "draft-06", "draft-07"].iter().any(|draft| uri.contains(draft)),
        None => {
            let old = |node: &Value| {
                node["items"].is_array()
                    || node.get("additionalItems").is_some()
                    || node["dependencies"].is_object()
            };
            find(document, old).is_some()
        }
    }
}

struct Normaliser<'a> {
    document: &'a Value,
    old: bool,
    /// The name of the definition for each pointer.
    names: BTreeMap<String, String>,
    /// The names in use, each with the number to append to its next duplicate.
    taken: HashMap<String, usize>,
    queue: Vec<(String, String)>,
}

impl Normaliser<'_> {
    fn rewrite(&mut self, node: &Value) -> Value {
        let Value::Object(keywords) = node else { return node.clone() };
        if self.old
            && let Some(reference) = keywords.get("$ref").and_then(Value::as_str)
        {
            let mut out = json!({"$ref": self.reference(reference)});
            for mark in [KEYWORD, coercion::KEYWORD] {
                if let Some(value) = keywords.get(mark) {
                    out[mark] = value.clone();
                }
            }
            return out;
        }
        let mut out = Map::new();
        for (keyword, value) in keywords {
            self.keyword(keyword, value, keywords, &mut out);
        }
        Value::Object(out)
    }

    fn keyword(
        &mut self,
        keyword: &str,
        value: &Value,
        all: &Map<String, Value>,
        out: &mut Map<String, Value>,
    ) {
        let mut put = |keyword: &str, value: Value| out.insert(keyword.to_owned(), value);
        match (keyword, value) {
            ("id", Value::String(_)) if self.old => {}
            (KEYWORD, mark) if is_directive(mark) => {}
            ("$ref" | "$dynamicRef", Value::String(reference)) => {
                let reference = self.reference(reference);
                put("$ref", Value::String(reference));
            }
            ("items", Value::Array(items)) if self.old => {
                put("prefixItems", self.all(items));
            }
            ("additionalItems", rest) if self.old => {
                if all.get("items").is_some_and(Value::is_array) {
                    put("items", self.rewrite(rest));
                }
            }
            ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(exclusive)) if self.old => {
                let bound = if keyword == "exclusiveMinimum" { "minimum" } else { "maximum" };
                if let Some(limit) = all.get(bound).filter(|_| *exclusive) {
                    put(keyword, limit.clone());
                }
            }
            ("minimum" | "maximum", limit) => {
                let exclusive = if keyword == "minimum" { "exclusiveMinimum" } else { "exclusiveMaximum" };
                if !(self.old && all.get(exclusive) == Some(&Value::Bool(true))) {
                    put(keyword, limit.clone());
                }
            }
            ("dependencies", Value::Object(dependencies)) if self.old => {
                let (lists, schemas): (Vec<_>, Vec<_>) =
                    dependencies.iter().partition(|(_, value)| value.is_array());
                let lists: Map<_, _> =
                    lists.into_iter().map(|(name, list)| (name.clone(), list.clone())).collect();
                let schemas: Map<_, _> =
                    schemas.into_iter().map(|(name, schema)| (name.clone(), self.rewrite(schema))).collect();
                if !lists.is_empty() {
                    put("dependentRequired", Value::Object(lists));
                }
                if !schemas.is_empty() {
                    put("dependentSchemas", Value::Object(schemas));
                }
            }
            _ => match known(keyword) {
                Some(Keyword { role: Role::Definitions, .. })
                | Some(Keyword { role: Role::Identity, is_old: false, .. }) => {}
                Some(known) if !known.is_old => {
                    put(keyword, map_parts(known, value, |schema| self.rewrite(schema)));
                }
                _ => {
                    put(keyword, value.clone());
                }
            },
        }
    }

    fn all(&mut self, schemas: &[Value]) -> Value {
        schemas.iter().map(|schema| self.rewrite(schema)).collect()
    }

    /// Returns the reference in its new form, and queues the definition that it names.
    fn reference(&mut self, reference: &str) -> String {
        let Some(pointer) = self.locate(reference) else { return reference.to_owned() };
        if let Some(name) = self.names.get(&pointer) {
            return format!("#/$defs/{name}");
        }
        let preferred =
            safe_name(pointer.rsplit('/').next().filter(|last| !last.is_empty()).unwrap_or("root"));
        let name = self.free(preferred);
        self.names.insert(pointer.clone(), name.clone());
        self.queue.push((pointer, name.clone()));
        format!("#/$defs/{name}")
    }

    /// Returns this name, with a number if it is in use.
    fn free(&mut self, preferred: String) -> String {
        let mut next = self.taken.get(&preferred).copied().unwrap_or(1);
        let mut name = preferred.clone();
        while self.taken.contains_key(&name) {
            next += 1;
            name = format!("{preferred}_{next}");
        }
        self.taken.insert(preferred, next);
        self.taken.entry(name.clone()).or_insert(1);
        name
    }

    /// Returns the JSON Pointer of a reference's target, if that is in this document.
    fn locate(&self, reference: &str) -> Option<String> {
        let (base, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let base =
            if base.is_empty() { String::new() } else { find(self.document, |node| is_id(node, base))? };
        let fragment = percent_decoded(fragment);
        if fragment.is_empty() || fragment.starts_with('/') {
            let pointer = format!("{base}{fragment}");
            return self.document.pointer(&pointer).map(|_| pointer);
        }
        let is_anchor = |node: &Value| {
            ["$anchor", "$dynamicAnchor"].iter().any(|keyword| node[*keyword] == *fragment)
                || ["$id", "id"].iter().any(|keyword| {
                    node[*keyword].as_str().and_then(|id| id.strip_prefix('#')) == Some(&*fragment)
                })
        };
        find(self.document.pointer(&base)?, is_anchor).map(|below| format!("{base}{below}"))
    }
}

/// Returns whether a schema's `$id` is this URI, or ends in it if the URI is relative.
fn is_id(node: &Value, uri: &str) -> bool {
    let matches = |id: &str| {
        let id = id.trim_end_matches('#');
        !id.is_empty()
            && (id == uri
                || (!uri.contains(':') && id.ends_with(&format!("/{}", uri.trim_start_matches('/')))))
    };
    ["$id", "id"].iter().any(|keyword| node[*keyword].as_str().is_some_and(matches))
}

/// Returns the name in `[A-Za-z0-9_]`, which every dialect accepts for definitions.
fn safe_name(pointer_step: &str) -> String {
    unescape(pointer_step)
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_by_pointer_anchor_and_id_become_definitions() {
        let schema = json!({
            "$id": "https://example.com/tree",
            "$defs": {
                "a/b": {"$anchor": "leaf", "type": "integer"},
                "sub": {"$id": "https://example.com/other", "type": "string"},
            },
            "prefixItems": [
                {"$ref": "#/$defs/a~1b"},
                {"$ref": "#leaf"},
                {"$ref": "other"},
                {"$ref": "https://example.com/tree#/prefixItems/0"},
                {"$ref": "https://elsewhere.org/x"},
                {"$ref": "#/nowhere"},
            ],
        });
        assert_eq!(
            normalise(&schema),
            json!({
                "prefixItems": [
                    {"$ref": "#/$defs/a_b"},
                    {"$ref": "#/$defs/a_b"},
                    {"$ref": "#/$defs/sub"},
                    {"$ref": "#/$defs/0"},
                    {"$ref": "https://elsewhere.org/x"},
                    {"$ref": "#/nowhere"},
                ],
                "$defs": {
                    "0": {"$ref": "#/$defs/a_b"},
                    "sub": {"type": "string"},
                    "a_b": {"type": "integer"},
                },
            })
        );
    }

    #[test]
    fn names_that_collide_are_distinguished() {
        let schema = json!({
            "$defs": {"x": {"type": "string"}},
            "properties": {"x": {"type": "integer"}},
            "anyOf": [{"$ref": "#/$defs/x"}, {"$ref": "#/properties/x"}],
        });
        let normal = normalise(&schema);
        assert_eq!(normal["$defs"], json!({"x_2": {"type": "integer"}, "x": {"type": "string"}}));
    }

    #[test]
    fn old_drafts_become_the_new_one() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-04/schema#",
            "id": "http://x/y",
            "properties": {"id": {"minimum": 3, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false}},
            "items": [{"type": "string"}], "additionalItems": false,
            "dependencies": {"a": ["b"], "c": {"required": ["d"]}},
        });
        assert_eq!(
            normalise(&schema),
            json!({
                "properties": {"id": {"exclusiveMinimum": 3, "maximum": 9}},
                "prefixItems": [{"type": "string"}], "items": false,
                "dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"required": ["d"]}},
            })
        );
    }

    #[test]
    fn a_property_with_the_name_of_a_keyword_is_no_keyword() {
        let named = |name: &str| json!({"properties": {name: {"$ref": "#/$defs/x", "title": "Kept"}}});
        for name in ["additionalItems", "dependencies", "const", "default", "examples", "$id"] {
            let mut schema = named(name);
            schema["$defs"] = json!({"x": {"$ref": "#leaf"}, "y": {"$anchor": "leaf"}});
            assert!(!is_old_draft(&schema), "{name}");
            assert_eq!(normalise(&schema)["properties"], named(name)["properties"]);
            assert_eq!(normalise(&schema)["$defs"]["x"], json!({"$ref": "#/$defs/y"}));
        }
        let inside = json!({"properties": {"default": {"$anchor": "here"}, "a": {"$ref": "#here"}}});
        assert_eq!(normalise(&inside)["properties"]["a"], json!({"$ref": "#/$defs/default"}));
    }

    #[test]
    fn data_that_looks_like_a_reference_is_left_alone() {
        let schema = json!({"const": {"$ref": "#"}, "enum": [{"$id": "x"}], "default": {"$ref": "#/a"}});
        assert_eq!(normalise(&schema), schema);
    }
}
