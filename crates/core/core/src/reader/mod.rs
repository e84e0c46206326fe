//! Reads an answer along with its contract while it arrives.

mod build;
mod check;
mod ended;
mod enter;
mod follow;
mod frame;
mod judged;
mod live;
mod node;
mod outline;
mod places;
mod reject;

use formwork_json::{
    EditKind, Event, JsonPath, Kind, Level, Lexer, Position, Span, Token, characters, unquoted,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Context, Report, Stage, Violation};
pub use ended::{Ended, Outlook, Validity};
pub use follow::Follower;
use frame::{Dependent, Eval, Frame, Reason, path_of};
use judged::Judged;
pub use live::{Item, Progress, Snapshot};
use node::{Id, Limit, bit};
pub use outline::Outline;
pub(crate) use places::Places;

/// Walks the schema of a contract over the first document of a text that arrives in chunks.
///
/// After each chunk it knows whether the document is complete, can become valid or cannot, the longest prefix that is valid so far,
/// and each value that has ended. It decides types, `enum`, `const`, bounds, lengths, names and numbers of members and items as
/// early as a byte allows it, through `$ref`, `allOf` and the branches of `anyOf` and `oneOf` that are left. The validator judges
/// every other keyword when its value ends. The result does not depend on the chunks.
///
/// The reader never calls a text impossible that can become valid. `null` for an optional member counts as an absent member, which
/// lifting and other orders accept. If a name is repeated in an object, each of its values has to be valid, although the last one counts.
/// At [`Level::Lenient`] a syntax error decides nothing, and a string, number or literal is judged only when a comma, a closing bracket
/// or the end of the text follows.
///
/// It can be stored between any two chunks. The time is linear in the text, apart from the validator: each keyword that it judges
/// costs the bytes of the value that ends.
///
/// ```
/// use formwork_core::{Level, Outline, Outlook, Reader, Validity};
///
/// let schema = serde_json::json!({"properties": {"name": {"type": "string"}, "risks": {"items": {"enum": ["low", "high"]}}}});
/// let (outline, mut reader) = (Outline::new(&schema, None), Reader::new(Level::Clean));
/// let mut paths = Vec::new();
/// for chunk in ["Here: {\"name\": \"Ada\", \"ri", "sks\": [\"low\", \"mod", "erate\"]"] {
///     reader.push(&outline, chunk, |ended| {
///         paths.extend((ended.validity == Validity::Valid).then(|| ended.path().to_string()));
///     });
/// }
/// assert_eq!(paths, ["$.name", "$.risks[0]"]);
/// let Outlook::Impossible { at, violation } = reader.outlook() else { panic!() };
/// assert_eq!((*at, violation.path.to_string()), (40, "$.risks[1]".to_owned()));
/// assert_eq!(&reader.text()[reader.valid_prefix()], "{\"name\": \"Ada\", \"risks\": [\"low\"");
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Reader {
    lexer: Lexer,
    text: String,
    outlook: Outlook,
    frames: Vec<Frame>,
    /// The schemas of the member whose name has just ended.
    members: Vec<Seed>,
    tracked: Option<Tracked>,
    /// The document so far that is valid.
    valid: Span,
    ended: bool,
    /// The string, number or literal that is being read, at the lenient level.
    #[serde(default)]
    held: Option<Held>,
    #[serde(skip)]
    spare: Vec<Frame>,
}

/// A string, number or literal that is judged once the text after it shows that it has ended: the tolerant reader may read
/// `2024-01-05` or `"a "b" c"` as one string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Held {
    kind: Kind,
    start: usize,
    /// The byte after it, if it has ended as strict JSON.
    end: Option<usize>,
    /// The byte up to which only white space follows it.
    next: usize,
}

/// A schema of the value that comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Seed {
    node: Id,
    outer: u32,
    /// Whether the value may be absent.
    optional: bool,
}

/// The text so far of a string that may become wrong before it ends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Tracked {
    text: String,
    count: usize,
    /// The end of its bytes in the whole text.
    end: usize,
}

/// Two readers are equal whether or not they have memory in reserve.
impl PartialEq for Reader {
    fn eq(&self, other: &Self) -> bool {
        self.lexer == other.lexer
            && self.text == other.text
            && self.outlook == other.outlook
            && self.frames == other.frames
            && self.members == other.members
            && self.tracked == other.tracked
            && (self.valid, self.ended, self.held) == (other.valid, other.ended, other.held)
    }
}

impl Reader {
    /// Creates a reader before any text, for texts that are read at this level in the end.
    pub fn new(level: Level) -> Self {
        Self {
            lexer: Lexer::new(level),
            text: String::new(),
            outlook: Outlook::Possible,
            frames: Vec::new(),
            members: Vec::new(),
            tracked: None,
            valid: Span::default(),
            ended: false,
            held: None,
            spare: Vec::new(),
        }
    }

    /// Returns the text so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the prospects of the document.
    pub const fn outlook(&self) -> &Outlook {
        &self.outlook
    }

    /// Returns the bytes from the beginning of the document to the end of the last value of it that ended while it could still
    /// become valid; empty before the first one.
    pub const fn valid_prefix(&self) -> std::ops::Range<usize> {
        self.valid.start..self.valid.end
    }

    /// Returns the path of the value that is open, or that has ended last.
    pub fn open_path(&self) -> JsonPath {
        if self.held.is_some() {
            return self.open_value();
        }
        let open = self.frames.split_last().map_or(&[][..], |(inner, around)| {
            if matches!(inner.kind, Kind::Object | Kind::Array) { &self.frames } else { around }
        });
        path_of(open)
    }

    /// Returns the path of the innermost value that is open.
    fn open_value(&self) -> JsonPath {
        let Some((inner, around)) = self.frames.split_last() else { return JsonPath::root() };
        let path = path_of(around);
        match (self.held, &inner.key) {
            (None, _) => path,
            (Some(_), Some(key)) => path.key(key.as_str()),
            (Some(_), None) => path.index(inner.count),
        }
    }

    /// Returns whether the document is a number or literal that has not ended.
    fn is_word(&self) -> bool {
        let kind = self.frames.first().map(|frame| frame.kind).or(self.held.map(|held| held.kind));
        kind.is_some_and(|kind| is_scalar(kind) && kind != Kind::String)
    }

    /// Returns whether the document has begun and not ended.
    pub const fn is_inside(&self) -> bool {
        !self.frames.is_empty() || self.held.is_some()
    }

    /// Returns whether the text is the document so far: nothing but white space, a byte order mark, fences and reasoning stood
    /// before it.
    pub const fn is_bare(&self) -> bool {
        !self.lexer.has_prose()
    }

    /// Returns the lexer.
    pub const fn lexer(&self) -> &Lexer {
        &self.lexer
    }

    /// Returns the document so far; see [`Lexer::snapshot`].
    pub fn snapshot(&self) -> Option<Value> {
        self.lexer.snapshot(&self.text)
    }

    /// Reads the next chunk, and calls `ended` for each value of the document that ends. Once the document cannot become valid, the validity
    /// of each value is [`Validity::Impossible`].
    pub fn push(&mut self, outline: &Outline, chunk: &str, mut ended: impl FnMut(Ended<'_>)) -> &Outlook {
        if self.text.is_empty() && outline.takes_scalars() {
            self.lexer = std::mem::replace(&mut self.lexer, Lexer::new(Level::Strict)).with_scalars(true);
        }
        self.text.push_str(chunk);
        self.walk(outline, &mut ended, |lexer, sink| lexer.push(chunk.as_bytes(), sink));
        self.release(outline, &mut ended, false);
        self.track(outline, self.text.len());
        if let Position::Stuck(at) = self.lexer.position()
            && self.outlook == Outlook::Possible
            && self.lexer.level() < Level::Lenient
        {
            let violation = Violation::new(self.open_path(), "json", Stage::Read);
            let found = self.text.get(at..).and_then(|rest| rest.chars().next());
            let violation =
                violation.with_found(found.map_or_else(String::new, |found| format!("`{found}`")));
            self.impossible(at, Span::new(at, at + 1), violation.with_expected("JSON"));
        }
        &self.outlook
    }

    /// Ends the text: a number at its end is complete if it is the document.
    pub fn end(&mut self, outline: &Outline, mut ended: impl FnMut(Ended<'_>)) -> &Outlook {
        self.walk(outline, &mut ended, |lexer, sink| lexer.end(sink));
        self.release(outline, &mut ended, true);
        &self.outlook
    }

    /// Passes the events of the lexer on.
    fn walk(
        &mut self,
        outline: &Outline,
        ended: &mut dyn FnMut(Ended<'_>),
        lex: impl FnOnce(&mut Lexer, &mut dyn FnMut(Event)),
    ) {
        let mut lexer = std::mem::replace(&mut self.lexer, Lexer::new(Level::Strict));
        let is_lenient = lexer.level() == Level::Lenient;
        lex(&mut lexer, &mut |event| match event.token {
            Token::Begin(kind) if is_lenient && is_scalar(kind) && !self.ended => {
                self.release(outline, ended, false);
                self.held = Some(Held { kind, start: event.span.start, end: None, next: 0 });
            }
            Token::End(kind) if is_lenient && is_scalar(kind) && !self.ended => {
                let end = event.span.end;
                self.held.iter_mut().for_each(|held| (held.end, held.next) = (Some(end), end));
            }
            Token::Edit(EditKind::Prose) => {
                self.held = None;
                self.event(outline, event, ended);
            }
            _ => {
                self.release(outline, ended, self.frames.is_empty());
                self.event(outline, event, ended);
            }
        });
        self.lexer = lexer;
    }

    /// Judges the value that is held, if the text after it shows that it has ended. The document ends with the text, or with the next
    /// document.
    fn release(&mut self, outline: &Outline, ended: &mut dyn FnMut(Ended<'_>), is_over: bool) {
        let Some(Held { kind, start, end: Some(end), next }) = &mut self.held else { return };
        let rest = self.text.as_bytes().get(*next..).unwrap_or_default();
        *next += rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
        let (kind, span, next, is_root) = (*kind, Span::new(*start, *end), *next, self.frames.is_empty());
        let is_sure = match self.text.as_bytes().get(next) {
            Some(byte) => !is_root && matches!(byte, b',' | b'}' | b']'),
            None => is_over,
        };
        if !(is_sure || is_root && is_over) {
            return;
        }
        self.held = None;
        let was_possible = self.outlook == Outlook::Possible;
        let at = if kind == Kind::Number { span.end } else { span.end - 1 };
        for token in [Token::Begin(kind), Token::End(kind)] {
            self.event(outline, Event { token, span, at }, ended);
        }
        match &mut self.outlook {
            Outlook::Impossible { .. } if !is_sure && was_possible => self.outlook = Outlook::Possible,
            Outlook::Impossible { at: decided, .. } if was_possible => {
                *decided = if is_root { at } else { next }
            }
            _ => {}
        }
    }

    fn event(&mut self, outline: &Outline, event: Event, ended: &mut dyn FnMut(Ended<'_>)) {
        if event.token == Token::Edit(EditKind::Prose) {
            // A word that could have been the document is prose.
            self.frames.clear();
            (self.outlook, self.tracked) = (Outlook::Possible, None);
        }
        if self.ended || matches!(self.outlook, Outlook::Impossible { .. }) {
            return self.pass(event, ended);
        }
        match event.token {
            Token::Begin(kind) => self.begin(outline, kind, event),
            Token::Key => self.key(outline, event),
            Token::End(kind) => self.value(outline, kind, event, ended),
            Token::Edit(_) => {}
        }
    }

    /// Follows a document that is decided, only to know its values.
    fn pass(&mut self, event: Event, ended: &mut dyn FnMut(Ended<'_>)) {
        if self.ended {
            return;
        }
        match event.token {
            Token::Begin(kind) => {
                self.frames.iter_mut().next_back().into_iter().for_each(|outer| outer.count += 1);
                self.frames.push(Frame::new(kind, event.span.start));
            }
            Token::Key => {
                if let Some(frame) = self.frames.last_mut() {
                    frame.name(&unquoted(event.span.of(&self.text)));
                }
            }
            Token::End(_) => {
                self.frames.pop();
                self.ended = self.frames.is_empty();
                let validity = Validity::Impossible;
                ended(Ended { frames: &self.frames, text: &self.text, span: event.span, validity });
            }
            Token::Edit(_) => {}
        }
    }

    /// Judges a value at its end.
    fn value(&mut self, outline: &Outline, kind: Kind, event: Event, ended: &mut dyn FnMut(Ended<'_>)) {
        self.track(outline, event.span.end - 1);
        self.tracked = None;
        if matches!(self.outlook, Outlook::Impossible { .. }) {
            return self.pass(event, ended);
        }
        let frame = self.frames.last().filter(|frame| kind == Kind::String && !frame.converted.is_empty());
        if let Some(frame) = frame {
            let text = unquoted(event.span.of(&self.text));
            let lost = frame.converted.iter().filter(|(node, _)| !outline.may_convert_text(*node, &text));
            let lost: Vec<_> = lost.map(|(node, outer)| (*outer, outline.node(*node).types())).collect();
            for (outer, types) in lost {
                self.lose(outer, Reason::new("type").expected(types), event);
            }
            if matches!(self.outlook, Outlook::Impossible { .. }) {
                return self.close(outline, event, ended);
            }
        }
        let Some(frame) = self.frames.last_mut() else { return };
        let mut judged = Judged::new(event.span.of(&self.text));
        let mut failed = Vec::new();
        let listed = |eval: &Eval| outline.node(eval.node).values.as_ref();
        let is_scalar = !matches!(kind, Kind::Object | Kind::Array | Kind::Null);
        let is_respelled = outline.converts && is_scalar && {
            let mut lists = frame.evals.iter().filter(|eval| eval.alive).filter_map(listed);
            lists.any(|values| judged.value().is_some_and(|value| !values.contains(value)))
        };
        frame.is_soft |= is_respelled;
        frame.has_absent |= is_respelled;
        let is_open = kind == Kind::Object && frame.evals.iter().any(|eval| outline.node(eval.node).is_open);
        // Members that are not decided may be added.
        let count = frame.count + if is_open { outline.undecided.len() } else { 0 };
        for at in 0..frame.evals.len() {
            let has_absent = frame.has_absent;
            let Some(eval) = frame.evals.get_mut(at).filter(|eval| eval.alive) else { continue };
            let node = outline.node(eval.node);
            if is_respelled {
                let raw = judged.raw;
                let text = judged.value().and_then(Value::as_str).unwrap_or(raw);
                match &node.values {
                    Some(values) if !values.has_respelled(text) => failed.push((at, Reason::new("enum"))),
                    _ => eval.unsure = true,
                }
                continue;
            }
            eval.unsure |= is_open;
            let missing = if kind == Kind::Object { node.required.as_slice() } else { &[] };
            let missing = missing
                .iter()
                .enumerate()
                .find(|(number, name)| !eval.has_seen(*number) && !outline.undecided.contains(*name));
            if let Some((_, name)) = missing {
                failed.push((at, Reason::new("required").below(name)));
                continue;
            }
            let wrong = judged.limits(node, kind, count);
            if let Some(reason) = wrong {
                failed.push((at, reason));
                continue;
            }
            if kind == Kind::Number && node.integer && !judged.is_integer() {
                failed.push((at, Reason::new("type").expected("integer")));
                continue;
            }
            if let Some(values) = &node.values {
                match judged.value() {
                    Some(_) if has_absent => eval.unsure = true,
                    Some(value) if !values.contains(value) => {
                        failed.push((at, Reason::new("enum")));
                        continue;
                    }
                    Some(_) => {}
                    None => eval.unsure = true,
                }
            }
            for (_, check) in node.checks.iter().filter(|(kinds, _)| kinds & bit(kind) != 0) {
                let accepts = if has_absent { None } else { judged.value() };
                match accepts.and_then(|value| check.accepts(&outline.judge, value)) {
                    Some(true) => {}
                    Some(false) => {
                        failed.push((at, Reason::new(check.keyword)));
                        break;
                    }
                    None => eval.unsure = true,
                }
            }
        }
        for (at, reason) in failed {
            self.fail(at, reason, event.at, event.span);
        }
        while let Some(frame) = self.frames.last_mut() {
            let twice = frame.settle();
            if twice.is_empty() {
                break;
            }
            for at in twice {
                let reason = Reason::new("oneOf").expected("exactly one of its variants");
                self.fail(at, reason, event.at, event.span);
            }
        }
        self.close(outline, event, ended);
    }

    /// Takes a value that has ended off the open ones.
    fn close(&mut self, outline: &Outline, event: Event, ended: &mut dyn FnMut(Ended<'_>)) {
        let Some(frame) = self.frames.pop() else { return };
        let mut validity = if frame.is_soft { Validity::Undecided } else { Validity::Valid };
        for to in frame.undecided() {
            validity = Validity::Undecided;
            if let Dependent::Outer(at) = to
                && let Some(eval) = self.frames.last_mut().and_then(|outer| outer.evals.get_mut(at as usize))
            {
                eval.unsure = true;
            }
        }
        if let Some(outer) = self.frames.last_mut() {
            outer.has_absent |= frame.has_absent;
            outer.is_soft |= frame.is_soft;
        } else {
            self.ended = true;
            let is_whole = validity == Validity::Undecided && !frame.has_absent;
            if let Some(wrong) = outline.structure().filter(|_| is_whole).and_then(|structure| {
                let value = serde_json::from_str(event.span.of(&self.text)).ok()?;
                let mut report = Report::default();
                structure.validate(&value, &Context::EMPTY, &mut report);
                report.into_violations().into_iter().next()
            }) {
                self.impossible(event.at, event.span, wrong);
            }
            if self.outlook == Outlook::Possible {
                self.outlook = Outlook::Complete { at: event.at };
            }
        }
        if matches!(self.outlook, Outlook::Impossible { .. }) {
            validity = Validity::Impossible;
        } else {
            self.valid.end = event.span.end;
        }
        ended(Ended { frames: &self.frames, text: &self.text, span: event.span, validity });
        if self.spare.len() < MAX_SPARE {
            self.spare.push(frame);
        }
    }

    /// Reads a string that may become wrong before it ends, up to a byte.
    fn track(&mut self, outline: &Outline, end: usize) {
        let Some(mut tracked) = self.tracked.take() else { return };
        let Some(frame) = self.frames.last() else { return self.tracked = Some(tracked) };
        // Most strings have no list of values and are far from their maximum length, so that their characters are only counted.
        let rest = self.text.get(tracked.end..end).filter(|rest| !rest.contains('\\')).filter(|rest| {
            let most = tracked.count + rest.len();
            let mut nodes = frame.evals.iter().filter(|eval| eval.alive).map(|eval| outline.node(eval.node));
            nodes.all(|node| {
                node.values.is_none() && node.limit(Limit::MaxLength).is_none_or(|max| most as f64 <= max)
            })
        });
        if let Some(rest) = rest {
            tracked.count += rest.chars().count();
            tracked.end = end;
        }
        while let Some((read, character)) =
            self.text.get(tracked.end..end).and_then(|rest| characters(rest).next())
        {
            tracked.end += read;
            tracked.count += 1;
            let Some(frame) = self.frames.last() else { break };
            let alive = frame.evals.iter().enumerate().filter(|(_, eval)| eval.alive);
            let nodes = alive.map(|(at, eval)| (at, outline.node(eval.node)));
            if nodes.clone().any(|(_, node)| node.values.is_some()) {
                tracked.text.push(character);
            }
            let mut failed = Vec::new();
            for (at, node) in nodes {
                if node.values.as_ref().is_some_and(|values| !values.begins(&tracked.text)) {
                    failed.push((at, Reason::new("enum")));
                } else if let Some(max) =
                    node.limit(Limit::MaxLength).filter(|max| tracked.count as f64 > *max)
                {
                    failed.push((at, Reason::new("maxLength").expected(format!("at most {max} characters"))));
                }
            }
            let (start, last) = (frame.start, tracked.end - 1);
            for (at, reason) in failed {
                self.fail(at, reason, last, Span::new(start, last + 1));
            }
            if matches!(self.outlook, Outlook::Impossible { .. }) {
                return;
            }
        }
        self.tracked = Some(tracked);
    }
}

const fn is_scalar(kind: Kind) -> bool {
    !matches!(kind, Kind::Object | Kind::Array)
}

/// The maximum number of frames that are kept for reuse.
const MAX_SPARE: usize = 8;
