//! Lists, shows and pulls the models of a server.

use std::future::poll_fn;
use std::pin::Pin;

use formwork_core::{Fault, FaultKind};
use formwork_wire::http::{Method, Request};
use formwork_wire::{Body, Bytes, Framing, Ndjson, RequestInfo, SharedTransport, bad_wire, error_in};
use futures_core::Stream as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The last status of a successful pull.
const PULLED: &str = "success";

/// The maximum size of a list of models, or of the details of one with its licence, in bytes.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Manages the models of an Ollama server, over the same transport as calls: with its TLS, key, proxy and time limits.
///
/// ```
/// use formwork_core::Fault;
/// use formwork_ollama::Admin;
/// use formwork_wire::SharedTransport;
///
/// async fn ensure(transport: SharedTransport, name: &str) -> Result<(), Fault> {
///     let admin = Admin::new(transport);
///     if admin.models().await?.iter().any(|model| model.name == name) {
///         return Ok(());
///     }
///     admin.pull(name, |progress| println!("{} {:?}", progress.status, progress.completed)).await
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Admin {
    transport: SharedTransport,
}

/// A model on a server.
///
/// ```
/// use formwork_ollama::Model;
///
/// fn row(model: &Model) -> String {
///     format!("{}  {} MB  {}", model.name, model.size / 1_000_000, model.modified_at)
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct Model {
    /// The name with its tag: `qwen3:8b`.
    pub name: String,
    /// The size on disk in bytes.
    pub size: u64,
    /// The time of the last change (RFC 3339).
    pub modified_at: String,
}

/// The details of a model.
///
/// ```
/// use formwork_ollama::ModelDetails;
///
/// fn can_think(details: &ModelDetails) -> bool {
///     details.capabilities.iter().any(|capability| capability == "thinking")
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct ModelDetails {
    /// The full text of the licence. Empty: the model has none.
    pub licence: String,
    /// The chat template, in Go's template language.
    pub template: String,
    /// The default options, one per line.
    pub parameters: String,
    /// The capabilities: `completion`, `tools`, `thinking`, `vision`, …
    pub capabilities: Vec<String>,
    /// The architecture: `llama`.
    pub architecture: Option<String>,
    /// The context length of the training, in tokens.
    pub context_tokens: Option<u64>,
}

/// The progress of a pull. Sizes refer to one layer; a model has several layers.
///
/// ```
/// use formwork_ollama::PullProgress;
///
/// fn percent(progress: &PullProgress) -> Option<u64> {
///     (progress.completed? * 100).checked_div(progress.total?)
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct PullProgress {
    /// The current step: `pulling manifest`, `verifying sha256 digest`, `success`.
    pub status: String,
    /// The layer's digest.
    pub digest: Option<String>,
    /// The number of bytes of the layer that are complete.
    pub completed: Option<u64>,
    /// The size of the layer in bytes.
    pub total: Option<u64>,
}

/// The response of `/api/tags`.
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

/// The response of `/api/show`.
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
    /// Returns a manager of the models on the server behind `transport`.
    pub const fn new(transport: SharedTransport) -> Self {
        Self { transport }
    }

    /// Returns the models on the server.
    ///
    /// # Errors
    /// A [`Fault`] if the request fails.
    pub async fn models(&self) -> Result<Vec<Model>, Fault> {
        let Tags { models } = self.document(Method::GET, "/api/tags", Bytes::new()).await?;
        let ours =
            models.into_iter().map(|Tag { name, size, modified_at }| Model { name, size, modified_at });
        Ok(ours.collect())
    }

    /// Returns the details of a model.
    ///
    /// # Errors
    /// [`FaultKind::Unsupported`] if the server does not have the model, or another [`Fault`] if the request fails.
    pub async fn show(&self, model: &str) -> Result<ModelDetails, Fault> {
        let body = json!({ "model": model }).to_string().into();
        let info: ModelInfo = self.document(Method::POST, "/api/show", body).await?;
        let known = |name: &str| info.model_info.get(name);
        let architecture = known("general.architecture").and_then(Value::as_str).map(str::to_owned);
        let context = architecture.as_ref().and_then(|name| known(&format!("{name}.context_length")));
        Ok(ModelDetails {
            context_tokens: context.and_then(Value::as_u64),
            architecture,
            licence: info.license,
            template: info.template,
            parameters: info.parameters,
            capabilities: info.capabilities,
        })
    }

    /// Downloads a model or its missing layers, and reports the progress. Dropping the future ends the download; the server
    /// keeps the received data for the next pull.
    ///
    /// # Errors
    /// [`FaultKind::Unsupported`] if the model does not exist, [`FaultKind::BadWire`] if the response ends early, or another
    /// [`Fault`] if the request fails.
    pub async fn pull(&self, model: &str, mut progress: impl FnMut(&PullProgress)) -> Result<(), Fault> {
        let mut body =
            self.send(Method::POST, "/api/pull", json!({ "model": model }).to_string().into()).await?;
        let mut lines = Ndjson::default();
        let mut is_done = false;
        let mut take = |line: &str| {
            let whole: Value = serde_json::from_str(line).map_err(|error| foreign(&error, line))?;
            if error_in(&whole).is_some() {
                return Err(self.hidden(request_info().fault_within(&whole, false)));
            }
            let status: PullProgress =
                serde_json::from_value(whole).map_err(|error| foreign(&error, line))?;
            is_done = status.status == PULLED;
            progress(&status);
            Ok(())
        };
        while let Some(chunk) = poll_fn(|cx| Pin::new(&mut body).poll_next(cx)).await {
            lines.push(&chunk?);
            while let Some(line) = lines.next() {
                take(&line?)?;
            }
        }
        // A partial line means that the connection was interrupted.
        if is_done {
            Ok(())
        } else {
            Err(Fault::new(FaultKind::BadWire, "the pull was interrupted: start it again"))
        }
    }

    /// Sends a request and reads the one document of its response.
    async fn document<T: serde::de::DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<T, Fault> {
        let body = self.send(method, path, body).await?.collect(MAX_BYTES).await?;
        serde_json::from_slice(&body).map_err(|error| foreign(&error, &String::from_utf8_lossy(&body)))
    }

    /// Sends a request; every status except success is a fault.
    async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<Body, Fault> {
        /// The maximum number of bytes that are read of an error.
        const ERROR: usize = 64 * 1024;

        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        let request =
            request.body(body).map_err(|error| Fault::new(FaultKind::BadRequest, error.to_string()))?;
        let (head, body) = self.transport.send(request, None).await?.into_parts();
        if head.status.is_success() {
            return Ok(body);
        }
        let body = body.beginning(ERROR).await;
        Err(self.hidden(request_info().fault(&head, &body, self.transport.now())))
    }

    fn hidden(&self, mut fault: Fault) -> Fault {
        fault.message = self.transport.redact(&fault.message);
        fault
    }
}

fn foreign(error: &serde_json::Error, text: &str) -> Fault {
    bad_wire(&format!("the response is not one of Ollama's API ({error})"), text.as_bytes())
}

/// Returns the facts of a request that manages models.
fn request_info() -> RequestInfo {
    RequestInfo { protocol: "ollama/admin", ..RequestInfo::default() }
}
