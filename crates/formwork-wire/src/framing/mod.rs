//! Bytes into messages, wherever the chunks end.

mod lines;
mod ndjson;
mod sse;

use formwork_core::Fault;

pub use ndjson::Ndjson;
pub use sse::Sse;

/// Cuts a body into messages.
///
/// How the body was cut into chunks makes no difference.
pub trait Framing: Default + Send {
    /// Takes the next bytes.
    fn push(&mut self, chunk: &[u8]);

    /// The next message that is there as a whole.
    fn next(&mut self) -> Option<Result<String, Fault>>;

    /// Takes the end of the body: the message that it ends, if there is one. Call it after [`next`](Self::next) has
    /// nothing more.
    fn finish(&mut self) -> Option<Result<String, Fault>>;
}
