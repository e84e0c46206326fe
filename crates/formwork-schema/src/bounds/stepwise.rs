//! The errors of a value whose validator would collect too many: found level by level, from the outside in.
//!
//! At each level only what the schema says about that value itself is asked, and which of its members are not valid. So
//! the work grows with the value, and not with the ways through it.

use std::collections::HashMap;
use std::rc::Rc;

use formwork_core::keywords::{At, Keyword, Role, keyword, map_parts};
use formwork_core::{JsonPath, Report, Segment, Stage, Violation};
use serde_json::{Map, Value, json};

use super::graph::parts;
use super::guard::guarded;
use super::is_deeper;
use super::measure::size;
use super::work::{MAX_ASKED, MAX_REPORTED, is_more_work};
use crate::build::{Formats, build};
use crate::shape::shape;
use crate::subschema::{governing, subschema};

/// Parts of schemas that are compiled to find the errors of one value: 0.1 s, and 1.5 s in a dev build.
const MAX_COMPILED: u64 = 20_000;

/// Parts of schemas that are put together to look at members: as much time again.
const MAX_LOOKED: u64 = 100_000;

/// Reports what is wrong with a value that is not valid. Errors of what is nested less than `deepest` may be collected at
/// once.
pub(crate) fn stepwise(
    normal: &Value,
    formats: Formats,
    deepest: Option<usize>,
    value: &Value,
    out: &mut Report,
) {
    let mut search = Search {
        normal,
        formats,
        deepest,
        value,
        looked: MAX_LOOKED,
        left: MAX_COMPILED,
        compiled: HashMap::new(),
        found: Vec::new(),
    };
    // Not by recursion, because it is about values that are deep.
    let mut open = vec![(JsonPath::root(), normal.clone())];
    while let Some((path, schema)) = open.pop() {
        let mut inner = search.look(&path, &schema);
        inner.reverse();
        open.append(&mut inner);
    }
    out.extend(search.found);
}

/// Returns the violation of a value that does not fit, where nothing says why.
pub(crate) fn vague(path: JsonPath, value: &Value) -> Violation {
    Violation::new(path, "anyOf", Stage::Schema)
        .with_expected("one of the variants that the schema describes")
        .with_found(crate::words::shown(value))
}

struct Search<'s> {
    normal: &'s Value,
    formats: Formats,
    deepest: Option<usize>,
    value: &'s Value,
    looked: u64,
    left: u64,
    /// By what the schema refers to: members of many values have the same.
    compiled: HashMap<(bool, String), Option<Rc<jsonschema::Validator>>>,
    found: Vec<Violation>,
}

impl Search<'_> {
    /// Looks for what is wrong at a place that is not valid, and returns those inside of it that are not valid either.
    fn look(&mut self, path: &JsonPath, schema: &Value) -> Vec<(JsonPath, Value)> {
        let Some(value) = path.get(self.value) else { return Vec::new() };
        let is_deep = self.deepest.is_some_and(|deepest| is_deeper(value, deepest));
        if !is_deep && !is_more_work(schema, value, false, MAX_REPORTED) && self.report(schema, path, value) {
            return Vec::new();
        }
        for part in governing(self.normal, path, self.value) {
            let own = own(part);
            if own.as_object().is_some_and(|own| !own.is_empty()) {
                self.report(&own, path, value);
            }
        }
        let steps: Vec<Segment> = match value {
            Value::Object(members) => members.keys().cloned().map(Segment::Key).collect(),
            Value::Array(items) => (0..items.len()).map(Segment::Index).collect(),
            _ => Vec::new(),
        };
        let inner = steps.into_iter().map(|step| path.child(step));
        let inner: Vec<_> = inner.filter_map(|path| Some((self.wrong(&path)?, path))).collect();
        // What is wrong inside of it, or was said before of what is around it, is reason enough.
        if inner.is_empty() && !self.found.iter().any(|found| found.path.is_within(path)) {
            self.found.push(vague(path.clone(), value));
        }
        inner.into_iter().map(|(schema, path)| (path, schema)).collect()
    }

    /// Reports what a schema says about one value; whether it says anything.
    fn report(&mut self, schema: &Value, path: &JsonPath, value: &Value) -> bool {
        let Some(validator) = self.compiled(schema, false) else { return false };
        let mut report = Report::default();
        shape(validator.iter_errors(value), value, &mut report);
        for mut violation in report.violations().iter().cloned() {
            violation.path = path.segments().iter().chain(violation.path.segments()).cloned().collect();
            let same = |other: &Violation| other.path == violation.path && other.rule == violation.rule;
            if !self.found.iter().any(same) {
                self.found.push(violation);
            }
        }
        !report.is_empty()
    }

    /// The schema of a place that is not valid.
    fn wrong(&mut self, path: &JsonPath) -> Option<Value> {
        let value = path.get(self.value).filter(|_| self.looked > 0)?;
        // What has no others in it was asked with what is around it.
        let schema = subschema(self.normal, path, self.value).filter(|schema| !is_leaf(schema))?;
        self.looked = self.looked.saturating_sub(all_parts(&schema));
        let is_wrong = !is_more_work(&schema, value, true, MAX_ASKED)
            && self.compiled(&schema, true).is_some_and(|validator| !validator.is_valid(value));
        is_wrong.then_some(schema)
    }

    fn compiled(&mut self, schema: &Value, guards: bool) -> Option<Rc<jsonschema::Validator>> {
        let key = (guards, schema.to_string());
        if let Some(known) = self.compiled.get(&key) {
            return known.clone();
        }
        self.left = self.left.checked_sub(all_parts(schema))?;
        let built = if guards { build(&guarded(schema), self.formats) } else { build(schema, self.formats) };
        let built = built.ok().map(Rc::new);
        self.compiled.insert(key, built.clone());
        built
    }
}

/// The parts of a schema and of the definitions that come with it.
fn all_parts(schema: &Value) -> u64 {
    let units = schema.get("$defs").and_then(Value::as_object).into_iter().flatten();
    units.map(|(_, unit)| size(unit)).fold(size(schema), u64::saturating_add)
}

/// Returns a schema's words about a value itself: each keyword of it holds for whatever the rest asks for.
fn own(schema: &Value) -> Value {
    let Value::Object(members) = schema else { return schema.clone() };
    let mut out = Map::new();
    for (name, value) in members {
        let kept = match (name.as_str(), keyword(name)) {
            (
                "properties" | "patternProperties" | "items" | "additionalProperties" | "prefixItems",
                Some(known),
            ) => map_parts(known, value, leaf),
            ("minContains" | "maxContains", _) => continue,
            (_, Some(known)) if known.at != At::Elsewhere => continue,
            (_, Some(Keyword { role: Role::Definitions | Role::Reference, .. })) => continue,
            _ => value.clone(),
        };
        out.insert(name.clone(), kept);
    }
    Value::Object(out)
}

/// A schema without others in it, or one that allows everything.
fn leaf(schema: &Value) -> Value {
    if is_leaf(schema) { schema.clone() } else { json!(true) }
}

/// Whether a schema has no others in it and refers to none.
fn is_leaf(schema: &Value) -> bool {
    schema.get("$ref").is_none() && schema.get("$recursiveRef").is_none() && parts(schema).next().is_none()
}
