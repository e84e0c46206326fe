//! The record of a value's history: how many of its leaves the model wrote freely.

use std::collections::{BTreeMap, HashMap, HashSet};

use formwork_json::JsonPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Outcome, Provenance, Source, Warning, WarningKind};

/// The history of the leaves of an accepted value, from [`Outcome::trust`]. Each leaf (a scalar, or an empty list or object) has
/// exactly one history, so the counts add up to `leaves`.
///
/// ```
/// use formwork_core::{History, JsonPath, Provenance, Source, Trust};
/// use serde_json::json;
///
/// let from = |path: &str, source| Ok::<_, formwork_core::PathError>(Provenance { path: path.parse()?, source, attempt: 1 });
/// let provenance = [from("$", Source::Native)?, from("$.items[1]", Source::Patched)?];
/// let trust = Trust::of(&json!({"items": [1, {"a": 2, "b": 3}]}), &provenance, &[], &[]);
/// assert_eq!((trust.leaves, trust.free), (3, 1));
/// assert_eq!(trust.other[&History::Patched].count, 2);
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
    /// The provider ended values earlier than the schema requires.
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

impl Trust {
    /// The maximum number of paths of each history. Counts have no maximum.
    pub const MAX_PATHS: usize = 20;

    /// Returns the record of a value with this provenance, these warnings and members that are not stated.
    pub fn of(
        value: &Value,
        provenance: &[Provenance],
        warnings: &[Warning],
        not_stated: &[JsonPath],
    ) -> Self {
        // Coercions and restraints have warnings, and no entry of the provenance.
        let warned = warnings.iter().filter_map(|warning| {
            let history = match warning.kind {
                WarningKind::Coerced => History::Coerced,
                WarningKind::Restrained => History::Restrained,
                _ => return None,
            };
            Some((warning.path.clone().unwrap_or_default(), Some(history)))
        });
        let not_stated: HashSet<&JsonPath> = not_stated.iter().collect();
        let mut marks: HashMap<JsonPath, Option<History>> = HashMap::new();
        for (path, history) in
            provenance.iter().map(|part| (part.path.clone(), of(part.source))).chain(warned)
        {
            let mark = marks.entry(path).or_insert(history);
            *mark = (*mark).max(history);
        }
        let mut trust = Self::default();
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
                trust.add(path, history);
            } else if let Some(added) = open.get_mut(children..) {
                added.reverse();
            }
        }
        trust
    }

    fn add(&mut self, path: JsonPath, history: Option<History>) {
        self.leaves += 1;
        let Some(history) = history else {
            self.free += 1;
            return;
        };
        let leaves = self.other.entry(history).or_default();
        leaves.count += 1;
        if leaves.paths.len() < Self::MAX_PATHS {
            leaves.paths.push(path);
        }
    }
}

impl Outcome<Value> {
    /// Returns how the leaves of the value came about.
    pub fn trust(&self) -> Trust {
        let mut warnings = self.warnings.clone();
        if self.is_restrained() {
            warnings.push(Warning::new(WarningKind::Restrained, String::new()));
        }
        Trust::of(&self.value, &self.provenance, &warnings, &self.not_stated)
    }
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
        let trust = Trust::of(&value, &parts, &warnings, &["$.b".parse().unwrap()]);
        let counts: Vec<(History, u64)> =
            trust.other.iter().map(|(one, leaves)| (*one, leaves.count)).collect();
        use History::{Coerced, Finished, NotStated, Patched};
        assert_eq!(counts, [(Patched, 1), (Coerced, 1), (Finished, 1), (NotStated, 1)]);
        assert_eq!((trust.leaves, trust.free), (8, 4));
        assert_eq!(trust.other[&Patched].paths, ["$.c.d".parse().unwrap()]);

        let whole = Warning::new(WarningKind::Restrained, "");
        assert_eq!(
            Trust::of(&json!([1, 2]), &parts[..1], &[whole], &[]).other[&History::Restrained].count,
            2
        );
        let repaired = Trust::of(&json!(vec![0; 100]), &[part("$", Source::Repaired)], &[], &[]);
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
            let trust = Trust::of(&value, &parts, &[], &[]);
            prop_assert_eq!(trust.leaves, trust.free + trust.other.values().map(|one| one.count).sum::<u64>());
            let leaves = if width == 0 { 1 } else { width * (1 + width) };
            prop_assert_eq!(trust.leaves, leaves as u64 + 1);
        }
    }
}
