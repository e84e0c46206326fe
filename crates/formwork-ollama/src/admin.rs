//! The models of a server, listed, shown and pulled.

use std::future::poll_fn;

use formwork_core::{Fault, FaultKind};
use formwork_wire::quoted;
use ollama_rs::error::OllamaError;
use serde::Serialize;
use serde_json::Value;

/// How a pull ends that went well.
const PULLED: &str = "success";

/// Administers an Ollama server on this machine or network.
///
/// It runs on tokio, and speaks plain HTTP without a key: what is behind TLS is administered where it runs.
#[derive(Debug, Clone)]
pub struct Admin {
    client: ollama_rs::Ollama,
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

/// What a server knows of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct ModelDetails {
    /// Its licence in full; empty if it has none.
    pub licence: String,
    /// Its chat template, in Go's template language.
    pub template: String,
    /// Its default options, one a line.
    pub parameters: String,
    /// What it can do: `completion`, `tools`, `thinking`, `vision`, …
    pub capabilities: Vec<String>,
    /// Its architecture: `llama`.
    pub architecture: Option<String>,
    /// The context that it was trained with, in tokens.
    pub context_tokens: Option<u64>,
}

/// How far a pull is. Sizes are of one layer; a model has several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct PullProgress {
    /// What is being done: `pulling manifest`, `verifying sha256 digest`, `success`.
    pub status: String,
    /// The layer's digest.
    pub digest: Option<String>,
    /// How many bytes of the layer are there.
    pub completed: Option<u64>,
    /// How many bytes the layer has.
    pub total: Option<u64>,
}

impl Admin {
    /// The server at this address, such as [`DEFAULT_URL`](crate::DEFAULT_URL).
    ///
    /// # Errors
    /// [`FaultKind::BadRequest`], if this is not an `http` address, or has a path: the client behind this would send
    /// requests elsewhere.
    pub fn new(base_url: &str) -> Result<Self, Fault> {
        let refused =
            |words: &str| Err(Fault::new(FaultKind::BadRequest, format!("{}: {words}", quoted(base_url))));
        let Ok(client) = ollama_rs::Ollama::try_new(base_url) else {
            return refused("this is no URL; it looks like http://127.0.0.1:11434");
        };
        let url = client.url();
        if url.scheme() != "http" {
            return refused("models are administered over plain http only; run this where the server runs");
        }
        if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
            return refused(
                "a server behind a path cannot be administered; give its own address without a path",
            );
        }
        Ok(Self { client })
    }

    /// The models that are there.
    ///
    /// # Errors
    /// A [`Fault`], if the server cannot be asked.
    pub async fn models(&self) -> Result<Vec<Model>, Fault> {
        let models = self.client.list_local_models().await.map_err(fault)?;
        let ours = models.into_iter().map(|model| Model {
            name: model.name,
            size: model.size,
            modified_at: model.modified_at,
        });
        Ok(ours.collect())
    }

    /// What the server knows of a model.
    ///
    /// # Errors
    /// [`FaultKind::Unsupported`], if it is not there; another [`Fault`], if the server cannot be asked.
    pub async fn show(&self, model: &str) -> Result<ModelDetails, Fault> {
        let shown = self.client.show_model_info(model.to_owned()).await.map_err(fault)?;
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
        let mut stream = self.client.pull_model_stream(model.to_owned(), false).await.map_err(fault)?;
        let mut is_done = false;
        while let Some(status) = poll_fn(|cx| stream.as_mut().poll_next(cx)).await {
            let status = status.map_err(fault)?;
            is_done = status.message == PULLED;
            progress(&PullProgress {
                status: status.message,
                digest: status.digest,
                completed: status.completed,
                total: status.total,
            });
        }
        // The client drops a last line that was cut, so that a pull that broke off looks like one that ended.
        if is_done {
            Ok(())
        } else {
            Err(Fault::new(FaultKind::BadWire, "the pull broke off: start it again"))
        }
    }
}

/// The client keeps an error's words and loses its status.
fn fault(error: OllamaError) -> Fault {
    match error {
        OllamaError::ReqwestError(error) if error.is_timeout() => {
            Fault::new(FaultKind::Timeout, causes(&error))
        }
        // Also what is not JSON, which this client reports the same way.
        OllamaError::ReqwestError(error) if error.is_decode() => {
            Fault::new(FaultKind::BadWire, causes(&error))
        }
        OllamaError::ReqwestError(error) => Fault::new(FaultKind::Unreachable, causes(&error)),
        OllamaError::JsonError(error) => {
            Fault::new(FaultKind::BadWire, format!("the server sent something that is not Ollama's: {error}"))
        }
        OllamaError::InternalError(error) => said(&error.message),
        OllamaError::Other(body) => {
            let document = serde_json::from_str(&body).ok();
            said(&document.as_ref().and_then(formwork_wire::error_in).unwrap_or(body))
        }
        other => Fault::new(FaultKind::BadWire, other.to_string()),
    }
}

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

/// An error with what caused it, which its own words leave out.
fn causes(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words.push_str(": ");
        words.push_str(&error.to_string());
        cause = error.source();
    }
    words
}
