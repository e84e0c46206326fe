//! The members of responses and events that the decoder reads. Leaf values have any JSON type, because compatible servers differ.

use formwork_core::Usage;
use formwork_wire::lenient::{Count, Leaf, List, Object};
use serde::{Deserialize, Deserializer};

/// A message: the whole response, or the content of `message_start` in a stream.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) model: Leaf<'a>,
    pub(super) content: List<Object<Block<'a>>>,
    pub(super) stop_reason: Leaf<'a>,
    pub(super) stop_details: Object<Box<StopDetails<'a>>>,
    pub(super) usage: Object<Box<Counts>>,
    pub(super) error: Leaf<'a>,
}

/// The details of a refusal.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct StopDetails<'a> {
    #[serde(borrow)]
    pub(super) explanation: Leaf<'a>,
}

/// A content block. Unknown types are ignored.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Leaf<'a>,
    pub(super) text: Leaf<'a>,
    pub(super) thinking: Leaf<'a>,
    pub(super) signature: Leaf<'a>,
    pub(super) data: Leaf<'a>,
    pub(super) id: Leaf<'a>,
    pub(super) name: Leaf<'a>,
    pub(super) input: Leaf<'a>,
}

/// An event of a stream.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Event<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Leaf<'a>,
    /// In a box, like the block, because few events have them.
    pub(super) message: Object<Box<Message<'a>>>,
    pub(super) index: Count,
    pub(super) content_block: Object<Box<Block<'a>>>,
    pub(super) delta: Object<Box<Piece<'a>>>,
    pub(super) usage: Object<Box<Counts>>,
    pub(super) error: Leaf<'a>,
}

/// The `delta` of `content_block_delta` or `message_delta`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Piece<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Leaf<'a>,
    pub(super) text: Leaf<'a>,
    pub(super) thinking: Leaf<'a>,
    pub(super) signature: Leaf<'a>,
    pub(super) partial_json: Leaf<'a>,
    pub(super) stop_reason: Leaf<'a>,
    pub(super) stop_details: Object<Box<StopDetails<'a>>>,
}

/// The `usage` of a message. Without a value: the server did not report the number.
#[derive(Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub(super) struct Counts {
    input_tokens: Count,
    output_tokens: Count,
    cache_read_input_tokens: Count,
    cache_creation_input_tokens: Count,
    cache_creation: Object<Creation>,
    output_tokens_details: Object<OutputDetails>,
    iterations: Compacted,
}

/// The tokens of compactions of the dialogue, which are in `iterations` and in no other count.
#[derive(Default, Clone, Copy)]
struct Compacted(Usage);

impl<'de> Deserialize<'de> for Compacted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// An item of `iterations`.
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Iteration<'a> {
            #[serde(borrow, rename = "type")]
            kind: Leaf<'a>,
            #[serde(flatten)]
            counts: Counts,
        }

        let iterations = List::<Object<Iteration<'_>>>::deserialize(deserializer)?;
        let all = iterations.iter().filter_map(|iteration| iteration.0.as_ref());
        let compactions = all.filter(|iteration| iteration.kind.as_str() == Some("compaction"));
        Ok(Self(compactions.filter_map(|it| it.counts.usage()).fold(Usage::default(), Usage::plus)))
    }
}

/// The written tokens by lifetime.
#[derive(Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct Creation {
    ephemeral_1h_input_tokens: Count,
}

#[derive(Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct OutputDetails {
    thinking_tokens: Count,
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
            cache_creation: Object(Some(Creation {
                ephemeral_1h_input_tokens: most(|counts| counts.written_for_hour()),
            })),
            output_tokens_details: Object(Some(OutputDetails {
                thinking_tokens: most(|counts| counts.thinking_tokens()),
            })),
            iterations: if later.iterations.0 == Usage::default() {
                self.iterations
            } else {
                later.iterations
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
        let for_hour = self.written_for_hour().0.unwrap_or_default().min(written);
        let usage = usage.with_cached(cached_tokens).with_written(written - for_hour, for_hour);
        Some(usage.with_reasoning(self.thinking_tokens().0.unwrap_or_default()).plus(self.iterations.0))
    }

    fn written_for_hour(self) -> Count {
        self.cache_creation.0.unwrap_or_default().ephemeral_1h_input_tokens
    }

    fn thinking_tokens(self) -> Count {
        self.output_tokens_details.0.unwrap_or_default().thinking_tokens
    }
}
