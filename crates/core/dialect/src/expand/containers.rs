//! Arrays and objects.

use foldhash::{HashMap, HashSet};
use formwork_core::LossKind;
use serde_json::Value;

use super::Expander;
use super::flat::{At, Flat};
use super::scalars::{largest, smallest};
use crate::form::{Alternative, ArrayForm, Extra, Form, ObjectForm, Pattern, Property, Shape, Use};
use crate::pattern::Matcher;
use crate::place::{PlaceId, Places};

impl<'a> Expander<'a> {
    /// Returns the arrays that satisfy all of these schemas.
    pub(super) fn array(&mut self, flat: &Flat<'a>) -> Option<ArrayForm> {
        let members = &flat.members;
        let mut max = smallest(members, "maxItems");
        let places = &mut self.forms.places;
        let prefixes: Vec<_> = members.iter().map(|at| at.listed("prefixItems", places)).collect();
        let rests: Vec<_> = members.iter().map(|at| at.child("items", places)).collect();
        let longest = prefixes.iter().map(Vec::len).max().unwrap_or(0);
        let mut prefix = Vec::with_capacity(longest);
        for index in 0..longest {
            let parts = prefixes.iter().zip(&rests);
            let schemas = parts.filter_map(|(prefix, rest)| prefix.get(index).or(rest.as_ref())).copied();
            prefix.push(self.value(schemas.collect()));
        }
        let rest: Vec<_> = rests.into_iter().flatten().collect();
        let is_closed = |at: &At<'a>| at.node.get("unevaluatedItems") == Some(&Value::Bool(false));
        // Subschemas that are not enforced may also evaluate items.
        let closed = rest.is_empty() && flat.loose.is_empty() && members.iter().any(is_closed);
        let items = if closed || max.is_some_and(|max| max <= longest as u64) {
            None
        } else {
            Some(self.value(rest))
        };
        if items.is_none() {
            max = Some(max.unwrap_or(u64::MAX).min(prefix.len() as u64));
        }
        let min = largest(members, "minItems").max(contained(members));
        let bounded = members.iter().find(|at| at.node.get("maxItems").is_some()).or(members.first());
        let origin = bounded.map(|at| at.place).unwrap_or_default();
        max.is_none_or(|max| min <= max).then_some(ArrayForm {
            prefix,
            items,
            min,
            max,
            is_bounded: false,
            origin,
        })
    }

    /// Returns the objects that satisfy all of these schemas.
    pub(super) fn object(&mut self, flat: &Flat<'a>) -> Option<ObjectForm> {
        let members = &flat.members;
        let patterns = self.patterns(members);
        let mut loose = Loose::default();
        for at in &flat.loose {
            loose.gather(&mut self.definitions, &mut self.forms.places, *at);
        }
        let listed = self.names_listed(members);
        let required: HashSet<&str> = members.iter().flat_map(|at| strings(at.node, "required")).collect();
        let declared = members.iter().filter_map(|at| at.node.get("properties")?.as_object()).flatten();
        let declared = declared.map(|(name, _)| name.as_str());
        let mut seen = HashSet::default();
        // The order is the order of generation.
        let names = declared
            .chain(listed.iter().flatten().copied())
            .chain(members.iter().flat_map(|at| strings(at.node, "required")))
            .chain(loose.names.iter().copied())
            .filter(|name| seen.insert(*name));
        let mut properties = Vec::new();
        for name in names.collect::<Vec<_>>() {
            let required = required.contains(name);
            if !patterns.allow(name) || listed.as_ref().is_some_and(|listed| !listed.contains(name)) {
                if required {
                    return None;
                }
                continue;
            }
            let places = &mut self.forms.places;
            let schemas = members.iter().flat_map(|at| patterns.governing(*at, name, places)).collect();
            properties.push(Property { name: name.to_owned(), value: self.value(schemas), required });
        }
        let mut object = ObjectForm {
            properties,
            min: largest(members, "minProperties"),
            max: smallest(members, "maxProperties"),
            origin: members.first().map(|at| at.place).unwrap_or_default(),
            ..ObjectForm::default()
        };
        if listed.is_none() {
            self.extras(flat, &patterns, &loose, &mut object);
        }
        Some(object)
    }

    /// Returns an object with any members.
    pub(super) fn open_object(&mut self, any: Use, origin: PlaceId) -> Shape {
        let extras = vec![Extra { pattern: None, is_rest: true, value: any }];
        Shape::Object(ObjectForm { extras, origin, ..ObjectForm::default() })
    }

    /// Returns the `propertyNames` of a schema.
    fn names(&mut self, at: &At<'a>) -> Option<At<'a>> {
        let names = at.child("propertyNames", &mut self.forms.places)?;
        let target = self.definitions.target(names.node, &mut self.forms.places);
        Some(target.map_or(names, |(_, target)| target))
    }

    /// Returns the names that all `propertyNames` enumerate; `None` if none enumerates names.
    fn names_listed(&mut self, members: &[At<'a>]) -> Option<HashSet<&'a str>> {
        let mut common: Option<HashSet<&'a str>> = None;
        for at in members {
            let Some(names) = self.names(at) else { continue };
            if names.node.get("enum").is_some_and(Value::is_array) {
                let listed: HashSet<_> = strings(names.node, "enum").collect();
                common = Some(match common {
                    None => listed,
                    Some(common) => common.intersection(&listed).copied().collect(),
                });
            }
        }
        common
    }

    /// Adds the members with names that are not enumerated.
    fn extras(
        &mut self,
        flat: &Flat<'a>,
        patterns: &Patterns<'a>,
        loose: &Loose<'a>,
        object: &mut ObjectForm,
    ) {
        let members = &flat.members;
        let mut unread = Vec::new();
        for (text, translated) in &patterns.keys {
            let places = &mut self.forms.places;
            let governing = |at: &At<'a>, places: &mut Places| {
                at.named("patternProperties", text, places).or_else(|| {
                    // A name may match another pattern of the same schema, which is not checked here.
                    let alone = at.node.get("patternProperties").is_none();
                    at.child("additionalProperties", places).filter(|_| alone)
                })
            };
            let schemas = members.iter().filter_map(|at| governing(at, places)).collect();
            let value = self.value(schemas);
            match translated {
                Some(Matcher { pattern, .. }) => {
                    object.extras.push(Extra { pattern: Some(pattern.clone()), is_rest: false, value });
                }
                None => {
                    self.lose_each(members, "patternProperties", LossKind::Loosened);
                    unread.push(value);
                }
            }
        }
        let says = |keyword: &str| members.iter().any(|at| at.node.get(keyword).is_some());
        let closes =
            |keyword: &str| members.iter().any(|at| at.node.get(keyword) == Some(&Value::Bool(false)));
        // The additional members of a neighbouring schema count as evaluated.
        let is_evaluated = says("additionalProperties") || loose.is_open || flat.is_unknown;
        let closed = closes("additionalProperties") || closes("unevaluatedProperties") && !is_evaluated;
        if !closed {
            let places = &mut self.forms.places;
            let mut rest: Vec<_> =
                members.iter().filter_map(|at| at.child("additionalProperties", places)).collect();
            if !is_evaluated {
                rest.extend(members.iter().filter_map(|at| at.child("unevaluatedProperties", places)));
            }
            let names =
                members.iter().any(|at| at.node["properties"].as_object().is_some_and(|all| !all.is_empty()));
            let silent = !says("additionalProperties")
                && !says("unevaluatedProperties")
                && !says("patternProperties")
                && !says("propertyNames");
            object.is_unsaid = names && silent && !flat.is_unknown && !loose.is_open;
            unread.push(self.value(rest));
        }
        // If the patterns cannot be distinguished, each name may belong to each pattern.
        let value = match unread.as_slice() {
            [] => return,
            [one] => one.clone(),
            several => {
                let same = |value: &Use| Alternative {
                    notes: value.notes.clone(),
                    ..Alternative::of(Shape::Same(value.form))
                };
                let alternatives = several.iter().map(same).collect();
                Use::of(self.forms.add(Form { alternatives, ..Form::default() }))
            }
        };
        let pattern = patterns.name.as_ref().map(|(pattern, _)| pattern.clone());
        object.extras.push(Extra { pattern, is_rest: true, value });
    }

    fn patterns(&mut self, members: &[At<'a>]) -> Patterns<'a> {
        let mut keys: Vec<(&'a str, Option<Matcher>)> = Vec::new();
        let mut known = HashMap::default();
        for at in members {
            let patterns = at.node.get("patternProperties").and_then(Value::as_object);
            for (text, _) in patterns.into_iter().flatten() {
                known.entry(text.as_str()).or_insert_with(|| keys.push((text, Matcher::of(text))));
            }
        }
        let name = members.iter().find_map(|at| {
            let source = self.names(at)?.node.get("pattern")?.as_str()?;
            let matcher = Matcher::of(source)?;
            Some((matcher.pattern.clone(), matcher))
        });
        Patterns { keys, name }
    }
}

/// Returns the number of items that `contains` requires.
fn contained(members: &[At<'_>]) -> u64 {
    let asks = members.iter().filter(|at| at.node.get("contains").is_some());
    asks.map(|at| at.node.get("minContains").and_then(super::count).unwrap_or(1)).max().unwrap_or(0)
}

/// The constraints of schemas on names by pattern.
struct Patterns<'a> {
    /// The keys of `patternProperties`, with their translation if there is one.
    keys: Vec<(&'a str, Option<Matcher>)>,
    /// The pattern of `propertyNames`.
    name: Option<(Pattern, Matcher)>,
}

impl<'a> Patterns<'a> {
    /// Returns the subschemas of one schema that apply to the property of this name.
    fn governing(&self, at: At<'a>, name: &str, places: &mut Places) -> Vec<At<'a>> {
        let mut found: Vec<_> = at.named("properties", name, places).into_iter().collect();
        let mut is_doubtful = false;
        for (text, translated) in &self.keys {
            match translated {
                Some(pattern) if pattern.matches(name) => {
                    found.extend(at.named("patternProperties", text, places));
                }
                Some(_) => {}
                None => is_doubtful |= at.node["patternProperties"].get(text).is_some(),
            }
        }
        if found.is_empty() && !is_doubtful {
            found.extend(at.child("additionalProperties", places));
        }
        found
    }

    fn allow(&self, name: &str) -> bool {
        self.name.as_ref().is_none_or(|(_, matcher)| matcher.matches(name))
    }
}

/// The members that unenforced subschemas name: `then`, `not`, the branches of a dropped union.
#[derive(Default)]
struct Loose<'a> {
    names: Vec<&'a str>,
    /// Whether one of them constrains members that it does not name.
    is_open: bool,
    seen: HashSet<usize>,
}

impl<'a> Loose<'a> {
    fn gather(&mut self, definitions: &mut super::Definitions<'a>, places: &mut Places, at: At<'a>) {
        let Value::Object(keywords) = at.node else { return };
        if !self.seen.insert(at.key()) {
            return;
        }
        for (keyword, value) in keywords {
            match (keyword.as_str(), value) {
                ("properties", Value::Object(named)) => self.names.extend(named.keys().map(String::as_str)),
                ("required", _) => self.names.extend(strings(at.node, "required")),
                ("additionalProperties" | "unevaluatedProperties", value) => {
                    self.is_open |= value != &Value::Bool(false);
                }
                ("patternProperties", Value::Object(named)) => self.is_open |= !named.is_empty(),
                ("$ref", _) => match definitions.target(at.node, places) {
                    Some((_, target)) => self.gather(definitions, places, target),
                    None => self.is_open = true,
                },
                _ => {}
            }
        }
        let mut inner = Vec::new();
        for keyword in ["allOf", "anyOf", "oneOf"] {
            inner.extend(at.listed(keyword, places));
        }
        for keyword in ["if", "then", "else", "not"] {
            inner.extend(at.child(keyword, places));
        }
        inner.extend(at.each_named("dependentSchemas", places));
        for at in inner {
            self.gather(definitions, places, at);
        }
    }
}

pub(super) fn strings<'a>(node: &'a Value, keyword: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    node.get(keyword).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}
