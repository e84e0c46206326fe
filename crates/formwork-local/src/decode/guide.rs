use formwork_core::Rule;
use llguidance::Matcher;
use serde_json::Value;
use toktrie::{SimpleVob, TokenId};

use super::bounds::growth;
use super::closing::is_complete;
use super::cursor::Cursor;
use super::grammar::Grammar;
use super::narrowing::Narrowing;
use super::restraint::{Restraint, Wanted};
use crate::error::one_line;

/// The tokens that are kept back for each rule that has not narrowed yet: what it leaves may be longer than the shortest
/// value that there was before.
const RESERVE: usize = 8;

/// Keeps an answer to a schema, and sees to it that it can always be completed in the tokens that are left.
///
/// The invariant: from every state that is taken there is a way to the end of the document that fits. An upper bound on
/// that way's length is carried along, and a dry run finds the exact length only when the bound no longer fits.
pub(crate) struct Guide<'g> {
    grammar: &'g Grammar,
    matcher: Matcher,
    cursor: Cursor,
    restraint: Restraint,
    /// What beginning one more thing may add to the way to the end.
    growth: usize,
    /// At least as long as the way to the end from here.
    bound: usize,
    /// The way to the end that was found last.
    path: Vec<TokenId>,
    /// Whether that one starts here.
    is_current: bool,
    /// What rules make of the schema on the way.
    narrowing: Option<Narrowing>,
    /// The tokens so far, where a rule may yet ask for them.
    taken: Vec<TokenId>,
}

/// Why there is no [`Guide`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unguided {
    /// The schema cannot be enforced.
    Schema(String),
    /// The shortest document needs so many tokens.
    Short(usize),
}

/// What became of a token.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It was taken, with those that it forces.
    Tokens(Vec<TokenId>),
    /// After it the document could not be completed any more.
    NoRoom,
}

impl<'g> Guide<'g> {
    /// At the beginning of a document that keeps to these rules and may have `room` tokens, of at most `most` that any
    /// answer may have.
    pub(crate) fn new(
        grammar: &'g Grammar,
        schema: &Value,
        rules: &[Rule],
        room: usize,
        most: usize,
    ) -> Result<Self, Unguided> {
        let matcher = grammar.matcher(schema).map_err(Unguided::Schema)?;
        let cursor = Cursor::default();
        let path = grammar.closer().close(grammar.trie(), &matcher, cursor, most);
        let narrowing = Narrowing::new(schema, rules);
        let reserve = reserve(narrowing.as_ref());
        let path = path.ok_or_else(|| {
            Unguided::Schema(format!("no document of the schema was found that has at most {most} tokens"))
        })?;
        if path.len() + reserve > room {
            return Err(Unguided::Short(path.len() + reserve));
        }
        Ok(Self {
            grammar,
            matcher,
            cursor,
            restraint: Restraint::new(room),
            growth: growth(schema),
            bound: path.len(),
            path,
            is_current: true,
            narrowing,
            taken: Vec::new(),
        })
    }

    /// Takes the tokens that nothing else may come before.
    pub(crate) fn forced(&mut self) -> Vec<TokenId> {
        let forced = self.matcher.consume_ff_tokens();
        if !forced.is_empty() {
            self.follow(&forced);
            self.bound = self.bound.saturating_sub(forced.len());
            // They are the beginning of every way to the end; the rest of the known one may have other tokens.
            self.is_current = false;
        }
        forced
    }

    /// Whether the document is complete and nothing can follow.
    pub(crate) fn is_done(&self) -> bool {
        self.matcher.is_stopped() && !self.matcher.is_error()
    }

    /// The tokens that may come next, of which there are `room` left.
    ///
    /// # Errors
    /// What llguidance says, as for a state that has become too large.
    pub(crate) fn mask(&mut self, room: usize) -> Result<SimpleVob, String> {
        let mut mask = self.matcher.compute_mask().map_err(|error| one_line(&error.to_string()))?;
        if let Some(wanted) = self.restraint.wanted() {
            let share = self.share(wanted, room);
            self.restraint.grant(wanted, share);
        }
        self.restraint.apply(self.grammar.trie(), self.grammar.table(), self.cursor, &mut mask);
        Ok(mask)
    }

    /// The tokens that what is being written may take from here on: as many as each of the members still to come gets.
    fn share(&self, wanted: Wanted, room: usize) -> usize {
        let trie = self.grammar.trie();
        let Some(path) = self.grammar.closer().close(trie, &self.matcher, self.cursor, room) else {
            return 0;
        };
        let mut cursor = self.cursor;
        let members = trie.decode(&path).into_iter().filter(|byte| {
            let counts = !cursor.in_string() && *byte == b':';
            cursor.advance(&[*byte]);
            counts
        });
        // An array shares with itself as well: what of the item is still to come is no other field's.
        let others = members.count() + usize::from(wanted == Wanted::Array);
        // Some stay in reserve, for a character or a word that has to be finished first.
        room.saturating_sub(path.len() + 16) / (others + 1)
    }

    /// Takes a token that the mask allows and those that it forces, if the rest fits into the `room` tokens.
    ///
    /// # Errors
    /// What llguidance says.
    pub(crate) fn take(&mut self, token: TokenId, room: usize) -> Result<Taken, String> {
        let left = room;
        let room = room.saturating_sub(reserve(self.narrowing.as_ref()));
        let mut cursor = self.cursor;
        let begun = cursor.advance(self.grammar.trie().token(token));
        // One more than has begun: an alternative may be chosen in the middle of a string, a number gain an exponent.
        let bound = self.bound.saturating_add((begun + 1).saturating_mul(self.growth));
        let fits = bound.saturating_add(1) <= room;
        let mut next = if fits { None } else { Some(self.matcher.clone()) };
        let matcher = next.as_mut().unwrap_or(&mut self.matcher);
        matcher.consume_token(token).map_err(|error| one_line(&error.to_string()))?;
        let mut tokens = vec![token];
        let forced = matcher.consume_ff_tokens();
        tokens.extend(&forced);
        match next {
            None => {
                let grown = self.bound.saturating_add(begun.saturating_mul(self.growth)).saturating_add(8);
                self.bound = grown.saturating_sub(forced.len());
                self.is_current = false;
            }
            Some(next) => {
                for token in &forced {
                    cursor.advance(self.grammar.trie().token(*token));
                }
                let path =
                    room.checked_sub(tokens.len()).and_then(|room| self.way(&next, cursor, &tokens, room));
                let Some(path) = path else { return Ok(Taken::NoRoom) };
                self.matcher = next;
                self.bound = path.len();
                self.path = path;
                self.is_current = true;
            }
        }
        self.follow(&tokens);
        self.narrow(left.saturating_sub(tokens.len()));
        Ok(Taken::Tokens(tokens))
    }

    /// Goes on with a tighter schema where what was written decides about what comes, if the rest of that fits into the
    /// `room` tokens. Where it does not, the document stays one of the schema, and its judge will find the rule broken.
    fn narrow(&mut self, room: usize) {
        let Some(narrowing) = &mut self.narrowing else { return };
        let Some(schema) = narrowing.due() else { return };
        let Ok(mut matcher) = self.grammar.matcher(schema) else { return };
        if matcher.consume_tokens(&self.taken).is_err() {
            return;
        }
        let Some(path) = self.grammar.closer().close(self.grammar.trie(), &matcher, self.cursor, room) else {
            return;
        };
        self.growth = self.growth.max(growth(schema));
        self.matcher = matcher;
        self.bound = path.len();
        self.path = path;
        self.is_current = true;
    }

    /// A way to the end from a state after `taken`, of at most `room` tokens.
    fn way(&self, next: &Matcher, cursor: Cursor, taken: &[TokenId], room: usize) -> Option<Vec<TokenId>> {
        // Mostly the way from before still leads out, and walking it is far cheaper than finding one.
        let old = self.path.strip_prefix(taken).unwrap_or(&self.path);
        // But not with what it wanted to invent here: a digit or a filler, where there is something now.
        let ends = old.first().is_none_or(|token| {
            let first = self.grammar.trie().token(*token).first();
            first.is_some_and(|byte| b"\"]},: ".contains(byte))
        });
        if old.len() <= room && (ends || old.len() < self.path.len()) {
            let mut walker = next.clone();
            if walker.consume_tokens(old).is_ok() && is_complete(&mut walker) == Some(true) {
                return Some(old.to_vec());
            }
        }
        self.grammar.closer().close(self.grammar.trie(), next, cursor, room)
    }

    /// The way to the end of the document; it fits into `room` unless a bound was too low, and then is as short as one
    /// is found.
    pub(crate) fn close(&mut self, room: usize) -> Option<Vec<TokenId>> {
        /// Rather a few tokens too many than half a document.
        const MORE: usize = 1024;
        if self.is_current && self.path.len() <= room {
            return Some(std::mem::take(&mut self.path));
        }
        let close = |room| self.way(&self.matcher, self.cursor, &[], room);
        close(room).or_else(|| close(room + MORE))
    }

    fn follow(&mut self, tokens: &[TokenId]) {
        for token in tokens {
            let (before, bytes) = (self.cursor, self.grammar.trie().token(*token));
            self.cursor.advance(bytes);
            self.restraint.push(*token, bytes, before, self.cursor);
            if let Some(narrowing) = &mut self.narrowing {
                narrowing.push(bytes);
            }
        }
        if self.narrowing.is_some() {
            self.taken.extend(tokens);
        }
    }
}

fn reserve(narrowing: Option<&Narrowing>) -> usize {
    narrowing.map_or(0, Narrowing::waiting) * RESERVE
}
