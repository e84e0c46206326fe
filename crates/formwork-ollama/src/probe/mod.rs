//! What a server is and what it enforces, asked rather than believed.

mod canary;
mod show;

use formwork_core::{Capabilities, Enforcement, Fault, FaultKind, Usage};
use formwork_wire::http::{Method, Request, Uri};
use formwork_wire::{Bytes, Transport, Wire, quoted};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::answer::Asked;
use crate::ollama::enforcing;
use crate::{Ollama, Think, fault, request};
use canary::Verdict;
use show::Shown;

/// The most that is read of `/api/show`, in bytes: it has licences and templates in full.
const SHOW_BYTES: usize = 8 * 1024 * 1024;

/// The most that is read of other answers to a probe, in bytes.
const ANSWER_BYTES: usize = 64 * 1024;

/// What a server is and what it enforces, as found by [`Ollama::examine`]. What is `None` the server does not say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
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
    /// What was found to be enforced.
    pub enforced: Enforcement,
    /// What people should know: what is not as it was promised, and what could not be told.
    pub notes: Vec<String>,
    /// What the probe's own calls cost.
    pub usage: Usage,
    /// What is promised from now on.
    pub capabilities: Capabilities,
}

pub(crate) async fn examine(wire: &Ollama, transport: &dyn Transport) -> Result<Probed, Fault> {
    let version = version(wire, transport).await?;
    let shown = model(wire, transport).await?;
    let mut found = Found::default();
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

/// What the calls have shown so far.
struct Found {
    enforced: Enforcement,
    better_without_thinking: bool,
    notes: Vec<String>,
    usage: Usage,
}

impl Default for Found {
    fn default() -> Self {
        Self {
            enforced: Enforcement::Schema,
            better_without_thinking: false,
            notes: Vec::new(),
            usage: Usage::default(),
        }
    }
}

/// Tries what is enforced, the strictest first.
async fn enforced(
    wire: &Ollama,
    transport: &dyn Transport,
    thinks: bool,
    found: &mut Found,
) -> Result<(), Fault> {
    if thinks && wire.think.as_ref().is_some_and(Think::is_on) {
        let words = "the model thinks first, so a short call cannot tell whether schemas are enforced";
        found.notes.push(words.to_owned());
        return Ok(());
    }
    let is_open = thinks && wire.think.is_none();
    // The answer has to fit into a few tokens, which thoughts would use up.
    let quiet = if is_open { wire.clone().with_think(false) } else { wire.clone() };
    for enforcement in [Enforcement::Schema, Enforcement::JsonObject] {
        found.enforced = enforcement;
        let what = if enforcement == Enforcement::Schema { "schemas" } else { "`format: \"json\"`" };
        match canary::tried(&quiet, transport, enforcement, &mut found.usage).await? {
            Verdict::Kept => {
                found.better_without_thinking = is_open;
                if is_open {
                    found.notes.push(
                        "the model thinks by default: set `think` = false, schemas are enforced then"
                            .to_owned(),
                    );
                }
                return Ok(());
            }
            Verdict::Silent => {
                found.notes.push(format!(
                    "the model said nothing, so it cannot be told whether {what} are enforced"
                ));
                return Ok(());
            }
            // Calls do not say `think: false`, and Ollama may well enforce the schema after the thoughts.
            Verdict::Broken(_) if is_open => {
                let words = "schemas are enforced only after the model has thought, if at all: leave `think` as it is";
                found.notes.push(words.to_owned());
                return Ok(());
            }
            Verdict::Broken(words) => found.notes.push(format!("{what} are not enforced: {words}")),
        }
    }
    found.enforced = Enforcement::None;
    Ok(())
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

/// What the server says of the model; nothing, if it does not know the question.
async fn model(wire: &Ollama, transport: &dyn Transport) -> Result<Shown, Fault> {
    let request = request::send("/api/show", &json!({"model": wire.model}))?;
    match fetched(wire, transport, request, SHOW_BYTES).await? {
        Ok(document) => Ok(Shown::of(document)),
        Err(fault) if matches!(fault.status, Some(405 | 501)) => Ok(Shown::default()),
        // 404 is for a model that is not there, and for servers that only know how to chat.
        Err(fault) if fault.status == Some(404) && !fault.message.contains("ollama pull") => {
            Ok(Shown::default())
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
        let asked = Asked::nothing(&wire.model);
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
