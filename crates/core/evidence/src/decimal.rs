//! Numbers, and the notations of numbers in texts.

use serde_json::Number;

use crate::text::{digit, is_ignored};

/// A decimal number of at most 38 digits, without trailing zeros: `digits` divided by ten to the power of `scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Decimal {
    pub(crate) negative: bool,
    digits: u128,
    scale: i32,
}

impl Decimal {
    pub(crate) fn new(negative: bool, mut digits: u128, mut scale: i32) -> Self {
        if digits == 0 {
            return Self { negative: false, digits: 0, scale: 0 };
        }
        while digits.is_multiple_of(10) {
            digits /= 10;
            scale -= 1;
        }
        Self { negative, digits, scale }
    }

    /// Returns the value of a JSON number; `None` beyond 38 digits.
    pub(crate) fn of(number: &Number) -> Option<Self> {
        Self::of_text(&number.to_string())
    }

    /// Parses the notation of JSON.
    pub(crate) fn of_text(text: &str) -> Option<Self> {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if whole.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let digits = format!("{whole}{fraction}").parse().ok()?;
        let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
        (scale.abs() < 400).then(|| Self::new(negative, digits, scale))
    }

    /// Returns the number with the opposite sign.
    pub(crate) const fn negated(self) -> Self {
        Self { negative: !self.negative && self.digits != 0, ..self }
    }

    /// Returns the sum of a whole number and a fraction with the same sign; `None` for another number or beyond 38 digits.
    pub(crate) fn plus(self, fraction: Self) -> Option<Self> {
        let power =
            u32::try_from(fraction.scale.checked_sub(self.scale)?).ok().filter(|_| self.scale <= 0)?;
        let digits = self.digits.checked_mul(10_u128.checked_pow(power)?)?.checked_add(fraction.digits)?;
        Some(Self::new(self.negative, digits, fraction.scale))
    }

    /// Returns the number multiplied by ten to the power of `exponent`.
    pub(crate) fn shifted(self, exponent: i32) -> Self {
        Self::new(self.negative, self.digits, self.scale - exponent)
    }

    /// Returns the shortest notation of JSON without an exponent; `None` beyond 30 digits before or after the point.
    pub(crate) fn to_json(self) -> Option<String> {
        let sign = if self.negative { "-" } else { "" };
        let scale = usize::try_from(self.scale.unsigned_abs()).ok().filter(|scale| *scale <= 30)?;
        let digits = self.digits.to_string();
        Some(match self.scale {
            ..=0 => format!("{sign}{digits}{}", "0".repeat(scale)),
            _ => {
                let digits = format!("{digits:0>width$}", width = scale + 1);
                let (whole, fraction) = digits.split_at(digits.len() - scale);
                format!("{sign}{whole}.{fraction}")
            }
        })
    }

    pub(crate) fn as_f64(self) -> f64 {
        // The text form is rounded once, which a division is not.
        let sign = if self.negative { "-" } else { "" };
        format!("{sign}{}e{}", self.digits, -self.scale).parse().unwrap_or(f64::NAN)
    }
}

/// Returns the values that the digits of a number and the marks between them may have: one for most notations, two for `1.234`, that with
/// decimals first; none if they are no number.
pub(crate) fn readings(text: &str) -> Vec<Decimal> {
    let (mut groups, mut separators): (Vec<String>, Vec<char>) = (vec![String::new()], Vec::new());
    for c in text.chars() {
        match (digit(c).and_then(|digit| char::from_digit(digit, 10)), groups.last_mut()) {
            (Some(digit), Some(group)) => group.push(digit),
            _ => {
                let Some(separator) = separator(c) else { return Vec::new() };
                separators.push(separator);
                groups.push(String::new());
            }
        }
    }
    let number = |whole: &[String], fraction: &str| {
        let mut digits = whole.iter().map(String::as_str).chain([fraction]).flat_map(str::bytes);
        let number = digits.try_fold(0_u128, |number, digit| {
            number.checked_mul(10)?.checked_add(u128::from(digit.checked_sub(b'0')?))
        });
        Some(Decimal::new(false, number?, i32::try_from(fraction.len()).ok()?))
    };
    let Some((last, whole)) = groups.split_last() else { return Vec::new() };
    if last.is_empty() || whole.iter().skip(1).any(String::is_empty) {
        return Vec::new();
    }
    let Some((mark, others)) = separators.split_last() else {
        return number(&groups, "").into_iter().collect();
    };
    let is_grouped = |groups: &[String], marks: &[char]| {
        let same = marks.windows(2).all(|pair| pair.first() == pair.last());
        let lengths: Vec<usize> = groups.iter().map(String::len).collect();
        match lengths.as_slice() {
            [] | [_] => true,
            [first, middle @ .., last] => {
                let inner =
                    middle.iter().all(|length| *length == 3) || middle.iter().all(|length| *length == 2);
                same && (1..=3).contains(first) && *last == 3 && inner
            }
        }
    };
    let mut found = Vec::new();
    if matches!(mark, '.' | ',') && !others.contains(mark) && is_grouped(whole, others) {
        found.extend(number(whole, last));
    }
    let starts_with_zero = groups.first().is_some_and(|first| first.starts_with('0'));
    if is_grouped(&groups, &separators) && !starts_with_zero {
        found.extend(number(&groups, ""));
    }
    found
}

/// Returns the separator that a character is within numbers: `.`, `,`, `'` or a space.
pub(crate) const fn separator(c: char) -> Option<char> {
    match c {
        '.' | '\u{ff0e}' | '\u{66b}' => Some('.'),
        ',' | '\u{ff0c}' => Some(','),
        '\'' | '\u{2019}' | '\u{66c}' => Some('\''),
        ' ' | '\u{a0}' | '\u{2009}' | '\u{202f}' => Some(' '),
        _ => None,
    }
}

/// Currencies: the code, and the signs and names that texts have for it.
const CURRENCIES: &[(&str, &[&str])] = &[
    ("usd", &["$", "us$", "dollars", "dollar"]),
    ("eur", &["€", "euro", "euros"]),
    ("gbp", &["£", "pounds", "pound"]),
    ("jpy", &["¥", "￥", "円", "yen"]),
    ("cny", &["¥", "￥", "元", "rmb", "yuan"]),
    ("inr", &["₹", "rs", "rupees"]),
    ("krw", &["₩", "원", "won"]),
    ("ils", &["₪", "nis"]),
    ("rub", &["₽", "руб"]),
    ("try", &["₺", "tl"]),
    ("chf", &["fr", "sfr"]),
    ("brl", &["r$"]),
    ("aud", &["a$", "$"]),
    ("cad", &["c$", "$"]),
    ("pln", &["zł"]),
    ("sek", &["kr"]),
    ("nok", &["kr"]),
    ("dkk", &["kr"]),
    ("vnd", &["₫"]),
    ("thb", &["฿"]),
    ("uah", &["₴"]),
];

/// Returns the other notations of a currency code, sign or name; none for other texts.
pub(crate) fn currency_notations(text: &str) -> Vec<&'static str> {
    let text = text.trim().to_lowercase();
    let all = currencies(&text).flat_map(|(code, names)| std::iter::once(code).chain(names.iter()));
    all.copied().filter(|name| *name != text).collect()
}

/// Returns whether a text in lower case is the code, the sign or a name of a currency.
pub(crate) fn is_currency(text: &str) -> bool {
    currencies(text).next().is_some()
}

/// Returns the currencies that a text in lower case may mean.
fn currencies(text: &str) -> impl Iterator<Item = &'static (&'static str, &'static [&'static str])> {
    CURRENCIES.iter().filter(move |(code, names)| *code == text || names.contains(&text))
}

/// The sign of a negative number: the bytes of the number with its sign, or with the parentheses around it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sign {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Whether the number is negative, or only may be.
    pub(crate) is_certain: bool,
}

const MINUS: [char; 3] = ['-', '\u{2212}', '\u{2013}'];

const fn is_space(c: char) -> bool {
    matches!(separator(c), Some(' '))
}

fn is_currency_sign(c: char) -> bool {
    // `$` is the only sign in ASCII.
    (c == '$' || !c.is_ascii() && !c.is_alphanumeric()) && is_currency(c.encode_utf8(&mut [0; 4]))
}

/// Returns the sign of the number at these bytes of a text: a minus before the number or its currency, between both, or after the number.
/// Otherwise it is a hyphen or a dash. Parentheses around a number and its unit, and a minus between spaces, may have another meaning.
pub(crate) fn sign(text: &str, start: usize, end: usize) -> Option<Sign> {
    let (before, after) = (text.get(..start)?, text.get(end..)?);
    let outer = before_unit(before);
    let behind = after_unit(after);
    if outer.ends_with('(') && behind.starts_with(')') {
        return Some(Sign { start: outer.len() - 1, end: text.len() - behind.len() + 1, is_certain: false });
    }
    // A minus that is apart from the digits, or after them, belongs to an amount.
    let is_amount = || {
        let has_cents = end
            .checked_sub(3)
            .is_some_and(|at| at > start && text.get(at..).is_some_and(|it| it.starts_with(['.', ','])));
        has_cents || !units(text, start, end).is_empty()
    };
    for before in [before, outer] {
        let close = before.strip_suffix(is_space).unwrap_or(before);
        let Some(rest) = close.strip_suffix(MINUS) else { continue };
        let of_currency = rest.trim_end_matches(is_currency_sign);
        let is_free = |c: char| c.is_whitespace() || "([|,;:".contains(c);
        let is_apart = close.len() < before.len();
        let is_dash = is_apart || close.ends_with('\u{2013}') || of_currency.len() < rest.len();
        // `5 – 10 €` is a range.
        let is_range = || {
            rest.trim_end_matches(|c| is_space(c) || is_currency_sign(c) || c == '%')
                .ends_with(|c| digit(c).is_some())
        };
        if (of_currency.is_empty() || of_currency.ends_with(is_free))
            && !(is_dash && is_range())
            && (!is_apart || rest.is_empty() || is_amount())
        {
            return Some(Sign { start: rest.len(), end, is_certain: !is_apart });
        }
    }
    let rest = after.strip_prefix(['-', '\u{2212}'])?;
    let is_certain =
        !rest.strip_prefix(is_space).is_some_and(|next| next.starts_with(|c| digit(c).is_some()));
    let is_sign = !rest.starts_with(char::is_alphanumeric) && is_amount();
    is_sign.then_some(Sign { start, end: text.len() - rest.len(), is_certain })
}

/// The maximum number of letters and signs of a currency.
const MAX_UNIT: usize = 8;

/// Returns a text without the currency at its end, if a minus or a parenthesis stands before it.
fn before_unit(text: &str) -> &str {
    let trimmed = text.trim_end_matches(is_space);
    let is_unit = |c: &char| c.is_alphabetic() || is_currency_sign(*c);
    let length = trimmed.chars().rev().take(MAX_UNIT).take_while(is_unit).map(char::len_utf8).sum::<usize>();
    let (rest, unit) = trimmed.split_at(trimmed.len() - length);
    let is_signed = rest.ends_with(MINUS) || rest.ends_with('(');
    if is_signed && is_currency(&unit.to_lowercase()) { rest } else { text }
}

/// Returns a text without the currency or the percent sign at its beginning, if a parenthesis stands after it.
fn after_unit(text: &str) -> &str {
    let trimmed = text.trim_start_matches(is_space);
    let is_unit = |c: &char| c.is_alphabetic() || *c == '%' || is_currency_sign(*c);
    let length = trimmed.chars().take(MAX_UNIT).take_while(is_unit).map(char::len_utf8).sum::<usize>();
    let (unit, rest) = trimmed.split_at(length);
    let is_known = rest.starts_with(')') && (unit == "%" || is_currency(&unit.to_lowercase()));
    if is_known { rest } else { text }
}

/// Returns the units of a number in a text: the codes of the currencies that the words or signs beside it may mean, and `%`.
pub(crate) fn units(text: &str, start: usize, end: usize) -> Vec<&'static str> {
    let is_other = |c: char| !matches!(c, '$' | '%') && (is_ignored(c) || digit(c).is_some());
    let before = text.get(..start).unwrap_or_default();
    let before = before.trim_end_matches(|c| is_space(c) || MINUS.contains(&c)).rsplit(is_other).next();
    let after = text.get(end..).unwrap_or_default();
    let after = after.strip_prefix('-').unwrap_or(after).trim_start_matches(is_space).split(is_other).next();
    // A word in lower case before a number is no currency: `won 20`, `try 20`.
    let before = before.filter(|word| !word.chars().all(char::is_lowercase));
    let of = |word: &str| {
        let word = word.to_lowercase();
        let percent = (word == "%").then_some("%");
        currencies(&word).map(|(code, _)| *code).chain(percent).collect::<Vec<_>>()
    };
    before.into_iter().chain(after).flat_map(of).collect()
}

/// Returns whether numbers with these units may be the same. A number without a unit may have any.
pub(crate) fn agree(units: &[&str], others: &[&str]) -> bool {
    units.is_empty() || others.is_empty() || units.iter().any(|unit| others.contains(unit))
}

/// Returns the values that a whole text may have as a number, with its [sign] and beside a currency or `%`; and its units.
pub(crate) fn amount(text: &str) -> (Vec<Decimal>, Vec<&'static str>) {
    let is_digit = |c: char| digit(c).is_some();
    let Some((start, end)) = text.find(is_digit).zip(text.rfind(is_digit)) else { return <_>::default() };
    let start = start - usize::from(text.get(..start).is_some_and(|before| before.ends_with(['.', ','])));
    let end = end + text.get(end..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    let is_unit = |part: Option<&str>| {
        let is_sign = |c: char| MINUS.contains(&c) || "()+".contains(c) || c.is_whitespace();
        let unit = part.unwrap_or_default().replace(is_sign, "").to_lowercase();
        unit.is_empty() || unit == "%" || is_currency(&unit)
    };
    let mut values = readings(text.get(start..end).unwrap_or_default());
    values.retain(|_| is_unit(text.get(..start)) && is_unit(text.get(end..)));
    if sign(text, start, end).is_some() {
        values.iter_mut().for_each(|value| *value = value.negated());
    }
    (values, units(text, start, end))
}
