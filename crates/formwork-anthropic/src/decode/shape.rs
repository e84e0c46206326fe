//! The properties of responses and events that the decoder reads.

use formwork_core::Usage;
use serde::Deserialize;
use serde_json::Value;

/// A message: the whole response, or the content of `message_start` in a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    pub(super) model: Option<String>,
    pub(super) content: Option<Vec<Block>>,
    pub(super) stop_reason: Option<String>,
    pub(super) stop_details: Option<StopDetails>,
    pub(super) usage: Option<Counts>,
    pub(super) error: Option<Value>,
}

/// The details of a refusal.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StopDetails {
    pub(super) explanation: Option<String>,
}

/// A content block. Unknown types are ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Block {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) text: Option<Value>,
    pub(super) thinking: Option<Value>,
    pub(super) signature: Option<String>,
    pub(super) data: Option<String>,
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) input: Option<Value>,
}

/// An event of a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) message: Option<Message>,
    pub(super) index: Option<u64>,
    pub(super) content_block: Option<Block>,
    pub(super) delta: Option<Piece>,
    pub(super) usage: Option<Counts>,
    pub(super) error: Option<Value>,
}

/// The `delta` of `content_block_delta` or `message_delta`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Piece {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) text: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) signature: Option<String>,
    pub(super) partial_json: Option<String>,
    pub(super) stop_reason: Option<String>,
    pub(super) stop_details: Option<StopDetails>,
}

/// The `usage` of a message. `None`: the server did not report the number.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub(super) struct Counts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct OutputDetails {
    thinking_tokens: Option<u64>,
}

impl Counts {
    /// Returns the maximum of each count. Counts only grow within a stream, and compatible servers omit some in later events
    /// or set them to zero.
    pub(super) fn merged(self, later: Self) -> Self {
        let thinking =
            |counts: Self| counts.output_tokens_details.and_then(|details| details.thinking_tokens);
        Self {
            input_tokens: self.input_tokens.max(later.input_tokens),
            output_tokens: self.output_tokens.max(later.output_tokens),
            cache_read_input_tokens: self.cache_read_input_tokens.max(later.cache_read_input_tokens),
            cache_creation_input_tokens: self
                .cache_creation_input_tokens
                .max(later.cache_creation_input_tokens),
            output_tokens_details: Some(OutputDetails {
                thinking_tokens: thinking(self).max(thinking(later)),
            }),
        }
    }

    /// Returns the usage, or `None` if input or output tokens are missing. Cache reads and writes are added to the input
    /// tokens, because the API reports them separately.
    pub(super) fn usage(self) -> Option<Usage> {
        let cached_tokens = self.cache_read_input_tokens.unwrap_or_default();
        let written = self.cache_creation_input_tokens.unwrap_or_default();
        let details = self.output_tokens_details.unwrap_or_default();
        let usage = Usage::new(
            self.input_tokens?.saturating_add(cached_tokens).saturating_add(written),
            self.output_tokens?,
        );
        Some(usage.with_cached(cached_tokens).with_reasoning(details.thinking_tokens.unwrap_or_default()))
    }
}
