use formwork_core::{Cost, Trust, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::GenerationError;

/// The result of a review: whether the output passes, and the result of each criterion.
///
/// ```
/// use formwork_core::{Error, ErrorKind};
/// use formwork_review::ReviewResult;
///
/// let review = ReviewResult::not_carried_out(&Error::new(ErrorKind::Unavailable, "no judge"));
/// assert!(!review.pass && !review.passes(false));
/// assert_eq!(review.error.unwrap().message, "no provider answered: no judge");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewResult {
    /// Whether the review was carried out and no criterion failed. Indeterminate criteria do not count; see
    /// [`passes`](Self::passes) for a stricter gate.
    pub pass: bool,
    /// The outcome for a gate: `pass`, `fail` or `undecided`.
    #[serde(default)]
    pub gate: Gate,
    /// The criteria that failed, and why: `id: description (reasoning)`.
    pub issues: Vec<String>,
    /// The suggested changes, at least one for each failed criterion.
    pub suggested_fixes: Vec<String>,
    /// The criteria that could not be evaluated, and why: `id: description (reason)`.
    pub indeterminate: Vec<String>,
    /// The result of each criterion, in the rubric's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria_results: Vec<CriterionResult>,
    /// The reason why the review could not be carried out: no judge was reachable, the time limit passed, or the judge
    /// gave no usable answer about a criterion. `pass` is `false` then. Absent if every criterion was evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<GenerationError>,
    /// The cost of the review.
    #[serde(default)]
    pub price: ReviewPrice,
}

impl ReviewResult {
    /// Returns the result of a review that could not be carried out at all.
    pub fn not_carried_out(error: impl Into<GenerationError>) -> Self {
        Self { error: Some(error.into()), ..Self::default() }
    }

    /// Returns whether a gate lets the output through: if the review passes and, for a `strict` gate (for CI), no
    /// criterion is indeterminate.
    pub const fn passes(&self, strict: bool) -> bool {
        self.pass && (!strict || self.indeterminate.is_empty())
    }

    /// Returns the sum of the histories of the judge's answers; without leaves if no model was called.
    ///
    /// ```
    /// use formwork_review::ReviewResult;
    ///
    /// assert_eq!(ReviewResult::default().trust().leaves, 0);
    /// ```
    pub fn trust(&self) -> Trust {
        let mut sum = Trust::default();
        self.criteria_results.iter().filter_map(|result| result.trust.as_ref()).for_each(|one| sum.add(one));
        sum
    }
}

/// The result of one criterion.
///
/// ```
/// use formwork_review::{Criterion, LlmReviewService, Agent, ReviewRubric, Verdict};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), formwork_core::Error> {
/// let schema = json!({"maxLength": 5});
/// let short = Criterion { schema: Some(schema), ..Criterion::new("short", "At most 5 characters.") };
/// let reviewer = LlmReviewService::new(Agent::new([]));
/// let review = reviewer.review(json!("long-winded"), &ReviewRubric::new("brevity").with_criterion(short)).await?;
/// let result = &review.criteria_results[0];
/// assert_eq!((result.criterion_id.as_str(), result.verdict, result.confidence), ("short", Verdict::Fail, 100));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CriterionResult {
    /// The criterion's id in the rubric.
    pub criterion_id: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The reasoning; a model's has at most 400 characters and ends with a whole sentence.
    pub reasoning: String,
    /// The confidence, 0 to 100: always 100 if a rule decided, 0 if nothing was judged.
    #[schemars(range(max = 100))]
    pub confidence: u8,
    /// The reason why the criterion is indeterminate, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Indeterminate>,
    /// The suggested change, if the criterion failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested_fix: Option<String>,
    /// The number of a model's votes behind the verdict; 0 if no model was called.
    #[serde(default)]
    pub votes: u32,
    /// The history of the leaves of the judge's answers, of all votes together, with paths of the first one: how many the
    /// judge wrote freely. Absent if no model was called, or if it gave no usable answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
}

impl CriterionResult {
    /// Returns the result of a criterion that no vote decided.
    pub(crate) fn new(id: &str, verdict: Verdict, reasoning: String, confidence: u8) -> Self {
        let (reason, suggested_fix, votes, trust) = (None, None, 0, None);
        Self {
            criterion_id: id.to_owned(),
            verdict,
            reasoning,
            confidence,
            reason,
            suggested_fix,
            votes,
            trust,
        }
    }
}

/// The verdict on a criterion.
///
/// ```
/// assert_eq!(serde_json::to_value(formwork_review::Verdict::Indeterminate).unwrap(), "indeterminate");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The output meets the criterion.
    Pass,
    /// The output does not meet the criterion.
    Fail,
    /// The criterion could not be evaluated.
    Indeterminate,
}

/// The outcome of a review for a gate.
///
/// ```
/// use formwork_review::Gate;
///
/// assert_eq!(Gate::default(), Gate::Fail, "a review that was not carried out");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// Every criterion was evaluated, and the output meets it.
    Pass,
    /// A criterion failed, or the review was not carried out.
    #[default]
    Fail,
    /// No criterion failed, and at least one could not be evaluated. [`ReviewResult::pass`] is `true`.
    Undecided,
}

/// The reason why a criterion could not be evaluated.
///
/// ```
/// use formwork_review::Indeterminate;
///
/// assert_eq!(Indeterminate::HumanJudgement.words(), "a person has to judge this");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Indeterminate {
    /// The model's confidence is below 50.
    LowConfidence,
    /// Data that the criterion needs was not given.
    MissingData,
    /// The criterion needs human judgement.
    HumanJudgement,
    /// The model's verdict contradicted its own reasoning, twice.
    Contradiction,
    /// The votes are tied.
    Tied,
    /// The model gave no usable answer, or refused. The review counts as not carried out.
    NoAnswer,
    /// No model could be called: none is reachable, or the time limit passed. The review counts as not carried out.
    NotReviewed,
}

impl Indeterminate {
    /// Returns the reason as a phrase, as in [`ReviewResult::indeterminate`].
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
///
/// ```
/// use formwork_review::ReviewPrice;
///
/// let one = ReviewPrice { calls: 2, extra_calls: 1, ..ReviewPrice::default() };
/// assert_eq!(one.plus(one).calls, 4);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewPrice {
    /// The number of model calls, including further votes and repeated calls.
    pub calls: u32,
    /// The number of these calls for votes beyond the first of a criterion.
    pub extra_calls: u32,
    /// The tokens of all calls.
    pub usage: Usage,
    /// The money, as far as prices are known.
    pub cost: Cost,
}

impl ReviewPrice {
    /// Returns the sum of both.
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
