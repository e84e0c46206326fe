//! A score for each value of an answer, from its agreement with other answers and from its evidence.

use std::collections::HashMap;

use formwork_json::{JsonPath, Segment};
use serde_json::Value;

use crate::compare::within;
use crate::evidence::MAX_SPANS;
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
/// that one that differs everywhere says little; and in a member, the less of its items it differs in alone, because one that writes all
/// dates or names in its own way says little about each. A value that more leaves have than the input has
/// places of it is supported by a share of a place. A boolean, or a value that the schema lists, needs no place in the input. Without other
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
    let agrees = |other: &&Value| counterparts(value, other).iter().map(Counterpart::agrees).collect();
    let agrees: Vec<Vec<bool>> = others.iter().map(agrees).collect();
    let is_disputed: Vec<bool> =
        (0..leaves.len()).map(|leaf| agrees.iter().all(|of| of.get(leaf) != Some(&true))).collect();
    let mut total = vec![0.0; leaves.len()];
    for (agrees, weight) in agrees.iter().zip(&weights) {
        let is_alone = |(agrees, is_disputed): (&bool, &bool)| f64::from(u8::from(!agrees && !is_disputed));
        let alone: Vec<f64> = agrees.iter().zip(&is_disputed).map(is_alone).collect();
        let mut of_alone = Means::default();
        leaves.iter().zip(&alone).for_each(|(leaf, alone)| of_alone.add(leaf, *alone));
        let sums = total.iter_mut().zip(&mut agreed);
        for (((leaf, alone), agrees), (total, agreed)) in leaves.iter().zip(alone).zip(agrees).zip(sums) {
            let weight = weight * (1.0 - of_alone.without(leaf, alone));
            *total += weight;
            *agreed += if *agrees { weight } else { 0.0 };
        }
    }
    agreed.iter_mut().zip(&total).for_each(|(sum, total)| *sum /= total.max(f64::EPSILON));
    let evidence: HashMap<&JsonPath, &Evidence> =
        evidence.unwrap_or_default().iter().map(|it| (&it.path, it)).collect();
    let mut claims: HashMap<Places, f64> = HashMap::new();
    for places in leaves.iter().filter_map(|leaf| Places::of(evidence.get(&leaf.path)?)) {
        *claims.entry(places).or_default() += 1.0;
    }
    let found: Vec<Option<f64>> = leaves
        .iter()
        .map(|leaf| match evidence.get(&leaf.path).map(|it| it.status) {
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
        let places = evidence.get(&leaf.path).and_then(|it| Places::of(it));
        let support = places.map_or(1.0, |places| places.support(&claims));
        let found = found.map(|found| of_found.beside(leaf, found) * support);
        let found = found.unwrap_or(if others.is_empty() { 0.5 } else { by_others });
        let score = if others.is_empty() { found } else { (1.0 - EVIDENCE) * by_others + EVIDENCE * found };
        LeafScore { path: leaf.path.clone(), score: score * form(leaf, schema) }
    };
    leaves.iter().zip(&agreed).zip(&found).map(score).collect()
}

/// The places of a value: how many there are, and the first one. Leaves with the same value have the same places.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Places {
    count: usize,
    first: usize,
}

impl Places {
    /// Returns the places of a value that stands in the input; `None` if it does not, or if not all of them are known.
    fn of(evidence: &Evidence) -> Option<Self> {
        let count = evidence.spans.len();
        let is_stated = matches!(evidence.status, Status::Exact | Status::Normalised);
        let first = evidence.spans.iter().map(|span| span.start).min()?;
        (is_stated && count < MAX_SPANS).then_some(Self { count, first })
    }

    /// Returns the places for each leaf that claims them, at most 1.
    fn support(self, claims: &HashMap<Self, f64>) -> f64 {
        let claims = claims.get(&self).copied().unwrap_or(1.0);
        (self.count as f64 / claims).min(1.0)
    }
}

/// The means of a figure by the member of each leaf, over all items.
#[derive(Default)]
struct Means(HashMap<String, (f64, f64)>);

impl Means {
    fn add(&mut self, leaf: &Counterpart<'_>, figure: f64) {
        let (sum, count) = self.0.entry(member(&leaf.path)).or_default();
        (*sum, *count) = (*sum + figure, *count + 1.0);
    }

    /// Returns the mean of the other leaves of a leaf's member; 0 if there are none.
    fn without(&self, leaf: &Counterpart<'_>, own: f64) -> f64 {
        let (sum, count) = self.0.get(&member(&leaf.path)).copied().unwrap_or_default();
        (sum - own) / (count - 1.0).max(1.0)
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
