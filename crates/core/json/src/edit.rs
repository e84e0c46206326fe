use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Span;

/// One repair: a difference between the text that a model wrote and the JSON that was read from it.
///
/// In JSON output an edit is `{"kind": "trailing_comma", "span": {"start": 12, "end": 13}, "with": ""}`: the bytes of the
/// original text that were replaced, and the text that was read in their place (empty when they were skipped).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Edit {
    /// The kind of repair.
    pub kind: EditKind,
    /// The bytes of the original text that were replaced; empty where text was only added.
    pub span: Span,
    /// The text that was read in their place.
    #[serde(default)]
    pub with: String,
}

impl Edit {
    pub(crate) fn new(kind: EditKind, span: Span, with: impl Into<String>) -> Self {
        Self { kind, span, with: with.into() }
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, span: Span { start, end }, .. } = self;
        write!(f, "{kind} at bytes {start}..{end}")
    }
}

macro_rules! edit_kinds {
    ($($(#[$doc:meta])* $name:ident = $level:ident, $word:literal;)*) => {
        /// The kind of an [`Edit`], each with the lowest [`Level`] that makes it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum EditKind { $($(#[$doc])* $name,)* }

        impl EditKind {
            /// Every kind, in ascending order of level.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns the lowest level that makes this edit.
            ///
            /// ```
            /// use formwork_json::{EditKind, Level};
            ///
            /// assert_eq!(EditKind::TrailingComma.level(), Level::Clean);
            /// assert_eq!(EditKind::MissingComma.level(), Level::Lenient);
            /// ```
            pub const fn level(self) -> Level {
                match self { $(Self::$name => Level::$level,)* }
            }

            /// Returns a description of the repair.
            const fn words(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }
        }
    };
}

edit_kinds! {
    /// A name occurs twice in one object; the last value was kept.
    DuplicateKey = Strict, "duplicate key";
    /// A byte order mark was skipped.
    ByteOrderMark = Clean, "byte order mark";
    /// Text around the JSON was skipped.
    Prose = Clean, "prose around the JSON";
    /// Another document in the text was skipped.
    OtherDocument = Clean, "another document";
    /// A Markdown code fence was skipped.
    Fence = Clean, "code fence";
    /// A reasoning block such as `<think>…</think>` was skipped.
    Reasoning = Clean, "reasoning block";
    /// A raw control character inside a string was read as itself.
    ControlCharacter = Clean, "raw control character in a string";
    /// A comma before a closing bracket was skipped.
    TrailingComma = Clean, "trailing comma";
    /// The text ended inside the document, and the open strings, arrays and objects were closed there.
    Closed = Clean, "unclosed end";
    /// A bracket was missing or misplaced in the middle of the document.
    Bracket = Lenient, "missing or misplaced bracket";
    /// A comma was missing.
    MissingComma = Lenient, "missing comma";
    /// A comma without a value was skipped.
    ExtraComma = Lenient, "extra comma";
    /// A colon was missing or written otherwise.
    Colon = Lenient, "missing colon";
    /// A comment was skipped.
    Comment = Lenient, "comment";
    /// White space that JSON does not define was skipped.
    Whitespace = Lenient, "white space that JSON does not have";
    /// A string was delimited by quotes other than `"`.
    Quote = Lenient, "other quotes around a string";
    /// A string's quote was missing.
    MissingQuote = Lenient, "missing quote";
    /// A quote inside a string was not escaped.
    InnerQuote = Lenient, "unescaped quote inside a string";
    /// An escape that JSON does not define was read as intended.
    Escape = Lenient, "escape that JSON does not have";
    /// The text was escaped once too often.
    Escaped = Lenient, "text escaped once too often";
    /// A literal was written in another language's way (`True`, `None`, `NaN`).
    Literal = Lenient, "literal of another language";
    /// A number was written in another way (`.5`, `+1`).
    Number = Lenient, "number that JSON does not have";
    /// A missing value was read as `null`.
    MissingValue = Lenient, "missing value";
    /// Strings joined by `+`, or next to each other, were read as one.
    Concatenation = Lenient, "concatenated strings";
    /// A call around a value (`ObjectId("…")`, `callback({…})`) was skipped.
    Call = Lenient, "call around a value";
    /// An ellipsis in place of values was skipped.
    Ellipsis = Lenient, "ellipsis";
    /// Unexpected characters were skipped.
    Junk = Lenient, "characters that fit nowhere";
    /// The whole document was written as a JSON string.
    DoubleEncoded = Lenient, "document written as a string";
    /// Several documents in a row were read as one array.
    Sequence = Lenient, "several documents in a row";
}

impl fmt::Display for EditKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// The tolerance of reading. Each level also makes the edits of the levels before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// The text is one JSON document (RFC 8259) and nothing else.
    Strict,
    /// One JSON document is found in the text, and unambiguous damage is repaired: fences, prose, reasoning, control
    /// characters, trailing commas, an unclosed end. The default.
    #[default]
    Clean,
    /// Everything that can be read is read: other quotes, missing commas, comments, literals of other languages.
    Lenient,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
