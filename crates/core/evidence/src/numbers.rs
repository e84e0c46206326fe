//! The numbers of an input.

use crate::date::Kind;
use crate::decimal::{Decimal, is_currency, minus, readings, separator};
use crate::index::{Index, Range, hash, offset, size};
use crate::spelled;

/// A number in the input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numeral {
    hash: u64,
    pub(crate) value: Decimal,
    pub(crate) range: Range,
}

impl Numeral {
    fn new(value: Decimal, range: Range) -> Self {
        Self { hash: hash(&value), value, range }
    }

    fn sort(numbers: &mut [Self]) {
        numbers.sort_unstable_by_key(|number| (number.hash, number.range.start, number.range.end));
    }

    /// Returns the places of a value among sorted numbers.
    pub(crate) fn places(numbers: &[Self], value: Decimal) -> impl Iterator<Item = Range> + '_ {
        let hash = hash(&value);
        let start = numbers.partition_point(|number| number.hash < hash);
        let equal = numbers.get(start..).unwrap_or_default().iter().take_while(move |it| it.hash == hash);
        equal.filter(move |number| number.value == value).map(|number| number.range)
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
            let start = minus(self.text.get(..size(first.start)).unwrap_or_default());
            let is_number = numbers.len() > before;
            let whole = last;
            let last = last + usize::from(self.fraction_after(last).is_some());
            if is_number && (last > token || start.is_some()) {
                let end = self.tokens.get(last).map_or(first.end, |token| token.end);
                long_numbers.push((start.map_or(first.start, offset), end));
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

    /// Returns the fraction that belongs to the digits before it: `1½`, `1 ½`.
    fn fraction_after(&self, last: usize) -> Option<Option<Decimal>> {
        matches!(self.gap(last), "" | " " | "\u{a0}").then(|| self.fraction(last + 1)).flatten()
    }

    /// Returns the last token of a number that begins at a token, over separators other than spaces.
    fn number_end(&self, first: usize) -> usize {
        let mut last = first;
        while let Some(token) = self.tokens.get(last)
            && self.tokens.get(last + 1).is_some_and(|token| token.kind == Kind::Digits)
        {
            let mut gap = self.gap(last).chars();
            let mark = gap.next().and_then(separator).filter(|mark| *mark != ' ');
            let is_border = mark == Some(',') && self.cell_commas(token.end, token.end + 1) > 0;
            if mark.is_none() || is_border || gap.next().is_some() || last - first > 16 {
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
        let fraction = self.fraction_after(whole);
        let last = whole + usize::from(fraction.is_some());
        let Some(mut range) = self.range(first, last) else { return };
        let before = self.text.get(..size(range.start)).unwrap_or_default();
        let after = self.text.get(size(range.end)..).unwrap_or_default();
        let sign = minus(before);
        let is_negative = sign.is_some();
        let in_parentheses = before.ends_with('(') && after.starts_with(')');
        if let Some(sign) = sign {
            range.start = offset(sign);
        } else if in_parentheses {
            range = Range { start: range.start - 1, end: range.end + 1, ..range };
        }
        let digits = self.slice(
            self.tokens.get(first).map_or(0, |token| token.start),
            self.tokens.get(whole).map_or(0, |token| token.end),
        );
        let mut add = |value: Decimal, range: Range| numbers.push(Numeral::new(value, range));
        for value in readings(digits) {
            let sum = fraction.map(|fraction| value.plus(fraction?));
            let Some(value) = sum.unwrap_or(Some(value)) else { continue };
            add(if is_negative || in_parentheses { value.negated() } else { value }, range);
            if in_parentheses {
                let inner = Range { start: range.start + 1, end: range.end - 1, ..range };
                add(value, inner);
            }
            if after.trim_start_matches(' ').starts_with('%') {
                add(value.shifted(-2), range);
            }
            if let Some((exponent, words)) = self.multiplier(last) {
                let last = last + words;
                let end = self.tokens.get(last).map_or(range.end, |token| token.end);
                add(value.shifted(exponent), Range { last: offset(last), end, ..range });
            }
        }
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
