use std::fmt;

use serde::{Deserialize, Serialize};

#[cfg(doc)]
use crate::MAX_DEPTH;

/// The reason why a text could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReadError {
    /// The text is empty or white space.
    Empty,
    /// The text has no JSON object or array.
    NotFound,
    /// The text ends inside a reasoning block, before any answer.
    OnlyReasoning,
    /// The text ends before any value of its document is known.
    Unfinished,
    /// The text is not JSON at this byte, and the level does not allow the repair.
    Syntax {
        /// The byte offset.
        at: usize,
        /// A description of the expected text.
        message: String,
    },
    /// Arrays and objects are nested deeper than the limit.
    TooDeep {
        /// The byte offset of the first bracket beyond the limit.
        at: usize,
        /// The limit, in brackets; see [`MAX_DEPTH`].
        limit: usize,
    },
    /// The text is too ambiguous: reading it would take more than a fixed multiple of its length.
    TooAmbiguous {
        /// The byte offset at which reading stopped.
        at: usize,
    },
    /// A number that is no fraction cannot be kept exactly; only [`read_exact`](crate::read_exact) and [`exact`](crate::exact)
    /// refuse it.
    Inexact {
        /// The byte offset of the number.
        at: usize,
        /// The path and the number, with the numbers that can be kept.
        message: String,
    },
    /// The bytes are not UTF-8.
    NotUtf8 {
        /// The byte offset of the first invalid byte.
        at: usize,
    },
}

impl ReadError {
    /// Returns the byte offset of the error, if it has one.
    pub const fn at(&self) -> Option<usize> {
        match self {
            Self::Empty | Self::NotFound | Self::OnlyReasoning | Self::Unfinished => None,
            Self::Syntax { at, .. }
            | Self::Inexact { at, .. }
            | Self::TooDeep { at, .. }
            | Self::TooAmbiguous { at }
            | Self::NotUtf8 { at } => Some(*at),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the text is empty"),
            Self::NotFound => f.write_str("no JSON object or array in the text"),
            Self::OnlyReasoning => f.write_str("the text ends inside its reasoning, before any answer"),
            Self::Unfinished => f.write_str("the text ends before any value of its document"),
            Self::Syntax { at, message } => write!(f, "not JSON at byte {at}: {message}"),
            Self::TooDeep { at, limit } => write!(f, "nested deeper than {limit} levels at byte {at}"),
            Self::TooAmbiguous { at } => write!(f, "too ambiguous to read at byte {at}"),
            Self::Inexact { message, .. } => f.write_str(message),
            Self::NotUtf8 { at } => write!(f, "not UTF-8 at byte {at}: save the text as UTF-8"),
        }
    }
}

impl std::error::Error for ReadError {}
