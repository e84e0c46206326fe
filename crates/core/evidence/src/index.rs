//! The index of an input: its tokens, numbers and dates.

use std::borrow::Cow;

use crate::csv::{cell_commas, is_cell_break};
use crate::date::{self, Date, Kind};
use crate::decimal::is_currency;
use crate::numeral::{Numeral, Range, hash};
use crate::text::{clusters, digit, fold_into, folded, is_mark, is_unspaced, offset, signs_after, size};

/// A token of the input: a word, a run of digits, or a single character of a script without spaces. Offsets are bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// The offset of its text in the folded text.
    folded: u32,
    pub(crate) line: u32,
    /// The number of the line or sentence.
    pub(crate) segment: u32,
    pub(crate) kind: Kind,
}

/// An input, prepared for any number of values. Creating it takes linear time and about ten times the memory of the text.
///
/// Inputs of more than 4 GiB are not indexed: no value is found in them.
#[derive(Debug)]
pub struct Index<'t> {
    pub(crate) text: Cow<'t, str>,
    pub(crate) tokens: Vec<Token>,
    /// The folded texts of all tokens, without separators.
    pub(crate) folded: String,
    /// The hash of each token's folded text, with its number, sorted.
    words: Vec<(u64, u32)>,
    pub(crate) numbers: Vec<Numeral>,
    /// The numbers that are written in words.
    pub(crate) spelled: Vec<Numeral>,
    /// The ranges of the numbers of several tokens or with a sign, in bytes and in order: a text does not begin or end within one.
    pub(crate) long_numbers: Vec<(u32, u32)>,
    pub(crate) dates: Vec<(Date, Range)>,
    /// The byte offsets of the commas between cells.
    commas: Vec<u32>,
    /// The byte offset of each line.
    pub(crate) lines: Vec<u32>,
    /// The number of scalar values before each block of bytes.
    scalars: Vec<u32>,
    /// The byte offsets of form feeds, which end pages.
    pages: Vec<u32>,
}

/// The size of a block of `Index::scalars` in bytes.
const BLOCK: usize = 256;

impl<'t> Index<'t> {
    /// Creates the index of a text, which it borrows or owns.
    pub fn new(text: impl Into<Cow<'t, str>>) -> Self {
        let text = text.into();
        let text = if u32::try_from(text.len()).is_ok() { text } else { Cow::Borrowed("") };
        let mut index = Self {
            tokens: Vec::with_capacity(text.len() / 6),
            folded: String::with_capacity(text.len()),
            words: Vec::new(),
            numbers: Vec::new(),
            spelled: Vec::new(),
            long_numbers: Vec::new(),
            dates: Vec::new(),
            commas: cell_commas(&text),
            lines: vec![0],
            scalars: Vec::with_capacity(text.len() / BLOCK + 1),
            pages: memchr::memchr_iter(b'\x0c', text.as_bytes()).map(offset).collect(),
            text,
        };
        index.count_scalars();
        index.tokenise();
        index.segment();
        index.words = (0..index.tokens.len()).map(|token| (hash(index.word(token)), offset(token))).collect();
        index.words.sort_unstable();
        index.find_numbers();
        index.find_dates();
        index
    }

    fn count_scalars(&mut self) {
        let mut count = 0;
        for block in self.text.as_bytes().chunks(BLOCK) {
            self.scalars.push(count);
            count += offset(block.iter().filter(|byte| !is_continuation(**byte)).count());
        }
    }

    /// Returns the number of scalar values before a byte offset.
    pub(crate) fn scalar(&self, byte: u32) -> usize {
        let byte = size(byte);
        let block = byte / BLOCK;
        let rest = self.text.as_bytes().get(block * BLOCK..byte).unwrap_or_default();
        let before = match self.scalars.get(block) {
            Some(before) => *before,
            // The end of a text that fills its last block.
            None => return self.text.chars().count(),
        };
        size(before) + rest.iter().filter(|byte| !is_continuation(**byte)).count()
    }

    /// Returns the page of a byte offset, from 1; `None` if the text has no form feeds.
    pub(crate) fn page(&self, byte: u32) -> Option<usize> {
        (!self.pages.is_empty()).then(|| self.pages.partition_point(|page| *page <= byte) + 1)
    }

    fn tokenise(&mut self) {
        let bytes = self.text.as_bytes();
        let (mut at, mut line, mut open) = (0, 0, None);
        let kind_of = |byte: u8| match byte {
            b'0'..=b'9' => Some(Kind::Digits),
            _ if byte.is_ascii_alphabetic() => Some(Kind::Word),
            _ => None,
        };
        while let Some(byte) = bytes.get(at) {
            let kind = kind_of(*byte);
            let rest = bytes.get(at..).unwrap_or_default();
            let mut run = match kind {
                Some(_) => rest.iter().take_while(|next| kind_of(**next) == kind).count(),
                None => usize::from(byte.is_ascii()),
            };
            // The last character may have a mark.
            run = run.saturating_sub(usize::from(rest.get(run).is_some_and(|next| !next.is_ascii())));
            let (kind, end) = if run > 0 {
                if *byte == b'\n' {
                    line += 1;
                    self.lines.push(offset(at + 1));
                }
                (kind, at + run)
            } else {
                let (_, end) = clusters(&self.text, at).next().unwrap_or((at, at + 1));
                let first = self.text.get(at..).and_then(|rest| rest.chars().next()).unwrap_or(' ');
                if first == '\n' {
                    line += 1;
                    self.lines.push(offset(end));
                }
                (Kind::of(first), end)
            };
            let Some(kind) = kind else {
                open = None;
                at = end;
                continue;
            };
            match self.tokens.last_mut() {
                Some(last) if open == Some(kind) && kind != Kind::Single => last.end = offset(end),
                _ => self.tokens.push(Token {
                    start: offset(at),
                    end: offset(end),
                    folded: offset(self.folded.len()),
                    line,
                    segment: 0,
                    kind,
                }),
            }
            fold_into(self.text.get(at..end).unwrap_or_default(), &mut self.folded);
            open = Some(kind);
            at = end;
        }
    }

    fn segment(&mut self) {
        let mut segment = 0;
        for token in 1..self.tokens.len() {
            let gap = self.gap(token - 1);
            segment += u32::from(gap.contains('\n') || is_sentence_end(gap));
            if let Some(token) = self.tokens.get_mut(token) {
                token.segment = segment;
            }
        }
    }

    pub(crate) fn token(&self, token: usize) -> Option<&Token> {
        self.tokens.get(token)
    }

    /// Returns the folded text of a token.
    pub(crate) fn word(&self, token: usize) -> &str {
        let start = self.tokens.get(token).map_or(self.folded.len(), |token| size(token.folded));
        let end = self.tokens.get(token + 1).map_or(self.folded.len(), |token| size(token.folded));
        self.folded.get(start..end).unwrap_or_default()
    }

    /// Returns the text between a token and the next one, up to the end of the input for the last token.
    pub(crate) fn gap(&self, token: usize) -> &str {
        let start = self.tokens.get(token).map_or(self.text.len(), |token| size(token.end));
        let end = self.tokens.get(token + 1).map_or(self.text.len(), |token| size(token.start));
        self.text.get(start..end).unwrap_or_default()
    }

    pub(crate) fn slice(&self, start: u32, end: u32) -> &str {
        self.text.get(size(start)..size(end)).unwrap_or_default()
    }

    /// Returns the range of tokens from `first` to `last`.
    pub(crate) fn range(&self, first: usize, last: usize) -> Option<Range> {
        let (start, end) = (self.tokens.get(first)?.start, self.tokens.get(last)?.end);
        Some(Range { first: offset(first), last: offset(last), start, end })
    }

    /// Returns the tokens with a folded text, in the order of the input.
    pub(crate) fn occurrences(&self, word: &str) -> impl ExactSizeIterator<Item = usize> + '_ {
        let hash = hash(word);
        let start = self.words.partition_point(|entry| entry.0 < hash);
        let end = self.words.partition_point(|entry| entry.0 <= hash);
        self.words.get(start..end).unwrap_or_default().iter().map(|entry| size(entry.1))
    }

    /// Returns the token at an offset of the folded text, and whether it begins there.
    pub(crate) fn token_at_folded(&self, at: usize) -> (usize, bool) {
        let after = self.tokens.partition_point(|token| size(token.folded) <= at);
        let token = after.saturating_sub(1);
        (token, self.tokens.get(token).is_some_and(|token| size(token.folded) == at))
    }

    /// Returns the places of a date, in the order of the input.
    pub(crate) fn dates(&self, date: Date) -> impl Iterator<Item = Range> + '_ {
        let start = self.dates.partition_point(|entry| entry.0 < date);
        self.dates
            .get(start..)
            .unwrap_or_default()
            .iter()
            .take_while(move |entry| entry.0 == date)
            .map(|entry| entry.1)
    }

    /// Returns whether a year stands somewhere: as a number, or in a date.
    pub(crate) fn has_year(&self, year: u16) -> bool {
        let after = self.dates.partition_point(|(date, _)| date.0 < year);
        let is_of_date = self.dates.get(after).is_some_and(|(date, _)| date.0 == year);
        is_of_date || self.occurrences(&year.to_string()).len() > 0
    }

    /// Returns whether the comma at a byte offset separates cells.
    pub(crate) fn is_cell_comma(&self, at: u32) -> bool {
        self.commas.binary_search(&at).is_ok()
    }

    /// Returns the number of commas between cells from one byte offset to another.
    pub(crate) fn cell_commas(&self, from: u32, to: u32) -> usize {
        let until = |at: u32| self.commas.partition_point(|comma| *comma < at);
        until(to).saturating_sub(until(from))
    }

    /// Returns whether the phrase of a token goes on after it: no end of a cell or sentence follows, nor a mark that separates phrases.
    pub(crate) fn has_more(&self, token: usize) -> bool {
        let gap = self.gap(token);
        let is_end =
            is_cell_break(gap) || is_sentence_end(gap) || gap.starts_with([',', ':', '،', '、', '，', '：']);
        token + 1 < self.tokens.len() && !is_end
    }

    /// Returns a line without its end.
    pub(crate) fn line(&self, line: usize) -> &str {
        let Some(start) = self.lines.get(line) else { return "" };
        let end = self.lines.get(line + 1).map_or(self.text.len(), |next| size(*next).saturating_sub(1));
        self.text.get(size(*start)..end).unwrap_or_default()
    }

    fn find_dates(&mut self) {
        let mut dates = Vec::new();
        // The token after the last full date: its numbers are no parts of another one.
        let mut free = 0;
        for token in 0..self.tokens.len() {
            let Some(first) = self.tokens.get(token) else { break };
            let plausible = match first.kind {
                Kind::Digits => token >= free && first.end - first.start <= 24 && !self.is_inside_word(token),
                // Most words are no month.
                Kind::Word => date::month(self.word(token)).is_some(),
                Kind::Single => false,
            };
            if !plausible {
                continue;
            }
            let word = |index: usize, line: u32| {
                let next = self.tokens.get(token + index).filter(|next| next.line <= line);
                next.map(|_| (self.word(token + index), self.gap(token + index)))
            };
            let within = |line: u32| date::at(|index| word(index, line));
            let mut add = |found: date::Found| {
                let last = found.words.checked_sub(1).map(|words| token + words);
                if let Some(range) = last.and_then(|last| self.range(token, last)) {
                    if found.dates.iter().all(|date| date.0 > 0) {
                        free = free.max(token + found.own);
                    }
                    dates.extend(found.dates.into_iter().map(|date| (date, range)));
                }
            };
            let found = within(first.line + 1);
            if found.words == 0 && token.checked_sub(1).is_none_or(|before| is_cell_break(self.gap(before))) {
                add(date::without_year(|index| word(index, first.line)));
            }
            if let Some(last) = self.line_end(token, found.words) {
                add(within(first.line));
                if !self.goes_on(token, last, &found) {
                    continue;
                }
            }
            add(found);
        }
        dates.sort_unstable_by_key(|(date, range): &(Date, Range)| (*date, range.start, range.end));
        self.dates = dates;
    }

    /// Returns the last token of a line among so many words; `None` if they stand in one line.
    fn line_end(&self, token: usize, words: usize) -> Option<usize> {
        let line = |token: usize| self.tokens.get(token).map(|token| token.line);
        (token..token + words.saturating_sub(1)).find(|at| line(*at) != line(at + 1))
    }

    /// Returns whether a date goes on in the line after its token `last`: a full date after a word in running text, or after one of its own
    /// marks. Lines with a number or a month each are rows, and a mark before a word begins an item.
    fn goes_on(&self, token: usize, last: usize, found: &date::Found) -> bool {
        let gap = self.gap(last);
        let begins = gap.split_once('\n').is_some_and(|(_, next)| next.trim().is_empty());
        let is_full = found.dates.iter().all(|date| date.0 > 0 && date.2 > 0);
        let before = token.checked_sub(1).filter(|before| {
            self.tokens.get(*before).is_some_and(|before| before.kind != Kind::Digits)
                && self.line_end(*before, 2).is_none()
                && !is_cell_break(self.gap(*before))
                && !self.gap(*before).contains(':')
        });
        // A number at the end of a line is a day only behind the word for one.
        let is_day = last == token && self.tokens.get(token).is_some_and(|it| it.kind == Kind::Digits);
        let is_running =
            before.is_some_and(|before| !is_day || date::BEFORE_DAY.contains(&self.word(before)));
        begins && is_full && (is_running || gap.starts_with(['.', '-', '/']))
    }

    /// Returns whether the letters between which and a number an offset is are a currency.
    fn is_beside_currency(&self, at: usize, is_before: bool) -> bool {
        let next = self.tokens.partition_point(|token| size(token.start) < at);
        is_currency(self.word(next.saturating_sub(usize::from(is_before))))
    }

    /// Returns whether a range of bytes begins and ends at borders of words and numbers: a value inside of a longer word is another word.
    /// A text of numbers may end at a letter, such as that of a unit.
    pub(crate) fn is_whole(&self, start: u32, end: u32, has_words: bool) -> bool {
        [start, end].into_iter().all(|at| self.is_border(size(at), has_words))
    }

    /// Returns whether no word and no number goes on over this offset. Digits, their separators and their sign are one number; the parts of
    /// dates, identifiers and versions are several. A digit beside a letter, as in `7a`, is inside of a word.
    pub(crate) fn is_border(&self, at: usize, of_words: bool) -> bool {
        // A combining mark belongs to the character before it.
        let before = self.text.get(..at).and_then(|text| text.chars().rev().find(|c| !is_mark(*c)));
        let after = self.text.get(at..).and_then(|text| text.chars().next());
        let is_joined = before.zip(after).is_some_and(|(one, other)| {
            is_mark(other)
                || (one.is_alphanumeric()
                    && other.is_alphanumeric()
                    && !is_unspaced(one)
                    && !is_unspaced(other)
                    && (digit(one).is_some() == digit(other).is_some()
                        || of_words && !self.is_beside_currency(at, digit(other).is_some())))
        });
        let is_signed = matches!(after, Some('+' | '#'))
            && (0..2).any(|signs| {
                at.checked_sub(signs).is_some_and(|word| signs_after(&self.text, word).len() > signs)
            });
        let at = offset(at);
        let number = self.long_numbers.partition_point(|(start, _)| *start < at).checked_sub(1);
        !is_joined
            && !is_signed
            && number.and_then(|number| self.long_numbers.get(number)).is_none_or(|(_, end)| *end <= at)
    }

    /// Returns the places of a text without separators in the folded text, as ranges of whole tokens and numbers. `inside` also accepts
    /// places that begin or end within a word.
    pub(crate) fn folded_places(&self, text: &str, inside: bool, max: usize) -> Vec<Range> {
        let needle = folded(text);
        if needle.is_empty() {
            return Vec::new();
        }
        let places = memchr::memmem::find_iter(self.folded.as_bytes(), needle.as_bytes());
        let ranges = places.filter_map(|at| {
            let (first, begins) = self.token_at_folded(at);
            let (after, ends) = self.token_at_folded(at + needle.len());
            let is_end = at + needle.len() == self.folded.len();
            if !inside && !(begins && (ends || is_end)) {
                return None;
            }
            let last = if is_end {
                self.tokens.len() - 1
            } else if ends {
                after.checked_sub(1)?
            } else {
                after
            };
            self.range(first, last).filter(|range| self.is_whole(range.start, range.end, true))
        });
        ranges.take(max).collect()
    }
}

/// Returns whether the text between two tokens ends a sentence.
pub(crate) fn is_sentence_end(gap: &str) -> bool {
    let mut chars = gap.trim_start_matches(['"', ')', '\u{201d}', '\'']).chars();
    match chars.next() {
        Some('.' | '!' | '?') => chars.next().is_some_and(char::is_whitespace),
        Some(first) => matches!(first, '。' | '！' | '？' | '؟' | '۔' | '।'),
        None => false,
    }
}

const fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}
