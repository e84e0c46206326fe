//! Sends requests of Formwork over HTTP: the [`Transport`](formwork_wire::Transport) for real networks.
//!
//! [`HttpTransport`] has the address and the key of one server. It follows no redirects, so that the key is sent to no
//! other server, and it does not retry, because [`Run`](formwork_core::Run) does; a request whose key was refused is sent once
//! more only where [`Credentials`], such as a [`KeySource`], give a new key. Every failure is a
//! [`Fault`](formwork_core::Fault) that names the address, the time limit or the certificate concerned.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use formwork_http::{ConfigError, HttpTransport, Key};
//! use formwork_wire::{Auth, SharedTransport};
//!
//! fn transport() -> Result<SharedTransport, ConfigError> {
//!     let transport = HttpTransport::new("https://api.example.com/v1")?
//!         .with_key(Auth::BEARER, Key::from_env("EXAMPLE_API_KEY")?)?
//!         .with_header("x-team", "forms")?
//!         .with_idle_timeout(Duration::from_secs(30));
//!     Ok(Arc::new(transport))
//! }
//!
//! let error = transport().unwrap_err();
//! assert_eq!(error.to_string(), "the environment variable `EXAMPLE_API_KEY` is not set: it has to hold the API key");
//! ```
//!
//! # Classes of faults
//!
//! Retry policies repeat a call after [`Unreachable`](formwork_core::FaultKind::Unreachable) and
//! [`Timeout`](formwork_core::FaultKind::Timeout), and advance to the next target after
//! [`BadWire`](formwork_core::FaultKind::BadWire). The classes are chosen accordingly:
//!
//! | failure | class |
//! |---|---|
//! | name not found, connection refused, connection closed before or during the response | `Unreachable` |
//! | connection, head, next bytes or complete response not in time | `Timeout` |
//! | invalid certificate, no TLS where it was expected | `BadWire` |
//! | not HTTP, invalid encoding, body longer than the limit | `BadWire` |
//! | the request's path or headers are invalid | `BadRequest` |
//! | no Tokio runtime, no TLS on this machine | `Unsupported` |
//!
//! # Proxies
//!
//! `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` are used, in upper or lower case, unless the server is on this
//! machine (`localhost`, `127.0.0.0/8`, `::1`), which needs no proxy. [`HttpTransport::with_proxy`] overrides them.
//!
//! # TLS
//!
//! The transport uses rustls with ring and installs nothing for the process. It trusts the system's certificates, or
//! instead those of `SSL_CERT_FILE` and `SSL_CERT_DIR`, and those of [`HttpTransport::with_root_certificate`]. Certificates
//! that cannot be used are an error. On a machine without any, such as an empty container, it uses Mozilla's certificates
//! as of the build, and logs a `tracing` event.

#[cfg(feature = "aws")]
mod aws;
mod base;
mod body;
mod client;
mod credentials;
mod direct;
mod download;
mod error;
mod fault;
#[cfg(feature = "google")]
mod google;
mod header;
mod hold;
mod key;
mod key_source;
mod opened;
mod roots;
mod secrets;
mod settings;
mod trace;
mod transport;

#[cfg(feature = "aws")]
pub use aws::AwsCredentials;
pub use base::{is_loopback, is_same_server};
pub use credentials::Credentials;
pub use download::{DownloadError, MOST_REDIRECTS};
pub use error::ConfigError;
#[cfg(feature = "google")]
pub use google::GoogleCredentials;
pub use key::Key;
pub use key_source::KeySource;
pub use secrets::{keep_secrets, redact};
pub use trace::with_trace;
pub use transport::HttpTransport;
