use formwork_core::{Delta, Fault, FaultKind, Finish, ToolCall, Usage};
use formwork_wire::{Deltas, error_in};
use serde_json::{Value, json};

use super::content::{calls, content_of, reasoning};
use super::shape::{Choice, Choices, Message, Shape};
use super::usage::usage_in;
use crate::fault::{RequestInfo, fault_within, rescue};

/// Whether a document is the whole response or a chunk of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// A chunk of a stream.
    Chunk,
    /// The whole response.
    Document,
}

/// Reads documents and chunks of Chat Completions, and collects usage, model and finish reason for the final delta.
pub(super) struct Reader {
    request: RequestInfo,
    finish: Option<Finish>,
    usage: Option<Usage>,
    model: Option<String>,
    has_choice: bool,
    refused: bool,
    /// The index of the tool call whose arguments are the document.
    carrier: Option<u64>,
    /// The calls of other tools so far, by their indices.
    calls: Vec<(u64, ToolCall)>,
    /// Text beside the forced tool call. It becomes the answer if the tool is never called.
    aside: String,
    /// The number of bytes of text and reasoning so far.
    answered: usize,
    has_text: bool,
}

impl Reader {
    pub(super) const fn new(request: RequestInfo) -> Self {
        Self {
            request,
            finish: None,
            usage: None,
            model: None,
            has_choice: false,
            refused: false,
            carrier: None,
            calls: Vec::new(),
            aside: String::new(),
            answered: 0,
            has_text: false,
        }
    }

    pub(super) const fn has_choice(&self) -> bool {
        self.has_choice
    }

    pub(super) const fn has_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Reads one document and returns whether it ended the response. `text` is its complete JSON text.
    pub(super) fn take(
        &mut self,
        document: &mut Shape<'_>,
        text: &[u8],
        framing: Framing,
        out: &mut Deltas,
    ) -> Result<bool, Fault> {
        if document.may_be_error {
            let whole: Value = serde_json::from_slice(text).unwrap_or_default();
            if let Some(words) = error_in(&whole) {
                return self.broken(&whole, &words, out);
            }
        }
        if let Some(model) = document.model.as_str().filter(|model| !model.is_empty())
            && self.model.as_deref() != Some(model)
        {
            self.model = Some(model.to_owned());
        }
        self.usage = usage_in(document).or(self.usage);
        let Choices { choice, is_found: true } = &mut document.choices else { return Ok(false) };
        self.has_choice = true;
        if let Some(error) = choice.error.value().filter(|error| error.is_object()) {
            let document = json!({"error": error});
            let words = error_in(&document).unwrap_or_default();
            return self.broken(&document, &words, out);
        }
        self.choice(choice, framing, out);
        match choice.finish_reason.as_str() {
            None | Some("") => {}
            Some(reason) => self.finish = Some(finish(reason)?),
        }
        Ok(false)
    }

    fn choice(&mut self, choice: &mut Choice<'_>, framing: Framing, out: &mut Deltas) {
        let Choice { delta, message, itself, .. } = choice;
        let (delta, message) = (delta.as_mut(), message.as_mut());
        // Some servers repeat the whole text as `message` beside or after the last `delta`.
        let message = match framing {
            Framing::Chunk => delta.or_else(|| message.filter(|_| !self.has_text)),
            Framing::Document => message.or(delta),
        };
        let message = message.unwrap_or_else(|| itself.get_or_insert_default());
        let mut thoughts = reasoning(message);
        let mut refusal = message.refusal.take().into_text().unwrap_or_default();
        let content = if message.content.is_none() { &mut message.text } else { &mut message.content };
        let content = content_of(content.take(), &mut thoughts, &mut refusal);
        if !thoughts.is_empty() {
            self.answered += thoughts.len();
            out.push_back(Delta::Reasoning(thoughts));
        }
        if self.request.tool.is_some() {
            self.aside.push_str(&content);
        } else {
            self.text(content, out);
        }
        self.refused |= !refusal.is_empty();
        self.text(refusal, out);
        self.arguments(message, out);
    }

    /// Emits the arguments of the forced tool call as text. Collects the calls of other tools.
    fn arguments(&mut self, message: &Message<'_>, out: &mut Deltas) {
        let Some(tool) = self.request.tool.clone() else {
            for piece in calls(message) {
                self.answered += piece.arguments.len();
                match self.calls.iter_mut().find(|(index, _)| *index == piece.index) {
                    Some((_, call)) => call.arguments.push_str(&piece.arguments),
                    None => {
                        let (id, name) = (piece.id.unwrap_or_default(), piece.name.unwrap_or_default());
                        self.calls.push((piece.index, ToolCall::new(id, name, piece.arguments)));
                    }
                }
            }
            return;
        };
        for call in calls(message) {
            let is_carrier = match self.carrier {
                Some(carrier) => carrier == call.index,
                None => call.name.is_none_or(|name| name == tool),
            };
            if is_carrier {
                self.carrier = Some(call.index);
                self.text(call.arguments, out);
            }
        }
    }

    fn text(&mut self, text: String, out: &mut Deltas) {
        if !text.is_empty() {
            self.answered += text.len();
            self.has_text = true;
            out.push_back(Delta::Text(text));
        }
    }

    /// Reads an error: the end of the response if it contains the model's completion ([`rescue`]), a fault otherwise.
    fn broken(&mut self, document: &Value, words: &str, out: &mut Deltas) -> Result<bool, Fault> {
        let Some(rescued) = rescue(&self.request, document) else {
            return Err(fault_within(&self.request, document, words));
        };
        self.finish = Some(rescued.finish);
        self.aside.clear();
        // Text received before the error is the beginning of the same completion.
        if !self.has_text {
            self.text(rescued.text, out);
        }
        self.end(out);
        Ok(true)
    }

    /// Emits the final delta.
    pub(super) fn end(&mut self, out: &mut Deltas) {
        if self.carrier.is_none() && !self.refused {
            let aside = std::mem::take(&mut self.aside);
            self.text(aside, out);
        }
        let finish = match self.finish {
            _ if self.refused => Finish::Refused,
            // The forced call is the completion, not a call for the caller to run.
            Some(Finish::ToolCall) if self.carrier.is_some() => Finish::Stop,
            finish => finish.unwrap_or(Finish::Stop),
        };
        out.extend(self.calls.drain(..).map(|(_, call)| Delta::ToolCall(call)));
        let usage = self.usage.unwrap_or_else(|| self.request.estimate(self.answered));
        out.push_back(Delta::End {
            finish,
            usage,
            closed_at: None,
            restrained: false,
            model: self.model.take(),
        });
    }
}

/// Returns why the model stopped. An unknown reason counts as an ordinary end, and validation judges the text.
fn finish(reason: &str) -> Result<Finish, Fault> {
    Ok(match reason.to_ascii_lowercase().as_str() {
        "length" | "max_tokens" | "model_length" => Finish::Length,
        "content_filter" | "safety" => Finish::Filtered,
        "refusal" => Finish::Refused,
        "tool_calls" | "tool_call" | "function_call" => Finish::ToolCall,
        // Sent by OpenRouter and Mistral; by vLLM and SGLang; by DeepSeek.
        "error" | "abort" | "insufficient_system_resource" => {
            let message = format!("the server ended the response early with `finish_reason` `{reason}`");
            return Err(Fault::new(FaultKind::Overloaded, message));
        }
        _ => Finish::Stop,
    })
}
