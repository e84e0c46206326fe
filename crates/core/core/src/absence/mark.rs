//! Marks the members that the root of a schema lists.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::{Map, Value, json};

use super::{Absent, KEYWORD};
use crate::keywords::{Role, definition_name, map_parts, parts};
use crate::{PathPattern, PatternStep, Segment, normalise_with_origins};

/// The maximum number of definitions that are copied, because only some of their uses are marked. Marks beyond it are left out.
const MAX_COPIES: usize = 1000;

/// Returns a normalised schema with marks on these members, and the origins of its definitions.
pub(crate) fn marked(normal: Value, origins: &mut BTreeMap<String, String>, absent: &Absent) -> Value {
    match absent {
        Absent::All => mark_all(&normal),
        Absent::Paths(paths) => Marker::new(&normal, paths).run(origins),
    }
}

/// Returns the indices of the paths at which a schema names no member.
pub(super) fn unnamed(schema: &Value, paths: &[PathPattern]) -> BTreeSet<usize> {
    let mut plain = schema.clone();
    if let Some(keywords) = plain.as_object_mut() {
        keywords.shift_remove(KEYWORD);
    }
    let (normal, mut origins) = normalise_with_origins(&plain);
    let mut marker = Marker::new(&normal, paths);
    marker.mark(&mut origins);
    (0..paths.len()).filter(|nth| !marker.named.contains(nth)).collect()
}

/// Marks the members at paths. A definition that is used elsewhere, too, is copied for the marked use.
struct Marker<'a> {
    normal: &'a Value,
    paths: &'a [PathPattern],
    /// The copied definitions: the name of the copy by the definition and the positions in the paths.
    copies: BTreeMap<(String, Positions), String>,
    /// The copies that are not written yet.
    queue: Vec<(String, String, Positions)>,
    /// The paths at which there is a member.
    named: HashSet<usize>,
}

/// The paths that lead further from a schema, each with the number of its steps so far.
type Positions = Vec<(usize, usize)>;

impl<'a> Marker<'a> {
    fn new(normal: &'a Value, paths: &'a [PathPattern]) -> Self {
        Self { normal, paths, copies: BTreeMap::new(), queue: Vec::new(), named: HashSet::new() }
    }

    fn run(mut self, origins: &mut BTreeMap<String, String>) -> Value {
        let mut out = self.mark(origins);
        // A definition whose uses are all marked is not used any more.
        let mut used = BTreeSet::new();
        let mut open = vec![&out];
        while let Some(part) = open.pop() {
            if let Some(name) = definition_name(part)
                && used.insert(name.to_owned())
            {
                open.extend(out["$defs"].get(name));
            }
            open.extend(parts(part).filter(|part| part.keyword.name != "$defs").map(|part| part.schema));
        }
        if let Some(Value::Object(definitions)) = out.get_mut("$defs") {
            definitions.retain(|name, _| used.contains(name));
        }
        origins.retain(|name, _| used.contains(name));
        out
    }

    fn mark(&mut self, origins: &mut BTreeMap<String, String>) -> Value {
        let start = (0..self.paths.len()).map(|path| (path, 0)).collect::<Positions>();
        let mut out = self.along(self.normal, &start);
        let mut written = Map::new();
        while let Some((copy, name, positions)) = self.queue.pop() {
            let definition = self.along(&self.normal["$defs"][&name], &positions);
            origins.extend(origins.get(&name).cloned().map(|origin| (copy.clone(), origin)));
            written.insert(copy, definition);
        }
        if let Some(Value::Object(definitions)) = out.get_mut("$defs") {
            definitions.extend(written);
        }
        out
    }

    /// Returns a schema with marks on the members inside of it.
    fn along(&mut self, schema: &Value, positions: &Positions) -> Value {
        let Value::Object(keywords) = schema else { return schema.clone() };
        if positions.is_empty() {
            return schema.clone();
        }
        let mut out = Map::new();
        for (name, value) in keywords {
            let changed = match name.as_str() {
                "$ref" => self.reference(schema, positions).unwrap_or_else(|| value.clone()),
                "properties" => self.members(value, positions),
                "allOf" | "anyOf" | "oneOf" | "then" | "else" | "dependentSchemas" => {
                    self.each(name, value, |_, _| positions.clone())
                }
                "prefixItems" => {
                    let item = |nth| Some(Segment::Index(nth));
                    self.each(name, value, |marker, nth| marker.further(positions, item(nth).as_ref()).0)
                }
                "items" | "additionalProperties" | "patternProperties" => {
                    self.each(name, value, |marker, _| marker.further(positions, None).0)
                }
                _ => value.clone(),
            };
            out.insert(name.clone(), changed);
        }
        Value::Object(out)
    }

    /// Changes every schema of a keyword; `next` returns the positions for the nth one.
    fn each(&mut self, name: &str, value: &Value, next: impl Fn(&Self, usize) -> Positions) -> Value {
        let Some(keyword) = crate::keywords::keyword(name) else { return value.clone() };
        let mut nth = 0;
        map_parts(keyword, value, |part| {
            let positions = next(self, nth);
            nth += 1;
            self.along(part, &positions)
        })
    }

    fn members(&mut self, members: &Value, positions: &Positions) -> Value {
        let marked = members.as_object().into_iter().flatten().map(|(name, member)| {
            let (further, ended) = self.further(positions, Some(&Segment::Key(name.clone())));
            let mut changed = self.along(member, &further);
            if !ended.is_empty() {
                mark(&mut changed);
                self.named.extend(ended);
            }
            (name.clone(), changed)
        });
        Value::Object(marked.collect())
    }

    /// Returns the positions after one more step, and the paths that end there. Without a segment only a wildcard fits.
    fn further(&self, positions: &Positions, segment: Option<&Segment>) -> (Positions, Vec<usize>) {
        let (mut further, mut ended) = (Positions::new(), Vec::new());
        for (path, at) in positions {
            let steps = self.paths.get(*path).map(PathPattern::steps).unwrap_or_default();
            let fits = match steps.get(*at) {
                Some(PatternStep::Each) => true,
                Some(PatternStep::One(own)) => segment == Some(own),
                None => false,
            };
            match steps.len() - at {
                _ if !fits => {}
                1 => ended.push(*path),
                _ => further.push((*path, at + 1)),
            }
        }
        (further, ended)
    }

    /// Returns the reference to the copy of a definition in which members are marked.
    fn reference(&mut self, schema: &Value, positions: &Positions) -> Option<Value> {
        let name = definition_name(schema)?;
        let definitions = self.normal["$defs"].as_object()?;
        definitions.get(name)?;
        let key = (name.to_owned(), positions.clone());
        if let Some(copy) = self.copies.get(&key) {
            return Some(json!(format!("#/$defs/{copy}")));
        }
        if self.copies.len() >= MAX_COPIES {
            return None;
        }
        let is_taken =
            |copy: &String| definitions.contains_key(copy) || self.copies.values().any(|own| own == copy);
        let copy = (2..).map(|number| format!("{name}_{number}")).find(|copy| !is_taken(copy))?;
        self.copies.insert(key, copy.clone());
        self.queue.push((copy.clone(), name.to_owned(), positions.clone()));
        Some(json!(format!("#/$defs/{copy}")))
    }
}

fn mark(schema: &mut Value) {
    if *schema == true {
        *schema = json!({});
    }
    if let Some(keywords) = schema.as_object_mut().filter(|keywords| !keywords.contains_key(KEYWORD)) {
        keywords.insert(KEYWORD.to_owned(), json!(true));
    }
}

/// Marks every member that an object names and requires, itself or through references and `allOf`, and that has more than one
/// possible value.
fn mark_all(normal: &Value) -> Value {
    let mut required = HashSet::new();
    let mut open = vec![normal];
    while let Some(schema) = open.pop() {
        let together = included(normal, schema);
        let names: HashSet<&str> = together
            .iter()
            .flat_map(|part| part["required"].as_array().into_iter().flatten().filter_map(Value::as_str))
            .collect();
        let members = together.iter().flat_map(|part| part["properties"].as_object().into_iter().flatten());
        let open_members = members.filter(|(name, _)| names.contains(name.as_str()));
        required.extend(open_members.map(|(_, member)| std::ptr::from_ref(member)));
        let is_described = |name: &str, role| {
            matches!(role, Role::Structure | Role::Definitions)
                || matches!(name, "then" | "else" | "dependentSchemas")
        };
        let inner = parts(schema).filter(|part| is_described(part.keyword.name, part.keyword.role));
        open.extend(inner.map(|part| part.schema));
    }
    rebuilt(normal, normal, &required)
}

/// Returns a schema and everything that it includes by references and `allOf`.
fn included<'s>(normal: &'s Value, schema: &'s Value) -> Vec<&'s Value> {
    let mut seen = HashSet::from([std::ptr::from_ref(schema)]);
    let mut found = vec![schema];
    let mut next = 0;
    while let Some(part) = found.get(next).copied() {
        next += 1;
        let target = definition_name(part).and_then(|name| normal["$defs"].get(name));
        let parts = target.into_iter().chain(part["allOf"].as_array().into_iter().flatten());
        found.extend(parts.filter(|part| seen.insert(std::ptr::from_ref(*part))));
    }
    found
}

fn rebuilt(normal: &Value, schema: &Value, required: &HashSet<*const Value>) -> Value {
    let Value::Object(keywords) = schema else { return schema.clone() };
    let changed = keywords.iter().map(|(name, value)| {
        let changed = crate::keywords::keyword(name).map(|keyword| {
            map_parts(keyword, value, |part| {
                let mut changed = rebuilt(normal, part, required);
                if required.contains(&std::ptr::from_ref(part)) && !is_constant(normal, part) {
                    mark(&mut changed);
                }
                changed
            })
        });
        (name.clone(), changed.unwrap_or_else(|| value.clone()))
    });
    Value::Object(changed.collect())
}

/// Returns whether a schema has only one value: the tag of a variant, which no text states.
fn is_constant(normal: &Value, schema: &Value) -> bool {
    let parts = included(normal, schema);
    let has_one = |part: &&Value| {
        part.get("const").is_some() || part["enum"].as_array().is_some_and(|values| values.len() == 1)
    };
    parts.iter().any(has_one)
}
