//! The members of documents and chunks that the decoder reads. Leaf values have any JSON type, because servers differ.

use formwork_core::Usage;
use formwork_wire::lenient::{Amount, Count, Flag, Leaf, List, Object};
use formwork_wire::{FunctionShape, TokenShape};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// A whole document or a chunk of a stream.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Shape<'a> {
    #[serde(borrow)]
    pub(super) model: Leaf<'a>,
    choices: List<Object<Choice<'a>>>,
    /// In a box, like everything that few chunks have, because a structure is copied several times while it is read.
    usage: Object<Box<Counts>>,
    /// Groq's property with the usage of a stream.
    x_groq: Object<Box<Groq>>,
    error: Option<IgnoredAny>,
    message: Option<IgnoredAny>,
    detail: Option<IgnoredAny>,
}

impl<'a> Shape<'a> {
    /// Returns whether the document has a property of error documents, so that it must be parsed as a whole. Many servers send
    /// `"error": null` in every document.
    pub(super) const fn may_be_error(&self) -> bool {
        self.error.is_some() || self.message.is_some() || self.detail.is_some()
    }

    /// Returns the first item of `choices` with the index 0, and its position. Requests ask for a single choice.
    pub(super) fn choice(&mut self) -> Option<(usize, &mut Choice<'a>)> {
        let choices = self.choices.0.as_mut()?.iter_mut().map(|choice| choice.0.get_or_insert_default());
        choices.enumerate().find(|(_, choice)| choice.index.0.unwrap_or_default() == 0)
    }

    /// Returns the usage in the document: `usage`, or the property in which Groq sends it in streams.
    pub(super) fn usage(&self) -> Option<Usage> {
        let of_groq = || self.x_groq.0.as_ref()?.usage.0.as_ref()?.usage();
        self.usage.0.as_deref().and_then(Counts::usage).or_else(of_groq)
    }
}

/// An item of `choices`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice<'a> {
    index: Count,
    #[serde(borrow)]
    pub(super) delta: Object<Message<'a>>,
    pub(super) message: Object<Box<Message<'a>>>,
    pub(super) finish_reason: Leaf<'a>,
    /// The log probabilities of the text's tokens, if the request asks for them.
    pub(super) logprobs: Object<Box<LogProbs>>,
    /// An error of an upstream host (OpenRouter).
    pub(super) error: Leaf<'a>,
    /// The usage of a stream (Moonshot).
    pub(super) usage: Object<Box<Counts>>,
}

/// The `logprobs` of a choice.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct LogProbs {
    pub(super) content: List<Object<TokenShape>>,
}

/// A document of a server that puts the properties of a message directly into its choice.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct DirectShape<'a> {
    #[serde(borrow)]
    pub(super) choices: List<Object<Message<'a>>>,
}

/// A `message` or a `delta`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) content: Leaf<'a>,
    /// The content under its name in the older Completions API, which some servers still send.
    pub(super) text: Leaf<'a>,
    pub(super) refusal: Leaf<'a>,
    pub(super) reasoning_content: Leaf<'a>,
    pub(super) reasoning: Leaf<'a>,
    pub(super) tool_calls: List<Object<Call<'a>>>,
    /// The tool call under its older name.
    pub(super) function_call: Object<Box<FunctionShape<'a>>>,
}

/// An item of `tool_calls`, or a piece of it. Some servers omit `function` and put its properties into the call.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Call<'a> {
    pub(super) index: Count,
    #[serde(borrow)]
    pub(super) id: Leaf<'a>,
    pub(super) function: Object<FunctionShape<'a>>,
    pub(super) name: Leaf<'a>,
    pub(super) arguments: Leaf<'a>,
}

/// Groq's property `x_groq`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Groq {
    usage: Object<Counts>,
}

/// A `usage` object.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Counts {
    prompt_tokens: Count,
    completion_tokens: Count,
    total_tokens: Count,
    prompt_tokens_details: Object<Details>,
    completion_tokens_details: Object<Details>,
    /// The cost in US dollars, which OpenRouter reports.
    cost: Amount,
    /// Whether the cost lacks that at the vendor, which the caller's own key pays for.
    is_byok: Flag,
    cost_details: Object<CostDetails>,
    /// DeepSeek's name for the cached tokens of the prompt.
    prompt_cache_hit_tokens: Count,
}

impl Counts {
    /// Returns the usage, or `None` if the counts are missing.
    pub(super) fn usage(&self) -> Option<Usage> {
        let (Count(prompt), Count(completion)) = (self.prompt_tokens, self.completion_tokens);
        if prompt.is_none() && completion.is_none() {
            return None;
        }
        let input_tokens = prompt.unwrap_or_default();
        let mut output_tokens = completion.unwrap_or_default();
        let reasoning_tokens = self.completion_tokens_details.0.unwrap_or_default().reasoning_tokens;
        let reasoning_tokens = reasoning_tokens.0.unwrap_or_default();
        // xAI does not include reasoning in the completion tokens; the total reveals it.
        let with_reasoning = output_tokens.saturating_add(reasoning_tokens);
        if self.total_tokens.0 == Some(input_tokens.saturating_add(with_reasoning)) {
            output_tokens = with_reasoning;
        }
        let details = self.prompt_tokens_details.0.unwrap_or_default();
        let cached_tokens = details.cached_tokens.0.or(self.prompt_cache_hit_tokens.0).unwrap_or_default();
        let upstream = self.cost_details.0.unwrap_or_default().upstream_inference_cost.0;
        let cost = match self.is_byok {
            Flag(true) => self.cost.0.zip(upstream).map(|(cost, upstream)| cost + upstream),
            Flag(false) => self.cost.0,
        };
        let usage = Usage::new(input_tokens, output_tokens).with_dollars(cost);
        let usage = usage.with_written(details.cache_write_tokens.0.unwrap_or_default(), 0);
        Some(usage.with_cached(cached_tokens).with_reasoning(reasoning_tokens))
    }
}

/// OpenRouter's `cost_details`.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct CostDetails {
    upstream_inference_cost: Amount,
}

/// `prompt_tokens_details` or `completion_tokens_details`, and the details of a Responses API's usage.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Details {
    pub(crate) cached_tokens: Count,
    pub(crate) cache_write_tokens: Count,
    pub(crate) reasoning_tokens: Count,
}
