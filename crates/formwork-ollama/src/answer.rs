//! Decodes responses into deltas.

use formwork_core::{Delta, Fault, FaultKind, Finish, ToolCall, Usage};
use formwork_wire::http::response::Parts;
use formwork_wire::{Decoder, Deltas, Framed, Messages, Ndjson, media_type, quoted};
use serde::Deserialize;
use serde_json::Value;

use crate::fault;
use crate::request_info::RequestInfo;

/// Returns the decoder of a successful response: lines, or one document if no stream was requested.
pub(crate) fn decoder(request: RequestInfo, stream: bool, head: &Parts) -> Box<dyn Decoder> {
    let lines = Lines::new(request);
    let is_lines = media_type(head).is_some_and(|media| media.eq_ignore_ascii_case("application/x-ndjson"));
    if stream || is_lines {
        Box::new(Framed::<Ndjson, _>::new(lines))
    } else {
        Box::new(Document { body: Vec::new(), lines })
    }
}

/// A line of a streamed `/api/chat` or `/api/generate` response, or the whole response without streaming (`api/types.go`). No
/// property is required: some versions omit properties that are zero, and proxies omit more.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Line {
    error: Option<Value>,
    model: Option<String>,
    message: Option<ResponseMessage>,
    response: Option<String>,
    thinking: Option<String>,
    done: Option<bool>,
    done_reason: Option<String>,
    prompt_eval_count: Option<Value>,
    eval_count: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ResponseMessage {
    content: Option<String>,
    thinking: Option<String>,
    tool_calls: Option<Vec<Value>>,
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
    fn finish(&self, line: &Line) -> Option<Finish> {
        let spent = line.eval_count.as_ref().and_then(Value::as_u64);
        Some(match line.done_reason.as_deref() {
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
    fn usage(&self, line: &Line) -> Usage {
        let count = |count: &Option<Value>| count.as_ref().and_then(Value::as_u64);
        let (input, output) = (count(&line.prompt_eval_count), count(&line.eval_count));
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
        let line: Line = serde_json::from_str(text).map_err(|_| {
            Fault::new(
                FaultKind::BadWire,
                format!("the response is not one of Ollama's API: {}", quoted(text)),
            )
        })?;
        if line.error.is_some() {
            return Err(fault::in_stream(&self.request, text, self.text > 0));
        }
        self.has_line = true;
        self.has_answer |= line.message.is_some() || line.response.is_some() || line.thinking.is_some();
        let (content, thought, calls) = match &line.message {
            Some(message) => (&message.content, &message.thinking, message.tool_calls.as_deref()),
            None => (&line.response, &line.thinking, None),
        };
        if let Some(thought) = thought.as_ref().filter(|thought| !thought.is_empty()) {
            self.reasoning += thought.len();
            out.push_back(Delta::Reasoning(thought.clone()));
        }
        if let Some(content) = content.as_ref().filter(|content| !content.is_empty()) {
            self.text += content.len();
            out.push_back(Delta::Text(content.clone()));
        }
        for call in calls.unwrap_or_default() {
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
        let gives_reason = line.done_reason.as_ref().is_some_and(|reason| !reason.is_empty());
        if line.done == Some(true) || gives_reason {
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
                model: line.model,
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

/// Decodes one document, which may span several lines.
struct Document {
    body: Vec<u8>,
    lines: Lines,
}

impl Decoder for Document {
    fn push(&mut self, chunk: &[u8], _: &mut Deltas) -> Result<(), Fault> {
        self.body.extend_from_slice(chunk);
        Ok(())
    }

    fn end(&mut self, out: &mut Deltas) -> Result<(), Fault> {
        if !self.body.is_empty() {
            let text = std::str::from_utf8(&self.body)
                .map_err(|_| Fault::new(FaultKind::BadWire, "the response is not UTF-8"))?;
            self.lines.message(text, out)?;
        }
        if matches!(out.back(), Some(Delta::End { .. })) {
            return Ok(());
        }
        Err(Fault::new(FaultKind::BadWire, "the response is not a complete completion"))
    }
}
