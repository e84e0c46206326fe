//! Dates, and the notations of dates in texts.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::quality::FixedState;

use crate::text;

/// A date: year, month, day. A year or a day of 0 is not stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Date(pub(crate) u16, pub(crate) u8, pub(crate) u8);

impl Date {
    fn new(year: u32, month: u32, day: u32) -> Option<Self> {
        const DAYS: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

        let last = DAYS.get(usize::try_from(month).ok()?.checked_sub(1)?)?;
        let valid = (year == 0 || (1000..=2999).contains(&year)) && day <= *last && (year, day) != (0, 0);
        valid.then_some(Self(u16::try_from(year).ok()?, u8::try_from(month).ok()?, u8::try_from(day).ok()?))
    }

    /// Returns the date so many days before; `None` for a date without a year or a day.
    pub(crate) fn before(self, days: i32) -> Option<Self> {
        if days == 0 {
            return Some(self);
        }
        let date = time::Date::from_calendar_date(self.0.into(), self.1.try_into().ok()?, self.2).ok()?;
        let date = date.checked_sub(time::Duration::days(days.into()))?;
        Self::new(u32::try_from(date.year()).ok()?, u8::from(date.month()).into(), date.day().into())
    }
}

/// A date in a sequence of words: the possible dates, and the number of words.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) dates: Vec<Date>,
    pub(crate) words: usize,
}

/// Returns the dates that a whole text may be, with the text after them; none if it does not begin with a date.
pub(crate) fn dates(text: &str) -> (Vec<Date>, &str) {
    dates_in(text, &words_of(text))
}

/// Returns the [`dates`] of a text with these [words](words_of).
pub(crate) fn dates_in<'t>(text: &'t str, words: &[(String, &str, usize)]) -> (Vec<Date>, &'t str) {
    let found = at(|index| words.get(index).map(|(word, gap, _)| (word.as_str(), *gap)));
    let end = found.words.checked_sub(1).and_then(|last| words.get(last)).map_or(0, |word| word.2);
    (found.dates, text.get(end..).unwrap_or_default())
}

/// Returns the words of a text, each with the text up to the next word, and its end.
pub(crate) fn words_of(text: &str) -> Vec<(String, &str, usize)> {
    let (mut ranges, mut before): (Vec<(usize, usize)>, Option<Kind>) = (Vec::new(), None);
    for (start, end) in text::clusters(text, 0) {
        let kind = text.get(start..).and_then(|rest| rest.chars().next()).and_then(Kind::of);
        match (kind, ranges.last_mut()) {
            (Some(kind), Some(last)) if before == Some(kind) && kind != Kind::Single => last.1 = end,
            (Some(_), _) => ranges.push((start, end)),
            (None, _) => {}
        }
        before = kind;
    }
    let next = ranges.iter().skip(1).map(|range| range.0).chain([text.len()]);
    let words = ranges.iter().zip(next).map(|((start, end), next)| {
        let mut word = String::new();
        text::fold_into(text.get(*start..*end).unwrap_or_default(), &mut word);
        (word, text.get(*end..next).unwrap_or_default(), *end)
    });
    words.collect()
}

/// The kind of a token by its first character: characters of one kind form a token, except single ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Letters of a script that separates words by spaces.
    Word,
    /// Digits.
    Digits,
    /// A character of a script without spaces, or a symbol.
    Single,
}

impl Kind {
    pub(crate) fn of(c: char) -> Option<Self> {
        match c {
            _ if text::is_ignored(c) => None,
            _ if text::digit(c).is_some() => Some(Self::Digits),
            _ if text::is_unspaced(c) || !(c.is_alphanumeric() || text::is_mark(c)) => Some(Self::Single),
            _ => Some(Self::Word),
        }
    }
}

/// Finds a date at the beginning of a sequence of words. `word` returns a folded word by its index, with the text up to the next
/// one. Numeric dates with slashes or hyphens may have two readings. The first date of a range has the month and the year of the second.
pub(crate) fn at<'t>(word: impl Fn(usize) -> Option<(&'t str, &'t str)>) -> Found {
    let found = single(&word);
    let number = |index: usize| word(index)?.0.parse::<u8>().ok();
    // 3, 3., 3rd; May 3
    let (first, words) = match (found.dates.as_slice(), number(0)) {
        ([first @ Date(0, ..)], _) => (*first, found.words),
        ([], Some(day @ 1..=31)) => (Date(0, 0, day), 1),
        _ => return found,
    };
    let words = words + usize::from(word(words).is_some_and(|(word, _)| is_ordinal(word)) && first.1 == 0);
    let gap = |index: usize| word(index).map_or("", |(_, gap)| gap);
    let is_mark =
        matches!(gap(words - 1).trim_start_matches('.'), "-" | "\u{2013}" | " - " | " \u{2013} " | "/");
    let is_word = matches!(gap(words - 1), " " | ". ")
        && word(words).is_some_and(|(word, gap)| is_until(word) && gap == " ");
    if !is_mark && !is_word {
        return found;
    }
    let after = words + usize::from(is_word);
    let last = match (single(&|index| word(after + index)), number(after)) {
        // May 3-5, 2024
        (Found { dates, .. }, Some(day @ 1..=31)) if dates.is_empty() && first.1 > 0 => {
            let year = word(after + 1).filter(|_| matches!(gap(after).trim(), "" | "," | "."));
            let year =
                year.and_then(|(year, _)| year.parse().ok()).filter(|year| (1000..3000).contains(year));
            let last = year.map(|year| Date(year, first.1, day));
            Found { dates: last.into_iter().collect(), words: 2 }
        }
        (found, _) => found,
    };
    let [Date(year, month, day)] = last.dates.as_slice() else { return found };
    // `12 - 3 May 2024` and `12 - 2024-05-30` are a number and a date.
    if first.1 == 0 && (first.2 >= *day || number(after).is_none()) {
        return found;
    }
    let month = if first.1 > 0 { first.1 } else { *month };
    let own = Date::new((*year).into(), month.into(), first.2.into());
    let is_split = last.words == 2 && first.1 > 0 && number(after).is_some();
    let dates: Vec<Date> = own.into_iter().chain(last.dates.iter().copied().filter(|_| is_split)).collect();
    if dates.is_empty() { found } else { Found { dates, words: after + last.words } }
}

/// Finds one date at the beginning of a sequence of words.
fn single<'t>(word: &dyn Fn(usize) -> Option<(&'t str, &'t str)>) -> Found {
    let number = |index: usize| {
        let (word, _) = word(index)?;
        let mut digits = word.chars().enumerate();
        digits.try_fold(0, |number, (at, c)| (at < 8).then_some(number * 10 + text::digit(c)?))
    };
    let length = |index: usize| word(index).map_or(0, |(word, _)| word.chars().count());
    let gap = |index: usize| word(index).map_or("", |(_, gap)| gap.trim());
    let raw_gap = |index: usize| word(index).map_or("", |(_, gap)| gap);
    let named = |index: usize| word(index).and_then(|(word, _)| month(word));
    let is_year = |index: usize| length(index) == 4 && number(index).is_some_and(|year| year >= 1000);
    // A year of two digits belongs to the years from 1969 to 2068, as in POSIX.
    let year = |index: usize| match (number(index)?, length(index)) {
        (year, 4) if year >= 1000 => Some(year),
        (year @ 0..=68, 2) => Some(2000 + year),
        (year, 2) => Some(1900 + year),
        _ => None,
    };
    let one = |date: Option<Date>, words| {
        date.map_or_else(Found::default, |date| Found { dates: vec![date], words })
    };
    let Some(first) = number(0) else {
        let Some(month) = named(0) else { return Found::default() };
        // March 5th, 2024; March 2024; March 5
        let close = |index: usize| matches!(gap(index), "" | "." | "," | ".,");
        if !close(0) {
            return Found::default();
        }
        if is_year(1) {
            return one(Date::new(number(1).unwrap_or_default(), month, 0), 2);
        }
        let Some(day @ 1..=31) = number(1).filter(|_| length(1) <= 2) else { return Found::default() };
        let at =
            if word(2).is_some_and(|(word, _)| is_ordinal(word)) && raw_gap(1).is_empty() { 3 } else { 2 };
        return match year(at).filter(|_| is_year(at) && close(at - 1)) {
            Some(year) => one(Date::new(year, month, day), at + 1),
            None => one(Date::new(0, month, day), at),
        };
    };
    if length(0) == 8 {
        return one(Date::new(first / 10_000, first / 100 % 100, first % 100), 1);
    }
    let is_mark = |text: &str| matches!(text, "-" | "/" | "." | "\u{2010}" | "\u{2011}" | "\u{2013}");
    if is_year(0) {
        // 2024年3月5日; folded Hangul is decomposed
        if word(1).is_some_and(|(word, _)| matches!(word, "年" | "\u{1102}\u{1167}\u{11ab}")) {
            let Some(month) = number(2) else { return Found::default() };
            let day = number(4).filter(|_| {
                word(5).is_some_and(|(word, _)| matches!(word, "日" | "\u{110b}\u{1175}\u{11af}"))
            });
            return one(Date::new(first, month, day.unwrap_or_default()), if day.is_some() { 6 } else { 4 });
        }
        if !is_mark(gap(0)) {
            return Found::default();
        }
        let Some(month) = number(1).filter(|_| length(1) <= 2).or_else(|| named(1)) else {
            return Found::default();
        };
        return match number(2).filter(|_| length(2) <= 2 && gap(1) == gap(0)) {
            Some(day) => one(Date::new(first, month, day), 3),
            None => one(Date::new(first, month, 0), 2),
        };
    }
    if length(0) > 2 {
        return Found::default();
    }
    // 5 March 2024, 5. März 2024, 5th of March, 5-Mar-24
    let ordinal = usize::from(word(1).is_some_and(|(word, _)| is_ordinal(word)) && raw_gap(0).is_empty());
    let of = usize::from(word(1 + ordinal).is_some_and(|(word, _)| matches!(word, "of" | "de" | "di")));
    let at = 1 + ordinal + of;
    let is_near = (0..at).all(|index| matches!(gap(index), "" | "." | "-" | "/"));
    if let Some(month) = named(at).filter(|_| is_near) {
        let of = usize::from(word(at + 1).is_some_and(|(word, _)| matches!(word, "de" | "del")));
        let after = at + 1 + of;
        let follows = matches!(gap(at), "" | "." | "," | "-" | "/");
        let year = year(after).filter(|_| follows && (is_year(after) || matches!(gap(at), "-" | "/")));
        return match year {
            Some(year) => one(Date::new(year, month, first), after + 1),
            None => one(Date::new(0, month, first), at + 1),
        };
    }
    // 05.03.2024, 05/03/2024, 3/2024
    if !is_mark(gap(0)) {
        return Found::default();
    }
    if is_year(1) {
        return one(Date::new(number(1).unwrap_or_default(), first, 0), 2);
    }
    let (Some(second), Some(year)) =
        (number(1).filter(|_| length(1) <= 2), year(2).filter(|_| gap(1) == gap(0)))
    else {
        return Found::default();
    };
    let day_first = Date::new(year, second, first);
    let month_first = Date::new(year, first, second).filter(|_| gap(0) != ".");
    let mut dates: Vec<Date> = month_first.into_iter().chain(day_first).collect();
    dates.dedup();
    Found { words: if dates.is_empty() { 0 } else { 3 }, dates }
}

/// Returns whether a word stands between the dates of a range, or between two dates of a month.
fn is_until(word: &str) -> bool {
    matches!(
        word,
        "to" | "and"
            | "until"
            | "till"
            | "through"
            | "bis"
            | "und"
            | "au"
            | "et"
            | "al"
            | "y"
            | "e"
            | "tot"
            | "en"
    )
}

/// Returns whether a word stands before the day of a date in running text.
pub(crate) fn is_before_day(word: &str) -> bool {
    matches!(
        word,
        "on" | "by"
            | "from"
            | "until"
            | "till"
            | "since"
            | "before"
            | "after"
            | "of"
            | "to"
            | "the"
            | "dated"
            | "am"
            | "vom"
            | "bis"
            | "zum"
            | "ab"
            | "seit"
            | "den"
            | "le"
            | "du"
            | "au"
            | "el"
            | "del"
            | "al"
            | "il"
            | "dal"
            | "op"
            | "van"
            | "tot"
            | "em"
            | "de"
    )
}

fn is_ordinal(word: &str) -> bool {
    matches!(word, "st" | "nd" | "rd" | "th" | "er" | "º" | "o" | "a")
}

/// The names of the months in six languages, without accents; the first three letters and the abbreviations of English are
/// listed once.
const MONTHS: [&str; 12] = [
    "jan january januar jänner janvier enero ene gennaio gen januari janeiro",
    "feb february februar fevrier fev febrero febbraio februari fevereiro fev",
    "mar march marz mrz mars marzo maart mrt marco",
    "apr april avril avr abril abr aprile",
    "may mai mayo maggio mag mei maio",
    "jun june juni juin junio giugno giu junho",
    "jul july juli juillet juil julio luglio lug julho",
    "aug august aout agosto ago augustus",
    "sep sept september septembre septiembre settembre set setembro",
    "oct october oktober okt octobre octubre ottobre ott outubro out",
    "nov november novembre noviembre novembro",
    "dec december dezember dez decembre diciembre dic dicembre dezembro",
];

/// Returns the number of a month from its folded name.
fn month(word: &str) -> Option<u32> {
    if word.len() < 3 || word.len() > 24 {
        return None;
    }
    if word.is_ascii() {
        return NUMBERS.get(word).copied();
    }
    let plain: String = word.chars().filter(|c| !('\u{300}'..='\u{36f}').contains(c)).collect();
    NUMBERS.get(plain.as_str()).copied()
}

/// The number of each month by its names. Every word of an input is looked up.
static NUMBERS: LazyLock<HashMap<&str, u32, FixedState>> = LazyLock::new(|| {
    let mut numbers = HashMap::with_hasher(FixedState::with_seed(0));
    for (number, names) in (1..).zip(MONTHS) {
        names.split(' ').for_each(|name| _ = numbers.entry(name).or_insert(number));
    }
    numbers
});
