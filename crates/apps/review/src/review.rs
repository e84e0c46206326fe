use async_trait::async_trait;
use formwork_core::{CallRecord, Cost, Error, ErrorKind, Outcome, Trust, Usage};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tracing::info_span;

use crate::aggregate::{aggregate, undecided};
use crate::answer::{self, contract, question};
use crate::decide::decide;
use crate::quote::{MOST, sentences};
use crate::votes::{Vote, count, is_settled};
use crate::{
    Agent, Criterion, CriterionResult, GenerationError, Indeterminate, Material, ReviewPrice, ReviewResult,
    ReviewRubric,
};

/// Reviews outputs against a rubric. A model judges the criteria that no rule, schema or pattern decides.
///
/// ```
/// use formwork_review::{Agent, Criterion, LlmReviewService, ReviewRubric};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), formwork_core::Error> {
/// let schema = json!({"maxLength": 9});
/// let short = Criterion { schema: Some(schema), ..Criterion::new("short", "The reply has at most 9 characters.") };
/// let rubric = ReviewRubric::new("replies").with_criterion(short);
/// // A schema decides the only criterion, so no model is needed.
/// let mut reviewer = LlmReviewService::new(Agent::new([]));
/// reviewer.concurrency = 2;
/// let review = reviewer.review(json!("Thank you."), &rubric).await?;
/// assert_eq!((review.pass, review.price.calls), (false, 0));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct LlmReviewService {
    agent: Agent,
    /// The temperature of first votes (default: 0.2).
    pub temperature: f64,
    /// The number of criteria that are judged at the same time, at least 1 (default: 4).
    pub concurrency: usize,
    /// The maximum number of characters of each text in a prompt (default: 12 000). A cut text is marked as cut.
    pub max_characters: usize,
}

impl LlmReviewService {
    /// The temperature of further votes: a lower one would only repeat the first vote.
    pub const VOTING_TEMPERATURE: f64 = 0.7;

    /// The default maximum number of tokens of a judge's answer, for agents without a limit of their own.
    pub const MAX_TOKENS: u32 = answer::MAX_TOKENS;

    /// Creates a service that calls the models of this agent, with a temperature of 0.2 for first votes.
    pub const fn new(agent: Agent) -> Self {
        Self { agent, temperature: 0.2, concurrency: 4, max_characters: MOST }
    }

    /// Returns the agent.
    pub const fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Returns this service with its time limit started.
    pub(crate) fn begun(&self) -> Self {
        Self { agent: self.agent.clone().begun(), ..self.clone() }
    }

    /// Reviews an output.
    ///
    /// Criteria that need no model are decided first. A review that cannot be carried out fails, with the reason in
    /// [`ReviewResult::error`]: no provider is reachable, the time limit passed, the review was cancelled, or the model
    /// gives no usable answer about a criterion. The result still holds the criteria that were judged before.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a rubric that cannot be used, for example one without criteria.
    pub async fn review(
        &self,
        material: impl Into<Material> + Send,
        rubric: &ReviewRubric,
    ) -> Result<ReviewResult, Error> {
        let material = material.into();
        rubric.usable(None)?;
        let cancel = self.agent.cancel().child_token();
        let service = Self { agent: self.agent.clone().begun().with_cancel(cancel.clone()), ..self.clone() };
        let mut results: Vec<Option<CriterionResult>> =
            rubric.criteria.iter().map(|criterion| decide(criterion, &material)).collect();
        let open = rubric.criteria.iter().enumerate().filter(|(nth, _)| results[*nth].is_none());
        // A vector instead of an iterator keeps the future `Send` for every lifetime.
        let judgings: Vec<_> =
            open.map(|(nth, criterion)| service.judge(nth, criterion, &material, rubric)).collect();
        let mut judgings = judgings.into_iter();
        let mut judged: FuturesUnordered<_> = judgings.by_ref().take(self.concurrency.max(1)).collect();
        let (mut price, mut failed, mut answered) = (ReviewPrice::default(), None, false);
        while let Some(Judged { nth, result, spent }) = judged.next().await {
            price = price.plus(spent);
            match result {
                Ok(result) => {
                    answered |= result.votes > 0 || result.reason == Some(Indeterminate::NoAnswer);
                    results[nth] = Some(result);
                }
                // The same error would end the remaining judgements. The open ones are cancelled instead of dropped, because
                // their calls count.
                Err(error) => {
                    cancel.cancel();
                    failed = failed.or(Some(error));
                }
            }
            if failed.is_none() {
                judged.extend(judgings.next());
            }
        }
        let mut error = failed.as_ref().map(GenerationError::from);
        let not_reviewed = error.as_ref().map(|error| error.message.clone()).unwrap_or_default();
        let results: Vec<(&Criterion, CriterionResult)> = rubric
            .criteria
            .iter()
            .zip(results)
            .map(|(criterion, result)| {
                let undecided =
                    || undecided(criterion, Indeterminate::NotReviewed, sentences(&not_reviewed, MAX_REASON));
                (criterion, result.unwrap_or_else(undecided))
            })
            .collect();
        if error.is_none() {
            error = results.iter().find_map(|(_, result)| unanswered(result));
        }
        if let Some(error) = &mut error {
            error.answered |= answered;
        }
        Ok(aggregate(results, error, price))
    }

    /// Judges one criterion by the votes of the model.
    async fn judge(
        &self,
        nth: usize,
        criterion: &Criterion,
        material: &Material,
        rubric: &ReviewRubric,
    ) -> Judged {
        let mut spent = ReviewPrice::default();
        let result = self.votes(criterion, material, rubric, &mut spent).await;
        Judged { nth, result, spent }
    }

    async fn votes(
        &self,
        criterion: &Criterion,
        material: &Material,
        rubric: &ReviewRubric,
        price: &mut ReviewPrice,
    ) -> Result<CriterionResult, Error> {
        let (mut votes, mut uncast) = (Vec::new(), None);
        match self.vote(criterion, material, 0, price).await? {
            Ok(vote) => votes.push(vote),
            Err(why) => uncast = Some(why),
        }
        // An unusable first vote counts as one with the confidence 0.
        if rubric.votes.are_due(votes.first().map_or(0, |vote: &Vote| vote.confidence)) {
            let before = price.calls;
            for nth in 1..=rubric.votes.extra {
                if is_settled(&votes, rubric.votes.extra + 1 - nth) {
                    break;
                }
                let cast = self.vote(criterion, material, nth, price).await;
                price.extra_calls = price.calls - before;
                // An unusable answer to a further vote counts as an abstention.
                if let Ok(vote) = cast? {
                    votes.push(vote);
                }
            }
        }
        Ok(match uncast {
            Some((reason, why)) if votes.is_empty() => undecided(criterion, reason, why),
            _ => counted(criterion, &votes),
        })
    }

    /// Returns one vote, or the reason why there is none.
    async fn vote(
        &self,
        criterion: &Criterion,
        material: &Material,
        nth: u32,
        price: &mut ReviewPrice,
    ) -> Result<Result<Vote, (Indeterminate, String)>, Error> {
        let temperature =
            if nth == 0 { self.temperature } else { self.temperature.max(Self::VOTING_TEMPERATURE) };
        let mut input = question(criterion, material, self.max_characters);
        input.seed = self.agent.seed().map(|seed| seed.wrapping_add(u64::from(nth) << 16));
        let span = info_span!(target: "formwork", "llm_review", "formwork.criterion" = criterion.id.as_str(), "formwork.vote" = nth);
        let max_tokens = self.agent.max_tokens().unwrap_or(answer::MAX_TOKENS);
        let call = self
            .agent
            .ask(span, contract()?, self.agent.policy_at(temperature), Some(max_tokens), input)
            .await;
        match call {
            Ok(Outcome { value, trust, calls, usage, cost, .. }) => {
                spend(price, &calls, usage, cost);
                Ok(Ok(answer::vote(&value, trust)))
            }
            Err(error) => {
                spend(price, error.calls(), error.usage(), error.cost());
                match error.kind() {
                    ErrorKind::Rejected | ErrorKind::Refused => Ok(Err(unusable(&error))),
                    _ => Err(error),
                }
            }
        }
    }
}

/// The maximum number of characters of the reason why a criterion was not judged.
const MAX_REASON: usize = 300;

/// A criterion with the model's votes, or with the reason why it could not be judged.
struct Judged {
    nth: usize,
    result: Result<CriterionResult, Error>,
    spent: ReviewPrice,
}

/// Returns the error for a criterion without a usable answer of the model.
fn unanswered(result: &CriterionResult) -> Option<GenerationError> {
    (result.reason == Some(Indeterminate::NoAnswer)).then(|| {
        let CriterionResult { criterion_id: id, reasoning, .. } = result;
        GenerationError::unusable(format!("the judge gave no usable answer about `{id}`: {reasoning}"))
    })
}

/// Reviews outputs. [`LlmReviewService`] implements it; implement it for a reviewer of your own.
///
/// ```
/// use formwork_core::Error;
/// use formwork_review::{Material, Review, ReviewResult, ReviewRubric};
///
/// #[derive(Debug)]
/// struct Closed;
///
/// #[async_trait::async_trait]
/// impl Review for Closed {
///     async fn review(&self, _: Material, _: &ReviewRubric) -> Result<ReviewResult, Error> {
///         Ok(ReviewResult::not_carried_out(&Error::new(formwork_core::ErrorKind::Unavailable, "closed")))
///     }
/// }
/// # let _: Box<dyn Review> = Box::new(Closed);
/// ```
#[async_trait]
pub trait Review: Send + Sync {
    /// Reviews an output.
    ///
    /// # Errors
    /// Any error counts as a failed review for [`generate_with_review`](crate::generate_with_review).
    async fn review(&self, material: Material, rubric: &ReviewRubric) -> Result<ReviewResult, Error>;
}

#[async_trait]
impl Review for LlmReviewService {
    async fn review(&self, material: Material, rubric: &ReviewRubric) -> Result<ReviewResult, Error> {
        Self::review(self, material, rubric).await
    }
}

pub(crate) fn spend(price: &mut ReviewPrice, calls: &[CallRecord], usage: Usage, cost: Cost) {
    let calls = u32::try_from(calls.len()).unwrap_or(u32::MAX);
    *price = price.plus(ReviewPrice { calls, extra_calls: 0, usage, cost });
}

/// Returns the reason why two answers in a row were unusable.
fn unusable(error: &Error) -> (Indeterminate, String) {
    let best = error.best().filter(|best| {
        !best.violations.is_empty()
            && best.violations.iter().all(|violation| violation.rule == answer::CONTRADICTION)
    });
    match best {
        Some(best) => (Indeterminate::Contradiction, answer::vote(&best.value, Trust::default()).reasoning),
        None => (Indeterminate::NoAnswer, sentences(&error.to_string(), MAX_REASON)),
    }
}

fn counted(criterion: &Criterion, votes: &[Vote]) -> CriterionResult {
    let count = count(votes);
    let speaker = count.speaker;
    let reasoning = speaker.map(|vote| vote.reasoning.clone()).unwrap_or_default();
    let trust = votes.iter().map(|vote| vote.trust.clone()).reduce(|mut sum, vote| {
        sum.add(&vote);
        sum
    });
    CriterionResult {
        reason: count.reason,
        suggested_fix: speaker.filter(|vote| !vote.pass && !vote.fix.is_empty()).map(|vote| vote.fix.clone()),
        votes: u32::try_from(votes.len()).unwrap_or(u32::MAX),
        trust,
        ..CriterionResult::new(&criterion.id, count.verdict, reasoning, count.confidence)
    }
}
