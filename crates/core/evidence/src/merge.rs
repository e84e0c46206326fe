//! One answer out of several, leaf by leaf.

use crate::Index;
use formwork_json::{JsonPath, Segment};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::leaves::{agreements, counterparts, is_equal, similarity};
use crate::stated::is_stated;
use crate::versions::versions;

/// The weight of completeness: of equal answers, the one that states more leaves is right more often, because models omit more than they
/// invent.
const COMPLETE: f64 = 0.2;
/// The weight of a value that stands in the input, beside 1 to 2.2 for each answer that has it.
const FOUND: f64 = 0.3;

/// The answer that several answers give together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Merged {
    /// The value.
    pub value: Value,
    /// The leaves on which the answers differ, in the order of the value, and the items, lists and objects that not all answers have.
    pub disputed: Vec<Disputed>,
    /// The places of each object, list and leaf in the answers, in the order in which they were compared.
    #[serde(skip)]
    pub places: Vec<MergedPlace>,
}

/// A place of a merged value, and the same place in the answers.
#[derive(Debug, Clone, PartialEq)]
pub struct MergedPlace {
    /// The path in the merged value.
    pub path: JsonPath,
    /// The numbers of the answers, each with its path.
    pub answers: Vec<(usize, JsonPath)>,
    /// Whether the value is that of one answer; otherwise its members or items are merged.
    pub is_leaf: bool,
}

/// A leaf on which answers differ, or an item, a list or an object that not all of them have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Disputed {
    /// The path in the merged value; for an item that was left out, that of its list.
    pub path: JsonPath,
    /// The different values, the chosen one first; null for none.
    pub candidates: Vec<Value>,
    /// The weight of the answers with the chosen value, as a share of all, from 0 to 1.
    pub support: f64,
}

/// Merges answers to the same question about a text. Items of lists are aligned; an item stays if at least half of the weight has it, and
/// each leaf is the value with the largest weight, the earliest of equals.
///
/// The weight of an answer grows with its mean agreement with the others and with the number of leaves that it states. A value that
/// stands in the text, if it is known, weighs more, so that of equally frequent values it is chosen.
///
/// ```
/// use formwork_evidence::{Index, merge};
/// use serde_json::json;
///
/// let [a, b, c] = [json!({"n": 1, "of": "x"}), json!({"n": 2, "of": "X"}), json!({"n": 2, "of": "y"})];
/// let merged = merge(&[&a, &b, &c], None);
/// assert_eq!(merged.value, json!({"n": 2, "of": "x"}));
/// assert_eq!(merged.disputed[0].candidates, [json!(2), json!(1)]);
///
/// let (one, other) = (json!({"total": 21.0}), json!({"total": 12.0}));
/// assert_eq!(merge(&[&one, &other], Some(&Index::new("Total: 12.00"))).value, other);
/// ```
pub fn merge(answers: &[&Value], index: Option<&Index<'_>>) -> Merged {
    let stated = |answer: &&Value| {
        counterparts(answer, &Value::Null).iter().filter(|it| is_stated(Some(it.value))).count()
    };
    let stated: Vec<usize> = answers.iter().map(stated).collect();
    let max = stated.iter().copied().max().unwrap_or_default().max(1) as f64;
    let weight = |(agreement, stated): (f64, &usize)| 1.0 + agreement + COMPLETE * *stated as f64 / max;
    let weights = agreements(answers).into_iter().zip(&stated).map(weight).collect();
    let votes: Vec<Vote<'_>> = answers
        .iter()
        .enumerate()
        .map(|(from, value)| Vote { from, path: JsonPath::root(), value: Some(value) })
        .collect();
    let mut merge = Merge { weights, index, disputed: Vec::new(), places: Vec::new() };
    let value = merge.values(&JsonPath::root(), &votes).unwrap_or_default();
    Merged { value, disputed: merge.disputed, places: merge.places }
}

/// Returns the leaves of an answer on which others differ from it, like [`Merged::disputed`].
///
/// ```
/// use formwork_evidence::disputed;
/// use serde_json::json;
///
/// let found = disputed(&json!({"n": 1, "of": "x"}), &[&json!({"n": 2, "of": "X"})]);
/// assert_eq!((found[0].path.to_string().as_str(), found.len(), found[0].support), ("$.n", 1, 0.5));
/// ```
pub fn disputed(answer: &Value, others: &[&Value]) -> Vec<Disputed> {
    let beside: Vec<_> = others.iter().map(|other| counterparts(answer, other)).collect();
    let leaves = counterparts(answer, &Value::Null).into_iter().enumerate();
    let all = leaves.map(|(nth, leaf)| {
        let (mut candidates, mut equal) = (vec![leaf.value.clone()], 1.0);
        for other in beside.iter().filter_map(|all| all.get(nth)) {
            match candidates.iter().position(|known| is_equal(Some(known), other.other)) {
                Some(0) => equal += 1.0,
                Some(_) => {}
                None => candidates.push(other.other.cloned().unwrap_or_default()),
            }
        }
        Disputed { path: leaf.path, candidates, support: equal / (1.0 + others.len() as f64) }
    });
    all.filter(|it| it.candidates.len() > 1).collect()
}

/// The value of an answer at a place.
#[derive(Clone)]
struct Vote<'v> {
    from: usize,
    path: JsonPath,
    value: Option<&'v Value>,
}

struct Merge<'i> {
    weights: Vec<f64>,
    index: Option<&'i Index<'i>>,
    disputed: Vec<Disputed>,
    places: Vec<MergedPlace>,
}

impl Merge<'_> {
    fn weight(&self, vote: &Vote<'_>) -> f64 {
        self.weights.get(vote.from).copied().unwrap_or(1.0)
    }

    /// Returns the weight of the evidence for a value.
    fn support(&self, value: &Value) -> f64 {
        if self.index.is_some_and(|index| index.states(value, 1)) { FOUND } else { 0.0 }
    }

    fn total<'v>(&self, votes: impl IntoIterator<Item = &'v Vote<'v>>) -> f64 {
        votes.into_iter().map(|vote| self.weight(vote)).sum()
    }

    /// Returns the merged value at a place; `None` if it has none.
    fn values(&mut self, path: &JsonPath, votes: &[Vote<'_>]) -> Option<Value> {
        let of = |is: fn(&Value) -> bool| {
            votes.iter().filter(|vote| vote.value.is_some_and(is)).cloned().collect::<Vec<_>>()
        };
        let half = self.total(votes) / 2.0;
        let objects = of(|value| value.as_object().is_some_and(|members| !members.is_empty()));
        let lists = of(|value| value.as_array().is_some_and(|items| !items.is_empty()));
        let (are_objects, are_lists) = (self.total(&objects) > half, self.total(&lists) > half);
        let answers = votes.iter().map(|vote| (vote.from, vote.path.clone())).collect();
        let is_leaf = !are_objects && !are_lists;
        self.places.push(MergedPlace { path: path.clone(), answers, is_leaf });
        if is_leaf {
            return self.leaf(path, votes);
        }
        let having = if are_objects { objects } else { lists };
        let value = if are_objects { self.objects(path, &having) } else { self.lists(path, &having) };
        let others = votes.iter().filter(|vote| having.iter().all(|one| one.from != vote.from));
        let mut candidates = vec![value.clone()];
        for other in others.map(|vote| vote.value) {
            if !candidates.iter().any(|known| is_equal(Some(known), other)) {
                candidates.push(other.cloned().unwrap_or_default());
            }
        }
        if candidates.len() > 1 {
            let support = self.total(&having) / (2.0 * half);
            self.disputed.push(Disputed { path: path.clone(), candidates, support });
        }
        Some(value)
    }

    fn objects(&mut self, path: &JsonPath, votes: &[Vote<'_>]) -> Value {
        let members = |vote: &Vote<'_>| {
            vote.value.and_then(Value::as_object).into_iter().flat_map(Map::keys).cloned().collect::<Vec<_>>()
        };
        let mut names: Vec<String> = Vec::new();
        for name in votes.iter().flat_map(members) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let mut merged = Map::new();
        for name in names {
            let inner: Vec<_> = votes
                .iter()
                .map(|vote| Vote {
                    from: vote.from,
                    path: vote.path.key(&*name),
                    value: vote.value.and_then(|value| value.get(&name)),
                })
                .collect();
            if let Some(value) = self.values(&path.child(Segment::Key(name.clone())), &inner) {
                merged.insert(name, value);
            }
        }
        merged.into()
    }

    fn lists<'v>(&mut self, path: &JsonPath, votes: &[Vote<'v>]) -> Value {
        let closeness = |vote: &Vote<'v>| {
            let others = votes.iter().filter(|other| other.from != vote.from);
            others
                .map(|other| vote.value.zip(other.value).map_or(0.0, |(a, b)| similarity(a, b)))
                .sum::<f64>()
        };
        // The list that is most similar to the others gives the order.
        let mut order: Vec<(f64, &Vote<'v>)> = votes.iter().map(|vote| (closeness(vote), vote)).collect();
        order.sort_by(|one, other| other.0.total_cmp(&one.0));
        let items = |list: &Vote<'v>| list.value.and_then(Value::as_array).map(Vec::as_slice);
        let lists: Vec<&[Value]> = order.iter().map(|(_, list)| items(list).unwrap_or_default()).collect();
        let vote = |(list, at): (usize, usize)| {
            let (_, of) = order.get(list)?;
            Some(Vote { from: of.from, path: of.path.index(at), value: items(of)?.get(at) })
        };
        let groups = versions(&lists).into_iter().map(|group| group.into_iter().filter_map(vote).collect());
        let half = self.total(votes) / 2.0;
        let mut merged = Vec::new();
        for group in groups.collect::<Vec<Vec<Vote<'v>>>>() {
            let found: f64 = group.iter().map(|vote| self.found(vote)).fold(0.0, f64::max);
            let (weight, item) = (self.total(&group), path.child(Segment::Index(merged.len())));
            let is_kept = weight + found >= half * (1.0 - f64::EPSILON);
            let value = if is_kept {
                self.values(&item, &group)
            } else {
                group.first().and_then(|it| it.value.cloned())
            };
            let Some(value) = value else { continue };
            if group.len() < votes.len() {
                let mut candidates = vec![value.clone(), Value::Null];
                let mut support = weight / (2.0 * half);
                if !is_kept {
                    (support, _) = (1.0 - support, candidates.reverse());
                }
                let path = if is_kept { item } else { path.clone() };
                self.disputed.push(Disputed { path, candidates, support });
            }
            merged.extend(is_kept.then_some(value));
        }
        merged.into()
    }

    /// Returns the mean support of the leaves of a value.
    fn found(&self, vote: &Vote<'_>) -> f64 {
        let Some(value) = vote.value else { return 0.0 };
        let leaves = counterparts(value, &Value::Null);
        let stated: Vec<f64> =
            leaves.iter().filter(|it| is_stated(Some(it.value))).map(|it| self.support(it.value)).collect();
        stated.iter().sum::<f64>() / stated.len().max(1) as f64
    }

    fn leaf(&mut self, path: &JsonPath, votes: &[Vote<'_>]) -> Option<Value> {
        let mut groups: Vec<(f64, Option<&Value>, usize)> = Vec::new();
        for vote in votes {
            let weight = self.weight(vote);
            match groups.iter_mut().find(|(_, value, _)| is_equal(*value, vote.value)) {
                Some(group) => group.0 += weight,
                None => groups.push((
                    weight + vote.value.map_or(0.0, |value| self.support(value)),
                    vote.value,
                    vote.from,
                )),
            }
        }
        let total: f64 = groups.iter().map(|group| group.0).sum();
        // Stable: of equal weights, the earliest answer.
        groups.sort_by(|one, other| other.0.total_cmp(&one.0));
        let (weight, value, _) = groups.first().copied()?;
        if groups.len() > 1 {
            let candidates = groups.iter().map(|(_, value, _)| value.cloned().unwrap_or_default()).collect();
            self.disputed.push(Disputed { path: path.clone(), candidates, support: weight / total });
        }
        value.cloned()
    }
}
