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
    /// The number of words that belong to no other date: without those of the second date of a range.
    pub(crate) own: usize,
}

impl Found {
    fn of(dates: impl IntoIterator<Item = Date>, words: usize) -> Self {
        let mut dates: Vec<Date> = dates.into_iter().collect();
        dates.dedup();
        if dates.is_empty() { Self::default() } else { Self { dates, words, own: words } }
    }
}

/// Returns the dates that a text may begin with, and the text after them; none if it does not begin with a date.
pub(crate) fn dates(text: &str) -> (Vec<Date>, &str) {
    dates_in(text, &words_of(text))
}

/// Returns the [`dates`] of a text with these [words](words_of).
pub(crate) fn dates_in<'t>(text: &'t str, words: &[(String, &str, usize)]) -> (Vec<Date>, &'t str) {
    let found = single(&|index| words.get(index).map(|(word, gap, _)| (word.as_str(), *gap)));
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
/// one. Numeric dates with slashes or hyphens may have two readings. The first date of a range has the month and the year of the second,
/// or the year before if it would follow the second.
pub(crate) fn at<'t>(word: impl Fn(usize) -> Option<(&'t str, &'t str)>) -> Found {
    let found = single(&word);
    let number = |index: usize| word(index)?.0.parse::<u8>().ok();
    let gap = |index: usize| word(index).map_or("", |(_, gap)| gap);
    let pair = number(0).zip(number(1)).filter(|_| gap(0) == "/" || gap(0) == "." && gap(1).starts_with('.'));
    // May 3; 3, 3., 3rd; 3.5., 3/5 and 5/3; May
    let (firsts, words) = match (found.dates.as_slice(), number(0), pair) {
        ([first @ Date(0, ..)], ..) => (vec![*first], found.words),
        ([], _, Some((one, other))) => (in_year(0, one.into(), other.into(), gap(0)), 2),
        ([], Some(day @ 1..=31), None) => (vec![Date(0, 0, day)], 1),
        ([], None, _) => {
            let month = word(0).and_then(|(word, _)| u8::try_from(month(word)?).ok());
            (month.map(|month| Date(0, month, 0)).into_iter().collect(), 1)
        }
        _ => return found,
    };
    let is_day = firsts.iter().all(|first| first.1 == 0);
    let words = words + usize::from(is_day && word(words).is_some_and(|(word, _)| is_ordinal(word)));
    let is_mark =
        matches!(gap(words - 1).trim_start_matches('.'), "-" | "\u{2013}" | " - " | " \u{2013} " | "/");
    let is_word = matches!(gap(words - 1), " " | ". ")
        && word(words)
            .is_some_and(|(word, gap)| gap == " " && (UNTIL.contains(&word) || AND.contains(&word)));
    if !is_mark && !is_word {
        return found;
    }
    let after = words + usize::from(is_word);
    let is_named = firsts.len() == 1 && !is_day && pair.is_none();
    let last = single(&|index| word(after + index));
    // May 3-5, 2024
    if let ([Date(_, month, first)], true, [], Some(day @ 1..=31)) =
        (firsts.as_slice(), is_named, last.dates.as_slice(), number(after))
    {
        let year = word(after + 1).filter(|_| *first > 0 && matches!(gap(after).trim(), "" | "," | "."));
        let year = year.and_then(|(year, _)| year.parse().ok()).filter(|year| (1000..3000).contains(year));
        let both = |year| Found::of([Date(year, *month, *first), Date(year, *month, day)], after + 2);
        return year.map_or(found, both);
    }
    let is_numeric =
        (0..last.words).all(|index| word(after + index).is_some_and(|(word, _)| is_number(word)));
    let is_list = is_word && word(words).is_some_and(|(word, _)| AND.contains(&word));
    // The first dates of the year of the second one, or of the year before.
    let own = |years: u16| {
        let own = firsts.iter().flat_map(|first| last.dates.iter().map(move |last| (*first, *last)));
        let own = own.filter_map(|(first, last)| {
            // `12 - 3 May 2024`, `12 - 2024-05-30` and `7 to 3/31/2024` are a number and a date.
            let is_part = first.1 > 0 && (first.2 > 0 || last.2 == 0)
                || first.2 < last.2 && number(after).is_some() && (!is_numeric || gap(0).starts_with('.'));
            let month = if first.1 > 0 { first.1 } else { last.1 };
            let is_of_year = is_list || ((month, first.2) > (last.1, last.2)) == (years > 0);
            let year = last.0.checked_sub(years).filter(|_| is_part && is_of_year && last.0 > 0)?;
            Date::new(year.into(), month.into(), first.2.into())
        });
        Found { own: words, ..Found::of(own, after + last.words) }
    };
    [own(0), own(1), found].into_iter().find(|it| !it.dates.is_empty()).unwrap_or_default()
}

/// Returns the dates that two numbers with a mark between may be in a year: with a point, the day stands first.
fn in_year(year: u32, one: u32, other: u32, mark: &str) -> Vec<Date> {
    let month_first = Date::new(year, one, other).filter(|_| !mark.starts_with('.'));
    let dates = month_first.into_iter().chain(Date::new(year, other, one));
    dates.filter(|date| date.2 > 0).collect()
}

fn is_number(word: &str) -> bool {
    word.chars().all(|c| text::digit(c).is_some())
}

/// Finds a date without a year at the beginning of a line of a list or a statement, in digits: `05.03.`, `03/05`.
pub(crate) fn without_year<'t>(word: impl Fn(usize) -> Option<(&'t str, &'t str)>) -> Found {
    let number = |index: usize| word(index).filter(|(word, _)| word.len() == 2)?.0.parse().ok();
    let gap = |index: usize| word(index).map_or("", |(_, gap)| gap);
    let after = if gap(0) == "." { gap(1).strip_prefix('.') } else { Some(gap(1)) };
    let is_date =
        matches!(gap(0), "/" | ".") && after.is_some_and(|gap| gap.starts_with(char::is_whitespace));
    let (Some(one), Some(other), true) = (number(0), number(1), is_date) else { return Found::default() };
    Found::of(in_year(0, one, other, gap(0)), 2)
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
    let is_ordinal =
        |index: usize| raw_gap(index).is_empty() && word(index + 1).is_some_and(|(word, _)| is_ordinal(word));
    let is_one_of = |index: usize, words: &[&str]| word(index).is_some_and(|(word, _)| words.contains(&word));
    let is_year = |index: usize| length(index) == 4 && number(index).is_some_and(|year| year >= 1000);
    // A year of two digits belongs to the years from 1969 to 2068, as in POSIX.
    let year = |index: usize| match (number(index)?, length(index)) {
        (year, 4) if year >= 1000 => Some(year),
        (year @ 0..=68, 2) => Some(2000 + year),
        (year, 2) => Some(1900 + year),
        _ => None,
    };
    let Some(first) = number(0) else {
        let Some(month) = named(0) else { return Found::default() };
        // March 5th, 2024; March the 5th, 2024; March 2024; March 5
        let close = |index: usize| matches!(gap(index), "" | "." | "," | ".,");
        if !close(0) {
            return Found::default();
        }
        if is_year(1) {
            return Found::of(Date::new(number(1).unwrap_or_default(), month, 0), 2);
        }
        let at = 1 + usize::from(is_one_of(1, &["the"]));
        let Some(day @ 1..=31) = number(at).filter(|_| length(at) <= 2) else { return Found::default() };
        let at = at + 1 + usize::from(is_ordinal(at));
        return match year(at).filter(|_| is_year(at) && close(at - 1)) {
            Some(year) => Found::of(Date::new(year, month, day), at + 1),
            None => Found::of(Date::new(0, month, day), at),
        };
    };
    if length(0) == 8 {
        return Found::of(Date::new(first / 10_000, first / 100 % 100, first % 100), 1);
    }
    // The separator of the parts of a numeric date: the same one, without the ends of lines and cells; a point may have a space behind it, and a
    // date may go on in the next line after its mark.
    let separator = |index: usize| match raw_gap(index) {
        ". " => ".",
        gap @ (" " | " - " | " / ") => gap,
        gap => match gap.split_once('\n').map_or(gap, |(mark, _)| mark.trim_end_matches('\r')) {
            mark @ ("-" | "/" | "." | "\u{2010}" | "\u{2011}" | "\u{2013}") => mark,
            _ => "",
        },
    };
    let is_tight = || matches!(raw_gap(0), "-" | "/" | "." | "\u{2010}" | "\u{2011}");
    let is_same = || separator(1) == separator(0);
    if is_year(0) {
        // 2024年3月5日; folded Hangul is decomposed
        if is_one_of(1, &["年", "\u{1102}\u{1167}\u{11ab}"]) {
            let Some(month) = number(2) else { return Found::default() };
            let day = number(4).filter(|_| is_one_of(5, &["日", "\u{110b}\u{1175}\u{11af}"]));
            let words = if day.is_some() { 6 } else { 4 };
            return Found::of(Date::new(first, month, day.unwrap_or_default()), words);
        }
        let month = number(1).filter(|_| length(1) <= 2).or_else(|| named(1).filter(|_| is_tight()));
        let Some(month) = month.filter(|_| !separator(0).is_empty()) else { return Found::default() };
        // `2024 01 05` has two digits of each part.
        let is_long = |index: usize| length(index) == 2 || separator(0) != " ";
        return match number(2).filter(|_| is_same()) {
            Some(day) if length(2) <= 2 && is_long(1) && is_long(2) => {
                Found::of(Date::new(first, month, day), 3)
            }
            None if is_tight() => Found::of(Date::new(first, month, 0), 2),
            // `2024-11-4567` is no month.
            _ => Found::default(),
        };
    }
    if length(0) > 2 {
        return Found::default();
    }
    // 5 March 2024, 5. März 2024, 5th of March, 5th day of March, 5-Mar-24, 5 Mar '24
    let ordinal = usize::from(is_ordinal(0));
    let day = usize::from(ordinal > 0 && is_one_of(2, &["day"]));
    let of = usize::from(is_one_of(1 + ordinal + day, &["of", "de", "di"]));
    let at = 1 + ordinal + day + of;
    let is_near = (0..at).all(|index| matches!(gap(index), "" | "." | "-" | "/"));
    if let Some(month) = named(at).filter(|_| is_near) {
        let after = at + 1 + usize::from(is_one_of(at + 1, &["de", "del"]));
        let is_short = matches!(gap(at), "-" | "/" | "'" | "\u{2019}");
        let follows = is_short || matches!(gap(at), "" | "." | ",");
        let year = year(after).filter(|_| follows && (is_year(after) || is_short));
        return match year {
            Some(year) => Found::of(Date::new(year, month, first), after + 1),
            None => Found::of(Date::new(0, month, first), at + 1),
        };
    }
    // 05.03.2024, 05/03/2024, 3/2024
    if is_year(1) && is_tight() {
        let is_longer = raw_gap(1) == raw_gap(0) && number(2).is_some();
        return Found::of(Date::new(number(1).unwrap_or_default(), first, 0).filter(|_| !is_longer), 2);
    }
    let second = number(1).filter(|_| length(1) <= 2 && !matches!(separator(0), "" | " "));
    // The item `7. 05.03.2024` of a list has its date behind the number.
    let is_item = length(2) == 2 && separator(2) == separator(1) && number(3).is_some();
    match second.zip(year(2).filter(|_| is_same() && !is_item)) {
        Some((second, year)) => Found::of(in_year(year, first, second, separator(0)), 3),
        None => Found::default(),
    }
}

/// Words between the dates of a range, and words between two dates of a year.
const UNTIL: [&str; 8] = ["to", "until", "till", "through", "bis", "au", "al", "tot"];
const AND: [&str; 6] = ["and", "und", "et", "y", "e", "en"];

/// Words before the day of a date in running text.
pub(crate) const BEFORE_DAY: [&str; 32] = [
    "on", "by", "from", "until", "till", "since", "before", "after", "of", "to", "the", "dated", "am", "vom",
    "bis", "zum", "ab", "seit", "den", "le", "du", "au", "el", "del", "al", "il", "dal", "op", "van", "tot",
    "em", "de",
];

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
pub(crate) fn month(word: &str) -> Option<u32> {
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
