mod outside;
mod strings;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{EditKind, Level, MAX_DEPTH, Span};
pub use strings::{characters, unquoted};

/// The kind of a JSON value, known from its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// An object.
    Object,
    /// An array.
    Array,
    /// A string.
    String,
    /// A number.
    Number,
    /// The literal `true`.
    True,
    /// The literal `false`.
    False,
    /// The literal `null`.
    Null,
}

/// The part of a document that an [`Event`] reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    /// A value begins. The span is its first byte.
    Begin(Kind),
    /// The name of a member has ended. The span includes the quotes.
    Key,
    /// A value has ended. The span is all of it.
    End(Kind),
    /// The text differs from JSON here, and [`Level::Clean`] repairs it. [`EditKind::Prose`] takes a scalar back that began at
    /// the root and is prose.
    Edit(EditKind),
}

/// A part of a document, in the order in which the bytes decide it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The part.
    pub token: Token,
    /// Its bytes, from the first byte pushed.
    pub span: Span,
    /// The byte that decided the event. A number is decided by the byte after it, or by the end of the text.
    pub at: usize,
}

/// The part of the text that the next byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// Outside of documents: white space, prose, fences, reasoning.
    Outside,
    /// Between the strings, numbers and literals of a document, or in a literal.
    Between,
    /// In a string or name whose text begins at this byte.
    Text(usize),
    /// In a number that begins at this byte.
    Number(usize),
    /// After the byte at which the text stopped being JSON.
    Stuck(usize),
}

/// Splits a text that arrives in chunks into the [`Event`]s of its documents, each byte once.
///
/// At [`Level::Strict`] the text is one JSON document. At the other levels, a document begins at the first `{` or `[` outside of
/// reasoning; raw control characters and trailing commas are reported as edits, and further documents may follow. Every other
/// syntax error ends the events: see [`Position::Stuck`].
///
/// The chunks have to be UTF-8 together and may end at any byte. The lexer keeps no text: [`Event::span`] says where it is. It can
/// be stored between any two bytes.
///
/// ```
/// use formwork_json::{Kind, Level, Lexer, Token};
///
/// let text = "Here: {\"name\": \"Ada\", \"age\": 3";
/// let (mut lexer, mut ended) = (Lexer::new(Level::Clean), Vec::new());
/// for chunk in text.as_bytes().chunks(4) {
///     lexer.push(chunk, |event| ended.extend(matches!(event.token, Token::End(_)).then(|| event.span.of(text))));
/// }
/// assert_eq!(ended, ["\"Ada\""]);
/// assert_eq!(lexer.snapshot(text), Some(serde_json::json!({"name": "Ada"})));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lexer {
    level: Level,
    /// Whether a document may be a scalar at the levels that skip prose.
    scalars: bool,
    state: State,
    /// Whether each open container is an object, and its first byte.
    frames: Vec<(bool, usize)>,
    /// The number of bytes pushed so far.
    seen: usize,
    /// The first byte of the string, number or literal that is being read.
    start: usize,
    /// The first byte of the escape that is being read.
    escape: usize,
    /// The end of the last complete value or opening bracket.
    kept: usize,
    first: Option<Span>,
    /// The end of the text outside of documents, in lower case: an opening or closing tag of reasoning may be in it.
    tail: String,
    /// The number of fence characters at the end of the text outside of documents.
    fence: u8,
    prose: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    Outside,
    /// After a `[` outside of documents, which begins an array or `[THINK]`.
    Bracket,
    /// In the reasoning block of this index in [`REASONING`].
    Reasoning(usize),
    /// Before a value: the first item, or the one after the comma at this byte.
    Value {
        first: bool,
        comma: Option<usize>,
    },
    Key {
        comma: Option<usize>,
    },
    Colon,
    Next,
    Text {
        key: bool,
        part: Part,
    },
    Number(Digits),
    /// In a literal, with the number of its bytes so far.
    Literal(Kind, usize),
    Done,
    Stuck(usize),
}

/// The part of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Part {
    Plain,
    Escape,
    /// Hexadecimal digits of an escape: their number, their value, and the high surrogate before them or 0.
    Hex(u8, u16, u16),
    /// After a high surrogate; whether a backslash follows it.
    Low(u16, bool),
}

/// The part of a number (RFC 8259, section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Digits {
    Minus,
    Zero,
    Int,
    Point,
    Fraction,
    Exponent,
    Sign,
    Power,
}

impl Digits {
    const fn next(self, byte: u8) -> Option<Self> {
        match (self, byte) {
            (Self::Minus, b'0') => Some(Self::Zero),
            (Self::Minus | Self::Int, b'0'..=b'9') => Some(Self::Int),
            (Self::Zero | Self::Int, b'.') => Some(Self::Point),
            (Self::Point | Self::Fraction, b'0'..=b'9') => Some(Self::Fraction),
            (Self::Zero | Self::Int | Self::Fraction, b'e' | b'E') => Some(Self::Exponent),
            (Self::Exponent, b'+' | b'-') => Some(Self::Sign),
            (Self::Exponent | Self::Sign | Self::Power, b'0'..=b'9') => Some(Self::Power),
            _ => None,
        }
    }

    const fn is_number(self) -> bool {
        matches!(self, Self::Zero | Self::Int | Self::Fraction | Self::Power)
    }
}

/// The maximum length of the text outside of documents that is kept: more than the longest tag.
const TAIL: usize = 48;

const BYTE_ORDER_MARK: &[u8] = "\u{FEFF}".as_bytes();

impl Lexer {
    /// Creates a lexer before any text.
    pub const fn new(level: Level) -> Self {
        let state = match level {
            Level::Strict => State::Value { first: false, comma: None },
            _ => State::Outside,
        };
        Self {
            level,
            scalars: false,
            state,
            frames: Vec::new(),
            seen: 0,
            start: 0,
            escape: 0,
            kept: 0,
            first: None,
            tail: String::new(),
            fence: 0,
            prose: false,
        }
    }

    /// Sets whether the first document may be a string, number or literal at the levels that skip prose (default: `false`, because
    /// a word or number at the beginning of a text is usually prose).
    #[must_use]
    pub const fn with_scalars(mut self, scalars: bool) -> Self {
        self.scalars = scalars;
        self
    }

    /// Returns the part of the text that the next byte belongs to.
    pub const fn position(&self) -> Position {
        match self.state {
            State::Outside | State::Bracket | State::Reasoning(_) | State::Done => Position::Outside,
            State::Text { .. } => Position::Text(self.start + 1),
            State::Number(_) => Position::Number(self.start),
            State::Stuck(at) => Position::Stuck(at),
            _ => Position::Between,
        }
    }

    /// Returns the bytes of the first document; `None` as long as it is not complete.
    pub const fn document(&self) -> Option<Span> {
        self.first
    }

    /// Returns the level of the texts.
    pub const fn level(&self) -> Level {
        self.level
    }

    /// Returns the number of bytes pushed so far.
    pub const fn seen(&self) -> usize {
        self.seen
    }

    /// Returns whether anything but white space, a byte order mark, fences and reasoning stood outside of documents.
    pub const fn has_prose(&self) -> bool {
        self.prose
    }

    /// Reads the next chunk, and passes each event to `sink`.
    pub fn push(&mut self, chunk: &[u8], mut sink: impl FnMut(Event)) {
        let mut at = 0;
        while let Some(byte) = chunk.get(at) {
            if matches!(self.state, State::Text { part: Part::Plain, .. }) {
                let rest = chunk.get(at..).unwrap_or_default();
                let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..b' '));
                let Some(plain) = plain else { break };
                self.step(rest.get(plain).copied().unwrap_or_default(), self.seen + at + plain, &mut sink);
                at += plain + 1;
            } else {
                self.step(*byte, self.seen + at, &mut sink);
                at += 1;
            }
        }
        self.seen += chunk.len();
    }

    /// Ends the text: a number at its end is complete if it is the document.
    pub fn end(&mut self, mut sink: impl FnMut(Event)) {
        match self.state {
            State::Number(digits) if digits.is_number() && self.frames.is_empty() => {
                self.ended(Kind::Number, Span::new(self.start, self.seen), self.seen, &mut sink);
            }
            State::Bracket => self.open(b'[', self.seen - 1, &mut sink),
            _ => {}
        }
    }

    /// Returns the first document so far: open strings as they are, open arrays and objects closed, unfinished names, numbers and
    /// literals left out. `None` before the document has begun, and if it is not strict JSON.
    ///
    /// `text` is everything that was pushed. The time is linear in it.
    pub fn snapshot(&self, text: &str) -> Option<Value> {
        if let Some(span) = self.first {
            return serde_json::from_str(span.of(text)).ok();
        }
        let start = self.frames.first().map(|(_, start)| *start);
        let mut closed = match self.state {
            State::Text { key: false, part } => {
                let end = if part == Part::Plain { self.seen } else { self.escape };
                format!("{}\"", text.get(start.unwrap_or(self.start)..end)?)
            }
            _ => text.get(start?..self.kept)?.to_owned(),
        };
        closed.extend(self.frames.iter().rev().map(|(object, _)| if *object { '}' } else { ']' }));
        serde_json::from_str(&closed).ok()
    }

    fn step(&mut self, byte: u8, at: usize, sink: &mut impl FnMut(Event)) {
        match self.state {
            State::Outside | State::Reasoning(_) => self.outside(byte, at, sink),
            State::Bracket if byte == b'T' => {
                self.state = State::Outside;
                self.outside(byte, at, sink);
            }
            State::Bracket => {
                self.open(b'[', at - 1, sink);
                self.step(byte, at, sink);
            }
            State::Text { key, part } => self.text(key, part, byte, at, sink),
            State::Number(digits) => match digits.next(byte) {
                Some(digits) => self.state = State::Number(digits),
                None if digits.is_number() => {
                    self.ended(Kind::Number, Span::new(self.start, at), at, sink);
                    self.step(byte, at, sink);
                }
                None => self.stuck(byte, at, sink),
            },
            State::Literal(kind, len) => {
                let word = literal(kind);
                if word.get(len) != Some(&byte) {
                    self.stuck(byte, at, sink);
                } else if len + 1 == word.len() {
                    self.ended(kind, Span::new(self.start, at + 1), at, sink);
                } else {
                    self.state = State::Literal(kind, len + 1);
                }
            }
            State::Stuck(_) => {}
            _ if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') => {}
            State::Value { first, comma } => match byte {
                b']' if first || self.trails(comma, at, sink) => self.close(at, sink),
                _ => self.value(byte, at, sink),
            },
            State::Key { comma } => match byte {
                b'"' => {
                    self.start = at;
                    self.state = State::Text { key: true, part: Part::Plain };
                }
                b'}' if comma.is_none() || self.trails(comma, at, sink) => self.close(at, sink),
                _ => self.stuck(byte, at, sink),
            },
            State::Colon if byte == b':' => self.state = State::Value { first: false, comma: None },
            State::Next => match (byte, self.frames.last()) {
                (b',', Some((true, _))) => self.state = State::Key { comma: Some(at) },
                (b',', Some((false, _))) => self.state = State::Value { first: false, comma: Some(at) },
                (b'}', Some((true, _))) | (b']', Some((false, _))) => self.close(at, sink),
                _ => self.stuck(byte, at, sink),
            },
            State::Colon | State::Done => self.stuck(byte, at, sink),
        }
    }

    /// Reads the first byte of a value.
    fn value(&mut self, byte: u8, at: usize, sink: &mut impl FnMut(Event)) {
        let (kind, state) = match byte {
            b'{' | b'[' => return self.open(byte, at, sink),
            b'"' => (Kind::String, State::Text { key: false, part: Part::Plain }),
            b'-' => (Kind::Number, State::Number(Digits::Minus)),
            b'0' => (Kind::Number, State::Number(Digits::Zero)),
            b'1'..=b'9' => (Kind::Number, State::Number(Digits::Int)),
            b't' => (Kind::True, State::Literal(Kind::True, 1)),
            b'f' => (Kind::False, State::Literal(Kind::False, 1)),
            b'n' => (Kind::Null, State::Literal(Kind::Null, 1)),
            _ => return self.stuck(byte, at, sink),
        };
        (self.start, self.state) = (at, state);
        sink(Event { token: Token::Begin(kind), span: Span::new(at, at + 1), at });
    }

    fn text(&mut self, key: bool, part: Part, byte: u8, at: usize, sink: &mut impl FnMut(Event)) {
        let hex = match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            b'A'..=b'F' => Some(byte - b'A' + 10),
            _ => None,
        };
        let part = match (part, byte) {
            (Part::Plain, b'"') => {
                let span = Span::new(self.start, at + 1);
                if key {
                    self.state = State::Colon;
                    sink(Event { token: Token::Key, span, at });
                } else {
                    self.ended(Kind::String, span, at, sink);
                }
                return;
            }
            (Part::Plain, b'\\') => {
                self.escape = at;
                Part::Escape
            }
            (Part::Plain, 0..b' ') => {
                if self.level < EditKind::ControlCharacter.level() {
                    return self.stuck(byte, at, sink);
                }
                let span = Span::new(at, at + 1);
                sink(Event { token: Token::Edit(EditKind::ControlCharacter), span, at });
                Part::Plain
            }
            (Part::Plain, _) => Part::Plain,
            (Part::Escape, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Part::Plain,
            (Part::Escape, b'u') => Part::Hex(0, 0, 0),
            (Part::Low(high, false), b'\\') => Part::Low(high, true),
            (Part::Low(high, true), b'u') => Part::Hex(0, 0, high),
            (Part::Hex(count, code, high), _) => {
                let Some(digit) = hex else { return self.stuck(byte, at, sink) };
                let code = code << 4 | u16::from(digit);
                match (count, high, code) {
                    (0..3, ..) => Part::Hex(count + 1, code, high),
                    (_, 0, 0xD800..=0xDBFF) => Part::Low(code, false),
                    (_, 0, 0xDC00..=0xDFFF) => return self.stuck(byte, at, sink),
                    (_, 1.., code) if !(0xDC00..=0xDFFF).contains(&code) => {
                        return self.stuck(byte, at, sink);
                    }
                    _ => Part::Plain,
                }
            }
            _ => return self.stuck(byte, at, sink),
        };
        self.state = State::Text { key, part };
    }

    fn open(&mut self, bracket: u8, at: usize, sink: &mut impl FnMut(Event)) {
        if self.frames.len() >= MAX_DEPTH {
            return self.stuck(bracket, at, sink);
        }
        let is_object = bracket == b'{';
        self.frames.push((is_object, at));
        self.kept = at + 1;
        self.tail.clear();
        self.fence = 0;
        self.state =
            if is_object { State::Key { comma: None } } else { State::Value { first: true, comma: None } };
        let kind = if is_object { Kind::Object } else { Kind::Array };
        sink(Event { token: Token::Begin(kind), span: Span::new(at, at + 1), at });
    }

    fn close(&mut self, at: usize, sink: &mut impl FnMut(Event)) {
        if let Some((is_object, start)) = self.frames.pop() {
            let kind = if is_object { Kind::Object } else { Kind::Array };
            self.ended(kind, Span::new(start, at + 1), at, sink);
        }
    }

    fn ended(&mut self, kind: Kind, span: Span, at: usize, sink: &mut impl FnMut(Event)) {
        self.kept = span.end;
        self.state = State::Next;
        if self.frames.is_empty() {
            self.first = self.first.or(Some(span));
            self.state = if self.level == Level::Strict { State::Done } else { State::Outside };
        }
        sink(Event { token: Token::End(kind), span, at });
    }

    /// Returns whether the comma before a closing bracket may be skipped, and reports it.
    fn trails(&self, comma: Option<usize>, at: usize, sink: &mut impl FnMut(Event)) -> bool {
        let comma = comma.filter(|_| self.level >= EditKind::TrailingComma.level());
        if let Some(comma) = comma {
            let span = Span::new(comma, comma + 1);
            sink(Event { token: Token::Edit(EditKind::TrailingComma), span, at });
        }
        comma.is_some()
    }

    /// Ends the events at a byte that is not JSON. A scalar outside of containers was prose.
    fn stuck(&mut self, byte: u8, at: usize, sink: &mut impl FnMut(Event)) {
        if self.frames.is_empty() && self.level > Level::Strict {
            (self.state, self.prose) = (State::Outside, true);
            let span = Span::new(self.start, at);
            sink(Event { token: Token::Edit(EditKind::Prose), span, at });
            self.outside(byte, at, sink);
        } else {
            self.state = State::Stuck(at);
        }
    }
}

const fn literal(kind: Kind) -> &'static [u8] {
    match kind {
        Kind::True => b"true",
        Kind::False => b"false",
        _ => b"null",
    }
}
