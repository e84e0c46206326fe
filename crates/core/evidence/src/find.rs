//! The places at which a value may stand in the input.

use serde_json::{Number, Value};

use crate::Status;
use crate::clock::Time;
use crate::date::{Date, dates_in, words_of};
use crate::decimal::{Decimal, agree, amount, currency_notations, separator, sign, units};
use crate::index::Index;
use crate::numeral::{Numeral, Range};
use crate::text::{digit, has_clitics, is_ignored, is_same_text, offset, plain, signs_after, size};

/// The maximum number of places of a value.
const MAX_PLACES: usize = 20_000;

/// The maximum number of words of a name.
const MAX_NAME: usize = 5;

/// A place at which a value may stand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) range: Range,
    pub(crate) status: Status,
    /// The fit of the notation, from 0 to 1.
    pub(crate) quality: f64,
    /// Whether the place counts only if its surroundings name the value: a `yes` may belong to anything.
    pub(crate) needs_label: bool,
}

impl Place {
    const fn new(range: Range, status: Status, quality: f64) -> Self {
        Self { range, status, quality, needs_label: false }
    }

    /// Returns the token of the place that is the nearest to another one.
    pub(crate) fn nearest(&self, token: usize) -> usize {
        token.max(size(self.range.first)).min(size(self.range.last))
    }

    /// Returns whether the places have a token in common.
    pub(crate) const fn meets(&self, other: &Self) -> bool {
        self.range.first <= other.range.last && other.range.first <= self.range.last
    }
}

/// Returns the places of a leaf in the order of the input.
pub(crate) fn places(index: &Index<'_>, leaf: &Value) -> Vec<Place> {
    let mut places = match leaf {
        Value::String(text) => of_text(index, text.trim()),
        Value::Number(number) => of_number(index, number),
        Value::Bool(value) => of_bool(index, *value),
        _ => Vec::new(),
    };
    places.sort_by(|one, other| {
        let key = |place: &Place| (place.range.start, place.range.end);
        key(one).cmp(&key(other)).then(other.quality.total_cmp(&one.quality))
    });
    places.dedup_by_key(|place| (place.range.start, place.range.end));
    places.truncate(MAX_PLACES);
    places
}

fn of_text(index: &Index<'_>, text: &str) -> Vec<Place> {
    let words = words_of(text);
    if words.is_empty() {
        return of_signs(index, text);
    }
    let mut places = of_words(index, text, &words);
    let (mut found, rest) = dates_in(text, &words);
    let time = Time::of(if found.is_empty() { text } else { rest });
    // Only a time of day may follow a date, or the text is no date.
    if time.is_none() && !rest.chars().all(is_ignored) {
        found.clear();
    }
    // `T1030` alone may be anything.
    let is_code = text.starts_with(['T', 't']) && !text.contains(':');
    let times = time.filter(|_| found.is_empty() && !is_code).map(|time| index.times(time));
    let is_in_words = text.chars().any(|c| c.is_alphabetic() && !matches!(c, 'T' | 'Z' | 't' | 'z'));
    let is_numeric = (!found.is_empty() || times.is_some()) && !is_in_words;
    if is_numeric {
        // The same numbers in sequence may be no date, or parts of two.
        let dates = || found.iter().flat_map(|date| index.dates(*date));
        places.retain(|place| {
            let begins = |range: Range| range.first == place.range.first;
            let written = |text: &str| {
                text.trim_matches(is_ignored).split_whitespace().map(str::to_owned).collect::<Vec<_>>()
            };
            written(index.slice(place.range.start, place.range.end)) == written(text)
                || times
                    .as_ref()
                    .map_or_else(|| dates().any(begins), |times| times.iter().copied().any(begins))
        });
    }
    if !found.is_empty() {
        let of_date = |date: Date, quality| {
            // In another zone, the date may be the one before or after.
            let days = if time.is_some_and(Time::has_zone) { -1..=1 } else { 0..=0 };
            let found = days.filter_map(|days| Some((date.before(days)?, days)));
            let places = found.flat_map(|(date, days)| index.dates(date).map(move |range| (range, days)));
            let dated = |(range, days): (Range, i32)| {
                let timed = time.and_then(|time| index.with_time(range, time, days));
                timed.or((days == 0 && time.is_none_or(Time::is_midnight)).then_some(range))
            };
            let places = places.filter_map(dated).map(|range| Place::new(range, Status::Normalised, quality));
            places.collect::<Vec<_>>()
        };
        let mut full: Vec<Place> = found.iter().flat_map(|date| of_date(*date, 0.9)).collect();
        // The date within the whole value is no place of its own.
        full.retain(|date| {
            let before = places.partition_point(|place| place.range.start <= date.range.start);
            let around = before.checked_sub(1).and_then(|at| places.get(at));
            around.is_none_or(|place| place.range.end < date.range.end || place.range == date.range)
        });
        places.extend(full);
        if places.is_empty() {
            let known = found.iter().filter(|date| index.has_year(date.0));
            places.extend(known.flat_map(|date| of_date(Date(0, date.1, date.2), 0.45)));
        }
    } else if places.is_empty() {
        let times = times.unwrap_or_default().into_iter();
        places.extend(times.map(|range| Place::new(range, Status::Normalised, 0.9)));
    }
    if !places.is_empty() {
        return places;
    }
    let (values, own) = amount(text);
    let found = values.into_iter().flat_map(|value| numerals(index, value, ""));
    let other = |range: Range| units(&index.text, size(range.start), size(range.end));
    places.extend(found.filter(|place| agree(&own, &other(place.range))));
    for name in currency_notations(text) {
        let signs = words_of(name).is_empty() || name.chars().any(|c| !c.is_alphanumeric());
        let found = if signs { of_signs(index, name) } else { of_words(index, name, &words_of(name)) };
        places.extend(found.into_iter().map(|place| Place {
            status: Status::Normalised,
            quality: 0.7,
            ..place
        }));
    }
    if places.is_empty() {
        places = of_name(index, &words);
    }
    if places.is_empty() && !is_numeric {
        let inside = text.chars().any(has_clitics) && text.chars().count() > 2;
        // `125000` is another number than `1,250.00`. The range begins with a letter, a digit or a symbol.
        let is_free = inside || !text.chars().any(|c| digit(c).is_some());
        let wanted = text.trim_start_matches('+');
        let own = signs(text, 0, words.last().map_or(0, |(.., end)| *end));
        let fits = |it: &Range| {
            own == signs(&index.text, size(it.start), size(it.end))
                && (is_free || is_same_text(wanted, index.slice(it.start, it.end)))
        };
        for range in index.folded_places(text, inside, MAX_PLACES).into_iter().filter(fits) {
            places.push(Place::new(inner(index, range, text), Status::Normalised, 0.6));
        }
        for place in &mut places {
            if index.slice(place.range.start, place.range.end) == text {
                place.status = Status::Exact;
            }
        }
    }
    places
}

/// Narrows a range of tokens to a text that stands within them verbatim.
fn inner(index: &Index<'_>, range: Range, text: &str) -> Range {
    let slice = index.slice(range.start, range.end);
    match slice.find(text).and_then(|at| Some((u32::try_from(at).ok()?, u32::try_from(text.len()).ok()?))) {
        Some((at, length)) => Range { start: range.start + at, end: range.start + at + length, ..range },
        None => range,
    }
}

/// Returns the signs of all words that end within a part of a text.
fn signs(text: &str, start: usize, end: usize) -> String {
    let part = text.as_bytes().get(start..text.len().min(end + 1)).unwrap_or_default();
    memchr::memchr2_iter(b'+', b'#', part).map(|at| signs_after(text, start + at)).collect()
}

/// Returns the places of words in sequence, with the same signs, whose numbers have the signs and no other units than those of the text.
fn of_words(index: &Index<'_>, text: &str, words: &[(String, &str, usize)]) -> Vec<Place> {
    let rarest = words.iter().enumerate().min_by_key(|(_, (word, _, _))| index.occurrences(word).len());
    let Some((position, (rare, _, _))) = rarest else { return Vec::new() };
    // The text before the first word and after the last one, such as a parenthesis, belongs to a verbatim place.
    let start = crate::text::clusters(text, 0)
        .find(|(start, _)| {
            text.get(*start..).and_then(|rest| rest.chars().next()).and_then(crate::date::Kind::of).is_some()
        })
        .map_or(0, |(start, _)| start);
    let after = words.last().map_or(0, |(_, gap, _)| gap.len());
    let begin = |at: usize| {
        at.checked_sub(1).and_then(|before| words.get(before)).map_or(start, |(_, gap, end)| end + gap.len())
    };
    let sign = |text: &str, start: usize, end: usize| sign(text, start, end).filter(|sign| sign.is_certain);
    let is_number =
        |(_, (word, ..)): &(usize, &(String, &str, usize))| word.chars().all(|c| digit(c).is_some());
    let digits: Vec<_> = words.iter().enumerate().filter(is_number).collect();
    // The digits of a number, with the marks between them.
    let parts = digits.chunk_by(|(at, (_, gap, _)), (next, _)| {
        at + 1 == *next
            && gap.chars().count() == 1
            && gap.chars().all(|c| separator(c).is_some_and(|c| c != ' '))
    });
    let numbers = parts.filter_map(|part| {
        let ((from, _), (to, (.., end))) = part.first().zip(part.last())?;
        let begin = begin(*from);
        Some((*from, *to, sign(text, begin, *end).is_some(), units(text, begin, *end)))
    });
    let numbers: Vec<_> = numbers.collect();
    type Part<'u> = (usize, usize, bool, Vec<&'u str>);
    // Returns the range with the sign of a number in it; `None` for a number with another sign or unit.
    let with_sign = |range: Range, (from, to, is_negative, own): &Part<'_>, is_verbatim: bool| {
        let number = index.range(size(range.first) + from, size(range.first) + to)?;
        let (start, end) = (size(number.start), size(number.end));
        let sign = sign(&index.text, start, end);
        let is_same =
            sign.is_some() == *is_negative && (is_verbatim || agree(own, &units(&index.text, start, end)));
        let (start, end) =
            sign.map_or((range.start, range.end), |sign| (offset(sign.start), offset(sign.end)));
        is_same.then_some(Range { start: start.min(range.start), end: end.max(range.end), ..range })
    };
    let own = signs(text, 0, words.last().map_or(0, |(.., end)| *end));
    let has_words = digits.len() < words.len();
    let mut places = Vec::new();
    for token in index.occurrences(rare) {
        let Some(first) = token.checked_sub(position) else { continue };
        let fits = words.iter().enumerate().all(|(at, (word, _, _))| index.word(first + at) == word);
        let Some(range) = index.range(first, first + words.len() - 1).filter(|_| fits) else { continue };
        let verbatim = size(range.start).checked_sub(start).map(|from| (from, size(range.end) + after));
        let verbatim = verbatim.filter(|(from, to)| index.text.get(*from..*to) == Some(text));
        // The signs of a verbatim text are its own, whatever follows them.
        let has_signs = verbatim.is_some() && !own.is_empty();
        if !has_signs && own != signs(&index.text, size(range.start), size(range.end)) {
            continue;
        }
        // The signs belong to the number and to the word.
        let end = range.end + offset(signs_after(&index.text, size(range.end)).len());
        let signed = numbers
            .iter()
            .try_fold(Range { end, ..range }, |range, number| with_sign(range, number, verbatim.is_some()));
        let Some(range) = signed else { continue };
        let place = match verbatim
            .and_then(|(from, to)| Some((u32::try_from(from).ok()?, u32::try_from(to).ok()?)))
        {
            Some((start, end)) if index.is_whole(start, end, has_words) => {
                Place::new(Range { start, end, ..range }, Status::Exact, 1.0)
            }
            _ if !index.is_whole(range.start, range.end, has_words) => continue,
            _ => {
                let same_case = plain_case(index.slice(range.start, range.end)) == plain_case(text);
                Place::new(range, Status::Normalised, if same_case { 0.95 } else { 0.9 })
            }
        };
        places.push(place);
        if places.len() >= MAX_PLACES {
            break;
        }
    }
    places
}

/// Returns the places of a name whose last words stand before a comma, and the others behind it: `King, Ada B.` for `Ada B. King`.
fn of_name(index: &Index<'_>, words: &[(String, &str, usize)]) -> Vec<Place> {
    let is_word =
        |(word, gap, _): &(String, &str, usize)| !gap.contains(',') && !word.contains(|c| digit(c).is_some());
    let is_name = (2..=MAX_NAME).contains(&words.len()) && words.iter().all(is_word);
    let turned = (1..words.len()).filter(|_| is_name).flat_map(|first| {
        let mut turned = words.to_vec();
        turned.rotate_left(first);
        let is_turned = move |place: &Place| {
            let (from, last) = (size(place.range.first), size(place.range.last));
            index.gap(from + words.len() - first - 1).trim() == ","
                && index.slice(place.range.start, place.range.end).matches(',').count() == 1
                && !from.checked_sub(1).is_some_and(|before| index.has_more(before))
                && (!index.has_more(last) || index.gap(last).ends_with(['(', '<', '[']))
        };
        of_words(index, "", &turned).into_iter().filter(is_turned).collect::<Vec<_>>()
    });
    turned.collect()
}

/// Returns the letters and digits of a text.
fn plain_case(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// Returns the verbatim places of a text of signs.
fn of_signs(index: &Index<'_>, text: &str) -> Vec<Place> {
    if text.is_empty() {
        return Vec::new();
    }
    let places = memchr::memmem::find_iter(index.text.as_bytes(), text.as_bytes()).take(MAX_PLACES);
    let range = |start: usize| {
        let (start, end) = (u32::try_from(start).ok()?, u32::try_from(start + text.len()).ok()?);
        let token = index.tokens.partition_point(|token| token.start < start);
        let token = u32::try_from(token.min(index.tokens.len().saturating_sub(1))).ok()?;
        Some(Range { first: token, last: token, start, end })
    };
    places.filter_map(range).map(|range| Place::new(range, Status::Exact, 1.0)).collect()
}

fn of_number(index: &Index<'_>, number: &Number) -> Vec<Place> {
    let written = number.to_string();
    let Some(value) = Decimal::of(number) else { return of_words(index, &written, &words_of(&written)) };
    let places = numerals(index, value, &written);
    if !places.is_empty() {
        return places;
    }
    let spelled = Numeral::places(&index.spelled, value).take(MAX_PLACES);
    spelled.map(|range| Place::new(range, Status::Normalised, 0.5)).collect()
}

/// Returns the places of a number; those with the notation `written` are exact.
fn numerals(index: &Index<'_>, value: Decimal, written: &str) -> Vec<Place> {
    let place = |range: Range| {
        let status =
            if index.slice(range.start, range.end) == written { Status::Exact } else { Status::Normalised };
        let quality = if status == Status::Exact { 1.0 } else { 0.97 };
        let quality = if is_part(index, range) { quality - 0.4 } else { quality };
        // Of `88.75` and `8875 %`, the first is the number itself.
        let is_share = || !amount(index.slice(range.start, range.end)).0.contains(&value);
        let quality = if index.is_percent(range.end) && is_share() { quality - 0.2 } else { quality };
        Place::new(range, status, quality)
    };
    Numeral::places(&index.numbers, value).take(MAX_PLACES).map(place).collect()
}

/// Returns whether a number is a part of a longer notation: an identifier, a date, a telephone number, a time.
fn is_part(index: &Index<'_>, range: Range) -> bool {
    let is_joint = |c: Option<char>| matches!(c, Some('-' | '/' | '.' | ':' | '_' | '\u{2010}' | '\u{2011}'));
    let mut before = index.text.get(..size(range.start)).unwrap_or_default().chars().rev();
    let mut after = index.text.get(size(range.end)..).unwrap_or_default().chars();
    let joined =
        |near: Option<char>, far: Option<char>| is_joint(near) && far.is_some_and(char::is_alphanumeric);
    joined(before.next(), before.next()) || joined(after.next(), after.next())
}

fn of_bool(index: &Index<'_>, value: bool) -> Vec<Place> {
    let words: &[&str] =
        if value { &["true", "yes", "y", "ja", "oui", "si"] } else { &["false", "no", "n", "nein", "non"] };
    let found = words.iter().flat_map(|word| {
        let exact = matches!(*word, "true" | "false");
        of_words(index, word, &words_of(word)).into_iter().map(move |place| Place {
            status: if exact { place.status } else { Status::Normalised },
            quality: if exact { 0.9 } else { 0.7 },
            needs_label: true,
            ..place
        })
    });
    found.collect()
}

/// Returns a key that is the same for leaves with the same places.
pub(crate) fn key(leaf: &Value) -> String {
    match leaf {
        Value::String(text) => format!("s{text}"),
        Value::Number(number) => {
            Decimal::of(number).map_or_else(|| number.to_string(), |value| format!("{value:?}"))
        }
        other => plain(&other.to_string()),
    }
}
