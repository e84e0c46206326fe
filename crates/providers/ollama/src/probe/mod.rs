//! Determines the version of a server and which enforcement works, by requests to it.

mod canary;
mod show;

use formwork_core::{Enforcement, Fault, FaultKind, Usage};
use formwork_wire::http::{Request, Uri};
use formwork_wire::{Bytes, RequestInfo, Transport, bad_wire};
use serde_json::{Value, json};

use crate::capabilities::enforcing;
use crate::{Identity, Ollama, PROTOCOL, Probed, Think};
use canary::CanaryResult;
use show::ModelInfo;

/// The maximum size of a response of `/api/show` in bytes. It includes licences and templates.
const SHOW_BYTES: usize = 8 * 1024 * 1024;

/// The maximum size of other responses to a probe in bytes: a few hundred tokens, one per line.
const ANSWER_BYTES: usize = 512 * 1024;

impl Ollama {
    /// Determines the server's version and which enforcement works; [`probe`](formwork_wire::Wire::probe) returns only the
    /// capabilities.
    ///
    /// It sends a GET of `/api/version`, a POST of `/api/show`, and one call of at most 16 tokens that shows whether a
    /// schema is enforced. If it is not, a second call tests `format: "json"`. A model that can reason is tested first without
    /// reasoning and then with it (at most 512 tokens), so that the result applies to later calls. The calls load the model,
    /// which may take minutes. Models in a format without enforcement in Ollama (MLX, safetensors) are not called.
    ///
    /// # Errors
    /// A [`Fault`] if the server does not respond or does not have the model.
    pub async fn examine(&self, transport: &dyn Transport) -> Result<Probed, Fault> {
        let version = version(self, transport).await?;
        let info = model(self, transport).await?;
        let mut found = ProbeState::default();
        if info.ignores_format() {
            found.enforced = Enforcement::None;
            found.notes.push(
                "Ollama does not enforce schemas for models of this format (MLX, safetensors)".to_owned(),
            );
        } else {
            enforced(self, transport, info.thinks(), &mut found).await?;
        }
        let context_tokens = info.context_tokens();
        let mut capabilities = enforcing(self.capabilities.clone(), found.enforced);
        capabilities.context_tokens = [self.num_ctx, context_tokens].into_iter().flatten().min();
        Ok(Probed {
            version,
            context_tokens,
            thinks: info.thinks(),
            better_without_thinking: found.better_without_thinking,
            tools: info.can("tools"),
            family: info.details.family,
            format: info.details.format,
            parameters: info.details.parameter_size,
            quantization: info.details.quantization_level,
            enforced: found.enforced,
            notes: found.notes,
            usage: found.usage,
            capabilities,
        })
    }

    /// Returns the server's version and the model's digest, with two GET requests, or `None` if the server does not report
    /// both.
    ///
    /// # Errors
    /// A [`Fault`] if the server does not respond.
    pub async fn identity(&self, transport: &dyn Transport) -> Result<Option<Identity>, Fault> {
        let Some(version) = version(self, transport).await? else { return Ok(None) };
        let Ok(tags) = fetched(self, transport, get("/api/tags"), SHOW_BYTES).await? else { return Ok(None) };
        let latest = format!("{}:latest", self.model);
        let is_meant = |model: &&Value| {
            let names = ["name", "model"].iter().filter_map(|key| model[*key].as_str());
            names.into_iter().any(|name| name == self.model || name == latest)
        };
        let model = tags["models"].as_array().into_iter().flatten().find(is_meant);
        let digest = model.and_then(|model| model["digest"].as_str()).filter(|digest| !digest.is_empty());
        Ok(digest.map(|digest| Identity { version, digest: digest.to_owned() }))
    }
}

/// The results of the calls so far.
#[derive(Default)]
struct ProbeState {
    enforced: Enforcement,
    better_without_thinking: bool,
    notes: Vec<String>,
    usage: Usage,
}

/// Tests the kinds of enforcement, strictest first, with the `think` setting of later calls.
async fn enforced(
    wire: &Ollama,
    transport: &dyn Transport,
    thinks: bool,
    found: &mut ProbeState,
) -> Result<(), Fault> {
    // Without a setting, `think: false` is tried first, because schemas are then enforced from the first token.
    let is_open = thinks && wire.think.is_none();
    let quiet = is_open.then(|| wire.clone().with_think(false));
    let settings: Vec<&Ollama> = quiet.iter().chain([wire]).collect();
    for enforcement in [Enforcement::Schema, Enforcement::JsonObject] {
        found.enforced = enforcement;
        let what = if enforcement == Enforcement::Schema { "schemas" } else { "`format: \"json\"`" };
        for wire in &settings {
            let may_think = thinks && wire.think.as_ref().is_none_or(Think::is_on);
            let tokens = if may_think { canary::THOUGHTFUL_TOKENS } else { canary::TOKENS };
            match canary::tried(wire, transport, enforcement, tokens, &mut found.usage).await? {
                CanaryResult::Kept => {
                    found.better_without_thinking = is_open && !may_think;
                    if found.better_without_thinking {
                        let words = "the model thinks by default; `think = false` is set because schemas are enforced with it";
                        found.notes.push(words.to_owned());
                    }
                    return Ok(());
                }
                CanaryResult::Silent => {
                    found.notes.push(format!(
                        "the completion was empty, so it is unknown whether {what} are enforced"
                    ));
                    return Ok(());
                }
                CanaryResult::Broken(words) => {
                    let when = match (thinks, may_think) {
                        (true, true) => " when the model thinks",
                        (true, false) => " when the model does not think",
                        (false, _) => "",
                    };
                    found.notes.push(format!("{what} are not enforced{when}: {words}"));
                }
            }
        }
    }
    found.enforced = Enforcement::None;
    Ok(())
}

/// Returns the server's version, or `None` if a proxy does not forward the request.
async fn version(wire: &Ollama, transport: &dyn Transport) -> Result<Option<String>, Fault> {
    let document = match fetched(wire, transport, get("/api/version"), ANSWER_BYTES).await? {
        Ok(document) => document,
        Err(fault) if fault.kind == FaultKind::Auth => return Err(fault),
        Err(_) => return Ok(None),
    };
    Ok(document.get("version").and_then(Value::as_str).map(str::to_owned))
}

/// Returns the server's facts about the model, or empty ones if the server does not have the endpoint.
async fn model(wire: &Ollama, transport: &dyn Transport) -> Result<ModelInfo, Fault> {
    let request = formwork_wire::post("/api/show", &json!({"model": wire.model}), &Default::default())?;
    match fetched(wire, transport, request, SHOW_BYTES).await? {
        Ok(document) => Ok(ModelInfo::of(document)),
        Err(fault) if matches!(fault.status, Some(405 | 501)) => Ok(ModelInfo::default()),
        // Status 404 means that the model is missing, or that the server only supports the chat API.
        Err(fault) if fault.status == Some(404) && !fault.message.contains("ollama pull") => {
            Ok(ModelInfo::default())
        }
        Err(fault) => Err(fault),
    }
}

fn get(path: &'static str) -> Request<Bytes> {
    let mut request = Request::new(Bytes::new());
    *request.uri_mut() = Uri::from_static(path);
    request
}

/// Returns the document of a response, or the server's fault.
async fn fetched(
    wire: &Ollama,
    transport: &dyn Transport,
    request: Request<Bytes>,
    max_bytes: usize,
) -> Result<Result<Value, Fault>, Fault> {
    let (head, body) = transport.send(request, None).await?.into_parts();
    if !head.status.is_success() {
        let body = body.beginning(ANSWER_BYTES).await;
        let info = RequestInfo { protocol: PROTOCOL, model: wire.model.clone(), ..RequestInfo::default() };
        return Ok(Err(info.fault(&head, &body, transport.now())));
    }
    let body = body.collect(max_bytes).await?;
    serde_json::from_slice(&body)
        .map(Ok)
        .map_err(|_| bad_wire("the server is not Ollama, check the base URL", &body))
}
