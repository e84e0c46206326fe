//! Times of day, and the notations of times in texts.

use std::collections::BTreeSet;

use crate::date::{Date, words_of};
use crate::index::Index;
use crate::numeral::Range;
use crate::text::{digit, size};

/// The maximum number of words between a date and its time.
const MAX_APART: usize = 60;

/// A time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time {
    /// Minutes since midnight.
    minutes: i32,
    second: i32,
    /// The part of a second, which evidence ignores.
    millis: i32,
    /// The zone in minutes, so that a text may state the same instant in another one; `None` if it is not stated.
    zone: Option<i32>,
}

/// Returns what a name of a time zone may stand for, in minutes.
fn named(zone: &str) -> &'static [i32] {
    match zone.to_ascii_lowercase().as_str() {
        "z" | "utc" | "gmt" | "wet" => &[0],
        "west" | "cet" | "mez" => &[60],
        "cest" | "mesz" | "eet" => &[120],
        "eest" | "msk" => &[180],
        "bst" => &[60, 360],
        "ist" => &[330, 60, 120],
        "sgt" | "hkt" => &[480],
        "jst" | "kst" => &[540],
        "est" | "cdt" => &[-300],
        "edt" => &[-240],
        "et" => &[-300, -240],
        "cst" => &[-360, 480],
        "mdt" => &[-360],
        "mst" | "pdt" => &[-420],
        "pst" => &[-480],
        "pt" => &[-480, -420],
        _ => &[],
    }
}

/// Returns the zones that a text begins with, in minutes, and the text after them; `None` if it begins with no zone. Words such as `ist`,
/// `est` and `et` are no zones: their names are in capitals.
fn zones(text: &str) -> Option<(Vec<i32>, &str)> {
    let is_near = !text.starts_with(char::is_whitespace);
    let text = text.trim_start();
    let (name, rest) = text.split_at(text.find(|c: char| !c.is_alphabetic()).unwrap_or(text.len()));
    let end = rest.find(|c| !matches!(c, '0'..='9' | ':' | '+' | '-')).unwrap_or(rest.len());
    let (shift, after) = rest.split_at(end);
    let is_name = match name {
        "Z" | "z" => is_near,
        _ => !name.contains(char::is_lowercase) || matches!(name, "utc" | "gmt"),
    };
    let known = if is_name { named(name) } else { &[] };
    match offset(shift) {
        // An offset may follow the name of the zone that it is an offset of.
        Some(shift) if name.is_empty() || known == [0] => Some((vec![shift], after)),
        _ => (!known.is_empty()).then(|| (known.to_vec(), rest)),
    }
}

/// Reads the offset of a time zone in minutes: `+02:00`, `+0200`, `+02` or `+2`; at most 14 hours.
fn offset(text: &str) -> Option<i32> {
    let digits = text.strip_prefix(['+', '-'])?;
    let (hours, minutes) = match digits.split_once(':') {
        None if digits.len() == 4 => digits.split_at(2),
        parts => parts.unwrap_or((digits, "00")),
    };
    let number = |text: &str, max: i32| {
        let is_number = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i32>().ok().filter(|number| is_number && *number <= max)
    };
    let offset = number(hours, 14)? * 60 + number(minutes, 59)?;
    Some(if text.starts_with('-') { -offset } else { offset })
}

/// Words between an hour and its minutes, words after minutes, and words for twelve o'clock, as the index has them: decomposed.
const HOURS: [&str; 6] = ["h", "uhr", "時", "点", "點", "\u{1109}\u{1175}"];
const MINUTES: [&str; 3] = ["min", "分", "\u{1107}\u{116e}\u{11ab}"];
const NOON: [&str; 6] = ["noon", "midday", "mittag", "mittags", "midi", "mediodi\u{301}a"];

impl Time {
    /// Reads a time such as `14:30`, `T14:30:00.000Z`, `T143000Z` or `2:30 pm`; `None` for another text, and for one with more than a time.
    pub(crate) fn of(text: &str) -> Option<Self> {
        text.chars().find_map(digit)?;
        let words = words_of(text);
        let mut words = words.iter().map(|(word, gap, end)| (word.as_str(), *gap, *end)).peekable();
        let mark = words.next_if(|(word, ..)| matches!(*word, "t" | "at"));
        let number =
            |word: &str, max: i32| word.parse().ok().filter(|number| word.len() <= 2 && *number <= max);
        let (word, mut gap, mut end) = words.next()?;
        // ISO 8601 has a notation without colons.
        let is_basic = matches!(mark, Some(("t", ..))) && matches!(word.len(), 4 | 6);
        let hour = number(if is_basic { word.get(..2)? } else { word }, 24)?;
        let (mut minute, mut second, mut millis) = (0, None, 0);
        let is_whole = gap != ":" && !is_basic;
        if is_basic {
            minute = number(word.get(2..4)?, 59)?;
            if word.len() == 6 {
                second = Some(number(word.get(4..)?, 60)?);
            }
        } else if let Some(next) = words.next_if(|_| gap == ":") {
            minute = number(next.0, 59).filter(|_| next.0.len() == 2)?;
            (_, gap, end) = next;
            if let Some(next) = words.next_if(|_| gap == ":") {
                second = Some(number(next.0, 60)?);
                (_, gap, end) = next;
            }
        }
        // A part of a second is no part of other notations.
        let has_part = second.is_some() && matches!(gap, "." | ",");
        if let Some(next) = words.next_if(|(word, ..)| has_part && word.bytes().all(|c| c.is_ascii_digit())) {
            millis = format!("{:0<3}", next.0).get(..3)?.parse().ok()?;
            end = next.2;
        }
        let half = words.next_if(|(word, ..)| matches!(*word, "am" | "pm"));
        let hour = match half {
            Some(("pm", ..)) if hour < 12 => hour + 12,
            Some(("am", ..)) if hour == 12 => 0,
            None if is_whole => return None,
            _ => hour,
        };
        let rest = text.get(half.map_or(end, |half| half.2)..).unwrap_or_default();
        let zone = match zones(rest) {
            Some((zones, "")) => zones.first().copied(),
            None if !rest.contains(char::is_alphanumeric) => None,
            _ => return None,
        };
        Some(Self { minutes: hour * 60 + minute, second: second.unwrap_or_default(), millis, zone })
    }

    /// Returns the time on a date, with its minute, second and millisecond: in UTC if `in_utc`, else as it is stated. `None` if the zone
    /// leads to another day and the date is incomplete.
    pub(crate) fn on(self, date: Date, in_utc: bool) -> Option<(Date, [i32; 3])> {
        let minutes = self.minutes - self.zone.filter(|_| in_utc).unwrap_or_default();
        let day = 24 * 60;
        Some((date.before(-minutes.div_euclid(day))?, [minutes.rem_euclid(day), self.second, self.millis]))
    }

    pub(crate) const fn has_zone(self) -> bool {
        self.zone.is_some()
    }

    /// Returns whether it is midnight, which stands for no time at all beside a date.
    pub(crate) const fn is_midnight(self) -> bool {
        self.minutes % (24 * 60) == 0 && self.second == 0
    }
}

impl Index<'_> {
    /// Returns the places of a time.
    pub(crate) fn times(&self, time: Time) -> Vec<Range> {
        let hour = time.minutes / 60;
        let words = [hour, (hour + 11) % 12 + 1]
            .into_iter()
            .flat_map(|hour| [hour.to_string(), format!("{hour:02}")]);
        let words: BTreeSet<String> = words.chain(NOON.map(str::to_owned)).collect();
        let tokens = words.iter().flat_map(|word| self.occurrences(word));
        let mut places: Vec<Range> = tokens.filter_map(|token| self.time_at(token, time, 0)).collect();
        places.sort_unstable_by_key(|place| place.start);
        places
    }

    /// Returns the place of a date with the time beside it, in its line or in one beside it, and not far from it; `None` if the time does not
    /// stand there. The time is one of so many days after that date, in its own zone. A time in another line is no part of the place.
    pub(crate) fn with_time(&self, place: Range, time: Time, days: i32) -> Option<Range> {
        let line = |token: usize| self.tokens.get(token).map(|token| token.line);
        let (first, last) = (size(place.first), size(place.last));
        let is_near = |token: &usize| {
            line(*token).zip(line(first)).is_some_and(|(token, place)| token.abs_diff(place) <= 1)
        };
        let before = (first.saturating_sub(MAX_APART)..first).rev().take_while(is_near);
        let after = (last + 1..last + 1 + MAX_APART).take_while(is_near);
        // The date is nearer to a time behind it.
        let at = after.chain(before).find_map(|token| self.time_at(token, time, days))?;
        let joined = self.range(first.min(size(at.first)), last.max(size(at.last)))?;
        Some(if line(size(joined.first)) == line(size(joined.last)) { joined } else { place })
    }

    /// Returns the place of a time whose hour is a token: of the day or of its half, and with minutes unless it is a whole hour; or noon.
    fn time_at(&self, token: usize, time: Time, days: i32) -> Option<Range> {
        let number = |at: usize| {
            let word = self.word(at);
            word.parse::<i32>().ok().filter(|_| word.len() <= 2)
        };
        let follows =
            |at: usize, marks: &[&str]| marks.contains(&self.gap(at)).then(|| number(at + 1)).flatten();
        let is_within = token
            .checked_sub(1)
            .is_some_and(|before| follows(before, &[":", "."]).is_some() && number(before).is_some());
        if NOON.contains(&self.word(token)) {
            let is_noon = (time.minutes, time.second, days) == (12 * 60, 0, 0);
            return is_noon.then(|| self.range(token, token)).flatten();
        }
        let (written, mut last) = (number(token).filter(|hour| *hour <= 24 && !is_within)?, token);
        let (mut minute, mut second, mut has_second) = (0, 0, false);
        let is_next = |last: usize, words: &[&str]| {
            words.contains(&self.word(last + 1)) && self.gap(last).trim().is_empty()
        };
        if let Some(found) = follows(last, &[":", "."]) {
            (minute, last) = (found, last + 1);
            if let Some(found) = follows(last, &[":"]) {
                (second, last, has_second) = (found, last + 1, true);
            }
        } else if is_next(last, &HOURS) {
            last += 1;
            if let Some(found) = follows(last, &["", " "]).filter(|_| self.word(last + 1).len() == 2) {
                (minute, last) = (found, last + 1);
                last += usize::from(is_next(last, &MINUTES));
            }
        }
        let next = self.word(last + 1);
        let before = |apart: usize| token.checked_sub(apart).map_or("", |token| self.word(token));
        // The half of the day stands behind the time, in so many words, or before it.
        let half = match (self.gap(last).trim(), next, self.gap(last + 1).trim(), self.word(last + 2)) {
            ("", "am", ..) => Some((false, 1)),
            ("", "pm", ..) => Some((true, 1)),
            ("", "a", ".", "m") => Some((false, 2)),
            ("", "p", ".", "m") => Some((true, 2)),
            _ => None,
        };
        let is_late = match half {
            Some((is_late, _)) => Some(is_late),
            None => match (before(2), before(1)) {
                ("午", "前") | ("上", "午") | ("\u{110b}\u{1169}", "\u{110c}\u{1165}\u{11ab}") => {
                    Some(false)
                }
                ("午", "後") | ("下", "午") | ("\u{110b}\u{1169}", "\u{1112}\u{116e}") => Some(true),
                _ => None,
            },
        };
        let hour = match is_late {
            Some(is_late) => {
                Some(written % 12 + if is_late { 12 } else { 0 }).filter(|_| (1..=12).contains(&written))?
            }
            None => written,
        };
        let is_named = last > token || is_late.is_some() || next == "o";
        let minutes = hour * 60 + minute;
        let is_part = has_second && self.gap(last) == "." && next.bytes().all(|c| c.is_ascii_digit());
        let end = last + half.map_or(usize::from(is_part), |(_, words)| words);
        let rest =
            self.range(token, end).and_then(|range| self.text.get(size(range.end)..)).unwrap_or_default();
        let rest = if half.is_some() { rest.trim_start_matches('.') } else { rest };
        // `9:00-10:00` is no zone, unless the notation is that of RFC 3339.
        let is_range = rest.starts_with('-') && !has_second && before(1) != "t";
        let stated = zones(rest).map(|(zones, _)| zones).zip(time.zone);
        let is_same = |(zones, zone): &(Vec<i32>, i32)| {
            zones.iter().any(|own| minutes - own == time.minutes + days * 24 * 60 - zone)
        };
        // `15:48-209` is no time with a zone.
        let is_longer = rest
            .strip_prefix(['-', '+'])
            .is_some_and(|rest| rest.bytes().take_while(u8::is_ascii_digit).count() > 2 && stated.is_none());
        let is_local = (stated.is_none() || is_range) && days == 0 && minutes == time.minutes;
        let is_it = is_named
            && !is_longer
            && time.second == second
            && (is_local || stated.as_ref().is_some_and(is_same));
        is_it.then(|| self.range(token, end)).flatten()
    }
}
