use serde_json::{Map, Value};

use crate::find::REASONING;
use crate::{JsonPath, MAX_DEPTH, Segment};

/// The progress of an [`Incremental`].
///
/// ```
/// use formwork_json::{Incremental, Progress};
///
/// let mut reader = Incremental::new();
/// assert_eq!(reader.push("Here: {\"age\"", |_| {}), Progress::Inside);
/// assert_eq!(reader.push(": 34}.", |_| {}), Progress::Complete { end: 17 });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// No object or array has begun: the text so far is white space, prose, a fence or reasoning.
    Before,
    /// The document has begun and is not complete.
    Inside,
    /// The document is complete.
    Complete {
        /// The byte offset after its last byte, from the first byte pushed.
        end: usize,
    },
    /// The text is not JSON at this byte. Reading stops and keeps the values so far; [`read`](crate::read) may still repair
    /// the text.
    Stuck {
        /// The byte offset from the first byte pushed.
        at: usize,
    },
}

/// A value that was just completed.
///
/// ```
/// use formwork_json::{Closed, Incremental};
///
/// let mut names = Vec::new();
/// let mut reader = Incremental::new();
/// reader.push(r#"[{"name": "Ada"}, {"name": "Li"#, |closed: Closed<'_>| {
///     if closed.path().to_string().ends_with(".name") {
///         names.push(closed.value.clone());
///     }
/// });
/// assert_eq!(names, ["Ada"]);
/// ```
#[derive(Debug)]
pub struct Closed<'a> {
    frames: &'a [Frame],
    /// The value.
    pub value: &'a Value,
}

impl Closed<'_> {
    /// Returns the path of the value.
    pub fn path(&self) -> JsonPath {
        self.frames.iter().map(Frame::segment).collect()
    }
}

/// Reads one JSON document from a stream of chunks, each byte once.
///
/// Reading begins at the first `{` or `[` outside of a reasoning block, and accepts strict JSON from there. Chunks may end
/// anywhere, even inside an escape (`&str` keeps characters whole). The time is linear in the bytes pushed, and the memory
/// in the document. Only [`Incremental::snapshot`] takes time proportional to the document.
///
/// ```
/// use formwork_json::{Incremental, Progress};
///
/// let mut reader = Incremental::new();
/// let mut closed = Vec::new();
/// for chunk in ["Here: {\"name\": \"Ad", "a\", \"risks\": [1", "2, {\"a\": tr"] {
///     reader.push(chunk, |done| closed.push((done.path().to_string(), done.value.clone())));
/// }
/// assert_eq!(reader.progress(), Progress::Inside);
/// assert_eq!(closed, [("$.name".to_string(), "Ada".into()), ("$.risks[0]".to_string(), 12.into())]);
/// assert_eq!(reader.snapshot(), Some(serde_json::json!({"name": "Ada", "risks": [12, {}]})));
/// ```
#[derive(Debug, Default)]
pub struct Incremental {
    state: State,
    frames: Vec<Frame>,
    /// The text of the string, number or literal that is being read.
    token: String,
    /// The number of bytes pushed so far.
    seen: usize,
    root: Option<Value>,
    end: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// Before the document, with text that may be the beginning of a reasoning tag.
    Lead {
        tag: String,
    },
    /// In a reasoning block, with its closing tag and text that may be the beginning of it.
    Reasoning {
        close: &'static str,
        tag: String,
    },
    Value {
        first: bool,
    },
    Key {
        first: bool,
    },
    Colon,
    Next,
    Str {
        key: bool,
    },
    Escape {
        key: bool,
    },
    Unicode {
        key: bool,
        digits: String,
        high: Option<u16>,
    },
    LowSurrogate {
        key: bool,
        high: u16,
        backslash: bool,
    },
    Word,
    Done,
    Stuck {
        at: usize,
    },
}

impl Default for State {
    fn default() -> Self {
        Self::Lead { tag: String::new() }
    }
}

#[derive(Debug)]
enum Frame {
    Object { members: Map<String, Value>, key: Option<String> },
    Array { items: Vec<Value> },
}

impl Frame {
    fn segment(&self) -> Segment {
        match self {
            Self::Object { key, .. } => Segment::Key(key.clone().unwrap_or_default()),
            Self::Array { items } => Segment::Index(items.len()),
        }
    }

    fn put(&mut self, value: Value) {
        match self {
            Self::Object { members, key } => {
                members.insert(key.take().unwrap_or_default(), value);
            }
            Self::Array { items } => items.push(value),
        }
    }

    /// Returns the container with `inner` at its open place.
    fn with(&self, inner: Option<Value>) -> Value {
        match self {
            Self::Object { members, key } => {
                let mut members = members.clone();
                if let (Some(key), Some(inner)) = (key, inner) {
                    members.insert(key.clone(), inner);
                }
                Value::Object(members)
            }
            Self::Array { items } => Value::Array(items.iter().cloned().chain(inner).collect()),
        }
    }
}

impl Incremental {
    /// Creates a reader before any text.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the progress so far.
    pub fn progress(&self) -> Progress {
        match (&self.state, self.end) {
            (_, Some(end)) => Progress::Complete { end },
            (State::Stuck { at }, _) => Progress::Stuck { at: *at },
            (State::Lead { .. } | State::Reasoning { .. }, _) => Progress::Before,
            _ => Progress::Inside,
        }
    }

    /// Reads the next chunk and calls `closed` for every value that it completes: inner values first, the document last.
    pub fn push(&mut self, chunk: &str, mut closed: impl FnMut(Closed<'_>)) -> Progress {
        for (offset, c) in chunk.char_indices() {
            self.step(c, self.seen + offset, &mut closed);
        }
        self.seen += chunk.len();
        self.progress()
    }

    /// Returns the document so far: open strings as they are, open arrays and objects closed, unfinished names, numbers and
    /// literals left out. `None` before the document has begun.
    pub fn snapshot(&self) -> Option<Value> {
        if let Some(root) = &self.root {
            return Some(root.clone());
        }
        let in_string = matches!(
            self.state,
            State::Str { key: false }
                | State::Escape { key: false }
                | State::Unicode { key: false, .. }
                | State::LowSurrogate { key: false, .. }
        );
        let open = in_string.then(|| Value::String(self.token.clone()));
        let mut frames = self.frames.iter().rev();
        let innermost = frames.next()?.with(open);
        Some(frames.fold(innermost, |inner, frame| frame.with(Some(inner))))
    }

    fn step(&mut self, c: char, at: usize, closed: &mut impl FnMut(Closed<'_>)) {
        match &mut self.state {
            State::Lead { tag } => {
                if matches!(c, '{' | '[') {
                    return self.open(c, at);
                }
                if c == '<' || !tag.is_empty() {
                    if c == '<' {
                        tag.clear();
                    }
                    tag.push(c.to_ascii_lowercase());
                }
                if let Some((_, close)) = REASONING.iter().find(|(open, _)| open == tag) {
                    self.state = State::Reasoning { close, tag: String::new() };
                } else if c == '>' {
                    tag.clear();
                }
            }
            State::Reasoning { close, tag } => {
                if c == '<' {
                    tag.clear();
                }
                if c == '<' || !tag.is_empty() {
                    tag.push(c.to_ascii_lowercase());
                }
                if tag == close {
                    self.state = State::default();
                } else if tag.len() > close.len() {
                    tag.clear();
                }
            }
            State::Str { key } => match c {
                '"' => {
                    let key = *key;
                    self.end_string(key, at, closed);
                }
                '\\' => self.state = State::Escape { key: *key },
                c if c < ' ' => self.state = State::Stuck { at },
                c => self.token.push(c),
            },
            State::Escape { key } => {
                let key = *key;
                let read = match c {
                    '"' | '\\' | '/' => Some(c),
                    'b' => Some('\u{8}'),
                    'f' => Some('\u{C}'),
                    'n' => Some('\n'),
                    'r' => Some('\r'),
                    't' => Some('\t'),
                    _ => None,
                };
                self.state = match (read, c) {
                    (Some(_), _) => State::Str { key },
                    (None, 'u') => State::Unicode { key, digits: String::new(), high: None },
                    (None, _) => State::Stuck { at },
                };
                self.token.extend(read);
            }
            State::Unicode { key, digits, high } => {
                digits.push(c);
                if !c.is_ascii_hexdigit() {
                    self.state = State::Stuck { at };
                } else if digits.len() == 4 {
                    let (key, high) = (*key, *high);
                    let code = u16::from_str_radix(digits, 16).unwrap_or_default();
                    self.state = match (high, code) {
                        (None, 0xD800..=0xDBFF) => State::LowSurrogate { key, high: code, backslash: false },
                        (None, _) => State::Str { key },
                        (Some(_), 0xDC00..=0xDFFF) => State::Str { key },
                        (Some(_), _) => State::Stuck { at },
                    };
                    if !matches!(self.state, State::LowSurrogate { .. }) {
                        let units = high.into_iter().chain([code]);
                        self.token.extend(
                            char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)),
                        );
                    }
                }
            }
            State::LowSurrogate { key, high, backslash } => {
                self.state = match (*backslash, c) {
                    (false, '\\') => State::LowSurrogate { key: *key, high: *high, backslash: true },
                    (true, 'u') => State::Unicode { key: *key, digits: String::new(), high: Some(*high) },
                    _ => State::Stuck { at },
                };
            }
            State::Word => {
                if c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.') {
                    self.token.push(c);
                } else if let Ok(value) = serde_json::from_str(&std::mem::take(&mut self.token)) {
                    self.finish(value, at, closed);
                    self.step(c, at, closed);
                } else {
                    self.state = State::Stuck { at };
                }
            }
            _ if matches!(c, ' ' | '\t' | '\n' | '\r') => {}
            State::Value { first } => match c {
                '{' | '[' => self.open(c, at),
                '"' => self.begin(State::Str { key: false }, None),
                ']' if *first => self.close(at, closed),
                '-' | '0'..='9' | 't' | 'f' | 'n' => self.begin(State::Word, Some(c)),
                _ => self.state = State::Stuck { at },
            },
            State::Key { first } => match c {
                '"' => self.begin(State::Str { key: true }, None),
                '}' if *first => self.close(at, closed),
                _ => self.state = State::Stuck { at },
            },
            State::Colon => {
                self.state = if c == ':' { State::Value { first: false } } else { State::Stuck { at } }
            }
            State::Next => match (c, self.frames.last()) {
                (',', Some(Frame::Object { .. })) => self.state = State::Key { first: false },
                (',', Some(Frame::Array { .. })) => self.state = State::Value { first: false },
                ('}', Some(Frame::Object { .. })) | (']', Some(Frame::Array { .. })) => {
                    self.close(at, closed)
                }
                _ => self.state = State::Stuck { at },
            },
            State::Done | State::Stuck { .. } => {}
        }
    }

    fn begin(&mut self, state: State, first: Option<char>) {
        self.token.clear();
        self.token.extend(first);
        self.state = state;
    }

    fn open(&mut self, bracket: char, at: usize) {
        if self.frames.len() >= MAX_DEPTH {
            self.state = State::Stuck { at };
        } else if bracket == '{' {
            self.frames.push(Frame::Object { members: Map::new(), key: None });
            self.state = State::Key { first: true };
        } else {
            self.frames.push(Frame::Array { items: Vec::new() });
            self.state = State::Value { first: true };
        }
    }

    fn close(&mut self, at: usize, closed: &mut impl FnMut(Closed<'_>)) {
        let value = match self.frames.pop() {
            Some(Frame::Object { members, .. }) => Value::Object(members),
            Some(Frame::Array { items }) => Value::Array(items),
            None => return,
        };
        self.finish(value, at + 1, closed);
    }

    fn end_string(&mut self, key: bool, at: usize, closed: &mut impl FnMut(Closed<'_>)) {
        let text = std::mem::take(&mut self.token);
        match (key, self.frames.last_mut()) {
            (true, Some(Frame::Object { key, .. })) => {
                *key = Some(text);
                self.state = State::Colon;
            }
            _ => self.finish(Value::String(text), at + 1, closed),
        }
    }

    fn finish(&mut self, value: Value, end: usize, closed: &mut impl FnMut(Closed<'_>)) {
        closed(Closed { frames: &self.frames, value: &value });
        match self.frames.last_mut() {
            Some(frame) => {
                frame.put(value);
                self.state = State::Next;
            }
            None => {
                self.root = Some(value);
                self.end = Some(end);
                self.state = State::Done;
            }
        }
    }
}
