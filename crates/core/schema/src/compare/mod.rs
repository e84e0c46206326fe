//! Compares two versions of a schema: does every value of the old version stay valid?

mod bare;
mod prove;
mod sample;
mod structure;
mod walk;

use std::fmt;

use serde_json::Value;

use bare::Bare;
use prove::Proof;

/// The effect of a change to a schema on the values that it accepts.
///
/// Each variant except [`Unknown`](Self::Unknown) is proved. The proofs are sound and not complete: a change that keeps all
/// old values valid may still be `Unknown`.
///
/// ```
/// use formwork_schema::{Compatibility, compare};
/// use serde_json::json;
///
/// let verdict = compare(&json!({"maximum": 10}), &json!({"maximum": 20})).verdict;
/// assert_eq!(verdict, Compatibility::Widened);
/// assert!(verdict.keeps_old_values());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compatibility {
    /// Both versions accept the same values; only annotations or the notation changed.
    Unchanged,
    /// The new version accepts every value of the old version. It accepts further values, or may do so.
    Widened,
    /// The new version rejects some value of the old version.
    Narrowed,
    /// Each version accepts some value that the other version rejects.
    Mixed,
    /// The comparison has no proof whether every value of the old version is still valid.
    Unknown,
}

impl Compatibility {
    /// Returns whether every value of the old version is proved to be valid under the new version.
    pub const fn keeps_old_values(self) -> bool {
        matches!(self, Self::Unchanged | Self::Widened)
    }

    fn new(old_in_new: Proof, new_in_old: Proof) -> Self {
        match (old_in_new, new_in_old) {
            (Proof::Holds, Proof::Holds) => Self::Unchanged,
            (Proof::Holds, _) => Self::Widened,
            (Proof::Fails, Proof::Fails) => Self::Mixed,
            (Proof::Fails, _) => Self::Narrowed,
            (Proof::Open, _) => Self::Unknown,
        }
    }
}

impl fmt::Display for Compatibility {
    /// Writes one of `unchanged`, `widened`, `narrowed`, `widened and narrowed` and `cannot be told`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unchanged => "unchanged",
            Self::Widened => "widened",
            Self::Narrowed => "narrowed",
            Self::Mixed => "widened and narrowed",
            Self::Unknown => "cannot be told",
        })
    }
}

/// A difference between two versions, at one place of the values that they describe.
///
/// ```
/// use formwork_schema::{ChangeKind, compare};
/// use serde_json::json;
///
/// let before = json!({"properties": {"id": {"type": "integer"}}});
/// let after = json!({"properties": {"id": {"type": "integer"}, "note": {"type": "string"}}});
/// let comparison = compare(&before, &after);
/// assert_eq!(comparison.changes[0].path, "$.note");
/// assert_eq!(comparison.changes[0].kind, ChangeKind::Added { required: false });
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Change {
    /// The place, as a path with wildcards: `$.lines[*].price`.
    pub path: String,
    /// The kind of the difference.
    pub kind: ChangeKind,
}

/// The kind of a [`Change`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChangeKind {
    /// The new version describes a member that the old version does not name.
    Added {
        /// Whether an object without the member is invalid.
        required: bool,
    },
    /// The old version describes a member that the new version does not name.
    Removed,
    /// Both versions describe the value or member, in different ways.
    Altered(Compatibility),
}

impl fmt::Display for Change {
    /// Writes the path and the kind, as in `$.note: added, optional`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match self.kind {
            ChangeKind::Added { required: true } => write!(f, "{path}: added, required"),
            ChangeKind::Added { required: false } => write!(f, "{path}: added, optional"),
            ChangeKind::Removed => write!(f, "{path}: removed"),
            ChangeKind::Altered(verdict) => write!(f, "{path}: {verdict}"),
        }
    }
}

/// The result of [`compare`].
///
/// ```
/// use formwork_schema::compare;
/// use serde_json::json;
///
/// let before = json!({"properties": {"id": {"type": "integer"}}});
/// let after = json!({"properties": {"id": {"type": "string"}}});
/// for change in compare(&before, &after).changes {
///     assert_eq!(change.to_string(), "$.id: widened and narrowed");
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Comparison {
    /// The effect on the whole document.
    pub verdict: Compatibility,
    /// Whether old values are proved to stay valid if their objects have only members that the old version names (in a
    /// union: that the variant names which the object satisfies).
    ///
    /// JSON Schema lets an object have any further members unless `additionalProperties` forbids it. A new optional member
    /// therefore narrows the schema: `{"note": 5}` was valid while nothing described `note`. Values that a program wrote
    /// from the old version's type have no such member.
    pub keeps_named: bool,
    /// The differences, in the order of the new version's members; removed members come last in each object.
    pub changes: Vec<Change>,
}

/// Compares two versions of a schema.
///
/// A proof that holds only where `format` is asserted, or only where it is ignored, does not count. Proofs come from
/// a comparison keyword by keyword and from jsonschema's canonical form where that is cheap; counterexamples from the
/// canonical form and from samples of the old version.
///
/// ```
/// use formwork_schema::{Compatibility, compare};
/// use serde_json::json;
///
/// let before = json!({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]});
/// let after = json!({
///     "type": "object",
///     "properties": {"id": {"type": ["integer", "string"]}, "note": {"type": "string"}},
///     "required": ["id"],
/// });
/// let comparison = compare(&before, &after);
/// let changes: Vec<_> = comparison.changes.iter().map(ToString::to_string).collect();
/// assert_eq!(changes, ["$.id: widened", "$.note: added, optional"]);
/// // The old version accepts `{"id": 1, "note": 5}`; no value with `id` alone becomes invalid.
/// assert_eq!(comparison.verdict, Compatibility::Mixed);
/// assert!(comparison.keeps_named);
/// ```
pub fn compare(before: &Value, after: &Value) -> Comparison {
    if before == after {
        return Comparison { verdict: Compatibility::Unchanged, keeps_named: true, changes: Vec::new() };
    }
    if crate::compile(before).is_err() || crate::compile(after).is_err() {
        return Comparison { verdict: Compatibility::Unknown, keeps_named: false, changes: Vec::new() };
    }
    let (before, after) = (Bare::new(before), Bare::new(after));
    let verdict = verdict(before.document(), after.document());
    let keeps_named = verdict.keeps_old_values()
        || before.closed().is_some_and(|closed| prove::contains(after.document(), &closed) == Proof::Holds);
    let changes =
        if verdict == Compatibility::Unchanged { Vec::new() } else { walk::changes(&before, &after) };
    Comparison { verdict, keeps_named, changes }
}

/// Returns the verdict on two documents without annotations.
fn verdict(before: &Value, after: &Value) -> Compatibility {
    Compatibility::new(prove::contains(after, before), prove::contains(before, after))
}
