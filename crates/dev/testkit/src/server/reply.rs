use std::time::Duration;

/// The response of a [`Server`](super::Server) to one request.
///
/// ```
/// use formwork_testkit::server::{End, Reply};
///
/// let replies = [
///     Reply::status(429).with_header("retry-after", "2"),
///     Reply::json(r#"{"age": 34}"#).cut_at(5, End::Reset),
///     Reply::silent(),
/// ];
/// # let _ = replies;
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Reply {
    /// The status; without one, only the pieces are sent.
    pub(super) head: Option<u16>,
    pub(super) headers: Vec<(String, String)>,
    /// The pieces of the body, each sent on its own.
    pub(super) pieces: Vec<Vec<u8>>,
    /// Whether the pieces are repeated without end.
    pub(super) endless: bool,
    /// The delay before each piece.
    pub(super) pause: Duration,
    pub(super) framing: Framing,
    /// The number of bytes of the body after which it is cut, and the way in which the response ends then.
    pub(super) cut: Option<(usize, End)>,
}

/// The way in which a response marks the end of its body (RFC 9112, section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// The header `content-length`: the default for bodies of one piece.
    Length,
    /// The header `transfer-encoding: chunked`, with a chunk for each piece: the default for bodies of several.
    Chunked,
    /// The end of the connection.
    Close,
}

/// The end of a response that is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The connection is closed regularly (FIN).
    Close,
    /// The connection is reset (RST).
    Reset,
    /// The connection stays open without further data.
    Stall,
}

impl Reply {
    /// Responds with a status without a body.
    pub fn status(status: u16) -> Self {
        Self {
            head: Some(status),
            headers: Vec::new(),
            pieces: vec![Vec::new()],
            endless: false,
            pause: Duration::ZERO,
            framing: Framing::Length,
            cut: None,
        }
    }

    /// Responds with status 200 and JSON.
    pub fn json(body: impl Into<Vec<u8>>) -> Self {
        Self::status(200).with_header("content-type", "application/json").with_body(body)
    }

    /// Responds with status 200 and an HTML page.
    pub fn html(body: impl Into<Vec<u8>>) -> Self {
        Self::status(200).with_header("content-type", "text/html; charset=utf-8").with_body(body)
    }

    /// Responds with status 200 and a chunked body, one chunk for each piece.
    pub fn pieces(pieces: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Self {
        Self::status(200).with_pieces(pieces)
    }

    /// Responds with status 200 and a body, one byte after each pause.
    pub fn slow(body: impl AsRef<[u8]>, pause: Duration) -> Self {
        Self::pieces(body.as_ref().iter().map(|byte| vec![*byte])).with_pause(pause)
    }

    /// Responds with status 200 and a chunked body that repeats this piece without end.
    pub fn endless(piece: impl Into<Vec<u8>>) -> Self {
        Self { endless: true, ..Self::pieces([piece]) }
    }

    /// Responds with status 302 and this address.
    pub fn redirect(to: impl Into<String>) -> Self {
        Self::status(302).with_header("location", to)
    }

    /// Sends these bytes instead of an HTTP response, and closes the connection.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self { head: None, framing: Framing::Close, ..Self::status(0) }.with_piece(bytes)
    }

    /// Never responds, and keeps the connection open.
    pub fn silent() -> Self {
        Self::raw([]).cut_at(0, End::Stall)
    }

    formwork_core::setters! {
        /// Sets the status (default: 200).
        pub fn with_status(Some(head): u16);

        /// Sets the way in which the end of the body is marked (default: its length).
        pub const fn with_framing(framing: Framing);

        /// Sets the delay before each piece of the body, in real time (default: none).
        pub const fn with_pause(pause: Duration);
    }

    /// Adds a header (default: none). `content-length` and `transfer-encoding` come from the framing.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body, in one piece and with its length (default: empty).
    pub fn with_body(self, body: impl Into<Vec<u8>>) -> Self {
        self.with_piece(body).with_framing(Framing::Length)
    }

    /// Sets the body, chunked (default: empty).
    pub fn with_pieces(mut self, pieces: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Self {
        self.pieces = pieces.into_iter().map(Into::into).collect();
        self.with_framing(Framing::Chunked)
    }

    /// Cuts the body after this many bytes, and ends the response in this way.
    pub const fn cut_at(mut self, bytes: usize, end: End) -> Self {
        self.cut = Some((bytes, end));
        self
    }

    fn with_piece(mut self, piece: impl Into<Vec<u8>>) -> Self {
        self.pieces = vec![piece.into()];
        self
    }
}
