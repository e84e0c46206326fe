use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use formwork_core::{Call, Capabilities, Completion, Fault, Time};
use http::request::Request;
use http::response::Parts;

use crate::{Decoder, Transport, fault_of};

/// How a server is told the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Auth {
    /// The header, in lower case: `authorization`, `x-api-key`.
    pub header: &'static str,
    /// The text before the key in it: `Bearer ` with its space, or nothing.
    pub prefix: &'static str,
}

impl Auth {
    /// `Authorization: Bearer …` (RFC 6750, section 2.1).
    pub const BEARER: Self = Self { header: "authorization", prefix: "Bearer " };
}

/// The protocol of one kind of server: a pure codec.
///
/// It knows neither keys nor addresses: the paths of its requests are relative to a base URL that the [`Transport`]
/// knows.
#[async_trait]
pub trait Wire: Send + Sync + fmt::Debug + 'static {
    /// Returns its name in messages, traces and the ledger.
    fn name(&self) -> &str;

    /// Returns its promises.
    fn capabilities(&self) -> &Capabilities;

    /// The request for a call; its URI is a path alone, such as `/chat/completions`.
    ///
    /// # Errors
    /// [`FaultKind::BadRequest`](formwork_core::FaultKind) or
    /// [`FaultKind::Unsupported`](formwork_core::FaultKind), if the protocol cannot say it.
    fn encode(&self, call: &Call) -> Result<Request<Bytes>, Fault>;

    /// Returns the decoder of a successful response's body.
    fn decoder(&self, call: &Call, head: &Parts) -> Box<dyn Decoder>;

    /// Returns the fault that a response with an error status means. `body` is the beginning of the body; `now` is for dates.
    fn fault(&self, call: &Call, head: &Parts, body: &[u8], now: Time) -> Fault {
        fault_of(head, body, call.schema().is_some(), now)
    }

    /// The answer in a response with an error status: some servers report what a model said so, if it does not fit the
    /// schema or a filter stopped it. By default there is none, and the response is a [`fault`](Self::fault).
    fn rescue(&self, _call: &Call, _head: &Parts, _body: &[u8]) -> Option<Completion> {
        None
    }

    /// Returns the fault that no response at all means; by default what the transport says. A server that a request
    /// brings down answers with a closed connection, see [`is_closed_early`](crate::is_closed_early).
    fn transport_fault(&self, _call: &Call, fault: Fault) -> Fault {
        fault
    }

    /// Asks the server what it can do; by default what is promised anyway.
    ///
    /// # Errors
    /// A [`Fault`], if it cannot be asked.
    async fn probe(&self, _transport: &dyn Transport) -> Result<Capabilities, Fault> {
        Ok(self.capabilities().clone())
    }
}
