//! The words around a place, and how well they name a leaf.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::csv::is_cell_break;
use crate::date::Kind;
use crate::find::Place;
use crate::index::{Index, is_sentence_end};
use crate::text::{offset, size, words};

/// The maximum number of words of a label in the text, and of words around a place.
const MAX_LABEL: usize = 6;
const AROUND: usize = 12;
/// The maximum distance from the beginning of a line, in bytes, at which columns are computed.
const MAX_COLUMN: usize = 4096;
/// The maximum number of lines between a row and the header of its table.
const MAX_HEADER: u32 = 2000;

/// The words that name a leaf.
#[derive(Debug, Default)]
pub(crate) struct Label {
    /// The words of the member's name, and those of its title.
    pub(crate) names: Vec<Vec<String>>,
    /// The words of the description, without those of the names.
    description: HashSet<String>,
    /// The words of the names of the objects and lists around it.
    parents: Vec<String>,
}

impl Label {
    pub(crate) fn new(name: &str, parents: &[&str], schema: Option<&Value>) -> Self {
        let text = |key: &str| schema?.get(key)?.as_str();
        let names: Vec<_> = [Some(name), text("title")]
            .into_iter()
            .flatten()
            .map(words)
            .filter(|it| !it.is_empty())
            .collect();
        let is_telling =
            |word: &String| !STOP.contains(&word.as_str()) && (word.chars().count() > 2 || !word.is_ascii());
        let is_named = |word: &String| names.iter().any(|name| name.contains(word));
        let description = text("description").map(words).unwrap_or_default();
        let description =
            description.into_iter().filter(|word| is_telling(word) && !is_named(word)).take(40).collect();
        let parents =
            parents.iter().flat_map(|name| words(name)).map(|word| singular(&word).to_owned()).collect();
        Self { names, description, parents }
    }

    /// Returns how well a phrase of the text names the leaf: at most about 1.5.
    fn score(&self, phrase: &[&str]) -> f64 {
        if phrase.is_empty() {
            return 0.0;
        }
        let named = self.names.iter().map(|name| agreement(name, phrase)).fold(0.0, f64::max);
        let described = phrase.iter().filter(|word| self.description.contains(**word)).count() as f64;
        named + 0.3 * described / phrase.len() as f64 + 0.25 * share(phrase, &self.parents)
    }
}

/// Returns the share of a phrase's words that are among others, by similarity.
fn share(phrase: &[&str], among: &[String]) -> f64 {
    let best = |word: &str| among.iter().map(|it| similarity(it, word)).fold(0.0, f64::max);
    phrase.iter().map(|word| best(word)).sum::<f64>() / phrase.len().max(1) as f64
}

/// Returns how well a phrase and a name agree: the harmonic mean of the shares of their common words.
fn agreement(name: &[String], phrase: &[&str]) -> f64 {
    let best = |word: &String| phrase.iter().map(|it| similarity(word, it)).fold(0.0, f64::max);
    let recall = name.iter().map(best).sum::<f64>() / name.len().max(1) as f64;
    let precision = share(phrase, name);
    match recall + precision {
        _ if recall < 1.0 && name.concat() == phrase.concat() => 1.0,
        sum if sum > 0.0 => 2.0 * recall * precision / sum,
        _ => 0.0,
    }
}

const STOP: [&str; 20] = [
    "the", "and", "for", "with", "from", "this", "that", "are", "was", "not", "has", "any", "all", "its",
    "der", "die", "das", "und", "les", "des",
];

fn singular(word: &str) -> &str {
    word.strip_suffix('s').filter(|stem| stem.len() > 2).unwrap_or(word)
}

/// Returns how similar a word of a name is to a word of the text: 1 for equal words, less for the same stem and for
/// abbreviations.
fn similarity(name: &str, word: &str) -> f64 {
    if name == word {
        return 1.0;
    }
    // Most pairs differ in the first letter.
    if name.chars().next() != word.chars().next() {
        return 0.0;
    }
    let (one, other) = (singular(name), singular(word));
    if one == other {
        return 0.95;
    }
    let common = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let (length, word_length) = (one.chars().count(), other.chars().count());
    let longer = length.max(word_length);
    if common >= 4 && common * 10 >= longer * 6 {
        return 0.8;
    }
    let shorter = length.min(word_length);
    if common == shorter && shorter >= 3 {
        return 0.6;
    }
    // qty for quantity, amt for amount, no for number
    let mut rest = name.chars();
    let is_short = word_length >= 2 && word_length < length;
    if is_short
        && word.is_ascii()
        && word.chars().all(|letter| rest.any(|it| it == letter))
        && (word_length >= 3 || word == "no")
    {
        return 0.6;
    }
    0.0
}

/// The column of a place in its line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Column {
    /// The number of a cell between separators.
    Cell(usize),
    /// The first and the last character.
    At(usize, usize),
}

/// A cell of a line: its characters and its tokens.
#[derive(Debug, Clone)]
struct Cell {
    at: (usize, usize),
    first: usize,
    last: usize,
}

/// Computes the labels of places in one input.
#[derive(Debug)]
pub(crate) struct Surroundings<'i, 't> {
    index: &'i Index<'t>,
    /// The header of each line that was asked for.
    headers: HashMap<u32, Option<u32>>,
    cells: HashMap<u32, Vec<Cell>>,
}

impl<'i, 't> Surroundings<'i, 't> {
    pub(crate) fn new(index: &'i Index<'t>) -> Self {
        Self { index, headers: HashMap::new(), cells: HashMap::new() }
    }

    /// Returns how well the surroundings of a place name a leaf, and whether a word close to the place does.
    pub(crate) fn score(&mut self, label: &Label, place: &Place) -> f64 {
        let (first, last) = (size(place.range.first), size(place.range.last));
        let before = self.before(first);
        let mut best = label.score(&self.texts(&before));
        if let Some(header) = self.header_words(place) {
            best = best.max(0.95 * label.score(&self.texts(&header)));
        }
        if before.is_empty() {
            best = best.max(0.85 * label.score(&self.texts(&self.line_before(first))));
        }
        let after = self.after(last);
        best = best.max(0.55 * label.score(&self.texts(&after)));
        best + 0.35 * self.around(label, first, last)
    }

    fn texts(&self, tokens: &[usize]) -> Vec<&'i str> {
        tokens.iter().map(|token| self.index.word(*token)).collect()
    }

    /// Returns the words directly before a token: the label of `Total: 5`. The words of one cell, in the order of the text.
    fn before(&self, first: usize) -> Vec<usize> {
        let (mut words, mut token) = (Vec::new(), first);
        while let Some(before) = token.checked_sub(1) {
            let gap = self.index.gap(before);
            let ends =
                gap.contains('\n') || is_sentence_end(gap) || (!words.is_empty() && is_cell_break(gap));
            let is_digits = self.index.token(before).is_none_or(|token| token.kind == Kind::Digits);
            if ends || is_digits || words.len() >= MAX_LABEL {
                break;
            }
            // A comma ends the value or the clause before it.
            if (!words.is_empty() || gap.len() > 1) && gap.contains(',') {
                break;
            }
            words.push(before);
            token = before;
        }
        words.reverse();
        words
    }

    /// Returns up to three words directly after a token, such as `3 nights`.
    fn after(&self, last: usize) -> Vec<usize> {
        let mut words = Vec::new();
        let mut token = last;
        while words.len() < 3 {
            let gap = self.index.gap(token);
            let stops =
                gap.contains(['\n', '|', '\t', ',', ';', ':']) || gap.len() > 2 || is_sentence_end(gap);
            if stops || self.index.token(token + 1).is_none_or(|next| next.kind == Kind::Digits) {
                break;
            }
            token += 1;
            words.push(token);
        }
        words
    }

    /// Returns the words of the line before the line of a token, if they are few and have no digits: a heading of the value.
    fn line_before(&self, first: usize) -> Vec<usize> {
        let Some(before) = first.checked_sub(1) else { return Vec::new() };
        let Some(line) = self.index.token(before).map(|token| token.line) else { return Vec::new() };
        let mut words: Vec<usize> = Vec::new();
        let mut token = before;
        loop {
            let here = self.index.token(token).filter(|it| it.line == line && it.kind != Kind::Digits);
            if here.is_none() || words.len() > MAX_LABEL {
                break;
            }
            words.push(token);
            let Some(next) = token.checked_sub(1) else { break };
            token = next;
        }
        let complete = words.len() <= MAX_LABEL;
        words.reverse();
        if complete { words } else { Vec::new() }
    }

    /// Returns how many of the words of a leaf stand near a place, nearer ones counting more: from 0 to 1.
    fn around(&self, label: &Label, first: usize, last: usize) -> f64 {
        let line = self.index.token(first).map_or(0, |token| token.line);
        let near = |token: usize| self.index.token(token).is_some_and(|token| token.line.abs_diff(line) <= 1);
        let before = (first.saturating_sub(AROUND)..first).rev().enumerate();
        let after =
            (last + 1..last + 1 + AROUND / 2).enumerate().map(|(distance, token)| (2 * distance + 2, token));
        let tokens: Vec<(usize, usize)> = before.chain(after).filter(|(_, token)| near(*token)).collect();
        let of_name = |name: &Vec<String>| {
            let near = |word: &String| {
                let found = tokens.iter().map(|(distance, token)| {
                    similarity(word, self.index.word(*token)) / (1.0 + *distance as f64 / 6.0)
                });
                found.fold(0.0, f64::max)
            };
            name.iter().map(near).sum::<f64>() / name.len().max(1) as f64
        };
        label.names.iter().map(of_name).fold(0.0, f64::max)
    }

    /// Returns the column of a place in its line; `None` in very long lines.
    pub(crate) fn column(&self, place: &Place) -> Option<Column> {
        let line = self.index.token(size(place.range.first))?.line;
        let start = size(*self.index.lines.get(size(line))?);
        let before =
            self.index.text.get(start..size(place.range.start)).filter(|text| text.len() < MAX_COLUMN)?;
        match self.separator(line) {
            Some(',') => Some(Column::Cell(self.index.cell_commas(offset(start), place.range.start))),
            Some(separator) => Some(Column::Cell(cells_before(before, separator))),
            None => {
                let from = before.chars().count();
                let length = self.index.slice(place.range.start, place.range.end).chars().count();
                Some(Column::At(from, from + length))
            }
        }
    }

    /// Returns the separator of the cells of a line, if it has one.
    fn separator(&self, line: u32) -> Option<char> {
        let text = self.index.line(size(line));
        let text = text.get(..MAX_COLUMN).unwrap_or(text);
        let is_found = |separator: &u8| memchr::memchr_iter(*separator, text.as_bytes()).nth(1).is_some();
        let found = [b'|', b'\t', b';'].into_iter().find(is_found).map(char::from);
        let start = self.index.lines.get(size(line)).copied().unwrap_or_default();
        let end = self.index.lines.get(size(line) + 1).copied().unwrap_or(u32::MAX);
        found.or_else(|| (self.index.cell_commas(start, end) > 0).then_some(','))
    }

    /// Returns the words of the header above a place, if it stands in a table.
    fn header_words(&mut self, place: &Place) -> Option<Vec<usize>> {
        let line = self.index.token(size(place.range.first))?.line;
        let column = self.column(place)?;
        let header = self.header(line)?;
        let cells = self.cells(header);
        let cell = match column {
            Column::Cell(number) => cells.get(number),
            Column::At(from, to) => {
                let distance = |cell: &&Cell| cell.at.0.saturating_sub(to) + from.saturating_sub(cell.at.1);
                cells.iter().min_by_key(distance).filter(|cell| distance(cell) <= 8)
            }
        }?;
        (cell.first <= cell.last).then(|| (cell.first..=cell.last).take(MAX_LABEL).collect())
    }

    /// Returns the line of the header of the table that a line is a row of.
    fn header(&mut self, line: u32) -> Option<u32> {
        if let Some(known) = self.headers.get(&line) {
            return *known;
        }
        let separator = self.separator(line);
        let (mut above, mut blank, mut found) = (line, 0, None);
        let mut walked = vec![line];
        while let Some(next) = above.checked_sub(1).filter(|next| line - next < MAX_HEADER) {
            above = next;
            if let Some(known) = self.headers.get(&above).filter(|_| self.separator(above) == separator) {
                found = *known;
                break;
            }
            let text = self.index.line(size(above));
            if !text.chars().take(MAX_COLUMN).any(char::is_alphanumeric) {
                blank += 1;
                // A rule or one empty line may stand below a header.
                if blank > 2 || (separator.is_some() && text.trim().is_empty()) {
                    break;
                }
                continue;
            }
            if separator.is_some() {
                if self.separator(above) != separator {
                    break;
                }
                found = Some(above);
                continue;
            }
            let has_digits = text.chars().take(MAX_COLUMN).any(|c| crate::text::digit(c).is_some());
            if !has_digits && self.cells(above).len() >= 2 {
                found = Some(above);
                break;
            }
            if blank > 0 && has_digits {
                break;
            }
            walked.push(above);
        }
        if separator.is_some() {
            walked.truncate(1);
        }
        for line in walked {
            self.headers.insert(line, found);
        }
        found
    }

    fn cells(&mut self, line: u32) -> &[Cell] {
        let separator = self.separator(line);
        self.cells.entry(line).or_insert_with(|| cells_of(self.index, line, separator))
    }
}

fn cells_of(index: &Index<'_>, line: u32, separator: Option<char>) -> Vec<Cell> {
    let first = index.tokens.partition_point(|token| token.line < line);
    let end = index.tokens.partition_point(|token| token.line <= line);
    let start = index.lines.get(size(line)).map_or(0, |start| size(*start));
    let (mut counted, mut characters) = (start, 0);
    let mut column = |byte: u32| {
        characters += index.text.get(counted..size(byte)).map_or(0, |text| text.chars().count());
        counted = size(byte);
        characters
    };
    let mut cells: Vec<Cell> = Vec::new();
    for number in first..end.min(first + MAX_COLUMN) {
        let Some(token) = index.token(number) else { break };
        let at = (column(token.start), column(token.end));
        let text = index.text.get(start..size(token.start)).unwrap_or_default();
        let joins = match separator {
            Some(separator) => {
                let cell = match separator {
                    ',' => index.cell_commas(offset(start), token.start),
                    _ => cells_before(text, separator),
                };
                // Empty cells have no tokens.
                while cells.len() < cell {
                    cells.push(Cell { at, first: 1, last: 0 });
                }
                cells.len() > cell
            }
            None => number > first && !is_cell_break(index.gap(number - 1)),
        };
        match cells.last_mut().filter(|_| joins) {
            Some(cell) => {
                cell.last = number;
                cell.at.1 = at.1;
            }
            None => cells.push(Cell { at, first: number, last: number }),
        }
    }
    cells
}

/// Returns the number of separators before a place in its line. A separator within quotes belongs to its cell.
fn cells_before(text: &str, separator: char) -> usize {
    let mut quoted = false;
    let mut count = 0;
    for c in text.chars() {
        quoted ^= c == '"';
        count += usize::from(c == separator && !quoted);
    }
    count
}
