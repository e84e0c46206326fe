//! The common part of providers that use HTTP. The crate itself performs no IO.
//!
//! A provider has two halves. A [`Wire`] is a codec without network access: it encodes calls as requests, and decodes
//! responses into deltas and errors into faults. A [`Transport`] sends the requests. [`Http`] joins both into a
//! [`Provider`](formwork_core::Provider).
//!
//! To write a provider, implement [`Wire`] with [`Framed`] (for streams) and [`Whole`] (for single documents) as decoders, and
//! [`fault_of`] for errors. To test it, record exchanges in a [`cassette`].
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

pub mod cassette;
pub mod lenient;

mod answer;
mod decoder;
mod fault;
mod framing;
mod http_provider;
mod prefill;
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
