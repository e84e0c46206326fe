//! Conditions on an evaluation, for CI.

use std::fmt;
use std::str::FromStr;

use formwork_json::PathPattern;

use crate::{GateResult, Report, Tally};

/// The difference from the minimum that is no difference.
const SLACK: f64 = 1e-9;

/// A condition on the score or the accuracy of a path: `score >= 0.95`, `$.total >= 0.98`, `$.lines > 0.9`.
///
/// A path means all leaves at it and below it.
///
/// ```
/// use formwork_eval::Gate;
///
/// let gate: Gate = "$.total >= 0.98".parse()?;
/// assert_eq!(gate.to_string(), "$.total >= 0.98");
/// assert!("$.total = 0.98".parse::<Gate>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    subject: String,
    strict: bool,
    minimum: f64,
}

impl FromStr for Gate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let error = || format!("`{text}` is no gate: write it like `score >= 0.95` or `$.total >= 0.98`");
        let (subject, rest) = text.split_once('>').ok_or_else(error)?;
        let (strict, minimum) = rest.strip_prefix('=').map_or((true, rest), |rest| (false, rest));
        let minimum: f64 = minimum.trim().parse().map_err(|_| error())?;
        let subject = match subject.trim() {
            "score" => "score".to_owned(),
            // A path has one notation in a report.
            path => path.parse::<PathPattern>().map_err(|_| error())?.to_string(),
        };
        if !(0.0..=1.0).contains(&minimum) {
            return Err(error());
        }
        Ok(Self { subject, strict, minimum })
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = if self.strict { ">" } else { ">=" };
        write!(f, "{} {operator} {}", self.subject, self.minimum)
    }
}

impl Gate {
    /// Returns the path of the condition; `None` for the score.
    pub fn path(&self) -> Option<PathPattern> {
        self.subject.parse().ok()
    }

    /// Checks the condition.
    ///
    /// # Errors
    /// A message, if no stated leaf of the evaluation is at or below the path.
    pub fn check(&self, report: &Report) -> Result<GateResult, String> {
        let value = match self.subject.as_str() {
            "score" => report.score,
            path => {
                let below = |name: &str| {
                    name.strip_prefix(path)
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
                };
                let mut all = Tally::default();
                for path in report.paths.iter().filter(|it| below(&it.path)) {
                    all.right += path.tally.right;
                    all.wrong += path.tally.stated() - path.tally.right;
                }
                let known = || {
                    let names: Vec<&str> =
                        report.paths.iter().take(8).map(|path| path.path.as_str()).collect();
                    format!(
                        "the gate `{self}` names a path without stated values; paths are {}",
                        names.join(", ")
                    )
                };
                all.accuracy().ok_or_else(known)?
            }
        };
        // A mean of binary fractions is inexact.
        let above = value - self.minimum;
        let ok = if self.strict { above > SLACK } else { above >= -SLACK };
        Ok(GateResult { gate: self.to_string(), value, ok })
    }
}
