//! Numbers, literals and words without quotes.

use serde::de::IgnoredAny;
use serde_json::Value;

use super::space::LOOK_AHEAD;
use super::{Parsed, Parser, Place};
use crate::{EditKind, Level, Span};

impl Parser<'_> {
    pub(super) fn scalar(&mut self, place: Place) -> Parsed<Value> {
        let start = self.at;
        let word = self.word(place)?;
        if word.is_empty() {
            return Err(self.syntax("expected a value"));
        }
        let span = Span::new(start, start + word.len());
        let at_end = span.end == self.source.end();
        let is_quoted = self.level >= Level::Lenient
            && place != Place::Root
            && self.source.byte(span.end) == Some(b'"')
            && self.closes(span.end + 1, place);
        if is_quoted {
            // The quote before the text is missing, or the one after the number is too much.
            self.at = span.end + 1;
            if let Some(value) = json_scalar(&word) {
                self.number(&word);
                self.edit(EditKind::Junk, Span::new(span.end, self.at), "")?;
                return Ok(value);
            }
            self.edit(EditKind::MissingQuote, Span::at(start), "\"")?;
            return Ok(Value::String(word));
        }
        if let Some(text) = self.grouped(place) {
            self.at += text.len();
            let text = Value::String(text);
            self.edit(EditKind::MissingQuote, Span::new(start, self.at), &text.to_string())?;
            return Ok(text);
        }
        if let Some(value) = json_scalar(&word) {
            self.at = span.end;
            if is_number(&word) {
                self.number(&word);
                if at_end && !self.open.is_empty() {
                    self.close_at_end(self.source.end(), "");
                }
            }
            return Ok(value);
        }
        if self.skip_space(span.end) == self.source.end()
            && let Some(value) = self.cut_scalar(&word, span)
        {
            return Ok(value);
        }
        if self.level < Level::Lenient {
            return Err(self.syntax("expected a value"));
        }
        if let Some(value) = foreign_literal(&word) {
            self.at = span.end;
            self.edit(EditKind::Literal, span, &value.to_string())?;
            return Ok(value);
        }
        if let Some((number, value)) = foreign_number(&word) {
            self.at = span.end;
            self.edit(EditKind::Number, span, &number)?;
            self.number(&number);
            return Ok(value);
        }
        if let Some(value) = self.call(&word, place)? {
            return Ok(value);
        }
        // A number without its last digits is no text, and the end of a text with a bracket inside is unknown.
        let number = word.trim_end_matches(['.', 'e', 'E', '+', '-']);
        let is_cut =
            is_number(&word) && (number.is_empty() || number < &*word && json_scalar(number).is_some());
        if place == Place::Root || is_cut {
            return Err(self.syntax("expected a value"));
        }
        self.at = self.skip_space(span.end);
        if matches!(self.peek(), Some(b'{' | b'[')) {
            return Err(self.syntax("a bracket in a text without quotes"));
        }
        self.at = span.end;
        let text = Value::String(word);
        self.edit(EditKind::MissingQuote, span, &text.to_string())?;
        Ok(text)
    }

    /// Returns the text of a member that can only be a number with separators of thousands, because no name follows its comma.
    fn grouped(&self, place: Place) -> Option<String> {
        let near = self.source.until(self.at + LOOK_AHEAD);
        let end = near.find(self.at, |c| !(c.is_ascii_digit() || matches!(c, '-' | ',' | '.')));
        let text = near.slice(self.at, end).trim_end_matches(',');
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let (first, groups) = whole.strip_prefix('-').unwrap_or(whole).split_once(',')?;
        let is_grouped = is_digits(first)
            && first.len() <= 3
            && groups.split(',').all(|group| group.len() == 3 && is_digits(group))
            && is_digits(fraction);
        let after = self.source.byte(self.skip_space(self.at + text.len()));
        let ends = matches!(after, Some(b',' | b'}'));
        (self.level >= Level::Lenient && place == Place::Member && is_grouped && ends)
            .then(|| text.to_owned())
    }

    /// Returns the characters up to the next one that can end a value, without trailing white space.
    fn word(&mut self, place: Place) -> Parsed<String> {
        let (mut previous, mut calls) = (' ', false);
        let ends = |c: char| {
            let end = match c {
                ',' | '{' | '}' | '[' | ']' | '\n' | '\r' => true,
                ' ' | '\t' => place == Place::Root || self.level < Level::Lenient,
                '#' => previous.is_whitespace(),
                '"' => true,
                ')' => self.open.last() == Some(&b'(') || !calls,
                _ => false,
            };
            previous = c;
            calls |= c == '(';
            end
        };
        let mut word = self.source.slice(self.at, self.source.find(self.at, ends));
        self.check_work()?;
        for comment in [" //", "\t//", " /*", "/*"] {
            word = word.split_once(comment).map_or(word, |(before, _)| before);
        }
        let is_scalar = |word: &str| json_scalar(word).is_some();
        if is_scalar(word.split(' ').next().unwrap_or_default())
            && (word.contains(": ") || place == Place::Item && word.split(' ').all(is_scalar))
        {
            // In `true "b": 1` and `[1 2]` a comma is missing: the next name or item is not part of the value.
            word = word.split(' ').next().unwrap_or_default();
        }
        Ok(word.trim_end().to_owned())
    }

    /// Returns the value of a literal or number that the end of the text cuts off.
    fn cut_scalar(&mut self, word: &str, span: Span) -> Option<Value> {
        let literals = [("true", Value::Bool(true)), ("false", Value::Bool(false)), ("null", Value::Null)];
        if let Some((whole, value)) = literals.into_iter().find(|(whole, _)| whole.starts_with(word)) {
            self.close_at_end(span.end, whole.get(word.len()..).unwrap_or_default());
            return Some(value);
        }
        let number = word.trim_end_matches(['.', 'e', 'E', '+', '-']);
        let is_cut = is_number(word) && number.len() < word.len();
        if !is_cut {
            return None;
        }
        if let Some(value) = json_scalar(number) {
            self.close_at_end(span.start + number.len(), "");
            self.number(number);
            return Some(value);
        }
        if number.is_empty() {
            self.lost = true;
            self.at = self.source.end();
            return Some(Value::Null);
        }
        None
    }

    /// Reads the value inside of `name(value)`: Python's `set([…])`, `Decimal("1.5")`, Mongo's `ObjectId("…")`, JSONP.
    fn call(&mut self, word: &str, place: Place) -> Parsed<Option<Value>> {
        let Some((name, _)) = word.split_once('(') else { return Ok(None) };
        let is_name =
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '$'));
        if !is_name {
            return Ok(None);
        }
        let (start, mark, inner) = (self.at, self.edits.len(), self.rounded.len());
        self.edit(EditKind::Call, Span::new(start, start + name.len() + 1), "")?;
        self.at += name.len() + 1;
        self.space()?;
        self.nest(b'(')?;
        let value = if self.peek() == Some(b')') { Ok(Value::Null) } else { self.value(place) };
        self.open.pop();
        let value = value?;
        self.space()?;
        if self.peek() != Some(b')') && self.peek().is_some() {
            self.edits.truncate(mark);
            self.rounded.truncate(inner);
            self.at = start;
            return Ok(None);
        }
        self.edit(EditKind::Call, Span::new(self.at, (self.at + 1).min(self.source.end())), "")?;
        self.at = (self.at + 1).min(self.source.end());
        Ok(Some(value))
    }
}

/// Returns whether a word can only be a number.
fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c == '-' || c.is_ascii_digit())
}

/// Returns the value of a number or literal of JSON. A number beyond the range of a double is `null`.
fn json_scalar(word: &str) -> Option<Value> {
    match word {
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        "null" => Some(Value::Null),
        _ if is_number(word) => serde_json::from_str(word).ok().or_else(|| {
            // The range of a number that is ignored is not checked.
            serde_json::from_str::<IgnoredAny>(word).ok().map(|_| Value::Null)
        }),
        _ => None,
    }
}

fn foreign_literal(word: &str) -> Option<Value> {
    match word {
        "True" | "TRUE" => Some(Value::Bool(true)),
        "False" | "FALSE" => Some(Value::Bool(false)),
        "None" | "NULL" | "Null" | "undefined" | "nil" | "NaN" | "nan" | "Infinity" | "-Infinity" | "inf"
        | "-inf" => Some(Value::Null),
        _ => None,
    }
}

/// Returns the JSON text and the value of `+1`, `.5`, `5.` or `1_000`, which are unambiguous; `007` and `1,5` are not.
fn foreign_number(word: &str) -> Option<(String, Value)> {
    let (sign, digits) = match word.split_at_checked(1) {
        Some(("-", rest)) => ("-", rest),
        Some(("+", rest)) => ("", rest),
        _ => ("", word),
    };
    let grouped = digits.contains('_')
        && digits.bytes().all(|b| b.is_ascii_digit() || b == b'_')
        && !digits.starts_with('_');
    let digits = if grouped { digits.replace('_', "") } else { digits.to_owned() };
    let digits = match digits.strip_prefix('.') {
        Some(fraction) => format!("0.{fraction}"),
        None => digits.strip_suffix('.').map_or(digits.clone(), str::to_owned),
    };
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let number = format!("{sign}{digits}");
    json_scalar(&number).map(|value| (number, value))
}
