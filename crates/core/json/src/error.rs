use serde::{Deserialize, Serialize};

#[cfg(doc)]
use crate::MAX_DEPTH;

/// The reason why a text could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReadError {
    /// The text is empty or white space.
    #[error("the text is empty")]
    Empty,
    /// The text has no JSON object or array.
    #[error("no JSON object or array in the text")]
    NotFound,
    /// The text ends inside a reasoning block, before any answer.
    #[error("the text ends inside its reasoning, before any answer")]
    OnlyReasoning,
    /// The text is not JSON at this byte, and the level does not allow the repair.
    #[error("not JSON at byte {at}: {message}")]
    Syntax {
        /// The byte offset.
        at: usize,
        /// A description of the expected text.
        message: String,
    },
    /// Arrays and objects are nested deeper than the limit.
    #[error("nested deeper than {limit} levels at byte {at}")]
    TooDeep {
        /// The byte offset of the first bracket beyond the limit.
        at: usize,
        /// The limit, in brackets; see [`MAX_DEPTH`].
        limit: usize,
    },
    /// The text is too ambiguous: reading it would take more than a fixed multiple of its length.
    #[error("too ambiguous to read at byte {at}")]
    TooAmbiguous {
        /// The byte offset at which reading stopped.
        at: usize,
    },
    /// The bytes are not UTF-8.
    #[error("not UTF-8 at byte {at}")]
    NotUtf8 {
        /// The byte offset of the first invalid byte.
        at: usize,
    },
}

impl ReadError {
    /// Returns the byte offset of the error, if it has one.
    pub const fn at(&self) -> Option<usize> {
        match self {
            Self::Empty | Self::NotFound | Self::OnlyReasoning => None,
            Self::Syntax { at, .. }
            | Self::TooDeep { at, .. }
            | Self::TooAmbiguous { at }
            | Self::NotUtf8 { at } => Some(*at),
        }
    }
}
