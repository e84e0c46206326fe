//! The common part of providers that use HTTP, without any IO of its own.
//!
//! A provider is a [`Wire`], a pure codec that encodes calls into requests and decodes bytes into pieces of an answer and
//! errors into faults. A [`Transport`] sends the requests. [`Http`] combines both into a
//! [`Provider`](formwork_core::Provider).
//!
//! ```
//! use std::collections::VecDeque;
//!
//! use formwork_core::Delta;
//! use formwork_wire::{Framing, Sse};
//!
//! // Chunks may end anywhere, inside of a character too.
//! let mut sse = Sse::default();
//! let mut data = Vec::new();
//! for chunk in ["data: {\"text\": \"L", "isb\"}\n\nda", "ta: [DONE]"] {
//!     sse.push(chunk.as_bytes());
//!     while let Some(message) = sse.next() {
//!         data.push(message?);
//!     }
//! }
//! data.extend(sse.finish().transpose()?);
//! assert_eq!(data, [r#"{"text": "Lisb"}"#, "[DONE]"]);
//! # let _: VecDeque<Delta> = VecDeque::new();
//! # Ok::<(), formwork_core::Fault>(())
//! ```

pub mod cassette;

mod answer;
mod decoder;
mod fault;
mod framing;
mod http_provider;
mod transport;
mod wire;

pub use decoder::{Decoder, Deltas, Framed, Messages, Whole};
pub use fault::{
    closed_early, error_in, fault_of, is_closed_early, media_type, quoted, request_id, retry_after,
};
pub use framing::{Framing, Ndjson, Sse};
pub use http_provider::Http;
pub use transport::{Body, Chunks, SharedTransport, Transport};
pub use wire::{Auth, Wire};

pub use bytes::Bytes;
pub use http;
