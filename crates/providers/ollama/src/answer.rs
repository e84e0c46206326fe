//! Decodes responses into deltas.

use formwork_core::{Delta, End, Fault, FaultKind, Finish, ToolCall, Usage};
use formwork_wire::http::response::Parts;
use formwork_wire::lenient::{Count, Flag, Leaf, List, Object};
use formwork_wire::{
    CallShape, Decoder, Deltas, FunctionShape, Messages, Ndjson, Reader, RequestInfo, TokenShape, bad_wire,
    lenient, media_type,
};
use serde::Deserialize;

/// Returns the decoder of a successful response: lines, or one document if no stream was requested.
pub(crate) fn decoder(request: RequestInfo, stream: bool, head: &Parts) -> Box<dyn Decoder> {
    let is_lines = media_type(head).is_some_and(|media| media.eq_ignore_ascii_case("application/x-ndjson"));
    formwork_wire::decoder::<Ndjson>(Lines::new(request), stream || is_lines)
}

/// A line of a streamed `/api/chat` or `/api/generate` response, or the whole response without streaming (`api/types.go`). No
/// property is required: some versions omit properties that are zero, and proxies omit more.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Line<'a> {
    #[serde(borrow)]
    error: Leaf<'a>,
    model: Leaf<'a>,
    message: Object<ResponseMessage<'a>>,
    response: Leaf<'a>,
    thinking: Leaf<'a>,
    logprobs: List<Object<TokenShape>>,
    done: Flag,
    done_reason: Leaf<'a>,
    prompt_eval_count: Count,
    eval_count: Count,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponseMessage<'a> {
    #[serde(borrow)]
    content: Leaf<'a>,
    thinking: Leaf<'a>,
    tool_calls: List<Object<CallShape<'a>>>,
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
            Some("stop") => Finish::Stop,
            reason => Finish::other(reason.unwrap_or_default()),
        })
    }

    /// Returns the counted tokens, or an estimate. Ollama omits a count of zero, and with a schema it counts only the
    /// second of two runs, the one without reasoning.
    fn usage(&self, line: &Line<'_>) -> Usage {
        let (Count(input), Count(output)) = (line.prompt_eval_count, line.eval_count);
        let guess = |bytes: usize| bytes.div_ceil(4) as u64;
        let uncounted = if self.request.has_schema() || output.is_none() { guess(self.reasoning) } else { 0 };
        let answered = output.unwrap_or_else(|| guess(self.text)).saturating_add(uncounted);
        Usage::new(input.unwrap_or(self.request.input_tokens), answered)
            .with_reasoning(uncounted)
            .with_estimated(input.is_none() || output.is_none() || uncounted > 0)
    }
}

impl Messages for Lines {
    fn message(&mut self, text: &str, out: &mut Deltas) -> Result<(), Fault> {
        let mut line: Line<'_> = lenient::from_str(text)
            .map_err(|_| bad_wire("the response is not one of Ollama's API", text.as_bytes()))?;
        if !line.error.is_none() {
            let document = serde_json::from_str(text).unwrap_or_default();
            return Err(self.request.fault_within(&document, self.text > 0));
        }
        self.has_line = true;
        let message = line.message.0.take();
        self.has_answer |= message.is_some() || !line.response.is_none() || !line.thinking.is_none();
        let (content, thought, calls) = match message {
            Some(message) => (message.content, message.thinking, message.tool_calls.0.unwrap_or_default()),
            None => (line.response.take(), line.thinking.take(), Vec::new()),
        };
        if let Some(thought) = thought.into_text() {
            self.reasoning += thought.len();
            out.push_back(Delta::Reasoning(thought));
        }
        if let Some(content) = content.into_text() {
            self.text += content.len();
            out.push_back(Delta::Text(content));
        }
        TokenShape::push(line.logprobs.0.take(), out);
        for call in calls {
            self.calls_tools = true;
            let CallShape { id, function } = call.0.unwrap_or_default();
            let FunctionShape { name, arguments } = function.0.unwrap_or_default();
            let arguments = if arguments.is_none() { "{}".to_owned() } else { arguments.into_json() };
            // The arguments count for an estimate of the tokens.
            self.text += arguments.len();
            let [id, name] = [id, name].map(|leaf| leaf.into_text().unwrap_or_default());
            out.push_back(Delta::ToolCall(ToolCall::new(id, name, arguments)));
        }
        // Some last lines have `done_reason` and no `done` (ollama/ollama#10015).
        let gives_reason = line.done_reason.as_str().is_some_and(|reason| !reason.is_empty());
        if line.done.0 || gives_reason {
            let Some(finish) = self.finish(&line) else {
                return Err(Fault::new(
                    FaultKind::BadRequest,
                    "the prompt is empty, so the model was only loaded: send a message",
                ));
            };
            let end = End::new(finish, self.usage(&line)).with_model(line.model.into_text());
            out.push_back(Delta::End(end));
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

impl Reader for Lines {
    fn document(&mut self, body: &[u8], out: &mut Deltas) -> Result<(), Fault> {
        if !body.is_empty() {
            let text = std::str::from_utf8(body)
                .map_err(|_| Fault::new(FaultKind::BadWire, "the response is not UTF-8"))?;
            self.message(text, out)?;
        }
        if matches!(out.back(), Some(Delta::End(_))) {
            return Ok(());
        }
        Err(Fault::new(FaultKind::BadWire, "the response is not a complete completion"))
    }
}
