use std::cmp::Reverse;

use formwork_json::{Candidate, EditKind, Level};
use serde_json::Value;

use crate::{Stage, Violation, root};

/// The rank of one reading of a text against a contract; the greatest fits best.
///
/// Readings are compared by whether their root has the type that the schema requires, then by the number of violations
/// (fewer is better), then by the number of values that were changed to fit the schema, then by the repairs that reading them took (strict JSON is better than a clean reading, and that than a lenient
/// one), then by their position (later is better, because drafts come before answers).
///
/// ```
/// use formwork_core::{Fit, Stage, Violation};
/// use formwork_json::{Level, read};
///
/// let schema = serde_json::json!({"type": "object"});
/// let reading = read(r#"As in [1]: {"name": 5, "age": "x"}"#, Level::Clean)?;
/// let [person, aside] = reading.candidates() else { panic!() };
/// let wrong = |path: &str| Violation::new(path.parse().unwrap(), "type", Stage::Schema);
/// let person = Fit::new(&schema, person, &person.value, &[wrong("$.name"), wrong("$.age")]);
/// assert!(person > Fit::new(&schema, aside, &aside.value, &[wrong("$")]));
/// # Ok::<(), formwork_json::ReadError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fit {
    has_root_type: bool,
    violations: Reverse<usize>,
    /// The values that were changed to fit the schema.
    changes: Reverse<usize>,
    repairs: Reverse<Level>,
    end: usize,
}

impl Fit {
    /// Returns the rank of a candidate. `value` is the candidate's value in the form that the schema describes, and
    /// `violations` are its violations.
    pub fn new(schema: &Value, candidate: &Candidate, value: &Value, violations: &[Violation]) -> Self {
        let is_of_root = |violation: &Violation| {
            violation.path.is_root() && violation.rule == "type" && violation.stage == Stage::Schema
        };
        // The end of a document that has none is not repaired text: a document that is still being written is no worse for it.
        let repairs = candidate.edits.iter().filter(|edit| edit.kind != EditKind::Closed);
        Self {
            has_root_type: root::allows_type_of(schema, value) && !violations.iter().any(is_of_root),
            violations: Reverse(violations.len()),
            changes: Reverse(0),
            repairs: Reverse(repairs.map(|edit| edit.kind.level()).max().unwrap_or(Level::Strict)),
            end: candidate.span.end,
        }
    }

    /// Sets the number of values that were changed to fit the schema (default: 0; fewer is better).
    #[must_use]
    pub const fn with_changes(mut self, changes: usize) -> Self {
        self.changes = Reverse(changes);
        self
    }

    /// Returns whether the reading satisfies the contract.
    pub(crate) const fn is_valid(&self) -> bool {
        self.has_root_type && self.violations.0 == 0
    }

    /// Returns whether the root has the type that the schema requires.
    pub(crate) const fn has_root_type(&self) -> bool {
        self.has_root_type
    }

    /// Returns the reason why this reading is better than another one.
    pub(crate) fn reason_against(&self, other: &Self) -> &'static str {
        if self.has_root_type != other.has_root_type {
            "its root has the required type"
        } else if self.violations != other.violations {
            "it has fewer violations"
        } else if self.changes != other.changes {
            "fewer of its values were changed"
        } else if self.repairs != other.repairs {
            "it needed fewer repairs"
        } else {
            "it is the last one"
        }
    }
}
