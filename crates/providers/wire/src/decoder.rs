use std::collections::VecDeque;

use bytes::Bytes;
use formwork_core::{Delta, Fault, FaultKind, Usage};
use http::response::Parts;
use serde::de::IgnoredAny;

use crate::{Framing, media_type};

/// The decoded deltas of a response, in order.
///
/// ```
/// use formwork_core::Completion;
/// use formwork_wire::Deltas;
///
/// let mut deltas = Deltas::new();
/// deltas.extend(Completion::new("{}").into_deltas());
/// let mut completion = Completion::new("");
/// for delta in deltas {
///     completion.push(delta);
/// }
/// assert_eq!(completion.text, "{}");
/// ```
pub type Deltas = VecDeque<Delta>;

/// Decodes the body of one response into deltas.
///
/// The last delta is [`Delta::End`]; bytes after it are ignored. [`Whole`] decodes a single document, [`Framed`] a stream of
/// messages.
///
/// ```
/// use formwork_core::{Completion, Fault};
/// use formwork_wire::{Decoder, Deltas};
///
/// /// Uses the whole body as the text of the completion.
/// struct Plain(Vec<u8>);
///
/// impl Decoder for Plain {
///     fn push(&mut self, chunk: &[u8], _: &mut Deltas) -> Result<(), Fault> {
///         self.0.extend_from_slice(chunk);
///         Ok(())
///     }
///     fn end(&mut self, out: &mut Deltas) -> Result<(), Fault> {
///         out.extend(Completion::new(String::from_utf8_lossy(&self.0)).into_deltas());
///         Ok(())
///     }
/// }
/// ```
pub trait Decoder: Send {
    /// Decodes the next bytes, which may end anywhere.
    ///
    /// # Errors
    /// A [`Fault`] if the bytes violate the protocol or report an error.
    fn push(&mut self, chunk: &[u8], out: &mut Deltas) -> Result<(), Fault>;

    /// Decodes the next bytes, which the decoder may keep without copying (default: calls [`push`](Self::push)).
    ///
    /// # Errors
    /// The errors of [`push`](Self::push).
    fn push_bytes(&mut self, chunk: Bytes, out: &mut Deltas) -> Result<(), Fault> {
        self.push(&chunk, out)
    }

    /// Handles the end of the body.
    ///
    /// # Errors
    /// A [`Fault`] if the body is incomplete.
    fn end(&mut self, out: &mut Deltas) -> Result<(), Fault>;
}

/// A body that is buffered until it is complete. A body of one chunk (the usual case of a short one) is not copied.
#[derive(Debug, Default)]
struct Collected {
    first: Bytes,
    /// All bytes, if there is more than one chunk.
    more: Vec<u8>,
}

impl Collected {
    /// Creates an empty body.
    const fn new() -> Self {
        Self { first: Bytes::new(), more: Vec::new() }
    }

    /// Appends bytes.
    fn push(&mut self, chunk: &[u8]) {
        if self.more.is_empty() {
            self.more.extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.more.extend_from_slice(chunk);
    }

    /// Appends bytes, without copying them if they are the first.
    fn push_bytes(&mut self, chunk: Bytes) {
        if self.as_slice().is_empty() {
            self.first = chunk;
        } else {
            self.push(&chunk);
        }
    }

    /// Returns all bytes.
    fn as_slice(&self) -> &[u8] {
        if self.more.is_empty() { &self.first } else { &self.more }
    }
}

/// Decodes a body that is a single document, after its end.
///
/// JSON that ends early is the transient fault [`cut_off`](Fault::cut_off); an empty body is not.
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
    /// Creates a decoder that passes the complete body to `read`, which appends the deltas to its second argument.
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
        let body = self.body.as_slice();
        match (self.read)(body, out) {
            // A server without `Content-Length` ends a body by closing the connection, also if it crashes within the body.
            Err(fault) if fault.kind == FaultKind::BadWire && is_cut_json(body) => {
                Err(Fault::cut_off("the connection was closed within the response"))
            }
            read => read,
        }
    }
}

/// Decodes the messages of a stream, for example the data of server-sent events.
///
/// ```
/// use formwork_core::{Delta, Fault};
/// use formwork_wire::{Deltas, Messages};
///
/// /// Every message is a piece of text.
/// struct Text;
///
/// impl Messages for Text {
///     fn message(&mut self, text: &str, out: &mut Deltas) -> Result<(), Fault> {
///         out.push_back(Delta::Text(text.to_owned()));
///         Ok(())
///     }
/// }
/// ```
pub trait Messages: Send {
    /// Decodes the next message.
    ///
    /// # Errors
    /// A [`Fault`] if the message violates the protocol or reports an error.
    fn message(&mut self, text: &str, out: &mut Deltas) -> Result<(), Fault>;

    /// Returns the tokens that the server has reported so far (default: none). Those of the call are in [`Delta::End`].
    fn usage(&self) -> Option<Usage> {
        None
    }

    /// Handles the end of a body that had no [`Delta::End`] (default: returns the transient fault
    /// [`cut_off`](Fault::cut_off)).
    ///
    /// # Errors
    /// A [`Fault`] if the body is incomplete.
    fn end(&mut self, _out: &mut Deltas) -> Result<(), Fault> {
        Err(Fault::cut_off("its end marker is missing"))
    }
}

/// Decodes a stream of messages that a [`Framing`] separates.
///
/// A stream that ends early is the transient fault [`cut_off`](Fault::cut_off). A malformed message is a
/// [`FaultKind::BadWire`].
///
/// ```
/// use formwork_core::{Completion, Delta, Fault};
/// use formwork_wire::{Decoder, Deltas, Framed, Messages, Ndjson};
///
/// /// Lines of text, the last of which is `end`.
/// struct Lines;
///
/// impl Messages for Lines {
///     fn message(&mut self, text: &str, out: &mut Deltas) -> Result<(), Fault> {
///         match text {
///             "end" => out.extend(Completion::new("").into_deltas()),
///             text => out.push_back(Delta::Text(text.to_owned())),
///         }
///         Ok(())
///     }
/// }
///
/// let (mut decoder, mut out) = (Framed::<Ndjson, _>::new(Lines), Deltas::new());
/// decoder.push(b"Lisbon\nen", &mut out)?;
/// assert_eq!(out, [Delta::Text("Lisbon".to_owned())]);
/// # Ok::<(), Fault>(())
/// ```
pub struct Framed<F, M> {
    framing: F,
    messages: M,
    /// Whether a message was decoded, which shows that the server uses the protocol.
    has_message: bool,
    /// The tokens that were passed on.
    usage: Option<Usage>,
}

impl<F: Framing, M: Messages> Framed<F, M> {
    /// Creates a decoder that passes each message to `messages`.
    pub fn new(messages: M) -> Self {
        Self { framing: F::default(), messages, has_message: false, usage: None }
    }
}

impl<F: Framing, M: Messages> Decoder for Framed<F, M> {
    fn push(&mut self, chunk: &[u8], out: &mut Deltas) -> Result<(), Fault> {
        self.framing.push(chunk);
        while let Some(message) = self.framing.next() {
            let taken = self.messages.message(&message?, out);
            self.has_message = true;
            if matches!(out.back(), Some(Delta::End(_))) {
                return taken;
            }
            // An error may end an answer whose tokens are reported beside it.
            let usage = self.messages.usage();
            if usage != self.usage {
                self.usage = usage;
                out.extend(usage.map(Delta::Usage));
            }
            taken?;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Deltas) -> Result<(), Fault> {
        if let Some(message) = self.framing.finish() {
            // Some servers omit the last line end, so the rest may be a complete message or the beginning of one.
            let message = message?;
            match self.messages.message(&message, out) {
                Err(fault)
                    if fault.kind == FaultKind::BadWire
                        && (self.has_message
                            || message.trim().is_empty()
                            || is_cut_json(message.as_bytes())) =>
                {
                    return Err(Fault::cut_off("it ends within a message"));
                }
                taken => taken?,
            }
        }
        if matches!(out.back(), Some(Delta::End(_))) { Ok(()) } else { self.messages.end(out) }
    }
}

/// Returns whether a body is the incomplete beginning of a JSON document, and not empty.
fn is_cut_json(body: &[u8]) -> bool {
    let is_cut = || serde_json::from_slice::<IgnoredAny>(body).is_err_and(|error| error.is_eof());
    !body.trim_ascii().is_empty() && is_cut()
}

/// Reads both forms of a response: the messages of a stream, and a single document.
///
/// ```
/// use formwork_core::{Completion, Fault};
/// use formwork_wire::{Deltas, Messages, Reader, Sse};
///
/// struct Plain;
///
/// impl Messages for Plain {
///     fn message(&mut self, text: &str, out: &mut Deltas) -> Result<(), Fault> {
///         self.document(text.as_bytes(), out)
///     }
/// }
///
/// impl Reader for Plain {
///     fn document(&mut self, body: &[u8], out: &mut Deltas) -> Result<(), Fault> {
///         out.extend(Completion::new(String::from_utf8_lossy(body)).into_deltas());
///         Ok(())
///     }
/// }
///
/// let (mut decoder, mut out) = (formwork_wire::decoder::<Sse>(Plain, true), Deltas::new());
/// decoder.push(b"data: Lisbon\n\n", &mut out)?;
/// assert_eq!(out.len(), 2);
/// # Ok::<(), Fault>(())
/// ```
pub trait Reader: Messages + 'static {
    /// Decodes a response that is one document.
    ///
    /// # Errors
    /// A [`Fault`] if the document violates the protocol or reports an error.
    fn document(&mut self, body: &[u8], out: &mut Deltas) -> Result<(), Fault>;
}

/// Returns whether the media type of a response is that of server-sent events.
///
/// ```
/// use formwork_wire::http::Response;
///
/// let (head, ()) = Response::builder().header("content-type", "text/event-stream; charset=utf-8").body(())?.into_parts();
/// assert!(formwork_wire::is_event_stream(&head));
/// # Ok::<(), formwork_wire::http::Error>(())
/// ```
pub fn is_event_stream(head: &Parts) -> bool {
    media_type(head).is_some_and(|name| name.eq_ignore_ascii_case("text/event-stream"))
}

/// Returns the decoder of a response: a stream whose messages a framing separates, or a document.
pub fn decoder<F: Framing + 'static>(mut reader: impl Reader, is_stream: bool) -> Box<dyn Decoder> {
    if is_stream {
        Box::new(Framed::<F, _>::new(reader))
    } else {
        Box::new(Whole::new(move |body: &[u8], out: &mut Deltas| reader.document(body, out)))
    }
}
