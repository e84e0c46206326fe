use formwork_json::JsonPath;

use crate::{Stage, Violation};

/// Notices a stream that has run away: white space without end, digits without end, the same words again and again.
///
/// A driver pushes what arrives and stops the call at the first [`Violation`]; the answer could only cost more.
///
/// ```
/// use formwork_core::Watch;
///
/// let mut watch = Watch::default();
/// assert!(watch.push(r#"{"city": "Lisbon"#).is_none());
/// let runaway = (0..100).find_map(|_| watch.push(" Porto Lisbon"));
/// assert_eq!(runaway.unwrap().to_string(), "runaway at $: the same 13 bytes 16 times in a row");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Watch {
    /// The last bytes, at most [`WINDOW`].
    tail: Vec<u8>,
    blanks: usize,
    digits: usize,
}

/// How much white space in a row is a runaway, in bytes. Pretty-printed JSON of 100 levels has less.
const MAX_BLANKS: usize = 400;

/// How many digits in a row are a runaway: more than any number needs.
const MAX_DIGITS: usize = 400;

/// How often the same text in a row is a runaway.
const MAX_REPEATS: usize = 16;

/// The longest text whose repetition is noticed, in bytes.
const MAX_PERIOD: usize = 64;

const WINDOW: usize = MAX_PERIOD * MAX_REPEATS;

impl Watch {
    /// Takes the next piece of the answer's text; what is wrong, if the stream has run away.
    pub fn push(&mut self, text: &str) -> Option<Violation> {
        for byte in text.bytes() {
            self.blanks = if byte.is_ascii_whitespace() { self.blanks + 1 } else { 0 };
            self.digits = if byte.is_ascii_digit() { self.digits + 1 } else { 0 };
            if self.blanks > MAX_BLANKS {
                return Some(runaway("white space without end".to_owned()));
            }
            if self.digits > MAX_DIGITS {
                return Some(runaway("digits without end".to_owned()));
            }
        }
        self.tail.extend_from_slice(text.as_bytes());
        let excess = self.tail.len().saturating_sub(WINDOW);
        self.tail.drain(..excess);
        let period = (MIN_PERIOD..=MAX_PERIOD).find(|period| self.repeats(*period))?;
        Some(runaway(format!("the same {period} bytes {MAX_REPEATS} times in a row")))
    }

    /// Whether the text ends in so many repetitions of its last `period` bytes.
    fn repeats(&self, period: usize) -> bool {
        let Some(from) = self.tail.len().checked_sub(period * MAX_REPEATS) else { return false };
        let end = self.tail.get(from..).unwrap_or_default();
        let (first, rest) = end.split_at(period);
        first.iter().any(|byte| byte.is_ascii_alphabetic()) && rest.chunks(period).all(|again| again == first)
    }
}

/// Shorter repetitions are ordinary: `====`, `0, 0, 0`, `ha ha`.
const MIN_PERIOD: usize = 6;

fn runaway(found: String) -> Violation {
    Violation::new(JsonPath::root(), "runaway", Stage::Read).with_found(found)
}
