use toktrie::{SimpleVob, TokTrie, TokenId};

use super::cursor::Cursor;
use super::entries::Entries;
use super::repetition::Repetition;

/// The most characters of a number, more than a double needs.
const LONGEST_NUMBER: usize = 24;

/// The most characters of a number without fraction and exponent, so that it is one of 64 bits.
const LONGEST_INTEGER: usize = 18;

/// The most digits of an exponent: with three of them a number may be beyond every double.
const LONGEST_EXPONENT: usize = 2;

/// From so many items on an array has to share the tokens that are left with what comes after it.
const FREE_ITEMS: usize = 8;

/// How often a string may be kept from going round in circles before it has to end.
const MOST_DETOURS: u32 = 4;

/// Tokens by what they can do to a document, so that not all of a vocabulary has to be looked at for each choice.
#[derive(Debug)]
pub(crate) struct Table {
    quotes: Vec<TokenId>,
    commas: Vec<TokenId>,
    /// Those that may go on with a number.
    numbers: Vec<TokenId>,
}

impl Table {
    pub(crate) fn new(trie: &TokTrie) -> Self {
        let find = |wanted: &dyn Fn(&[u8]) -> bool| {
            (0..trie.vocab_size() as TokenId).filter(|token| wanted(trie.token(*token))).collect()
        };
        Self {
            quotes: find(&|bytes| bytes.contains(&b'"')),
            commas: find(&|bytes| bytes.contains(&b',')),
            numbers: find(&|bytes| bytes.first().is_some_and(|byte| is_numeric(*byte))),
        }
    }
}

/// What a share of the tokens that are left is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A string that has become long.
    String,
    /// An array that has become long.
    Array,
}

/// Keeps a document from running away where the schema would let it: strings, lists and numbers that never end.
///
/// It only ever takes tokens out of those that the schema allows, and none where that would leave nothing: so the model
/// ends what ran away in its own words, and goes on with the rest of the document.
#[derive(Debug)]
pub(crate) struct Restraint {
    repetition: Repetition,
    entries: Entries,
    /// Tokens of the string, and the text of the number, that is being written.
    string: usize,
    number: Vec<u8>,
    detours: u32,
    /// So many tokens a string may have before it has to share what is left.
    free: usize,
    /// What the string may have, if it had to share.
    string_limit: Option<usize>,
    /// The tokens of the document, and how many an array may leave it with, by the depth of the array.
    tokens: usize,
    array_limits: Vec<(usize, usize)>,
    depth: usize,
}

impl Restraint {
    /// At the beginning of a document that may have `room` tokens.
    pub(crate) fn new(room: usize) -> Self {
        Self {
            repetition: Repetition::default(),
            entries: Entries::default(),
            string: 0,
            number: Vec::new(),
            detours: 0,
            free: (room / 16).clamp(4, 32),
            string_limit: None,
            tokens: 0,
            array_limits: Vec::new(),
            depth: 0,
        }
    }

    /// Takes in a token: where the document was before it, its bytes, and where it is after it.
    pub(crate) fn push(&mut self, token: TokenId, bytes: &[u8], before: Cursor, after: Cursor) {
        let inside = before.in_string() && after.in_string() && !bytes.contains(&b'"');
        self.tokens += 1;
        if inside {
            self.string += 1;
            self.detours += u32::from(!self.repetition.banned().is_empty());
        } else {
            (self.string, self.string_limit, self.detours) = (0, None, 0);
        }
        let tail = bytes.iter().rev().take_while(|byte| is_numeric(**byte)).count();
        if after.in_string() || tail < bytes.len() {
            self.number.clear();
        }
        if !after.in_string() {
            self.number.extend_from_slice(bytes.get(bytes.len() - tail..).unwrap_or_default());
        }
        self.repetition.push(token, inside);
        self.entries.advance(bytes);
        self.depth = self.entries.depth();
        self.array_limits.retain(|(depth, _)| *depth <= self.depth);
    }

    /// What has to share what is left from here on, and does not yet know with how much.
    pub(crate) fn wanted(&self) -> Option<Wanted> {
        let shares = self.array_limits.last().is_some_and(|(depth, _)| *depth == self.depth);
        if self.string >= self.free && self.string_limit.is_none() {
            Some(Wanted::String)
        } else if !shares && self.entries.items().is_some_and(|items| items >= FREE_ITEMS) {
            Some(Wanted::Array)
        } else {
            None
        }
    }

    /// Grants so many tokens more.
    pub(crate) fn grant(&mut self, wanted: Wanted, tokens: usize) {
        match wanted {
            Wanted::String => self.string_limit = Some(self.string + tokens),
            Wanted::Array => self.array_limits.push((self.depth, self.tokens + tokens)),
        }
    }

    /// Takes out of the mask what would go on with something that should end.
    pub(crate) fn apply(&mut self, trie: &TokTrie, table: &Table, cursor: Cursor, mask: &mut SimpleVob) {
        if cursor.in_string() {
            let long = self.string_limit.is_some_and(|limit| self.string >= limit);
            if long || self.detours >= MOST_DETOURS {
                only(mask, &table.quotes, |token| cursor.ends_string(trie.token(token)));
            }
            without(mask, &self.repetition.banned(), |_| true);
        } else if !self.number.is_empty() {
            without(mask, &table.numbers, |token| is_excessive(&self.number, trie.token(token)));
        }
        if self
            .array_limits
            .last()
            .is_some_and(|(depth, limit)| *depth == self.depth && self.tokens >= *limit)
        {
            self.entries.fill();
        }
        without(mask, &table.commas, |token| self.entries.goes_on(trie.token(token)));
    }
}

/// Whether a byte outside of strings may belong to a number.
const fn is_numeric(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e' | b'E')
}

/// Whether a number would become longer than any that means something.
fn is_excessive(number: &[u8], more: &[u8]) -> bool {
    let text: Vec<u8> = number.iter().chain(more).copied().take_while(|byte| is_numeric(*byte)).collect();
    let exponent = text.iter().rposition(|byte| matches!(byte, b'e' | b'E'));
    let exponent = exponent.map_or(0, |at| text[at..].iter().filter(|byte| byte.is_ascii_digit()).count());
    let is_integer = text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-');
    let most = if is_integer { LONGEST_INTEGER } else { LONGEST_NUMBER };
    text.len() > most || exponent > LONGEST_EXPONENT
}

/// Takes those of the tokens out that are meant, unless nothing would be left.
fn without(mask: &mut SimpleVob, tokens: &[TokenId], meant: impl Fn(TokenId) -> bool) {
    let out: Vec<_> =
        tokens.iter().copied().filter(|token| mask.is_allowed(*token) && meant(*token)).collect();
    out.iter().for_each(|token| mask.disallow_token(*token));
    if mask.is_zero() {
        out.iter().for_each(|token| mask.allow_token(*token));
    }
}

/// Leaves only those of the tokens that are meant, if there is one.
fn only(mask: &mut SimpleVob, tokens: &[TokenId], meant: impl Fn(TokenId) -> bool) {
    let left: Vec<_> =
        tokens.iter().copied().filter(|token| mask.is_allowed(*token) && meant(*token)).collect();
    if !left.is_empty() {
        mask.set_all(false);
        left.iter().for_each(|token| mask.allow_token(*token));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_before_they_mean_nothing() {
        assert!(!is_excessive(b"12345678901234567", b"8") && is_excessive(b"123456789012345678", b"9"));
        assert!(!is_excessive(b"123456789012345678", b".5") && !is_excessive(b"123456789012345678", b", 9"));
        assert!(is_excessive(b"0.3333333333333333333333", b"3"));
        assert!(!is_excessive(b"1e-", b"30") && is_excessive(b"1e", b"300"));
    }
}
