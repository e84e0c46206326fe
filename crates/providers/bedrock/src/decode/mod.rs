//! Decodes a response into deltas.

mod stream;

use formwork_core::{Delta, Fault, FaultKind, Finish, Original, ToolCall, Usage};
use formwork_wire::lenient::{Count, Leaf, List, Object};
use formwork_wire::{Deltas, Reader, bad_wire, lenient};
use serde::Deserialize;
use serde_json::Value;

use crate::API;

pub(crate) use stream::ConverseReader;

/// A response. Leaf values have any JSON type.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Response<'a> {
    #[serde(borrow)]
    output: Object<Output<'a>>,
    stop_reason: Leaf<'a>,
    usage: Object<Counts<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Output<'a> {
    #[serde(borrow)]
    message: Object<Message<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message<'a> {
    #[serde(borrow)]
    content: List<Object<Block<'a>>>,
}

/// A content block. Unknown types are ignored.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Block<'a> {
    #[serde(borrow)]
    text: Leaf<'a>,
    reasoning_content: Object<ReasoningContent<'a>>,
    tool_use: Object<ToolUse<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ReasoningContent<'a> {
    #[serde(borrow)]
    reasoning_text: Object<ReasoningText<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReasoningText<'a> {
    #[serde(borrow)]
    text: Leaf<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ToolUse<'a> {
    #[serde(borrow)]
    tool_use_id: Leaf<'a>,
    name: Leaf<'a>,
    input: Leaf<'a>,
}

/// The `usage` of a response. The API reports cache reads and writes separately from the other input tokens.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Counts<'a> {
    input_tokens: Count,
    output_tokens: Count,
    cache_read_input_tokens: Count,
    cache_write_input_tokens: Count,
    #[serde(borrow)]
    cache_details: List<Object<Written<'a>>>,
}

/// The tokens that were written to the cache, by lifetime: `5m` or `1h`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Written<'a> {
    #[serde(borrow)]
    ttl: Leaf<'a>,
    input_tokens: Count,
}

impl Counts<'_> {
    fn usage(&self) -> Option<Usage> {
        let cached = self.cache_read_input_tokens.0.unwrap_or_default();
        let written = self.cache_write_input_tokens.0.unwrap_or_default();
        let input = self.input_tokens.0?.saturating_add(cached).saturating_add(written);
        let of_hour = |one: &Written<'_>| one.input_tokens.0.filter(|_| one.ttl.as_str() == Some("1h"));
        let hour =
            self.cache_details.iter().filter_map(|one| of_hour(one.0.as_ref()?)).sum::<u64>().min(written);
        let usage = Usage::new(input, self.output_tokens.0?).with_written(written - hour, hour);
        Some(usage.with_cached(cached))
    }
}

impl Reader for ConverseReader {
    fn document(&mut self, body: &[u8], out: &mut Deltas) -> Result<(), Fault> {
        let response: Response<'_> = lenient::from_slice(body)
            .map_err(|_| bad_wire("the response is not JSON of the Converse API", body))?;
        let message = response.output.0.and_then(|output| output.message.0);
        let Some(blocks) = message.and_then(|message| message.content.0) else {
            return Err(bad_wire("the response has no `output.message.content`", body));
        };
        let collector = &mut self.collector;
        let (mut calls, mut text, mut has_reasoning) = (Vec::new(), String::new(), false);
        for block in blocks {
            let Block { text: piece, reasoning_content, tool_use } = block.0.unwrap_or_default();
            has_reasoning |= reasoning_content.0.is_some();
            let thought = reasoning_content.0.and_then(|content| content.reasoning_text.0?.text.into_text());
            collector.thought(thought.unwrap_or_default(), out);
            text.push_str(piece.as_str().unwrap_or_default());
            let Some(tool) = tool_use.0 else { continue };
            match collector.request.carrier.as_deref() {
                None => {
                    let [id, name] =
                        [tool.tool_use_id, tool.name].map(|leaf| leaf.into_text().unwrap_or_default());
                    calls.push(ToolCall::new(id, name, tool.input.into_json()));
                }
                Some(name) if !collector.is_carried && tool.name.as_str() == Some(name) => {
                    collector.is_carried = true;
                    // Some models write the document as text inside a string.
                    collector.answer(tool.input.into_json(), out);
                }
                Some(_) => {}
            }
        }
        collector.text(text, out);
        // Signed thoughts are required back before the calls that they led to.
        let original = (has_reasoning && !calls.is_empty()).then(|| {
            let whole: Value = serde_json::from_slice(body).unwrap_or_default();
            let blocks = whole.pointer("/output/message/content").cloned().unwrap_or_default();
            original(blocks, calls.iter().map(|call: &ToolCall| call.id.clone()).collect())
        });
        calls.into_iter().for_each(|call| collector.call(call, out));
        out.extend(original);
        collector.stopped(finish(response.stop_reason.as_str().unwrap_or_default())?);
        collector.usage = response.usage.0.and_then(|counts| counts.usage());
        collector.end(out);
        Ok(())
    }
}

/// Returns the content of an answer with these calls, which is sent back unchanged.
fn original(blocks: Value, calls: Vec<String>) -> Delta {
    Delta::Original(Box::new(Original::new(API, blocks, calls)))
}

/// Returns the reason why the model stopped.
fn finish(reason: &str) -> Result<Finish, Fault> {
    Ok(match reason {
        "end_turn" => Finish::Stop,
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "guardrail_intervened" | "content_filtered" => Finish::Filtered,
        "refusal" => Finish::Refused,
        "tool_use" => Finish::ToolCall,
        // Whatever text came before it: the same call may succeed.
        "malformed_model_output" | "malformed_tool_use" => {
            let message = format!("the service could not read the model's output: `stopReason` `{reason}`");
            return Err(Fault::new(FaultKind::Overloaded, message));
        }
        // For example `stop_sequence`: validation judges the text.
        other => Finish::other(other),
    })
}

#[cfg(test)]
mod tests {
    use formwork_wire::RequestInfo;
    use serde_json::json;

    use super::*;

    #[test]
    fn malformed_output_is_a_fault_whatever_text_came_before_it() {
        for (reason, expected) in [
            ("malformed_model_output", Some(FaultKind::Overloaded)),
            ("malformed_tool_use", Some(FaultKind::Overloaded)),
            ("stop_sequence", None),
            ("a_reason_to_come", None),
        ] {
            for content in [json!([]), json!([{"text": "{}"}])] {
                let body = json!({"output": {"message": {"content": content}}, "stopReason": reason});
                let mut deltas = Deltas::new();
                let mut reader = ConverseReader::new(RequestInfo::default());
                let read = reader.document(body.to_string().as_bytes(), &mut deltas);
                assert_eq!(read.as_ref().err().map(|fault| fault.kind), expected, "{body}");
                let has_end = deltas.iter().any(|delta| matches!(delta, Delta::End(_)));
                assert_eq!(has_end, expected.is_none(), "{body}");
                assert!(read.err().is_none_or(|fault| fault.message.contains(reason)), "{body}");
            }
        }
    }
}
