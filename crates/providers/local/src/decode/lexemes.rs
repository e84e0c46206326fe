use std::collections::VecDeque;

use llguidance::api::ParserLimits;
use llguidance::derivre::{NextByte, StateID};
use llguidance::earley::lexerspec::{LexemeIdx, LexerSpec};
use llguidance::earley::regexvec::{LexemeSet, MatchingLexemes, RegexVec};
use llguidance::{HashMap, HashSet};

/// The character that fills strings up to their minimum length: obviously meaningless, and long runs of it are single
/// tokens.
const FILLER: u8 = b'.';

/// The maximum number of filling bytes of a string.
const MAX_FILL: usize = 1 << 16;

/// The maximum number of states in the search for a shorter end after filling found one.
const SHORTER: usize = 256;

/// The maximum number of states in the search for any end.
const SEARCHED: usize = 1 << 16;

/// The lexemes of a grammar (strings, numbers, words, punctuation) as one automaton over bytes, with the shortest end
/// of a lexeme from each state.
pub(crate) struct Lexemes {
    dfa: RegexVec,
    count: usize,
    /// The number of bytes until the end of the lexeme, and the first of them.
    ends: HashMap<StateID, (usize, u8)>,
}

impl Lexemes {
    /// # Errors
    /// A message of llguidance about lexemes that are too complex.
    pub(crate) fn new(spec: &LexerSpec) -> Result<Self, String> {
        let dfa = spec.to_regex_vec(&mut ParserLimits::default()).map_err(|error| error.to_string())?;
        Ok(Self { dfa, count: spec.lexemes.len(), ends: HashMap::default() })
    }

    /// Returns the set of these lexemes.
    pub(crate) fn set(&self, lexemes: impl IntoIterator<Item = LexemeIdx>) -> LexemeSet {
        let mut set = LexemeSet::new(self.count);
        lexemes.into_iter().for_each(|lexeme| set.add(lexeme));
        set
    }

    /// Returns the state before the first byte of one of these lexemes.
    pub(crate) fn start(&mut self, lexemes: &LexemeSet) -> StateID {
        self.dfa.initial_state(lexemes)
    }

    /// Returns the state after a byte; it is dead if no lexeme continues with it.
    pub(crate) fn step(&mut self, state: StateID, byte: u8) -> StateID {
        self.dfa.transition(state, byte)
    }

    /// Returns the lexemes that may end in this state.
    pub(crate) fn accepted(&self, state: StateID) -> &MatchingLexemes {
        &self.dfa.state_desc(state).greedy_accepting
    }

    /// Returns the lexemes that end in this state because nothing can continue them.
    pub(crate) fn ended(&self, state: StateID) -> &MatchingLexemes {
        &self.dfa.state_desc(state).lazy_accepting
    }

    /// Returns whether the bytes that led to this state can become this lexeme.
    pub(crate) fn is_possible(&self, state: StateID, lexeme: LexemeIdx) -> bool {
        self.dfa.state_desc(state).possible.contains(lexeme)
    }

    /// Returns the number of bytes to the end of this lexeme from this state; `None` if no end was found.
    pub(crate) fn distance(&mut self, state: StateID, lexeme: LexemeIdx) -> Option<usize> {
        let only = self.set([lexeme]);
        let state = self.dfa.limit_state_to(state, &only);
        if self.is_end(state) {
            return Some(0);
        }
        if let Some((left, _)) = self.ends.get(&state) {
            return Some(*left);
        }
        let end = self.search(state)?;
        let mut at = state;
        for (done, byte) in end.iter().enumerate() {
            self.ends.insert(at, (end.len() - done, *byte));
            at = self.step(at, *byte);
        }
        Some(end.len())
    }

    /// Returns the bytes that end this lexeme from this state on; `None` if no end was found.
    pub(crate) fn end(&mut self, state: StateID, lexeme: LexemeIdx) -> Option<Vec<u8>> {
        let left = self.distance(state, lexeme)?;
        let only = self.set([lexeme]);
        let mut at = self.dfa.limit_state_to(state, &only);
        let mut end = Vec::with_capacity(left);
        while !self.is_end(at) {
            let (_, byte) = self.ends.get(&at).copied()?;
            end.push(byte);
            at = self.step(at, byte);
        }
        Some(end)
    }

    fn is_end(&self, state: StateID) -> bool {
        self.accepted(state).is_some() || self.ended(state).is_some()
    }

    /// Searches for the shortest bytes that end the only lexeme of a state. For strings it also tries filling and a
    /// quotation mark, because the search needs one level per missing byte.
    fn search(&mut self, start: StateID) -> Option<Vec<u8>> {
        let mut forced = Vec::new();
        let mut state = start;
        while let NextByte::ForcedByte(byte) = self.dfa.next_byte(state) {
            forced.push(byte);
            state = self.step(state, byte);
            if state.is_dead() {
                return None;
            }
            if self.is_end(state) {
                return Some(forced);
            }
        }
        let mut came: HashMap<StateID, (StateID, u8)> = HashMap::default();
        let mut queue = VecDeque::from([(state, 0usize)]);
        let mut hopeless = HashSet::default();
        let mut filled: Option<(StateID, usize, Vec<u8>)> = None;
        let mut left = SEARCHED;
        let found = loop {
            let Some((at, depth)) = queue.pop_front().filter(|_| left > 0) else { break None };
            left -= 1;
            if filled.is_none()
                && let Some(end) = self.fill(at, &mut hopeless)
            {
                filled = Some((at, depth + end.len(), end));
                left = left.min(SHORTER);
            }
            if filled.as_ref().is_some_and(|(_, length, _)| depth + 1 >= *length) {
                break None;
            }
            // Printable characters, and continuation bytes of UTF-8.
            let next = (b' '..=b'~').chain(0x80..=0xBF).find_map(|byte| {
                let next = self.step(at, byte);
                if next.is_dead() || next == state || came.contains_key(&next) {
                    return None;
                }
                came.insert(next, (at, byte));
                if self.is_end(next) {
                    return Some(next);
                }
                queue.push_back((next, depth + 1));
                None
            });
            if let Some(next) = next {
                break Some(next);
            }
        };
        let (mut at, mut tail) = match (found, filled) {
            (Some(end), _) => (end, Vec::new()),
            (None, Some((at, _, end))) => (at, end),
            (None, None) => return None,
        };
        let mut way = Vec::new();
        while at != state {
            let (before, byte) = came.get(&at).copied()?;
            way.push(byte);
            at = before;
        }
        way.reverse();
        forced.append(&mut way);
        forced.append(&mut tail);
        Some(forced)
    }

    /// Returns the bytes that fill a string up to its earliest quotation mark; `None` if that is impossible. Impossible
    /// states are remembered.
    fn fill(&mut self, start: StateID, hopeless: &mut HashSet<StateID>) -> Option<Vec<u8>> {
        let mut at = start;
        for length in 0..MAX_FILL {
            if !hopeless.insert(at) {
                return None;
            }
            let quoted = self.step(at, b'"');
            if !quoted.is_dead() && self.is_end(quoted) {
                let mut end = vec![FILLER; length];
                end.push(b'"');
                return Some(end);
            }
            at = self.step(at, FILLER);
            if at.is_dead() {
                return None;
            }
        }
        None
    }
}
