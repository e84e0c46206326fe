use serde::{Deserialize, Serialize};

/// A chunk of a recorded body.
///
/// ```
/// use formwork_wire::cassette::Chunk;
///
/// let chunk = Chunk::new(120, b"data: [DONE]\n\n");
/// assert_eq!((chunk.after_ms, chunk.bytes()), (120, &b"data: [DONE]\n\n"[..]));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chunk {
    /// The time since the chunk before it, or since the request was sent, in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub after_ms: u64,
    /// The bytes, if they are valid UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The bytes, if they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<Vec<u8>>,
}

impl Chunk {
    /// Creates a chunk that arrived `after_ms` milliseconds after the one before it.
    pub fn new(after_ms: u64, bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self { after_ms, text: Some(text.to_owned()), bytes: None },
            Err(_) => Self { after_ms, text: None, bytes: Some(bytes.to_vec()) },
        }
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        self.text.as_ref().map(String::as_bytes).or(self.bytes.as_deref()).unwrap_or_default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
