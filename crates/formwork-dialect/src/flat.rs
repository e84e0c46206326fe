use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// One schema object of the document, with its place.
#[derive(Debug, Clone)]
pub(crate) struct At<'a> {
    pub(crate) node: &'a Value,
    /// JSON Pointer into the normalised schema.
    pub(crate) pointer: String,
}

impl<'a> At<'a> {
    pub(crate) fn child(&self, keyword: &str) -> Option<Self> {
        let node = self.node.get(keyword)?;
        Some(At { node, pointer: format!("{}/{keyword}", self.pointer) })
    }

    /// The schema under a name in `properties` or `patternProperties`.
    pub(crate) fn named(&self, keyword: &str, name: &str) -> Option<Self> {
        let node = self.node.get(keyword)?.get(name)?;
        let step = name.replace('~', "~0").replace('/', "~1");
        Some(At { node, pointer: format!("{}/{keyword}/{step}", self.pointer) })
    }

    /// The schemas of a list.
    pub(crate) fn listed(&self, keyword: &str) -> Vec<Self> {
        let nodes = self.node.get(keyword).and_then(Value::as_array).into_iter().flatten();
        let at = |(index, node)| At { node, pointer: format!("{}/{keyword}/{index}", self.pointer) };
        nodes.enumerate().map(at).collect()
    }

    pub(crate) fn keywords(&self) -> impl Iterator<Item = (&'a str, &'a Value)> + use<'a> {
        self.node
            .as_object()
            .into_iter()
            .flat_map(Map::iter)
            .map(|(keyword, value)| (keyword.as_str(), value))
    }
}

/// How often each recursive definition was entered on the way to a place.
pub(crate) type Entered<'a> = BTreeMap<&'a str, usize>;

/// Schemas that hold together, with references and `allOf` followed and alternatives apart.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flat<'a> {
    pub(crate) members: Vec<At<'a>>,
    pub(crate) unions: Vec<Union<'a>>,
    pub(crate) entered: Entered<'a>,
    /// The places that were added already.
    pub(crate) seen: BTreeSet<String>,
}

/// One `anyOf` or `oneOf`.
#[derive(Debug, Clone)]
pub(crate) struct Union<'a> {
    pub(crate) keyword: &'static str,
    pub(crate) branches: Vec<At<'a>>,
}

/// The definitions of a normalised schema.
#[derive(Debug)]
pub(crate) struct Definitions<'a> {
    all: Option<&'a Map<String, Value>>,
    recursive: BTreeSet<&'a str>,
    /// How often a recursive definition is entered on one way.
    pub(crate) unroll: usize,
}

impl<'a> Definitions<'a> {
    pub(crate) fn new(root: &'a Value) -> Self {
        let all = root.get("$defs").and_then(Value::as_object);
        let uses: BTreeMap<&str, BTreeSet<&str>> = all
            .into_iter()
            .flatten()
            .map(|(name, schema)| {
                let mut names = BTreeSet::new();
                references(schema, &mut names);
                (name.as_str(), names)
            })
            .collect();
        let recursive = uses.keys().copied().filter(|name| reaches(&uses, name, name)).collect();
        Self { all, recursive, unroll: 0 }
    }

    pub(crate) fn is_recursive(&self) -> bool {
        !self.recursive.is_empty()
    }

    /// The definition that a node refers to, by its name.
    pub(crate) fn target(&self, node: &'a Value) -> Option<(&'a str, At<'a>)> {
        let name = node.get("$ref")?.as_str()?.strip_prefix("#/$defs/")?;
        let (name, node) = self.all?.get_key_value(name)?;
        Some((name, At { node, pointer: format!("/$defs/{name}") }))
    }

    /// The name of the recursive definition at a place, if it is one.
    pub(crate) fn recursive_name(&self, pointer: &str) -> Option<&'a str> {
        self.recursive.get(pointer.strip_prefix("/$defs/")?).copied()
    }

    /// Adds a schema to those that hold; `false` if nothing can satisfy it.
    pub(crate) fn flatten(&self, at: At<'a>, flat: &mut Flat<'a>) -> bool {
        match at.node {
            Value::Bool(allowed) => return *allowed,
            Value::Object(_) => {}
            _ => return true,
        }
        if !flat.seen.insert(at.pointer.clone()) {
            return true;
        }
        // The schema itself stands where its own keywords begin, so that names keep the order of the document.
        let mut placed = false;
        for (keyword, _) in at.keywords() {
            let possible = match keyword {
                "$ref" => self.follow(&at, flat),
                "allOf" => at.listed("allOf").into_iter().all(|member| self.flatten(member, flat)),
                "anyOf" | "oneOf" => self.union(&at, keyword, flat),
                _ => true,
            };
            if !possible {
                return false;
            }
            if matches!(keyword, "properties" | "prefixItems" | "items") && !placed {
                placed = true;
                flat.members.push(at.clone());
            }
        }
        if !placed {
            flat.members.push(at);
        }
        true
    }

    fn follow(&self, at: &At<'a>, flat: &mut Flat<'a>) -> bool {
        let Some((name, target)) = self.target(at.node) else { return true };
        if flat.seen.contains(&target.pointer) {
            return true;
        }
        if self.recursive.contains(name) {
            let entered = flat.entered.entry(name).or_insert(0);
            *entered += 1;
            if *entered > self.unroll {
                return false;
            }
        }
        self.flatten(target, flat)
    }

    fn union(&self, at: &At<'a>, keyword: &str, flat: &mut Flat<'a>) -> bool {
        let keyword = if keyword == "anyOf" { "anyOf" } else { "oneOf" };
        let mut branches = at.listed(keyword);
        if branches.len() == 1 {
            return branches.pop().is_none_or(|branch| self.flatten(branch, flat));
        }
        flat.unions.push(Union { keyword, branches });
        true
    }
}

fn references<'a>(node: &'a Value, out: &mut BTreeSet<&'a str>) {
    match node {
        Value::Object(keywords) => {
            if let Some(name) = keywords.get("$ref").and_then(Value::as_str) {
                out.extend(name.strip_prefix("#/$defs/"));
            }
            keywords.values().for_each(|value| references(value, out));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, out)),
        _ => {}
    }
}

fn reaches(uses: &BTreeMap<&str, BTreeSet<&str>>, from: &str, to: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut queue = vec![from];
    while let Some(name) = queue.pop() {
        for next in uses.get(name).into_iter().flatten() {
            if *next == to {
                return true;
            }
            if seen.insert(*next) {
                queue.push(next);
            }
        }
    }
    false
}
