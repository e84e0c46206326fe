//! Finds the errors of a value level by level, from the outside in, where the validator would collect too many.
//!
//! At each level only the value itself is validated, and then each of its members. The work therefore grows with the value,
//! and not with the number of ways through it.

use std::collections::HashMap;
use std::rc::Rc;

use formwork_core::keywords::{At, Keyword, Role, keyword, map_parts};
use formwork_core::{JsonPath, Report, Segment, Stage, Violation};
use serde_json::{Map, Value, json};

use super::graph::parts;
use super::guard::guarded;
use super::is_deeper;
use super::measure::size;
use super::work::{MAX_REPORTED, MAX_VALIDATED, is_more_work};
use crate::build::{Formats, build};
use crate::shape::shape;
use crate::subschema::{governing, subschema};

/// The maximum number of schema parts that are compiled to find the errors of one value: 0.1 s, and 1.5 s in a dev build.
const MAX_COMPILED: u64 = 20_000;

/// The maximum number of schema parts that are merged to validate members: about the same time again.
const MAX_LOOKED: u64 = 100_000;

/// Reports the violations of an invalid value. Errors of values that are nested less than `deepest` may be collected at
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
    // A stack of its own instead of recursion, because the values may be deep.
    let mut open = vec![(JsonPath::root(), normal.clone())];
    while let Some((path, schema)) = open.pop() {
        let mut inner = search.look(&path, &schema);
        inner.reverse();
        open.append(&mut inner);
    }
    out.extend(search.found);
}

/// Returns the violation of an invalid value for which no reason was found.
pub(crate) fn vague(path: JsonPath, value: &Value) -> Violation {
    Violation::new(path, "anyOf", Stage::Schema)
        .with_expected("one of the variants that the schema describes")
        .with_found(crate::words::quoted(value))
}

struct Search<'s> {
    normal: &'s Value,
    formats: Formats,
    deepest: Option<usize>,
    value: &'s Value,
    looked: u64,
    left: u64,
    /// The compiled schemas, by their references: members of many values share them.
    compiled: HashMap<(bool, String), Option<Rc<jsonschema::Validator>>>,
    found: Vec<Violation>,
}

impl Search<'_> {
    /// Reports the violations of an invalid value, and returns its invalid members.
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
        // Violations inside of the value, or reported before for a value around it, are reason enough.
        if inner.is_empty() && !self.found.iter().any(|found| found.path.is_within(path)) {
            self.found.push(vague(path.clone(), value));
        }
        inner.into_iter().map(|(schema, path)| (path, schema)).collect()
    }

    /// Reports the violations of one value, and returns whether there are any.
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

    /// Returns the schema of a value, if the value is invalid.
    fn wrong(&mut self, path: &JsonPath) -> Option<Value> {
        let value = path.get(self.value).filter(|_| self.looked > 0)?;
        // Schemas without subschemas were evaluated with the value around it.
        let schema = subschema(self.normal, path, self.value).filter(|schema| !is_leaf(schema))?;
        self.looked = self.looked.saturating_sub(all_parts(&schema));
        let is_wrong = !is_more_work(&schema, value, true, MAX_VALIDATED)
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

/// Returns the number of parts of a schema and of its definitions.
fn all_parts(schema: &Value) -> u64 {
    let units = schema.get("$defs").and_then(Value::as_object).into_iter().flatten();
    units.map(|(_, unit)| size(unit)).fold(size(schema), u64::saturating_add)
}

/// Returns the keywords of a schema that concern a value itself; each of them holds independently of the others.
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

/// Returns a schema without subschemas, or one that allows everything.
fn leaf(schema: &Value) -> Value {
    if is_leaf(schema) { schema.clone() } else { json!(true) }
}

/// Returns whether a schema has neither subschemas nor references.
fn is_leaf(schema: &Value) -> bool {
    schema.get("$ref").is_none() && schema.get("$recursiveRef").is_none() && parts(schema).next().is_none()
}
