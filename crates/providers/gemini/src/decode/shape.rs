//! The members of responses that the decoder reads. Leaf values have any JSON type, because proxies differ.

use formwork_core::Usage;
use formwork_wire::TokenShape;
use formwork_wire::lenient::{Count, Flag, Leaf, List, Object};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// A `GenerateContentResponse`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Response<'a> {
    #[serde(borrow)]
    pub(super) candidates: List<Object<Candidate<'a>>>,
    pub(super) prompt_feedback: Object<Feedback<'a>>,
    pub(super) usage_metadata: Object<Counts>,
    pub(super) model_version: Leaf<'a>,
    error: Option<IgnoredAny>,
    message: Option<IgnoredAny>,
    detail: Option<IgnoredAny>,
}

impl Response<'_> {
    /// Returns whether the response has a property of this API.
    pub(super) const fn is_answer(&self) -> bool {
        self.candidates.0.is_some() || self.prompt_feedback.0.is_some() || self.usage_metadata.0.is_some()
    }

    /// Returns whether the response has a property of error documents, so that it must be parsed as a whole.
    pub(super) const fn may_be_error(&self) -> bool {
        self.error.is_some() || self.message.is_some() || self.detail.is_some()
    }
}

/// An item of `candidates`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Candidate<'a> {
    #[serde(borrow)]
    pub(super) content: Object<Content<'a>>,
    pub(super) finish_reason: Leaf<'a>,
    /// The log probabilities of the text's tokens, if the request asks for them.
    pub(super) logprobs_result: Object<Box<Chosen>>,
}

/// The `logprobsResult` of a candidate.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Chosen {
    pub(super) chosen_candidates: List<Object<TokenShape>>,
}

/// The `content` of a candidate.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Content<'a> {
    #[serde(borrow)]
    pub(super) parts: List<Object<Part<'a>>>,
}

/// An item of `parts`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Part<'a> {
    #[serde(borrow)]
    pub(super) text: Leaf<'a>,
    pub(super) thought: Flag,
    pub(super) function_call: Object<Function<'a>>,
}

/// A `functionCall`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    pub(super) id: Leaf<'a>,
    pub(super) name: Leaf<'a>,
    pub(super) args: Leaf<'a>,
}

/// `promptFeedback`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Feedback<'a> {
    #[serde(borrow)]
    pub(super) block_reason: Leaf<'a>,
}

/// `usageMetadata`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Counts {
    prompt_token_count: Count,
    tool_use_prompt_token_count: Count,
    thoughts_token_count: Count,
    candidates_token_count: Count,
    cached_content_token_count: Count,
}

impl Counts {
    /// Returns the usage, or `None` if no prompt tokens are reported. Proxies without token counts report 0.
    pub(super) fn usage(&self) -> Option<Usage> {
        let [prompt, tool_use, thoughts, candidates, cached] = [
            self.prompt_token_count,
            self.tool_use_prompt_token_count,
            self.thoughts_token_count,
            self.candidates_token_count,
            self.cached_content_token_count,
        ]
        .map(|count| count.0.unwrap_or_default());
        let input_tokens = prompt.saturating_add(tool_use);
        let usage = Usage::new(input_tokens, candidates.saturating_add(thoughts));
        (input_tokens > 0).then(|| usage.with_cached(cached).with_reasoning(thoughts))
    }
}
