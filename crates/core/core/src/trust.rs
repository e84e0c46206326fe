//! The record of a value's history: how many of its leaves the model wrote freely.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use formwork_json::JsonPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ledger::is_restrained;
use crate::{CallRecord, Provenance, Source, Warning, WarningKind};

/// The history of the leaves of an accepted value: [`Outcome::trust`](crate::Outcome::trust). Each leaf (a scalar, or an empty list or object) has
/// exactly one history, so the counts add up to `leaves`.
///
/// ```
/// use formwork_core::{History, JsonPath, Provenance, Source, Trust};
/// use serde_json::json;
///
/// let from = |path: &str, source| Ok::<_, formwork_core::PathError>(Provenance { path: path.parse()?, source, attempt: 1 });
/// let provenance = [from("$", Source::Native)?, from("$.items[1]", Source::Patched)?];
/// let trust = Trust::of(&json!({"items": [1, {"a": 2, "b": 3}]}), &provenance, &[], &[], &[]);
/// assert_eq!((trust.leaves, trust.free), (3, 1));
/// assert_eq!(trust.other[&History::Patched].count, 2);
/// assert_eq!(trust.to_string(), "3 leaves, 1 written freely, 2 patched");
/// # Ok::<(), formwork_core::PathError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Trust {
    /// The number of leaves.
    pub leaves: u64,
    /// The number of leaves that the model wrote freely: in an answer that was read as it stands.
    pub free: u64,
    /// The other leaves, by their history; histories without a leaf are missing.
    pub other: BTreeMap<History, Leaves>,
}

/// A history of a leaf that the model did not write freely. A leaf with several has the last one in this order.
///
/// ```
/// use formwork_core::History;
///
/// assert_eq!(serde_json::to_value(History::NotStated)?, "not_stated");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum History {
    /// The provider ended values that the schema allows to go on.
    Restrained,
    /// The text was repaired to read it.
    Repaired,
    /// A patch replaced it.
    Patched,
    /// A patch replaced it, with a schema narrowed to the range that a rule allows.
    Narrowed,
    /// It was converted to the type that the schema requires.
    Coerced,
    /// The token limit ended the answer before it was complete, and Formwork finished it.
    Finished,
    /// The fallback supplied it.
    Fallback,
    /// It is `null`, because the text does not state it.
    NotStated,
}

/// The leaves of one history.
///
/// ```
/// use formwork_core::{Leaves, Trust};
///
/// assert!(Leaves::default().paths.len() <= Trust::MAX_PATHS);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Leaves {
    /// The number of leaves.
    pub count: u64,
    /// The paths of the first [`Trust::MAX_PATHS`] of them, in the order of the value.
    pub paths: Vec<JsonPath>,
}

/// Writes the counts, for example `3 leaves, 1 written freely, 2 patched`.
impl fmt::Display for Trust {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.leaves == 1 { "leaf" } else { "leaves" };
        write!(to, "{} {plural}, {} written freely", self.leaves, self.free)?;
        self.other.iter().try_for_each(|(history, leaves)| write!(to, ", {} {history}", leaves.count))
    }
}

/// Writes the history in words, for example `not stated`.
impl fmt::Display for History {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Restrained => "restrained",
            Self::Repaired => "repaired",
            Self::Patched => "patched",
            Self::Narrowed => "narrowed",
            Self::Coerced => "coerced",
            Self::Finished => "finished by Formwork",
            Self::Fallback => "by the fallback",
            Self::NotStated => "not stated",
        })
    }
}

impl Trust {
    /// The maximum number of paths of each history. Counts have no maximum.
    pub const MAX_PATHS: usize = 20;

    /// Returns the record of a value with this provenance, these warnings, members that are not stated and calls.
    pub fn of(
        value: &Value,
        provenance: &[Provenance],
        warnings: &[Warning],
        not_stated: &[JsonPath],
        calls: &[CallRecord],
    ) -> Self {
        let mut trust = Self::default();
        let free = Self::each(value, (provenance, warnings, not_stated, calls), |path, history| {
            let leaves = trust.other.entry(history).or_default();
            leaves.count += 1;
            if leaves.paths.len() < Self::MAX_PATHS {
                leaves.paths.push(path);
            }
        });
        let other = trust.other.values().map(|leaves| leaves.count).sum::<u64>();
        Self { leaves: free + other, free, ..trust }
    }

    /// Calls `mark` with each leaf that the model did not write freely, and returns the number of the others.
    pub(crate) fn each(
        value: &Value,
        (provenance, warnings, not_stated, calls): (&[Provenance], &[Warning], &[JsonPath], &[CallRecord]),
        mut mark: impl FnMut(JsonPath, History),
    ) -> u64 {
        // Coercions and restraints have warnings, and no entry of the provenance.
        let warned = warnings.iter().filter_map(|warning| {
            let history = match warning.kind {
                WarningKind::Coerced => History::Coerced,
                WarningKind::Restrained => History::Restrained,
                _ => return None,
            };
            Some((warning.path.clone().unwrap_or_default(), Some(history)))
        });
        let restrained =
            is_restrained(calls).then(|| (JsonPath::root(), Some(History::Restrained))).into_iter();
        let not_stated: HashSet<&JsonPath> = not_stated.iter().collect();
        let mut marks: HashMap<JsonPath, Option<History>> = HashMap::new();
        for (path, history) in
            provenance.iter().map(|part| (part.path.clone(), of(part.source))).chain(warned).chain(restrained)
        {
            let mark = marks.entry(path).or_insert(history);
            *mark = (*mark).max(history);
        }
        if not_stated.is_empty() && marks.values().all(Option::is_none) {
            // The usual answer needs no path of a leaf.
            return leaves(value);
        }
        let mut free = 0;
        let mut open = vec![(JsonPath::root(), value, None)];
        while let Some((path, value, above)) = open.pop() {
            // A longer path of the provenance replaces a shorter one.
            let history = marks.get(&path).copied().unwrap_or(above);
            let children = open.len();
            match value {
                Value::Object(members) => {
                    open.extend(members.iter().map(|(name, one)| (path.key(name), one, history)))
                }
                Value::Array(items) => {
                    open.extend(items.iter().enumerate().map(|(at, one)| (path.index(at), one, history)));
                }
                _ => {}
            }
            if children == open.len() {
                let history = if not_stated.contains(&path) { Some(History::NotStated) } else { history };
                match history {
                    Some(history) => mark(path, history),
                    None => free += 1,
                }
            } else if let Some(added) = open.get_mut(children..) {
                added.reverse();
            }
        }
        free
    }

    /// Adds the counts of another value, for example for a report on many runs; the paths stay those of this value.
    ///
    /// ```
    /// use formwork_core::{History, JsonPath, Trust};
    /// use serde_json::json;
    ///
    /// let absent = Trust::of(&json!([null, 1]), &[], &[], &[JsonPath::root().index(0)], &[]);
    /// let mut sum = Trust::default();
    /// (0..2).for_each(|_| sum.add(&absent));
    /// assert_eq!((sum.leaves, sum.free, sum.other[&History::NotStated].count), (4, 2, 2));
    /// ```
    pub fn add(&mut self, other: &Self) {
        self.leaves = self.leaves.saturating_add(other.leaves);
        self.free = self.free.saturating_add(other.free);
        for (history, leaves) in &other.other {
            let sum = self.other.entry(*history).or_default();
            sum.count = sum.count.saturating_add(leaves.count);
        }
    }
}

/// Returns the number of scalars and empty lists and objects.
fn leaves(value: &Value) -> u64 {
    let (mut open, mut leaves) = (vec![value], 0);
    while let Some(value) = open.pop() {
        let children = open.len();
        match value {
            Value::Object(members) => open.extend(members.values()),
            Value::Array(items) => open.extend(items),
            _ => {}
        }
        leaves += u64::from(children == open.len());
    }
    leaves
}

/// Returns the history of a source; `None` for values that the model wrote freely.
const fn of(source: Source) -> Option<History> {
    match source {
        Source::Native => None,
        Source::Repaired => Some(History::Repaired),
        Source::Patched => Some(History::Patched),
        Source::Narrowed => Some(History::Narrowed),
        Source::Closed => Some(History::Finished),
        Source::Fallback => Some(History::Fallback),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    const SOURCES: [Source; 6] = [
        Source::Native,
        Source::Repaired,
        Source::Patched,
        Source::Narrowed,
        Source::Closed,
        Source::Fallback,
    ];

    fn part(path: &str, source: Source) -> Provenance {
        Provenance { path: path.parse().unwrap(), source, attempt: 1 }
    }

    fn warning(kind: WarningKind, path: &str) -> Warning {
        Warning::new(kind, "").at(path.parse().unwrap())
    }

    #[test]
    fn each_kind_of_history_is_told_apart() {
        let value = json!({"a": 1, "b": null, "c": {"d": 2, "e": []}, "f": [1, 2, 3], "g": "x"});
        let parts = [part("$", Source::Native), part("$.c", Source::Patched), part("$.c.e", Source::Closed)];
        let warnings = [warning(WarningKind::Coerced, "$.f[1]"), warning(WarningKind::Rounded, "$.g")];
        let trust = Trust::of(&value, &parts, &warnings, &["$.b".parse().unwrap()], &[]);
        let counts: Vec<(History, u64)> =
            trust.other.iter().map(|(one, leaves)| (*one, leaves.count)).collect();
        use History::{Coerced, Finished, NotStated, Patched};
        assert_eq!(counts, [(Patched, 1), (Coerced, 1), (Finished, 1), (NotStated, 1)]);
        assert_eq!((trust.leaves, trust.free), (8, 4));
        assert_eq!(trust.other[&Patched].paths, ["$.c.d".parse().unwrap()]);

        let whole = Warning::new(WarningKind::Restrained, "");
        assert_eq!(
            Trust::of(&json!([1, 2]), &parts[..1], &[whole], &[], &[]).other[&History::Restrained].count,
            2
        );
        let repaired = Trust::of(&json!(vec![0; 100]), &[part("$", Source::Repaired)], &[], &[], &[]);
        let leaves = &repaired.other[&History::Repaired];
        assert_eq!((leaves.count, leaves.paths.len(), repaired.free), (100, Trust::MAX_PATHS, 0));
    }

    proptest! {
        #[test]
        fn counts_add_up_whatever_the_marks(
            marks in prop::collection::vec((0_usize..6, 0_usize..4, 0_usize..4), 0..8),
            width in 0_usize..4
        ) {
            let value = json!({"a": vec![json!({"b": 1, "c": vec![2; width]}); width], "d": "x"});
            let parts: Vec<Provenance> = marks.iter().map(|(source, at, inner)| {
                part(&format!("$.a[{at}].{}", if inner % 2 == 0 { "b" } else { "c" }), SOURCES[*source])
            }).collect();
            let trust = Trust::of(&value, &parts, &[], &[], &[]);
            prop_assert_eq!(trust.leaves, trust.free + trust.other.values().map(|one| one.count).sum::<u64>());
            let leaves = if width == 0 { 1 } else { width * (1 + width) };
            prop_assert_eq!(trust.leaves, leaves as u64 + 1);
        }
    }
}
