//! Times of day, and the notations of times in texts.

use std::collections::BTreeSet;

use crate::date::words_of;
use crate::index::Index;
use crate::numeral::Range;
use crate::text::size;

/// The maximum number of words between a date and its time.
const MAX_APART: usize = 60;

/// A time of day: hour, minute and second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time {
    hour: u32,
    minute: u32,
    second: u32,
    /// Whether it names a time zone, so that a text may state it in another one.
    has_zone: bool,
}

/// The names of time zones after a time. In another zone, the same time has another hour.
const ZONES: [&str; 18] = [
    "utc", "gmt", "z", "cet", "cest", "eet", "eest", "bst", "ist", "jst", "est", "edt", "cst", "cdt", "mst",
    "mdt", "pst", "pdt",
];

impl Time {
    /// Reads a time such as `14:30`, `T14:30:00.000Z` or `2:30 pm`; `None` for another text, and for one with more than a time.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let words = words_of(text);
        let mut words = words.iter().map(|(word, gap, _)| (word.as_str(), *gap)).peekable();
        words.next_if(|(word, _)| *word == "t");
        let number =
            |word: &str, max: u32| word.parse().ok().filter(|number| word.len() <= 2 && *number <= max);
        let (word, gap) = words.next()?;
        let hour = number(word, 24)?;
        let (mut minute, mut second) = (0, 0);
        if let Some((word, gap)) = words.next_if(|_| gap == ":") {
            minute = number(word, 59).filter(|_| word.len() == 2)?;
            if let Some((word, gap)) = words.next_if(|_| gap == ":") {
                second = number(word, 60)?;
                // A part of a second is no part of other notations.
                words.next_if(|(word, _)| gap == "." && word.bytes().all(|c| c.is_ascii_digit()));
            }
        }
        let half = words.next_if(|(word, _)| matches!(*word, "am" | "pm"));
        let hour = match half {
            Some(("pm", _)) if hour < 12 => hour + 12,
            Some(("am", _)) if hour == 12 => 0,
            None if gap != ":" => return None,
            _ => hour,
        };
        let has_zone = text.ends_with(['Z', 'z']) || words.peek().is_some();
        let is_zone = |(word, _): (&str, &str)| ZONES.contains(&word) || number(word, 59).is_some();
        words.all(is_zone).then_some(Self { hour, minute, second, has_zone })
    }

    /// Returns whether it is midnight, which stands for no time at all beside a date.
    pub(crate) const fn is_midnight(self) -> bool {
        matches!(self.hour, 0 | 24) && self.minute == 0 && self.second == 0
    }
}

impl Index<'_> {
    /// Returns the places of a time.
    pub(crate) fn times(&self, time: Time) -> Vec<Range> {
        let half = (time.hour + 11) % 12 + 1;
        let words = [time.hour, half].into_iter().flat_map(|hour| [hour.to_string(), format!("{hour:02}")]);
        let words: BTreeSet<String> = words.collect();
        let tokens = words.iter().flat_map(|word| self.occurrences(word));
        let mut places: Vec<Range> = tokens.filter_map(|token| self.time_at(token, time)).collect();
        places.sort_unstable_by_key(|place| place.start);
        places
    }

    /// Returns whether a time stands beside a place: in its line or in one beside it, and not far from it.
    pub(crate) fn has_time(&self, place: Range, time: Time) -> bool {
        let line = |token: usize| self.tokens.get(token).map(|token| token.line);
        let (first, last) = (size(place.first), size(place.last));
        let is_near = |token: &usize| {
            line(*token).zip(line(first)).is_some_and(|(token, place)| token.abs_diff(place) <= 1)
        };
        let before = (first.saturating_sub(MAX_APART)..first).rev().take_while(is_near);
        let after = (last + 1..last + 1 + MAX_APART).take_while(is_near);
        before.chain(after).any(|token| self.time_at(token, time).is_some())
    }

    /// Returns the place of a time whose hour is a token: of the day or of its half, and with minutes unless it is a whole hour.
    fn time_at(&self, token: usize, time: Time) -> Option<Range> {
        let number = |at: usize| {
            let word = self.word(at);
            word.parse::<u32>().ok().filter(|_| word.len() <= 2)
        };
        let follows =
            |at: usize, marks: &[&str]| marks.contains(&self.gap(at)).then(|| number(at + 1)).flatten();
        let is_within = token
            .checked_sub(1)
            .is_some_and(|before| follows(before, &[":", "."]).is_some() && number(before).is_some());
        let (written, mut last) = (number(token).filter(|hour| *hour <= 24 && !is_within)?, token);
        let (mut minute, mut second) = (0, 0);
        if let Some(found) = follows(last, &[":", "."]) {
            (minute, last) = (found, last + 1);
            if let Some(found) = follows(last, &[":"]) {
                (second, last) = (found, last + 1);
            }
        }
        let next = self.word(last + 1);
        let is_late = match (self.gap(last).trim(), next, self.gap(last + 1), self.word(last + 2)) {
            ("", "am", ..) | ("", "a", ".", "m") => Some(false),
            ("", "pm", ..) | ("", "p", ".", "m") => Some(true),
            _ => None,
        };
        let hour = match is_late {
            Some(is_late) => {
                Some(written % 12 + if is_late { 12 } else { 0 }).filter(|_| (1..=12).contains(&written))?
            }
            None => written,
        };
        let is_named = last > token || is_late.is_some() || matches!(next, "uhr" | "h" | "o");
        let is_shifted = || ZONES.contains(&next) || self.gap(last).trim_start().starts_with(['+', '-']);
        let is_own = hour == time.hour || time.has_zone && is_shifted();
        let is_it = is_named && is_own && (minute, second) == (time.minute, time.second);
        is_it.then(|| self.range(token, last)).flatten()
    }
}
