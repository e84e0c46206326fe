//! Text outside of documents: prose, fences and reasoning.

use super::{BYTE_ORDER_MARK, Event, Lexer, State, TAIL, Token};
use crate::source::REASONING;
use crate::{EditKind, Span};

impl Lexer {
    /// Reads a byte outside of documents.
    pub(super) fn outside(&mut self, byte: u8, at: usize, sink: &mut impl FnMut(Event)) {
        let begins_scalar = matches!(byte, b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n');
        match (byte, self.state) {
            (b'{', State::Outside) => return self.open(byte, at, sink),
            (b'[', State::Outside) => self.state = State::Bracket,
            (_, State::Outside)
                if begins_scalar && self.scalars && !self.prose && self.fence < 3 && self.first.is_none() =>
            {
                return self.value(byte, at, sink);
            }
            _ => {}
        }
        if self.tail.len() > 2 * TAIL {
            self.tail.drain(..TAIL);
        }
        self.tail.push(char::from(if byte.is_ascii() { byte.to_ascii_lowercase() } else { b'?' }));
        let ends_with = |tag: &str| {
            let tail = self.tail.as_bytes();
            let end = tail.len().checked_sub(tag.len()).and_then(|from| tail.get(from..));
            end.is_some_and(|end| end.eq_ignore_ascii_case(tag.as_bytes()))
        };
        match self.state {
            State::Reasoning(index) if REASONING.get(index).is_some_and(|(_, close)| ends_with(close)) => {
                sink(Event {
                    token: Token::Edit(EditKind::Reasoning),
                    span: Span::new(self.start, at + 1),
                    at,
                });
                (self.state, self.prose, self.fence) = (State::Outside, false, 0);
            }
            State::Outside => {
                self.prose |= match byte {
                    b'`' | b'~' => {
                        self.fence = self.fence.saturating_add(1);
                        false
                    }
                    byte if byte.is_ascii_whitespace() => {
                        self.fence = 0;
                        false
                    }
                    byte if BYTE_ORDER_MARK.get(at) == Some(&byte) => {
                        let span = Span::new(0, BYTE_ORDER_MARK.len());
                        if at + 1 == span.end {
                            sink(Event { token: Token::Edit(EditKind::ByteOrderMark), span, at });
                        }
                        false
                    }
                    // The info string of a fence.
                    byte => {
                        !(self.fence >= 3
                            && (byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+')))
                    }
                };
                let tag = match byte {
                    b'>' | b']' => REASONING.iter().position(|(open, _)| ends_with(open)),
                    _ => None,
                };
                if let Some(index) = tag {
                    self.start = at + 1 - REASONING.get(index).map_or(0, |(open, _)| open.len());
                    self.state = State::Reasoning(index);
                }
            }
            _ => {}
        }
    }
}
