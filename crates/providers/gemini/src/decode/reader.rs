use formwork_core::{Delta, Fault, FaultKind, Finish, Original, ToolCall, Usage};
use formwork_wire::{
    Collector, Deltas, Messages, Reader, RequestInfo, TokenShape, bad_wire, error_in, lenient,
};
use serde_json::Value;
use serde_json::value::RawValue;

use super::shape::{Counts, Part, Response};
use crate::API;
use crate::encode::SIGNATURE;

/// Reads `GenerateContentResponse`s: one in a document, many in a stream. A stream has no end marker; its last event has a
/// `finishReason`.
pub(crate) struct ContentReader {
    collector: Collector,
    has_event: bool,
    /// Whether any document had a property of this API.
    is_answer: bool,
    /// The identifiers of the calls of the caller's functions.
    call_ids: Vec<String>,
    /// The parts so far, if there are functions of the caller.
    parts: Vec<Value>,
}

impl ContentReader {
    pub(crate) const fn new(request: RequestInfo) -> Self {
        let collector = Collector::new(request);
        Self { collector, has_event: false, is_answer: false, call_ids: Vec::new(), parts: Vec::new() }
    }

    /// Reads the next response with this JSON text.
    fn take(&mut self, text: &str, mut response: Response<'_>, out: &mut Deltas) -> Result<(), Fault> {
        // Only errors and dialogues with tools need the whole response.
        let whole = || -> Value { serde_json::from_str(text).unwrap_or_default() };
        if response.may_be_error() {
            let document = whole();
            if error_in(&document).is_some() {
                return Err(self.collector.broken(&document));
            }
        }
        self.is_answer |= response.is_answer();
        self.collector.answered_by(&response.model_version);
        let usage = response.usage_metadata.0.as_ref().and_then(Counts::usage);
        self.collector.usage = usage.or(self.collector.usage);
        // The response to a blocked prompt has no candidates.
        if response.prompt_feedback.0.is_some_and(|feedback| !feedback.block_reason.is_none()) {
            self.collector.stopped(Finish::Filtered);
        }
        // Requests ask for a single candidate.
        let candidate = response.candidates.0.get_or_insert_default().drain(..).next();
        let candidate = candidate.and_then(|candidate| candidate.0).unwrap_or_default();
        TokenShape::push(candidate.logprobs_result.0.and_then(|chosen| chosen.chosen_candidates.0), out);
        for part in candidate.content.0.and_then(|content| content.parts.0).into_iter().flatten() {
            self.part(part.0.unwrap_or_default(), out);
        }
        if self.collector.request.has_tools {
            let whole = whole();
            let parts = whole.pointer("/candidates/0/content/parts").and_then(Value::as_array);
            parts.into_iter().flatten().for_each(|part| self.keep(part));
        }
        match candidate.finish_reason.as_str() {
            None | Some("") => {}
            Some(reason) => self.collector.stopped(finish(reason)?),
        }
        Ok(())
    }

    fn part(&mut self, part: Part<'_>, out: &mut Deltas) {
        let text = part.text.into_text().unwrap_or_default();
        if part.thought.0 {
            self.collector.thought(text, out);
        } else {
            self.collector.text(text, out);
        }
        let Some(call) = part.function_call.0 else { return };
        let arguments = if call.args.is_none() { "{}".to_owned() } else { call.args.into_json() };
        match self.collector.request.carrier.as_deref() {
            Some(tool) if call.name.as_str() == Some(tool) && !self.collector.is_carried => {
                self.collector.is_carried = true;
                self.collector.answer(arguments, out);
            }
            Some(_) => {}
            None => {
                let [id, name] = [call.id, call.name].map(|leaf| leaf.into_text().unwrap_or_default());
                self.call_ids.push(id.clone());
                self.collector.call(ToolCall::new(id, name, arguments), out);
            }
        }
    }

    /// Keeps a part for the next request. Pieces of one text are joined, except for a part with a signature, which has to stay as
    /// it is.
    fn keep(&mut self, part: &Value) {
        let plain = |part: &Value| part.get(SIGNATURE).is_none() && part.get("text").is_some();
        match (self.parts.last_mut(), part["text"].as_str()) {
            (Some(last), Some(more)) if plain(last) && plain(part) && last["thought"] == part["thought"] => {
                if let Some(Value::String(text)) = last.get_mut("text") {
                    text.push_str(more);
                }
            }
            _ => self.parts.push(part.clone()),
        }
    }

    /// Emits the final delta.
    fn finish(&mut self, out: &mut Deltas) {
        if !self.call_ids.is_empty() {
            self.collector.stopped(Finish::ToolCall);
        }
        let is_signed = self.parts.iter().any(|part| part.get(SIGNATURE).is_some());
        if is_signed && !self.call_ids.is_empty() {
            let (parts, ids) = (std::mem::take(&mut self.parts), std::mem::take(&mut self.call_ids));
            out.push_back(Delta::Original(Box::new(Original::new(API, Value::Array(parts), ids))));
        }
        self.collector.end(out);
    }
}

impl Messages for ContentReader {
    fn message(&mut self, text: &str, out: &mut Deltas) -> Result<(), Fault> {
        // Empty events are keep-alives. Only proxies send `[DONE]`.
        if matches!(text.trim(), "" | "[DONE]") {
            return Ok(());
        }
        let event = lenient::from_str(text)
            .map_err(|_| bad_wire("an event of the stream is not JSON", text.as_bytes()))?;
        self.has_event = true;
        self.take(text, event, out)
    }

    fn end(&mut self, out: &mut Deltas) -> Result<(), Fault> {
        if self.collector.finish().is_some() {
            self.finish(out);
            return Ok(());
        }
        if self.has_event && !self.is_answer {
            return Err(Fault::new(FaultKind::BadWire, "the stream has no candidates"));
        }
        Err(Fault::cut_off("the stream ended without a `finishReason`"))
    }

    fn usage(&self) -> Option<Usage> {
        self.collector.usage
    }
}

impl Reader for ContentReader {
    fn document(&mut self, body: &[u8], out: &mut Deltas) -> Result<(), Fault> {
        let bad_json = |_| bad_wire("the response is not JSON", body);
        // An array of responses is the format of a stream without `alt=sse`.
        let responses: Vec<&RawValue> = match body.trim_ascii_start().first() {
            Some(b'[') => serde_json::from_slice(body).map_err(bad_json)?,
            _ => vec![serde_json::from_slice(body).map_err(bad_json)?],
        };
        for response in responses {
            let text = response.get();
            let response = lenient::from_str(text).map_err(bad_json)?;
            self.take(text, response, out)?;
        }
        if !self.is_answer {
            return Err(bad_wire("the response is not one of the Gemini API", body));
        }
        self.finish(out);
        Ok(())
    }
}

/// Returns why the model stopped. An output that the service could not read is a fault, whatever text came before it; the same call
/// may succeed. An unexpected function call is a mistake of the model: validation judges the text.
fn finish(reason: &str) -> Result<Finish, Fault> {
    Ok(match reason {
        "STOP" => Finish::Stop,
        "MAX_TOKENS" => Finish::Length,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "LANGUAGE"
        | "MODEL_ARMOR"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => Finish::Filtered,
        "MALFORMED_FUNCTION_CALL" | "MALFORMED_RESPONSE" | "TOO_MANY_TOOL_CALLS" => {
            let message = format!("the service could not read the model's output: `finishReason` `{reason}`");
            return Err(Fault::new(FaultKind::Overloaded, message));
        }
        other => Finish::other(other),
    })
}
