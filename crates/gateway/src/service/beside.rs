//! Requests beside dialogues, which targets of their own protocol answer: embeddings, and the counting of tokens.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::http::Request;
use axum::response::{IntoResponse as _, Response};
use formwork::providers::{Protocol as RawProtocol, Raw};
use formwork_http::with_trace;
use serde_json::json;

use super::asker::{Asker, Begun};
use super::job::{no_json, reserve, text};
use super::refused::refused;
use super::{Shared, passed};
use crate::ask::Ask;
use crate::document::Document;
use crate::pass::Pass;
use crate::problem::{Kind, Problem};
use crate::protocol::{Anthropic, Ollama, OpenAi, Protocol};
use crate::trace;

/// A resource that targets answer in their own protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beside {
    /// OpenAI's embeddings.
    Embeddings,
    /// Ollama's embeddings, and their older form.
    Embed(&'static str),
    /// The number of tokens of a request of Anthropic's. It is free, and estimated for targets of other protocols.
    CountTokens,
}

impl Beside {
    fn protocol(self) -> &'static dyn Protocol {
        match self {
            Self::Embeddings => &OpenAi,
            Self::Embed(_) => &Ollama::Chat,
            Self::CountTokens => &Anthropic,
        }
    }

    const fn targets(self) -> &'static [RawProtocol] {
        match self {
            Self::Embeddings => &[RawProtocol::OpenAi, RawProtocol::Responses],
            Self::Embed(_) => &[RawProtocol::Ollama],
            Self::CountTokens => &[RawProtocol::Anthropic],
        }
    }

    /// Returns the path at the target.
    const fn path(self) -> &'static str {
        match self {
            Self::Embeddings => "/embeddings",
            Self::Embed(path) => path,
            Self::CountTokens => "/v1/messages/count_tokens",
        }
    }
}

/// Answers a request with the response of the first target that has its protocol and answers.
pub(super) async fn answer(beside: Beside, shared: Arc<Shared>, request: Request<Body>) -> Response {
    let trace = trace::of(request.headers());
    with_trace(trace, work(beside, shared, request))
        .await
        .unwrap_or_else(|problem| refused(beside.protocol(), &problem))
}

async fn work(beside: Beside, shared: Arc<Shared>, request: Request<Body>) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let asker = Asker::of(&shared, &parts)?;
    let text = text(&shared, &parts.headers, body).await?;
    let document = Document::read(&text).map_err(|error| no_json(&error))?;
    let model = document.word(["model"]).map(str::to_owned);
    let model = model.ok_or_else(|| Problem::invalid("model", "missing field `model`"))?;
    let mut targets = asker.targets(&shared, &model)?;
    let has_protocol = |raw: &Raw| beside.targets().contains(&raw.protocol);
    let known = shared.engine.names.targets();
    targets.retain(|nth| known.get(*nth).and_then(|target| target.raw.as_ref()).is_some_and(has_protocol));
    let prompt = document.extent();
    let Some(first) = targets.first().copied() else {
        if beside == Beside::CountTokens {
            let counted = Json(json!({"input_tokens": prompt.estimate()}));
            return Ok(([("x-formwork-estimated", "input_tokens")], counted).into_response());
        }
        let name = beside.protocol().name();
        let message = format!("no target of this model is a server with the embeddings of {name}");
        return Err(Problem::invalid("model", message));
    };
    let begun = asker.begin(&shared, parts.uri.path(), None).await?;
    let Begun { client, mut options, mut record, turn, until, .. } = begun;
    // There are no tokens of an answer.
    let mut ask = Ask::plain(model);
    ask.sampling.max_tokens = Some(0);
    let is_free = beside == Beside::CountTokens;
    if !is_free {
        let held = (&client, &mut record);
        reserve(&shared, held, (&ask, prompt), &targets, &mut options.bounds, true).await?;
    }
    let unanswered = shared.engine.unanswered(&ask, prompt, 1);
    let pass = Pass {
        engine: &shared.engine,
        protocols: beside.targets(),
        path: beside.path(),
        headers: &parts.headers,
        until: until.into_std(),
        unanswered: if is_free { Default::default() } else { unanswered },
    };
    let write = |raw: &Raw, _| document.with_model(&raw.model, false).map_err(|error| no_json(&error));
    match pass.send(&mut targets, &mut record, false, write).await {
        Ok(Some(sent)) => {
            let target = targets.first().copied().unwrap_or(first);
            let price = if is_free { None } else { Some(prompt) };
            Ok(passed::response(None, sent, record, target, price, turn))
        }
        Ok(None) => Err(Problem::new(Kind::Internal, "there is no target")),
        Err((usage, problem)) => {
            record.call(targets.first().copied().unwrap_or(first), usage, Some(&problem)).await;
            Err(problem)
        }
    }
}
