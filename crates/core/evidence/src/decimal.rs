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

/// Returns the values that a text may have as a number: one for most notations, two for `1.234`, none if it is no number. A sign,
/// parentheses for negative numbers, and separators of thousands are understood.
pub(crate) fn readings(text: &str) -> Vec<Decimal> {
    let text = text.trim();
    let (negative, text) = match text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        Some(inner) => (true, inner),
        None => match text.strip_prefix(['-', '\u{2212}', '\u{2013}']).or_else(|| text.strip_suffix('-')) {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        },
    };
    unsigned(text.trim()).into_iter().map(|value| if negative { value.negated() } else { value }).collect()
}

fn unsigned(text: &str) -> Vec<Decimal> {
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

/// Returns the offset of the minus sign of a number after this text: directly before the digits or before their currency, after a space.
/// Otherwise it is a hyphen.
pub(crate) fn minus(before: &str) -> Option<usize> {
    // `$` is the only sign in ASCII; this looks at the end of every text before a number.
    let signed = before.trim_end_matches(|c: char| {
        (c == '$' || !c.is_ascii() && !c.is_alphanumeric()) && is_currency(c.encode_utf8(&mut [0; 4]))
    });
    let before = signed.strip_suffix(['-', '\u{2212}'])?;
    let is_sign = |c: char| c.is_whitespace() || "([|,;:".contains(c);
    (before.is_empty() || before.ends_with(is_sign)).then_some(before.len())
}

/// Returns the units of a number in a text: the codes of the currencies that the words or signs beside it may mean, and `%`.
pub(crate) fn units(text: &str, start: usize, end: usize) -> Vec<&'static str> {
    let is_space = |c: char| separator(c) == Some(' ');
    let is_other = |c: char| !matches!(c, '$' | '%') && (is_ignored(c) || digit(c).is_some());
    let before = text.get(..start).unwrap_or_default();
    let before =
        before.trim_end_matches(|c| is_space(c) || matches!(c, '-' | '\u{2212}')).rsplit(is_other).next();
    let after = text.get(end..).unwrap_or_default().trim_start_matches(is_space).split(is_other).next();
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

/// Returns the values that a text may have as a number, as [`readings`] does, also beside a currency or `%`; and its units.
pub(crate) fn amount(text: &str) -> (Vec<Decimal>, Vec<&'static str>) {
    // The sign may stand before the currency.
    let unsigned =
        text.strip_prefix(['-', '\u{2212}']).filter(|rest| !rest.starts_with(|c| digit(c).is_some()));
    let outer = unsigned.and_then(without_unit);
    let numeral = outer.or_else(|| without_unit(text)).unwrap_or(text);
    let mut values = readings(numeral);
    if outer.is_some() {
        values.iter_mut().for_each(|value| *value = value.negated());
    }
    let at = text.find(numeral).unwrap_or_default();
    (values, units(text, at, at + numeral.len()))
}

/// Returns a text without a currency at its start or end, and without a percent sign at its end; `None` if it has neither.
fn without_unit(text: &str) -> Option<&str> {
    let is_number = |c: char| digit(c).is_some() || matches!(c, '-' | '\u{2212}' | '(' | '+');
    let start = text.find(is_number)?;
    let end = text.rfind(|c| digit(c).is_some() || matches!(c, ')' | '-'))?;
    let end = end + text.get(end..)?.chars().next()?.len_utf8();
    let (before, number, after) = (text.get(..start)?, text.get(start..end)?, text.get(end..)?);
    let is_unit = |part: &str| {
        let part = part.trim();
        part.is_empty() || part == "%" || is_currency(&part.to_lowercase())
    };
    (number.len() < text.len() && is_unit(before) && is_unit(after)).then_some(number)
}
