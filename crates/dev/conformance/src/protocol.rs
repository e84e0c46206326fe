use formwork_core::{Finish, SharedProvider, Usage};
use formwork_wire::{Bytes, SharedTransport};
use http::Request;
use serde_json::Value;

use crate::{Reply, Trouble};

/// The protocol of one kind of server, for a suite that plays the server.
///
/// ```
/// use formwork_conformance::{Protocol, Reply, SentRequest, ServerAnswer};
/// use formwork_core::SharedProvider;
/// use formwork_wire::{Bytes, SharedTransport, http::Request};
///
/// /// A server whose response is the text of the answer.
/// struct Plain(fn(SharedTransport) -> SharedProvider);
///
/// impl Protocol for Plain {
///     fn provider(&self, transport: SharedTransport) -> SharedProvider {
///         (self.0)(transport)
///     }
///     fn say(&self, answer: &ServerAnswer) -> Vec<Reply> {
///         vec![Reply::new(200, "text/plain", answer.text.as_str())]
///     }
///     fn error(&self, status: u16, message: &str) -> Reply {
///         Reply::new(status, "text/plain", message)
///     }
///     fn error_within(&self, _text: &str, _message: &str) -> Option<Reply> {
///         None
///     }
///     fn schema_complaints(&self) -> Vec<(u16, &'static str)> {
///         vec![(400, "the schema is invalid")]
///     }
///     fn read_request(&self, request: &Request<Bytes>) -> SentRequest {
///         let text = String::from_utf8_lossy(request.body()).into_owned();
///         SentRequest { messages: vec![("user".to_owned(), text)], ..SentRequest::default() }
///     }
/// }
/// ```
pub trait Protocol: Send + Sync + 'static {
    /// Returns the prefix of the names of its tests, which distinguishes several protocols of one provider (default:
    /// `wire`).
    fn name(&self) -> &'static str {
        "wire"
    }

    /// Returns the provider under test, over this transport.
    fn provider(&self, transport: SharedTransport) -> SharedProvider;

    /// Returns the server's responses that carry `answer`, one for each form (streamed, in one piece); none if the protocol
    /// cannot express the answer.
    fn say(&self, answer: &ServerAnswer) -> Vec<Reply>;

    /// Returns an error response with this message.
    fn error(&self, status: u16, message: &str) -> Reply;

    /// Returns a response that begins with this text and then reports an error with this message; `None` if the protocol
    /// cannot express that.
    fn error_within(&self, text: &str, message: &str) -> Option<Reply>;

    /// Returns the responses of servers that reject a schema: statuses and messages.
    fn schema_complaints(&self) -> Vec<(u16, &'static str)>;

    /// Returns the server's responses in a [`Trouble`], one for each form; none if the protocol cannot express it.
    ///
    /// By default these are [`error`](Self::error) with the usual statuses, [`error_within`](Self::error_within), and what
    /// [`say`](Self::say) gives for an answer that was filtered, is empty, or only has reasoning. A protocol whose server has
    /// other statuses or a form for tool calls returns those, with [`Trouble::text`] as the message or arguments.
    fn trouble(&self, trouble: Trouble) -> Vec<Reply> {
        let text = trouble.text();
        match trouble {
            Trouble::WrongKey => vec![self.error(401, text)],
            Trouble::NoCredit => vec![self.error(402, text)],
            Trouble::UnknownModel => vec![self.error(404, text)],
            Trouble::Overloaded => vec![self.error(503, text), self.error(529, text)],
            Trouble::SafetyBlock => {
                self.say(&ServerAnswer { finish: Finish::Filtered, ..ServerAnswer::new("") })
            }
            Trouble::OnlyReasoning => {
                let reasoning = text.to_owned();
                self.say(&ServerAnswer { finish: Finish::Length, reasoning, ..ServerAnswer::new("") })
            }
            Trouble::Empty => self.say(&ServerAnswer::new("")),
            Trouble::ErrorWithin => self.error_within("{\"zulu\": ", text).into_iter().collect(),
            Trouble::CutToolCall | Trouble::DoubleEncoded => Vec::new(),
        }
    }

    /// Returns the contents of a request.
    fn read_request(&self, request: &Request<Bytes>) -> SentRequest;
}

/// The completion that a simulated server sends, independent of the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAnswer {
    /// The text of the answer or of the refusal.
    pub text: String,
    /// The model's reasoning.
    pub reasoning: String,
    /// The reason why the model stopped.
    pub finish: Finish,
    /// The tokens of the call.
    pub usage: Usage,
}

impl ServerAnswer {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        let usage = Usage::new(11, 7);
        Self { text: text.into(), reasoning: String::new(), finish: Finish::Stop, usage }
    }
}

/// The contents of a request, independent of the protocol.
///
/// ```
/// use formwork_conformance::SentRequest;
/// use serde_json::Value;
///
/// fn sent(body: &Value) -> SentRequest {
///     SentRequest {
///         schema: body.get("format").cloned(),
///         temperature: body["temperature"].as_f64(),
///         max_tokens: body["max_tokens"].as_u64(),
///         ..SentRequest::default()
///     }
/// }
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SentRequest {
    /// The schema to enforce while decoding.
    pub schema: Option<Value>,
    /// The schema of the tool that the model has to call.
    pub tool: Option<Value>,
    /// Whether any JSON object is requested.
    pub json_object: bool,
    /// The temperature.
    pub temperature: Option<f64>,
    /// The nucleus threshold.
    pub top_p: Option<f64>,
    /// The seed.
    pub seed: Option<u64>,
    /// The frequency penalty.
    pub frequency_penalty: Option<f64>,
    /// The maximum number of tokens of the answer.
    pub max_tokens: Option<u64>,
    /// The messages, each with role and text.
    pub messages: Vec<(String, String)>,
}
