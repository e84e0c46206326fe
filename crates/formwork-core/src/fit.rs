use std::cmp::Reverse;

use formwork_json::Candidate;

use crate::{Stage, Violation};

/// How well one reading of a text fits a contract; the greatest fits best.
///
/// Readings are compared by whether their root has the type that the schema asks for, then by the number of violations
/// (the fewer the better), then by where they stand (the later the better, because drafts come before answers).
///
/// ```
/// use formwork_core::{Fit, Stage, Violation};
/// use formwork_json::{Level, read};
///
/// let reading = read(r#"As in [1]: {"name": 5, "age": "x"}"#, Level::Clean)?;
/// let [person, aside] = reading.candidates() else { panic!() };
/// let wrong = |path: &str| Violation::new(path.parse().unwrap(), "type", Stage::Schema);
/// assert!(Fit::new(person, &[wrong("$.name"), wrong("$.age")]) > Fit::new(aside, &[wrong("$")]));
/// # Ok::<(), formwork_json::ReadError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fit {
    root: bool,
    violations: Reverse<usize>,
    end: usize,
}

impl Fit {
    /// Returns the fit of a candidate with what is wrong with its value.
    pub fn new(candidate: &Candidate, violations: &[Violation]) -> Self {
        Self {
            root: !violations.iter().any(is_of_root_type),
            violations: Reverse(violations.len()),
            end: candidate.span.end,
        }
    }
}

/// Whether a violation says that the root has another type than the schema asks for.
pub(crate) fn is_of_root_type(violation: &Violation) -> bool {
    violation.path.is_root() && violation.rule == "type" && violation.stage == Stage::Schema
}
