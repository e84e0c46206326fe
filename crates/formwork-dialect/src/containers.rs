use std::collections::HashSet;

use formwork_core::LossKind;
use serde_json::Value;

use crate::expand::Expander;
use crate::flat::{At, Flat};
use crate::form::{Alternative, ArrayForm, Extra, Form, ObjectForm, Pattern, Property};
use crate::pattern;
use crate::scalars::{least, most};

impl<'a> Expander<'a> {
    /// What arrays satisfy all of these.
    pub(crate) fn array(&mut self, flat: &Flat<'a>, depth: usize) -> Option<ArrayForm> {
        let members = &flat.members;
        let longest = members.iter().map(|at| at.listed("prefixItems").len()).max().unwrap_or(0);
        let mut max = least(members, "maxItems");
        let mut prefix = Vec::new();
        for index in 0..longest {
            let schemas = members.iter().filter_map(|at| {
                at.listed("prefixItems").into_iter().nth(index).or_else(|| at.child("items"))
            });
            match self.form(schemas.collect(), &flat.entered, depth + 1) {
                Some(form) => prefix.push(form),
                // Nothing may stand here: the array ends before.
                None => break,
            }
        }
        let rest: Vec<_> = members.iter().filter_map(|at| at.child("items")).collect();
        let closed = members.iter().any(|at| at.node.get("unevaluatedItems") == Some(&Value::Bool(false)));
        let has_rest = prefix.len() == longest
            && !(closed && rest.is_empty())
            && max.is_none_or(|max| max > longest as u64);
        let items = if has_rest { self.form(rest, &flat.entered, depth + 1) } else { None };
        if items.is_none() {
            max = Some(max.unwrap_or(u64::MAX).min(prefix.len() as u64));
        }
        let unique = members.iter().any(|at| at.node.get("uniqueItems") == Some(&Value::Bool(true)));
        if unique && let Some(values) = items.as_deref().and_then(only_literals) {
            // Each can stand once.
            max = Some(max.unwrap_or(u64::MAX).min((prefix.len() + values) as u64));
        }
        let min = most(members, "minItems").max(self.contained(members));
        let bounded = members.iter().find(|at| at.node.get("maxItems").is_some()).or(members.first());
        let origin = bounded.map(|at| self.origin(&at.pointer)).unwrap_or_default();
        max.is_none_or(|max| min <= max).then_some(ArrayForm { prefix, items, min, max, origin })
    }

    /// How many items `contains` asks for.
    fn contained(&self, members: &[At<'a>]) -> u64 {
        let asks = members.iter().filter(|at| at.node.get("contains").is_some());
        asks.map(|at| at.node.get("minContains").and_then(Value::as_u64).unwrap_or(1)).max().unwrap_or(0)
    }

    /// What objects satisfy all of these.
    pub(crate) fn object(&mut self, flat: &Flat<'a>, depth: usize) -> Option<ObjectForm> {
        let members = &flat.members;
        let required: HashSet<&str> = members.iter().flat_map(|at| strings(at, "required")).collect();
        let mut names: Vec<&'a str> = Vec::new();
        let mut seen = HashSet::new();
        let declared =
            members.iter().flat_map(|at| at.node.get("properties").and_then(Value::as_object)).flatten();
        let listed: Vec<&'a str> = members.iter().flat_map(|at| self.names_listed(at)).collect();
        let only_listed = !listed.is_empty();
        let all = declared.map(|(name, _)| name.as_str()).chain(listed);
        for name in all.chain(members.iter().flat_map(|at| strings(at, "required"))) {
            // The order is what is generated.
            if seen.insert(name) {
                names.push(name);
            }
        }
        let patterns = Patterns::of(members);
        let mut properties = Vec::new();
        for name in names {
            let is_required = required.contains(name);
            let schemas = members.iter().flat_map(|at| patterns.governing(at, name)).collect();
            match self.form(schemas, &flat.entered, depth + 1) {
                Some(form) if patterns.allow(name) => {
                    properties.push(Property { name: name.to_owned(), form, required: is_required });
                }
                _ if is_required => return None,
                _ => {}
            }
        }
        let extras = if only_listed {
            Vec::new()
        } else {
            self.extras(flat, &patterns, !properties.is_empty(), depth)
        };
        let min = most(members, "minProperties");
        let max = least(members, "maxProperties");
        let most_possible = if extras.is_empty() { properties.len() as u64 } else { u64::MAX };
        let fewest = properties.iter().filter(|property| property.required).count() as u64;
        let possible = min <= most_possible && max.is_none_or(|max| min <= max && fewest <= max);
        let origin = members.first().map(|at| self.origin(&at.pointer)).unwrap_or_default();
        let name =
            members.iter().find_map(|at| self.definitions.recursive_name(&at.pointer)).map(str::to_owned);
        possible.then_some(ObjectForm { name, properties, extras, min, max, origin })
    }

    /// The names that `propertyNames` lists.
    fn names_listed(&self, at: &At<'a>) -> Vec<&'a str> {
        let Some(names) = at.child("propertyNames") else { return Vec::new() };
        let names = self.definitions.target(names.node).map_or(names, |(_, target)| target);
        strings(&names, "enum").collect()
    }

    /// The members whose names are not listed, where the schema speaks about such.
    fn extras(
        &mut self,
        flat: &Flat<'a>,
        patterns: &Patterns<'a>,
        has_properties: bool,
        depth: usize,
    ) -> Vec<Extra> {
        let members = &flat.members;
        let mut extras = Vec::new();
        for (text, translated) in &patterns.keys {
            let schemas = members.iter().filter_map(|at| {
                at.named("patternProperties", text).or_else(|| at.child("additionalProperties"))
            });
            match (translated, self.form(schemas.collect(), &flat.entered, depth + 1)) {
                (Some(translated), Some(form)) => {
                    let pattern = Pattern { source: (*text).to_owned(), translated: translated.clone() };
                    extras.push(Extra { pattern: Some(pattern), form });
                }
                (None, Some(_)) => self.lose_each(members, "patternProperties", LossKind::Tightened),
                (_, None) => {}
            }
        }
        let closes = |at: &At<'a>| {
            ["additionalProperties", "unevaluatedProperties"]
                .iter()
                .any(|keyword| at.node.get(*keyword) == Some(&Value::Bool(false)))
        };
        if members.iter().any(closes) {
            return extras;
        }
        let rest: Vec<_> = members.iter().filter_map(|at| at.child("additionalProperties")).collect();
        let speaks = rest.iter().any(|at| at.node.is_object()) || !has_properties && extras.is_empty();
        if !speaks {
            // What may be anything is left out: a small model would never stop adding to it.
            self.lose_each(members, "additionalProperties", LossKind::Tightened);
            return extras;
        }
        if let Some(form) = self.form(rest, &flat.entered, depth + 1) {
            extras.push(Extra { pattern: patterns.name.clone(), form });
        }
        extras
    }
}

/// What schemas say about names by pattern.
struct Patterns<'a> {
    /// The keys of `patternProperties`, as written and translated.
    keys: Vec<(&'a str, Option<String>)>,
    /// The pattern of `propertyNames`.
    name: Option<Pattern>,
}

impl<'a> Patterns<'a> {
    fn of(members: &[At<'a>]) -> Self {
        let mut keys: Vec<(&'a str, Option<String>)> = Vec::new();
        for at in members {
            let patterns = at.node.get("patternProperties").and_then(Value::as_object);
            for (text, _) in patterns.into_iter().flatten() {
                if !keys.iter().any(|(known, _)| known == text) {
                    keys.push((text, pattern::translate(text)));
                }
            }
        }
        let name = members.iter().find_map(|at| at.node.get("propertyNames")?.get("pattern")?.as_str());
        let name = name.and_then(|source| {
            let translated = pattern::translate(source)?;
            Some(Pattern { source: source.to_owned(), translated })
        });
        Self { keys, name }
    }

    /// The subschemas of one schema that hold for the property of this name.
    fn governing(&self, at: &At<'a>, name: &str) -> Vec<At<'a>> {
        let mut found: Vec<_> = at.named("properties", name).into_iter().collect();
        for (text, translated) in &self.keys {
            if translated.as_ref().is_some_and(|pattern| pattern::matches(pattern, name)) {
                found.extend(at.named("patternProperties", text));
            }
        }
        if found.is_empty() {
            found.extend(at.child("additionalProperties"));
        }
        found
    }

    fn allow(&self, name: &str) -> bool {
        self.name.as_ref().is_none_or(|pattern| pattern::matches(&pattern.translated, name))
    }
}

fn strings<'a>(at: &At<'a>, keyword: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    at.node.get(keyword).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// How many values there are, if they are listed.
fn only_literals(form: &Form) -> Option<usize> {
    match form.alternatives.as_slice() {
        [Alternative::Literals(literals)] => Some(literals.values.len()),
        _ => None,
    }
}
