//! A score for each value of an answer, from its agreement with other answers and from its evidence.

use std::collections::HashMap;

use formwork_json::JsonPath;
use serde_json::Value;

use crate::compare::within;
use crate::evidence::MAX_SPANS;
use crate::leaves::{Counterpart, agreements, counterparts};
use crate::record::member;
use crate::stated::is_stated;
use crate::{Evidence, Status, subschema};

/// The weights of a leaf's own agreement or evidence, of the mean of its member in all items, and of evidence beside agreement.
const OWN: f64 = 0.55;
const MEMBER: f64 = 0.35;
const EVIDENCE: f64 = 0.1;
/// The factors for a date without its year, and for the number 0.
const BAD_FORM: f64 = 0.2;
const ZERO: f64 = 0.4;

/// The factor for a text after which its phrase goes on, if no phrase of its member's other texts does.
const CUT: f64 = 0.2;

/// The score of a value that needs no place in the input, by evidence alone.
const NO_PLACE: f64 = 0.5;
/// The least score of a value that stands in the input, by evidence alone: those of values that do not are lower.
const SHARED: f64 = 0.4;

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
/// that one that differs everywhere says little. In a member, its other values weigh less the more of the items it alone has another
/// value in, because one that writes all dates or names in its own way says little about each. A value that more leaves have than the
/// input has places of it is supported by a share of a place, but more than one that is not in the input. A text after which its phrase
/// goes on is the more doubtful, the more of the texts of its member end where their phrases, cells or lines do. A boolean, or a value that
/// the schema lists, needs no place in the input, and a quote of the model changes no score. Without other answers and without evidence, every score is 0.5.
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
    scored(value, others, 1, evidence, schema)
}

/// Returns a score for each leaf of the answer that others give together ([`merge`](crate::merge)), like [`scores`] for an answer of its
/// own: the answers are all that it was merged from.
///
/// ```
/// use formwork_evidence::{merge, merged_scores};
/// use serde_json::json;
///
/// let answers = [&json!({"due": "3 May"}), &json!({"due": "2024-05-03"})];
/// let scores = merged_scores(&merge(&answers, None).value, &answers, None, None);
/// assert!(scores[0].score < 0.6);
/// ```
pub fn merged_scores(
    value: &Value,
    answers: &[&Value],
    evidence: Option<&[Evidence]>,
    schema: Option<&Value>,
) -> Vec<LeafScore> {
    scored(value, answers, 0, evidence, schema)
}

/// Returns the scores; `own` is the number of answers that the value is beside the others.
fn scored(
    value: &Value,
    others: &[&Value],
    own: usize,
    evidence: Option<&[Evidence]>,
    schema: Option<&Value>,
) -> Vec<LeafScore> {
    let leaves = counterparts(value, &Value::Null);
    let members = Members::of(&leaves);
    let agreed = agreed(value, others, own, &members);
    let evidence: HashMap<&JsonPath, &Evidence> =
        evidence.unwrap_or_default().iter().map(|it| (&it.path, it)).collect();
    let places: Vec<Option<Places>> =
        leaves.iter().map(|leaf| Places::of(evidence.get(&leaf.path)?)).collect();
    let mut claims: HashMap<Places, f64> = HashMap::new();
    for places in places.iter().flatten() {
        *claims.entry(*places).or_default() += 1.0;
    }
    let choices: Vec<bool> = leaves.iter().map(|leaf| is_choice(leaf, schema)).collect();
    // Whether each leaf is in the input; `None` if it needs no place.
    let found: Vec<Option<bool>> = leaves
        .iter()
        .zip(&choices)
        .map(|(leaf, is_choice)| match evidence.get(&leaf.path).map(|it| it.status) {
            // A quote is what the model says of its value.
            Some(Status::NotFound | Status::Quoted) if is_stated(Some(leaf.value)) && !is_choice => {
                Some(false)
            }
            // The absence of a value has no place in the input, and a choice needs none.
            Some(Status::NotFound | Status::Quoted) | None => None,
            Some(_) => Some(true),
        })
        .collect();
    let shares: Vec<f64> =
        places.iter().map(|places| places.map_or(1.0, |places| places.share(&claims))).collect();
    let figure = |is_found: bool| f64::from(u8::from(is_found));
    let of_found = members.means(found.iter().map(|found| found.map(figure)));
    // A value that is not found has the mean of the shares, so that it is below those of its member that are.
    let of_shares =
        members.means(found.iter().zip(&shares).map(|(found, share)| found.map(|it| figure(it) * share)));
    // Whether each text ends where its phrase does.
    let ends: Vec<Option<bool>> = leaves
        .iter()
        .zip(found.iter().zip(&choices))
        .map(|(leaf, (found, is_choice))| {
            let is_text = leaf.value.is_string() && *found == Some(true) && !is_choice;
            is_text.then(|| evidence.get(&leaf.path).is_none_or(|it| !it.has_more))
        })
        .collect();
    let of_ends = members.means(ends.iter().map(|ends| ends.map(figure)));
    let of_agreed = members.means(agreed.iter().copied().map(Some));
    let score = |(nth, leaf): (usize, &Counterpart<'_>)| {
        let at = |all: &[f64]| all.get(nth).copied().unwrap_or_default();
        let by_others = drawn(at(&agreed), at(&of_agreed));
        let found = match found.get(nth).copied().flatten() {
            Some(true) => {
                // A heading may be the place of all rows below it.
                let least = if choices.get(nth) == Some(&true) { NO_PLACE } else { SHARED };
                let whole = drawn(1.0, at(&of_found));
                let cut = if ends.get(nth) == Some(&Some(false)) { (1.0 - CUT) * at(&of_ends) } else { 0.0 };
                (whole * at(&shares)).max(least.min(whole)) * (1.0 - cut)
            }
            Some(false) => drawn(0.0, at(&of_shares)),
            None if others.is_empty() => NO_PLACE,
            None => by_others,
        };
        let score = if others.is_empty() { found } else { (1.0 - EVIDENCE) * by_others + EVIDENCE * found };
        LeafScore { path: leaf.path.clone(), score: score * form(leaf, schema) }
    };
    leaves.iter().enumerate().map(score).collect()
}

/// Returns a leaf's own figure, drawn to the mean of its member.
fn drawn(own: f64, mean: f64) -> f64 {
    (OWN * own + MEMBER * mean) / (OWN + MEMBER)
}

/// Returns the share of the other answers that agree with each leaf, by their weights.
fn agreed(value: &Value, others: &[&Value], own: usize, members: &Members) -> Vec<f64> {
    let answers: Vec<&Value> = others.iter().copied().chain((own > 0).then_some(value)).collect();
    // Of answers that agree in nothing, each has the same weight.
    let weights: Vec<f64> = agreements(&answers).iter().map(|weight| weight.max(f64::EPSILON)).collect();
    let beside: Vec<Vec<Counterpart<'_>>> = others.iter().map(|other| counterparts(value, other)).collect();
    let agreeing: Vec<usize> = (0..members.of_leaf.len())
        .map(|leaf| beside.iter().filter(|all| all.get(leaf).is_some_and(Counterpart::agrees)).count())
        .collect();
    let (mut sums, mut totals) = (vec![0.0; agreeing.len()], vec![0.0; agreeing.len()]);
    for (all, weight) in beside.iter().zip(weights) {
        // Whether the answer has another value, and nobody has it too: all the others agree, and they are several.
        let is_alone = |(it, agreeing): (&Counterpart<'_>, &usize)| {
            let has_other = it.has_item && is_stated(it.other) && !it.agrees();
            has_other && agreeing + 1 == others.len() && agreeing + own > 1
        };
        let alone: Vec<f64> =
            all.iter().zip(&agreeing).map(|leaf| f64::from(u8::from(is_alone(leaf)))).collect();
        let way = members.shares_of_others(&alone);
        for (((it, way), sum), total) in all.iter().zip(way).zip(&mut sums).zip(&mut totals) {
            let weight = if it.agrees() { weight } else { weight * (1.0 - way) };
            *total += weight;
            *sum += if it.agrees() { weight } else { 0.0 };
        }
    }
    sums.iter().zip(totals).map(|(sum, total)| sum / total.max(f64::EPSILON)).collect()
}

/// The places of a value: how many there are, and the first one. Leaves with the same value have the same places.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Places {
    count: usize,
    first: (usize, usize),
}

impl Places {
    /// Returns the places of a value that stands in the input; `None` if it does not, or if not all of them are known.
    fn of(evidence: &Evidence) -> Option<Self> {
        let count = evidence.spans.len();
        let is_in_input = matches!(evidence.status, Status::Exact | Status::Normalised);
        let first = evidence.spans.iter().map(|span| (span.start, span.end)).min()?;
        (is_in_input && count < MAX_SPANS).then_some(Self { count, first })
    }

    /// Returns the share of a place that each leaf with these places has, at most 1.
    fn share(self, claims: &HashMap<Self, f64>) -> f64 {
        let claims = claims.get(&self).copied().unwrap_or(1.0);
        (self.count as f64 / claims).min(1.0)
    }
}

/// The members of a document: leaves whose paths differ in the indexes of items alone have the same one.
struct Members {
    /// The number of each leaf's member.
    of_leaf: Vec<usize>,
    count: usize,
}

impl Members {
    fn of(leaves: &[Counterpart<'_>]) -> Self {
        let mut numbers = HashMap::new();
        let mut number = |leaf: &Counterpart<'_>| {
            let next = numbers.len();
            *numbers.entry(member(&leaf.path)).or_insert(next)
        };
        let of_leaf = leaves.iter().map(&mut number).collect();
        Self { of_leaf, count: numbers.len() }
    }

    /// Returns the sum and the number of the figures of each member.
    fn sums(&self, figures: impl Iterator<Item = Option<f64>>) -> Vec<(f64, f64)> {
        let mut sums = vec![(0.0, 0.0); self.count];
        for (member, figure) in self.of_leaf.iter().zip(figures) {
            if let (Some((sum, count)), Some(figure)) = (sums.get_mut(*member), figure) {
                (*sum, *count) = (*sum + figure, *count + 1.0);
            }
        }
        sums
    }

    /// Returns the mean of each leaf's member, of the leaves that have a figure; 0 if none has.
    fn means(&self, figures: impl Iterator<Item = Option<f64>>) -> Vec<f64> {
        let sums = self.sums(figures);
        let mean = |member: &usize| sums.get(*member).map_or(0.0, |(sum, count)| sum / count.max(1.0));
        self.of_leaf.iter().map(mean).collect()
    }

    /// Returns for each leaf the share of the other leaves of its member that have something, as if one more had not: few leaves say
    /// little about a member.
    fn shares_of_others(&self, have: &[f64]) -> Vec<f64> {
        let sums = self.sums(have.iter().copied().map(Some));
        let share =
            |(member, own): (&usize, &f64)| sums.get(*member).map_or(0.0, |(sum, count)| (sum - own) / count);
        self.of_leaf.iter().zip(have).map(share).collect()
    }
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
