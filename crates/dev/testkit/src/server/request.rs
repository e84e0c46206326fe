use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// The maximum size of the head and of the body of a request, in bytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// A request that a [`Server`](super::Server) received.
///
/// ```
/// use formwork_testkit::server::Received;
///
/// let request = Received {
///     method: "POST".to_owned(),
///     path: "/api/chat".to_owned(),
///     headers: vec![("authorization".to_owned(), "Bearer sk-1".to_owned())],
///     body: b"{}".to_vec(),
/// };
/// assert_eq!(request.header("authorization"), Some("Bearer sk-1"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The method: `POST`.
    pub method: String,
    /// The path and its query: `/api/chat?x=1`.
    pub path: String,
    /// The headers in order, with their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body; empty for a request without `content-length`.
    pub body: Vec<u8>,
}

impl Received {
    /// Returns the value of the first header of this name, which has to be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Reads the next request of a connection; `None` at its end, and if the bytes are not HTTP.
pub(super) async fn read(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Received>> {
    let mut from = from.take(MAX_BYTES);
    let mut lines = Vec::new();
    loop {
        let mut line = Vec::new();
        if from.read_until(b'\n', &mut line).await? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        match (line.is_empty(), lines.is_empty()) {
            // Empty lines before a request are to be ignored (RFC 9112, section 2.2).
            (true, true) => {}
            (true, false) => break,
            (false, _) => lines.push(line),
        }
    }
    let mut lines = lines.into_iter();
    let first = lines.next().unwrap_or_default();
    let mut words = first.split(' ');
    let (Some(method), Some(path), Some(_version)) = (words.next(), words.next(), words.next()) else {
        return Ok(None);
    };
    let headers = lines.filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_lowercase(), value.trim().to_owned()))
    });
    let mut received = Received {
        method: method.to_owned(),
        path: path.to_owned(),
        headers: headers.collect(),
        body: Vec::new(),
    };
    let length = received.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    from.set_limit(MAX_BYTES);
    (&mut from).take(length).read_to_end(&mut received.body).await?;
    Ok(Some(received))
}
