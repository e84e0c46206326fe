use formwork_core::{Cost, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::GenerationError;

/// The result of a review.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewResult {
    /// Whether the review was carried out and no criterion failed. Indeterminate criteria alone fail nothing; see
    /// [`passes`](Self::passes) for gates that are stricter.
    pub pass: bool,
    /// The criteria that failed, and why: `id: description (reasoning)`.
    pub issues: Vec<String>,
    /// The suggestions of what to change, one for each failed criterion at least.
    pub suggested_fixes: Vec<String>,
    /// The criteria that could not be evaluated, and why: `id: description (reason)`.
    pub indeterminate: Vec<String>,
    /// Each criterion, in the rubric's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria_results: Vec<CriterionResult>,
    /// Why the review could not be carried out: the judge could not be reached, the time was over, or the judge gave no
    /// usable answer about a criterion. `pass` is `false` then. Absent if every criterion was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<GenerationError>,
    /// The cost of the review.
    #[serde(default)]
    pub price: ReviewPrice,
}

impl ReviewResult {
    /// Returns a review that could not be carried out at all, for this reason.
    pub fn not_carried_out(error: impl Into<GenerationError>) -> Self {
        Self {
            pass: false,
            issues: Vec::new(),
            suggested_fixes: Vec::new(),
            indeterminate: Vec::new(),
            criteria_results: Vec::new(),
            error: Some(error.into()),
            price: ReviewPrice::default(),
        }
    }

    /// Returns whether a gate lets the output through. `strict` gates, for CI, let nothing through that has an
    /// indeterminate criterion; the others do.
    pub const fn passes(&self, strict: bool) -> bool {
        self.pass && (!strict || self.indeterminate.is_empty())
    }
}

/// One criterion of a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CriterionResult {
    /// Its id in the rubric.
    pub criterion_id: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Why, in the judge's words; a model's are cut at 400 characters.
    pub reasoning: String,
    /// How sure the judge is, 0 to 100; 100 where a rule decided, 0 where nobody judged.
    #[schemars(range(max = 100))]
    pub confidence: u8,
    /// Why it is indeterminate, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Indeterminate>,
    /// The suggestion of what to change, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested_fix: Option<String>,
    /// How many votes of a model it rests on; 0 where none was asked.
    #[serde(default)]
    pub votes: u32,
}

/// The verdict on a criterion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It holds.
    Pass,
    /// It does not.
    Fail,
    /// It could not be evaluated.
    Indeterminate,
}

/// Why a criterion could not be evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Indeterminate {
    /// The model's confidence is below 50.
    LowConfidence,
    /// Data that it needs is not there.
    MissingData,
    /// A person has to judge it.
    HumanJudgement,
    /// The model's verdict contradicts its own reasoning, twice.
    Contradiction,
    /// The votes are tied.
    Tied,
    /// The model gave no usable answer, or declined. The review was not carried out then.
    NoAnswer,
    /// No model could be asked: it cannot be reached, or the time is over. The review was not carried out then.
    NotReviewed,
}

impl Indeterminate {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::LowConfidence => "the judge is not sure",
            Self::MissingData => "data that it needs is missing",
            Self::HumanJudgement => "a person has to judge this",
            Self::Contradiction => "the judge contradicts itself",
            Self::Tied => "the votes are tied",
            Self::NoAnswer => "the judge gave no usable answer",
            Self::NotReviewed => "the judge could not be asked",
        }
    }
}

/// The cost of a review.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewPrice {
    /// All calls of models, the extra ones and repeated ones included.
    pub calls: u32,
    /// Of these, the calls for votes beyond the first of a criterion.
    pub extra_calls: u32,
    /// Tokens.
    pub usage: Usage,
    /// Money, as far as prices are known.
    pub cost: Cost,
}

impl ReviewPrice {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            extra_calls: self.extra_calls + other.extra_calls,
            usage: self.usage.plus(other.usage),
            cost: self.cost.plus(other.cost),
        }
    }
}
