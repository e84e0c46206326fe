//! The counts of evidence.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::choose::choose;
use crate::record::Records;
use crate::stated::is_stated;
use crate::{Evidence, Index, Status};

/// The number of leaves of a value with each status.
///
/// ```
/// use formwork_evidence::{Index, Summary};
/// use serde_json::json;
///
/// let value = json!({"name": "Ada", "age": 36, "city": null, "title": "Dr"});
/// let summary = Summary::of(&Index::new("ada, 36").evidence(&value, None), &value);
/// assert_eq!(summary.to_string(), "1 exact, 1 normalised, 1 not found, 1 not stated");
/// assert_eq!((summary.exact, summary.normalised, summary.not_found, summary.not_stated), (1, 1, 1, 1));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Summary {
    /// Leaves that stand in the input as they are.
    pub exact: usize,
    /// Leaves that stand in the input in another notation.
    pub normalised: usize,
    /// Leaves that a rule of the schema derives.
    pub computed: usize,
    /// Leaves that a quote of the model supports.
    #[serde(default)]
    pub quoted: usize,
    /// Leaves that were not found.
    pub not_found: usize,
    /// Leaves that state nothing: `null`, and empty texts, lists and objects.
    pub not_stated: usize,
}

/// Writes the counts, for example `3 exact, 1 not found`.
impl fmt::Display for Summary {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { exact, normalised, computed, quoted, not_found, not_stated } = *self;
        let named = [
            (exact, "exact"),
            (normalised, "normalised"),
            (computed, "computed"),
            (quoted, "quoted"),
            (not_found, "not found"),
            (not_stated, "not stated"),
        ];
        let mut separator = "";
        for (count, name) in named.into_iter().filter(|(count, _)| *count > 0) {
            write!(to, "{separator}{count} {name}")?;
            separator = ", ";
        }
        if separator.is_empty() { to.write_str("no values") } else { Ok(()) }
    }
}

impl Summary {
    /// Counts the evidence for a value.
    pub fn of(evidence: &[Evidence], value: &Value) -> Self {
        let mut summary = Self::default();
        for it in evidence {
            let count = match it.status {
                Status::Exact => &mut summary.exact,
                Status::Normalised => &mut summary.normalised,
                Status::Computed => &mut summary.computed,
                Status::Quoted => &mut summary.quoted,
                Status::NotFound if !is_stated(it.path.get(value)) => &mut summary.not_stated,
                Status::NotFound => &mut summary.not_found,
            };
            *count += 1;
        }
        summary
    }
}

impl Index<'_> {
    /// Returns the number of leaves with each status in the [evidence](Self::evidence) for a value. A place is chosen only if a leaf has
    /// places of different statuses, because the choice takes longer than everything else.
    pub fn summary(&self, value: &Value, schema: Option<&Value>) -> Summary {
        let mut records = Records::of(self, value, schema);
        if !records.take_first(self) {
            choose(self, &mut records);
        }
        Summary::of(&self.of_leaves(&records, value, schema, 0), value)
    }
}
