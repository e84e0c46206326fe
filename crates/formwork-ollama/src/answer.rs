//! Decodes responses into deltas.

use formwork_core::{Delta, Fault, FaultKind, Finish, ToolCall, Usage};
use formwork_wire::http::response::Parts;
use formwork_wire::lenient::{Count, Fill, Leaf, Read, Type};
use formwork_wire::{Decoder, Deltas, Framed, Messages, Ndjson, Whole, lenient, media_type, quoted};
use serde::de::MapAccess;
use serde_json::Value;

use crate::fault;
use crate::request_info::RequestInfo;

/// Returns the decoder of a successful response: lines, or one document if no stream was requested.
pub(crate) fn decoder(request: RequestInfo, stream: bool, head: &Parts) -> Box<dyn Decoder> {
    let mut lines = Lines::new(request);
    let is_lines = media_type(head).is_some_and(|media| media.eq_ignore_ascii_case("application/x-ndjson"));
    if stream || is_lines {
        Box::new(Framed::<Ndjson, _>::new(lines))
    } else {
        Box::new(Whole::new(move |body: &[u8], out: &mut Deltas| document(&mut lines, body, out)))
    }
}

/// A line of a streamed `/api/chat` or `/api/generate` response, or the whole response without streaming (`api/types.go`). No
/// property is required: some versions omit properties that are zero, and proxies omit more.
#[derive(Default)]
struct Line<'de> {
    error: Leaf<'de>,
    model: Leaf<'de>,
    message: ResponseMessage<'de>,
    has_message: bool,
    response: Leaf<'de>,
    thinking: Leaf<'de>,
    done: Leaf<'de>,
    done_reason: Leaf<'de>,
    prompt_eval_count: Count,
    eval_count: Count,
}

impl<'de> Read<'de> for Line<'de> {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        match name {
            "error" => self.error = members.next_value()?,
            "model" => self.model = members.next_value()?,
            "message" => self.has_message = members.next_value_seed(Fill(&mut self.message))? == Type::Object,
            "response" => self.response = members.next_value()?,
            "thinking" => self.thinking = members.next_value()?,
            "done" => self.done = members.next_value()?,
            "done_reason" => self.done_reason = members.next_value()?,
            "prompt_eval_count" => self.prompt_eval_count = members.next_value()?,
            "eval_count" => self.eval_count = members.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[derive(Default)]
struct ResponseMessage<'de> {
    content: Leaf<'de>,
    thinking: Leaf<'de>,
    tool_calls: Leaf<'de>,
}

impl<'de> Read<'de> for ResponseMessage<'de> {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        match name {
            "content" => self.content = members.next_value()?,
            "thinking" => self.thinking = members.next_value()?,
            "tool_calls" => self.tool_calls = members.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Decodes lines.
#[derive(Debug)]
struct Lines {
    request: RequestInfo,
    /// The length of the text so far, in bytes.
    text: usize,
    /// The length of the reasoning so far, in bytes.
    reasoning: usize,
    calls_tools: bool,
    /// Whether there was a line, and whether one of them was part of an answer.
    has_line: bool,
    has_answer: bool,
}

impl Lines {
    const fn new(request: RequestInfo) -> Self {
        Self { request, text: 0, reasoning: 0, calls_tools: false, has_line: false, has_answer: false }
    }

    /// Returns the reason why the model stopped; `None` if it was only loaded or unloaded.
    fn finish(&self, line: &Line<'_>) -> Option<Finish> {
        let spent = line.eval_count.0;
        Some(match line.done_reason.as_str() {
            Some("load" | "unload") if self.text == 0 && self.reasoning == 0 => return None,
            Some("length") => Finish::Length,
            Some("content_filter") => Finish::Filtered,
            _ if self.calls_tools => Finish::ToolCall,
            // Versions before 0.1.38 send no reason. A completion with the maximum number of tokens was cut off.
            None if self
                .request
                .max_tokens
                .is_some_and(|max| spent.is_some_and(|spent| spent >= max.into())) =>
            {
                Finish::Length
            }
            _ => Finish::Stop,
        })
    }

    /// Returns the counted tokens, or an estimate. Ollama omits a count of zero, and with a schema it counts only the
    /// second of two runs, the one without reasoning.
    fn usage(&self, line: &Line<'_>) -> Usage {
        let (Count(input), Count(output)) = (line.prompt_eval_count, line.eval_count);
        let guess = |bytes: usize| bytes.div_ceil(4) as u64;
        let uncounted = if self.request.has_format || output.is_none() { guess(self.reasoning) } else { 0 };
        let answered = output.unwrap_or_else(|| guess(self.text)).saturating_add(uncounted);
        Usage::new(input.unwrap_or(self.request.input_tokens), answered)
            .with_reasoning(uncounted)
            .with_estimated(input.is_none() || output.is_none() || uncounted > 0)
    }
}

impl Messages for Lines {
    fn message(&mut self, text: &str, out: &mut Deltas) -> Result<(), Fault> {
        let mut line = Line::default();
        lenient::read_str(text, &mut line).map_err(|_| {
            Fault::new(
                FaultKind::BadWire,
                format!("the response is not one of Ollama's API: {}", quoted(text)),
            )
        })?;
        if !line.error.is_none() {
            return Err(fault::in_stream(&self.request, text, self.text > 0));
        }
        self.has_line = true;
        self.has_answer |= line.has_message || !line.response.is_none() || !line.thinking.is_none();
        let message = &mut line.message;
        let (content, thought) = match line.has_message {
            true => (message.content.take(), message.thinking.take()),
            false => (line.response.take(), line.thinking.take()),
        };
        if let Some(thought) = thought.into_text() {
            self.reasoning += thought.len();
            out.push_back(Delta::Reasoning(thought));
        }
        if let Some(content) = content.into_text() {
            self.text += content.len();
            out.push_back(Delta::Text(content));
        }
        for call in message.tool_calls.value().and_then(Value::as_array).into_iter().flatten() {
            self.calls_tools = true;
            let function = &call["function"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let arguments = match &function["arguments"] {
                Value::Null => "{}".to_owned(),
                Value::String(text) => text.clone(),
                arguments => arguments.to_string(),
            };
            // The arguments count for an estimate of the tokens.
            self.text += arguments.len();
            // Versions before 0.12 have no identifiers.
            let call = ToolCall::new(text(&call["id"]), text(&function["name"]), arguments);
            out.push_back(Delta::ToolCall(call));
        }
        // Some last lines have `done_reason` and no `done` (ollama/ollama#10015).
        let gives_reason = line.done_reason.as_str().is_some_and(|reason| !reason.is_empty());
        if line.done.is_true() || gives_reason {
            let Some(finish) = self.finish(&line) else {
                return Err(Fault::new(
                    FaultKind::BadRequest,
                    "the prompt is empty, so the model was only loaded: send a message",
                ));
            };
            out.push_back(Delta::End {
                finish,
                usage: self.usage(&line),
                closed_at: None,
                restrained: false,
                model: line.model.into_text(),
            });
        }
        Ok(())
    }

    fn end(&mut self, _: &mut Deltas) -> Result<(), Fault> {
        if self.has_line && !self.has_answer {
            return Err(Fault::new(FaultKind::BadWire, "the response contains no message and no completion"));
        }
        Err(Fault::cut_off("the stream ended without `done`"))
    }
}

/// Reads one document, which may span several lines.
fn document(lines: &mut Lines, body: &[u8], out: &mut Deltas) -> Result<(), Fault> {
    if !body.is_empty() {
        let text = std::str::from_utf8(body)
            .map_err(|_| Fault::new(FaultKind::BadWire, "the response is not UTF-8"))?;
        lines.message(text, out)?;
    }
    if matches!(out.back(), Some(Delta::End { .. })) {
        return Ok(());
    }
    Err(Fault::new(FaultKind::BadWire, "the response is not a complete completion"))
}
