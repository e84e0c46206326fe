use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use formwork_core::{Price, Tighten};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// The settings that every provider may have, whatever its kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Common {
    /// The kind of provider: `anthropic`, `ollama`, `openai`, `local`, or a vendor that speaks like OpenAI, such as `groq`.
    pub kind: String,
    /// The dialects of JSON Schema that it is asked in, the strictest first; those that its kind has by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modes: Option<Vec<String>>,
    /// Ask without any enforcement, with the schema in the prompt. No by default.
    #[serde(default)]
    pub prompt_only: bool,
    /// The most calls at once; no limit by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<usize>,
    /// The maximum number of calls that begin within a minute, evenly spaced (default: no limit).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub rpm: Option<NonZeroU32>,
    /// The maximum number of tokens that calls use within a minute, prompts and answers together (default: no limit). Calls
    /// reserve an estimate and settle it when they end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub tpm: Option<NonZeroU64>,
    /// The proxy for its requests: `http://` or `https://`, a host, and a user name and password if need be (default:
    /// `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` of the environment).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// A file with root certificates in PEM that are trusted beside those of the system (default: none). A path below the
    /// folder of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Headers with secret values: each header's name, and the environment variable that holds its value (default: none).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secret_headers: BTreeMap<String, String>,
    /// A command that prints the API key, as a program and its arguments, in place of `api_key_env` (default: none). It is run
    /// without a shell, and only if the file was named with `--config` or `FORMWORK_CONFIG` or trusted by `formwork config
    /// trust`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub api_key_command: Option<Vec<String>>,
    /// Seconds until `api_key_command` is run again (default: 300). It is also run again when the server refuses the key.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "seconds")]
    #[schemars(range(min = 0.001, max = 86400))]
    pub api_key_lifetime_seconds: Option<f64>,
    /// Seconds until a connection is there; 10 by default.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "seconds")]
    #[schemars(range(min = 0.001, max = 86400))]
    pub connect_timeout_seconds: Option<f64>,
    /// Seconds until the first piece of an answer (default: the time that the call has left, 300 where it has no limit).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "seconds")]
    #[schemars(range(min = 0.001, max = 86400))]
    pub first_timeout_seconds: Option<f64>,
    /// Seconds between two pieces of an answer (default: the time that the call has left, 300 where it has no limit).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "seconds")]
    #[schemars(range(min = 0.001, max = 86400))]
    pub idle_timeout_seconds: Option<f64>,
    /// Seconds for a whole call; no limit but the run's by default.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "seconds")]
    #[schemars(range(min = 0.001, max = 86400))]
    pub timeout_seconds: Option<f64>,
    /// The price of a million tokens, in US dollars: `{ input = 0.15, output = 0.6 }`. By default what the registry says of the
    /// model at its own vendor; where that says nothing the price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Which valid answers the schema that is sent may exclude. `closed` by default: further members of objects that name
    /// their members, where the schema leaves that open; and for one call, after the model ran away or into the limit of
    /// tokens with the schema, what does not fit into that limit. `none`: none. `bounded`, the default for tiny models: always
    /// what does not fit into the limit of tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tighten: Option<Tighten>,
    /// Answers come from this cassette instead of the network. A path below the folder of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cassette: Option<PathBuf>,
    /// The cassette that everything on the network is written to: a path below the folder of the configuration, where there
    /// is no file yet or another cassette.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<PathBuf>,
}

impl Common {
    /// The names of its fields, to tell them from those of a kind.
    pub(crate) const NAMES: &[&str] = &[
        "kind",
        "modes",
        "prompt_only",
        "concurrency",
        "rpm",
        "tpm",
        "proxy",
        "ca_file",
        "secret_headers",
        "api_key_command",
        "api_key_lifetime_seconds",
        "connect_timeout_seconds",
        "first_timeout_seconds",
        "idle_timeout_seconds",
        "timeout_seconds",
        "price",
        "tighten",
        "cassette",
        "record",
    ];
}

/// Reads a time limit: seconds, from a millisecond to a day.
pub(super) fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let seconds = f64::deserialize(deserializer)?;
    if (0.001..=86_400.0).contains(&seconds) {
        return Ok(Some(seconds));
    }
    Err(D::Error::custom(format!("expected a number of seconds from 0.001 to 86400, found {seconds}")))
}
