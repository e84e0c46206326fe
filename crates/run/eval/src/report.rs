//! The result of an evaluation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Baseline, GateResult, Grade, Profile, Rows, Spent, Tally};

/// The result of an evaluation, as `formwork eval --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// The name of the configuration; absent for the answers of one file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The profile by which documents were scored.
    pub profile: Profile,
    /// The mean score of all documents, from 0 to 1; 0 without documents.
    pub score: f64,
    /// The 95 % interval of the score, by resampling documents (bootstrap); absent without documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// The seed of the resamples.
    pub seed: u64,
    /// The number of resamples; 0 for more than 20,000 documents, whose intervals follow from sums (normal approximation).
    pub resamples: usize,
    /// The number of documents without an answer. Their leaves are missing.
    pub unanswered: usize,
    /// The counts of each path, in the order of the first document that has it. `[*]` stands for the items of a list.
    pub paths: Vec<PathReport>,
    /// The score of each document, in the order of the gold.
    #[schemars(with = "Vec<crate::RowScore>")]
    pub rows: Rows,
    /// The effort for the answers, if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
    /// The comparison with a baseline, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// The gates and whether they are passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<GateResult>,
    /// Remarks on gold and answers, such as gold that violates its schema.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The documents with the lowest scores, worst first: at most 50, with at most 100 differences each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worst: Vec<WorstRow>,
}

impl Report {
    /// Sets the name of the configuration (default: none).
    #[must_use]
    pub fn with_name(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }
}

/// The counts of one path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathReport {
    /// The path, with `[*]` for the items of a list.
    pub path: String,
    /// The counts.
    #[serde(flatten)]
    pub tally: Tally,
    /// The share of right leaves among those that the gold or an answer states; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// The 95 % interval of the accuracy, by resampling documents; absent if there are no stated leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

/// A document with a low score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorstRow {
    /// The `id` of the gold row.
    pub id: Value,
    /// The score, from 0 to 1.
    pub score: f64,
    /// The leaves that are not right.
    pub differences: Vec<Difference>,
}

/// A leaf that is not right.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The path, with `[*]` for the items of a list.
    pub path: String,
    /// The grade.
    pub grade: Grade,
    /// The value of the gold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Value>,
    /// The value of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
}
