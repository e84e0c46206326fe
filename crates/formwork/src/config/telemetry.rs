use std::collections::BTreeMap;

use formwork_core::within;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::common::{program, seconds};

/// The collector of traces and metrics of `formwork serve` (OTLP, protobuf over HTTP). `OTEL_SERVICE_NAME` and `OTEL_EXPORTER_OTLP_`
/// with `ENDPOINT`, `HEADERS` or `TIMEOUT` have precedence.
///
/// ```
/// use formwork::config::Config;
///
/// let config = Config::from_toml(
///     r#"
///         [telemetry]
///         endpoint = "http://localhost:4318"
///         sampling = 0.1
///
///         [providers.small]
///         kind = "ollama"
///         model = "qwen3:8b"
///     "#,
/// )?;
/// assert_eq!(config.telemetry().sampling, Some(0.1));
/// # Ok::<(), formwork::config::ConfigError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Telemetry {
    /// The base URL of the collector, such as `http://localhost:4318` (default: none). `/v1/traces` and `/v1/metrics` are
    /// added to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The name of the service (default: `formwork`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Headers of every export (default: none).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Headers whose values are in environment variables: the name of each with its variable (default: none).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secret_headers: BTreeMap<String, String>,
    /// The environment variable with the API key, sent as a bearer token (default: none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// A command that prints the API key, as in a provider (default: none).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "program")]
    #[schemars(length(min = 1))]
    pub api_key_command: Option<Vec<String>>,
    /// The share of the traces that are sent (default: all). A client's `traceparent` has precedence over a share.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "ratio")]
    #[schemars(range(min = 0, max = 1))]
    pub sampling: Option<f64>,
    /// The seconds between exports (default: 5).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "seconds")]
    #[schemars(range(min = 0.001, max = 86400))]
    pub interval_seconds: Option<f64>,
    /// The seconds that an export may take (default: 10).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "seconds")]
    #[schemars(range(min = 0.001, max = 86400))]
    pub timeout_seconds: Option<f64>,
}

fn ratio<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    within(deserializer, 0.0..=1.0, "a share of the traces from 0 to 1")
}
