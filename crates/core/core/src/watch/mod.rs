//! Detects model output that runs away: endless repetition, digits or white space.

mod loops;
mod repetition;

use formwork_json::{JsonPath, Level, Lexer, Position, Span};

use crate::{Stage, Violation};
use loops::Loops;
use repetition::Repetition;

/// Detects a stream that runs away: one that repeats itself within one value, or that writes endless white space.
///
/// A driver pushes the text as it arrives and stops the call at the first [`Violation`], whose span covers the bytes.
/// Chunks may end anywhere: the result depends on the text alone.
///
/// It reports
/// - a text of at most 256 bytes that is repeated at least [64 times](Watch::MIN_REPEATS), over at least [2
///   kB](Watch::MIN_BYTES), inside one string of a JSON document or outside of documents: in the prose before, in reasoning, or
///   in the text after it (further documents included);
/// - a number of at least 2 kB;
/// - at least 2 kB of consecutive white space outside of strings.
///
/// Items of arrays and members of objects may repeat without limit. After the first syntax error in a document, only text
/// without brackets, commas, colons, quotes and line ends counts as repeated. A false alarm costs a valid answer and a
/// missed runaway costs tokens, so doubtful cases are not reported: see [`Watch::allow_runs`].
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
#[derive(Debug, Clone)]
pub struct Watch {
    /// `None` if the text is prose, in which brackets and quotes have no meaning.
    lexer: Option<Lexer>,
    /// The number of bytes so far.
    seen: usize,
    /// The byte at which the current stretch of text after a syntax error began.
    since: usize,
    /// The number of consecutive white space bytes outside of strings at the end of the text.
    blanks: usize,
    repetition: Repetition,
    /// `None` if only the output of a tiny model counts as a loop so early.
    loops: Option<Loops>,
    /// The byte up to which the contract allows the text.
    allowed_until: usize,
}

impl Default for Watch {
    fn default() -> Self {
        let lexer = Some(Lexer::new(Level::Clean));
        Self {
            lexer,
            seen: 0,
            since: 0,
            blanks: 0,
            repetition: Repetition::default(),
            loops: None,
            allowed_until: 0,
        }
    }
}

impl Watch {
    /// The minimum number of repetitions of the same text that count as a runaway.
    pub const MIN_REPEATS: usize = 64;

    /// The minimum number of bytes of repetition, digits or white space that count as a runaway.
    pub const MIN_BYTES: usize = 2048;

    /// The minimum number of bytes of an [allowed run](Watch::allow_runs) that count as a runaway.
    pub const MIN_RUN: usize = 32 * 1024;

    /// Returns a watch over an answer of a tiny model, which seldom leaves a loop. It also reports a text of at most 256 bytes that a
    /// string, or items that a list, repeats at least four times over at least 32 bytes, [allowed](Self::allow_runs) runs included. The
    /// span of the violation then begins after the first round, where the value can be ended.
    ///
    /// ```
    /// let mut watch = formwork_core::Watch::for_tiny_model();
    /// assert!(watch.push(r#"{"marks": [1, 1, 1, 1, 1, 1, 1], "names": ["Ada", "Berta", "Berta", "#).is_none());
    /// let found = watch.push(&r#""Berta", "#.repeat(10)).unwrap();
    /// assert_eq!(found.span.unwrap().start, r#"{"marks": [1, 1, 1, 1, 1, 1, 1], "names": ["Ada", "Berta""#.len());
    /// ```
    pub fn for_tiny_model() -> Self {
        Self { loops: Some(Loops::default()), ..Self::default() }
    }

    /// Returns the length below which no text is reported, in bytes.
    pub const fn min_len(&self) -> usize {
        if self.loops.is_some() { 0 } else { Self::MIN_BYTES }
    }

    /// Returns a watch over text without structure, such as a model's reasoning: brackets and quotes have no meaning in it.
    pub fn over_prose() -> Self {
        Self { lexer: None, ..Self::default() }
    }

    /// Sets the byte up to which the contract allows the text (default: 0). A run of one or two characters in a string before it, such as
    /// a line of dashes, zeros in base64 or escaped line ends, is reported only from [32 kB](Watch::MIN_RUN) on.
    pub const fn allow_runs(&mut self, until: usize) {
        self.allowed_until = until;
    }

    /// Takes the next piece of the text, and returns a violation of the rule `runaway` once the stream has run away. Its
    /// span ends with the byte that proved it; the rest of the piece is ignored.
    pub fn push(&mut self, text: &str) -> Option<Violation> {
        text.bytes().find_map(|byte| self.take(byte))
    }

    /// Returns whether the text so far ends outside of any document and at least one document is complete. The text that
    /// follows may be cut off without loss.
    pub fn is_after_document(&self) -> bool {
        self.position() == Position::Outside
            && self.lexer.as_ref().is_some_and(|lexer| lexer.document().is_some())
    }

    fn position(&self) -> Position {
        self.lexer.as_ref().map_or(Position::Outside, Lexer::position)
    }

    fn take(&mut self, byte: u8) -> Option<Violation> {
        let was_stuck = matches!(self.position(), Position::Stuck(_));
        self.seen += 1;
        if let (Some(loops), Some(lexer)) = (&mut self.loops, &mut self.lexer) {
            let looped = loops.push(byte, |sink| {
                lexer.push(&[byte], sink);
                lexer.position()
            });
            if let Some(span) = looped {
                return Some(runaway(span, "the same text again and again".to_owned()));
            }
        } else {
            self.lexer.iter_mut().for_each(|lexer| lexer.push(&[byte], |_| {}));
        }
        let position = self.position();
        self.repetition.push(byte);
        let in_text = matches!(position, Position::Text(_));
        self.blanks = if byte.is_ascii_whitespace() && !in_text { self.blanks + 1 } else { 0 };
        if self.blanks >= Self::MIN_BYTES {
            return Some(self.runaway(self.blanks, "white space without end".to_owned()));
        }
        // Text between items and members cannot be part of one value.
        if matches!(position, Position::Stuck(_)) && (!was_stuck || b",:[]{}\"'`\n\r".contains(&byte)) {
            self.since = self.seen;
        }
        let since = match position {
            Position::Outside => 0,
            Position::Text(since) => since,
            Position::Stuck(_) => self.since,
            Position::Number(since) if self.seen - since >= Self::MIN_BYTES => {
                return Some(self.runaway(self.seen - since, "digits without end".to_owned()));
            }
            Position::Number(_) | Position::Between => return None,
        };
        let (period, len) = self.repetition.period_and_len();
        let len = len.min(self.seen.saturating_sub(since));
        if period == 0 || len < Self::MIN_BYTES.max(period * Self::MIN_REPEATS) {
            return None;
        }
        let is_allowed = in_text && self.seen <= self.allowed_until;
        if is_allowed && len < Self::MIN_RUN && characters(self.repetition.unit()) <= 2 {
            return None;
        }
        Some(self.runaway(len, format!("the same {period} bytes {} times in a row", len / period)))
    }

    fn runaway(&self, len: usize, found: String) -> Violation {
        runaway(Span::new(self.seen - len, self.seen), found)
    }
}

fn runaway(span: Span, found: String) -> Violation {
    Violation::new(JsonPath::root(), "runaway", Stage::Read).with_found(found).with_span(Some(span))
}

/// Returns the number of characters of a text in JSON, in which a backslash and the next character are one. The text may begin in the
/// middle of a character.
fn characters(unit: &[u8]) -> usize {
    unit.iter().filter(|byte| !matches!(byte, b'\\' | 0x80..0xC0)).count()
}
