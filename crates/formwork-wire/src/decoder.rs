use std::collections::VecDeque;

use bytes::Bytes;
use formwork_core::{Delta, Fault, FaultKind};
use serde::de::IgnoredAny;

use crate::Framing;

/// Pieces of an answer, in order.
pub type Deltas = VecDeque<Delta>;

/// Reads the body of one response.
///
/// The last piece that it brings is [`Delta::End`]; what comes after that is not read.
pub trait Decoder: Send {
    /// Takes the next bytes, which may end anywhere.
    ///
    /// # Errors
    /// A [`Fault`], if they are not the protocol or tell of an error.
    fn push(&mut self, chunk: &[u8], out: &mut Deltas) -> Result<(), Fault>;

    /// The same for bytes that may be kept; by default they are not.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    fn push_bytes(&mut self, chunk: Bytes, out: &mut Deltas) -> Result<(), Fault> {
        self.push(&chunk, out)
    }

    /// Takes the end of the body.
    ///
    /// # Errors
    /// A [`Fault`], if it must not end here.
    fn end(&mut self, out: &mut Deltas) -> Result<(), Fault>;
}

/// A body that is kept until it is whole. One that comes as one chunk, as short ones do, is not copied.
#[derive(Debug, Default)]
struct Collected {
    first: Bytes,
    /// All of it, if there is more than one chunk.
    more: Vec<u8>,
}

impl Collected {
    /// Nothing yet.
    const fn new() -> Self {
        Self { first: Bytes::new(), more: Vec::new() }
    }

    /// Reads these bytes as well.
    fn push(&mut self, chunk: &[u8]) {
        if self.more.is_empty() {
            self.more.extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.more.extend_from_slice(chunk);
    }

    /// Reads these bytes as well, which are kept if they are the first.
    fn push_bytes(&mut self, chunk: Bytes) {
        if self.as_slice().is_empty() {
            self.first = chunk;
        } else {
            self.push(&chunk);
        }
    }

    /// All of it.
    fn as_slice(&self) -> &[u8] {
        if self.more.is_empty() { &self.first } else { &self.more }
    }
}

/// Reads a body that is one document, when all of it is there.
///
/// ```
/// use formwork_core::{Completion, Delta};
/// use formwork_wire::{Decoder, Deltas, Whole};
///
/// let mut decoder = Whole::new(|body: &[u8], out: &mut Deltas| {
///     out.extend(Completion::new(String::from_utf8_lossy(body)).into_deltas());
///     Ok(())
/// });
/// let mut out = Deltas::new();
/// decoder.push(b"{\"a\": ", &mut out)?;
/// decoder.push(b"1}", &mut out)?;
/// decoder.end(&mut out)?;
/// assert_eq!(out[0], Delta::Text("{\"a\": 1}".to_owned()));
/// # Ok::<(), formwork_core::Fault>(())
/// ```
pub struct Whole<F> {
    body: Collected,
    read: F,
}

impl<F: FnMut(&[u8], &mut Deltas) -> Result<(), Fault> + Send> Whole<F> {
    /// Returns a decoder that gives the body to this function, which writes the pieces of the answer.
    pub const fn new(read: F) -> Self {
        Self { body: Collected::new(), read }
    }
}

impl<F: FnMut(&[u8], &mut Deltas) -> Result<(), Fault> + Send> Decoder for Whole<F> {
    fn push(&mut self, chunk: &[u8], _: &mut Deltas) -> Result<(), Fault> {
        self.body.push(chunk);
        Ok(())
    }

    fn push_bytes(&mut self, chunk: Bytes, _: &mut Deltas) -> Result<(), Fault> {
        self.body.push_bytes(chunk);
        Ok(())
    }

    fn end(&mut self, out: &mut Deltas) -> Result<(), Fault> {
        (self.read)(self.body.as_slice(), out)
    }
}

/// Reads the messages of a body that has many, each a text of its own.
pub trait Messages: Send {
    /// Takes the next message.
    ///
    /// # Errors
    /// A [`Fault`], if it is not the protocol or tells of an error.
    fn message(&mut self, text: &str, out: &mut Deltas) -> Result<(), Fault>;

    /// Takes the end of the body, where no [`Delta::End`] came before; by default the answer was
    /// [cut off](Fault::cut_off), which is transient.
    ///
    /// # Errors
    /// A [`Fault`], if it must not end here.
    fn end(&mut self, _out: &mut Deltas) -> Result<(), Fault> {
        Err(Fault::cut_off("its end marker is missing"))
    }
}

/// Reads a body of messages.
///
/// A body that ends early is an answer that was cut off, which is transient. [`FaultKind::BadWire`] is for what is
/// malformed.
pub struct Framed<F, M> {
    framing: F,
    messages: M,
    /// Whether a message was read: the server speaks the protocol.
    has_message: bool,
}

impl<F: Framing, M: Messages> Framed<F, M> {
    /// Messages framed so.
    pub fn new(messages: M) -> Self {
        Self { framing: F::default(), messages, has_message: false }
    }
}

impl<F: Framing, M: Messages> Decoder for Framed<F, M> {
    fn push(&mut self, chunk: &[u8], out: &mut Deltas) -> Result<(), Fault> {
        self.framing.push(chunk);
        while let Some(message) = self.framing.next() {
            self.messages.message(&message?, out)?;
            self.has_message = true;
            if matches!(out.back(), Some(Delta::End { .. })) {
                break;
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Deltas) -> Result<(), Fault> {
        if let Some(message) = self.framing.finish() {
            // Servers leave out the last line end, so that this may be a whole message, or the beginning of one.
            let message = message?;
            match self.messages.message(&message, out) {
                Err(fault)
                    if fault.kind == FaultKind::BadWire && (self.has_message || is_cut_json(&message)) =>
                {
                    return Err(Fault::cut_off("it ends within a message"));
                }
                taken => taken?,
            }
        }
        if matches!(out.back(), Some(Delta::End { .. })) { Ok(()) } else { self.messages.end(out) }
    }
}

/// Whether a text could be the beginning of a JSON document and is none yet.
fn is_cut_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_err_and(|error| error.is_eof())
}
