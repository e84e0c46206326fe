use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::sync::LazyLock;

use formwork_core::{Backoff, ModelSettings, Price, Retries, Tighten, within};
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use toml::de::DeTable;

/// The settings of a provider that do not depend on its kind.
///
/// ```
/// use formwork::config::Config;
///
/// let config = Config::from_toml("[providers.a]\nkind = \"ollama\"\nmodel = \"m\"\nconcurrency = 4")?;
/// let common = &config.section("a")?.common;
/// assert_eq!((common.kind.as_str(), common.concurrency, common.prompt_only), ("ollama", Some(4), false));
/// # Ok::<(), formwork::config::ConfigError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Common {
    /// The kind of provider: `anthropic`, `gemini`, `ollama`, `openai`, `local`, or a vendor with an OpenAI-compatible
    /// API, such as `groq`.
    pub kind: String,
    /// The output modes, strictest first, for example `["json-object", "prompt"]` (default: those of the kind): names
    /// of dialects, or `tool` for a forced tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modes: Option<Vec<String>>,
    /// Whether the schema is sent only in the prompt, without enforcement (default: `false`).
    #[serde(default)]
    pub prompt_only: bool,
    /// The maximum number of concurrent calls (default: no limit).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "at_least_one")]
    #[schemars(range(min = 1))]
    pub concurrency: Option<usize>,
    /// The maximum number of calls per minute, evenly spaced (default: no limit).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub rpm: Option<NonZeroU32>,
    /// The maximum number of tokens per minute (default: no limit).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub tpm: Option<NonZeroU64>,
    /// The proxy for all requests: `http://`, `https://` or `socks5h://`, a host, and optionally a user name and password (default:
    /// that of the environment).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// A PEM file with additional trusted root certificates (default: none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// A PEM file with the client's certificate for mutual TLS (default: none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cert_file: Option<PathBuf>,
    /// A PEM file with the private key of `client_cert_file` (default: that file).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_key_file: Option<PathBuf>,
    /// Headers with secret values: the name of each header with the environment variable of its value (default: none).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secret_headers: BTreeMap<String, String>,
    /// A command that prints the API key: a program and its arguments, without a shell (default: none). A file that was found needs
    /// `formwork config trust`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "program")]
    #[schemars(length(min = 1))]
    pub api_key_command: Option<Vec<String>>,
    /// A file with the API key (default: none). It needs the trust of `api_key_command`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_file: Option<PathBuf>,
    /// The header of the API key (default: that of the kind). `authorization`: `Bearer KEY`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "header_name")]
    #[schemars(length(min = 1))]
    pub api_key_header: Option<String>,
    /// Cloud credentials instead of an API key (default: none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<CloudCredentials>,
    /// The seconds after which `api_key_command` or `api_key_file` is read again (default: 300); also when the server rejects the key.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "seconds")]
    #[schemars(range(min = 0.001, max = 86400))]
    pub api_key_lifetime_seconds: Option<f64>,
    /// The time limit for connecting in seconds (default: 10).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "seconds")]
    #[schemars(range(min = 0.001, max = 86400))]
    pub connect_timeout_seconds: Option<f64>,
    /// The time limit for the first chunk of an answer in seconds (default: the remaining time, else 300).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "seconds")]
    #[schemars(range(min = 0.001, max = 86400))]
    pub first_timeout_seconds: Option<f64>,
    /// The time limit between two chunks of an answer in seconds (default: the remaining time, else 300).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "seconds")]
    #[schemars(range(min = 0.001, max = 86400))]
    pub idle_timeout_seconds: Option<f64>,
    /// The time limit of a whole call in seconds (default: the limit of the run only).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "seconds")]
    #[schemars(range(min = 0.001, max = 86400))]
    pub timeout_seconds: Option<f64>,
    /// The maximum number of retries of a failed call, from 0 to 100; 0 turns retries off (default: that of `[defaults]`, else 3).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "retries")]
    #[schemars(range(min = 0, max = 100))]
    pub retries: Option<u32>,
    /// The delays before the retries in seconds, from 0 to 86400; the last one repeats (default: those of `[defaults]`, else 2, 4, 8).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "delays")]
    #[schemars(inner(range(min = 0, max = 86400)))]
    pub retry_delays: Option<Vec<f64>>,
    /// The price of a million tokens in US dollars: `{ input = 0.15, output = 0.6 }` (default: the registry's, at the model's own
    /// vendor).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The settings of the model, such as `{ effort = "low" }` (default: those of `[defaults]`). Those that the server does not take
    /// are warnings.
    #[serde(default, skip_serializing_if = "is_default")]
    pub settings: ModelSettings,
    /// The degree to which the sent schema may be stricter than the contract (default: `closed`; `bounded` for tiny models and after
    /// an endless answer). Where `bounded` is set or the model is tiny, the values that a rule reads are requested before its target,
    /// so that the sent schema has the range of the target: a weighted sum, for example.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tighten: Option<Tighten>,
    /// The cassette that answers all requests instead of the network (default: none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cassette: Option<PathBuf>,
    /// The cassette that records all requests (default: none): a path inside of the configuration's folder, new or a cassette.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<PathBuf>,
}

static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let schema = SchemaGenerator::default().into_root_schema_for::<Common>();
    schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys).cloned().collect()
});

impl Common {
    /// Separates the settings that do not depend on the kind from the others.
    pub(super) fn part(table: DeTable<'_>) -> (DeTable<'_>, DeTable<'_>) {
        table.into_iter().partition(|(key, _)| NAMES.iter().any(|name| name == key.get_ref()))
    }

    /// The names of the fields, which are not passed to a kind.
    pub(crate) fn names() -> Vec<&'static str> {
        NAMES.iter().map(String::as_str).collect()
    }
}

/// A cloud's credentials. Each needs a build with its feature.
///
/// ```
/// use formwork::config::{CloudCredentials, Config};
///
/// let config = Config::from_toml("[providers.a]\nkind = \"bedrock\"\nmodel = \"m\"\ncredentials = \"aws\"")?;
/// assert_eq!(config.section("a")?.common.credentials, Some(CloudCredentials::Aws));
/// # Ok::<(), formwork::config::ConfigError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CloudCredentials {
    /// SigV4 with AWS's standard chain.
    Aws,
    /// Google's application default credentials.
    Google,
}

/// Deserializes the name of a header.
pub(super) fn header_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let name = String::deserialize(deserializer)?;
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    match !name.is_empty() && name.bytes().all(is_token) {
        true => Ok(Some(name)),
        false => Err(D::Error::custom(format!("{name:?} is not the name of a header, such as `x-api-key`"))),
    }
}

/// Deserializes a time limit: seconds, from 0.001 to 86400.
pub(super) fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    within(deserializer, 0.001..=86_400.0, "a number of seconds from 0.001 to 86400")
}

/// Deserializes a number of retries, from 0 to 100.
pub(super) fn retries<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    within(deserializer, 0..=100, "a number of retries from 0 to 100")
}

/// Deserializes a limit, which is at least 1.
pub(super) fn at_least_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    within(
        deserializer,
        1..=usize::MAX,
        "a number from 1; without the setting there is no other limit than the default",
    )
}

/// Deserializes a program and its arguments.
pub(super) fn program<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    let command = Vec::<String>::deserialize(deserializer)?;
    match command.first().is_some_and(|program| !program.is_empty()) {
        true => Ok(Some(command)),
        false => Err(D::Error::custom(
            "the command for the API key is empty: it needs a program, such as [\"vault\", \"read\", \"key\"]",
        )),
    }
}

/// Deserializes delays: at least one number of seconds, each from 0 to 86400.
pub(super) fn delays<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<f64>>, D::Error> {
    let delays = Vec::<f64>::deserialize(deserializer)?;
    if !delays.is_empty() && delays.iter().all(|delay| (0.0..=86_400.0).contains(delay)) {
        return Ok(Some(delays));
    }
    Err(D::Error::custom(format!(
        "expected a list of seconds from 0 to 86400, such as [1, 2], found {delays:?}; `retries = 0` turns retries off"
    )))
}

/// Returns the retry settings of a section or command.
pub(super) fn retry_settings(retries: Option<u32>, delays: Option<&Vec<f64>>) -> Retries {
    Retries { retries, delays: delays.map(|delays| Backoff::of_seconds(delays).delays) }
}

/// Returns whether a setting has its default value, and is not written.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
