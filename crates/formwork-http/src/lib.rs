//! Sends Formwork's requests over HTTP: the one [`Transport`](formwork_wire::Transport) that touches the network.
//!
//! [`HttpTransport`] knows one server's address and its key. It never follows redirects, so that a key goes nowhere
//! else; it never retries, because [`Run`](formwork_core::Run) does, but for a key of a [`KeyCommand`] that was refused; and whatever goes wrong is a
//! [`Fault`](formwork_core::Fault) that says which address, which time limit or which certificate it was.
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
//! # Which fault is what
//!
//! Policies repeat a call after [`Unreachable`](formwork_core::FaultKind::Unreachable) and
//! [`Timeout`](formwork_core::FaultKind::Timeout), and turn to the next target after
//! [`BadWire`](formwork_core::FaultKind::BadWire). The kinds are chosen for that:
//!
//! | what happened | kind |
//! |---|---|
//! | name not found, connection refused, connection closed before or within the answer | `Unreachable` |
//! | no connection, no head of the answer, no next bytes, or no whole answer in time | `Timeout` |
//! | certificate not valid, no TLS where it was expected | `BadWire` |
//! | no HTTP, an encoding that is broken, a body that is longer than the limit | `BadWire` |
//! | the request's path or headers are none | `BadRequest` |
//! | no Tokio runtime, no TLS on this machine | `Unsupported` |
//!
//! # Proxies
//!
//! `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` are honoured, in capitals or not, unless the server is on
//! this machine (`localhost`, `127.0.0.0/8`, `::1`): there is no proxy on the way to it.
//! [`HttpTransport::with_proxy`] names another one.
//!
//! # TLS
//!
//! rustls with ring, for this transport alone: nothing is installed for the process. Trusted are the system's certificates,
//! or in their place those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name, and those of
//! [`HttpTransport::with_root_certificate`]. Certificates that are there and cannot be used are an error. On a machine that
//! has none at all, as in an empty container, Mozilla's are used as of the build, and an event of `tracing` says so.

mod base;
mod body;
mod client;
mod download;
mod error;
mod fault;
mod key;
mod key_command;
mod opened;
mod roots;
mod secrets;
mod settings;
mod transport;

pub use download::{DownloadError, MOST_REDIRECTS};
pub use error::ConfigError;
pub use key::Key;
pub use key_command::KeyCommand;
pub use transport::HttpTransport;
