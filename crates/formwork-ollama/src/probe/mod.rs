//! The state of a server and what it enforces, asked rather than believed.

mod canary;
mod show;

use formwork_core::{Capabilities, Enforcement, Fault, FaultKind, Usage};
use formwork_wire::http::{Method, Request, Uri};
use formwork_wire::{Bytes, Transport, Wire, quoted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::asked::RequestInfo;
use crate::capabilities::enforcing;
use crate::{Ollama, Think, fault, request};
use canary::Verdict;
use show::ModelInfo;

/// The most that is read of `/api/show`, in bytes: it has licences and templates in full.
const SHOW_BYTES: usize = 8 * 1024 * 1024;

/// The most that is read of other answers to a probe, in bytes: a few hundred tokens, each in a line of its own.
const ANSWER_BYTES: usize = 512 * 1024;

/// The state of a server and what it enforces, as found by [`Ollama::examine`]. The server does not say what is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Probed {
    /// The server's version: `0.17.4`.
    pub version: Option<String>,
    /// The model's family: `llama`.
    pub family: Option<String>,
    /// The format of its file: `gguf`, `safetensors`.
    pub format: Option<String>,
    /// Its size in words: `134.52M`.
    pub parameters: Option<String>,
    /// Its quantization: `Q4_K_M`.
    pub quantization: Option<String>,
    /// The most tokens that prompt and answer may have together by the model itself.
    pub context_tokens: Option<u32>,
    /// It can think before it answers.
    pub thinks: bool,
    /// It thinks unless it is told not to, and schemas are enforced if it is: `think` should be `false`.
    pub better_without_thinking: bool,
    /// It knows tools.
    pub tools: bool,
    /// The mode that was found to be enforced.
    pub enforced: Enforcement,
    /// Notes for people: what is not as it was promised, and what could not be told.
    pub notes: Vec<String>,
    /// The tokens of the probe's own calls.
    pub usage: Usage,
    /// The promises from now on.
    pub capabilities: Capabilities,
}

pub(crate) async fn examine(wire: &Ollama, transport: &dyn Transport) -> Result<Probed, Fault> {
    let version = version(wire, transport).await?;
    let shown = model(wire, transport).await?;
    let mut found = ProbeState::default();
    if shown.ignores_format() {
        found.enforced = Enforcement::None;
        found
            .notes
            .push("models of this format (MLX, safetensors) are not held to schemas by Ollama".to_owned());
    } else {
        enforced(wire, transport, shown.thinks(), &mut found).await?;
    }
    let context_tokens = shown.context_tokens();
    let mut capabilities = enforcing(wire.capabilities().clone(), found.enforced);
    capabilities.context_tokens = [wire.num_ctx, context_tokens].into_iter().flatten().min();
    Ok(Probed {
        version,
        context_tokens,
        thinks: shown.thinks(),
        better_without_thinking: found.better_without_thinking,
        tools: shown.can("tools"),
        family: shown.details.family,
        format: shown.details.format,
        parameters: shown.details.parameter_size,
        quantization: shown.details.quantization_level,
        enforced: found.enforced,
        notes: found.notes,
        usage: found.usage,
        capabilities,
    })
}

/// The findings of the calls so far.
struct ProbeState {
    enforced: Enforcement,
    better_without_thinking: bool,
    notes: Vec<String>,
    usage: Usage,
}

impl Default for ProbeState {
    fn default() -> Self {
        Self {
            enforced: Enforcement::Schema,
            better_without_thinking: false,
            notes: Vec::new(),
            usage: Usage::default(),
        }
    }
}

/// Tries what is enforced, the strictest first, with the setting of `think` that calls will have.
async fn enforced(
    wire: &Ollama,
    transport: &dyn Transport,
    thinks: bool,
    found: &mut ProbeState,
) -> Result<(), Fault> {
    // Where nothing is set, not thinking is tried first: then schemas hold from the first token.
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
                Verdict::Kept => {
                    found.better_without_thinking = is_open && !may_think;
                    if found.better_without_thinking {
                        let words =
                            "the model thinks by default, and is told not to: schemas are enforced then";
                        found.notes.push(words.to_owned());
                    }
                    return Ok(());
                }
                Verdict::Silent => {
                    found.notes.push(format!(
                        "the model said nothing, so it cannot be told whether {what} are enforced"
                    ));
                    return Ok(());
                }
                Verdict::Broken(words) => {
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

/// The facts that tell one server and model from another: what was found of them holds as long as these are the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// The server's version: `0.17.4`.
    pub version: String,
    /// The digest of the model's manifest.
    pub digest: String,
}

/// Returns what the server says it is; `None` if it does not say all of it.
pub(crate) async fn identity(wire: &Ollama, transport: &dyn Transport) -> Result<Option<Identity>, Fault> {
    let Some(version) = version(wire, transport).await? else { return Ok(None) };
    let mut request = Request::new(Bytes::new());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = Uri::from_static("/api/tags");
    let Ok(tags) = fetched(wire, transport, request, SHOW_BYTES).await? else { return Ok(None) };
    let latest = format!("{}:latest", wire.model);
    let is_meant = |model: &&Value| {
        let names = ["name", "model"].iter().filter_map(|key| model[*key].as_str());
        names.into_iter().any(|name| name == wire.model || name == latest)
    };
    let model = tags["models"].as_array().into_iter().flatten().find(is_meant);
    let digest = model.and_then(|model| model["digest"].as_str()).filter(|digest| !digest.is_empty());
    Ok(digest.map(|digest| Identity { version, digest: digest.to_owned() }))
}

/// The server's version; `None` if something stands before the server that does not pass this on.
async fn version(wire: &Ollama, transport: &dyn Transport) -> Result<Option<String>, Fault> {
    let mut request = Request::new(Bytes::new());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = Uri::from_static("/api/version");
    let document = match fetched(wire, transport, request, ANSWER_BYTES).await? {
        Ok(document) => document,
        Err(fault) if fault.kind == FaultKind::Auth => return Err(fault),
        Err(_) => return Ok(None),
    };
    Ok(document.get("version").and_then(Value::as_str).map(str::to_owned))
}

/// Asks the server for its facts about the model; nothing, if it does not know the question.
async fn model(wire: &Ollama, transport: &dyn Transport) -> Result<ModelInfo, Fault> {
    let request = request::send("/api/show", &json!({"model": wire.model}))?;
    match fetched(wire, transport, request, SHOW_BYTES).await? {
        Ok(document) => Ok(ModelInfo::of(document)),
        Err(fault) if matches!(fault.status, Some(405 | 501)) => Ok(ModelInfo::default()),
        // 404 is for a model that is not there, and for servers that only know how to chat.
        Err(fault) if fault.status == Some(404) && !fault.message.contains("ollama pull") => {
            Ok(ModelInfo::default())
        }
        Err(fault) => Err(fault),
    }
}

/// A document, or the fault that the server answers with.
async fn fetched(
    wire: &Ollama,
    transport: &dyn Transport,
    request: Request<Bytes>,
    most: usize,
) -> Result<Result<Value, Fault>, Fault> {
    let (head, body) = transport.send(request, None).await?.into_parts();
    if !head.status.is_success() {
        let body = body.beginning(ANSWER_BYTES).await;
        let asked = RequestInfo::nothing(&wire.model);
        return Ok(Err(fault::of_response(&asked, &head, &body, transport.now())));
    }
    let body = body.collect(most).await?;
    serde_json::from_slice(&body).map(Ok).map_err(|_| {
        let beginning = String::from_utf8_lossy(&body);
        Fault::new(
            FaultKind::BadWire,
            format!("this is no Ollama, check the base URL: {}", quoted(&beginning)),
        )
    })
}
