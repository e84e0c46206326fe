use async_trait::async_trait;
use formwork_core::{Attempt, Cost, Error, ErrorKind, Outcome, Usage};
use futures_util::{StreamExt as _, stream};
use tracing::info_span;

use crate::aggregate::{aggregate, undecided};
use crate::answer::{self, contract, question};
use crate::decide::decide;
use crate::quote::{MOST, line};
use crate::votes::{Vote, count, is_settled};
use crate::{
    Agent, Criterion, CriterionResult, GenerationError, Indeterminate, Material, ReviewPrice, ReviewResult,
    ReviewRubric,
};

/// Reviews outputs with a model, and without one where a criterion can be decided so.
#[derive(Debug, Clone)]
pub struct LlmReviewService {
    agent: Agent,
    temperature: f64,
    concurrency: usize,
    most: usize,
}

impl LlmReviewService {
    /// The temperature of further votes: at a lower one they would only repeat the first.
    pub const VOTING_TEMPERATURE: f64 = 0.7;

    /// The most tokens of a judge's answer, unless the agent says otherwise: what it may say fits in.
    pub const MAX_TOKENS: u32 = answer::MAX_TOKENS;

    /// Asks so. First votes are cast at 0.2.
    pub const fn new(agent: Agent) -> Self {
        Self { agent, temperature: 0.2, concurrency: 4, most: MOST }
    }

    /// Sets the temperature of first votes (default: 0.2).
    #[must_use]
    pub const fn with_temperature(mut self, temperature: f64) -> Self {
        self.temperature = temperature;
        self
    }

    /// Judging so many criteria at a time, at least 1; 4 by default.
    #[must_use]
    pub const fn with_concurrency(mut self, criteria: usize) -> Self {
        self.concurrency = criteria;
        self
    }

    /// Showing at most so many characters of each text to the model, and saying where one is cut; 12 000 by default.
    #[must_use]
    pub const fn with_most_characters(mut self, characters: usize) -> Self {
        self.most = characters;
        self
    }

    /// How it asks.
    pub const fn agent(&self) -> &Agent {
        &self.agent
    }

    pub(crate) const fn temperature(&self) -> f64 {
        self.temperature
    }

    pub(crate) const fn most(&self) -> usize {
        self.most
    }

    /// Reviews an output.
    ///
    /// Criteria that need no model are decided first. A review that cannot be carried out is one that failed, with the
    /// reason in [`ReviewResult::error`]: no provider answers, the time is over, it was cancelled, or the model gives no
    /// usable answer about a criterion. What was judged until then is in it.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a rubric that cannot be used.
    pub async fn review(
        &self,
        material: impl Into<Material> + Send,
        rubric: &ReviewRubric,
    ) -> Result<ReviewResult, Error> {
        let material = material.into();
        rubric.usable()?;
        let service = Self { agent: self.agent.clone().begun(), ..self.clone() };
        let mut results: Vec<Option<CriterionResult>> =
            rubric.criteria.iter().map(|criterion| decide(criterion, &material)).collect();
        let open = rubric.criteria.iter().enumerate().filter(|(nth, _)| results[*nth].is_none());
        // Its own vector, not an iterator: the future stays `Send` for every lifetime.
        let judgings: Vec<_> =
            open.map(|(nth, criterion)| service.judge(nth, criterion, &material, rubric)).collect();
        let mut judged = stream::iter(judgings).buffer_unordered(self.concurrency.max(1));
        let (mut price, mut failed, mut answered) = (ReviewPrice::default(), None, false);
        while let Some(Judged { nth, result, spent }) = judged.next().await {
            price = price.plus(spent);
            match result {
                Ok(result) => {
                    answered |= result.votes > 0 || result.reason == Some(Indeterminate::NoAnswer);
                    results[nth] = Some(result);
                }
                // What ends one judging would end the others: they are dropped.
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        drop(judged);
        let mut error = failed.as_ref().map(GenerationError::from);
        let not_reviewed = error.as_ref().map(|error| error.message.clone()).unwrap_or_default();
        let results: Vec<(&Criterion, CriterionResult)> = rubric
            .criteria
            .iter()
            .zip(results)
            .map(|(criterion, result)| {
                let undecided =
                    || undecided(criterion, Indeterminate::NotReviewed, line(&not_reviewed, MAX_REASON));
                (criterion, result.unwrap_or_else(undecided))
            })
            .collect();
        if error.is_none() {
            error = results.iter().find_map(|(criterion, result)| unanswered(criterion, result));
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
        // A judge who gives no vote is as unsure as one can be.
        if rubric.votes.are_due(votes.first().map_or(0, |vote: &Vote| vote.confidence)) {
            let before = price.calls;
            for nth in 1..=rubric.votes.extra {
                if is_settled(&votes, rubric.votes.extra + 1 - nth) {
                    break;
                }
                let cast = self.vote(criterion, material, nth, price).await;
                price.extra_calls = price.calls - before;
                // An unusable answer to a further vote is a vote that is not cast.
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

    /// One vote, or why there is none.
    async fn vote(
        &self,
        criterion: &Criterion,
        material: &Material,
        nth: u32,
        price: &mut ReviewPrice,
    ) -> Result<Result<Vote, (Indeterminate, String)>, Error> {
        let temperature =
            if nth == 0 { self.temperature } else { self.temperature.max(Self::VOTING_TEMPERATURE) };
        let mut input = question(criterion, material, self.most);
        input.seed = self.agent.seed().map(|seed| seed.wrapping_add(u64::from(nth) << 16));
        let span = info_span!(target: "formwork", "llm_review", "formwork.criterion" = criterion.id.as_str(), "formwork.vote" = nth);
        let max_tokens = self.agent.max_tokens().unwrap_or(answer::MAX_TOKENS);
        let asked = self
            .agent
            .ask(span, contract()?, self.agent.policy_at(temperature), Some(max_tokens), input)
            .await;
        match asked {
            Ok(Outcome { value, attempts, usage, cost, .. }) => {
                spend(price, &attempts, usage, cost);
                Ok(Ok(answer::vote(&value)))
            }
            Err(error) => {
                let cost =
                    error.attempts().iter().fold(Cost::default(), |sum, attempt| sum.plus(attempt.cost));
                spend(price, error.attempts(), error.usage(), cost);
                match error.kind() {
                    ErrorKind::Rejected | ErrorKind::Refused => Ok(Err(unusable(&error))),
                    _ => Err(error),
                }
            }
        }
    }
}

/// The most characters of a reason why a criterion was not judged.
const MAX_REASON: usize = 300;

/// One criterion of a rubric, judged by a model, or why it could not be.
struct Judged {
    nth: usize,
    result: Result<CriterionResult, Error>,
    spent: ReviewPrice,
}

/// Returns the error of a criterion that the model gave no usable answer about.
fn unanswered(criterion: &Criterion, result: &CriterionResult) -> Option<GenerationError> {
    (result.reason == Some(Indeterminate::NoAnswer)).then(|| GenerationError {
        kind: ErrorKind::Rejected,
        message: format!("the judge gave no usable answer about `{}`: {}", criterion.id, result.reasoning),
        violations: Vec::new(),
        answered: true,
    })
}

/// Whoever reviews outputs: [`LlmReviewService`], or something of your own.
#[async_trait]
pub trait Review: Send + Sync {
    /// Reviews an output.
    ///
    /// # Errors
    /// Where there is no result at all; [`generate_with_review`](crate::generate_with_review) takes that for a review
    /// that failed.
    async fn review(&self, material: Material, rubric: &ReviewRubric) -> Result<ReviewResult, Error>;
}

#[async_trait]
impl Review for LlmReviewService {
    async fn review(&self, material: Material, rubric: &ReviewRubric) -> Result<ReviewResult, Error> {
        Self::review(self, material, rubric).await
    }
}

pub(crate) fn spend(price: &mut ReviewPrice, attempts: &[Attempt], usage: Usage, cost: Cost) {
    let calls = u32::try_from(attempts.len()).unwrap_or(u32::MAX);
    *price = price.plus(ReviewPrice { calls, extra_calls: 0, usage, cost });
}

/// Why an answer that was asked for twice is none.
fn unusable(error: &Error) -> (Indeterminate, String) {
    let best = error.best().filter(|best| {
        !best.violations.is_empty()
            && best.violations.iter().all(|violation| violation.rule == answer::CONTRADICTION)
    });
    match best {
        Some(best) => (Indeterminate::Contradiction, answer::vote(&best.value).reasoning),
        None => (Indeterminate::NoAnswer, line(&error.to_string(), MAX_REASON)),
    }
}

fn counted(criterion: &Criterion, votes: &[Vote]) -> CriterionResult {
    let count = count(votes);
    let speaker = count.speaker;
    CriterionResult {
        criterion_id: criterion.id.clone(),
        verdict: count.verdict,
        reasoning: speaker.map(|vote| vote.reasoning.clone()).unwrap_or_default(),
        confidence: count.confidence,
        reason: count.reason,
        suggested_fix: speaker.filter(|vote| !vote.pass && !vote.fix.is_empty()).map(|vote| vote.fix.clone()),
        votes: u32::try_from(votes.len()).unwrap_or(u32::MAX),
    }
}
