use std::cmp::Reverse;

use formwork_json::Candidate;
use serde_json::Value;

use crate::{Stage, Violation, root};

/// The rank of one reading of a text against a contract; the greatest fits best.
///
/// Readings are compared by whether their root has the type that the schema requires, then by the number of violations
/// (fewer is better), then by their position (later is better, because drafts come before answers).
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
            end: candidate.span.end,
        }
    }
}
