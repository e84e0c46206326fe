//! The members of documents and chunks that the decoder reads. Leaf values have any JSON type, because servers differ.

use formwork_wire::lenient::{Count, Fill, Leaf, Read, Type};
use serde::de::{IgnoredAny, MapAccess, SeqAccess};

/// A whole document or a chunk of a stream.
#[derive(Default)]
pub(super) struct Shape<'de> {
    pub(super) model: Leaf<'de>,
    pub(super) choices: Choices<'de>,
    pub(super) usage: Counts,
    /// Groq's property with the usage of a stream.
    pub(super) x_groq: Groq,
    /// Whether the document has a property of error documents, so that it must be parsed as a whole.
    pub(super) may_be_error: bool,
}

impl<'de> Read<'de> for Shape<'de> {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        match name {
            "model" => self.model = members.next_value()?,
            "choices" => _ = members.next_value_seed(Fill(&mut self.choices))?,
            "usage" => _ = members.next_value_seed(Fill(&mut self.usage))?,
            "x_groq" => _ = members.next_value_seed(Fill(&mut self.x_groq))?,
            "error" | "message" | "detail" => {
                // Many servers send `"error": null` in every document.
                let is_null = members.next_value::<Option<IgnoredAny>>()?.is_none();
                self.may_be_error |= !(is_null && name == "error");
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The first item of `choices` with the index 0. Requests ask for a single one.
#[derive(Default)]
pub(super) struct Choices<'de> {
    pub(super) choice: Choice<'de>,
    pub(super) is_found: bool,
}

impl<'de> Read<'de> for Choices<'de> {
    fn item<A: SeqAccess<'de>>(&mut self, items: &mut A) -> Result<bool, A::Error> {
        if self.is_found {
            return Ok(items.next_element::<IgnoredAny>()?.is_some());
        }
        let is_item = items.next_element_seed(Fill(&mut self.choice))?.is_some();
        self.is_found = is_item && self.choice.index.0.unwrap_or_default() == 0;
        if !self.is_found {
            self.choice = Choice::default();
        }
        Ok(is_item)
    }
}

/// An item of `choices`. Some servers put the properties of its message directly into it.
#[derive(Default)]
pub(super) struct Choice<'de> {
    index: Count,
    pub(super) delta: Option<Message<'de>>,
    pub(super) message: Option<Message<'de>>,
    pub(super) itself: Option<Message<'de>>,
    pub(super) finish_reason: Leaf<'de>,
    /// An error of an upstream host (OpenRouter).
    pub(super) error: Leaf<'de>,
    /// The usage of a stream (Moonshot).
    pub(super) usage: Counts,
}

impl<'de> Read<'de> for Choice<'de> {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        match name {
            "index" => self.index = members.next_value()?,
            "delta" => read_message(&mut self.delta, members)?,
            "message" => read_message(&mut self.message, members)?,
            "finish_reason" => self.finish_reason = members.next_value()?,
            "error" => self.error = members.next_value()?,
            "usage" => _ = members.next_value_seed(Fill(&mut self.usage))?,
            _ if Message::MEMBERS.contains(&name) => {
                return self.itself.get_or_insert_default().member(name, members);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Reads a message, or `None` for a value that is not an object.
fn read_message<'de, A: MapAccess<'de>>(
    message: &mut Option<Message<'de>>,
    members: &mut A,
) -> Result<(), A::Error> {
    let read = message.insert(Message::default());
    if members.next_value_seed(Fill(read))? != Type::Object {
        *message = None;
    }
    Ok(())
}

/// A `message` or a `delta`.
#[derive(Default)]
pub(super) struct Message<'de> {
    pub(super) content: Leaf<'de>,
    /// The content under its name in the older Completions API, which some servers still send.
    pub(super) text: Leaf<'de>,
    pub(super) refusal: Leaf<'de>,
    pub(super) reasoning_content: Leaf<'de>,
    pub(super) reasoning: Leaf<'de>,
    pub(super) tool_calls: Leaf<'de>,
    pub(super) function_call: Leaf<'de>,
}

impl Message<'_> {
    /// The names of the members.
    const MEMBERS: [&'static str; 7] =
        ["content", "text", "refusal", "reasoning_content", "reasoning", "tool_calls", "function_call"];
}

impl<'de> Read<'de> for Message<'de> {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        let member = match name {
            "content" => &mut self.content,
            "text" => &mut self.text,
            "refusal" => &mut self.refusal,
            "reasoning_content" => &mut self.reasoning_content,
            "reasoning" => &mut self.reasoning,
            "tool_calls" => &mut self.tool_calls,
            "function_call" => &mut self.function_call,
            _ => return Ok(false),
        };
        *member = members.next_value()?;
        Ok(true)
    }
}

/// Groq's property `x_groq`.
#[derive(Default)]
pub(super) struct Groq {
    pub(super) usage: Counts,
}

impl<'de> Read<'de> for Groq {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        if name == "usage" {
            members.next_value_seed(Fill(&mut self.usage))?;
        }
        Ok(name == "usage")
    }
}

/// A `usage` object.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) prompt: Count,
    pub(super) completion: Count,
    pub(super) total: Count,
    pub(super) prompt_details: Details,
    pub(super) completion_details: Details,
    /// DeepSeek's name for the cached tokens of the prompt.
    pub(super) cache_hit: Count,
}

impl<'de> Read<'de> for Counts {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        match name {
            "prompt_tokens" => self.prompt = members.next_value()?,
            "completion_tokens" => self.completion = members.next_value()?,
            "total_tokens" => self.total = members.next_value()?,
            "prompt_tokens_details" => _ = members.next_value_seed(Fill(&mut self.prompt_details))?,
            "completion_tokens_details" => _ = members.next_value_seed(Fill(&mut self.completion_details))?,
            "prompt_cache_hit_tokens" => self.cache_hit = members.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// `prompt_tokens_details` or `completion_tokens_details`, and the details of a Responses API's usage.
#[derive(Default)]
pub(crate) struct Details {
    pub(crate) cached: Count,
    pub(crate) reasoning: Count,
}

impl<'de> Read<'de> for Details {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        match name {
            "cached_tokens" => self.cached = members.next_value()?,
            "reasoning_tokens" => self.reasoning = members.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}
