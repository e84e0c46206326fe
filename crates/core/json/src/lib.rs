//! Finds and reads JSON in model text: strictly first, then tolerantly, with every repair recorded with its byte span.
//!
//! - [`read`] turns a text into candidate values, best guess first; [`Level`] sets how tolerantly.
//! - [`Edit`] is one difference between the text and the value that was read from it.
//! - [`Rounded`] is a number that a `Value` cannot hold exactly; [`rounded`] finds them in texts that others read, and [`read_exact`] refuses
//!   integers that would change.
//! - [`JsonPath`] names a value and [`locate`] finds its bytes; [`splice`] replaces them.
//! - [`Lexer`] splits a text that arrives in chunks into events, in time linear in its length.
//!
//! The crate knows nothing of schemas, models or IO, and depends on serde and serde_json alone.
//!
//! ```
//! use formwork_json::{Level, read};
//!
//! let text = "<think>an age, {\"a\": 1}?</think>The answer is {\"age\": 34}.";
//! assert_eq!(read(text, Level::Clean)?.candidates()[0].value, serde_json::json!({"age": 34}));
//! assert!(read(text, Level::Strict).is_err());
//! # Ok::<(), formwork_json::ReadError>(())
//! ```

mod edit;
mod equal;
mod error;
mod find;
mod lexer;
mod locate;
mod number;
mod path;
mod pattern;
mod read;
mod rounded;
mod source;
mod span;
mod splice;
mod strict;
mod tolerant;

pub use edit::{Edit, EditKind, Level};
pub use equal::{compare, is_same};
pub use error::ReadError;
pub use lexer::{Event, Kind, Lexer, Position, Token, characters, unquoted};
pub use locate::{Places, locate, values_around};
pub use number::Rounded;
pub use path::{JsonPath, PathError, Segment, escape, unescape};
pub use pattern::{PathPattern, PatternStep};
pub use read::{Candidate, Reading, read, read_bytes, read_exact};
pub use rounded::{exact, rounded};
pub use span::{Span, line_column};
pub use splice::splice;

/// The maximum nesting of arrays and objects, at every level: the limit of serde_json.
pub const MAX_DEPTH: usize = 127;
