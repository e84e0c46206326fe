//! The coercions of the places of a document.

use std::collections::HashSet;

use serde_json::Value;

use super::declared::{Coerce, Coercion, KEYWORD};
use crate::keywords::{definition_name, find, item, target};
use crate::normalise::{marked_members, rewritten};
use crate::{JsonPath, PathPattern, PatternStep, Segment};

/// The coercion of each place of the documents of one schema.
#[derive(Debug)]
pub(crate) struct Coercions {
    /// The normalised schema, with the keyword beside members.
    pub(super) schema: Value,
    places: Vec<(PathPattern, Coercion)>,
    /// The coercion where neither the schema nor a place sets another.
    base: Coercion,
    /// All coercions that occur.
    used: Vec<Coercion>,
}

impl Coercions {
    pub(crate) fn new(document: &Value, base: Coercion) -> Self {
        let mut plain = document.clone();
        if let Some(keywords) = plain.as_object_mut() {
            keywords.shift_remove(KEYWORD);
        }
        let schema = rewritten(&plain).0;
        let places = Coerce::of(document).and_then(Result::ok).map_or_else(Vec::new, |places| places.0);
        let root = places.iter().find(|(path, _)| path.steps().is_empty()).map(|(_, coercion)| *coercion);
        let base = root.unwrap_or(base);
        let mut used: Vec<Coercion> = places.iter().map(|(_, one)| *one).chain([base]).collect();
        find(&schema, |node| {
            used.extend(mark_of(node));
            false
        });
        Self { schema, places, base, used }
    }

    /// Returns whether a coercion occurs that satisfies a condition.
    pub(crate) fn any(&self, condition: impl Fn(Coercion) -> bool) -> bool {
        self.used.iter().any(|one| condition(*one))
    }

    /// Returns the names of the members that may be dropped, replaced or guessed, each with everything inside of it; `None` if that can
    /// be the whole document.
    pub(crate) fn changed_members(&self) -> Option<HashSet<String>> {
        let changes = |one: &Coercion| matches!(one, Coercion::Drop | Coercion::Default | Coercion::Guess);
        let is_marked = |part: &Value| mark_of(part).is_some_and(|one| changes(&one));
        let (mut names, has_others) = marked_members(&self.schema, is_marked);
        for (path, _) in self.places.iter().filter(|(_, one)| changes(one)) {
            let last = path.steps().iter().rev().find_map(|step| match step {
                PatternStep::One(Segment::Key(name)) => Some(name.clone()),
                _ => None,
            });
            names.insert(last?);
        }
        // The names of the places of other marks are not known.
        (!changes(&self.base) && !has_others).then_some(names)
    }

    /// Returns the coercion where nothing else is set.
    pub(crate) const fn base(&self) -> Coercion {
        self.base
    }

    /// Returns the coercion at a place, from that of the place around it and the schema of the place.
    pub(super) fn below(&self, around: Coercion, part: &Value, at: &JsonPath) -> Coercion {
        let exact = |path: &PathPattern| {
            path.steps().len() == at.segments().len() && !at.is_root() && path.matches(at)
        };
        let of_place = self.places.iter().rfind(|(path, _)| exact(path)).map(|(_, one)| *one);
        of_place.or_else(|| mark_of(part)).unwrap_or(around)
    }

    /// Returns whether an item may be left out: `drop` is set for the items of its list, and not only for what is around them.
    pub(super) fn drops_item(&self, at: &JsonPath, parts: &[&Value]) -> bool {
        let own = |part: &Value| self.below(Coercion::Ask, part, at) == Coercion::Drop;
        own(&Value::Null) || parts.iter().any(|part| own(part))
    }

    /// Returns the coercion at each place from the root to a path, with the schemas that may describe the value there.
    pub(crate) fn along(&self, path: &JsonPath) -> Vec<(Coercion, Vec<&Value>)> {
        let mut parts = self.every(vec![&self.schema]);
        let mut found = vec![(self.base, parts.clone())];
        let mut at = JsonPath::root();
        for segment in path.segments() {
            at.push(segment.clone());
            let inner = parts.iter().filter_map(|part| inside(part, segment)).collect();
            parts = self.every(inner);
            let around = found.last().map_or(self.base, |(coercion, _)| *coercion);
            let own = parts.iter().fold(around, |coercion, part| self.below(coercion, part, &at));
            let own = if parts.is_empty() { self.below(around, &Value::Null, &at) } else { own };
            found.push((own, parts.clone()));
        }
        found
    }

    /// Returns the coercion at a path.
    pub(crate) fn at(&self, path: &JsonPath) -> Coercion {
        self.along(path).last().map_or(self.base, |(coercion, _)| *coercion)
    }

    /// Returns schemas with everything that they include.
    fn every<'s>(&'s self, mut parts: Vec<&'s Value>) -> Vec<&'s Value> {
        let mut next = 0;
        while let Some(part) = parts.get(next).copied().filter(|_| next < MAX_PARTS) {
            next += 1;
            let variants = ["allOf", "anyOf", "oneOf"].iter().filter_map(|name| part[*name].as_array());
            for inner in
                variants.flatten().chain(definition_name(part).and_then(|_| target(&self.schema, part)))
            {
                if !parts.iter().any(|known| std::ptr::eq(*known, inner)) {
                    parts.push(inner);
                }
            }
        }
        parts
    }
}

/// The maximum number of schemas that may describe one value.
const MAX_PARTS: usize = 256;

/// Returns the schema of a member or item.
pub(super) fn inside<'s>(part: &'s Value, segment: &Segment) -> Option<&'s Value> {
    match segment {
        Segment::Key(name) => part["properties"].get(name).or_else(|| {
            let rest = part.get("additionalProperties");
            rest.filter(|_| part.get("patternProperties").is_none())
        }),
        Segment::Index(index) => item(part, *index),
    }
}

fn mark_of(part: &Value) -> Option<Coercion> {
    part.get(KEYWORD)?.as_str()?.parse().ok()
}
