//! How long strings and arrays may become so that a document fits into the tokens that there are.

use std::collections::HashMap;
use std::rc::Rc;

use crate::form::{Alternative, ArrayForm, Form, NumberForm, ObjectForm, Shared, StringForm};
use crate::pattern;

/// Characters of prose that make one token, in models with a small vocabulary.
const CHARACTERS_PER_TOKEN: f64 = 3.0;

/// The longest name of a member that is not listed.
pub(crate) const MAX_NAME: u64 = 32;

/// How much room a document has.
#[derive(Debug)]
pub(crate) struct Room {
    /// The tokens that an answer may have where nobody says.
    tokens: u32,
    /// From roomy to narrow: items of an array, characters of a string. Narrow lists hurt less than cut-off sentences.
    ladder: &'static [(u64, u64)],
    /// The most characters of a string.
    text: u64,
}

impl Room {
    /// For models that go on where they may.
    pub(crate) const SMALL_MODEL: Self = Self {
        tokens: 512,
        ladder: &[(8, 200), (6, 160), (4, 120), (3, 80), (2, 64), (2, 40), (1, 40), (1, 24), (1, 16)],
        text: 2000,
    };
    /// For servers of models of any size: as long as what the tokens hold, at most what a grammar counts.
    pub(crate) const SERVED: Self = Self {
        tokens: 1024,
        ladder: &[
            (256, 200),
            (128, 200),
            (64, 200),
            (32, 200),
            (16, 200),
            (8, 200),
            (6, 160),
            (4, 120),
            (3, 80),
            (2, 64),
            (2, 40),
            (1, 40),
            (1, 24),
            (1, 16),
        ],
        text: 1000,
    };
    /// For models that stop by themselves. Their strings are not bounded, so these are what strings usually have.
    pub(crate) const HOSTED: Self = Self {
        tokens: 8192,
        ladder: &[(1000, 40), (500, 40), (250, 40), (100, 40), (50, 40), (25, 40), (16, 40), (8, 40)],
        text: 40,
    };
}

/// What strings and arrays that the schema leaves longer are bounded by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caps {
    pub(crate) items: u64,
    /// Characters.
    pub(crate) text: u64,
}

impl Caps {
    /// The roomiest bounds with which the longest document fits; the narrowest if none does.
    pub(crate) fn fitting(form: &Shared, room: &Room, max_tokens: Option<u32>) -> Self {
        let tokens = f64::from(max_tokens.unwrap_or(room.tokens));
        let fits = |caps: Self| Estimate { caps, known: HashMap::new() }.form(form) <= tokens;
        let steps = room.ladder.iter().map(|(items, text)| Self { items: *items, text: *text });
        let narrowest = steps.clone().next_back();
        let mut caps =
            steps.into_iter().find(|caps| fits(*caps)).or(narrowest).unwrap_or(Self { items: 1, text: 16 });
        // What is left goes to the strings.
        while caps.text < room.text && fits(Self { text: caps.text + caps.text / 4, ..caps }) {
            caps.text += caps.text / 4;
        }
        caps.text = caps.text.min(room.text);
        caps
    }

    /// The most characters of a string; `None` if its pattern or format bounds it.
    pub(crate) fn string(self, form: &StringForm) -> Option<u64> {
        let bounded = form.patterns.iter().filter_map(|one| pattern::max_length(&one.translated)).min();
        if form.format.as_deref().is_some_and(is_short) || bounded.is_some_and(|bound| bound <= self.text) {
            return form.max;
        }
        let needed = form.patterns.iter().map(|one| pattern::min_length(&one.translated)).max().unwrap_or(0);
        let cap = match form.format.as_deref() {
            None => self.text,
            Some("uri") => self.text.max(64),
            // Longer ones break the rules that these formats have about their parts (64 characters before an `@`).
            Some(_) => 64,
        };
        Some(form.max.unwrap_or(u64::MAX).min(cap.max(form.min).max(needed)))
    }

    /// The most items of an array.
    pub(crate) fn array(self, form: &ArrayForm) -> u64 {
        let cap = (form.prefix.len() as u64).max(self.items).max(form.min);
        form.max.unwrap_or(u64::MAX).min(cap)
    }

    /// The most members of an object whose names are not listed.
    pub(crate) fn extras(self, form: &ObjectForm) -> u64 {
        if form.extras.is_empty() {
            return 0;
        }
        let named = form.properties.len() as u64;
        let cap = self.items.max(form.min.saturating_sub(named));
        form.max.map_or(cap, |max| cap.min(max.saturating_sub(named)))
    }
}

/// Formats whose strings are short by themselves.
fn is_short(format: &str) -> bool {
    matches!(format, "date" | "uuid" | "ipv4" | "ipv6")
}

/// Estimates the tokens of the longest document.
struct Estimate {
    caps: Caps,
    known: HashMap<*const Form, f64>,
}

impl Estimate {
    fn form(&mut self, form: &Shared) -> f64 {
        let at = Rc::as_ptr(form);
        if let Some(known) = self.known.get(&at) {
            return *known;
        }
        let most =
            form.alternatives.iter().map(|alternative| self.alternative(alternative)).fold(0.0, f64::max);
        self.known.insert(at, most);
        most
    }

    fn alternative(&mut self, alternative: &Alternative) -> f64 {
        match alternative {
            Alternative::Any(_) => self.caps.items as f64 * self.text(self.caps.text.min(MAX_NAME)),
            Alternative::Literals(literals) => {
                literals.values.iter().map(|value| value.to_string().len() as f64 / 2.0).fold(1.0, f64::max)
            }
            Alternative::Null | Alternative::Boolean => 1.0,
            Alternative::Number(number) => digits(number),
            Alternative::String(string) => self.text(self.caps.string(string).unwrap_or(40)),
            Alternative::Array(array) => self.array(array),
            Alternative::Object(object) => self.object(object),
            Alternative::Mapped(inner, _) => self.alternative(inner),
        }
    }

    fn text(&self, characters: u64) -> f64 {
        characters as f64 / CHARACTERS_PER_TOKEN + 2.0
    }

    fn array(&mut self, array: &ArrayForm) -> f64 {
        let most = self.caps.array(array);
        let prefix: f64 = array.prefix.iter().map(|form| self.form(form) + 1.0).sum();
        let rest = array.items.as_ref().map_or(0.0, |form| self.form(form) + 1.0);
        2.0 + prefix + rest * most.saturating_sub(array.prefix.len() as u64) as f64
    }

    fn object(&mut self, object: &ObjectForm) -> f64 {
        let named: f64 = object
            .properties
            .iter()
            .map(|property| property.name.len() as f64 / 2.0 + 3.0 + self.form(&property.form))
            .sum();
        let extra = object.extras.iter().map(|extra| self.form(&extra.form)).fold(0.0, f64::max);
        let extras = self.caps.extras(object) as f64 * (MAX_NAME as f64 / CHARACTERS_PER_TOKEN + 4.0 + extra);
        2.0 + named + extras
    }
}

/// Tokens of a number: vocabularies for small models have one for each digit.
fn digits(number: &NumberForm) -> f64 {
    let wide = |bound: Option<crate::form::Bound>| {
        bound.map_or(6.0, |bound| bound.at.abs().max(1.0).log10().floor() + 1.0)
    };
    let whole = wide(number.min).max(wide(number.max)).min(16.0);
    if number.integer { whole + 1.0 } else { whole + 5.0 }
}
