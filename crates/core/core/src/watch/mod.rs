//! Detects model output that runs away: endless repetition, digits or white space.

mod repetition;

use formwork_json::{JsonPath, Span};

use crate::{Stage, Violation};
use repetition::Repetition;

/// Detects a stream that runs away: one that repeats itself within one value, or that writes endless white space.
///
/// A driver pushes the text as it arrives and stops the call at the first [`Violation`], whose span covers the bytes.
/// Chunks may end anywhere: the result depends on the text alone.
///
/// It reports
/// - a text of at most 256 bytes that is repeated at least [64 times](Watch::MIN_REPEATS), over at least [2
///   kB](Watch::MIN_BYTES), inside one string of a JSON document or outside of documents: in the prose before, or in the
///   text after it (further documents included);
/// - a number of at least 2 kB;
/// - at least 2 kB of consecutive white space outside of strings.
///
/// Items of arrays and members of objects may repeat without limit. After the first syntax error in a document, only text
/// without brackets, commas, colons, quotes and line ends counts as repeated. A false alarm costs a valid answer and a
/// missed runaway costs tokens, so doubtful cases are not reported.
///
/// ```
/// use formwork_core::Watch;
///
/// let mut watch = Watch::default();
/// assert!(watch.push(&format!(r#"{{"open": [{}"#, "true, ".repeat(1_000))).is_none());
/// assert!(watch.push(r#""Lisbon"#).is_none());
/// let runaway = (0..1_000).find_map(|_| watch.push(" Porto Lisbon"));
/// assert_eq!(runaway.unwrap().to_string(), "runaway at $: the same 13 bytes 157 times in a row");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Watch {
    place: Place,
    /// Whether the text is prose, in which brackets and quotes have no meaning.
    is_prose: bool,
    /// The number of open brackets.
    depth: usize,
    /// The number of bytes so far.
    seen: usize,
    /// The byte at which the current string, number or stretch of unparsable text began.
    since: usize,
    /// The number of consecutive white space bytes outside of strings at the end of the text.
    blanks: usize,
    repetition: Repetition,
    has_document: bool,
}

/// The part of the document that the next byte belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    /// Text outside of documents.
    #[default]
    Outside,
    /// The space between the strings, numbers and literals of a document; `after_value` says whether a value or a name came
    /// last.
    Between { after_value: bool },
    /// A string; `escaped` says whether a backslash came last.
    Text { escaped: bool },
    /// A number.
    Number,
    /// A literal, with the bytes that are still missing.
    Literal(&'static [u8]),
    /// A document that is not strict JSON.
    Unknown,
}

impl Watch {
    /// The minimum number of repetitions of the same text that count as a runaway.
    pub const MIN_REPEATS: usize = 64;

    /// The minimum number of bytes of repetition, digits or white space that count as a runaway.
    pub const MIN_BYTES: usize = 2048;

    /// Returns a watch over text without structure, such as a model's reasoning: brackets and quotes have no meaning in it.
    pub fn over_prose() -> Self {
        Self { is_prose: true, ..Self::default() }
    }

    /// Takes the next piece of the text, and returns a violation of the rule `runaway` once the stream has run away. Its
    /// span ends with the byte that proved it; the rest of the piece is ignored.
    pub fn push(&mut self, text: &str) -> Option<Violation> {
        text.bytes().find_map(|byte| self.take(byte))
    }

    /// Returns whether the text so far ends outside of any document and at least one document is complete. The text that
    /// follows may be cut off without loss.
    pub fn is_after_document(&self) -> bool {
        self.has_document && self.place == Place::Outside
    }

    fn take(&mut self, byte: u8) -> Option<Violation> {
        self.step(byte);
        self.seen += 1;
        self.repetition.push(byte);
        let in_text = matches!(self.place, Place::Text { .. });
        self.blanks = if byte.is_ascii_whitespace() && !in_text { self.blanks + 1 } else { 0 };
        if self.blanks >= Self::MIN_BYTES {
            return Some(self.runaway(self.blanks, "white space without end".to_owned()));
        }
        let since = match self.place {
            Place::Outside => 0,
            Place::Text { .. } | Place::Unknown => self.since,
            Place::Number if self.seen - self.since >= Self::MIN_BYTES => {
                return Some(self.runaway(self.seen - self.since, "digits without end".to_owned()));
            }
            Place::Number | Place::Between { .. } | Place::Literal(_) => return None,
        };
        let (period, len) = self.repetition.period_and_len();
        let len = len.min(self.seen - since);
        if period == 0 || len < Self::MIN_BYTES.max(period * Self::MIN_REPEATS) {
            return None;
        }
        Some(self.runaway(len, format!("the same {period} bytes {} times in a row", len / period)))
    }

    /// Moves on to the place of the next byte.
    fn step(&mut self, byte: u8) {
        self.place = match self.place {
            Place::Outside if !self.is_prose && matches!(byte, b'{' | b'[') => {
                self.depth = 1;
                Place::Between { after_value: false }
            }
            Place::Outside => Place::Outside,
            Place::Text { escaped: true } => Place::Text { escaped: false },
            Place::Text { .. } if byte == b'"' => Place::Between { after_value: true },
            Place::Text { .. } => Place::Text { escaped: byte == b'\\' },
            Place::Number if byte.is_ascii_digit() || b"+-.eE".contains(&byte) => Place::Number,
            Place::Literal([next, rest @ ..]) => {
                if byte == *next {
                    Place::Literal(rest)
                } else {
                    self.unknown()
                }
            }
            Place::Number | Place::Literal([]) => self.between(byte, true),
            Place::Between { after_value } => self.between(byte, after_value),
            Place::Unknown => {
                // Text between items and members cannot be part of one value.
                if b",:[]{}\"'`\n\r".contains(&byte) { self.unknown() } else { Place::Unknown }
            }
        };
    }

    fn between(&mut self, byte: u8, after_value: bool) -> Place {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => Place::Between { after_value },
            b',' | b':' if after_value => Place::Between { after_value: false },
            b'}' | b']' => {
                self.depth -= 1;
                self.has_document |= self.depth == 0;
                if self.depth == 0 { Place::Outside } else { Place::Between { after_value: true } }
            }
            // Two values without a separator: a quote is missing or not escaped, so that strings cannot be distinguished
            // from the text between them.
            _ if after_value => self.unknown(),
            b'{' | b'[' => {
                self.depth += 1;
                Place::Between { after_value: false }
            }
            b'"' => {
                self.since = self.seen + 1;
                Place::Text { escaped: false }
            }
            b'-' | b'0'..=b'9' => {
                self.since = self.seen;
                Place::Number
            }
            b't' => Place::Literal(b"rue"),
            b'f' => Place::Literal(b"alse"),
            b'n' => Place::Literal(b"ull"),
            _ => self.unknown(),
        }
    }

    fn unknown(&mut self) -> Place {
        self.since = self.seen + 1;
        Place::Unknown
    }

    fn runaway(&self, len: usize, found: String) -> Violation {
        let span = Span::new(self.seen - len, self.seen);
        Violation::new(JsonPath::root(), "runaway", Stage::Read).with_found(found).with_span(Some(span))
    }
}
