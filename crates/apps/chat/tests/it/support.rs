//! Models and servers with scripted answers.

use std::sync::Arc;

use formwork_chat::{ChatBuilder, JsonModeChatClient, StructuredAnswerLite};
use formwork_core::{Capabilities, Enforcement};
use formwork_http::HttpTransport;
use formwork_testkit::server::{Reply, Server};
use formwork_testkit::{Reply as Said, Scripted};
use formwork_wire::Http;
use serde_json::{Value, json};

/// An answer that satisfies the contract.
pub(crate) fn good() -> Value {
    json!({
        "task": {"type": "qa", "user_intent": "learn what JSON is"},
        "answer": {"text": "A text format for data."},
        "quality": {"confidence": 0.95, "assumptions": [], "risks": ["none known"]},
        "debug": {"schema_version": "1.0", "model": "m"},
    })
}

/// A model in JSON mode with these answers.
pub(crate) fn model(answers: impl IntoIterator<Item = impl Into<Said>>) -> Arc<Scripted> {
    let capabilities = Capabilities::new(Enforcement::Schema)
        .with_dialect("openai")
        .with_dialect("json-object")
        .with_temperature()
        .with_seed()
        .with_late_system();
    Arc::new(Scripted::new(answers).with_capabilities(capabilities))
}

pub(crate) fn client(model: &Arc<Scripted>) -> ChatBuilder<StructuredAnswerLite> {
    JsonModeChatClient::builder().with_target(Arc::clone(model))
}

/// An OpenAI-compatible server with these answers.
pub(crate) fn server(answers: &[&str]) -> Server {
    let replies = answers.iter().map(|text| {
        let message = json!({"role": "assistant", "content": text});
        let usage = json!({"prompt_tokens": 9, "completion_tokens": 5});
        Reply::json(
            json!({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}).to_string(),
        )
    });
    Server::start(replies.collect::<Vec<_>>()).unwrap()
}

/// A client of that server.
pub(crate) fn client_of(server: &Server) -> ChatBuilder<StructuredAnswerLite> {
    let config = json!({"model": "gpt-4o", "stream": false, "api_key_env": "", "base_url": format!("{}/v1", server.url())});
    let config: formwork_openai::OpenAiConfig = serde_json::from_value(config).unwrap();
    let resolved = config.resolve().unwrap();
    let transport = HttpTransport::new(&resolved.base_url).unwrap();
    JsonModeChatClient::builder().with_target(Arc::new(Http::new(resolved.wire, Arc::new(transport))))
}

/// Returns the bodies of the server's requests.
pub(crate) fn bodies(server: &Server) -> Vec<Value> {
    server.received().iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
}
