use std::borrow::Cow;
use std::collections::HashSet;

use formwork_json::{Segment, escape};
use serde_json::{Map, Value};

use super::{At, Holds, Keyword, keyword};

/// A direct subschema of a schema.
#[derive(Debug, Clone)]
pub struct Part<'s> {
    /// The keyword that contains it.
    pub keyword: &'static Keyword,
    /// Its name or index under the keyword, if the keyword holds several.
    pub step: Option<Step<'s>>,
    /// The schema.
    pub schema: &'s Value,
}

/// The position of a subschema under a keyword that holds several.
///
/// ```
/// use formwork_keywords::{Step, parts};
///
/// let schema = serde_json::json!({"properties": {"age": {}}});
/// assert_eq!(parts(&schema).next().and_then(|part| part.step), Some(Step::Name("age")));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'s> {
    /// Its name in a map.
    Name(&'s str),
    /// Its index in a list.
    Index(usize),
}

impl Part<'_> {
    /// Returns the JSON Pointer of this subschema, given that of the schema around it (`""` for the root).
    ///
    /// ```
    /// use formwork_keywords::{Step, parts};
    ///
    /// let schema = serde_json::json!({"anyOf": [{"type": "null"}]});
    /// let variant = parts(&schema).next().unwrap();
    /// assert_eq!((variant.keyword.name, variant.step), ("anyOf", Some(Step::Index(0))));
    /// assert_eq!(variant.pointer("/items"), "/items/anyOf/0");
    /// ```
    pub fn pointer(&self, around: &str) -> String {
        let name = self.keyword.name;
        match &self.step {
            Some(Step::Name(step)) => format!("{around}/{name}/{}", escape(step)),
            Some(Step::Index(index)) => format!("{around}/{name}/{index}"),
            None => format!("{around}/{name}"),
        }
    }
}

/// Returns the direct subschemas of a schema in the order of the document, definitions included.
///
/// ```
/// use formwork_keywords::parts;
///
/// let schema = serde_json::json!({"items": {"type": "string"}, "const": {"type": "not a schema"}});
/// assert_eq!(parts(&schema).map(|part| part.keyword.name).collect::<Vec<_>>(), ["items"]);
/// ```
pub fn parts(schema: &Value) -> impl Iterator<Item = Part<'_>> {
    schema.as_object().into_iter().flatten().flat_map(|(name, value)| {
        let keyword = keyword(name);
        let (list, map, single) = match (keyword.map(|keyword| keyword.holds), value) {
            (Some(Holds::Schema | Holds::List), Value::Array(list)) => (Some(list), None, None),
            (Some(Holds::Map), Value::Object(map)) => (None, Some(map), None),
            (Some(Holds::Schema), one) => (None, None, Some(one)),
            _ => (None, None, None),
        };
        let listed = list.into_iter().flatten().enumerate();
        let listed = listed.map(|(index, schema)| (Some(Step::Index(index)), schema));
        let mapped = map.into_iter().flatten().map(|(name, schema)| (Some(Step::Name(name)), schema));
        let all = listed.chain(mapped).chain(single.map(|schema| (None, schema)));
        all.filter_map(move |(step, schema)| Some(Part { keyword: keyword?, step, schema }))
    })
}

/// Returns the direct subschemas of a schema for changing them in place.
///
/// ```
/// let mut schema = serde_json::json!({"items": {"type": "string"}});
/// for part in formwork_keywords::parts_mut(&mut schema) {
///     part["maxLength"] = 80.into();
/// }
/// assert_eq!(schema["items"]["maxLength"], 80);
/// ```
pub fn parts_mut(schema: &mut Value) -> impl Iterator<Item = &mut Value> {
    schema.as_object_mut().into_iter().flatten().flat_map(|(name, value)| {
        let (list, map, single) = match (keyword(name).map(|keyword| keyword.holds), value) {
            (Some(Holds::Schema | Holds::List), Value::Array(list)) => (Some(list), None, None),
            (Some(Holds::Map), Value::Object(map)) => (None, Some(map), None),
            (Some(Holds::Schema), one) => (None, None, Some(one)),
            _ => (None, None, None),
        };
        let mapped = map.into_iter().flat_map(Map::values_mut);
        list.into_iter().flatten().chain(mapped).chain(single)
    })
}

/// Returns a copy of a keyword's value in which each direct subschema is replaced. A value without schemas is copied
/// unchanged.
///
/// ```
/// use formwork_keywords::{keyword, map_parts};
/// use serde_json::json;
///
/// let any_of = map_parts(keyword("anyOf").unwrap(), &json!([{"type": "null"}, true]), |_| json!({}));
/// assert_eq!(any_of, json!([{}, {}]));
/// ```
pub fn map_parts(keyword: &Keyword, value: &Value, mut replace: impl FnMut(&Value) -> Value) -> Value {
    match (keyword.holds, value) {
        (Holds::Schema | Holds::List, Value::Array(list)) => list.iter().map(replace).collect(),
        (Holds::Map, Value::Object(map)) => {
            map.iter().map(|(name, schema)| (name.clone(), replace(schema))).collect()
        }
        (Holds::Schema, one) => replace(one),
        _ => value.clone(),
    }
}

/// Returns the JSON Pointer of the first schema that `wanted` accepts, outermost first.
///
/// Objects under unknown keywords, such as `components` of OpenAPI, count as schemas too, because references may lead
/// there. The values of `const`, `enum`, `default` and `examples` do not.
///
/// ```
/// use formwork_keywords::find;
///
/// let schema = serde_json::json!({"properties": {"a": {"items": {"$ref": "#"}}}});
/// assert_eq!(find(&schema, |node| node.get("$ref").is_some()), Some("/properties/a/items".to_owned()));
/// ```
pub fn find<'s>(document: &'s Value, mut matches: impl FnMut(&'s Value) -> bool) -> Option<String> {
    let mut path = Vec::new();
    let step = |step: &Step<'_>| match step {
        Step::Name(name) => format!("/{}", escape(name)),
        Step::Index(index) => format!("/{index}"),
    };
    search(document, true, &mut matches, &mut path).then(|| path.iter().map(step).collect())
}

fn search<'s>(
    node: &'s Value,
    is_schema: bool,
    matches: &mut impl FnMut(&'s Value) -> bool,
    path: &mut Vec<Step<'s>>,
) -> bool {
    if is_schema && node.is_object() && matches(node) {
        return true;
    }
    let mut inside = |step, inner, is_schema| {
        path.push(step);
        let found = search(inner, is_schema, matches, path);
        if !found {
            path.pop();
        }
        found
    };
    match node {
        Value::Object(members) => members.iter().any(|(name, value)| {
            match keyword(name).filter(|_| is_schema).map(|keyword| keyword.holds) {
                Some(Holds::Values) => false,
                holds => inside(Step::Name(name), value, holds != Some(Holds::Map)),
            }
        }),
        Value::Array(items) => {
            items.iter().enumerate().any(|(index, item)| inside(Step::Index(index), item, true))
        }
        _ => false,
    }
}

/// Returns the schema that a local `$ref`, a JSON Pointer into `root`, refers to; `None` if the schema has no local
/// reference or it leads nowhere.
///
/// ```
/// use formwork_keywords::target;
///
/// let root = serde_json::json!({"$defs": {"age": {"type": "integer"}}});
/// assert_eq!(target(&root, &serde_json::json!({"$ref": "#/$defs/age"})), Some(&root["$defs"]["age"]));
/// ```
pub fn target<'s>(root: &'s Value, schema: &Value) -> Option<&'s Value> {
    let fragment = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
    root.pointer(&percent_decoded(fragment))
}

/// Returns the schema of the value at a path. References on the path are replaced by their targets, so that other
/// references to these stay unchanged. Alternatives on the path have no single schema.
///
/// ```
/// use formwork_keywords::part_of;
///
/// let mut schema = serde_json::json!({"properties": {"age": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}});
/// let path = "$.age".parse::<formwork_json::JsonPath>()?;
/// part_of(&mut schema, path.segments()).unwrap()["minimum"] = 0.into();
/// assert_eq!(schema["properties"]["age"], serde_json::json!({"type": "integer", "minimum": 0}));
/// assert_eq!(schema["$defs"]["n"], serde_json::json!({"type": "integer"}));
/// # Ok::<(), formwork_json::PathError>(())
/// ```
pub fn part_of<'s>(schema: &'s mut Value, path: &[Segment]) -> Option<&'s mut Value> {
    /// The maximum number of references to one part.
    const HOPS: usize = 16;

    let root = schema.clone();
    let mut part = schema;
    let mut steps = path.iter();
    loop {
        for _ in 0..HOPS {
            if part.get("$ref").is_none() {
                break;
            }
            *part = target(&root, part)?.clone();
        }
        if ["$ref", "anyOf", "oneOf", "allOf"].iter().any(|keyword| part.get(keyword).is_some()) {
            return None;
        }
        part = match steps.next() {
            None => return Some(part),
            Some(Segment::Key(name)) => part.get_mut("properties")?.get_mut(name)?,
            // The schema of all items is not that of a single item.
            Some(Segment::Index(index)) => part.get_mut("prefixItems")?.get_mut(*index)?,
        };
        if !part.is_object() {
            return None;
        }
    }
}

/// Returns the name of the definition that a normalised schema refers to; `None` if it is no reference.
///
/// ```
/// let reference = serde_json::json!({"$ref": "#/$defs/age"});
/// assert_eq!(formwork_keywords::definition_name(&reference), Some("age"));
/// ```
pub fn definition_name(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")
}

/// Decodes the fragment of a URI (RFC 3986, section 2.1). A fragment that is not UTF-8 once decoded is returned unchanged.
pub fn percent_decoded(fragment: &str) -> Cow<'_, str> {
    if !fragment.contains('%') {
        return fragment.into();
    }
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.bytes();
    while let Some(byte) = rest.next() {
        let hex = || fragment.get(fragment.len() - rest.len()..fragment.len() - rest.len() + 2);
        match hex().filter(|_| byte == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(decoded) => {
                bytes.push(decoded);
                rest.nth(1);
            }
            None => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).map_or(fragment.into(), Cow::Owned)
}

/// Returns the schema of the array item at an index, by `prefixItems` and `items`; `None` if neither describes it.
///
/// ```
/// let pair = serde_json::json!({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}});
/// assert_eq!(formwork_keywords::item(&pair, 7), Some(&pair["items"]));
/// ```
pub fn item(schema: &Value, index: usize) -> Option<&Value> {
    schema.get("prefixItems").and_then(|prefix| prefix.get(index)).or_else(|| schema.get("items"))
}

/// Returns the names of the members that a schema describes, directly or through references, `allOf`, variants and
/// conditions. Each name is returned once.
///
/// ```
/// use formwork_keywords::member_names;
///
/// let schema = serde_json::json!({"properties": {"id": {}}, "anyOf": [{"properties": {"id": {}, "total": {}}}]});
/// assert_eq!(member_names(&schema, &schema), ["id", "total"]);
/// ```
pub fn member_names<'s>(root: &'s Value, schema: &'s Value) -> Vec<&'s str> {
    let (mut seen, mut names, mut found) = (HashSet::new(), HashSet::new(), Vec::new());
    let mut open = vec![schema];
    while let Some(schema) = open.pop() {
        if !seen.insert(std::ptr::from_ref(schema)) {
            continue;
        }
        let own = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        found.extend(own.map(|(name, _)| name.as_str()).filter(|name| names.insert(*name)));
        let here = parts(schema).filter(|part| part.keyword.at == At::Here && part.keyword.name != "not");
        let inner: Vec<_> = target(root, schema).into_iter().chain(here.map(|part| part.schema)).collect();
        open.extend(inner.into_iter().rev());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ALL;
    use serde_json::json;

    /// Returns a schema in which every keyword that can hold subschemas does, in each of its forms.
    fn everywhere() -> Value {
        let leaf = |name: &str| json!({"$id": name, "const": {"$id": "a value"}});
        let value = |keyword: &Keyword| match keyword.holds {
            Holds::Schema if keyword.name == "items" => json!([leaf("items")]),
            Holds::Schema => leaf(keyword.name),
            Holds::List => json!([true, leaf(keyword.name)]),
            Holds::Map => json!({"const": leaf(keyword.name)}),
            Holds::Values => json!([{"$id": "a value"}]),
            Holds::Plain => json!("text"),
        };
        ALL.iter().map(|keyword| (keyword.name.to_owned(), value(keyword))).collect()
    }

    #[test]
    fn a_part_is_every_schema_directly_inside_and_its_pointer_leads_there() {
        let mut schema = everywhere();
        let ids: Vec<_> = parts(&schema).filter_map(|part| part.schema["$id"].as_str()).collect();
        let holds = |keyword: &&Keyword| !matches!(keyword.holds, Holds::Values | Holds::Plain);
        assert_eq!(ids, ALL.iter().filter(holds).map(|keyword| keyword.name).collect::<Vec<_>>());
        for part in parts(&schema) {
            assert_eq!(schema.pointer(&part.pointer("")), Some(part.schema));
        }
        for (name, value) in schema.as_object().into_iter().flatten() {
            let keyword = keyword(name).unwrap();
            let mut replaced = 0;
            let mapped = map_parts(keyword, value, |part| {
                replaced += 1;
                part.clone()
            });
            assert_eq!((&mapped, replaced), (value, parts(&json!({name: value})).count()));
        }
        let all: Vec<Value> = parts(&schema).map(|part| part.schema.clone()).collect();
        assert_eq!(parts_mut(&mut schema).map(|part| part.clone()).collect::<Vec<_>>(), all);
    }

    #[test]
    fn a_search_finds_schemas_and_no_values() {
        let schema = everywhere();
        for part in parts(&schema).filter(|part| part.schema.is_object()) {
            assert_eq!(find(&schema, |node| node == part.schema), Some(part.pointer("")));
        }
        assert_eq!(find(&schema, |node| node["$id"] == "a value"), None);
        let unknown = json!({"components": {"a/b": [{"not": {"$id": "x"}}]}, "properties": {"$id": {}}});
        assert_eq!(find(&unknown, |node| node["$id"] == "x").unwrap(), "/components/a~1b/0/not");
        assert_eq!(find(&unknown, |node| node["$id"].is_object()), None, "`properties` is no schema");
    }

    #[test]
    fn a_reference_is_a_pointer_in_a_fragment() {
        let root = json!({"$defs": {"a b": 1, "c/d": 2, "%zz": 3}});
        for (reference, found) in [
            ("#", Some(&root)),
            ("#/$defs/a%20b", Some(&root["$defs"]["a b"])),
            ("#/$defs/a b", Some(&root["$defs"]["a b"])),
            ("#/$defs/c~1d", Some(&root["$defs"]["c/d"])),
            ("#/%24defs/c%7E1d", Some(&root["$defs"]["c/d"])),
            ("#/$defs/%zz", Some(&root["$defs"]["%zz"])),
            ("#/$defs/%ff", None),
            ("#anchor", None),
            ("other#/$defs/c~1d", None),
        ] {
            assert_eq!(target(&root, &json!({"$ref": reference})), found, "{reference}");
        }
        assert_eq!(target(&root, &json!({})), None);
    }

    #[test]
    fn the_names_of_members_come_from_all_that_holds_here() {
        let schema = json!({
            "properties": {"a": {"properties": {"inside": {}}}},
            "$ref": "#/$defs/loop",
            "anyOf": [{"properties": {"c": {}, "a": {}}}],
            "then": {"properties": {"d": {}}},
            "not": {"properties": {"never": {}}},
            "$defs": {"loop": {"$ref": "#", "properties": {"b": {}}}},
        });
        assert_eq!(member_names(&schema, &schema), ["a", "b", "c", "d"]);
    }
}
