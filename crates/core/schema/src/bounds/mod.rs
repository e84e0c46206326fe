//! Bounds on schemas and values that would otherwise take unbounded time or stack.
//!
//! A schema may come from an untrusted source: a request, a user's file, a model. jsonschema has no bounds in three cases,
//! each of which has a remedy here.
//!
//! | resource | grows with | remedy |
//! |---|---|---|
//! | stack | nested parts; nested values, if the schema refers back to itself | [`measure`] counts levels; [`bounded`] rejects the schema, [`Deepest`] the value |
//! | time | ways through unions and references to the same value: ten million for 5 variants and 10 levels | [`measure`] counts the ways for one value before compilation; [`work`] counts the comparisons for a value, and too many are not begun |
//! | time | errors, which are collected along all of these ways | [`guard`] tests the tags of variants first; [`stepwise`] finds the errors level by level |
//! | both | the canonical form, which multiplies alternatives | [`cheap`] decides for which schemas it is computed |
//!
//! Counting is linear in the schema, or in the pairs of a part and a value, and does not recurse deeper than `MAX_DEPTH`:
//! [`graph`] contains the parts and the cycles of references.
//!
//! The levels were measured on dev builds, whose frames are the largest (jsonschema 0.60.2, KB of stack for each level:
//! compiling 5.5, reporting errors 3.2 for one value and 2.1 for nested values, validating without errors 0.6), so that a
//! thread with Rust's default of 2 MB uses at most three quarters of it. Most schemas are far below all bounds: for them
//! only [`bounded`] runs, once.

mod cheap;
mod graph;
mod guard;
mod measure;
mod stepwise;
mod work;

use std::collections::BTreeMap;

use formwork_core::{escape, normalise_with_origins};
use serde_json::Value;

use crate::error::SchemaError;
use guard::guarded;
use measure::{Measure, Reach};

pub(crate) use cheap::{MAX_CANONICAL, is_cheap};
pub(crate) use graph::{Graph, groups, is_cycle};
pub(crate) use stepwise::{stepwise, vague};
pub(crate) use work::{MAX_REPORTED as MAX_REPORTED_WORK, MAX_VALIDATED as MAX_WORK, is_more_work};

/// The maximum depth of values in a schema, which is that of JSON readers.
const MAX_DEPTH: usize = 127;

/// The maximum depth of parts while a schema is compiled.
const MAX_COMPILING: usize = 250;

/// The maximum depth of parts while one value is validated.
const MAX_LEVELS: usize = 400;

/// The maximum depth of parts and values while a value is validated without collecting errors.
const MAX_VALIDATED: usize = 2000;

/// The maximum depth of parts and values while errors are collected.
const MAX_REPORTED: usize = 500;

/// The maximum number of comparisons for one value, beyond the size of the schema.
const MAX_WAYS: u64 = 10_000;

/// The maximum number of definitions: jsonschema takes time quadratic in it (2.5 s for this number, in a dev build).
const MAX_DEFINITIONS: usize = 10_000;

/// The measurements of a schema within all bounds.
#[derive(Debug)]
pub(crate) struct Bounded {
    pub(crate) normal: Value,
    /// The normal form with [`guarded`] variants, if validating one value can take more work than its size suggests.
    pub(crate) guarded: Option<Value>,
    measure: Measure,
}

/// Rejects a schema that is nested too deeply for any further step.
pub(crate) fn shallow(schema: &Value) -> Result<(), SchemaError> {
    let Some(pointer) = too_deep(schema) else { return Ok(()) };
    let message = format!("the schema is nested deeper than {MAX_DEPTH} levels");
    Err(SchemaError { pointer, message })
}

/// Measures a schema that is [`shallow`], and rejects it if it exceeds a bound.
pub(crate) fn bounded(schema: &Value) -> Result<Bounded, SchemaError> {
    let (normal, origins) = normalise_with_origins(schema);
    let mut measure = Measure::of(&normal);
    let mut refused = refusal(&normal, &measure);
    let mut guards = None;
    if refused.is_none() && measure.unfolded > work::MAX_REPORTED {
        let guarded = guarded(&normal);
        measure = Measure::of(&guarded);
        refused = refusal(&guarded, &measure);
        guards = Some(guarded);
    }
    match refused {
        None => Ok(Bounded { normal, guarded: guards, measure }),
        Some((unit, message)) => Err(SchemaError { pointer: pointer_of(&normal, &origins, unit), message }),
    }
}

/// Returns the unit that exceeds a bound, and the reason.
fn refusal(normal: &Value, measure: &Measure) -> Option<(usize, String)> {
    let definitions = normal.get("$defs").and_then(Value::as_object).map_or(0, serde_json::Map::len);
    if definitions > MAX_DEFINITIONS {
        let message = format!("the schema refers to {definitions} definitions, more than {MAX_DEFINITIONS}");
        return Some((0, message));
    }
    if measure.compiling > MAX_COMPILING {
        let message =
            "too many definitions are nested deeply: move their inner schemas into definitions of their own";
        return Some((0, message.to_owned()));
    }
    // Reports the unit that exceeds the limit least: the growth begins there.
    let least = |of: &dyn Fn(&Reach) -> u64, limit: u64| {
        let all = measure.units.iter().map(of).enumerate().filter(|(_, found)| *found > limit);
        all.min_by_key(|(_, found)| *found).map(|(unit, _)| unit)
    };
    if let Some(unit) = least(&|reach| reach.levels as u64, MAX_LEVELS as u64) {
        let message = format!(
            "for one value, more than {MAX_LEVELS} parts include each other: merge schemas that only refer to another one"
        );
        return Some((unit, message));
    }
    let limit = MAX_WAYS.saturating_add(measure.parts.saturating_mul(4));
    least(&|reach| reach.ways, limit).map(|unit| {
        let message = "unions and references lead to each other in too many ways to compare one value with all of \
                       them: refer to each variant once";
        (unit, message.to_owned())
    })
}

impl Bounded {
    /// Returns the maximum depth of values.
    pub(crate) fn deepest(&self) -> Deepest {
        let levels = self.measure.units.iter().map(|reach| reach.levels).max().unwrap_or(1).max(1);
        let within = |limit| match self.measure.levels {
            Some(all) if all <= limit => None,
            _ => Some(limit / levels),
        };
        Deepest { validated: within(MAX_VALIDATED), reported: within(MAX_REPORTED) }
    }
}

/// The maximum depth of values within the stack; `None` if the schema does not depend on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deepest {
    /// The maximum depth for validating without collecting errors.
    pub(crate) validated: Option<usize>,
    /// The maximum depth for collecting all errors at once.
    pub(crate) reported: Option<usize>,
}

/// Returns the JSON Pointer of a unit in the schema as it was written.
pub(crate) fn pointer_of(normal: &Value, origins: &BTreeMap<String, String>, unit: usize) -> String {
    let names = normal.get("$defs").and_then(Value::as_object);
    let name = unit.checked_sub(1).and_then(|number| names?.keys().nth(number));
    name.and_then(|name| origins.get(name)).cloned().unwrap_or_default()
}

/// Returns whether a value is nested deeper than this.
pub(crate) fn is_deeper(value: &Value, than: usize) -> bool {
    match value {
        Value::Array(items) => than == 0 || items.iter().any(|item| is_deeper(item, than - 1)),
        Value::Object(members) => than == 0 || members.values().any(|member| is_deeper(member, than - 1)),
        _ => false,
    }
}

/// Returns the JSON Pointer of the first value that is nested too deeply.
fn too_deep(schema: &Value) -> Option<String> {
    fn steps<'s>(value: &'s Value, left: usize, path: &mut Vec<std::borrow::Cow<'s, str>>) -> bool {
        let mut step = |name, inner| {
            path.push(name);
            let found = left == 0 || steps(inner, left - 1, path);
            if !found {
                path.pop();
            }
            found
        };
        match value {
            Value::Array(items) => {
                items.iter().enumerate().any(|(index, item)| step(index.to_string().into(), item))
            }
            Value::Object(members) => members.iter().any(|(name, member)| step(name.as_str().into(), member)),
            _ => false,
        }
    }
    let mut path = Vec::new();
    steps(schema, MAX_DEPTH, &mut path)
        .then(|| path.iter().map(|step| format!("/{}", escape(step))).collect())
}
