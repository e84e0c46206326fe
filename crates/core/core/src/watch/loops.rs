//! The loops of tiny models, which are ended long before a [`Watch`](super::Watch) reports a runaway.

use formwork_json::{Event, Kind, Position, Span, Token};

use super::repetition::MAX_PERIOD;

/// The number of times that a text is in a loop at least.
const REPEATS: usize = 4;

/// The length of a loop at least, in bytes.
const MIN_LOOP: usize = 32;

/// Finds a text that a string repeats, and items that a list repeats, in time linear in the text.
#[derive(Debug, Clone, Default)]
pub(super) struct Loops {
    text: Vec<u8>,
    /// The items of each open list; `None` for an open object.
    open: Vec<Option<Vec<Span>>>,
    /// The first byte of the current string, and how many of its last bytes are equal to those before them, by their distance - 1.
    string: usize,
    equal: Vec<usize>,
    /// The part of the text after the first round of a loop.
    found: Option<Span>,
}

impl Loops {
    /// Takes the next byte with its events and the position after it. Returns the bytes after the first round of a loop, if there is one.
    pub(super) fn push(
        &mut self,
        byte: u8,
        events: impl FnOnce(&mut dyn FnMut(Event)) -> Position,
    ) -> Option<Span> {
        self.text.push(byte);
        match events(&mut |event| self.event(event)) {
            Position::Text(start) => self.character(byte, start),
            _ => self.equal.clear(),
        }
        self.found
    }

    fn event(&mut self, Event { token, span, .. }: Event) {
        match token {
            Token::Begin(Kind::Object) => self.open.push(None),
            Token::Begin(Kind::Array) => self.open.push(Some(Vec::new())),
            Token::End(kind) => {
                if matches!(kind, Kind::Object | Kind::Array) {
                    self.open.pop();
                }
                if let Some(Some(items)) = self.open.last_mut() {
                    items.push(span);
                    self.found = self.found.or(list_loop(&self.text, items));
                }
            }
            _ => {}
        }
    }

    fn character(&mut self, byte: u8, start: usize) {
        if self.string != start {
            (self.string, self.equal) = (start, Vec::new());
        }
        let Some((_, before)) = self.text.get(start..).and_then(<[u8]>::split_last) else { return };
        self.equal.resize(before.len().min(MAX_PERIOD), 0);
        for (nth, (equal, other)) in self.equal.iter_mut().zip(before.iter().rev()).enumerate() {
            *equal = if *other == byte { *equal + 1 } else { 0 };
            let (period, len) = (nth + 1, *equal + nth + 1);
            if *equal > 0 && len >= MIN_LOOP.max(REPEATS * period) {
                let end = self.text.len();
                self.found = self.found.or(Some(Span::new(end - len + period, end)));
            }
        }
    }
}

/// Returns the bytes after the first round of the items that a list ends with, if it repeats them.
fn list_loop(text: &[u8], items: &[Span]) -> Option<Span> {
    let item = |at: usize| items.get(at).and_then(|span| text.get(span.start..span.end));
    let (count, end) = (items.len(), items.last()?.end);
    (1..=count / REPEATS).find_map(|period| {
        let equal = (period..count).rev().take_while(|at| item(*at) == item(at - period)).count();
        let from = count - equal - period;
        let (first, last) = (items.get(from)?, items.get(from + period - 1)?);
        let is_loop = equal + period >= REPEATS * period && end - first.start >= MIN_LOOP;
        is_loop.then(|| Span::new(last.end, text.len()))
    })
}
