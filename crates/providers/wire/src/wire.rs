use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use formwork_core::{Call, Capabilities, Completion, Fault, Time};
use http::request::Request;
use http::response::Parts;

use crate::{Decoder, RequestInfo, Transport};

/// The request header that carries the API key.
///
/// ```
/// use formwork_wire::Auth;
///
/// let auth = Auth::BEARER;
/// assert_eq!(format!("{}: {}{}", auth.header, auth.prefix, "sk-1"), "authorization: Bearer sk-1");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Auth {
    /// The name of the header, in lower case: `authorization`, `x-api-key`.
    pub header: &'static str,
    /// The text before the key: `Bearer ` with its space, or the empty string.
    pub prefix: &'static str,
}

impl Auth {
    /// The header `Authorization: Bearer KEY` (RFC 6750, section 2.1).
    pub const BEARER: Self = Self { header: "authorization", prefix: "Bearer " };
}

/// The codec of one kind of server: it encodes calls and decodes responses, without network access.
///
/// The URIs of its requests are paths relative to a base URL. The [`Transport`] adds the base URL and the key.
/// [`Http`](crate::Http) turns a codec into a provider.
///
/// ```
/// use formwork_core::{Call, Capabilities, Completion, Fault, FaultKind};
/// use formwork_wire::http::{Request, response::Parts};
/// use formwork_wire::{Decoder, Deltas, Whole, Wire};
///
/// /// `POST /ask` with the last message as the body. The body of the response is the completion.
/// #[derive(Debug, Default)]
/// struct Ask(Capabilities);
///
/// impl Wire for Ask {
///     fn name(&self) -> &str {
///         "ask"
///     }
///     fn capabilities(&self) -> &Capabilities {
///         &self.0
///     }
///     fn encode(&self, call: &Call) -> Result<Request<bytes::Bytes>, Fault> {
///         let text = call.messages.last().map(|message| message.text()).unwrap_or_default();
///         let request = Request::post("/ask").body(text.into());
///         request.map_err(|error| Fault::new(FaultKind::BadRequest, error.to_string()))
///     }
///     fn decoder(&self, _: &Call, _: &Parts) -> Box<dyn Decoder> {
///         Box::new(Whole::new(|body: &[u8], out: &mut Deltas| {
///             out.extend(Completion::new(String::from_utf8_lossy(body)).into_deltas());
///             Ok(())
///         }))
///     }
/// }
/// ```
#[async_trait]
pub trait Wire: Send + Sync + fmt::Debug + 'static {
    /// Returns the name of the provider in messages, traces and the ledger.
    fn name(&self) -> &str;

    /// Returns the capabilities of servers of this kind.
    fn capabilities(&self) -> &Capabilities;

    /// Returns the HTTP request for a call. Its URI is only a path, for example `/chat/completions`.
    ///
    /// # Errors
    /// [`FaultKind::BadRequest`](formwork_core::FaultKind) or [`FaultKind::Unsupported`](formwork_core::FaultKind) if the
    /// protocol cannot express the call.
    fn encode(&self, call: &Call) -> Result<Request<Bytes>, Fault>;

    /// Returns the decoder for the body of a successful response.
    fn decoder(&self, call: &Call, head: &Parts) -> Box<dyn Decoder>;

    /// Returns the facts of a call that its response and its errors are read with (default: no protocol, model or tool).
    fn request_info(&self, call: &Call) -> RequestInfo {
        RequestInfo::new("", "", call)
    }

    /// Returns the fault for a response with an error status (default: [`RequestInfo::fault`]). `body` is the beginning of the
    /// body; dates are compared with `now`.
    fn fault(&self, call: &Call, head: &Parts, body: &[u8], now: Time) -> Fault {
        self.request_info(call).fault(head, body, now)
    }

    /// Returns the completion in a response with an error status, if it contains one (default: `None`, so that the response is
    /// a [`fault`](Self::fault)). Some servers report a model's text as an error if it violates the schema or if a content
    /// filter stopped it.
    fn rescue(&self, _call: &Call, _head: &Parts, _body: &[u8]) -> Option<Completion> {
        None
    }

    /// Returns the fault for a call without a response (default: the transport's fault). A connection that a crashing server
    /// closed is recognized by [`is_closed_early`](crate::is_closed_early).
    fn transport_fault(&self, _call: &Call, fault: Fault) -> Fault {
        fault
    }

    /// Requests the capabilities from the server (default: returns [`capabilities`](Self::capabilities)).
    ///
    /// # Errors
    /// A [`Fault`] if the server does not respond.
    async fn probe(&self, _transport: &dyn Transport) -> Result<Capabilities, Fault> {
        Ok(self.capabilities().clone())
    }
}
