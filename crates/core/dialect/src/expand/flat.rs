//! Flattens schemas that apply to the same place: follows references and `allOf`, and separates alternatives.

use foldhash::HashMap;
use formwork_core::is_wrapped;
use formwork_core::keywords::{Keyword, definition_name, keyword};
use serde_json::{Map, Value};

use crate::form::Notes;
use crate::place::{PlaceId, Places};

/// A schema of the document, with its location.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) node: &'a Value,
    pub(crate) place: PlaceId,
}

impl<'a> At<'a> {
    /// Returns the identity of the schema: its address in memory.
    pub(crate) fn key(&self) -> usize {
        std::ptr::from_ref(self.node) as usize
    }

    pub(crate) fn child(&self, keyword: &'static str, places: &mut Places) -> Option<Self> {
        let node = self.node.get(keyword)?;
        let place = if keyword == "items" && self.node.get("prefixItems").is_some() {
            places.rest(self.place)
        } else {
            places.keyword(self.place, keyword)
        };
        Some(At { node, place })
    }

    /// Returns the schema of a name in `properties` or another map of schemas.
    pub(crate) fn named(&self, keyword: &'static str, name: &str, places: &mut Places) -> Option<Self> {
        let node = self.node.get(keyword)?.get(name)?;
        Some(At { node, place: places.named(self.place, keyword, name) })
    }

    /// Returns all schemas of a map of schemas.
    pub(crate) fn each_named(&self, keyword: &'static str, places: &mut Places) -> Vec<Self> {
        let schemas = self.node.get(keyword).and_then(Value::as_object).into_iter().flatten();
        schemas.map(|(name, node)| At { node, place: places.named(self.place, keyword, name) }).collect()
    }

    /// Returns the schemas of a list.
    pub(crate) fn listed(&self, keyword: &'static str, places: &mut Places) -> Vec<Self> {
        let nodes = self.node.get(keyword).and_then(Value::as_array).into_iter().flatten();
        // The union that normalising adds around a member which a text may lack is not in the document.
        let is_added = keyword == "anyOf" && is_wrapped(self.node);
        let at = |(index, node)| {
            let place = if is_added { self.place } else { places.listed(self.place, keyword, index) };
            At { node, place }
        };
        nodes.enumerate().map(at).collect()
    }

    pub(crate) fn keywords(&self) -> impl Iterator<Item = (&'a str, &'a Value)> + use<'a> {
        let keywords = self.node.as_object().into_iter().flat_map(Map::iter);
        keywords.map(|(keyword, value)| (keyword.as_str(), value))
    }

    /// Returns whether the schema only has annotations and keywords with this name.
    pub(crate) fn says_only(&self, keyword: &str) -> bool {
        self.keywords().all(|(name, _)| name == keyword || is_annotation(name))
    }
}

/// Returns whether a keyword constrains nothing: an annotation, or an unknown one.
pub(crate) fn is_annotation(name: &str) -> bool {
    name != "$ref" && !keyword(name).is_some_and(Keyword::constrains)
}

/// Schemas that apply to the same value.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flat<'a> {
    pub(crate) members: Vec<At<'a>>,
    pub(crate) unions: Vec<Union<'a>>,
    /// Subschemas that no form enforces, whose named members are still allowed.
    pub(crate) loose: Vec<At<'a>>,
    /// Whether a reference leads to another, unknown document.
    pub(crate) is_unknown: bool,
    pub(crate) notes: Notes,
    /// The schemas that were already added.
    seen: Vec<usize>,
}

/// Alternatives, each of several schemas that apply together: `anyOf`, `oneOf`, or `then` and `else`.
#[derive(Debug, Clone)]
pub(crate) struct Union<'a> {
    pub(crate) keyword: &'static str,
    pub(crate) at: PlaceId,
    pub(crate) branches: Vec<Vec<At<'a>>>,
}

/// The definitions of a normalised schema.
#[derive(Debug)]
pub(crate) struct Definitions<'a> {
    all: Option<&'a Map<String, Value>>,
    places: HashMap<&'a str, PlaceId>,
}

impl<'a> Definitions<'a> {
    pub(crate) fn new(root: &'a Value) -> Self {
        Self { all: root.get("$defs").and_then(Value::as_object), places: HashMap::default() }
    }

    /// Returns the definition that a schema refers to, with its name.
    pub(crate) fn target(&mut self, node: &'a Value, places: &mut Places) -> Option<(&'a str, At<'a>)> {
        let name = definition_name(node)?;
        let (name, node) = self.all?.get_key_value(name)?;
        let place = *self.places.entry(name.as_str()).or_insert_with(|| places.definition(name));
        Some((name.as_str(), At { node, place }))
    }

    /// Adds a schema to those that apply; `false` if nothing can satisfy it.
    pub(crate) fn flatten(&mut self, at: At<'a>, flat: &mut Flat<'a>, places: &mut Places) -> bool {
        match at.node {
            Value::Bool(allowed) => return *allowed,
            Value::Object(_) => {}
            _ => return true,
        }
        if flat.seen.contains(&at.key()) {
            return true;
        }
        flat.seen.push(at.key());
        flat.notes.or(Notes::of(at.node));
        // The schema is placed where its own keywords start, so that names keep the order of the document.
        let mut placed = false;
        for (keyword, _) in at.keywords() {
            let possible = match keyword {
                "$ref" => match self.target(at.node, places) {
                    Some((_, target)) => self.flatten(target, flat, places),
                    None => {
                        flat.is_unknown = true;
                        true
                    }
                },
                "allOf" => {
                    let parts = at.listed("allOf", places);
                    parts.into_iter().all(|part| self.flatten(part, flat, places))
                }
                "anyOf" => self.union(at, "anyOf", flat, places),
                "oneOf" => self.union(at, "oneOf", flat, places),
                "if" => {
                    condition(at, flat, places);
                    true
                }
                "not" => {
                    flat.loose.extend(at.child("not", places));
                    true
                }
                "dependentSchemas" => {
                    flat.loose.extend(at.each_named("dependentSchemas", places));
                    true
                }
                _ => true,
            };
            if !possible {
                return false;
            }
            if matches!(keyword, "properties" | "prefixItems" | "items") && !placed {
                placed = true;
                flat.members.push(at);
            }
        }
        if !placed {
            flat.members.push(at);
        }
        true
    }

    fn union(&mut self, at: At<'a>, keyword: &'static str, flat: &mut Flat<'a>, places: &mut Places) -> bool {
        let mut branches = at.listed(keyword, places);
        if branches.len() == 1 {
            return branches.pop().is_none_or(|branch| self.flatten(branch, flat, places));
        }
        if !branches.is_empty() {
            let branches = branches.into_iter().map(|branch| vec![branch]).collect();
            flat.unions.push(Union { keyword, at: at.place, branches });
        }
        true
    }
}

/// Adds `if`, `then` and `else` as a union of two branches: `if` with `then`, and `else`. With only one of the two, the
/// other branch allows anything, and nothing can be enforced.
fn condition<'a>(at: At<'a>, flat: &mut Flat<'a>, places: &mut Places) {
    let parts = ["if", "then", "else"].map(|keyword| at.child(keyword, places));
    match parts {
        [Some(condition), Some(then), Some(otherwise)] => {
            flat.loose.push(condition);
            let branches = vec![vec![condition, then], vec![otherwise]];
            flat.unions.push(Union { keyword: "if", at: at.place, branches });
        }
        parts => flat.loose.extend(parts.into_iter().flatten()),
    }
}
