use std::cmp::Reverse;

use formwork_json::{Candidate, Level};
use serde_json::Value;

use crate::{Stage, Violation, root};

/// The rank of one reading of a text against a contract; the greatest fits best.
///
/// Readings are compared by whether their root has the type that the schema requires, then by the number of violations
/// (fewer is better), then by the repairs that reading them took (strict JSON is better than a clean reading, and that than a lenient
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
        Self {
            has_root_type: root::allows_type_of(schema, value) && !violations.iter().any(is_of_root),
            violations: Reverse(violations.len()),
            repairs: Reverse(
                candidate.edits.iter().map(|edit| edit.kind.level()).max().unwrap_or(Level::Strict),
            ),
            end: candidate.span.end,
        }
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
        } else if self.repairs != other.repairs {
            "it needed fewer repairs"
        } else {
            "it is the last one"
        }
    }
}
