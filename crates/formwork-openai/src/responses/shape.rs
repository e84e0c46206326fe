//! The members of responses and events that the decoder reads. Leaf values have any JSON type, because servers differ.

use formwork_core::Usage;
use formwork_wire::lenient::{Count, Fill, Leaf, Read, Type};
use serde::de::MapAccess;

use crate::decode::shape::Details;

/// A response.
#[derive(Default)]
pub(super) struct Response<'de> {
    pub(super) object: Leaf<'de>,
    pub(super) status: Leaf<'de>,
    pub(super) model: Leaf<'de>,
    pub(super) error: Leaf<'de>,
    pub(super) incomplete_details: Incomplete<'de>,
    /// The items, or `None` if `output` is not an array.
    pub(super) output: Option<Vec<Item<'de>>>,
    pub(super) usage: Counts,
}

impl<'de> Read<'de> for Response<'de> {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        match name {
            "object" => self.object = members.next_value()?,
            "status" => self.status = members.next_value()?,
            "model" => self.model = members.next_value()?,
            "error" => self.error = members.next_value()?,
            "incomplete_details" => _ = members.next_value_seed(Fill(&mut self.incomplete_details))?,
            "output" => {
                let mut items = Vec::new();
                let is_array = members.next_value_seed(Fill(&mut items))? == Type::Array;
                self.output = is_array.then_some(items);
            }
            "usage" => _ = members.next_value_seed(Fill(&mut self.usage))?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// `incomplete_details`.
#[derive(Default)]
pub(super) struct Incomplete<'de> {
    pub(super) reason: Leaf<'de>,
}

impl<'de> Read<'de> for Incomplete<'de> {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        if name == "reason" {
            self.reason = members.next_value()?;
        }
        Ok(name == "reason")
    }
}

/// An item of `output`.
#[derive(Default)]
pub(super) struct Item<'de> {
    pub(super) kind: Leaf<'de>,
    pub(super) id: Leaf<'de>,
    pub(super) phase: Leaf<'de>,
    pub(super) call_id: Leaf<'de>,
    pub(super) name: Leaf<'de>,
    pub(super) arguments: Leaf<'de>,
    pub(super) summary: Vec<Part<'de>>,
    pub(super) content: Vec<Part<'de>>,
}

impl<'de> Read<'de> for Item<'de> {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        match name {
            "type" => self.kind = members.next_value()?,
            "id" => self.id = members.next_value()?,
            "phase" => self.phase = members.next_value()?,
            "call_id" => self.call_id = members.next_value()?,
            "name" => self.name = members.next_value()?,
            "arguments" => self.arguments = members.next_value()?,
            "summary" => _ = members.next_value_seed(Fill(&mut self.summary))?,
            "content" => _ = members.next_value_seed(Fill(&mut self.content))?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// A part of an item.
#[derive(Default)]
pub(super) struct Part<'de> {
    pub(super) kind: Leaf<'de>,
    pub(super) text: Leaf<'de>,
    pub(super) refusal: Leaf<'de>,
}

impl<'de> Read<'de> for Part<'de> {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        match name {
            "type" => self.kind = members.next_value()?,
            "text" => self.text = members.next_value()?,
            "refusal" => self.refusal = members.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// A `usage` object.
#[derive(Default)]
pub(super) struct Counts {
    input: Count,
    output: Count,
    input_details: Details,
    output_details: Details,
}

impl<'de> Read<'de> for Counts {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        match name {
            "input_tokens" => self.input = members.next_value()?,
            "output_tokens" => self.output = members.next_value()?,
            "input_tokens_details" => _ = members.next_value_seed(Fill(&mut self.input_details))?,
            "output_tokens_details" => _ = members.next_value_seed(Fill(&mut self.output_details))?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl Counts {
    /// Returns the usage, or `None` if the counts are missing.
    pub(super) fn usage(&self) -> Option<Usage> {
        let (Count(input), Count(output)) = (self.input, self.output);
        if input.is_none() && output.is_none() {
            return None;
        }
        let usage = Usage::new(input.unwrap_or_default(), output.unwrap_or_default());
        let cached = self.input_details.cached.0.unwrap_or_default();
        Some(usage.with_cached(cached).with_reasoning(self.output_details.reasoning.0.unwrap_or_default()))
    }
}

/// An event of a stream.
#[derive(Default)]
pub(super) struct Event<'de> {
    pub(super) kind: Leaf<'de>,
    pub(super) output_index: Count,
    pub(super) item_id: Leaf<'de>,
    pub(super) content_index: Count,
    pub(super) summary_index: Count,
    pub(super) delta: Leaf<'de>,
    /// In a box, like the response, because few events have them.
    pub(super) item: Option<Box<Item<'de>>>,
    pub(super) response: Option<Box<Response<'de>>>,
    pub(super) error: Leaf<'de>,
}

impl<'de> Read<'de> for Event<'de> {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        match name {
            "type" => self.kind = members.next_value()?,
            "output_index" => self.output_index = members.next_value()?,
            "item_id" => self.item_id = members.next_value()?,
            "content_index" => self.content_index = members.next_value()?,
            "summary_index" => self.summary_index = members.next_value()?,
            "delta" => self.delta = members.next_value()?,
            "item" => _ = members.next_value_seed(Fill(self.item.insert(Box::default()).as_mut()))?,
            "response" => _ = members.next_value_seed(Fill(self.response.insert(Box::default()).as_mut()))?,
            "error" => self.error = members.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}
