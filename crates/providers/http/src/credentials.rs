//! The authorisation of requests.

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use formwork_core::Fault;
use http::HeaderMap;
use http::request::Parts;

/// The authorisation of each request of a transport: a key that is renewed, a signature, an access token.
///
/// ```
/// use formwork_core::Fault;
/// use formwork_http::{Credentials, HttpTransport};
/// use formwork_wire::Bytes;
/// use formwork_wire::http::{HeaderMap, HeaderValue, request::Parts};
///
/// /// Names the length of the body, as a signature would.
/// #[derive(Debug)]
/// struct Counted;
///
/// #[async_trait::async_trait]
/// impl Credentials for Counted {
///     async fn authorize(&self, request: &mut Parts, body: &Bytes, _: Option<&HeaderMap>) -> Result<(), Fault> {
///         request.headers.insert("x-length", HeaderValue::from(body.len()));
///         Ok(())
///     }
/// }
///
/// let transport = HttpTransport::new("https://api.example.com")?.with_credentials(Counted);
/// # let _ = transport;
/// # Ok::<(), formwork_http::ConfigError>(())
/// ```
#[async_trait]
pub trait Credentials: Send + Sync + fmt::Debug {
    /// Adds headers to a request. Its URI is the whole address, and its headers are those that are sent, apart from headers of
    /// the connection. `refused` has the headers of the same request that the server answered with 401 (Unauthorized).
    ///
    /// # Errors
    /// A [`Fault`], usually of the class [`Auth`](formwork_core::FaultKind::Auth), that says why there are no credentials. The request
    /// is not sent.
    async fn authorize(
        &self,
        request: &mut Parts,
        body: &Bytes,
        refused: Option<&HeaderMap>,
    ) -> Result<(), Fault>;

    /// Returns whether a request that was answered with 401 is authorised and sent a second time (default: `false`).
    fn can_renew(&self) -> bool {
        false
    }

    /// Returns a text without the secrets that were sent (default: the text unchanged).
    fn redact(&self, text: &str) -> String {
        text.to_owned()
    }
}
