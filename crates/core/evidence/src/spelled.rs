//! Numbers that English texts write in words: `twenty-one`, `a hundred and five`, `two and a half million`, `three dozen`; and fractions
//! of one character: `½`.
//!
//! A wrong place is worse than none: words that may as well be an ordinal (`twenty-first`), a pronoun (`one of them`) or a row of digits
//! (`four two seven`) are no number.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use foldhash::quality::FixedState;

use crate::decimal::Decimal;
use crate::index::Index;
use crate::text::size;

/// A word of a number.
#[derive(Clone, Copy)]
enum Word {
    /// 0 to 9.
    Unit(u128),
    /// 10 to 19.
    Teen(u128),
    /// 20, 30, up to 90.
    Tens(u128),
    Hundred,
    Dozen,
    /// A thousand, a million, a billion or a trillion.
    Scale(u128),
}

const UNITS: &str = "zero one two three four five six seven eight nine";
const TEENS: &str = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen";
const TENS: &str = "twenty thirty forty fifty sixty seventy eighty ninety";

static WORDS: LazyLock<HashMap<&str, Word, FixedState>> = LazyLock::new(|| {
    let units = (0..).zip(UNITS.split(' ')).map(|(number, name)| (name, Word::Unit(number)));
    let teens = (10..).zip(TEENS.split(' ')).map(|(number, name)| (name, Word::Teen(number)));
    let tens = (2..).zip(TENS.split(' ')).map(|(number, name)| (name, Word::Tens(10 * number)));
    let others = [
        ("hundred", Word::Hundred),
        ("dozen", Word::Dozen),
        ("thousand", Word::Scale(1_000)),
        ("million", Word::Scale(1_000_000)),
        ("billion", Word::Scale(1_000_000_000)),
        ("trillion", Word::Scale(1_000_000_000_000)),
    ];
    let mut words = HashMap::with_hasher(FixedState::with_seed(0));
    words.extend(units.chain(teens).chain(tens).chain(others));
    words
});

fn word(folded: &str) -> Option<Word> {
    // Most words end here.
    if !matches!(folded.len(), 3..=9) || !folded.is_ascii() {
        return None;
    }
    WORDS.get(folded).copied()
}

/// Returns whether a word makes the number before it an ordinal or a fraction, as in `twenty-first` and `two thirds`. `second` is also a
/// unit.
#[rustfmt::skip]
fn is_ordinal(word: &str) -> bool {
    matches!(word,
        "first" | "third" | "fourth" | "fifth" | "sixth" | "seventh" | "eighth" | "ninth" | "tenth"
        | "eleventh" | "twelfth" | "thirteenth" | "fourteenth" | "fifteenth" | "sixteenth" | "seventeenth"
        | "eighteenth" | "nineteenth" | "twentieth" | "thirtieth" | "fortieth" | "fiftieth" | "sixtieth"
        | "seventieth" | "eightieth" | "ninetieth" | "hundredth" | "thousandth" | "millionth" | "billionth"
        | "half" | "halves" | "thirds" | "quarter" | "quarters" | "fourths" | "fifths" | "sixths" | "sevenths"
        | "eighths" | "ninths" | "tenths" | "twelfths" | "twentieths" | "hundredths" | "thousandths" | "point")
}

/// The words before which `one` is a pronoun.
const AFTER_PRONOUN: [&str; 21] = [
    "of", "another", "who", "whom", "that", "which", "is", "was", "has", "had", "can", "could", "may",
    "might", "must", "should", "would", "will", "does", "or", "and",
];

/// The words after which `one` is a pronoun.
const BEFORE_PRONOUN: [&str; 13] = [
    "no", "any", "every", "each", "some", "this", "that", "which", "the", "another", "other", "such", "many",
];

/// Returns the value of a fraction of one character, by its decomposed form; `None` if it has no end in decimals.
pub(crate) fn fraction(folded: &str) -> Option<Option<Decimal>> {
    let (part, whole) = folded.split_once('\u{2044}')?;
    let (part, whole): (u128, u128) = (part.parse().ok()?, whole.parse().ok()?);
    let exact = whole > 0 && (part * 1_000).is_multiple_of(whole);
    Some(exact.then(|| Decimal::new(false, part * 1_000 / whole, 3)))
}

/// Returns the number that begins at a token, with its tokens; `None` with an empty range if none does. The end is that of all words of
/// numbers in sequence.
pub(crate) fn at(index: &Index<'_>, token: usize) -> (Option<Decimal>, Range<usize>) {
    let words = Words(index);
    let is_part = words.part(token).is_some();
    if !is_part && !matches!(index.word(token), "a" | "half") {
        return (None, token..token);
    }
    let Some((tenths, last)) = words.whole(token) else {
        // A row of words is passed over as a whole: no number begins within it.
        return (None, token..if is_part { words.end(token) + 1 } else { token });
    };
    let end = words.end(last);
    let tenths = match (end == last, words.year(token, last)) {
        (true, _) => Some(tenths),
        (false, year) => year.map(|year| year * 10),
    };
    let before = token.checked_sub(1).filter(|before| words.joins(*before)).map(|before| index.word(before));
    let is_negative = matches!(before, Some("minus" | "negative"));
    let is_number =
        words.is_free(token, end) && !(token == end && tenths == Some(10) && words.is_pronoun(token));
    let value = tenths.filter(|_| is_number).map(|tenths| Decimal::new(is_negative, tenths, 1));
    (value, token - usize::from(is_negative && value.is_some())..end + 1)
}

/// The words of an input.
struct Words<'i, 't>(&'i Index<'t>);

impl Words<'_, '_> {
    /// Returns whether a token and the next one are joined by one space, hyphen or line break.
    fn joins(&self, token: usize) -> bool {
        matches!(self.0.gap(token), " " | "-" | "\n" | "\u{a0}" | "\u{2010}" | "\u{2011}" | "-\n" | "\r\n")
    }

    fn part(&self, token: usize) -> Option<Word> {
        word(self.0.word(token))
    }

    /// Returns the word after a token, if both are joined.
    fn next(&self, token: usize) -> Option<&str> {
        self.joins(token).then(|| self.0.word(token + 1))
    }

    fn next_part(&self, token: usize) -> Option<Word> {
        self.next(token).and_then(word)
    }

    /// Returns the last of the words of numbers in sequence from a token on.
    fn end(&self, token: usize) -> usize {
        (token..).find(|token| self.next_part(*token).is_none()).unwrap_or(token)
    }

    /// Returns a number below 100 with its last token.
    fn small(&self, token: usize) -> Option<(u128, usize)> {
        match (self.part(token)?, self.next_part(token)) {
            (Word::Tens(tens), Some(Word::Unit(unit @ 1..))) => Some((tens + unit, token + 1)),
            (Word::Unit(number @ 1..) | Word::Teen(number) | Word::Tens(number), _) => Some((number, token)),
            _ => None,
        }
    }

    /// Returns a number without scales: `three`, `a hundred and five`, `twenty-five hundred`.
    fn group(&self, token: usize, joins_and: bool) -> Option<(u128, usize)> {
        let one = || (self.0.word(token) == "a").then_some((1, token));
        let (number, last) = self.small(token).or_else(one)?;
        if !matches!(self.next_part(last), Some(Word::Hundred)) {
            return Some((number, last));
        }
        let (number, last) = (number * 100, last + 1);
        let rest = self.after(last, joins_and).and_then(|token| self.small(token));
        // `one hundred and two hundred` are two numbers.
        let rest = rest.filter(|(_, last)| !matches!(self.next_part(*last), Some(Word::Hundred)));
        Some(rest.map_or((number, last), |(rest, last)| (number + rest, last)))
    }

    /// Returns the token after a token, or after `and`.
    fn after(&self, token: usize, joins_and: bool) -> Option<usize> {
        match self.next(token)? {
            "and" => (joins_and && self.joins(token + 1)).then_some(token + 2),
            _ => Some(token + 1),
        }
    }

    /// Returns a number whose scales are below a limit.
    fn number(&self, token: usize, limit: u128, joins_and: bool) -> Option<(u128, usize)> {
        let (number, last) = self.group(token, joins_and)?;
        let scale = match self.next_part(last) {
            Some(Word::Scale(scale)) if scale < limit => scale,
            _ => return Some((number, last)),
        };
        let (number, last) = (number * scale, last + 1);
        let is_and = self.next(last) == Some("and");
        let rest = if is_and {
            // `one thousand and two thousand` are two numbers.
            let small = self.after(last, joins_and).and_then(|token| self.small(token));
            small.filter(|(_, last)| !matches!(self.next_part(*last), Some(Word::Hundred | Word::Scale(_))))
        } else if self.0.gap(last) == ", " {
            self.number(last + 1, scale, joins_and).filter(|(rest, _)| *rest >= 100)
        } else {
            self.after(last, false).and_then(|token| self.number(token, scale, joins_and))
        };
        Some(rest.map_or((number, last), |(rest, last)| (number + rest, last)))
    }

    /// Returns tenfold the number that begins at a token, with its last token.
    fn whole(&self, token: usize) -> Option<(u128, usize)> {
        let factor = |token: usize| match self.next_part(token) {
            Some(Word::Scale(scale)) => Some(scale),
            Some(Word::Dozen) => Some(12),
            _ => None,
        };
        match self.0.word(token) {
            // Half a million, half a dozen.
            "half" => {
                let last = if self.next(token) == Some("a") { token + 1 } else { token };
                return factor(last).map(|factor| (5 * factor, last + 1));
            }
            "a" if factor(token).is_none() && !matches!(self.next_part(token), Some(Word::Hundred)) => {
                return None;
            }
            "zero" => return Some((0, token)),
            _ => {}
        }
        // The numbers of `between one hundred and two hundred` are two.
        let before = token.checked_sub(1).map_or("", |before| self.0.word(before));
        let (number, mut last) = self.number(token, u128::MAX, !matches!(before, "between" | "both"))?;
        let mut tenths = number * 10;
        if self.next(last) == Some("and")
            && self.next(last + 1) == Some("a")
            && self.next(last + 2) == Some("half")
        {
            // `a million and a half` may be one and a half million.
            (tenths, last) = (number < 100).then_some((tenths + 5, last + 3))?;
            if let Some(factor) = factor(last) {
                (tenths, last) = (tenths * factor, last + 1);
            }
        } else if matches!(self.next_part(last), Some(Word::Dozen)) {
            (tenths, last) = (tenths * 12, last + 1);
        }
        Some((tenths, last))
    }

    /// Returns the year of two numbers in sequence, such as `nineteen eighty-four`.
    fn year(&self, token: usize, last: usize) -> Option<u128> {
        let (century, end) = self.small(token).filter(|(_, end)| *end == last)?;
        let (year, _) = self.small(end + 1).filter(|(_, last)| *last == self.end(end))?;
        ((13..=20).contains(&century) && year >= 10).then_some(century * 100 + year)
    }

    /// Returns whether the words up to a token are no part of a longer notation: an ordinal, an identifier, an address.
    fn is_free(&self, first: usize, last: usize) -> bool {
        let Some(range) = self.0.range(first, last) else { return false };
        let part = |from: usize, to: usize| self.0.text.get(from..to).unwrap_or_default().chars();
        let mut before = part(0, size(range.start)).rev();
        let mut after = part(size(range.end), self.0.text.len());
        let joins = |near: Option<char>, far: Option<char>| match near {
            Some('.' | '/' | '\'' | '\u{2019}') => far.is_some_and(char::is_alphanumeric),
            Some(near) => near.is_alphanumeric() || matches!(near, '_' | '@' | '#'),
            None => false,
        };
        let is_ordinal = self.next(last).is_some_and(|next| {
            let is_second =
                next == "second" && !matches!(self.part(last), Some(Word::Unit(_) | Word::Teen(_)));
            is_ordinal(next) || is_second
        });
        !is_ordinal && !joins(before.next(), before.next()) && !joins(after.next(), after.next())
    }

    /// Returns whether `one` at a token stands for a person or a thing: it is a number only before a noun, or after a colon.
    fn is_pronoun(&self, token: usize) -> bool {
        let before = token.checked_sub(1);
        let is_named = before.is_some_and(|before| self.0.gap(before).contains([':', '=', '|']));
        let joined = before.filter(|before| self.joins(*before)).map(|before| self.0.word(before));
        let is_pronoun = self.next(token).is_none_or(|next| AFTER_PRONOUN.contains(&next))
            || joined.is_some_and(|before| BEFORE_PRONOUN.contains(&before));
        !is_named && is_pronoun
    }
}
