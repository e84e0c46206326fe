use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::seconds;

/// How `formwork serve` answers. What is left out has the default of the service.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Serve {
    /// Names that clients may call the service by in `Host`, beside its own address, `localhost` and loopback addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Origins of web pages that may call it, such as `https://app.example.org` (default: none).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<String>,
    /// The file with the certificate chain of the service in PEM, for HTTPS (default: none). A path below the folder of the
    /// configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_cert: Option<PathBuf>,
    /// The file with the private key of the certificate in PEM. A path below the folder of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_key: Option<PathBuf>,
    /// The most bytes of a request's body (default: 16777216).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_body_bytes: Option<usize>,
    /// The most bytes of a schema (default: 262144).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_schema_bytes: Option<usize>,
    /// The most attempts that a request may make, from 1 to 100 (default: 10).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub max_attempts: Option<u32>,
    /// The most requests that are worked on at once (default: 256).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<usize>,
    /// The most requests that wait for their turn; further ones are refused (default: 1024).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<usize>,
    /// The most streams that are open at once for each key (default: 1024).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams_per_key: Option<usize>,
    /// Seconds that a request may take (default: 300).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "seconds")]
    #[schemars(range(min = 0.001, max = 86400))]
    pub timeout_seconds: Option<f64>,
    /// Seconds between repeated calls of a target that failed, one number for each repetition (default: 2, 4 and 8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_delays_seconds: Option<Vec<f64>>,
}
