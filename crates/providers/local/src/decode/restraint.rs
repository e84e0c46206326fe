use formwork_core::spaced;
use serde_json::Value;
use toktrie::{SimpleVob, TokTrie, TokenId};

use super::cursor::Cursor;
use super::entries::Entries;
use super::number::{Number, is_numeric};
use super::repetition::Repetition;

/// The maximum number of characters of a number, more than a double needs.
const LONGEST_NUMBER: usize = 24;

/// The maximum number of characters of a number without fraction and exponent, so that it fits into 64 bits.
const LONGEST_INTEGER: usize = 18;

/// The maximum number of digits of an exponent: three digits can exceed every double.
const LONGEST_EXPONENT: usize = 2;

/// The number of items that an array may have before it shares the remaining tokens.
const FREE_ITEMS: usize = 8;

/// The maximum number of interventions against repetition in a string before it has to end.
const MOST_DETOURS: u32 = 4;

/// The tokens by their effect on a document, so that a choice does not have to examine the whole vocabulary.
#[derive(Debug)]
pub(crate) struct Table {
    quotes: Vec<TokenId>,
    commas: Vec<TokenId>,
    closers: Vec<TokenId>,
    /// Tokens that can continue a number.
    numbers: Vec<TokenId>,
    /// Tokens that end a string before any further character of it.
    ends: SimpleVob,
}

impl Table {
    pub(crate) fn new(trie: &TokTrie) -> Self {
        let find = |accepts: &dyn Fn(&[u8]) -> bool| -> Vec<TokenId> {
            (0..trie.vocab_size() as TokenId).filter(|token| accepts(trie.token(*token))).collect()
        };
        let mut ends = trie.alloc_token_set();
        find(&|bytes| bytes.first() == Some(&b'"')).into_iter().for_each(|token| ends.allow_token(token));
        Self {
            ends,
            quotes: find(&|bytes| bytes.contains(&b'"')),
            commas: find(&|bytes| bytes.contains(&b',')),
            closers: find(&|bytes| bytes.iter().any(|byte| matches!(byte, b']' | b'}'))),
            numbers: find(&|bytes| bytes.first().is_some_and(|byte| is_numeric(*byte))),
        }
    }

    /// Returns the tokens with a quotation mark.
    pub(crate) fn quotes(&self) -> &[TokenId] {
        &self.quotes
    }

    /// Returns the tokens that end a string before any further character of it.
    pub(crate) fn ends(&self) -> &SimpleVob {
        &self.ends
    }

    /// Returns the tokens that can continue a number.
    pub(crate) fn numbers(&self) -> &[TokenId] {
        &self.numbers
    }
}

/// The part of the document that needs a share of the remaining tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A long string.
    String,
    /// A long array.
    Array,
}

/// Keeps strings, lists and numbers from growing without end where the schema allows it. It implements
/// [`Restraint::TinyModel`](crate::Restraint::TinyModel).
///
/// It only excludes tokens that the schema allows, never all of them, and never one that continues a constant of the
/// schema. The model thus ends a runaway value in its own words, and continues with the rest of the document.
#[derive(Debug)]
pub(crate) struct Restrained {
    literals: Literals,
    repetition: Repetition,
    entries: Entries,
    /// The number of tokens and the text of the current string.
    string: usize,
    string_text: Vec<u8>,
    detours: u32,
    /// The number of tokens that a string may have before it shares the remaining tokens.
    free: usize,
    /// The maximum number of tokens of the current string, if it has to share.
    string_limit: Option<usize>,
    /// The number of tokens of the document, and its maximum for an array, by the depth of the array.
    tokens: usize,
    array_limits: Vec<(usize, usize)>,
    depth: usize,
}

/// The constants of a schema as JSON text. Prefixes of them are never restrained.
#[derive(Debug, Default)]
struct Literals {
    strings: Vec<String>,
    containers: Vec<String>,
    /// The number of characters of the longest number.
    longest_number: usize,
}

impl Literals {
    /// Collects the constants, property names and bounds of a schema.
    fn of(schema: &Value) -> Self {
        let mut literals = Self::default();
        literals.visit(schema);
        literals
    }

    fn visit(&mut self, part: &Value) {
        match part {
            Value::Object(members) => {
                for (name, member) in members {
                    // The location does not matter: an additional constant does no harm.
                    self.strings.push(Value::from(name.as_str()).to_string());
                    match (name.as_str(), member) {
                        ("const", value) => self.add(value),
                        ("enum", Value::Array(values)) => values.iter().for_each(|value| self.add(value)),
                        (_, Value::Number(number)) => self.add_number(&number.to_string()),
                        _ => {}
                    }
                    self.visit(member);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.visit(item)),
            _ => {}
        }
    }

    fn add(&mut self, value: &Value) {
        match value {
            Value::String(_) => self.strings.push(value.to_string()),
            Value::Number(number) => self.add_number(&number.to_string()),
            Value::Array(items) => {
                self.containers.push(spaced(value));
                items.iter().for_each(|item| self.add(item));
            }
            Value::Object(members) => {
                self.containers.push(spaced(value));
                members.values().for_each(|member| self.add(member));
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn add_number(&mut self, text: &str) {
        self.longest_number = self.longest_number.max(text.len());
    }
}

fn one_begins(literals: &[String], text: &[u8]) -> bool {
    literals.iter().any(|literal| literal.as_bytes().starts_with(text))
}

impl Restrained {
    /// Returns the restraint of a document of this schema with `room` tokens, before its first token.
    pub(crate) fn new(schema: &Value, room: usize) -> Self {
        Self {
            literals: Literals::of(schema),
            repetition: Repetition::default(),
            entries: Entries::default(),
            string: 0,
            string_text: Vec::new(),
            detours: 0,
            free: (room / 16).clamp(4, 32),
            string_limit: None,
            tokens: 0,
            array_limits: Vec::new(),
            depth: 0,
        }
    }

    /// Reads a token: the state before it, its bytes, and the state after it.
    pub(crate) fn push(&mut self, token: TokenId, bytes: &[u8], before: Cursor, after: Cursor) {
        let inside = before.in_string() && after.in_string() && !bytes.contains(&b'"');
        self.tokens += 1;
        if inside {
            self.string += 1;
            self.detours += u32::from(!self.repetition.banned().is_empty());
        } else {
            (self.string, self.string_limit, self.detours) = (0, None, 0);
        }
        match opened(bytes, before) {
            Some(at) => self.string_text = bytes.get(at..).unwrap_or_default().to_vec(),
            None if after.in_string() => self.string_text.extend_from_slice(bytes),
            None => self.string_text.clear(),
        }
        self.repetition.push(token, inside);
        self.entries.advance(bytes);
        self.depth = self.entries.depth();
        self.array_limits.retain(|(depth, _)| *depth <= self.depth);
    }

    /// Returns the part that has to share the remaining tokens and has no limit yet.
    pub(crate) fn unlimited_part(&self) -> Option<Wanted> {
        let shares = self.array_limits.last().is_some_and(|(depth, _)| *depth == self.depth);
        if self.string >= self.free && self.string_limit.is_none() {
            Some(Wanted::String)
        } else if !shares && self.entries.items().is_some_and(|items| items >= FREE_ITEMS) {
            Some(Wanted::Array)
        } else {
            None
        }
    }

    /// Sets the limit of a part to this number of further tokens.
    pub(crate) fn grant(&mut self, part: Wanted, tokens: usize) {
        match part {
            Wanted::String => self.string_limit = Some(self.string + tokens),
            Wanted::Array => self.array_limits.push((self.depth, self.tokens + tokens)),
        }
    }

    /// Takes the limits of the open arrays from the restraint of the same document, of which a part was withdrawn.
    pub(crate) fn keep_limits(&mut self, before: &Self) {
        self.array_limits.clone_from(&before.array_limits);
        self.array_limits.retain(|(depth, _)| *depth <= self.depth);
    }

    /// Removes the tokens from the mask that continue a value that should end.
    pub(crate) fn apply(
        &mut self,
        trie: &TokTrie,
        table: &Table,
        cursor: Cursor,
        number: &Number,
        mask: &mut SimpleVob,
    ) {
        if cursor.in_string() {
            let long = self.string_limit.is_some_and(|limit| self.string >= limit);
            let is_stopped = long || self.detours >= MOST_DETOURS;
            let banned = self.repetition.banned();
            if (is_stopped || !banned.is_empty()) && !one_begins(&self.literals.strings, &self.string_text) {
                if is_stopped {
                    only(mask, &table.quotes, |token| cursor.ends_string(trie.token(token)));
                }
                without(mask, &banned, |_| true);
            }
        } else if !number.is_empty() {
            let spared = self.literals.longest_number;
            let (integer, other, digits) = (LONGEST_INTEGER, LONGEST_NUMBER, LONGEST_EXPONENT);
            without(mask, table.numbers(), |token| {
                number.is_longer(trie.token(token), integer, other, digits, spared)
            });
        }
        if self
            .array_limits
            .last()
            .is_some_and(|(depth, limit)| *depth == self.depth && self.tokens >= *limit)
        {
            self.entries.fill();
        }
        // Without a bracket that may follow, the number could only become another number.
        let may_end = number.is_empty()
            || table
                .closers
                .iter()
                .any(|token| mask.is_allowed(*token) && self.entries.ends(trie.token(*token)));
        if may_end && !one_begins(&self.literals.containers, self.entries.container()) {
            without(mask, &table.commas, |token| self.entries.goes_on(trie.token(token)));
        }
    }
}

/// Returns where the unfinished string starts in these bytes, if they start one.
fn opened(bytes: &[u8], mut cursor: Cursor) -> Option<usize> {
    let mut start = None;
    for (at, byte) in bytes.iter().enumerate() {
        let was = cursor.in_string();
        cursor.advance(&[*byte]);
        if cursor.in_string() != was {
            start = cursor.in_string().then_some(at);
        }
    }
    start
}

/// Removes the matching tokens, unless nothing would remain.
pub(crate) fn without(mask: &mut SimpleVob, tokens: &[TokenId], is_allowed: impl Fn(TokenId) -> bool) {
    let out: Vec<_> =
        tokens.iter().copied().filter(|token| mask.is_allowed(*token) && is_allowed(*token)).collect();
    out.iter().for_each(|token| mask.disallow_token(*token));
    if mask.is_zero() {
        out.iter().for_each(|token| mask.allow_token(*token));
    }
}

/// Keeps only the matching tokens, if there are any.
fn only(mask: &mut SimpleVob, tokens: &[TokenId], is_allowed: impl Fn(TokenId) -> bool) {
    let left: Vec<_> =
        tokens.iter().copied().filter(|token| mask.is_allowed(*token) && is_allowed(*token)).collect();
    if !left.is_empty() {
        mask.set_all(false);
        left.iter().for_each(|token| mask.allow_token(*token));
    }
}
