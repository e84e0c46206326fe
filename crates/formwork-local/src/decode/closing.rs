use llguidance::Matcher;
use toktrie::{SimpleVob, TokTrie, TokenId};

use super::cursor::Cursor;

/// What a greedy closing tries first outside of strings: what ends things, then the shortest values.
const ENDS_FIRST: &[u8] = b"}],:n0123456789\"tf[{-";

/// What fills a string that must not end yet: meaningless on sight, and a single token in long runs.
const FILLER: u8 = b'.';

/// How many partial documents the search looks at when the greedy way finds no end: some tens of milliseconds.
const SEARCHED: usize = 400;

/// Finds, without the model, tokens that complete a document.
///
/// What it invents is valid and empty of meaning (a required number becomes 0), so it is the last resort: it tells how
/// many tokens have to be kept back, and ends a document for which nothing else is left.
#[derive(Debug)]
pub(crate) struct Closer {
    /// The token of each single byte, where there is one.
    bytes: Vec<Option<TokenId>>,
    /// Runs of the filler, the longest first.
    fillers: Vec<TokenId>,
}

impl Closer {
    pub(crate) fn new(trie: &TokTrie) -> Self {
        let bytes = (0..=u8::MAX).map(|byte| trie.token_id(&[byte])).collect();
        let runs = (1..=16).rev().filter_map(|length| trie.token_id(&vec![FILLER; length]));
        Self { bytes, fillers: runs.collect() }
    }

    /// At most `limit` tokens after which the document is complete; empty if it is complete already.
    pub(crate) fn close(
        &self,
        trie: &TokTrie,
        matcher: &Matcher,
        cursor: Cursor,
        limit: usize,
    ) -> Option<Vec<TokenId>> {
        [true, false]
            .into_iter()
            .find_map(|fill| self.greedy(trie, matcher, cursor, limit, fill))
            .or_else(|| self.search(matcher, limit))
    }

    /// Goes on with what looks most like an end. `fill` says whether strings are filled with long tokens, which is
    /// short where a length is missing and never ends where a pattern wants something else.
    fn greedy(
        &self,
        trie: &TokTrie,
        matcher: &Matcher,
        mut cursor: Cursor,
        limit: usize,
        fill: bool,
    ) -> Option<Vec<TokenId>> {
        let mut matcher = matcher.clone();
        let mut path = Vec::new();
        // A string with a pattern could take the same byte forever; the one used least leads out of most loops.
        let mut used = [0u32; 256];
        loop {
            let forced = matcher.consume_ff_tokens();
            for token in &forced {
                cursor.advance(trie.token(*token));
            }
            path.extend(forced);
            if is_complete(&mut matcher)? {
                return (path.len() <= limit).then_some(path);
            }
            if path.len() >= limit {
                return None;
            }
            let mask = matcher.compute_mask().ok()?;
            let token = self.choose(&mask, cursor, &mut used, fill)?;
            matcher.consume_token(token).ok()?;
            cursor.advance(trie.token(token));
            path.push(token);
        }
    }

    fn choose(&self, mask: &SimpleVob, cursor: Cursor, used: &mut [u32; 256], fill: bool) -> Option<TokenId> {
        let allowed = |byte: u8| self.bytes[usize::from(byte)].filter(|token| mask.is_allowed(*token));
        if cursor.in_string() {
            if let Some(quote) = allowed(b'"') {
                return Some(quote);
            }
            let filler = self.fillers.iter().find(|token| mask.is_allowed(**token));
            if let Some(filler) = filler.filter(|_| fill) {
                return Some(*filler);
            }
        } else if let Some((byte, token)) = least_used(ENDS_FIRST, used, &allowed) {
            // Structure comes first however often it was used; digits take turns.
            used[usize::from(byte)] += u32::from(byte.is_ascii_digit());
            return Some(token);
        }
        let all: Vec<u8> = (b' '..=b'~').chain(0x80..=0xFF).chain(0..b' ').collect();
        match least_used(&all, used, &allowed) {
            Some((byte, token)) => {
                used[usize::from(byte)] += 1;
                Some(token)
            }
            // No single byte goes on from here, only longer tokens (or the vocabulary lacks that byte).
            None => mask.first_bit_set().and_then(|token| TokenId::try_from(token).ok()),
        }
    }

    /// Looks at partial documents in the order of their length, single bytes only.
    fn search(&self, matcher: &Matcher, limit: usize) -> Option<Vec<TokenId>> {
        let mut frontier = std::collections::VecDeque::from([(matcher.clone(), Vec::new())]);
        for _ in 0..SEARCHED {
            let (mut matcher, mut path): (Matcher, Vec<TokenId>) = frontier.pop_front()?;
            path.extend(matcher.consume_ff_tokens());
            match is_complete(&mut matcher) {
                Some(true) if path.len() <= limit => return Some(path),
                Some(false) if path.len() < limit => {}
                _ => continue,
            }
            let Ok(mask) = matcher.compute_mask() else { continue };
            for token in self.bytes.iter().flatten().filter(|token| mask.is_allowed(**token)) {
                if frontier.len() >= SEARCHED {
                    break;
                }
                let mut next = matcher.clone();
                if next.consume_token(*token).is_ok() {
                    frontier.push_back((next, [path.as_slice(), &[*token]].concat()));
                }
            }
        }
        None
    }
}

/// Whether the document may end here; `None` if the matcher has failed.
pub(crate) fn is_complete(matcher: &mut Matcher) -> Option<bool> {
    // A matcher that failed also says that it has stopped.
    if matcher.is_error() {
        return None;
    }
    Some(matcher.is_stopped() || matcher.is_accepting().ok()?)
}

/// The allowed byte that was used least, the first of equals in the order given.
fn least_used(
    order: &[u8],
    used: &[u32; 256],
    allowed: &impl Fn(u8) -> Option<TokenId>,
) -> Option<(u8, TokenId)> {
    let candidates = order.iter().filter_map(|byte| Some((*byte, allowed(*byte)?)));
    candidates.min_by_key(|(byte, _)| used[usize::from(*byte)])
}
