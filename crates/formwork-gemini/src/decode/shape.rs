//! The members of responses that the decoder reads. Leaf values have any JSON type, because proxies differ.

use formwork_core::Usage;
use formwork_wire::lenient::{Count, Fill, Leaf, Read, Type};
use serde::de::{IgnoredAny, MapAccess, SeqAccess};

/// A document of the API: a response, or an array of responses (the format of a stream without `alt=sse`).
#[derive(Default)]
pub(super) struct Document<'de>(pub(super) Vec<Response<'de>>);

impl<'de> Read<'de> for Document<'de> {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        if self.0.is_empty() {
            self.0.push(Response::default());
        }
        self.0.iter_mut().try_fold(false, |_, response| response.member(name, members))
    }

    fn item<A: SeqAccess<'de>>(&mut self, items: &mut A) -> Result<bool, A::Error> {
        self.0.item(items)
    }
}

/// A `GenerateContentResponse`.
#[derive(Default)]
pub(super) struct Response<'de> {
    pub(super) candidates: Candidates<'de>,
    pub(super) feedback: Feedback<'de>,
    pub(super) usage: Counts,
    pub(super) model: Leaf<'de>,
    /// Whether the response has a property of this API.
    pub(super) is_answer: bool,
    /// Whether the response has a property of error documents, so that it must be parsed as a whole.
    pub(super) may_be_error: bool,
}

impl<'de> Read<'de> for Response<'de> {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        let read = match name {
            "candidates" => members.next_value_seed(Fill(&mut self.candidates))?,
            "promptFeedback" => members.next_value_seed(Fill(&mut self.feedback))?,
            "usageMetadata" => members.next_value_seed(Fill(&mut self.usage))?,
            "modelVersion" => {
                self.model = members.next_value()?;
                return Ok(true);
            }
            "error" | "message" | "detail" => {
                let is_null = members.next_value::<Option<IgnoredAny>>()?.is_none();
                self.may_be_error |= !is_null;
                return Ok(true);
            }
            _ => return Ok(false),
        };
        self.is_answer |= read != Type::Other;
        Ok(true)
    }
}

/// The first item of `candidates`. Requests ask for a single one.
#[derive(Default)]
pub(super) struct Candidates<'de> {
    pub(super) first: Candidate<'de>,
    is_found: bool,
}

impl<'de> Read<'de> for Candidates<'de> {
    fn item<A: SeqAccess<'de>>(&mut self, items: &mut A) -> Result<bool, A::Error> {
        if self.is_found {
            return Ok(items.next_element::<IgnoredAny>()?.is_some());
        }
        self.is_found = items.next_element_seed(Fill(&mut self.first))?.is_some();
        Ok(self.is_found)
    }
}

/// An item of `candidates`.
#[derive(Default)]
pub(super) struct Candidate<'de> {
    pub(super) content: Content<'de>,
    pub(super) finish_reason: Leaf<'de>,
}

impl<'de> Read<'de> for Candidate<'de> {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        match name {
            "content" => _ = members.next_value_seed(Fill(&mut self.content))?,
            "finishReason" => self.finish_reason = members.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The `content` of a candidate.
#[derive(Default)]
pub(super) struct Content<'de> {
    pub(super) parts: Vec<Part<'de>>,
}

impl<'de> Read<'de> for Content<'de> {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        if name == "parts" {
            members.next_value_seed(Fill(&mut self.parts))?;
        }
        Ok(name == "parts")
    }
}

/// An item of `parts`.
#[derive(Default)]
pub(super) struct Part<'de> {
    pub(super) text: Leaf<'de>,
    pub(super) thought: Leaf<'de>,
    pub(super) function_call: Leaf<'de>,
}

impl<'de> Read<'de> for Part<'de> {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        match name {
            "text" => self.text = members.next_value()?,
            "thought" => self.thought = members.next_value()?,
            "functionCall" => self.function_call = members.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// `promptFeedback`.
#[derive(Default)]
pub(super) struct Feedback<'de> {
    pub(super) block_reason: Leaf<'de>,
}

impl<'de> Read<'de> for Feedback<'de> {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        if name == "blockReason" {
            self.block_reason = members.next_value()?;
        }
        Ok(name == "blockReason")
    }
}

/// `usageMetadata`.
#[derive(Default)]
pub(super) struct Counts {
    prompt: Count,
    tool_use_prompt: Count,
    thoughts: Count,
    candidates: Count,
    cached_content: Count,
}

impl<'de> Read<'de> for Counts {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        let count = match name {
            "promptTokenCount" => &mut self.prompt,
            "toolUsePromptTokenCount" => &mut self.tool_use_prompt,
            "thoughtsTokenCount" => &mut self.thoughts,
            "candidatesTokenCount" => &mut self.candidates,
            "cachedContentTokenCount" => &mut self.cached_content,
            _ => return Ok(false),
        };
        *count = members.next_value()?;
        Ok(true)
    }
}

impl Counts {
    /// Returns the usage, or `None` if no prompt tokens are reported. Proxies without token counts report 0.
    pub(super) fn usage(&self) -> Option<Usage> {
        let [prompt, tool_use, thoughts, candidates, cached] =
            [self.prompt, self.tool_use_prompt, self.thoughts, self.candidates, self.cached_content]
                .map(|count| count.0.unwrap_or_default());
        let input_tokens = prompt.saturating_add(tool_use);
        let usage = Usage::new(input_tokens, candidates.saturating_add(thoughts));
        (input_tokens > 0).then(|| usage.with_cached(cached).with_reasoning(thoughts))
    }
}
