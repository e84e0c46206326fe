//! The members of responses and events that the decoder reads. Leaf values have any JSON type, because servers differ.

use formwork_core::Usage;
use formwork_wire::TokenShape;
use formwork_wire::lenient::{Count, Leaf, List, Object};
use serde::Deserialize;

use crate::decode::shape::Details;

/// A response.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Response<'a> {
    #[serde(borrow)]
    pub(super) object: Leaf<'a>,
    pub(super) status: Leaf<'a>,
    pub(super) model: Leaf<'a>,
    pub(super) error: Leaf<'a>,
    incomplete_details: Object<Incomplete<'a>>,
    pub(super) output: List<Object<Item<'a>>>,
    pub(super) usage: Object<Counts>,
}

impl Response<'_> {
    /// Returns the reason why the response is incomplete; empty if there is none.
    pub(super) fn why_incomplete(&self) -> &str {
        self.incomplete_details.0.as_ref().and_then(|it| it.reason.as_str()).unwrap_or_default()
    }
}

/// `incomplete_details`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Incomplete<'a> {
    #[serde(borrow)]
    reason: Leaf<'a>,
}

/// An item of `output`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Item<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Leaf<'a>,
    pub(super) id: Leaf<'a>,
    pub(super) phase: Leaf<'a>,
    pub(super) call_id: Leaf<'a>,
    pub(super) name: Leaf<'a>,
    pub(super) arguments: Leaf<'a>,
    pub(super) summary: List<Object<Part<'a>>>,
    pub(super) content: List<Object<Part<'a>>>,
}

/// A part of an item.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Part<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Leaf<'a>,
    pub(super) text: Leaf<'a>,
    pub(super) refusal: Leaf<'a>,
    pub(super) logprobs: List<Object<TokenShape>>,
}

/// A `usage` object.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Counts {
    input_tokens: Count,
    output_tokens: Count,
    input_tokens_details: Object<Details>,
    output_tokens_details: Object<Details>,
}

impl Counts {
    /// Returns the usage, or `None` if the counts are missing.
    pub(super) fn usage(&self) -> Option<Usage> {
        let (Count(input), Count(output)) = (self.input_tokens, self.output_tokens);
        if input.is_none() && output.is_none() {
            return None;
        }
        let details = self.input_tokens_details.0.unwrap_or_default();
        let (cached, written) = (details.cached_tokens, details.cache_write_tokens.0.unwrap_or_default());
        let reasoning = self.output_tokens_details.0.unwrap_or_default().reasoning_tokens;
        let usage = Usage::new(input.unwrap_or_default(), output.unwrap_or_default());
        let usage = usage.with_written(written, 0);
        Some(usage.with_cached(cached.0.unwrap_or_default()).with_reasoning(reasoning.0.unwrap_or_default()))
    }
}

/// An event of a stream.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Event<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Leaf<'a>,
    pub(super) output_index: Count,
    pub(super) item_id: Leaf<'a>,
    pub(super) content_index: Count,
    pub(super) summary_index: Count,
    pub(super) delta: Leaf<'a>,
    /// The whole content of a part, at its end.
    pub(super) text: Leaf<'a>,
    pub(super) refusal: Leaf<'a>,
    pub(super) arguments: Leaf<'a>,
    pub(super) logprobs: List<Object<TokenShape>>,
    /// In a box, like the response, because few events have them.
    pub(super) item: Object<Box<Item<'a>>>,
    pub(super) response: Object<Box<Response<'a>>>,
    pub(super) error: Leaf<'a>,
}
