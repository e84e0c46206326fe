//! Decodes a response into deltas.

use formwork_core::{Delta, Fault, FaultKind, Finish, Original, ToolCall, Usage};
use formwork_wire::{Deltas, quoted};
use serde_json::Value;

use crate::API;

/// Reads a response that is one JSON document. `carrier` is the name of the tool whose input is the document. `input_tokens`
/// is the estimate for responses without usage.
pub(crate) fn document(
    body: &[u8],
    carrier: Option<&str>,
    input_tokens: u64,
    out: &mut Deltas,
) -> Result<(), Fault> {
    let bad = |what: &str| {
        Fault::new(FaultKind::BadWire, format!("{what}: {}", quoted(&String::from_utf8_lossy(body))))
    };
    let document: Value =
        serde_json::from_slice(body).map_err(|_| bad("the response is not JSON of the Converse API"))?;
    let blocks = document.pointer("/output/message/content").and_then(Value::as_array);
    let Some(blocks) = blocks else { return Err(bad("the response has no `output.message.content`")) };
    let mut calls = Vec::new();
    let (mut answer, mut aside, mut is_carried, mut answered) = (String::new(), String::new(), false, 0);
    for block in blocks {
        let thought = block.pointer("/reasoningContent/reasoningText/text").and_then(Value::as_str);
        if let Some(text) = block["text"].as_str() {
            if carrier.is_some() { aside.push_str(text) } else { answer.push_str(text) }
        } else if let Some(thought) = thought.filter(|thought| !thought.is_empty()) {
            answered += thought.len();
            out.push_back(Delta::Reasoning(thought.to_owned()));
        } else if let Some(tool) = block.get("toolUse").filter(|_| carrier.is_none()) {
            let text = |name: &str| tool[name].as_str().unwrap_or_default();
            let arguments = tool["input"].to_string();
            answered += arguments.len();
            calls.push(ToolCall::new(text("toolUseId"), text("name"), arguments));
        } else if let Some(tool) = block.get("toolUse")
            && !is_carried
            && carrier.is_some_and(|name| tool["name"] == name)
        {
            is_carried = true;
            answer = match &tool["input"] {
                // Some models write the document as text inside a string.
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                input => input.to_string(),
            };
        }
    }
    // The text is the answer of a model that did not call the forced tool.
    if carrier.is_some() && !is_carried {
        answer = aside;
    }
    answered += answer.len();
    if !answer.is_empty() {
        out.push_back(Delta::Text(answer));
    }
    // Signed thoughts are required back before the calls that they led to.
    let original = blocks.iter().any(|block| block.get("reasoningContent").is_some()) && !calls.is_empty();
    let original = original.then(|| {
        let ids = calls.iter().map(|call| call.id.as_str());
        Original::new(API, Value::Array(blocks.clone()), ids)
    });
    out.extend(calls.into_iter().map(Delta::ToolCall));
    out.extend(original.map(Box::new).map(Delta::Original));
    let finish = match document["stopReason"].as_str().unwrap_or_default() {
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "guardrail_intervened" | "content_filtered" => Finish::Filtered,
        "refusal" => Finish::Refused,
        // The forced call is the completion, not a call for the caller to run.
        "tool_use" if is_carried => Finish::Stop,
        "tool_use" => Finish::ToolCall,
        // `end_turn`, `stop_sequence`, `malformed_model_output`: validation judges the text.
        _ => Finish::Stop,
    };
    let count = |name: &str| document["usage"][name].as_u64();
    let usage = match (count("inputTokens"), count("outputTokens")) {
        (Some(input), Some(output)) => {
            // The API reports cache reads and writes separately from the other input tokens.
            let cached = count("cacheReadInputTokens").unwrap_or_default();
            let written = count("cacheWriteInputTokens").unwrap_or_default();
            Usage::new(input.saturating_add(cached).saturating_add(written), output).with_cached(cached)
        }
        _ => Usage::new(input_tokens, (answered as u64).div_ceil(4)).with_estimated(true),
    };
    out.push_back(Delta::End { finish, usage, closed_at: None, restrained: false, model: None });
    Ok(())
}
