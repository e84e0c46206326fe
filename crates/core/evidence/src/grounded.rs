//! Whether a value stands in the input, for the rule `grounded`.

use serde_json::Value;
use strsim::normalized_damerau_levenshtein as similarity;

use crate::Status;
use crate::date::{dates, words_of};
use crate::find::places;
use crate::index::Index;
use crate::text::{clusters, folded, is_ignored, is_unspaced};

/// The minimum fit of a notation. A date without its year is below.
const MIN_QUALITY: f64 = 0.5;
/// The minimum similarity of the nearest text, from 0 to 1.
const MIN_SIMILARITY: f64 = 0.5;
/// The maximum number of words of a value, of places of each word, and of tokens or numbers that are compared.
const MAX_WORDS: usize = 16;
const MAX_PLACES: usize = 32;
const MAX_COMPARED: usize = 20_000;
/// The maximum length of compared texts in characters.
const MAX_LETTERS: usize = 200;

impl Index<'_> {
    /// Returns whether a text or a number stands in the input as whole words, in any notation that [`evidence`](Self::evidence) finds. A
    /// text needs at least `min_length` letters, digits or symbols and at least one; a single letter has to stand there in the same case.
    /// It does not begin or end between a digit and a letter, as in `7a`, unless it is a number or the letters are a currency.
    /// A number is whole with its digits, separators and sign, and the currency beside it is no other one than that of the text.
    /// A date without its year counts if the year stands somewhere. `null`, booleans, lists and objects never stand in an input.
    ///
    /// ```
    /// use formwork_evidence::Index;
    /// use serde_json::json;
    ///
    /// let index = Index::new("Anna paid 1,250.00 EUR on 5 March 2024.");
    /// assert!(index.states(&json!("anna"), 1) && index.states(&json!(1250), 1) && index.states(&json!("2024-03-05"), 1));
    /// assert!(!index.states(&json!("Ann"), 1) && !index.states(&json!(250), 1) && !index.states(&json!(""), 1));
    /// ```
    pub fn states(&self, leaf: &Value, min_length: usize) -> bool {
        let (mut is_letter, mut year) = (false, None);
        if let Value::String(text) = leaf {
            let first = |(start, _): (usize, usize)| text.get(start..).and_then(|rest| rest.chars().next());
            let signs: Vec<char> =
                clusters(text, 0).filter_map(first).filter(|first| !is_ignored(*first)).collect();
            if signs.len() < min_length.max(1) {
                return false;
            }
            is_letter = matches!(signs[..], [only] if only.is_alphabetic() && !is_unspaced(only));
            year = dates(text.trim()).0.first().map(|date| date.0.to_string());
        } else if !leaf.is_number() {
            return false;
        }
        let has_year = || year.is_some_and(|year| self.occurrences(&year).len() > 0);
        let places = places(self, leaf);
        let fits = |place: &crate::find::Place| !is_letter || place.status == Status::Exact;
        places.iter().any(|place| fits(place) && place.quality >= MIN_QUALITY)
            || (leaf.is_string() && !places.is_empty() && places.iter().any(fits) && has_year())
    }

    /// Returns the part of the input that is most similar to a text or a number; `None` if nothing is similar.
    ///
    /// ```
    /// use formwork_evidence::Index;
    /// use serde_json::json;
    ///
    /// let index = Index::new("Invoice for Maria Lindqvist, total 1,520.00");
    /// assert_eq!(index.nearest(&json!("Mary Lindquist")), Some("Maria Lindqvist"));
    /// assert_eq!(index.nearest(&json!(1250)), Some("1,520.00"));
    /// assert_eq!(index.nearest(&json!("umbrella")), None);
    /// // What is similar is not a part of a word.
    /// assert_eq!(Index::new("lives at Main St 7a in Oslo").nearest(&json!("Main St 7")), Some("Main St 7a"));
    /// ```
    pub fn nearest(&self, leaf: &Value) -> Option<&str> {
        let ranges: Vec<(u32, u32)> = match leaf {
            Value::String(text) => self.similar(text.trim()),
            Value::Number(_) => {
                self.numbers.iter().take(MAX_COMPARED).map(|it| (it.range.start, it.range.end)).collect()
            }
            _ => return None,
        };
        let short = |text: &str| text.chars().take(MAX_LETTERS).collect::<String>();
        let wanted = match leaf {
            Value::String(text) => short(&folded(text)),
            number => number.to_string(),
        };
        let score = |(start, end): &(u32, u32)| {
            let found = self.slice(*start, *end);
            // A fraction of zeros is another notation of the same number.
            let found = match leaf {
                Value::String(_) => short(&folded(found)),
                _ => found.strip_suffix(".00").unwrap_or(found).replace(',', ""),
            };
            similarity(&found, &wanted)
        };
        let scored = ranges.into_iter().map(|range| (score(&range), range));
        let best = scored.filter(|(score, _)| *score >= MIN_SIMILARITY).max_by(|one, other| {
            one.0.total_cmp(&other.0).then(other.1.0.cmp(&one.1.0)).then(other.1.1.cmp(&one.1.1))
        });
        best.map(|(_, (start, end))| self.slice(start, end))
    }

    /// Returns ranges of as many words as a text has, around words of the text, or else around the most similar words.
    fn similar(&self, text: &str) -> Vec<(u32, u32)> {
        let mut words: Vec<String> = words_of(text).into_iter().map(|(word, _, _)| word).collect();
        words.truncate(MAX_WORDS);
        let range = |token: usize, position: usize| {
            let mut first = token.saturating_sub(position);
            let mut last = (first + words.len()).min(self.tokens.len()).checked_sub(1)?;
            // No text begins or ends within `7a`.
            let is_within = |at: usize| {
                let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
                let (before, after) = (self.word(at), self.word(at + 1));
                self.gap(at).is_empty()
                    && is_digit(before.chars().next_back()) != is_digit(after.chars().next())
            };
            while last + 1 < self.tokens.len() && is_within(last) {
                last += 1;
            }
            while first > 0 && is_within(first - 1) {
                first -= 1;
            }
            self.range(first, last).map(|range| (range.start, range.end))
        };
        let of_word = |(position, word): (usize, &String)| {
            self.occurrences(word).take(MAX_PLACES).map(move |token| (token, position)).collect::<Vec<_>>()
        };
        let mut starts: Vec<(usize, usize)> = words.iter().enumerate().flat_map(of_word).collect();
        if starts.is_empty() {
            let alike = |token: usize| {
                let word = self.word(token);
                let first = word.chars().next();
                let same = words.iter().enumerate().filter(|(_, other)| other.chars().next() == first);
                let scored = same.map(|(position, other)| (similarity(word, other), (token, position)));
                scored.max_by(|one, other| one.0.total_cmp(&other.0))
            };
            let mut scored: Vec<_> = (0..self.tokens.len().min(MAX_COMPARED)).filter_map(alike).collect();
            scored.sort_by(|one, other| other.0.total_cmp(&one.0));
            starts = scored.into_iter().take(MAX_PLACES).map(|(_, start)| start).collect();
        }
        starts.into_iter().filter_map(|(token, at)| range(token, at)).collect()
    }
}
