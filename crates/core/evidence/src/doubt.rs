//! A score for each value of an answer, from its agreement with other answers and from its evidence.

use std::collections::HashMap;

use formwork_json::{JsonPath, Segment};
use serde_json::Value;

use crate::compare::within;
use crate::leaves::{Counterpart, agreements, counterparts};
use crate::stated::is_stated;
use crate::{Evidence, Status, subschema};

/// The weights of a leaf's own agreement or evidence, of the mean of its member in all items, and of evidence beside agreement.
const OWN: f64 = 0.55;
const MEMBER: f64 = 0.35;
const EVIDENCE: f64 = 0.1;
/// The factors for a date without its year, and for the number 0.
const BAD_FORM: f64 = 0.2;
const ZERO: f64 = 0.4;

/// The score of a leaf.
#[derive(Debug, Clone, PartialEq)]
pub struct LeafScore {
    /// The path of the leaf.
    pub path: JsonPath,
    /// The score, from 0 (doubtful) to 1. It orders leaves and is no probability.
    pub score: f64,
}

/// Returns a score for each leaf of an answer: its agreement with other answers, that of all leaves of the same member, its form, and
/// its evidence in the input ([`Index::evidence`](crate::Index::evidence)). Another answer weighs as much as it agrees with the rest, so
/// that one that differs everywhere says little. A boolean, or a value that the schema lists, needs no place in the input. Without other
/// answers and without evidence, every score is 0.5.
///
/// ```
/// use formwork_evidence::{Index, scores};
/// use serde_json::json;
///
/// let value = json!({"name": "Ada", "born": 1851});
/// let evidence = Index::new("Ada, born 1815").evidence(&value, None);
/// let scores = scores(&value, &[&json!({"name": "ada", "born": 1815})], Some(&evidence), None);
/// assert!(scores[0].score > 0.9 && scores[1].score < 0.1);
/// ```
pub fn scores(
    value: &Value,
    others: &[&Value],
    evidence: Option<&[Evidence]>,
    schema: Option<&Value>,
) -> Vec<LeafScore> {
    let leaves = counterparts(value, &Value::Null);
    let mut agreed = vec![0.0; leaves.len()];
    let answers: Vec<&Value> = others.iter().copied().chain([value]).collect();
    // Of answers that agree in nothing, each has the same weight.
    let weights: Vec<f64> = agreements(&answers).iter().map(|weight| weight.max(f64::EPSILON)).collect();
    for (other, weight) in others.iter().zip(&weights) {
        for (sum, it) in agreed.iter_mut().zip(counterparts(value, other)) {
            *sum += if it.has_item && it.is_equal() { *weight } else { 0.0 };
        }
    }
    let total: f64 = weights.iter().take(others.len()).sum();
    agreed.iter_mut().for_each(|sum| *sum /= total.max(f64::EPSILON));
    let evidence: HashMap<&JsonPath, Status> =
        evidence.unwrap_or_default().iter().map(|it| (&it.path, it.status)).collect();
    let found: Vec<Option<f64>> = leaves
        .iter()
        .map(|leaf| match evidence.get(&leaf.path) {
            Some(Status::NotFound) if is_stated(Some(leaf.value)) && !is_choice(leaf, schema) => Some(0.0),
            // The absence of a value has no place in the input, and a choice needs none.
            Some(Status::NotFound) | None => None,
            Some(_) => Some(1.0),
        })
        .collect();
    let (mut of_agreed, mut of_found) = (Means::default(), Means::default());
    for ((leaf, agreed), found) in leaves.iter().zip(&agreed).zip(&found) {
        of_agreed.add(leaf, *agreed);
        found.iter().for_each(|found| of_found.add(leaf, *found));
    }
    let score = |((leaf, agreed), found): ((&Counterpart<'_>, &f64), &Option<f64>)| {
        let by_others = of_agreed.beside(leaf, *agreed);
        let found = found.map(|found| of_found.beside(leaf, found));
        let found = found.unwrap_or(if others.is_empty() { 0.5 } else { by_others });
        let score = if others.is_empty() { found } else { (1.0 - EVIDENCE) * by_others + EVIDENCE * found };
        LeafScore { path: leaf.path.clone(), score: score * form(leaf, schema) }
    };
    leaves.iter().zip(&agreed).zip(&found).map(score).collect()
}

/// The means of a figure by the member of each leaf, over all items.
#[derive(Default)]
struct Means(HashMap<String, (f64, f64)>);

impl Means {
    fn add(&mut self, leaf: &Counterpart<'_>, figure: f64) {
        let (sum, count) = self.0.entry(member(&leaf.path)).or_default();
        (*sum, *count) = (*sum + figure, *count + 1.0);
    }

    /// Returns the figure of a leaf, drawn to the mean of its member.
    fn beside(&self, leaf: &Counterpart<'_>, own: f64) -> f64 {
        let mean = self.0.get(&member(&leaf.path)).map_or(own, |(sum, count)| sum / count);
        (OWN * own + MEMBER * mean) / (OWN + MEMBER)
    }
}

/// Returns the path of a leaf without the indexes of items.
fn member(path: &JsonPath) -> String {
    let step = |step: &Segment| match step {
        Segment::Key(name) => name.clone(),
        Segment::Index(_) => "*".to_owned(),
    };
    path.segments().iter().map(step).collect::<Vec<_>>().join("\0")
}

/// Returns the schema of a leaf.
fn part<'s>(leaf: &Counterpart<'_>, root: &'s Value) -> Option<&'s Value> {
    leaf.path.segments().iter().try_fold(root, |schema, step| subschema(root, schema, step))
}

/// Returns whether a value is a boolean or one that the schema lists: what it says about an input seldom stands there in its words.
fn is_choice(leaf: &Counterpart<'_>, root: Option<&Value>) -> bool {
    let lists_it = |part: &Value| {
        let listed = part.get("enum").and_then(Value::as_array).into_iter().flatten();
        listed.chain(part.get("const")).any(|one| one == leaf.value)
    };
    let is_listed = |root| part(leaf, root).is_some_and(|part| within(root, part).into_iter().any(lists_it));
    leaf.value.is_boolean() || root.is_some_and(is_listed)
}

/// Returns the factor for the form of a value: models copy a date without its year against `format`, and write 0 for what a text lacks.
fn form(leaf: &Counterpart<'_>, root: Option<&Value>) -> f64 {
    let Some(root) = root else { return 1.0 };
    let format = part(leaf, root).and_then(|schema| schema.get("format")).and_then(Value::as_str);
    let is_full_date = |text: &str| {
        let shape = |c: char| if c.is_ascii_digit() { '0' } else { c };
        text.chars().map(shape).collect::<String>().starts_with("0000-00-00")
    };
    match leaf.value {
        Value::String(text) if matches!(format, Some("date" | "date-time")) && !is_full_date(text) => {
            BAD_FORM
        }
        Value::Number(number) if number.as_f64() == Some(0.0) => ZERO,
        _ => 1.0,
    }
}
