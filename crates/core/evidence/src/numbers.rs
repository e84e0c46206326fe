//! The numbers of an input.

use crate::date::Kind;
use crate::decimal::{Decimal, is_currency, readings, separator, sign};
use crate::index::Index;
use crate::numeral::{Numeral, Range};
use crate::spelled;
use crate::text::{offset, size};

/// The part of a number behind its digits.
#[derive(Debug, Clone, Copy)]
enum Tail {
    None,
    /// A fraction with its value; see [`spelled::fraction`].
    Fraction(Option<Decimal>),
    /// A power of ten.
    Exponent(i32),
}

impl Tail {
    const fn words(self) -> usize {
        match self {
            Self::None => 0,
            Self::Fraction(_) => 1,
            Self::Exponent(_) => 2,
        }
    }
}

impl Index<'_> {
    pub(crate) fn find_numbers(&mut self) {
        let (mut numbers, mut spelled, mut long_numbers) = (Vec::new(), Vec::new(), Vec::new());
        let mut token = 0;
        while let Some(first) = self.tokens.get(token) {
            if first.kind == Kind::Word {
                let (value, words) = spelled::at(self, token);
                let range = words.end.checked_sub(1).and_then(|last| self.range(words.start, last));
                spelled.extend(value.zip(range).map(|(value, range)| Numeral::new(value, range)));
                if let Some(value) = self.fraction(token).flatten()
                    && !self.is_inside_word(token)
                {
                    numbers.extend(self.range(token, token).map(|range| Numeral::new(value, range)));
                }
                token = words.end.max(token + 1);
                continue;
            }
            if first.kind != Kind::Digits || self.is_inside_word(token) {
                token += 1;
                continue;
            }
            let last = self.number_end(token);
            let before = numbers.len();
            self.add_numbers(token, last, &mut numbers);
            let is_number = numbers.len() > before;
            let whole = last;
            let last = last + self.tail(last).words();
            let digits = self.first_byte(token);
            let end = self.tokens.get(last).map_or(first.end, |token| token.end);
            let sign = sign(&self.text, size(digits), size(end)).filter(|sign| sign.is_certain);
            let (start, end) = sign.map_or((digits, end), |sign| (offset(sign.start), offset(sign.end)));
            if is_number && (last > token || (start, end) != (first.start, first.end)) {
                long_numbers.push((start, end));
            }
            if !is_number && whole > token {
                // No number as a whole, such as 1.2.3: each part is one.
                (token..=whole).for_each(|part| self.add_numbers(part, part, &mut numbers));
            }
            // Groups of three digits after spaces: one number, or several.
            let mut end = last;
            while self.joins_by_space(end) && end < last + 6 {
                end = self.number_end(end + 1);
                self.add_numbers(token, end, &mut numbers);
            }
            token = last + 1;
        }
        Numeral::sort(&mut numbers);
        Numeral::sort(&mut spelled);
        (self.numbers, self.spelled, self.long_numbers) = (numbers, spelled, long_numbers);
    }

    /// Returns the fraction that a token is, such as `½`, with its value; see [`spelled::fraction`].
    fn fraction(&self, token: usize) -> Option<Option<Decimal>> {
        let word = self.word(token);
        let is_word = self.tokens.get(token).is_some_and(|token| token.kind == Kind::Word);
        // The decomposed form of a fraction is the only word that begins with a digit.
        if is_word && word.starts_with(|c: char| c.is_ascii_digit()) { spelled::fraction(word) } else { None }
    }

    /// Returns what belongs to the digits before it: a fraction as in `1½` and `1 ½`, or an exponent as in `1.2e-5`.
    fn tail(&self, last: usize) -> Tail {
        let gap = self.gap(last);
        let fraction = matches!(gap, "" | " " | "\u{a0}").then(|| self.fraction(last + 1)).flatten();
        if let Some(fraction) = fraction {
            return Tail::Fraction(fraction);
        }
        if !(gap.is_empty() && self.word(last + 1) == "e") {
            return Tail::None;
        }
        let sign = self.gap(last + 1);
        let is = |token: usize, kind| self.tokens.get(token).is_some_and(|token| token.kind == kind);
        let is_word = self.gap(last + 2).is_empty() && is(last + 3, Kind::Word);
        let is_exponent =
            matches!(sign, "" | "+" | "-" | "\u{2212}") && is(last + 2, Kind::Digits) && !is_word;
        let exponent = is_exponent.then(|| readings(self.word(last + 2)).first()?.to_json()?.parse().ok());
        match exponent.flatten() {
            Some(exponent @ 0..400) => {
                Tail::Exponent(if matches!(sign, "" | "+") { exponent } else { -exponent })
            }
            _ => Tail::None,
        }
    }

    /// Returns the first byte of a number that begins with the digits of a token: that of the decimal mark before them, as in `.5`. A point
    /// after a word or another mark is none.
    fn first_byte(&self, token: usize) -> u32 {
        let start = self.tokens.get(token).map_or(0, |token| token.start);
        let before = self.text.get(..size(start)).and_then(|before| before.strip_suffix('.'));
        let is_free = |c: char| {
            c.is_whitespace()
                || "([{+-\u{2212}<>=~≤≥±≈|;".contains(c)
                || is_currency(c.encode_utf8(&mut [0; 4]))
        };
        let is_mark = before.is_some_and(|before| {
            // Points in a row lead to a number.
            (before.chars().next_back().is_none_or(is_free) && !before.trim_end().ends_with('.'))
                || before.ends_with(',') && self.is_cell_comma(offset(before.len() - 1))
        });
        start - u32::from(is_mark)
    }

    /// Returns the last token of a number that begins at a token, over separators other than spaces, unless a line never breaks at the space or
    /// a group of zeros follows it, which is no number of its own.
    fn number_end(&self, first: usize) -> usize {
        let mut last = first;
        while let Some(token) = self.tokens.get(last)
            && self.tokens.get(last + 1).is_some_and(|token| token.kind == Kind::Digits)
        {
            let (mut gap, next) = (self.gap(last).chars(), self.word(last + 1));
            let mark = gap.next();
            let joins = match mark.and_then(separator) {
                Some(' ') => {
                    let is_group = next == "000" || mark != Some(' ') && next.chars().count() == 3;
                    is_group
                        && self
                            .range(first, last + 1)
                            .is_some_and(|it| !readings(self.slice(it.start, it.end)).is_empty())
                }
                Some(',') => !self.is_cell_comma(token.end),
                mark => mark.is_some(),
            };
            if !joins || gap.next().is_some() || last - first > 16 {
                break;
            }
            last += 1;
        }
        last
    }

    fn joins_by_space(&self, last: usize) -> bool {
        let mut gap = self.gap(last).chars();
        let is_space = gap.next().and_then(separator) == Some(' ') && gap.next().is_none();
        let next = self.tokens.get(last + 1);
        is_space
            && next.is_some_and(|next| next.kind == Kind::Digits && self.word(last + 1).chars().count() == 3)
    }

    /// Returns whether letters stand directly before the digits of a token, as in `A4` and `x2y`, unless they are a currency or a
    /// script without spaces.
    pub(crate) fn is_inside_word(&self, token: usize) -> bool {
        let Some(before) = token.checked_sub(1).and_then(|before| self.tokens.get(before)) else {
            return false;
        };
        let here = self.tokens.get(token).map(|token| token.start);
        before.kind == Kind::Word && Some(before.end) == here && !is_currency(self.word(token - 1))
    }

    fn add_numbers(&self, first: usize, whole: usize, numbers: &mut Vec<Numeral>) {
        let tail = self.tail(whole);
        let last = whole + tail.words();
        let Some(mut range) = self.range(first, last) else { return };
        range.start = self.first_byte(first);
        let digits = self.slice(range.start, self.tokens.get(whole).map_or(0, |token| token.end));
        let sign = sign(&self.text, size(range.start), size(range.end));
        let mut add = |value: Decimal, range: Range| {
            let with_sign = sign.map(|sign| {
                let (start, end) = (range.start.min(offset(sign.start)), range.end.max(offset(sign.end)));
                Numeral::new(value.negated(), Range { start, end, ..range })
            });
            let is_positive = sign.is_none_or(|sign| !sign.is_certain);
            numbers.extend(with_sign.into_iter().chain(is_positive.then(|| Numeral::new(value, range))));
        };
        let is_percent = self.is_percent(range.end);
        for (nth, value) in readings(digits).into_iter().enumerate() {
            let value = match tail {
                Tail::None => Some(value),
                Tail::Fraction(fraction) => fraction.and_then(|fraction| value.plus(fraction)),
                Tail::Exponent(exponent) => Some(value.shifted(exponent)),
            };
            let Some(value) = value else { continue };
            add(value, range);
            // Of two readings, the first one has decimals.
            if is_percent && nth == 0 {
                add(value.shifted(-2), range);
            }
            if let Some((exponent, words)) = self.multiplier(last) {
                let last = last + words;
                let end = self.tokens.get(last).map_or(range.end, |token| token.end);
                add(value.shifted(exponent), Range { last: offset(last), end, ..range });
            }
        }
    }

    /// Returns whether a percent sign follows a number.
    pub(crate) fn is_percent(&self, end: u32) -> bool {
        self.text.get(size(end)..).is_some_and(|after| after.trim_start_matches(' ').starts_with('%'))
    }

    /// Returns the power of ten that the word after a number stands for.
    fn multiplier(&self, last: usize) -> Option<(i32, usize)> {
        let gap = self.gap(last);
        if gap.len() > 1 || gap.contains('\n') {
            return None;
        }
        let exponent = match self.word(last + 1) {
            "hundred" => 2,
            "k" | "thousand" | "tsd" | "千" => 3,
            "万" | "萬" | "\u{1106}\u{1161}\u{11ab}" => 4,
            "m" | "mn" | "mio" | "million" | "millions" | "millionen" | "百万" => 6,
            "億" | "亿" | "\u{110b}\u{1165}\u{11a8}" => 8,
            "b" | "bn" | "mrd" | "billion" | "billions" | "milliarden" => 9,
            _ => return None,
        };
        Some((exponent, 1))
    }
}
