//! Requests and responses of HTTP/1.1, as far as the played servers need them.

use std::io::{self, BufRead, Write};

/// A request with its whole body.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) method: String,
    /// The path with its query.
    pub(crate) path: String,
    pub(crate) body: String,
}

impl Received {
    /// Reads the next request of a connection; `None` at its end and for a request that cannot be read.
    pub(crate) fn read(reader: &mut impl BufRead) -> Option<Self> {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let mut words = line.split_ascii_whitespace();
        let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
        let mut length = 0;
        loop {
            line.clear();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let lower = line.trim().to_ascii_lowercase();
            if lower.is_empty() {
                break;
            }
            if let Some(number) = lower.strip_prefix("content-length:") {
                length = number.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        Some(Self { method, path, body: String::from_utf8(body).ok()? })
    }
}

/// Writes the first `sent` bytes of a JSON body, after a head that announces all of it.
pub(crate) fn respond(mut to: impl Write, status: &str, body: &str, sent: usize) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    to.write_all(format!("{head}{}", body.get(..sent).unwrap_or_default()).as_bytes())
}
