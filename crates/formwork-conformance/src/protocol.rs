use formwork_core::{Finish, SharedProvider, Usage};
use formwork_wire::{Bytes, SharedTransport};
use http::Request;
use serde_json::Value;

use crate::Reply;

/// How servers of one kind talk, for a suite that plays the server.
pub trait Protocol: Send + Sync + 'static {
    /// Returns the name of its trials, where a provider has several protocols; `wire` by default.
    fn name(&self) -> &'static str {
        "wire"
    }

    /// The provider under test, over this transport.
    fn provider(&self, transport: SharedTransport) -> SharedProvider;

    /// The responses by which a server says this, one for each form that it has: streamed, in one piece. None, if the
    /// protocol cannot say it.
    fn say(&self, said: &ServerAnswer) -> Vec<Reply>;

    /// An error response.
    fn error(&self, status: u16, words: &str) -> Reply;

    /// A response that begins well, says this much, and then tells of an error; `None` if the protocol cannot.
    fn error_within(&self, said: &str, words: &str) -> Option<Reply>;

    /// How servers complain of a schema: statuses and words.
    fn schema_complaints(&self) -> Vec<(u16, &'static str)>;

    /// Returns what a request asks for.
    fn asked(&self, request: &Request<Bytes>) -> SentRequest;
}

/// The words of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAnswer {
    /// The text of the answer; the words of a refusal.
    pub text: String,
    /// The model's thoughts.
    pub reasoning: String,
    /// Why it stopped.
    pub finish: Finish,
    /// The tokens that it used up.
    pub usage: Usage,
}

impl ServerAnswer {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        let usage = Usage::new(11, 7);
        Self { text: text.into(), reasoning: String::new(), finish: Finish::Stop, usage }
    }
}

/// The contents of a request, in no protocol's words.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SentRequest {
    /// The schema that is to be enforced while decoding.
    pub schema: Option<Value>,
    /// The schema of the tool that is to be called.
    pub tool: Option<Value>,
    /// Any JSON object is to be answered.
    pub json_object: bool,
    /// As it stands in the request.
    pub temperature: Option<f64>,
    /// As it stands in the request.
    pub top_p: Option<f64>,
    /// As it stands in the request.
    pub seed: Option<u64>,
    /// The most tokens of the answer.
    pub max_tokens: Option<u64>,
    /// Roles and texts.
    pub messages: Vec<(String, String)>,
}
