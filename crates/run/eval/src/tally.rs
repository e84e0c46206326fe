//! The counts of a path.

use std::collections::HashMap;
use std::fmt;

use formwork_evidence::is_stated;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The result of the comparison of one leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// Both state the same value.
    Right,
    /// Both state a value, and the values differ.
    Wrong,
    /// Only the answer states a value.
    Invented,
    /// Only the gold states a value.
    Missing,
    /// Neither states a value. The leaf has no effect on the score.
    NotStated,
}

/// The number of leaves with each grade.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// Leaves with the same value in both.
    pub right: usize,
    /// Leaves with different values.
    pub wrong: usize,
    /// Leaves that only the answer states.
    pub invented: usize,
    /// Leaves that only the gold states.
    pub missing: usize,
    /// Leaves that neither states.
    pub not_stated: usize,
}

impl Tally {
    /// Counts a leaf.
    pub const fn add(&mut self, grade: Grade) {
        match grade {
            Grade::Right => self.right += 1,
            Grade::Wrong => self.wrong += 1,
            Grade::Invented => self.invented += 1,
            Grade::Missing => self.missing += 1,
            Grade::NotStated => self.not_stated += 1,
        }
    }

    /// Adds the counts of another tally.
    pub(crate) const fn merge(&mut self, other: Self) {
        self.right += other.right;
        self.wrong += other.wrong;
        self.invented += other.invented;
        self.missing += other.missing;
        self.not_stated += other.not_stated;
    }

    /// Returns the number of leaves that at least one side states.
    pub const fn stated(&self) -> usize {
        self.right + self.wrong + self.invented + self.missing
    }

    /// Returns the share of right leaves among those that at least one side states; `None` if there are none.
    pub fn accuracy(&self) -> Option<f64> {
        (self.stated() > 0).then(|| self.right as f64 / self.stated() as f64)
    }
}

/// The place of a leaf, with `[*]` for each item of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place<'a> {
    Root,
    Key(&'a Place<'a>, &'a str),
    Each(&'a Place<'a>),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("$"),
            Self::Each(list) => write!(f, "{list}[*]"),
            Self::Key(object, name) => {
                object.fmt(f)?;
                let step = formwork_json::JsonPath::root().key(*name).to_string();
                f.write_str(step.strip_prefix('$').unwrap_or(&step))
            }
        }
    }
}

/// Receives each leaf of a comparison: its place, its grade, and the two values.
pub(crate) type Sink<'s> = dyn FnMut(&Place<'_>, Grade, Option<&Value>, Option<&Value>) + 's;

/// The tallies of all paths, in the order of their first leaf.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    pub(crate) names: Vec<String>,
    index: HashMap<String, usize>,
}

impl Paths {
    /// Returns the number of a path.
    pub(crate) fn number(&mut self, place: &Place<'_>) -> usize {
        let name = place.to_string();
        if let Some(number) = self.index.get(&name) {
            return *number;
        }
        self.names.push(name.clone());
        self.index.insert(name, self.names.len() - 1);
        self.names.len() - 1
    }
}

/// Returns the grade about a leaf. `is_equal` is called if both sides state a value.
pub(crate) fn grade(
    expected: Option<&Value>,
    answer: Option<&Value>,
    is_equal: impl FnOnce(&Value, &Value) -> bool,
) -> Grade {
    let (expected, answer) =
        (expected.filter(|it| is_stated(Some(it))), answer.filter(|it| is_stated(Some(it))));
    match (expected, answer) {
        (None, None) => Grade::NotStated,
        (None, Some(_)) => Grade::Invented,
        (Some(_), None) => Grade::Missing,
        (Some(expected), Some(answer)) if is_equal(expected, answer) => Grade::Right,
        (Some(_), Some(_)) => Grade::Wrong,
    }
}
