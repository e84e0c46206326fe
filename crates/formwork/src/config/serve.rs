use std::num::NonZeroU32;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{at_least_one, seconds};
use super::defaults::attempts;

/// Settings of `formwork serve`.
///
/// ```
/// use formwork::config::Serve;
///
/// let serve: Serve = serde_json::from_str(r#"{"concurrency": 64, "timeout_seconds": 30}"#)?;
/// assert_eq!((serve.concurrency, serve.timeout_seconds, serve.queue), (Some(64), Some(30.0), None));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Serve {
    /// Host names of the service beside IP addresses and `localhost` (default: none).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Origins of web pages that may call the service (default: none).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<String>,
    /// The PEM file of the certificate chain for HTTPS (default: none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_cert: Option<PathBuf>,
    /// The PEM file of its private key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_key: Option<PathBuf>,
    /// The maximum bytes of a request body (default: 16777216).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "at_least_one")]
    #[schemars(range(min = 1))]
    pub max_body_bytes: Option<usize>,
    /// The maximum bytes of a schema (default: 262144).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "at_least_one")]
    #[schemars(range(min = 1))]
    pub max_schema_bytes: Option<usize>,
    /// The maximum attempts of a request (default: 10).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "attempts")]
    #[schemars(range(min = 1, max = 100))]
    pub max_attempts: Option<u32>,
    /// The seconds for which answers are reused (default: never).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "at_least_one")]
    #[schemars(range(min = 1))]
    pub cache: Option<usize>,
    /// The maximum number of concurrent requests (default: 256).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "at_least_one")]
    #[schemars(range(min = 1))]
    pub concurrency: Option<usize>,
    /// The maximum number of waiting requests (default: 1024).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<usize>,
    /// The maximum number of streams per key (default: 1024).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "at_least_one")]
    #[schemars(range(min = 1))]
    pub streams_per_key: Option<usize>,
    /// The maximum number of connections per address (default: 1024).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "at_least_one")]
    #[schemars(range(min = 1))]
    pub connections_per_address: Option<usize>,
    /// The seconds for the head of a request (default: 10).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "seconds")]
    #[schemars(range(min = 0.001, max = 86400))]
    pub head_timeout_seconds: Option<f64>,
    /// The seconds for which a client may read less than 1 KiB/s (default: 10).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "seconds")]
    #[schemars(range(min = 0.001, max = 86400))]
    pub write_timeout_seconds: Option<f64>,
    /// The seconds for a request (default: 300).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "seconds")]
    #[schemars(range(min = 0.001, max = 86400))]
    pub timeout_seconds: Option<f64>,
    /// The days after which runs are deleted from the ledger (default: never).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_runs_days: Option<NonZeroU32>,
    /// The days after which texts of runs are deleted from it (default: never).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_texts_days: Option<NonZeroU32>,
}
