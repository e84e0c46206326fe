//! Times of day, and the notations of times in texts.

use crate::date::words_of;
use crate::index::Index;
use crate::numeral::Range;

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
        let minute = match words.next_if(|_| gap == ":") {
            Some((word, gap)) => {
                let minute = number(word, 59).filter(|_| word.len() == 2)?;
                let second = words
                    .next_if(|_| gap == ":")
                    .map_or(Some((0, "")), |(word, gap)| Some((number(word, 60)?, gap)));
                let (second, gap) = second?;
                words.next_if(|(word, _)| gap == "." && word.bytes().all(|c| c.is_ascii_digit()));
                (minute, second)
            }
            None => (0, 0),
        };
        let half = words.next_if(|(word, _)| matches!(*word, "am" | "pm"));
        let hour = match half {
            Some(("pm", _)) if hour < 12 => hour + 12,
            Some(("am", _)) if hour == 12 => 0,
            None if gap != ":" => return None,
            _ => hour,
        };
        let has_zone = text.ends_with(['Z', 'z']) || words.peek().is_some();
        let is_zone = |(word, _): (&str, &str)| ZONES.contains(&word) || number(word, 59).is_some();
        words.all(is_zone).then_some(Self { hour, minute: minute.0, second: minute.1, has_zone })
    }

    /// Returns whether it is midnight, which stands for no time at all beside a date.
    pub(crate) const fn is_midnight(self) -> bool {
        self.hour % 24 == 0 && self.minute == 0 && self.second == 0
    }
}

impl Index<'_> {
    /// Returns the places of a time: with the hour of the day or of its half, and with minutes unless it is a whole hour.
    pub(crate) fn times(&self, time: Time) -> Vec<Range> {
        let hours = if time.has_zone { 0..24 } else { time.hour..time.hour + 1 };
        let mut places: Vec<Range> = hours
            .flat_map(|hour| {
                let half = if hour % 12 == 0 { 12 } else { hour % 12 };
                let mut words =
                    vec![format!("{hour:02}"), hour.to_string(), format!("{half:02}"), half.to_string()];
                words.sort_unstable();
                words.dedup();
                words.into_iter().flat_map(move |word| {
                    let all: Vec<Range> = self
                        .occurrences(&word)
                        .filter_map(|token| self.time_at(token, &word, hour, time))
                        .collect();
                    all
                })
            })
            .collect();
        places.sort_unstable_by_key(|place| place.start);
        places.dedup();
        places
    }

    /// Returns the place of a time whose hour is a token, which has this word.
    fn time_at(&self, token: usize, word: &str, hour: u32, time: Time) -> Option<Range> {
        let is = |at: usize, number: u32| self.word(at) == format!("{number:02}");
        let is_number =
            |at: usize| self.word(at).len() == 2 && self.word(at).bytes().all(|c| c.is_ascii_digit());
        let joins = |at: usize| matches!(self.gap(at), ":" | ".");
        let mut last = token;
        if joins(last) && is(last + 1, time.minute) {
            last += 1;
            if self.gap(last) == ":" && is_number(last + 1) {
                last += 1;
                if !is(last, time.second) {
                    return None;
                }
            } else if time.second > 0 {
                return None;
            }
        } else if time.minute > 0 || time.second > 0 || joins(last) && is_number(last + 1) {
            return None;
        }
        let has_minutes = last > token;
        let next = self.word(last + 1);
        let half = Some(next).filter(|_| self.gap(last).trim().is_empty());
        let half = match (half, self.gap(last + 1), self.word(last + 2)) {
            (Some("am"), ..) | (Some("a"), ".", "m") => Some(false),
            (Some("pm"), ..) | (Some("p"), ".", "m") => Some(true),
            _ => None,
        };
        let written: u32 = word.parse().ok()?;
        let is_hour = match half {
            Some(is_late) => {
                written == (if hour % 12 == 0 { 12 } else { hour % 12 }) && is_late == (hour >= 12)
            }
            None => written == hour,
        };
        let is_named = has_minutes || half.is_some() || matches!(next, "uhr" | "h" | "o");
        let is_own =
            hour == time.hour || ZONES.contains(&next) || self.gap(last).trim_start().starts_with(['+', '-']);
        (self.word(token) == word && is_hour && is_named && is_own).then(|| self.range(token, last)).flatten()
    }
}
