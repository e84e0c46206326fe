//! The configuration section of a model on an Ollama server.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Api, KeepAlive, Ollama, Think};

/// The default address of an Ollama server.
pub const DEFAULT_URL: &str = "http://127.0.0.1:11434";

/// The configuration of a model on an Ollama server.
///
/// ```
/// use formwork_ollama::{OllamaConfig, Ollama};
///
/// let config: OllamaConfig = serde_json::from_str(r#"{"model": "qwen3:8b", "keep_alive": "30m"}"#).unwrap();
/// assert_eq!((config.base_url.as_str(), config.probe), ("http://127.0.0.1:11434", false));
/// let _: Ollama = config.wire();
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OllamaConfig {
    /// The model's name in `ollama list`, for example `qwen3:8b`.
    pub model: String,
    /// The base URL of the server, to which paths such as `/api/chat` are appended (default: `http://127.0.0.1:11434`).
    #[serde(default = "default_url")]
    pub base_url: String,
    /// The environment variable with the API key, which is sent as a bearer token (default: none). A local server needs no
    /// key; the variable of Ollama's cloud is `OLLAMA_API_KEY`.
    pub api_key_env: Option<String>,
    /// Headers of every request (default: none), without keys.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The API: `chat` (the default), or `generate` for models without a chat template.
    #[serde(default)]
    pub api: Api,
    /// The context size in tokens (default: for each call a power of two from 4096 up to the model's context, or 131072 if unknown).
    /// The server reloads the model when it changes.
    pub num_ctx: Option<u32>,
    /// The time for which the model stays loaded after a call: seconds, or a duration such as `30m` (default: the server's).
    pub keep_alive: Option<KeepAlive>,
    /// Whether the model reasons before it answers: `true`, `false`, or a level (`low`, `medium`, `high`) (default: not sent). With
    /// reasoning, schemas may not be enforced.
    pub think: Option<Think>,
    /// Additional options of the model, for example `top_k`, `repeat_penalty` or `stop` (default: none). Options that a call
    /// sets take precedence.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub options: Map<String, Value>,
    /// Additional properties of the request body, for example `logprobs`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
    /// Whether responses are streamed (default: `true`).
    #[serde(default = "formwork_wire::yes")]
    pub stream: bool,
    /// Whether the server is probed for its capabilities before the first call (default: `false`), with up to four short calls. The
    /// result is kept until server, model or section change.
    #[serde(default)]
    pub probe: bool,
}

impl OllamaConfig {
    /// Returns the configuration of `model` on a server on this machine, with all other fields at their defaults.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            base_url: default_url(),
            api_key_env: None,
            headers: BTreeMap::new(),
            api: Api::default(),
            num_ctx: None,
            keep_alive: None,
            think: None,
            options: Map::new(),
            extra: Map::new(),
            stream: true,
            probe: false,
        }
    }

    /// Returns the codec with the settings of this configuration. Address, key and headers are settings of the transport.
    pub fn wire(&self) -> Ollama {
        let mut wire = Ollama::new(&self.model)
            .with_options(self.options.clone())
            .with_extra(self.extra.clone())
            .with_stream(self.stream);
        if self.api == Api::Generate {
            wire = wire.with_generate();
        }
        if let Some(tokens) = self.num_ctx {
            wire = wire.with_num_ctx(tokens);
        }
        if let Some(keep_alive) = &self.keep_alive {
            wire = wire.with_keep_alive(keep_alive.clone());
        }
        if let Some(think) = &self.think {
            wire = wire.with_think(think.clone());
        }
        wire
    }
}

/// Returns the base URL for a value of the environment variable `OLLAMA_HOST`, by the rules of the `ollama` command.
///
/// The value is a host, a port or both, with an optional scheme and path. A wildcard address (`0.0.0.0`, `[::]`) becomes the
/// loopback address.
///
/// ```
/// use formwork_ollama::base_url_of_host;
///
/// assert_eq!(base_url_of_host("gpu.local"), "http://gpu.local:11434");
/// assert_eq!(base_url_of_host("0.0.0.0:8080"), "http://127.0.0.1:8080");
/// assert_eq!(base_url_of_host("https://ollama.example.org/api"), "https://ollama.example.org:443/api");
/// ```
pub fn base_url_of_host(host: &str) -> String {
    let host = host.trim().trim_matches(['"', '\'']);
    let (scheme, rest, default_port) = match host.split_once("://") {
        Some(("http", rest)) => ("http", rest, "80"),
        Some((scheme, rest)) => (scheme, rest, "443"),
        None => ("http", host, "11434"),
    };
    let (authority, path) = rest.split_once('/').map_or((rest, ""), |(authority, path)| (authority, path));
    // An IPv6 address contains colons itself, with or without brackets around it.
    let port_at = authority.rfind(':').filter(|at| {
        let before = authority.get(..*at).unwrap_or_default();
        before.ends_with(']') || !before.contains(':')
    });
    let (name, port) = port_at.map_or((authority, ""), |at| (&authority[..at], &authority[at + 1..]));
    let name = match name.trim_matches(['[', ']']) {
        "" | "0.0.0.0" => "127.0.0.1".to_owned(),
        "::" => "[::1]".to_owned(),
        address if address.contains(':') => format!("[{address}]"),
        name => name.to_owned(),
    };
    let port = if port.parse::<u16>().is_ok() { port } else { default_port };
    let path = path.trim_end_matches('/');
    format!("{scheme}://{name}:{port}{}{path}", if path.is_empty() { "" } else { "/" })
}

fn default_url() -> String {
    DEFAULT_URL.to_owned()
}
