use formwork_core::{Delta, End, Fault, Finish, ToolCall, Usage};
use serde_json::Value;

use crate::lenient::Leaf;
use crate::{Deltas, RequestInfo};

/// Collects the parts of a completion while a response is decoded, and emits its deltas.
///
/// If the document is the arguments of a tool that the model is forced to call ([`RequestInfo::carrier`]), text beside the call is
/// kept aside. It becomes the answer if the tool is never called.
///
/// ```
/// use formwork_core::{Call, Delta, End, Lowered, Message};
/// use formwork_wire::{Collector, Deltas, RequestInfo};
///
/// let call = Call::new(vec![Message::user("Hello.")], Lowered::default());
/// let (mut collector, mut out) = (Collector::new(RequestInfo::new("ask", "m-1", &call)), Deltas::new());
/// collector.text("Hello.".to_owned(), &mut out);
/// collector.end(&mut out);
/// assert_eq!(out[0], Delta::Text("Hello.".to_owned()));
/// assert!(matches!(&out[1], Delta::End(End { usage, .. }) if usage.estimated));
/// ```
#[derive(Debug, Default)]
pub struct Collector {
    /// The facts of the call.
    pub request: RequestInfo,
    finish: Option<Finish>,
    /// The reported usage (default: an estimate).
    pub usage: Option<Usage>,
    /// The name of the model in the response.
    pub model: Option<String>,
    /// Whether the tool whose arguments are the document was called.
    pub is_carried: bool,
    is_refused: bool,
    aside: String,
    /// The bytes of the output in deltas, and of the output that no delta has yet.
    answered: usize,
    held: usize,
    has_text: bool,
}

impl Collector {
    /// Returns a collector without any parts.
    pub const fn new(request: RequestInfo) -> Self {
        Self {
            request,
            finish: None,
            usage: None,
            model: None,
            is_carried: false,
            is_refused: false,
            aside: String::new(),
            answered: 0,
            held: 0,
            has_text: false,
        }
    }

    /// Records a reason why the model stopped; of several reasons the [worse](Finish::worse) one counts (default: none, an unknown
    /// reason).
    pub fn stopped(&mut self, reason: Finish) {
        self.finish = Some(match self.finish.take() {
            Some(before) => before.worse(reason),
            None => reason,
        });
    }

    /// Returns the reason why the model stopped, if the server has given one.
    pub const fn finish(&self) -> Option<&Finish> {
        self.finish.as_ref()
    }

    /// Returns whether there is text of the answer, or text kept aside.
    pub const fn has_text(&self) -> bool {
        self.has_text || !self.aside.is_empty()
    }

    /// Sets the name of the model, unless it is missing or empty.
    pub fn answered_by(&mut self, model: &Leaf<'_>) {
        let model = model.as_str().filter(|model| !model.is_empty());
        if let Some(model) = model.filter(|model| self.model.as_deref() != Some(*model)) {
            self.model = Some(model.to_owned());
        }
    }

    /// Adds text of the model: to the answer, or beside the forced tool call.
    pub fn text(&mut self, text: String, out: &mut Deltas) {
        if self.request.carrier.is_some() {
            self.aside(&text);
        } else {
            self.answer(text, out);
        }
    }

    /// Adds text that becomes the answer if there is no other.
    pub fn aside(&mut self, text: &str) {
        self.aside.push_str(text);
    }

    /// Adds text of the answer.
    pub fn answer(&mut self, text: String, out: &mut Deltas) {
        if !text.is_empty() {
            self.answered += text.len();
            self.has_text = true;
            out.push_back(Delta::Text(text));
        }
    }

    /// Adds reasoning.
    pub fn thought(&mut self, text: String, out: &mut Deltas) {
        if !text.is_empty() {
            self.answered += text.len();
            out.push_back(Delta::Reasoning(text));
        }
    }

    /// Adds text of a refusal. The finish reason is then [`Finish::Refused`].
    pub fn refusal(&mut self, text: String, out: &mut Deltas) {
        self.is_refused |= !text.is_empty();
        self.answer(text, out);
    }

    /// Adds a whole call of a tool of the caller, whose arguments may have been [held](Self::hold).
    pub fn call(&mut self, call: ToolCall, out: &mut Deltas) {
        self.held = self.held.saturating_sub(call.arguments.len());
        self.answered += call.arguments.len();
        out.push_back(Delta::ToolCall(call));
    }

    /// Counts bytes of output that no delta has yet, such as a piece of the arguments of a call: the provider charges for them, even if the
    /// answer breaks off.
    pub const fn hold(&mut self, bytes: usize) {
        self.held += bytes;
    }

    /// Returns the tokens so far, for [`Messages::usage`](crate::Messages::usage): those that the server has reported, and at least an
    /// estimate while output is [held](Self::hold). `None` if the deltas have all of it, and nothing is reported.
    pub fn so_far(&self) -> Option<Usage> {
        let estimate = || self.request.estimate(self.answered + self.held);
        match self.held {
            0 => self.usage,
            _ => Some(self.usage.unwrap_or_default().or_more(estimate())),
        }
    }

    /// Returns the fault for an error inside the response.
    pub fn broken(&self, document: &Value) -> Fault {
        self.request.fault_within(document, self.has_text)
    }

    /// Replaces the text kept aside by a completion that the server reports as an error. Text received before the error is the
    /// beginning of the same completion.
    pub fn rescue(&mut self, text: String, finish: Finish, out: &mut Deltas) {
        self.aside.clear();
        if !self.has_text {
            self.answer(text, out);
        }
        self.stopped(finish);
        self.end(out);
    }

    /// Emits the final delta.
    pub fn end(&mut self, out: &mut Deltas) {
        if !self.has_text && !self.is_carried && !self.is_refused {
            let aside = std::mem::take(&mut self.aside);
            self.answer(aside, out);
        }
        let finish = match self.finish.take().unwrap_or_else(|| Finish::other("")) {
            _ if self.is_refused => Finish::Refused,
            // The forced call is the completion, not a call for the caller to run.
            Finish::ToolCall if self.is_carried => Finish::Stop,
            finish => finish,
        };
        let usage = self.usage.unwrap_or_else(|| self.request.estimate(self.answered + self.held));
        let model = self.model.take();
        out.push_back(Delta::End(End::new(finish, usage).with_model(model)));
    }
}
