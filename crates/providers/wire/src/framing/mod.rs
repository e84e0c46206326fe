//! Splits bodies into messages, regardless of where the chunks end.

mod lines;
mod ndjson;
mod sse;

use std::borrow::Cow;

use formwork_core::Fault;

pub use ndjson::Ndjson;
pub use sse::Sse;

/// Splits a body into messages.
///
/// The result must not depend on how the body is divided into chunks. [`Sse`] and [`Ndjson`] are the framings that model APIs
/// use.
///
/// ```
/// use formwork_core::Fault;
/// use formwork_wire::Framing;
///
/// /// Collects the messages of a whole body.
/// fn messages<F: Framing>(body: &[u8]) -> Result<Vec<String>, Fault> {
///     let mut framing = F::default();
///     framing.push(body);
///     let mut messages = Vec::new();
///     while let Some(message) = framing.next() {
///         messages.push(message?.into_owned());
///     }
///     messages.extend(framing.finish().transpose()?);
///     Ok(messages)
/// }
///
/// assert_eq!(messages::<formwork_wire::Ndjson>(b"1\n2\n")?, ["1", "2"]);
/// # Ok::<(), Fault>(())
/// ```
pub trait Framing: Default + Send {
    /// Adds the next bytes.
    fn push(&mut self, chunk: &[u8]);

    /// Returns the next complete message, or a [`Fault`] if its bytes are not UTF-8.
    fn next(&mut self) -> Option<Result<Cow<'_, str>, Fault>>;

    /// Handles the end of the body, and returns the message that it completes, if any. Call it after [`next`](Self::next)
    /// returned `None`.
    fn finish(&mut self) -> Option<Result<String, Fault>>;
}
