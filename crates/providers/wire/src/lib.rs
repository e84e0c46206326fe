//! The common part of providers that use HTTP. The crate itself performs no IO.
//!
//! A provider has two halves. A [`Wire`] is a codec without network access: it encodes calls as requests, and decodes
//! responses into deltas and errors into faults. A [`Transport`] sends the requests. [`Http`] joins both into a
//! [`Provider`](formwork_core::Provider).
//!
//! To write a provider, implement [`Wire`]. A [`Reader`] reads streams and single documents with the types of [`lenient`] and a
//! [`Collector`]; [`decoder`] makes a decoder of it. [`RequestInfo`] describes the call and makes faults of errors. To test the
//! provider, record exchanges in a [`cassette`]. A provider with a batch API implements [`batch::BatchApi`].
//!
//! ```
//! use formwork_wire::{Framing, Sse};
//!
//! // Chunks may end anywhere, even inside a character.
//! let mut sse = Sse::default();
//! let mut data = Vec::new();
//! for chunk in ["data: {\"text\": \"L", "isb\"}\n\nda", "ta: [DONE]"] {
//!     sse.push(chunk.as_bytes());
//!     while let Some(message) = sse.next() {
//!         data.push(message?.into_owned());
//!     }
//! }
//! data.extend(sse.finish().transpose()?);
//! assert_eq!(data, [r#"{"text": "Lisb"}"#, "[DONE]"]);
//! # Ok::<(), formwork_core::Fault>(())
//! ```

pub mod batch;
pub mod cassette;
pub mod lenient;

mod answer;
mod client;
mod collector;
mod config;
mod decoder;
mod encode;
mod fault;
mod framing;
mod http_provider;
mod prefill;
mod request_info;
mod settings;
mod token;
mod tool_input;
mod transport;
mod wire;

pub use collector::Collector;
pub use config::{null_is_empty, yes};
pub use decoder::{Decoder, Deltas, Framed, Messages, Reader, Whole, decoder, is_event_stream};
pub use encode::{
    bad_request, folded, misplaced, post, safe_id, safe_name, schema_of, tools_of, unsupported,
};
pub use fault::{
    bad_wire, closed_early, error_in, fault_of, is_closed_early, is_error, media_type, quoted, rate_limits,
    request_id, retry_after,
};
pub use framing::{Framing, Ndjson, Sse};
pub use http_provider::Http;
pub use request_info::RequestInfo;
pub use settings::{Members, merge};
pub use token::TokenShape;
pub use tool_input::{CallPieces, CallShape, FunctionShape, ToolInput};
pub use transport::{Body, Chunks, SharedTransport, Transport};
pub use wire::{Auth, Wire};

pub use bytes::Bytes;
pub use http;
