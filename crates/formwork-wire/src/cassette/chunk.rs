use serde::{Deserialize, Serialize};

/// A piece of a body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chunk {
    /// Milliseconds since the piece before it, or since the request was sent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub after_ms: u64,
    /// Its bytes, if they are whole characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Its bytes otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<Vec<u8>>,
}

impl Chunk {
    /// A piece that came so long after the one before it.
    pub fn new(after_ms: u64, bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self { after_ms, text: Some(text.to_owned()), bytes: None },
            Err(_) => Self { after_ms, text: None, bytes: Some(bytes.to_vec()) },
        }
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.text.as_ref().map(String::as_bytes).or(self.bytes.as_deref()).unwrap_or_default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
