use formwork_core::{Delta, Fault, Finish, Original, ToolCall, Usage};
use formwork_wire::{Deltas, error_in};
use serde_json::Value;

use super::shape::{Part, Response};
use crate::API;
use crate::encode::SIGNATURE;
use crate::fault::{RequestInfo, within};

/// Reads `GenerateContentResponse`s (one in a document, many in a stream) and collects usage, model and finish reason for the
/// final delta.
pub(super) struct Reader {
    request: RequestInfo,
    finish: Option<Finish>,
    usage: Option<Usage>,
    model: Option<String>,
    /// Whether any document had a property of this API.
    is_answer: bool,
    /// Whether the model called the function whose arguments are the document.
    has_carrier: bool,
    /// The identifiers of the calls of the caller's functions.
    call_ids: Vec<String>,
    /// The parts so far, if there are functions of the caller.
    parts: Vec<Value>,
    /// Text beside the forced function call. It becomes the answer if the function is never called.
    aside: String,
    /// The number of bytes of text so far.
    written: usize,
    /// The number of bytes of text and thoughts so far.
    answered: usize,
}

impl Reader {
    pub(super) const fn new(request: RequestInfo) -> Self {
        Self {
            request,
            finish: None,
            usage: None,
            model: None,
            is_answer: false,
            has_carrier: false,
            call_ids: Vec::new(),
            parts: Vec::new(),
            aside: String::new(),
            written: 0,
            answered: 0,
        }
    }

    pub(super) const fn is_answer(&self) -> bool {
        self.is_answer
    }

    pub(super) const fn has_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Reads the next response. `whole` returns all of it, which only errors and dialogues with tools need.
    pub(super) fn take(
        &mut self,
        response: &mut Response<'_>,
        whole: impl Fn() -> Value,
        out: &mut Deltas,
    ) -> Result<(), Fault> {
        if response.may_be_error {
            let document = whole();
            if let Some(words) = error_in(&document) {
                return Err(within(&self.request, &document, &words, self.written > 0));
            }
        }
        self.is_answer |= response.is_answer;
        if let Some(model) = response.model.as_str().filter(|model| self.model.as_deref() != Some(model)) {
            self.model = Some(model.to_owned());
        }
        self.usage = response.usage.usage().or(self.usage);
        // The response to a blocked prompt has no candidates.
        if !response.feedback.block_reason.is_none() {
            self.finish = Some(Finish::Filtered);
        }
        let candidate = &mut response.candidates.first;
        for part in &mut candidate.content.parts {
            self.part(part, out);
        }
        if self.request.has_tools {
            let whole = whole();
            let parts = whole.pointer("/candidates/0/content/parts").and_then(Value::as_array);
            parts.into_iter().flatten().for_each(|part| self.keep(part));
        }
        match candidate.finish_reason.as_str() {
            None | Some("") => {}
            Some(reason) => self.finish = Some(finish(reason)),
        }
        Ok(())
    }

    fn part(&mut self, part: &mut Part<'_>, out: &mut Deltas) {
        if let Some(text) = part.text.take().into_text() {
            if part.thought.is_true() {
                self.answered += text.len();
                out.push_back(Delta::Reasoning(text));
            } else if self.request.tool.is_some() {
                self.aside.push_str(&text);
            } else {
                self.text(text, out);
            }
        }
        let Some(call) = part.function_call.value() else { return };
        match self.request.tool.as_deref() {
            Some(tool) if call["name"] == tool && !self.has_carrier => {
                self.has_carrier = true;
                let arguments = call.get("args").map_or_else(|| "{}".to_owned(), Value::to_string);
                self.text(arguments, out);
            }
            Some(_) => {}
            None => {
                let text = |name: &str| call[name].as_str().unwrap_or_default();
                self.call_ids.push(text("id").to_owned());
                let arguments = call.get("args").map_or_else(|| "{}".to_owned(), Value::to_string);
                self.answered += arguments.len();
                out.push_back(Delta::ToolCall(ToolCall::new(text("id"), text("name"), arguments)));
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

    fn text(&mut self, text: String, out: &mut Deltas) {
        if !text.is_empty() {
            self.answered += text.len();
            self.written += text.len();
            out.push_back(Delta::Text(text));
        }
    }

    /// Emits the final delta.
    pub(super) fn end(&mut self, out: &mut Deltas) {
        if !self.has_carrier {
            let aside = std::mem::take(&mut self.aside);
            self.text(aside, out);
        }
        let finish = match self.finish.unwrap_or(Finish::Stop) {
            Finish::Stop if !self.call_ids.is_empty() => Finish::ToolCall,
            finish => finish,
        };
        let is_signed = self.parts.iter().any(|part| part.get(SIGNATURE).is_some());
        if is_signed && !self.call_ids.is_empty() {
            let (parts, ids) = (std::mem::take(&mut self.parts), std::mem::take(&mut self.call_ids));
            out.push_back(Delta::Original(Box::new(Original::new(API, Value::Array(parts), ids))));
        }
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

/// Returns why the model stopped. An unknown reason counts as an ordinary end, and validation judges the text. The same holds
/// for a malformed or unexpected function call, which is a mistake of the model.
fn finish(reason: &str) -> Finish {
    match reason {
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
        _ => Finish::Stop,
    }
}
