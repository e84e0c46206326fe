use std::collections::BTreeMap;

use formwork_core::within;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::common::{program, seconds};

/// The collector that gets traces and metrics of `formwork serve`, over OTLP (protobuf over HTTP). `OTEL_SERVICE_NAME` and
/// `OTEL_EXPORTER_OTLP_` with `ENDPOINT`, `HEADERS` or `TIMEOUT` replace its settings.
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
    /// The base URL of the collector, such as `http://localhost:4318` (default: none, nothing is sent). Traces are sent to
    /// `/v1/traces` below it, and metrics to `/v1/metrics`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The name of the service (default: `formwork`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Headers of every export (default: none).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Headers with secret values: the name of each with the environment variable of its value (default: none).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secret_headers: BTreeMap<String, String>,
    /// The environment variable with the API key, which is sent as `Authorization: Bearer KEY` (default: none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// A command that prints the API key, instead of `api_key_env`, as in a provider (default: none).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "program")]
    #[schemars(length(min = 1))]
    pub api_key_command: Option<Vec<String>>,
    /// The share of the traces that are sent, from 0 to 1 (default: every trace). With a share, a client's `traceparent` has
    /// precedence.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "ratio")]
    #[schemars(range(min = 0, max = 1))]
    pub sampling: Option<f64>,
    /// The time between two exports in seconds (default: 5).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "seconds")]
    #[schemars(range(min = 0.001, max = 86400))]
    pub interval_seconds: Option<f64>,
    /// The time limit of one export in seconds (default: 10).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "seconds")]
    #[schemars(range(min = 0.001, max = 86400))]
    pub timeout_seconds: Option<f64>,
}

fn ratio<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    within(deserializer, 0.0..=1.0, "a share of the traces from 0 to 1")
}
