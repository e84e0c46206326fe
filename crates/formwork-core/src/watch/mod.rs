//! Whether a stream has run away.

mod repetition;

use formwork_json::{JsonPath, Span};

use crate::{Stage, Violation};
use repetition::Repetition;

/// Notices a stream that has run away: one that repeats itself within one value, or writes white space without end.
///
/// A driver pushes the text as it arrives and stops the call at the first [`Violation`], whose span names the bytes.
/// Chunks may end anywhere: the report depends on the text alone.
///
/// It reports
/// - a text of at most 256 bytes that is repeated at least [64 times](Watch::MIN_REPEATS), over at least
///   [2 kB](Watch::MIN_BYTES), inside one string of a JSON document, or outside of documents: in the prose before, or in
///   what follows (further documents included);
/// - a number of at least 2 kB;
/// - at least 2 kB of white space in a row outside of strings.
///
/// Items of arrays and members of objects may repeat as often as they like. A document that is not strict JSON is
/// followed no further: there only text that holds no bracket, comma, colon, quote or line end counts as repeated. A
/// false alarm costs a valid answer, a runaway that is missed costs tokens, so in doubt nothing is reported.
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
    /// Whether brackets mean nothing.
    is_prose: bool,
    /// How many brackets are open.
    depth: usize,
    /// Bytes so far.
    seen: usize,
    /// Where the string, the number, or what may repeat itself in a document that is not followed began.
    since: usize,
    /// How many of the last bytes are white space outside of strings.
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
    /// A document, between its strings, numbers and literals; whether a value or a name was the last of them.
    Between { after_value: bool },
    /// A string; whether the next byte is escaped.
    Text { escaped: bool },
    /// A number.
    Number,
    /// A literal, of which this is left.
    Literal(&'static [u8]),
    /// A document that is not strict JSON.
    Unknown,
}

impl Watch {
    /// How often the same text in a row is a runaway.
    pub const MIN_REPEATS: usize = 64;

    /// How many bytes of repetition, digits or white space are a runaway.
    pub const MIN_BYTES: usize = 2048;

    /// Returns a watch over text without structure, such as a model's reasoning: brackets and quotes mean nothing.
    pub fn over_prose() -> Self {
        Self { is_prose: true, ..Self::default() }
    }

    /// Takes the next piece of the text. Returns what is wrong, if the stream has run away; its span ends with the byte
    /// that made it so, and the rest of the piece is not looked at.
    pub fn push(&mut self, text: &str) -> Option<Violation> {
        text.bytes().find_map(|byte| self.take(byte))
    }

    /// Whether the text so far ends outside of any document, and at least one document is complete: what follows may be
    /// cut off without loss.
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

    /// Moves on to the place that the byte leads to.
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
                // What stands between items and members cannot be part of one value.
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
            // Two values without a separator: a quote was lost or not escaped, so that strings cannot be told apart
            // from what stands between them.
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
