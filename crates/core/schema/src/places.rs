//! Decides which places of a document a schema describes.

use std::collections::{HashMap, HashSet};

use formwork_core::keywords::{self, member_names, target};
use formwork_core::{PathPattern, PatternStep, Segment, nearest};
use regex::Regex;
use serde_json::Value;

use crate::subschema::distinct;

/// Returns the reason why no value of the schema can have anything at `place`, with the nearest existing place; `None` if a
/// value can, or if the schema leaves it open. `normal` is normalised.
///
/// An object that names members has no others unless the schema says so, as in lowering.
pub(crate) fn missing(normal: &Value, place: &PathPattern) -> Option<String> {
    let mut parts = vec![normal];
    for (nth, step) in place.steps().iter().enumerate() {
        match Walk::new(normal).inside(&parts, step) {
            Inside::Open => return None,
            Inside::Parts(inner) => parts = inner,
            Inside::Nothing => return Some(explained(normal, &parts, place, nth)),
        }
    }
    None
}

/// The result of one step.
#[derive(Clone)]
enum Inside<'s> {
    /// The schema does not restrict this place.
    Open,
    /// These parts of the schema describe the place.
    Parts(Vec<&'s Value>),
    /// The schema allows no value at this place.
    Nothing,
}

/// One step from some parts of a schema.
struct Walk<'s> {
    root: &'s Value,
    /// The results for each part; `None` while it is examined. A part with many references to it is examined once.
    known: HashMap<*const Value, Option<Inside<'s>>>,
}

impl<'s> Walk<'s> {
    fn new(root: &'s Value) -> Self {
        Self { root, known: HashMap::new() }
    }

    /// Returns the result for several parts, any of which may describe the value.
    fn inside(&mut self, parts: &[&'s Value], step: &PatternStep) -> Inside<'s> {
        either(parts.iter().map(|part| self.step(part, step)).collect())
    }

    /// Returns the result for a schema and everything that it includes.
    fn step(&mut self, part: &'s Value, step: &PatternStep) -> Inside<'s> {
        let key = std::ptr::from_ref(part);
        if let Some(known) = self.known.get(&key) {
            // A reference back to the same schema adds nothing.
            return known.clone().unwrap_or(Inside::Parts(Vec::new()));
        }
        self.known.insert(key, None);
        let found = self.look(part, step);
        self.known.insert(key, Some(found.clone()));
        found
    }

    fn look(&mut self, part: &'s Value, step: &PatternStep) -> Inside<'s> {
        let mut found = vec![own(part, step)];
        if part["$ref"].is_string() {
            found.push(target(self.root, part).map_or(Inside::Open, |target| self.step(target, step)));
        }
        for included in part["allOf"].as_array().into_iter().flatten() {
            found.push(self.step(included, step));
        }
        for keyword in ["anyOf", "oneOf"] {
            let Some(variants) = part[keyword].as_array() else { continue };
            let variants: Vec<_> = variants.iter().map(|variant| self.step(variant, step)).collect();
            found.push(either(variants));
        }
        // Members that a condition names are possible.
        let dependent = part["dependentSchemas"].as_object().into_iter().flat_map(|schemas| schemas.values());
        let conditions = ["if", "then", "else"].iter().filter_map(|keyword| part.get(*keyword));
        for condition in conditions.chain(dependent) {
            if let Inside::Parts(parts) = self.step(condition, step) {
                found.push(Inside::Parts(parts));
            }
        }
        both(found)
    }
}

/// Combines alternatives: one that describes the place is enough, and so is one that leaves it open.
fn either(found: Vec<Inside<'_>>) -> Inside<'_> {
    let is_open = found.iter().any(|inside| matches!(inside, Inside::Open));
    let parts: Vec<_> = found
        .into_iter()
        .filter_map(|inside| if let Inside::Parts(parts) = inside { Some(parts) } else { None })
        .flatten()
        .collect();
    match (parts.is_empty(), is_open) {
        (_, true) => Inside::Open,
        (false, false) => Inside::Parts(distinct(parts)),
        (true, false) => Inside::Nothing,
    }
}

/// Combines schemas that hold together: one that describes the place decides, and one that rules it out decides against
/// those that leave it open.
fn both(found: Vec<Inside<'_>>) -> Inside<'_> {
    let mut parts = Vec::new();
    let mut is_closed = false;
    for inside in found {
        match inside {
            Inside::Parts(inner) => parts.extend(inner),
            Inside::Nothing => is_closed = true,
            Inside::Open => {}
        }
    }
    match (parts.is_empty(), is_closed) {
        (false, _) => Inside::Parts(distinct(parts)),
        (true, true) => Inside::Nothing,
        (true, false) => Inside::Open,
    }
}

/// Returns each part once: with several ways to one part, their number would grow with every step.
/// Returns the result for the keywords of one schema, without those that include other schemas.
fn own<'s>(part: &'s Value, step: &PatternStep) -> Inside<'s> {
    match part {
        Value::Bool(false) => return Inside::Nothing,
        Value::Object(_) => {}
        _ => return Inside::Open,
    }
    match step {
        PatternStep::One(Segment::Key(name)) if allows(part, "object") => member(part, name),
        PatternStep::One(Segment::Index(index)) if allows(part, "array") => item(part, *index),
        PatternStep::One(_) => Inside::Nothing,
        PatternStep::Each => {
            let mut found = Vec::new();
            if allows(part, "array") {
                found.push(items(part));
            }
            if allows(part, "object") {
                found.push(members(part));
            }
            either(found)
        }
    }
}

/// Returns whether the `type` of a schema allows a type.
fn allows(part: &Value, last: &str) -> bool {
    match &part["type"] {
        Value::String(name) => name == last,
        Value::Array(names) => names.iter().any(|name| name == last),
        _ => true,
    }
}

fn part(schema: &Value) -> Inside<'_> {
    if *schema == Value::Bool(false) { Inside::Nothing } else { Inside::Parts(vec![schema]) }
}

fn member<'s>(schema: &'s Value, name: &str) -> Inside<'s> {
    if let Some(member) = schema["properties"].get(name) {
        return part(member);
    }
    let patterns = schema["patternProperties"].as_object().into_iter().flatten();
    // A pattern with look-around counts as a match, because a false error would be worse than none.
    let matching: Vec<_> = patterns
        .filter(|(pattern, _)| Regex::new(pattern).map_or(true, |pattern| pattern.is_match(name)))
        .map(|(_, schema)| schema)
        .collect();
    if !matching.is_empty() {
        return Inside::Parts(matching);
    }
    rest(schema)
}

/// Returns the result for members that a schema does not name.
fn rest(schema: &Value) -> Inside<'_> {
    let others =
        ["additionalProperties", "unevaluatedProperties"].iter().find_map(|keyword| schema.get(*keyword));
    let names_members = ["properties", "patternProperties"]
        .iter()
        .any(|keyword| schema[*keyword].as_object().is_some_and(|members| !members.is_empty()));
    match others {
        Some(Value::Bool(true)) => Inside::Open,
        Some(others) => part(others),
        None if names_members => Inside::Nothing,
        None => Inside::Open,
    }
}

fn members(schema: &Value) -> Inside<'_> {
    let named = ["properties", "patternProperties"].iter().filter_map(|keyword| schema[*keyword].as_object());
    let mut found: Vec<_> = named.flat_map(|members| members.values()).map(part).collect();
    found.push(rest(schema));
    either(found)
}

fn item(schema: &Value, index: usize) -> Inside<'_> {
    if schema["maxItems"].as_u64().is_some_and(|max| max <= index as u64) {
        return Inside::Nothing;
    }
    match keywords::item(schema, index) {
        Some(Value::Bool(true)) | None => Inside::Open,
        Some(item) => part(item),
    }
}

fn items(schema: &Value) -> Inside<'_> {
    if schema["maxItems"] == 0 {
        return Inside::Nothing;
    }
    let mut found: Vec<_> = schema["prefixItems"].as_array().into_iter().flatten().map(part).collect();
    found.push(match schema.get("items") {
        Some(Value::Bool(true)) | None => Inside::Open,
        Some(items) => part(items),
    });
    either(found)
}

/// The maximum number and depth of places among which the nearest is searched for.
const MAX_PLACES: usize = 1_000;
const MAX_DEPTH: usize = 8;

/// The maximum number of names in a message.
const MAX_LISTED: usize = 12;

/// Returns the message that step `nth` of `place` does not exist below `parts`, with the most similar place.
fn explained(root: &Value, parts: &[&Value], place: &PathPattern, nth: usize) -> String {
    let steps = place.steps();
    let before: PathPattern = steps.iter().take(nth).cloned().collect();
    let there = places(root, parts, &before);
    let siblings: Vec<(&str, &PathPattern)> = there
        .iter()
        .filter(|path| path.steps().len() == nth + 1)
        .filter_map(|path| Some((last_name(path)?, path)))
        .collect();
    let gone = format!("the schema has no `{place}`");
    if let Some(PatternStep::One(Segment::Key(name))) = steps.get(nth) {
        let suggestion = nearest(name, siblings.iter().map(|(name, _)| *name));
        if let Some((_, near)) = siblings.iter().find(|(name, _)| Some(*name) == suggestion) {
            let whole: PathPattern = near.steps().iter().chain(steps.iter().skip(nth + 1)).cloned().collect();
            let is_there = missing(root, &whole).is_none();
            return format!("{gone}: did you mean `{}`?", if is_there { &whole } else { *near });
        }
    }
    // Suggests the path with the same last name that shares the most steps.
    let all = places(root, &[root], &PathPattern::default());
    let last = last_name(place);
    let alike = |path: &&PathPattern| {
        let common = path.steps().iter().zip(steps).take_while(|(one, other)| one == other).count();
        (std::cmp::Reverse(common), path.steps().len())
    };
    let named = all.iter().filter(|path| last.is_some() && last_name(path) == last).min_by_key(alike);
    let suggestion = last.and_then(|last| nearest(last, all.iter().filter_map(last_name)));
    let near = named.or_else(|| {
        all.iter().filter(|path| suggestion.is_some() && last_name(path) == suggestion).min_by_key(alike)
    });
    if let Some(near) = near {
        return format!("{gone}: did you mean `{near}`?");
    }
    match siblings.as_slice() {
        [] => format!("{gone}: nothing can be inside of `{before}`"),
        siblings => {
            let names: Vec<_> =
                siblings.iter().take(MAX_LISTED).map(|(_, path)| format!("`{path}`")).collect();
            let more = if siblings.len() > MAX_LISTED { ", ..." } else { "" };
            format!("{gone}; there are {}{more}", names.join(", "))
        }
    }
}

fn last_name(path: &PathPattern) -> Option<&str> {
    match path.steps().last()? {
        PatternStep::One(Segment::Key(name)) => Some(name),
        PatternStep::One(Segment::Index(_)) | PatternStep::Each => None,
    }
}

/// Returns the places that the schema describes below some of its parts, the nearest first.
fn places(root: &Value, parts: &[&Value], base: &PathPattern) -> Vec<PathPattern> {
    let mut found: Vec<PathPattern> = Vec::new();
    let mut open: Vec<(PathPattern, Vec<&Value>)> = vec![(base.clone(), parts.to_vec())];
    for _ in 0..MAX_DEPTH {
        let mut deeper = Vec::new();
        for (path, parts) in open {
            let mut seen = HashSet::new();
            let names =
                parts.iter().flat_map(|part| member_names(root, part)).filter(|name| seen.insert(*name));
            let keys = names.map(|name| PatternStep::One(Segment::Key(name.to_owned())));
            for step in keys.chain([PatternStep::Each]) {
                let Inside::Parts(inner) = Walk::new(root).inside(&parts, &step) else { continue };
                let place: PathPattern = path.steps().iter().cloned().chain([step.clone()]).collect();
                if step != PatternStep::Each {
                    found.push(place.clone());
                } else if parts.iter().all(|part| allows(part, "object") && part["type"].is_string()) {
                    // Members of an object have names, so an index cannot be meant.
                    continue;
                }
                if found.len() >= MAX_PLACES {
                    return found;
                }
                deeper.push((place, inner));
            }
        }
        open = deeper;
    }
    found
}
