//! The members of responses and events that the decoder reads. Leaf values have any JSON type, because compatible servers differ.

use formwork_core::Usage;
use formwork_wire::lenient::{Count, Fill, Leaf, Read, Type};
use serde::de::MapAccess;

/// A message: the whole response, or the content of `message_start` in a stream.
#[derive(Default)]
pub(super) struct Message<'de> {
    pub(super) model: Leaf<'de>,
    /// The blocks, or `None` if `content` is not an array.
    pub(super) content: Option<Vec<Block<'de>>>,
    pub(super) stop_reason: Leaf<'de>,
    pub(super) stop_details: StopDetails<'de>,
    pub(super) usage: Counts,
    pub(super) error: Leaf<'de>,
}

impl<'de> Read<'de> for Message<'de> {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        match name {
            "model" => self.model = members.next_value()?,
            "content" => {
                let mut blocks = Vec::new();
                let is_array = members.next_value_seed(Fill(&mut blocks))? == Type::Array;
                self.content = is_array.then_some(blocks);
            }
            "stop_reason" => self.stop_reason = members.next_value()?,
            "stop_details" => _ = members.next_value_seed(Fill(&mut self.stop_details))?,
            "usage" => _ = members.next_value_seed(Fill(&mut self.usage))?,
            "error" => self.error = members.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The details of a refusal.
#[derive(Default)]
pub(super) struct StopDetails<'de> {
    pub(super) explanation: Leaf<'de>,
}

impl<'de> Read<'de> for StopDetails<'de> {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        if name == "explanation" {
            self.explanation = members.next_value()?;
        }
        Ok(name == "explanation")
    }
}

/// A content block. Unknown types are ignored.
#[derive(Default)]
pub(super) struct Block<'de> {
    pub(super) kind: Leaf<'de>,
    pub(super) text: Leaf<'de>,
    pub(super) thinking: Leaf<'de>,
    pub(super) signature: Leaf<'de>,
    pub(super) data: Leaf<'de>,
    pub(super) id: Leaf<'de>,
    pub(super) name: Leaf<'de>,
    pub(super) input: Leaf<'de>,
}

impl<'de> Read<'de> for Block<'de> {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        let member = match name {
            "type" => &mut self.kind,
            "text" => &mut self.text,
            "thinking" => &mut self.thinking,
            "signature" => &mut self.signature,
            "data" => &mut self.data,
            "id" => &mut self.id,
            "name" => &mut self.name,
            "input" => &mut self.input,
            _ => return Ok(false),
        };
        *member = members.next_value()?;
        Ok(true)
    }
}

/// An event of a stream.
#[derive(Default)]
pub(super) struct Event<'de> {
    pub(super) kind: Leaf<'de>,
    /// In a box, like the block, because few events have them.
    pub(super) message: Option<Box<Message<'de>>>,
    pub(super) index: Count,
    pub(super) content_block: Option<Box<Block<'de>>>,
    pub(super) delta: Piece<'de>,
    pub(super) usage: Counts,
    pub(super) error: Leaf<'de>,
}

impl<'de> Read<'de> for Event<'de> {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        match name {
            "type" => self.kind = members.next_value()?,
            "message" => _ = members.next_value_seed(Fill(self.message.insert(Box::default()).as_mut()))?,
            "index" => self.index = members.next_value()?,
            "content_block" => {
                members.next_value_seed(Fill(self.content_block.insert(Box::default()).as_mut()))?;
            }
            "delta" => _ = members.next_value_seed(Fill(&mut self.delta))?,
            "usage" => _ = members.next_value_seed(Fill(&mut self.usage))?,
            "error" => self.error = members.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The `delta` of `content_block_delta` or `message_delta`.
#[derive(Default)]
pub(super) struct Piece<'de> {
    pub(super) kind: Leaf<'de>,
    pub(super) text: Leaf<'de>,
    pub(super) thinking: Leaf<'de>,
    pub(super) signature: Leaf<'de>,
    pub(super) partial_json: Leaf<'de>,
    pub(super) stop_reason: Leaf<'de>,
    pub(super) stop_details: StopDetails<'de>,
}

impl<'de> Read<'de> for Piece<'de> {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        match name {
            "type" => self.kind = members.next_value()?,
            "text" => self.text = members.next_value()?,
            "thinking" => self.thinking = members.next_value()?,
            "signature" => self.signature = members.next_value()?,
            "partial_json" => self.partial_json = members.next_value()?,
            "stop_reason" => self.stop_reason = members.next_value()?,
            "stop_details" => _ = members.next_value_seed(Fill(&mut self.stop_details))?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The `usage` of a message. Without a value: the server did not report the number.
#[derive(Default, Clone, Copy)]
pub(super) struct Counts {
    input_tokens: Count,
    output_tokens: Count,
    cache_read_input_tokens: Count,
    cache_creation_input_tokens: Count,
    output_tokens_details: OutputDetails,
}

impl<'de> Read<'de> for Counts {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        let count = match name {
            "input_tokens" => &mut self.input_tokens,
            "output_tokens" => &mut self.output_tokens,
            "cache_read_input_tokens" => &mut self.cache_read_input_tokens,
            "cache_creation_input_tokens" => &mut self.cache_creation_input_tokens,
            "output_tokens_details" => {
                members.next_value_seed(Fill(&mut self.output_tokens_details))?;
                return Ok(true);
            }
            _ => return Ok(false),
        };
        *count = members.next_value()?;
        Ok(true)
    }
}

#[derive(Default, Clone, Copy)]
struct OutputDetails {
    thinking_tokens: Count,
}

impl<'de> Read<'de> for OutputDetails {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        if name == "thinking_tokens" {
            self.thinking_tokens = members.next_value()?;
        }
        Ok(name == "thinking_tokens")
    }
}

impl Counts {
    /// Returns the maximum of each count. Counts only grow within a stream, and compatible servers omit some in later events
    /// or set them to zero.
    pub(super) fn merged(self, later: Self) -> Self {
        let most = |count: fn(Self) -> Count| Count(count(self).0.max(count(later).0));
        Self {
            input_tokens: most(|counts| counts.input_tokens),
            output_tokens: most(|counts| counts.output_tokens),
            cache_read_input_tokens: most(|counts| counts.cache_read_input_tokens),
            cache_creation_input_tokens: most(|counts| counts.cache_creation_input_tokens),
            output_tokens_details: OutputDetails {
                thinking_tokens: most(|counts| counts.output_tokens_details.thinking_tokens),
            },
        }
    }

    /// Returns the usage, or `None` if input or output tokens are missing. Cache reads and writes are added to the input
    /// tokens, because the API reports them separately.
    pub(super) fn usage(self) -> Option<Usage> {
        let cached_tokens = self.cache_read_input_tokens.0.unwrap_or_default();
        let written = self.cache_creation_input_tokens.0.unwrap_or_default();
        let usage = Usage::new(
            self.input_tokens.0?.saturating_add(cached_tokens).saturating_add(written),
            self.output_tokens.0?,
        );
        let thinking = self.output_tokens_details.thinking_tokens.0.unwrap_or_default();
        Some(usage.with_cached(cached_tokens).with_reasoning(thinking))
    }
}
