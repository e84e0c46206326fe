//! The properties of documents and chunks that the decoder reads. Leaf values have any JSON type, because servers differ.

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess};
use serde_json::Value;

use super::object::{Maybe, Read};

/// A whole document or a chunk of a stream.
#[derive(Default)]
pub(super) struct Shape {
    pub(super) model: Option<Value>,
    pub(super) choices: Maybe<FirstChoice>,
    pub(super) usage: Maybe<Counts>,
    /// Groq's property with the usage of a stream.
    pub(super) x_groq: Maybe<Groq>,
    /// Whether the document has a property of error documents, so that it must be parsed as a whole.
    pub(super) may_be_error: bool,
}

impl Shape {
    /// Returns the first choice. Requests ask for a single one.
    pub(super) fn choice(&self) -> Option<&Choice> {
        self.choices.0.as_ref()?.0.as_deref()
    }
}

impl Read for Shape {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        match name {
            "model" => self.model = Some(members.next_value()?),
            "choices" => self.choices = members.next_value()?,
            "usage" => self.usage = members.next_value()?,
            "x_groq" => self.x_groq = members.next_value()?,
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

/// The first item of `choices`. Requests ask for a single one.
#[derive(Default)]
pub(super) struct FirstChoice(pub(super) Option<Box<Choice>>);

impl Read for FirstChoice {
    const IS_ARRAY: bool = true;

    fn item<'de, A: SeqAccess<'de>>(&mut self, items: &mut A) -> Result<bool, A::Error> {
        let Some(Maybe(choice)) = items.next_element::<Maybe<Choice>>()? else { return Ok(false) };
        let choice = choice.unwrap_or_default();
        let index = choice.index.as_ref().and_then(Value::as_u64).unwrap_or_default();
        if index == 0 && self.0.is_none() {
            self.0 = Some(choice);
        }
        Ok(true)
    }
}

/// An item of `choices`. Some servers put the properties of its message directly into it.
#[derive(Default)]
pub(super) struct Choice {
    index: Option<Value>,
    pub(super) delta: Maybe<Message>,
    pub(super) message: Maybe<Message>,
    pub(super) itself: Box<Message>,
    pub(super) finish_reason: Option<Value>,
    /// An error of an upstream host (OpenRouter).
    pub(super) error: Option<Value>,
    /// The usage of a stream (Moonshot).
    pub(super) usage: Maybe<Counts>,
}

impl Read for Choice {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        match name {
            "index" => self.index = Some(members.next_value()?),
            "delta" => self.delta = members.next_value()?,
            "message" => self.message = members.next_value()?,
            "finish_reason" => self.finish_reason = Some(members.next_value()?),
            "error" => self.error = Some(members.next_value()?),
            "usage" => self.usage = members.next_value()?,
            _ => return self.itself.member(name, members),
        }
        Ok(true)
    }
}

/// A `message` or a `delta`.
#[derive(Default)]
pub(super) struct Message {
    pub(super) content: Option<Value>,
    /// The content under its name in the older Completions API, which some servers still send.
    pub(super) text: Option<Value>,
    pub(super) refusal: Option<Value>,
    pub(super) reasoning_content: Option<Value>,
    pub(super) reasoning: Option<Value>,
    pub(super) tool_calls: Option<Value>,
    pub(super) function_call: Option<Value>,
}

impl Read for Message {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
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
        *member = Some(members.next_value()?);
        Ok(true)
    }
}

/// Groq's property `x_groq`.
#[derive(Default)]
pub(super) struct Groq {
    pub(super) usage: Maybe<Counts>,
}

impl Read for Groq {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        if name == "usage" {
            self.usage = members.next_value()?;
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

impl Read for Counts {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        match name {
            "prompt_tokens" => self.prompt = members.next_value()?,
            "completion_tokens" => self.completion = members.next_value()?,
            "total_tokens" => self.total = members.next_value()?,
            "prompt_tokens_details" => self.prompt_details = inner(members)?,
            "completion_tokens_details" => self.completion_details = inner(members)?,
            "prompt_cache_hit_tokens" => self.cache_hit = members.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// `prompt_tokens_details` or `completion_tokens_details`.
#[derive(Default)]
pub(super) struct Details {
    pub(super) cached: Count,
    pub(super) reasoning: Count,
}

fn inner<'de, A: MapAccess<'de>>(members: &mut A) -> Result<Details, A::Error> {
    let Maybe(details) = members.next_value()?;
    Ok(details.map(|details| *details).unwrap_or_default())
}

impl Read for Details {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        match name {
            "cached_tokens" => self.cached = members.next_value()?,
            "reasoning_tokens" => self.reasoning = members.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// A count, which some servers write as a floating-point number. `None` for any other value.
#[derive(Clone, Copy, Default)]
pub(super) struct Count(pub(super) Option<u64>);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let rounded = || value.as_f64().filter(|number| *number >= 0.0).map(|number| number as u64);
        Ok(Self(value.as_u64().or_else(rounded)))
    }
}
