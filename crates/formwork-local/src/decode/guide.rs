use formwork_core::Rule;
use llguidance::Matcher;
use serde_json::Value;
use toktrie::{SimpleVob, TokenId};

use super::chart::Chart;
use super::cursor::Cursor;
use super::grammar::Grammar;
use super::narrowing::Narrowing;
use super::number::Number;
use super::restraint::{Restrained, Wanted, without};
use crate::Restraint;
use crate::error::one_line;

/// The tokens that are kept back for each rule that has not narrowed yet: what it leaves may be longer than the shortest
/// value that there was before.
const RESERVE: usize = 8;

/// Keeps an answer to a schema, and sees to it that it can always be completed in the tokens that are left.
///
/// The invariant: from every state that is taken there is a way to the end of the document that fits into the tokens
/// that are left. [`Chart`] knows the shortest one in bytes after every token.
pub(crate) struct Guide<'g> {
    grammar: &'g Grammar,
    matcher: Matcher,
    chart: Chart,
    cursor: Cursor,
    number: Number,
    restrained: Option<Restrained>,
    /// The tighter schema that rules make on the way.
    narrowing: Option<Narrowing>,
    /// The tokens so far, where a rule may yet ask for them.
    taken: Vec<TokenId>,
    /// The tokens that nothing else may come before.
    forced: Vec<TokenId>,
}

/// Why there is no [`Guide`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unguided {
    /// The schema cannot be enforced.
    Schema(String),
    /// The shortest document needs so many tokens.
    Short(usize),
}

/// The effect of a token.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It was taken, with those that it forces.
    Tokens(Vec<TokenId>),
    /// After it the document could not be completed any more.
    NoRoom,
}

impl<'g> Guide<'g> {
    /// Returns the guide of a document that keeps to these rules and may have `room` tokens, before its first token.
    pub(crate) fn new(
        grammar: &'g Grammar,
        schema: &Value,
        rules: &[Rule],
        room: usize,
        restraint: Restraint,
    ) -> Result<Self, Unguided> {
        let (matcher, chart) = grammar.begin(schema).map_err(Unguided::Schema)?;
        let restrained = (restraint == Restraint::TinyModel).then(|| Restrained::new(schema, room));
        let mut guide = Self {
            grammar,
            matcher,
            chart,
            cursor: Cursor::default(),
            number: Number::default(),
            restrained,
            narrowing: Narrowing::new(schema, rules),
            taken: Vec::new(),
            forced: Vec::new(),
        };
        let forced = guide.matcher.consume_ff_tokens();
        guide.read(&forced).map_err(Unguided::Schema)?;
        guide.follow(&forced);
        let Some(way) = guide.way() else {
            return Err(Unguided::Schema("no document of the schema was found".to_owned()));
        };
        let least = forced.len() + way.len() + guide.reserve();
        guide.forced = forced;
        if least > room { Err(Unguided::Short(least)) } else { Ok(guide) }
    }

    /// Returns the tokens that nothing else may come before.
    pub(crate) fn forced(&mut self) -> Vec<TokenId> {
        std::mem::take(&mut self.forced)
    }

    /// Returns whether the document is complete and nothing can follow.
    pub(crate) fn is_done(&self) -> bool {
        self.matcher.is_stopped() && !self.matcher.is_error()
    }

    /// Returns the tokens that may come next.
    ///
    /// # Errors
    /// Returns what llguidance says, for example of a state that has become too large.
    pub(crate) fn mask(&mut self) -> Result<SimpleVob, String> {
        let mut mask = self.matcher.compute_mask().map_err(|error| one_line(&error.to_string()))?;
        if !self.number.is_empty() {
            let trie = self.grammar.trie();
            let numbers = self.grammar.table().numbers();
            without(&mut mask, numbers, |token| self.number.is_unreadable(trie.token(token)));
        }
        Ok(mask)
    }

    /// Returns what the restraint for tiny models leaves of a mask, if that takes this token out of it. `room` tokens are
    /// left.
    pub(crate) fn restrain(&mut self, token: TokenId, mask: &SimpleVob, room: usize) -> Option<SimpleVob> {
        if let Some(wanted) = self.restrained.as_ref()?.wanted() {
            let share = self.share(wanted, room);
            self.restrained.as_mut()?.grant(wanted, share);
        }
        let mut left = mask.clone();
        let (trie, table) = (self.grammar.trie(), self.grammar.table());
        self.restrained.as_mut()?.apply(trie, table, self.cursor, &self.number, &mut left);
        (!left.is_allowed(token)).then_some(left)
    }

    /// Returns the tokens that what is being written may take from here on: as many as each of the members still to come
    /// gets.
    fn share(&mut self, wanted: Wanted, room: usize) -> usize {
        let Some(way) = self.way() else { return 0 };
        let mut cursor = self.cursor;
        let members = self.grammar.trie().decode(&way).into_iter().filter(|byte| {
            let counts = !cursor.in_string() && *byte == b':';
            cursor.advance(&[*byte]);
            counts
        });
        // An array shares with itself as well: what of the item is still to come is no other field's.
        let others = members.count() + usize::from(wanted == Wanted::Array);
        // Some stay in reserve, for a character or a word that has to be finished first.
        room.saturating_sub(way.len() + 16) / (others + 1)
    }

    /// Takes a token that the mask allows and those that it forces, if the rest fits into the `room` tokens.
    ///
    /// # Errors
    /// Returns what llguidance says.
    pub(crate) fn take(&mut self, token: TokenId, room: usize) -> Result<Taken, String> {
        let before = self.chart.mark();
        self.matcher.consume_token(token).map_err(|error| one_line(&error.to_string()))?;
        let mut tokens = vec![token];
        tokens.extend(self.matcher.consume_ff_tokens());
        self.read(&tokens)?;
        let left = room.saturating_sub(tokens.len());
        if tokens.len() > room || !self.fits(left.saturating_sub(self.reserve())) {
            self.chart.back_to(before);
            return Ok(Taken::NoRoom);
        }
        self.follow(&tokens);
        self.narrow(left);
        Ok(Taken::Tokens(tokens))
    }

    /// Returns whether the shortest way to the end fits into so many tokens.
    fn fits(&mut self, room: usize) -> bool {
        // No token is shorter than a byte, so that hardly any way has to be made into tokens.
        let Some(bytes) = self.chart.distance() else { return false };
        bytes <= room || self.way().is_some_and(|way| way.len() <= room)
    }

    /// Goes on with a tighter schema where what was written decides about what comes, if the rest of that fits into the
    /// `room` tokens. Where it does not, the document stays one of the schema, and its judge will find the rule broken.
    fn narrow(&mut self, room: usize) {
        let Some(narrowing) = &mut self.narrowing else { return };
        let Some(schema) = narrowing.due() else { return };
        let Ok((mut matcher, mut chart)) = self.grammar.begin(schema) else { return };
        let trie = self.grammar.trie();
        if matcher.consume_tokens(&self.taken).is_err() || chart.read(&trie.decode_raw(&self.taken)).is_err()
        {
            return;
        }
        std::mem::swap(&mut self.chart, &mut chart);
        if self.fits(room.saturating_sub(self.reserve())) {
            self.matcher = matcher;
        } else {
            self.chart = chart;
        }
    }

    /// Returns the shortest way to the end of the document, in tokens.
    pub(crate) fn way(&mut self) -> Option<Vec<TokenId>> {
        let way = self.chart.way()?;
        let trie = self.grammar.trie();
        let tokens = trie.greedy_tokenize(&way);
        // A vocabulary may lack a byte, and then leaves it out.
        (trie.decode_raw(&tokens) == way).then_some(tokens)
    }

    /// Reads tokens into the chart, which takes what the matcher takes.
    fn read(&mut self, tokens: &[TokenId]) -> Result<(), String> {
        let bytes = self.grammar.trie().decode_raw(tokens);
        self.chart.read(&bytes).map_err(|_| "the matcher and the chart of the schema differ".to_owned())
    }

    fn follow(&mut self, tokens: &[TokenId]) {
        for token in tokens {
            let (before, bytes) = (self.cursor, self.grammar.trie().token(*token));
            self.cursor.advance(bytes);
            self.number.push(bytes, self.cursor);
            if let Some(restrained) = &mut self.restrained {
                restrained.push(*token, bytes, before, self.cursor);
            }
            if let Some(narrowing) = &mut self.narrowing {
                narrowing.push(bytes);
            }
        }
        if self.narrowing.is_some() {
            self.taken.extend(tokens);
        }
    }

    /// Returns the tokens that are kept back for rules that have not narrowed yet.
    fn reserve(&self) -> usize {
        self.narrowing.as_ref().map_or(0, Narrowing::waiting) * RESERVE
    }
}
