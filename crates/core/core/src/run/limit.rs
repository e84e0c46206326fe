//! The token limit of a call, and the size of answers that it depends on.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Run;
use crate::{Call, Capabilities, Cost, Effort, Message, Part, Plan, Target};

/// The sizes of answers that a run knows, in tokens with reasoning included.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AnswerSize {
    /// The longest complete answer, of this run or of earlier runs with the same contract.
    longest: u64,
    /// The minimum of the next limit, because the last one cut an answer off.
    raised: u32,
    /// The maximum of the next limit, because a budget that other runs share has no more left.
    within: Option<u32>,
}

impl AnswerSize {
    /// Forgets the limit that the price of the target before made necessary.
    pub(super) fn enter_target(&mut self) {
        self.within = None;
    }

    /// Takes in a complete answer.
    pub(super) fn saw(&mut self, tokens: u64) {
        self.longest = self.longest.max(tokens);
    }

    /// Returns the limit for the next answer: the larger of four times the longest answer and a size from schema and input,
    /// or more after a limit that was too low.
    fn limit(&self, from_input: u32) -> u32 {
        let longest = u32::try_from(self.longest).unwrap_or(u32::MAX);
        let wanted = longest.saturating_mul(LONGER).max(from_input).max(self.raised);
        wanted.min(self.within.unwrap_or(u32::MAX))
    }
}

/// The factor by which an answer may be longer than the longest answer so far.
const LONGER: u32 = 4;

/// The tokens of an answer beside those that come from schema and input: short reasoning, and texts that the model phrases itself.
const BASE: u32 = 1024;

/// The bytes of text that a picture counts as: a dense page.
const PICTURE: usize = 6_000;

/// The token limit of an answer under a budget, if neither the caller nor the registry sets one.
const MAX_PAID: u32 = 8192;

/// The minimum token limit of an answer, because the size of a prompt is an estimate.
const MIN_LEFT: u32 = 256;

impl Run {
    /// Sets what earlier runs with this contract have shown (default: nothing): the number of tokens of their longest complete answer,
    /// reasoning included, and whether a second call is likely, by their [calls](Self::answers). Under a budget, the token limit of a
    /// call is at least four times this number; if a second call is likely, the first one already asks for a prompt cache. No effect
    /// after the first step.
    pub fn set_earlier(&mut self, longest_answer: u64, is_reask_likely: bool) {
        if self.started.is_none() {
            self.size.saw(longest_answer);
            self.expects_reask = is_reask_likely;
        }
    }

    /// Returns the number of answers so far, whole ones and patches.
    pub fn answers(&self) -> usize {
        self.ledger.iter().filter(|call| call.finish.is_some()).count()
    }

    /// Returns the number of tokens of the longest complete answer of this run and of
    /// [earlier runs](Self::set_earlier); 0 if there is none.
    pub const fn longest_answer(&self) -> u64 {
        self.size.longest
    }

    /// Raises the limit after it cut off an answer to this call. Returns whether the call can be repeated: the limit was lower
    /// than that of the target and of the caller.
    pub(super) fn raises_limit(&mut self, plan: &Plan, call: &Call) -> bool {
        let Some((limit, target)) = call.max_tokens.zip(self.position.target_of(plan)) else { return false };
        (self.size.raised, self.size.within) = (limit.saturating_mul(2), None);
        self.is_limited(plan) && self.max_limit(plan, target, &call.messages).is_none_or(|max| limit < max)
    }

    /// Lowers the limit of a call that a shared budget denied, so that its maximum cost is at most `left`: to four times the longest
    /// answer if it is known and fits, or else to the rest of the budget. Returns whether such a limit leaves enough for an answer:
    /// the [minimum](Self::min_limit).
    pub(super) fn fits_limit(&mut self, plan: &Plan, call: &Call, left: Cost) -> bool {
        let min = self.min_limit();
        let Some(most) = self.affordable(plan, call, left, min) else { return false };
        let longest = u32::try_from(self.size.longest).unwrap_or(u32::MAX);
        let wanted = if longest == 0 { most } else { longest.saturating_mul(LONGER).max(min) };
        self.size.within = Some(most.min(wanted));
        true
    }

    /// Returns the limit to which that of a call may be lowered under a shared budget: twice the longest answer, and no less than a limit
    /// that cut an answer off asks for. The caller's own limit is not lowered.
    pub(super) fn min_limit(&self) -> u32 {
        let longest = u32::try_from(self.size.longest).unwrap_or(u32::MAX);
        let min = longest.saturating_mul(2).max(self.size.raised).max(MIN_LEFT);
        self.request.max_tokens.map_or(min, |_| u32::MAX)
    }

    /// Lowers the room for reasoning of a call that the budget of the run does not allow, to the rest of the budget. Returns whether that
    /// leaves as much as schema and input ask for.
    pub(super) fn fits_less_reasoning(&mut self, plan: &Plan, call: &Call, left: Cost) -> bool {
        let min = self.min_without_reasoning(plan);
        // A limit that is set already changes nothing.
        let most = self.affordable(plan, call, left, min).filter(|most| self.size.within != Some(*most));
        self.size.within = most.or(self.size.within);
        most.is_some()
    }

    /// Returns the limit that schema and input ask for, without room for reasoning.
    pub(super) fn min_without_reasoning(&self, plan: &Plan) -> u32 {
        self.size.limit(expected(plan.schema_bytes, &self.input.messages))
    }

    /// Returns the maximum cost of a call whose limit is lowered to `max`.
    pub(super) fn reserve_within(&self, plan: &Plan, call: &Call, max: u32) -> Cost {
        let max_tokens = call.max_tokens.map(|limit| limit.min(max));
        self.reserve(plan, &Call { max_tokens, ..call.clone() })
    }

    /// Returns the highest limit from `min` to below that of a call whose cost fits; `None` if there is none.
    fn affordable(&self, plan: &Plan, call: &Call, left: Cost, min: u32) -> Option<u32> {
        let fits = |limit: u32| self.reserve_within(plan, call, limit).fits(left);
        let max = call.max_tokens.filter(|max| *max > min && fits(min))?;
        // The cost grows with the limit: `low` fits, `high` does not.
        let (mut low, mut high) = (min, max);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fits(middle) { low = middle } else { high = middle }
        }
        Some(low)
    }

    /// Returns the token limit of a call: the configured one, or else the target's default within the rest of its context.
    /// Under a budget there always is one, and it is no higher than answers of this contract are expected to need.
    pub(super) fn limit_for(&self, plan: &Plan, target: &Target, messages: &[Arc<Message>]) -> Option<u32> {
        let max = self.max_limit(plan, target, messages);
        if !self.is_limited(plan) {
            return max;
        }
        let from_input = expected(plan.schema_bytes, &self.input.messages);
        let from_input = from_input.saturating_add(self.reasoning(target));
        Some(self.size.limit(from_input).min(max.unwrap_or(u32::MAX)))
    }

    /// Returns the tokens of reasoning that a limit has room for.
    fn reasoning(&self, target: &Target) -> u32 {
        let known = target.capabilities.reasoning_tokens;
        let own = self.input.settings.as_deref();
        match own.map(|own| (own.reasoning_tokens, own.effort)) {
            Some((Some(tokens), _)) => tokens,
            Some((None, Some(Effort::None))) => 0,
            Some((None, Some(_))) => known.unwrap_or(Capabilities::REASONING_TOKENS),
            Some((None, None)) | None => known.unwrap_or_default(),
        }
    }

    /// Returns the highest token limit of a call.
    fn max_limit(&self, plan: &Plan, target: &Target, messages: &[Arc<Message>]) -> Option<u32> {
        let capabilities = &target.capabilities;
        let paid = || self.is_limited(plan).then(|| capabilities.output_tokens.unwrap_or(MAX_PAID));
        let left = capabilities.context_tokens.map(|context| left(context, messages));
        self.request.max_tokens.or_else(|| {
            let max = capabilities.default_max_tokens.or_else(paid)?;
            Some(max.min(left.unwrap_or(u32::MAX)))
        })
    }

    /// Returns the maximum number of tokens of an answer of this target, if known.
    pub(super) fn token_budget(&self, target: &Target) -> Option<u32> {
        let Capabilities { output_tokens, context_tokens, .. } = target.capabilities;
        let left = context_tokens.map(|context| left(context, &self.input.messages));
        [output_tokens, left].into_iter().flatten().min()
    }

    /// Returns whether a budget limits the calls of the run.
    fn is_limited(&self, plan: &Plan) -> bool {
        self.budget(plan).or(plan.options.shared_budget).is_some()
    }
}

/// Returns the expected maximum of the tokens of an answer, by the length of the schema and of the dialogue: an answer consists of
/// the names in the schema and of values that are about as long as the input. Two bytes count as a token.
fn expected(schema_bytes: usize, messages: &[Arc<Message>]) -> u32 {
    let part = |part: &Part| match part {
        Part::Text { text } => text.len(),
        Part::Image { .. } => PICTURE,
        _ => 0,
    };
    let input: usize = messages.iter().flat_map(|message| &message.parts).map(part).sum();
    BASE.saturating_add(u32::try_from((schema_bytes + input) / 2).unwrap_or(u32::MAX))
}

/// Returns the number of tokens that a prompt leaves of a context. Three bytes count as a token, which overestimates most
/// texts.
fn left(context: u32, messages: &[Arc<Message>]) -> u32 {
    let bytes: usize = messages.iter().flat_map(|message| message.texts()).map(str::len).sum();
    let prompt = u32::try_from(bytes.div_ceil(3)).unwrap_or(u32::MAX);
    context.saturating_sub(prompt).max(MIN_LEFT)
}
