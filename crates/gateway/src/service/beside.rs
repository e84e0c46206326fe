//! Requests beside dialogues, which targets of their own protocol answer: embeddings, and the counting of tokens.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::http::Request;
use axum::response::{IntoResponse as _, Response};
use formwork::providers::{Protocol as RawProtocol, Raw};
use serde_json::json;

use super::asker::{Asker, answered};
use super::job::no_json;
use super::reserve::Cost;
use super::{Shared, passed};
use crate::ask::Ask;
use crate::pass::Pass;
use crate::problem::{Kind, Problem};
use crate::protocol::{ANTHROPIC, OLLAMA, OPENAI, Protocol};

/// A resource that targets answer in their own protocol.
#[derive(Clone, Copy)]
pub(super) struct Beside {
    protocol: &'static Protocol,
    /// The names of the members that its requests have.
    fields: &'static [&'static str],
    /// The protocols of the targets that answer.
    targets: &'static [RawProtocol],
    /// The path at the target.
    path: &'static str,
    /// Whether an answer costs nothing. Then it is estimated for targets of other protocols.
    is_free: bool,
}

/// OpenAI's embeddings.
pub(super) const EMBEDDINGS: Beside = Beside {
    protocol: &OPENAI,
    fields: &["dimensions", "encoding_format", "input", "model", "user"],
    targets: &[RawProtocol::OpenAi, RawProtocol::Responses],
    path: "/embeddings",
    is_free: false,
};

/// The number of tokens of a request of Anthropic's.
pub(super) const COUNT_TOKENS: Beside = Beside {
    protocol: &ANTHROPIC,
    fields: ANTHROPIC.fields,
    targets: &[RawProtocol::Anthropic],
    path: "/v1/messages/count_tokens",
    is_free: true,
};

/// Returns Ollama's embeddings, or their older form.
pub(super) const fn embed(path: &'static str) -> Beside {
    let fields = &["dimensions", "input", "keep_alive", "model", "options", "prompt", "truncate"];
    Beside { protocol: &OLLAMA, fields, targets: &[RawProtocol::Ollama], path, is_free: false }
}

/// Answers a request with the response of the first target that has its protocol and answers.
pub(super) fn answer(
    beside: Beside,
    shared: Arc<Shared>,
    request: Request<Body>,
) -> impl Future<Output = Response> + Send {
    answered(beside.protocol, Box::pin(work(beside, shared, request)))
}

async fn work(beside: Beside, shared: Arc<Shared>, request: Request<Body>) -> Result<Response, Problem> {
    let (mut asker, headers, text) = Asker::receive(shared, request).await?;
    let (document, model) = asker.read(&text)?;
    document.check_case(beside.fields)?;
    let has_protocol = |raw: &Raw| beside.targets.contains(&raw.protocol);
    let known = asker.shared.engine.names.targets();
    asker
        .targets
        .retain(|nth| known.get(*nth).and_then(|target| target.raw.as_ref()).is_some_and(has_protocol));
    let prompt = document.extent();
    if asker.targets.is_empty() {
        if beside.is_free {
            let counted = Json(json!({"input_tokens": prompt.estimate()}));
            return Ok(([("x-formwork-estimated", "input_tokens")], counted).into_response());
        }
        let name = beside.protocol.name;
        let message = format!("no target of this model is a server with the embeddings of {name}");
        return Err(Problem::invalid("model", message));
    }
    // There are no tokens of an answer.
    let mut ask = Ask::plain(model);
    ask.sampling.max_tokens = Some(0);
    let cost = (!beside.is_free).then_some(Cost { ask: &ask, prompt, given: None, is_run: false });
    let begun = asker.begin(None, cost).await?;
    let unanswered = begun.shared.engine.unanswered(&ask, prompt, 1);
    let pass = Pass {
        protocols: beside.targets,
        path: beside.path,
        headers: &headers,
        until: begun.until.into_std(),
        wish: begun.shared.engine.wish(begun.options.bounds, begun.until),
        unanswered: if beside.is_free { Default::default() } else { unanswered },
        adds_usage: false,
        write: |raw: &Raw, _| document.with_model(&raw.model, false).map_err(|error| no_json(&error)),
    };
    let passed = passed::answer(begun, (None, None), (!beside.is_free).then_some(prompt), pass).await;
    passed.unwrap_or_else(|_| Err(Problem::new(Kind::Internal, "there is no target")))
}
