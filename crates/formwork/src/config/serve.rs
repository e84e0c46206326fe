use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{at_least_one, seconds};
use super::defaults::attempts;

/// The settings of `formwork serve`. An absent field has the default of the service.
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
    /// The accepted names in the `Host` header, in addition to the service's address, `localhost` and loopback addresses
    /// (default: none).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// The origins of web pages that may call the service, such as `https://app.example.org` (default: none).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<String>,
    /// The file with the certificate chain of the service in PEM, for HTTPS (default: none). A path below the folder of the
    /// configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_cert: Option<PathBuf>,
    /// The file with the private key of the certificate in PEM. A path below the folder of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_key: Option<PathBuf>,
    /// The maximum size of a request body in bytes (default: 16777216).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "at_least_one")]
    #[schemars(range(min = 1))]
    pub max_body_bytes: Option<usize>,
    /// The maximum size of a schema in bytes (default: 262144).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "at_least_one")]
    #[schemars(range(min = 1))]
    pub max_schema_bytes: Option<usize>,
    /// The maximum number of attempts that a request may set, from 1 to 100 (default: 10).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "attempts")]
    #[schemars(range(min = 1, max = 100))]
    pub max_attempts: Option<u32>,
    /// The maximum number of concurrent requests (default: 256).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "at_least_one")]
    #[schemars(range(min = 1))]
    pub concurrency: Option<usize>,
    /// The maximum number of waiting requests; further requests are rejected (default: 1024).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<usize>,
    /// The maximum number of concurrent streams per API key (default: 1024).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "at_least_one")]
    #[schemars(range(min = 1))]
    pub streams_per_key: Option<usize>,
    /// The time limit of a request in seconds (default: 300).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "seconds")]
    #[schemars(range(min = 0.001, max = 86400))]
    pub timeout_seconds: Option<f64>,
}
