use formwork_core::keywords::part_of;
use formwork_core::{JsonPath, Rule, Segment};
use llguidance::Matcher;
use serde_json::Value;
use toktrie::{SimpleVob, TokTrie, TokenId};

use super::chart::Chart;
use super::cursor::Cursor;
use super::grammar::Grammar;
use super::ground::Ground;
use super::narrowing::Narrowing;
use super::number::Number;
use super::restraint::{Restrained, Wanted, without};
use super::search::Search;
use crate::Restraint;
use crate::error::one_line;

/// The number of tokens in reserve for each rule that has not narrowed the schema yet, because the narrowed value may
/// be longer than the shortest value before.
const RESERVE: usize = 8;

/// The logarithm of the probability of a text below which an optional member is left out: 10 %.
const DOUBTFUL: f32 = -std::f32::consts::LN_10;

/// Constrains an answer to a schema, and guarantees that the remaining tokens can complete it.
///
/// The invariant: in every state, the shortest way to the end of the document fits into the remaining tokens. [`Chart`]
/// has its length in bytes after every token.
pub(crate) struct Guide<'g> {
    grammar: &'g Grammar,
    /// The schema of the document, the rules about it, and the number of its tokens.
    schema: Value,
    rules: &'g [Rule],
    room: usize,
    matcher: Matcher,
    chart: Chart,
    cursor: Cursor,
    number: Number,
    restrained: Option<Restrained>,
    /// The source text, if a rule keeps values along it.
    ground: Option<Ground>,
    /// The rules that narrow the schema on the way.
    narrowing: Option<Narrowing>,
    /// The tokens so far, if there is a ground or a narrowing.
    taken: Vec<TokenId>,
    /// The tokens that are forced at the start.
    forced: Vec<TokenId>,
    /// Whether the last value is complete, although its last token could go on.
    is_cut: bool,
    /// Whether the current string has to end.
    is_whole: bool,
    /// The paths of the members that were left out.
    omitted: Vec<JsonPath>,
}

/// The end of a document that is taken back, and what takes its place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Withdrawal {
    /// The number of last tokens that are no longer part of the document.
    pub(crate) withdrawn: usize,
    /// The tokens in their place.
    pub(crate) tokens: Vec<TokenId>,
    /// The token before them.
    pub(crate) before: Option<TokenId>,
}

/// The reason why there is no [`Guide`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unguided {
    /// The schema cannot be enforced.
    Schema(String),
    /// The shortest document needs this number of tokens.
    Short(usize),
}

/// The effect of a token.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The token was taken, with the tokens that it forces.
    Tokens(Vec<TokenId>),
    /// The document could not be completed after the token.
    NoRoom,
}

impl<'g> Guide<'g> {
    /// Returns the guide of a document under these rules about a source text, with `room` tokens, before its first token.
    pub(crate) fn new(
        grammar: &'g Grammar,
        schema: &Value,
        rules: &'g [Rule],
        source: Option<&str>,
        room: usize,
        restraint: Restraint,
    ) -> Result<Self, Unguided> {
        let is_tiny = restraint == Restraint::TinyModel;
        let ground = Ground::new(schema, rules, source).filter(|_| is_tiny);
        let sayable = ground.as_ref().map(Ground::sayable);
        let schema = sayable.as_ref().unwrap_or(schema);
        let (matcher, chart) = grammar.begin(schema).map_err(Unguided::Schema)?;
        let restrained = is_tiny.then(|| Restrained::new(schema, room));
        let mut guide = Self {
            grammar,
            schema: schema.clone(),
            rules,
            room,
            matcher,
            chart,
            cursor: Cursor::default(),
            number: Number::default(),
            restrained,
            ground,
            narrowing: Narrowing::new(schema, rules),
            taken: Vec::new(),
            forced: Vec::new(),
            is_cut: false,
            is_whole: false,
            omitted: Vec::new(),
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

    /// Returns the tokens that are forced next.
    pub(crate) fn forced(&mut self) -> Vec<TokenId> {
        std::mem::take(&mut self.forced)
    }

    /// Returns whether the document is complete.
    pub(crate) fn is_done(&self) -> bool {
        self.matcher.is_stopped() && !self.matcher.is_error()
    }

    /// Returns the tokens that may come next.
    ///
    /// # Errors
    /// A message of llguidance, for example about a state that has become too large.
    pub(crate) fn mask(&mut self) -> Result<SimpleVob, String> {
        let mut mask = self.matcher.compute_mask().map_err(|error| one_line(&error.to_string()))?;
        if !self.number.is_empty() {
            let trie = self.grammar.trie();
            let numbers = self.grammar.table().numbers();
            without(&mut mask, numbers, |token| self.number.is_unreadable(trie.token(token)));
        }
        if self.is_cut {
            without(&mut mask, self.grammar.table().numbers(), |_| true);
        }
        if self.is_whole {
            mask.and(self.grammar.table().ends());
        }
        Ok(mask)
    }

    /// Returns the tokens of a mask that keep values along the source text; `None` if no rule demands it, or no token does.
    pub(crate) fn grounded(&self, mask: &SimpleVob) -> Option<SimpleVob> {
        self.ground.as_ref()?.narrow(self.grammar.trie(), self.grammar.table(), mask)
    }

    /// Returns the paths of the values that could not follow the source text, and of the members that were left out.
    pub(crate) fn strays(self) -> (Vec<JsonPath>, Vec<JsonPath>) {
        (self.ground.map(Ground::into_strays).unwrap_or_default(), self.omitted)
    }

    /// Returns the mask without the tokens that the restraint excludes, if it excludes this token. `room` is the number
    /// of remaining tokens.
    pub(crate) fn restrain(&mut self, token: TokenId, mask: &SimpleVob, room: usize) -> Option<SimpleVob> {
        if let Some(part) = self.restrained.as_ref()?.unlimited_part() {
            let share = self.share(part, room);
            self.restrained.as_mut()?.grant(part, share);
        }
        let mut left = mask.clone();
        let (trie, table) = (self.grammar.trie(), self.grammar.table());
        self.restrained.as_mut()?.apply(trie, table, self.cursor, &self.number, &mut left);
        (!left.is_allowed(token)).then_some(left)
    }

    /// Returns the share of the remaining tokens for the current value: an equal part for it and for each member still
    /// to come.
    fn share(&mut self, part: Wanted, room: usize) -> usize {
        let Some(way) = self.way() else { return 0 };
        let mut cursor = self.cursor;
        let members = self.grammar.trie().decode(&way).into_iter().filter(|byte| {
            let counts = !cursor.in_string() && *byte == b':';
            cursor.advance(&[*byte]);
            counts
        });
        // An array also shares with itself, because the rest of its current item is no other member's.
        let others = members.count() + usize::from(part == Wanted::Array);
        // A few tokens stay in reserve, to finish a character or a word first.
        room.saturating_sub(way.len() + 16) / (others + 1)
    }

    /// Takes a token that the mask allows, and the tokens that it forces, if the rest fits into `room` tokens.
    ///
    /// # Errors
    /// A message of llguidance.
    pub(crate) fn take(&mut self, token: TokenId, room: usize) -> Result<Taken, String> {
        let before = self.chart.mark();
        let on_ground = self.ground.as_ref().map(Ground::mark);
        self.matcher.consume_token(token).map_err(|error| one_line(&error.to_string()))?;
        let mut tokens = vec![token];
        tokens.extend(self.matcher.consume_ff_tokens());
        self.read(&tokens)?;
        let left = room.saturating_sub(tokens.len());
        if tokens.len() > room || !self.fits(left.saturating_sub(self.reserve())) {
            self.chart.back_to(before);
            if let Some((ground, mark)) = self.ground.as_mut().zip(on_ground) {
                ground.back_to(mark);
            }
            return Ok(Taken::NoRoom);
        }
        (self.is_cut, self.is_whole) = (false, false);
        self.follow(&tokens);
        self.narrow(left);
        Ok(Taken::Tokens(tokens))
    }

    /// Returns the search for the text along the words that begins here, with at most `room` tokens; `None` if there is no such text.
    pub(crate) fn search(&self, room: usize, temperature: f32) -> Option<Search<'_>> {
        let ground = self.ground.as_ref()?;
        let begin = ground.begun_words()?;
        let is_optional =
            ground.begun().and_then(|path| without_member(&self.schema, path.segments())).is_some();
        Some(Search {
            trie: self.grammar.trie(),
            table: self.grammar.table(),
            ground,
            begin,
            max: room,
            min: if is_optional { DOUBTFUL } else { f32::NEG_INFINITY },
            temperature,
        })
    }

    /// Returns whether the schema allows a string to go on with these tokens and to end.
    pub(crate) fn accepts(&mut self, tokens: &[TokenId]) -> bool {
        let Some(quote) = self.grammar.trie().token_id(b"\"") else { return false };
        let all = [tokens, &[quote]].concat();
        self.matcher.validate_tokens(&all).is_ok_and(|count| count == all.len())
    }

    /// Demands the end of the current string, which [`accepts`](Self::accepts) allows.
    pub(crate) fn end_text(&mut self) {
        self.is_whole = self.cursor.in_string();
    }

    /// Returns whether the last tokens may belong to a member that [`omit`](Self::omit) leaves out.
    pub(crate) fn may_omit(&self) -> bool {
        self.ground.as_ref().is_some_and(Ground::is_between)
    }

    /// Leaves out the member whose text begins here, if it is optional and has at most `max` tokens. The document has room for `room` more
    /// tokens.
    ///
    /// The document is read again under a schema without the member.
    pub(crate) fn omit(&mut self, room: usize, max: usize) -> Option<Withdrawal> {
        let path = self.ground.as_ref()?.begun()?;
        let schema = without_member(&self.schema, path.segments())?;
        let (kept, tokens) = before_last(&self.taken, self.grammar.trie());
        let omission = self.withdraw(schema, kept, tokens, (room, max))?;
        self.omitted.push(path);
        Some(omission)
    }

    /// Ends the list of which a text would be the next item, if the text stands in the source only where earlier items do. The other
    /// arguments are those of [`omit`](Self::omit).
    ///
    /// A tiny model that has listed everything begins anew: a list ends there, unless the schema demands more items.
    pub(crate) fn end_list(&mut self, text: &[TokenId], room: usize, max: usize) -> Option<Withdrawal> {
        let ground = self.ground.as_ref().filter(|ground| ground.follows_items())?;
        let trie = self.grammar.trie();
        let bytes = trie.decode_raw(&self.taken);
        if ground.has_place(&trie.decode_raw(text), &items(&bytes)) {
            return None;
        }
        let (kept, mut tokens) = before_last(&self.taken, trie);
        tokens.extend(trie.token_id(b"]"));
        let mut before = self.matcher.clone();
        before.rollback(self.taken.len().checked_sub(kept)?).ok()?;
        before.validate_tokens(&tokens).ok().filter(|count| *count == tokens.len())?;
        self.withdraw(self.schema.clone(), kept, tokens, (room, max))
    }

    /// Reads the document again under a schema, up to a number of kept tokens, and with some tokens after them.
    fn withdraw(
        &mut self,
        schema: Value,
        kept: usize,
        mut tokens: Vec<TokenId>,
        (room, max): (usize, usize),
    ) -> Option<Withdrawal> {
        let trie = self.grammar.trie();
        let withdrawn = self.taken.len().checked_sub(kept).filter(|count| *count <= max)?;
        let taken = self.taken.get(..kept)?;
        let (before, all) = (taken.last().copied(), [taken, &tokens].concat());
        let (mut matcher, mut chart) = self.grammar.begin(&schema).ok()?;
        matcher.consume_tokens(&all).ok()?;
        let forced = matcher.consume_ff_tokens();
        let is_cut = forced.is_empty();
        let all = [all, forced.clone()].concat();
        tokens.extend(forced);
        let bytes = trie.decode_raw(&all);
        chart.read(&bytes).ok()?;
        chart.distance()?;
        (self.matcher, self.chart) = (matcher, chart);
        (self.cursor, self.number, self.taken) = (Cursor::default(), Number::default(), Vec::new());
        let restrained = self.restrained.take();
        self.restrained = restrained.is_some().then(|| Restrained::new(&schema, self.room));
        self.narrowing = Narrowing::new(&schema, self.rules);
        (self.schema, self.is_cut) = (schema, is_cut);
        if let Some(ground) = &mut self.ground {
            ground.restart();
            ground.push(&bytes);
        }
        self.follow(&all);
        self.restrained.iter_mut().zip(&restrained).for_each(|(after, before)| after.keep_limits(before));
        self.narrow((room + withdrawn).saturating_sub(tokens.len()));
        Some(Withdrawal { withdrawn, tokens, before })
    }

    /// Returns whether the shortest way to the end fits into this number of tokens.
    fn fits(&mut self, room: usize) -> bool {
        // A token has at least one byte, so few ways have to be tokenized.
        let Some(bytes) = self.chart.distance() else { return false };
        // The present value may have to go on to the end of a word.
        let rest = self.ground.as_ref().map_or(0, |ground| ground.rest().len());
        bytes + rest <= room || self.way().is_some_and(|way| way.len() <= room)
    }

    /// Narrows the schema if the written values determine a range, and the narrowed rest fits into `room` tokens.
    /// Otherwise the document follows the original schema, and validation finds the violated rule.
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
        let way = self.grounded_way().or_else(|| self.chart.way())?;
        let trie = self.grammar.trie();
        let tokens = trie.greedy_tokenize(&way);
        // A vocabulary can lack a byte, which tokenizing then drops.
        (trie.decode_raw(&tokens) == way).then_some(tokens)
    }

    /// Returns the shortest way to the end of the document over the end of the present word, number or date of the source text;
    /// `None` if it is complete, or if the schema forbids its rest.
    fn grounded_way(&mut self) -> Option<Vec<u8>> {
        let rest = self.ground.as_ref().map(Ground::rest).filter(|rest| !rest.is_empty())?;
        let before = self.chart.mark();
        let way = self.chart.read(rest).ok().and_then(|()| self.chart.way());
        self.chart.back_to(before);
        Some([rest, way?.as_slice()].concat())
    }

    /// Reads tokens into the ground and the chart, which accepts everything that the matcher accepts.
    fn read(&mut self, tokens: &[TokenId]) -> Result<(), String> {
        let bytes = self.grammar.trie().decode_raw(tokens);
        if let Some(ground) = &mut self.ground {
            ground.push(&bytes);
        }
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
        if self.narrowing.is_some() || self.ground.is_some() {
            self.taken.extend(tokens);
        }
    }

    /// Returns the number of tokens in reserve for rules that have not narrowed yet.
    fn reserve(&self) -> usize {
        self.narrowing.as_ref().map_or(0, Narrowing::waiting) * RESERVE
    }
}

/// Returns a schema without an optional member of a closed object; `None` if the member is no such one.
fn without_member(schema: &Value, path: &[Segment]) -> Option<Value> {
    let (Segment::Key(name), parents) = path.split_last()? else { return None };
    let mut schema = schema.clone();
    let part = part_of(&mut schema, parents)?;
    let required = part.get("required").and_then(Value::as_array);
    let is_required = required.is_some_and(|required| required.iter().any(|one| one == name));
    let is_closed = part.get("additionalProperties") == Some(&Value::Bool(false));
    let members = part.get_mut("properties")?.as_object_mut()?;
    let before = members.len();
    members.retain(|member, _| member != name);
    (is_closed && !is_required && members.len() < before).then_some(schema)
}

/// Texts of a list, with their indexes.
type Items<'t> = Vec<(usize, &'t [u8])>;

/// Returns the contents of the texts in the innermost open list, with their indexes; none if an object is open in it.
fn items(bytes: &[u8]) -> Items<'_> {
    let (mut cursor, mut start) = (Cursor::default(), 0);
    // Each open container: its first byte, the index of its item, and its texts.
    let mut open: Vec<(u8, usize, Items<'_>)> = Vec::new();
    for (at, byte) in bytes.iter().enumerate() {
        let was_in_string = cursor.in_string();
        cursor.advance(&[*byte]);
        match (byte, open.last_mut()) {
            (b'"', _) if !was_in_string => start = at + 1,
            (b'"', Some((b'[', index, items))) if !cursor.in_string() => {
                items.push((*index, bytes.get(start..at).unwrap_or_default()));
            }
            (b',', Some((_, index, _))) if !was_in_string => *index += 1,
            (b'[' | b'{', _) if !was_in_string => open.push((*byte, 0, Vec::new())),
            (b']' | b'}', _) if !was_in_string => drop(open.pop()),
            _ => {}
        }
    }
    open.pop().map(|(_, _, items)| items).unwrap_or_default()
}

/// Returns the number of tokens before the last member or item, and the tokens for the rest of the text before it.
fn before_last(tokens: &[TokenId], trie: &TokTrie) -> (usize, Vec<TokenId>) {
    let bytes = trie.decode_raw(tokens);
    let (mut cursor, mut end) = (Cursor::default(), 0);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'{' | b'[' if !cursor.in_string() => end = at + 1,
            b',' if !cursor.in_string() => end = at,
            _ => {}
        }
        cursor.advance(&[*byte]);
    }
    let (mut kept, mut length) = (0, 0);
    for token in tokens {
        let next = length + trie.token(*token).len();
        if next > end {
            break;
        }
        (kept, length) = (kept + 1, next);
    }
    (kept, trie.greedy_tokenize(bytes.get(length..end).unwrap_or_default()))
}
