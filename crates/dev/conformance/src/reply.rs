use bytes::Bytes;

/// The response of a scripted server.
///
/// ```
/// use formwork_conformance::Reply;
///
/// let busy = Reply::new(429, "application/json", r#"{"error": "slow down"}"#).with_header("retry-after", "7");
/// # let _ = busy;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
    /// The size of a chunk in bytes.
    pub(crate) chunk: usize,
}

impl Reply {
    /// Creates a response with this body.
    pub fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        Self { status, headers, body: body.into().into(), chunk: usize::MAX }
    }

    /// Adds a header (default: none).
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Splits the body into chunks of `bytes` bytes.
    pub(crate) fn in_chunks(mut self, bytes: usize) -> Self {
        self.chunk = bytes.max(1);
        self
    }

    /// Cuts the body off at this byte.
    pub(crate) fn cut(mut self, at: usize) -> Self {
        self.body.truncate(at);
        self
    }

    /// Returns whether the content type is that of a stream.
    pub(crate) fn is_stream(&self) -> bool {
        let streams = ["text/event-stream", "application/x-ndjson", "application/vnd.amazon.eventstream"];
        self.headers
            .iter()
            .any(|(name, value)| name == "content-type" && streams.iter().any(|kind| value.starts_with(kind)))
    }

    pub(crate) fn chunks(&self) -> Vec<Bytes> {
        self.body.chunks(self.chunk.min(self.body.len().max(1))).map(Bytes::copy_from_slice).collect()
    }
}
