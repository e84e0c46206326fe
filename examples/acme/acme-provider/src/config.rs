use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The address of Acme's own service.
pub(crate) const DEFAULT_URL: &str = "https://api.acme.example";

/// A model at Acme: the fields of a section with `kind = "acme"`, beside those that every kind has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "AcmeConfig")]
pub struct Config {
    /// The model, such as `anvil-1`.
    pub model: String,
    /// The address of the server; `/v2/completions` is put behind it.
    #[serde(default = "default_url")]
    pub base_url: String,
    /// The environment variable with the key (default: no key is sent).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// Headers that are sent with every request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Whether answers are streamed (default: yes).
    #[serde(default = "default_stream")]
    pub stream: bool,
}

fn default_url() -> String {
    DEFAULT_URL.to_owned()
}

const fn default_stream() -> bool {
    true
}
