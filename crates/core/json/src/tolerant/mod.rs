//! The tolerant parser: reads one JSON value from text that is almost JSON, and records every difference as an [`Edit`].
//!
//! It does not search for the value (`find` does): it starts at a given byte. Damage that the level does not allow ends the
//! parse with a [`Stop`]. Work is bounded: look-ahead and depth are capped, and every byte that is read is counted by the
//! [`Source`], so that reading stops at text that would have to be read again and again.

mod scalar;
mod space;
mod string;

use serde_json::{Map, Value};

use crate::number::changes;
use crate::source::{Source, Work};
use crate::{Edit, EditKind, Level, MAX_DEPTH, Rounded, Segment, Span};

/// The reason why a parse ended without a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The text is not JSON at this byte, and the level does not allow the repair.
    Syntax { at: usize, message: String },
    /// Brackets are nested deeper than the limit.
    TooDeep { at: usize },
    /// The limit of work is reached.
    TooMuchWork { at: usize },
}

impl Stop {
    pub(crate) const fn at(&self) -> usize {
        match self {
            Self::Syntax { at, .. } | Self::TooDeep { at } | Self::TooMuchWork { at } => *at,
        }
    }
}

/// The reason why a name without a colon, or with quotes on one side of it alone, is none.
const NO_COLON: &str = "expected a colon after the name";

type Parsed<T> = Result<T, Stop>;

/// The result of a successful parse.
pub(crate) struct Tolerated {
    pub(crate) value: Value,
    /// The bytes of the value in the text.
    pub(crate) span: Span,
    pub(crate) edits: Vec<Edit>,
    pub(crate) rounded: Vec<Rounded>,
}

/// A parse without a value.
pub(crate) struct Failure {
    pub(crate) stop: Stop,
    /// The brackets that were open where it stopped, outermost first.
    pub(crate) open: Vec<u8>,
}

/// Reads the value that begins at `region.start` and ends before `region.end`. `work` counts the bytes that are examined
/// for the whole text.
pub(crate) fn parse_at(text: &str, region: Span, level: Level, work: &Work) -> Result<Tolerated, Failure> {
    let mut parser = Parser {
        source: Source::new(text, region.end, work),
        at: region.start,
        level,
        edits: Vec::new(),
        open: Vec::new(),
        closers: None,
        lost: false,
        rounded: Vec::new(),
    };
    let value = match parser.value(Place::Root) {
        Ok(_) if parser.lost => {
            return Err(Failure { stop: parser.syntax("expected a value"), open: Vec::new() });
        }
        Ok(value) => value,
        Err(stop) => return Err(Failure { stop, open: parser.open }),
    };
    let span = Span::new(region.start, parser.at);
    if let Some(Closers { from, with }) = parser.closers.take() {
        parser.edits.push(Edit::new(EditKind::Closed, Span::new(from, parser.source.end()), with));
    }
    let rounded = parser
        .rounded
        .into_iter()
        .map(|Changed { text, steps }| Rounded { path: steps.into_iter().rev().collect(), text });
    Ok(Tolerated { value, span, edits: parser.edits, rounded: rounded.collect() })
}

/// The context of a value or string, which determines what may follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Key,
    Member,
    Item,
}

/// The closing marks that are missing at the end of the text, and the byte from which on the text was skipped.
struct Closers {
    from: usize,
    with: String,
}

/// A number that a double changes, with the steps from the value that is being read to it, innermost first.
struct Changed {
    text: String,
    steps: Vec<Segment>,
}

struct Parser<'t> {
    source: Source<'t>,
    at: usize,
    level: Level,
    edits: Vec<Edit>,
    /// The open brackets, outermost first.
    open: Vec<u8>,
    closers: Option<Closers>,
    /// Whether nothing could be kept of the last value of the text, such as `-`.
    lost: bool,
    rounded: Vec<Changed>,
}

impl Parser<'_> {
    fn value(&mut self, place: Place) -> Parsed<Value> {
        match self.peek() {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(b']'),
            // Brackets around a fence are no list.
            Some(b'`') if self.open == [b'['] && self.source.starts_with(self.at, "```") => {
                Err(self.syntax("expected a value, found a code fence"))
            }
            Some(b'(') if self.level >= Level::Lenient => self.tuple(),
            Some(_) if self.quote().is_some() => self.strings(place).map(Value::String),
            Some(_) => self.scalar(place),
            None => Err(self.syntax("expected a value, found the end of the text")),
        }
    }

    fn object(&mut self) -> Parsed<Value> {
        self.enter(b'{')?;
        let (mut members, first) = (Map::new(), self.rounded.len());
        self.items(b'}', |parser| parser.member(&mut members, first))?;
        Ok(Value::Object(members))
    }

    /// Reads the items of an object or array up to its end. `item` returns false where the text ends inside of an item.
    fn items(&mut self, closer: u8, mut item: impl FnMut(&mut Self) -> Parsed<bool>) -> Parsed<()> {
        let (is_object, mut count) = (closer == b'}', 0);
        let (with, outer_closer, outer) = if is_object { ("}", b']', b'[') } else { ("]", b'}', b'{') };
        loop {
            self.space()?;
            let before = self.at;
            match self.peek() {
                None => {
                    self.close_at_end(self.source.end(), with);
                    break;
                }
                Some(byte) if byte == closer => {
                    self.at += 1;
                    break;
                }
                Some(byte) if byte == outer_closer && self.closes_outer(outer) => {
                    self.edit(EditKind::Bracket, Span::at(self.at), with)?;
                    break;
                }
                // The end of an object in a list is missing before the next one.
                Some(b'{') if is_object && count > 0 && self.is_item() => {
                    self.edit(EditKind::Bracket, Span::at(self.at), with)?;
                    break;
                }
                Some(b',') => self.stray_comma(closer)?,
                Some(b'.') if self.source.starts_with(self.at, "...") => self.ellipsis()?,
                // `["a": 1]` may be an object, or a list of objects.
                Some(b':') if !is_object => {
                    return Err(self.syntax("expected a comma between the items of a list"));
                }
                Some(b'}' | b']' | b')') if !is_object => self.junk()?,
                Some(_) => {
                    if !item(self)? {
                        self.close_at_end(before, with);
                        break;
                    }
                    self.separator(closer)?;
                    count += 1;
                }
            }
            self.progress(before)?;
        }
        self.open.pop();
        Ok(())
    }

    /// Reads one `name: value`, or skips a character that cannot begin one. Returns `false` if the text ended before the
    /// value. The changed numbers of this object are those from `first` on.
    fn member(&mut self, members: &mut Map<String, Value>, first: usize) -> Parsed<bool> {
        let start = self.at;
        if matches!(self.peek(), Some(b':' | b'=' | b'{' | b'[' | b']' | b')')) {
            let is_open = matches!(self.peek(), Some(b'{' | b'['));
            self.junk()?;
            self.space()?;
            // A bracket is there twice only before a name: else the value that it opens would be lost.
            if is_open && matches!(self.peek(), Some(b'}' | b']' | b',')) {
                return Err(self.syntax("expected a name, found a bracket"));
            }
            return Ok(true);
        }
        let Some(name) = self.key()? else { return Ok(false) };
        let name_span = Span::new(start, self.at);
        let has_quotes = !self.lacks_quotes(start);
        self.space()?;
        let has_colon = matches!(self.peek(), Some(b':' | b'='));
        match self.peek() {
            None => return Ok(false),
            Some(b':') => self.at += 1,
            Some(b'=') => {
                let arrow = usize::from(self.source.starts_with(self.at, "=>")) + 1;
                self.edit(EditKind::Colon, Span::new(self.at, self.at + arrow), ":")?;
                self.at += arrow;
            }
            // `{1, 2}` is no object, and a name alone says nothing: any value would be invented.
            Some(b',' | b'}') => return Err(self.syntax("expected a colon and a value after the name")),
            Some(_) if !has_quotes => return Err(self.syntax(NO_COLON)),
            Some(_) => self.edit(EditKind::Colon, Span::at(self.at), ":")?,
        }
        self.space()?;
        let value_at = self.at;
        let mut inner = self.rounded.len();
        let value = match self.peek() {
            None => return Ok(false),
            Some(b',' | b'}' | b']') => {
                self.edit(EditKind::MissingValue, Span::at(self.at), "null")?;
                Value::Null
            }
            Some(_) => self.value(Place::Member)?,
        };
        if !has_colon && self.lacks_quotes(value_at) {
            return Err(Stop::Syntax { at: value_at, message: NO_COLON.to_owned() });
        }
        if std::mem::take(&mut self.lost) {
            return Ok(false);
        }
        if members.contains_key(&name) {
            self.edit(EditKind::DuplicateKey, name_span, &name)?;
            // The last value counts.
            let is_before = |changed: &mut Changed| matches!(changed.steps.last(), Some(Segment::Key(key)) if *key == name);
            inner -= self.rounded.extract_if(first..inner, is_before).count();
        }
        self.below(inner, || Segment::Key(name.clone()));
        members.insert(name, value);
        Ok(true)
    }

    /// Returns whether the text that was read last begins at `at` and has no quotes.
    fn lacks_quotes(&self, at: usize) -> bool {
        self.edits.last().is_some_and(|edit| edit.kind == EditKind::MissingQuote && edit.span.start == at)
    }

    /// Reads Python's `(1, 2)` and `(1,)` as lists; `(1)` is the value itself.
    fn tuple(&mut self) -> Parsed<Value> {
        let mark = self.edits.len();
        self.edit(EditKind::Bracket, Span::new(self.at, self.at + 1), "[")?;
        let mut list = self.array(b')')?;
        let has_comma = self.edits.last().is_some_and(|edit| {
            let after = self.source.slice(edit.span.end, self.at.saturating_sub(1));
            edit.kind == EditKind::TrailingComma && after.trim().is_empty()
        });
        if let (Some([_]), false, None) = (list.as_array().map(Vec::as_slice), has_comma, &self.closers)
            && let Some(bracket) = self.edits.get_mut(mark)
        {
            bracket.with.clear();
            list = list.get_mut(0).map(Value::take).unwrap_or_default();
        }
        Ok(list)
    }

    fn array(&mut self, closer: u8) -> Parsed<Value> {
        self.enter(if closer == b')' { b'(' } else { b'[' })?;
        let mut items = Vec::new();
        self.items(closer, |parser| {
            let inner = parser.rounded.len();
            let value = parser.value(Place::Item)?;
            parser.below(inner, || Segment::Index(items.len()));
            let is_lost = std::mem::take(&mut parser.lost);
            items.extend(Some(value).filter(|_| !is_lost));
            Ok(!is_lost)
        })?;
        Ok(Value::Array(items))
    }

    /// Reads the text between members or items: a comma, the end of the container (left to the caller), or nothing where a
    /// comma is missing.
    fn separator(&mut self, closer: u8) -> Parsed<()> {
        let value_end = self.at;
        self.space()?;
        match self.peek() {
            Some(b',') => {
                let comma = self.at;
                self.at += 1;
                self.space()?;
                match self.peek() {
                    Some(byte) if byte == closer => {
                        self.edit(EditKind::TrailingComma, Span::new(comma, comma + 1), "")
                    }
                    _ => Ok(()),
                }
            }
            Some(b'}' | b']') | None => Ok(()),
            Some(byte) if byte == closer => Ok(()),
            Some(b';' | b')' | b'\\') => self.junk(),
            Some(_) => self.edit(EditKind::MissingComma, Span::at(value_end), ","),
        }
    }

    /// Skips a comma in the place of a name or value.
    fn stray_comma(&mut self, closer: u8) -> Parsed<()> {
        let comma = Span::new(self.at, self.at + 1);
        self.at += 1;
        self.space()?;
        let kind = if self.peek() == Some(closer) { EditKind::TrailingComma } else { EditKind::ExtraComma };
        self.edit(kind, comma, "")
    }

    fn ellipsis(&mut self) -> Parsed<()> {
        let end = self.source.find(self.at, |c| c != '.');
        self.edit(EditKind::Ellipsis, Span::new(self.at, end), "")?;
        self.at = end;
        Ok(())
    }

    /// Skips one unexpected character.
    fn junk(&mut self) -> Parsed<()> {
        let len = self.source.char(self.at).map_or(1, char::len_utf8);
        self.edit(EditKind::Junk, Span::new(self.at, self.at + len), "")?;
        self.at += len;
        Ok(())
    }

    /// Notes a number that is changed.
    fn number(&mut self, number: &str) {
        if changes(number) {
            self.rounded.push(Changed { text: number.to_owned(), steps: Vec::new() });
        }
    }

    /// Adds the step to a value to the paths of its changed numbers, which are those from `first` on.
    fn below(&mut self, first: usize, step: impl Fn() -> Segment) {
        self.rounded.iter_mut().skip(first).for_each(|changed| changed.steps.push(step()));
    }

    fn enter(&mut self, bracket: u8) -> Parsed<()> {
        self.nest(bracket)?;
        self.at += 1;
        Ok(())
    }

    /// Records an open bracket, unless the maximum depth is reached.
    fn nest(&mut self, bracket: u8) -> Parsed<()> {
        if self.open.len() >= MAX_DEPTH {
            return Err(Stop::TooDeep { at: self.at });
        }
        self.open.push(bracket);
        Ok(())
    }

    /// Returns whether a bracket of that kind is open outside of the innermost one.
    fn closes_outer(&self, bracket: u8) -> bool {
        self.open.iter().rev().skip(1).any(|open| *open == bracket)
    }

    /// Returns whether the innermost object is an item of a list.
    fn is_item(&self) -> bool {
        matches!(self.open.as_slice(), [.., b'[', b'{'])
    }

    /// Records a closing mark that is missing at the end of the text, which is skipped from byte `from` on.
    fn close_at_end(&mut self, from: usize, closer: &str) {
        let closers =
            self.closers.get_or_insert_with(|| Closers { from: self.source.end(), with: String::new() });
        closers.from = closers.from.min(from);
        closers.with.push_str(closer);
        self.at = self.source.end();
    }

    fn edit(&mut self, kind: EditKind, span: Span, with: &str) -> Parsed<()> {
        if kind.level() > self.level {
            let level = kind.level();
            return Err(Stop::Syntax { at: span.start, message: format!("{kind} (read at level {level})") });
        }
        self.edits.push(Edit::new(kind, span, with));
        Ok(())
    }

    fn syntax(&self, message: impl Into<String>) -> Stop {
        Stop::Syntax { at: self.at, message: message.into() }
    }

    /// Skips a character if an iteration read nothing, and ends the parse at the limit of work.
    fn progress(&mut self, before: usize) -> Parsed<()> {
        self.check_work()?;
        if self.at == before && self.peek().is_some() {
            return self.junk();
        }
        Ok(())
    }

    fn check_work(&self) -> Parsed<()> {
        if self.source.is_used_up() { Err(Stop::TooMuchWork { at: self.at }) } else { Ok(()) }
    }

    fn peek(&self) -> Option<u8> {
        self.source.byte(self.at)
    }
}
