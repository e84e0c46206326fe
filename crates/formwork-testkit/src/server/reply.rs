use std::time::Duration;

/// The act of a [`Server`](super::Server) for one request.
#[derive(Debug, Clone)]
pub struct Reply {
    pub(super) head: Head,
    pub(super) headers: Vec<(String, String)>,
    /// The pieces of the body, each sent on its own.
    pub(super) pieces: Vec<Vec<u8>>,
    /// Sends the pieces again and again.
    pub(super) endless: bool,
    /// Before each piece.
    pub(super) pause: Duration,
    pub(super) framing: Framing,
    /// After how many bytes of the body it ends otherwise than it should, and how.
    pub(super) cut: Option<(usize, End)>,
}

/// The bytes before a body.
#[derive(Debug, Clone)]
pub(super) enum Head {
    /// A status line and headers.
    Http(u16),
    /// Nothing: the body is all that is sent.
    None,
}

/// How a body says where it ends (RFC 9112, section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// By `content-length`: the default of bodies of one piece.
    Length,
    /// By `transfer-encoding: chunked`, a chunk for each piece: the default of bodies of several.
    Chunked,
    /// By the end of the connection.
    Close,
}

/// How a reply ends that is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The connection is closed in good order (FIN).
    Close,
    /// The connection is reset (RST).
    Reset,
    /// The connection stays open, and nothing more comes.
    Stall,
}

impl Reply {
    /// A status without a body.
    pub fn status(status: u16) -> Self {
        Self {
            head: Head::Http(status),
            headers: Vec::new(),
            pieces: vec![Vec::new()],
            endless: false,
            pause: Duration::ZERO,
            framing: Framing::Length,
            cut: None,
        }
    }

    /// 200 with JSON.
    pub fn json(body: impl Into<Vec<u8>>) -> Self {
        Self::status(200).with_header("content-type", "application/json").with_body(body)
    }

    /// 200 with a web page.
    pub fn html(body: impl Into<Vec<u8>>) -> Self {
        Self::status(200).with_header("content-type", "text/html; charset=utf-8").with_body(body)
    }

    /// 200 with a body in pieces, chunked.
    pub fn pieces(pieces: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Self {
        Self::status(200).with_pieces(pieces)
    }

    /// 200 with a body of which one byte comes after each pause.
    pub fn slow(body: impl AsRef<[u8]>, pause: Duration) -> Self {
        Self::pieces(body.as_ref().iter().map(|byte| vec![*byte])).with_pause(pause)
    }

    /// 200 with a body that repeats this piece for ever, chunked.
    pub fn endless(piece: impl Into<Vec<u8>>) -> Self {
        Self { endless: true, ..Self::pieces([piece]) }
    }

    /// 302 to this address.
    pub fn redirect(to: impl Into<String>) -> Self {
        Self::status(302).with_header("location", to)
    }

    /// These bytes instead of HTTP; then the connection is closed. Without bytes it hangs up.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self { head: Head::None, framing: Framing::Close, ..Self::status(0) }.with_piece(bytes)
    }

    /// Never answers, and keeps the connection.
    pub fn silent() -> Self {
        Self::raw([]).cut_at(0, End::Stall)
    }

    /// Sets the status (default: 200).
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.head = Head::Http(status);
        self
    }

    /// Adds a header (default: none). `content-length` and `transfer-encoding` come from the framing.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body, in one piece and with its length (default: empty).
    #[must_use]
    pub fn with_body(self, body: impl Into<Vec<u8>>) -> Self {
        self.with_piece(body).with_framing(Framing::Length)
    }

    /// Sets the body, chunked (default: empty).
    #[must_use]
    pub fn with_pieces(mut self, pieces: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Self {
        self.pieces = pieces.into_iter().map(Into::into).collect();
        self.with_framing(Framing::Chunked)
    }

    /// Sets another way to say where the body ends (default: its length).
    #[must_use]
    pub const fn with_framing(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// Sets a wait before each piece of the body, in real time (default: none).
    #[must_use]
    pub const fn with_pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Ending so after this many bytes of the body.
    #[must_use]
    pub const fn cut_at(mut self, bytes: usize, end: End) -> Self {
        self.cut = Some((bytes, end));
        self
    }

    fn with_piece(mut self, piece: impl Into<Vec<u8>>) -> Self {
        self.pieces = vec![piece.into()];
        self
    }
}
