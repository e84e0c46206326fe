//! The values that stand in an input, for a decoder that writes values along them.

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::Value;

use crate::Index;
use crate::date::Date;
use crate::decimal::sign;
use crate::text::{is_ignored, is_mark, offset, size};

/// The number of bytes by which values are told apart. A longer value follows the first place that it fits.
const MAX_COMPARED: usize = 4096;

/// The byte between values that do not join: JSON never has it.
const BORDER: u8 = 0;

/// The maximum number of places that are compared for the shortest rest.
const MAX_RESTS: usize = 64;

/// The number of places of a value above which they are not listed.
const MAX_PLACES: usize = 64;

/// The values of one kind that stand in an input, in the bytes that JSON has for them: the words in any run, or the numbers, or the dates.
///
/// ```
/// use formwork_evidence::Index;
///
/// let numbers = Index::new("Total: 1,250.00 EUR").numbers();
/// let read = |text: &str| text.bytes().try_fold(numbers.begin()?, |prefix, byte| numbers.step(prefix, byte));
/// assert!(read("1250").is_some_and(|prefix| numbers.ends(prefix)));
/// assert!(read("125").is_some_and(|prefix| !numbers.ends(prefix)));
/// assert!(read("126").is_none());
/// ```
#[derive(Debug, Clone)]
pub struct Candidates {
    bytes: Vec<u8>,
    /// The offsets at which a value may begin, in the order of the bytes from there on.
    starts: Vec<u32>,
    /// Whether a value may end before each byte, and at the end of the bytes.
    ends: Vec<bool>,
    /// The number of letters, digits and symbols before each byte, and in all bytes.
    signs: Vec<u32>,
    /// The minimum number of letters, digits and symbols of a value.
    min_length: u32,
    /// The number of bytes before the values that were added one by one.
    run: usize,
}

/// The beginning of a value: the candidates that it fits, and its length in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    first: usize,
    last: usize,
    length: usize,
}

impl Index<'_> {
    /// Returns all runs of words of the input as the contents of JSON strings, with any white space as one space and with the punctuation
    /// beside the words, and each number and date of the input in the notation of JSON. A value has at least `min_length` letters, digits or symbols, and at
    /// least one: [`states`](Self::states) accepts each.
    ///
    /// ```
    /// use formwork_evidence::Index;
    ///
    /// let words = Index::new("\"Maria\"  Lindqvist, 5 May 2024").words(1);
    /// let is_one = |text: &str| {
    ///     let read = text.bytes().try_fold(words.begin()?, |prefix, byte| words.step(prefix, byte));
    ///     read.map(|prefix| words.ends(prefix))
    /// };
    /// assert_eq!(is_one(r#"Maria\" Lindqvist"#), Some(true));
    /// assert_eq!((is_one("2024-05-05"), is_one("Lind"), is_one("Marie")), (Some(true), Some(false), None));
    /// ```
    pub fn words(&self, min_length: usize) -> Candidates {
        let mut words = Candidates::new(min_length);
        // The number of starts up to the last letter, digit or symbol of the current word.
        let (mut kept, mut has_sign) = (0, false);
        for (at, c) in self.text.char_indices().chain([(self.text.len(), ' ')]) {
            let is_border = self.is_border(at, true);
            if has_sign && is_border {
                words.end();
            }
            if c.is_whitespace() || c.is_control() {
                words.starts.truncate(kept);
                has_sign = false;
                if words.bytes.last().is_some_and(|byte| *byte != b' ') {
                    words.push(b" ");
                }
                continue;
            }
            // A hyphen is no sign.
            let is_hyphen = || {
                let after = at + c.len_utf8();
                matches!(c, '-' | '\u{2212}')
                    && !sign(&self.text, after, after).is_some_and(|it| it.is_certain)
            };
            if is_border && !is_hyphen() {
                words.starts.push(offset(words.bytes.len()));
            }
            let json = Value::from(c.to_string()).to_string();
            words.push(json.as_bytes().get(1..json.len() - 1).unwrap_or_default());
            if !is_ignored(c) && !is_mark(c) {
                words.sign();
                (kept, has_sign) = (words.starts.len(), true);
            }
        }
        words.starts.truncate(kept);
        // Nothing ends after the last end, and near it there may be too few letters for a value.
        let end = words.ends.iter().rposition(|is_end| *is_end).unwrap_or_default();
        words.bytes.truncate(end);
        words.ends.truncate(end + 1);
        words.signs.truncate(end + 1);
        let mut starts = std::mem::take(&mut words.starts);
        starts.retain(|start| words.is_end(*start, end));
        (words.starts, words.run) = (starts, end);
        let numbers = self.numbers.iter().filter_map(|number| number.value.to_json());
        let extra: BTreeSet<String> = numbers.chain(self.iso_dates()).collect();
        extra.iter().for_each(|text| words.add(text));
        words.sorted()
    }

    /// Returns all numbers of the input in the notations of JSON: `1,250.00` is `1250`, `1250.0` and `1250.00`, `5 %` also `0.05`, and
    /// `three` is `3`.
    ///
    /// ```
    /// use formwork_evidence::Index;
    ///
    /// assert!(Index::new("No number").numbers().begin().is_none());
    /// assert!(Index::new("three items").numbers().begin().is_some());
    /// ```
    pub fn numbers(&self) -> Candidates {
        let all = self.numbers.iter().chain(&self.spelled);
        let values: BTreeSet<String> = all.filter_map(|number| number.value.to_json()).collect();
        let mut numbers = Candidates::new(1);
        for value in &values {
            let zeros: &[&str] = match value.split_once('.') {
                None => &["", ".0", ".00"],
                Some((_, fraction)) if fraction.len() == 1 => &["", "0"],
                Some(_) => &[""],
            };
            zeros.iter().for_each(|zeros| numbers.add(&format!("{value}{zeros}")));
        }
        numbers.sorted()
    }

    /// Returns all dates with a year, a month and a day of the input as `YYYY-MM-DD`.
    ///
    /// ```
    /// use formwork_evidence::Index;
    ///
    /// assert!(Index::new("due 5 March 2024").dates_of_json().begin().is_some());
    /// assert!(Index::new("due in March").dates_of_json().begin().is_none());
    /// ```
    pub fn dates_of_json(&self) -> Candidates {
        let mut dates = Candidates::new(1);
        self.iso_dates().collect::<BTreeSet<_>>().iter().for_each(|date| dates.add(date));
        dates.sorted()
    }

    /// Returns the dates with a year, a month and a day as `YYYY-MM-DD`.
    fn iso_dates(&self) -> impl Iterator<Item = String> + '_ {
        let full = self.dates.iter().map(|(date, _)| date).filter(|date| date.0 > 0 && date.2 > 0);
        full.map(|Date(year, month, day)| format!("{year:04}-{month:02}-{day:02}"))
    }
}

impl Candidates {
    fn new(min_length: usize) -> Self {
        Self {
            bytes: Vec::new(),
            starts: Vec::new(),
            ends: vec![false],
            signs: vec![0],
            min_length: offset(min_length.max(1)),
            run: 0,
        }
    }

    /// Returns the numbers or dates among these that a condition accepts.
    ///
    /// ```
    /// use formwork_evidence::Index;
    ///
    /// let whole = Index::new("12.5 kg, 3 boxes").numbers().filtered(|number| !number.contains('.'));
    /// let begin = whole.begin().unwrap();
    /// assert!(whole.step(begin, b'3').is_some() && whole.step(begin, b'1').is_none());
    /// ```
    #[must_use]
    pub fn filtered(&self, accepts: impl Fn(&str) -> bool) -> Self {
        let mut some = Self { min_length: self.min_length, ..Self::new(1) };
        let all = self.bytes.split(|byte| *byte == BORDER).filter_map(|text| str::from_utf8(text).ok());
        all.filter(|text| !text.is_empty() && accepts(text)).for_each(|text| some.add(text));
        some.sorted()
    }

    fn push(&mut self, bytes: &[u8]) {
        let signs = self.signs.last().copied().unwrap_or_default();
        self.bytes.extend_from_slice(bytes);
        self.ends.resize(self.bytes.len() + 1, false);
        self.signs.resize(self.bytes.len() + 1, signs);
    }

    /// Counts the last character.
    fn sign(&mut self) {
        if let Some(last) = self.signs.last_mut() {
            *last += 1;
        }
    }

    /// Lets values end here.
    fn end(&mut self) {
        if let Some(last) = self.ends.last_mut() {
            *last = true;
        }
    }

    /// Adds a number or a date as a value of its own, unless it is too short.
    fn add(&mut self, text: &str) {
        if offset(text.bytes().filter(u8::is_ascii_digit).count()) < self.min_length {
            return;
        }
        self.push(&[BORDER]);
        self.starts.push(offset(self.bytes.len()));
        for byte in text.bytes() {
            self.push(&[byte]);
            if byte.is_ascii_digit() {
                self.sign();
            }
        }
        self.end();
    }

    fn sorted(mut self) -> Self {
        let bytes = &self.bytes;
        let from = |start: &u32| {
            let rest = bytes.get(size(*start)..).unwrap_or_default();
            rest.get(..MAX_COMPARED).unwrap_or(rest)
        };
        self.starts.sort_by(|one, other| from(one).cmp(from(other)));
        self
    }

    /// Returns the empty beginning of a value; `None` if there are no values.
    pub fn begin(&self) -> Option<Prefix> {
        (!self.starts.is_empty()).then_some(Prefix { first: 0, last: self.starts.len(), length: 0 })
    }

    /// Returns the beginning with one more byte; `None` if no value begins like this.
    pub fn step(&self, prefix: Prefix, byte: u8) -> Option<Prefix> {
        let Prefix { first, last, length } = prefix;
        let starts = self.starts.get(first..last).filter(|_| byte != BORDER)?;
        let next = |start: &u32| self.bytes.get(size(*start) + length).copied();
        let (low, high) = if length < MAX_COMPARED {
            let low = starts.partition_point(|start| next(start) < Some(byte));
            (low, starts.partition_point(|start| next(start) <= Some(byte)))
        } else {
            let low = starts.iter().position(|start| next(start) == Some(byte))?;
            (low, low + 1)
        };
        (low < high).then(|| Prefix { first: first + low, last: first + high, length: length + 1 })
    }

    /// Returns whether the beginning is a value.
    pub fn ends(&self, prefix: Prefix) -> bool {
        let starts = self.starts.get(prefix.first..prefix.last).unwrap_or_default();
        starts.iter().any(|start| self.is_end(*start, size(*start) + prefix.length))
    }

    /// Returns the places of a value, as ranges that overlap where the places do. `None` for a number, a date, or a value at more than 64
    /// places: it can stand at others that are not known.
    ///
    /// ```
    /// use formwork_evidence::Index;
    ///
    /// let words = Index::new("Paris Hilton is in Paris since 1990").words(1);
    /// let places = |text: &str| {
    ///     let read = text.bytes().try_fold(words.begin().unwrap(), |prefix, byte| words.step(prefix, byte));
    ///     words.places(read.unwrap())
    /// };
    /// assert_eq!((places("Paris"), places("Paris Hilton")), (Some(vec![0..5, 19..24]), Some(vec![0..12])));
    /// assert_eq!((places("Par"), places("1990")), (Some(vec![]), None));
    /// ```
    pub fn places(&self, prefix: Prefix) -> Option<Vec<Range<usize>>> {
        let starts = self.starts.get(prefix.first..prefix.last).unwrap_or_default().iter();
        let all = starts.map(|start| (*start, size(*start)..size(*start) + prefix.length));
        let all = all.filter(|(start, place)| self.is_end(*start, place.end)).map(|(_, place)| place);
        let mut places: Vec<_> = all.take(MAX_PLACES + 1).collect();
        if places.len() > MAX_PLACES || places.iter().any(|place| place.end > self.run) {
            return None;
        }
        places.sort_by_key(|place| place.start);
        Some(places)
    }

    /// Returns the bytes that complete the beginning to a value: few, and none if it is one. `None` is impossible for a prefix of these candidates.
    pub fn rest(&self, prefix: Prefix) -> Option<&[u8]> {
        let starts = self.starts.get(prefix.first..prefix.last)?.iter().take(MAX_RESTS);
        let rest = |start: &u32| {
            let from = size(*start) + prefix.length;
            let end = (from..self.ends.len()).find(|end| self.is_end(*start, *end))?;
            self.bytes.get(from..end)
        };
        starts.filter_map(rest).min_by_key(|rest| rest.len())
    }

    fn is_end(&self, start: u32, end: usize) -> bool {
        let signs = self.signs.get(end).zip(self.signs.get(size(start)));
        self.ends.get(end) == Some(&true)
            && signs.is_some_and(|(all, before)| all.saturating_sub(*before) >= self.min_length)
    }
}
