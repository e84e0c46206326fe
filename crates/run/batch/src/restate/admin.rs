//! Restate's administration: its version and its deployments.

use std::time::Duration;

use formwork_core::Fault;
use formwork_wire::SharedTransport;
use serde_json::{Value, json};

use super::ingress::Client;

/// The oldest version of Restate that the workers are tested with.
const OLDEST: (u64, u64) = (1, 7);

/// The time that an answer may take.
const LIMIT: Duration = Duration::from_secs(30);

/// A client of the admin API of a Restate server.
///
/// ```
/// use formwork_batch::{Admin, AdminError};
/// use formwork_wire::SharedTransport;
///
/// /// Returns the address of the ingress. `transport` sends to Restate's administration.
/// async fn ingress(transport: SharedTransport) -> Result<Option<String>, AdminError> {
///     let admin = Admin::new(transport, "http://127.0.0.1:9070");
///     let (version, ingress) = admin.version().await?;
///     println!("Restate {version}");
///     Ok(ingress)
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Admin {
    client: Client,
    url: String,
}

/// An error of Restate's admin API. Each message says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// The server does not respond.
    #[error(
        "Restate does not answer at {url}: {message}; start it (`cargo xtask servers up restate`, or restate-server), or name the address of its administration with --register"
    )]
    Unreachable {
        /// The address.
        url: String,
        /// The reason.
        message: String,
    },
    /// Something else answers.
    #[error(
        "{0} is not the administration of Restate: name it with --register, for example http://127.0.0.1:9070 (8080 is the ingress)"
    )]
    NotRestate(String),
    /// The server is too old.
    #[error("Restate {version} at {url} is older than {}.{}: update the server", OLDEST.0, OLDEST.1)]
    TooOld {
        /// The address.
        url: String,
        /// Its version.
        version: String,
    },
    /// Restate does not take the worker.
    #[error("Restate at {url} does not register the worker at {advertised}: {message}; {remedy}")]
    NotRegistered {
        /// The address of the administration.
        url: String,
        /// The address of the worker.
        advertised: String,
        /// Restate's message.
        message: String,
        /// The remedy.
        remedy: &'static str,
    },
}

impl Admin {
    /// Creates a client; `url` is the address that `transport` sends to, for messages.
    pub fn new(transport: SharedTransport, url: impl Into<String>) -> Self {
        Self { client: Client(transport), url: url.into() }
    }

    fn unreachable(&self, fault: &Fault) -> AdminError {
        AdminError::Unreachable { url: self.url.clone(), message: fault.message.clone() }
    }

    /// Returns the version of the server, and the address of its ingress if the server reports it.
    ///
    /// # Errors
    /// [`AdminError::Unreachable`], [`AdminError::NotRestate`] or [`AdminError::TooOld`].
    pub async fn version(&self) -> Result<(String, Option<String>), AdminError> {
        let response = self.client.get("/version", LIMIT).await.map_err(|fault| self.unreachable(&fault))?;
        let not_restate = || AdminError::NotRestate(self.url.clone());
        let reply: Value = response.read().ok_or_else(not_restate)?;
        let version = reply.get("version").and_then(Value::as_str).ok_or_else(not_restate)?.to_owned();
        let mut numbers = version.split(['.', '-']).map(|number| number.parse().unwrap_or(0));
        let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        if found < OLDEST {
            return Err(AdminError::TooOld { url: self.url.clone(), version });
        }
        let ingress = reply.get("ingress_endpoint").and_then(Value::as_str).map(str::to_owned);
        Ok((version, ingress))
    }

    /// Registers the workers behind an address. Registering the same services again has no effect.
    ///
    /// # Errors
    /// [`AdminError::NotRegistered`] or [`AdminError::Unreachable`].
    pub async fn register(&self, advertised: &str) -> Result<(), AdminError> {
        let body = json!({"uri": advertised, "force": false}).to_string();
        let response = self.client.post("/deployments", None, body, Some(LIMIT)).await;
        let response = response.map_err(|fault| self.unreachable(&fault))?;
        if response.status.is_success() {
            return Ok(());
        }
        let remedy = match response.status.as_u16() {
            409 => {
                "start workers of another version behind an address of their own, and keep the old ones until their rows are done"
            }
            _ => "name an address with --advertise at which Restate reaches the worker over HTTP/2",
        };
        let (url, advertised) = (self.url.clone(), advertised.to_owned());
        Err(AdminError::NotRegistered { url, advertised, message: response.message(), remedy })
    }
}
