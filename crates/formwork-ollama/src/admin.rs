//! The models of a server: listed, shown and pulled.

use std::future::poll_fn;
use std::pin::Pin;

use formwork_core::{Fault, FaultKind};
use formwork_wire::http::{Method, Request, StatusCode};
use formwork_wire::{Body, Bytes, Framing, Ndjson, SharedTransport, error_in, fault_of, quoted};
use futures_core::Stream as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// How a pull ends that went well.
const PULLED: &str = "success";

/// The most bytes of a list of models or of what is known of one, whose licence is in it.
const MOST: usize = 16 * 1024 * 1024;

/// Administers the models of an Ollama server, over the same transport as calls: with its TLS, key, proxy and time limits.
#[derive(Debug, Clone)]
pub struct Admin {
    transport: SharedTransport,
}

/// A model that is on a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct Model {
    /// Its name with its tag: `qwen3:8b`.
    pub name: String,
    /// Its size on disk in bytes.
    pub size: u64,
    /// When it was last changed (RFC 3339).
    pub modified_at: String,
}

/// A server's facts about a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct ModelDetails {
    /// Its licence in full; empty if it has none.
    pub licence: String,
    /// Its chat template, in Go's template language.
    pub template: String,
    /// Its default options, one a line.
    pub parameters: String,
    /// The model's abilities: `completion`, `tools`, `thinking`, `vision`, …
    pub capabilities: Vec<String>,
    /// Its architecture: `llama`.
    pub architecture: Option<String>,
    /// The context that it was trained with, in tokens.
    pub context_tokens: Option<u64>,
}

/// How far a pull is. Sizes are of one layer; a model has several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct PullProgress {
    /// The step that is being done: `pulling manifest`, `verifying sha256 digest`, `success`.
    pub status: String,
    /// The layer's digest.
    #[serde(default)]
    pub digest: Option<String>,
    /// How many bytes of the layer are there.
    #[serde(default)]
    pub completed: Option<u64>,
    /// How many bytes the layer has.
    #[serde(default)]
    pub total: Option<u64>,
}

/// `/api/tags`.
#[derive(Deserialize)]
struct Tags {
    models: Vec<Tag>,
}

#[derive(Deserialize)]
struct Tag {
    name: String,
    #[serde(default)]
    size: u64,
    #[serde(default)]
    modified_at: String,
}

/// `/api/show`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ModelInfo {
    license: String,
    template: String,
    parameters: String,
    capabilities: Vec<String>,
    model_info: Map<String, Value>,
}

impl Admin {
    /// Administers the server that this transport sends to.
    pub const fn new(transport: SharedTransport) -> Self {
        Self { transport }
    }

    /// Returns the models that are there.
    ///
    /// # Errors
    /// A [`Fault`], if the server cannot be asked.
    pub async fn models(&self) -> Result<Vec<Model>, Fault> {
        let Tags { models } = self.document(Method::GET, "/api/tags", Bytes::new()).await?;
        let ours =
            models.into_iter().map(|Tag { name, size, modified_at }| Model { name, size, modified_at });
        Ok(ours.collect())
    }

    /// Returns what the server knows of a model.
    ///
    /// # Errors
    /// [`FaultKind::Unsupported`], if it is not there; another [`Fault`], if the server cannot be asked.
    pub async fn show(&self, model: &str) -> Result<ModelDetails, Fault> {
        let body = json!({ "model": model }).to_string().into();
        let shown: ModelInfo = self.document(Method::POST, "/api/show", body).await?;
        let known = |name: &str| shown.model_info.get(name);
        let architecture = known("general.architecture").and_then(Value::as_str).map(str::to_owned);
        let context = architecture.as_ref().and_then(|name| known(&format!("{name}.context_length")));
        Ok(ModelDetails {
            context_tokens: context.and_then(Value::as_u64),
            architecture,
            licence: shown.license,
            template: shown.template,
            parameters: shown.parameters,
            capabilities: shown.capabilities,
        })
    }

    /// Fetches a model, or what is new of it, and says how far it is. Dropping the future ends it; the server keeps what
    /// it has for the next time.
    ///
    /// # Errors
    /// [`FaultKind::Unsupported`], if there is no such model; [`FaultKind::BadWire`], if it ends before it is done;
    /// another [`Fault`], if the server cannot be asked.
    pub async fn pull(&self, model: &str, mut progress: impl FnMut(&PullProgress)) -> Result<(), Fault> {
        let mut body =
            self.send(Method::POST, "/api/pull", json!({ "model": model }).to_string().into()).await?;
        let mut lines = Ndjson::default();
        let mut is_done = false;
        let mut take = |line: Result<String, Fault>| {
            let (line, whole) = line.map(|line| (line.clone(), serde_json::from_str::<Value>(&line)))?;
            let status: PullProgress = match whole {
                Ok(whole) => match error_in(&whole) {
                    Some(words) => return Err(self.hidden(said(&words))),
                    None => serde_json::from_value(whole).map_err(|error| foreign(&error, &line))?,
                },
                Err(error) => return Err(foreign(&error, &line)),
            };
            is_done = status.status == PULLED;
            progress(&status);
            Ok(())
        };
        while let Some(chunk) = poll_fn(|cx| Pin::new(&mut body).poll_next(cx)).await {
            lines.push(&chunk?);
            while let Some(line) = lines.next() {
                take(line)?;
            }
        }
        // A line that was cut means that the connection broke off.
        if is_done {
            Ok(())
        } else {
            Err(Fault::new(FaultKind::BadWire, "the pull broke off: start it again"))
        }
    }

    /// Sends a request, and reads the one document of its response.
    async fn document<T: serde::de::DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<T, Fault> {
        let body = self.send(method, path, body).await?.collect(MOST).await?;
        serde_json::from_slice(&body).map_err(|error| foreign(&error, &String::from_utf8_lossy(&body)))
    }

    /// Sends a request; every status but success is a fault.
    async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<Body, Fault> {
        /// The most bytes of an error that are read.
        const ERROR: usize = 64 * 1024;

        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        let request =
            request.body(body).map_err(|error| Fault::new(FaultKind::BadRequest, error.to_string()))?;
        let (head, body) = self.transport.send(request, None).await?.into_parts();
        if head.status.is_success() {
            return Ok(body);
        }
        let body = body.beginning(ERROR).await;
        let fault = fault_of(&head, &body, false, self.transport.now());
        let document = serde_json::from_slice(&body).ok();
        Err(self.hidden(match document.as_ref().and_then(error_in) {
            // Ollama answers 500 to much that is the request's fault; its words tell more.
            Some(words) if head.status == StatusCode::INTERNAL_SERVER_ERROR => said(&words),
            _ => fault,
        }))
    }

    fn hidden(&self, mut fault: Fault) -> Fault {
        fault.message = self.transport.redact(&fault.message);
        fault
    }
}

fn foreign(error: &serde_json::Error, text: &str) -> Fault {
    let message = format!("the server sent something that is not Ollama's ({error}): {}", quoted(text));
    Fault::new(FaultKind::BadWire, message)
}

/// The fault that the words of an error mean which come without a status of their own.
fn said(words: &str) -> Fault {
    let low = words.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| low.contains(word));
    let kind = if says(&["not found", "does not exist"]) {
        FaultKind::Unsupported
    } else if says(&["unauthorized", "forbidden"]) {
        FaultKind::Auth
    } else if says(&["invalid", "is required"]) {
        FaultKind::BadRequest
    } else {
        FaultKind::Overloaded
    };
    Fault::new(kind, format!("the server says {}", quoted(words)))
}
