use formwork_core::{AddedBound, LossKind};
use serde_json::{Map, Value, json};

use super::Writer;
use crate::expand::MAX_SAFE;
use crate::form::{Bound, Literals, NumberForm, Role, StringForm};
use crate::pattern;
use crate::plain::{Plain, plain};
use crate::profile::{Patterns, Profile};

impl Writer<'_> {
    pub(super) fn literals(&mut self, literals: &Literals) -> Value {
        let values = literals.values();
        let is_long = values.len() > self.most_values;
        if is_long {
            self.lose(literals.origin, "enum", LossKind::Loosened);
        }
        if !self.profile.typed_literals {
            return match values.as_slice() {
                [one] => json!({"const": one}),
                _ => json!({"enum": values}),
            };
        }
        let written = literals.by_kind().into_iter().map(|(kind, literals)| match kind {
            "null" => json!({"type": kind}),
            "boolean" if literals.values.len() == 2 => json!({"type": kind}),
            _ if is_long => json!({"type": kind}),
            _ => json!({"type": kind, "enum": literals.values()}),
        });
        let mut written: Vec<Value> = written.collect();
        if written.len() == 1 { written.swap_remove(0) } else { json!({"anyOf": written}) }
    }

    /// Writes a string at a JSON Pointer of the lowered schema.
    pub(super) fn string(&mut self, form: &StringForm, at: &str) -> Value {
        let mut out = Map::from_iter([("type".to_owned(), json!("string"))]);
        match self.profile.patterns {
            Patterns::All => {
                self.lengths(form, at, &mut out);
                self.format(form, &mut out);
                match form.patterns.as_slice() {
                    [] => {}
                    [one] => {
                        out.insert("pattern".to_owned(), json!(one.translated));
                    }
                    several => {
                        let several =
                            several.iter().map(|one| json!({"type": "string", "pattern": one.translated}));
                        out.insert("allOf".to_owned(), several.collect());
                    }
                }
            }
            Patterns::One | Patterns::Anchored | Patterns::Simple | Patterns::None => {
                self.lengths(form, at, &mut out);
                self.format(form, &mut out);
                let written = written_pattern(form, self.profile);
                if let Some(one) = written.and_then(|index| form.patterns.get(index)) {
                    out.insert("pattern".to_owned(), json!(one.source));
                }
                if form.patterns.len() > usize::from(written.is_some()) {
                    self.lose(form.origin, "pattern", LossKind::Unenforced);
                }
            }
            Patterns::Plain => self.either(form, at, &mut out),
        }
        Value::Object(out)
    }

    /// Writes a pattern, a format or lengths: llama.cpp enforces only the first of them.
    fn either(&mut self, form: &StringForm, at: &str, out: &mut Map<String, Value>) {
        let bound = form.max.filter(|_| form.is_bounded);
        let mut patterns = form.patterns.iter();
        let written = patterns.by_ref().find_map(|one| plain(&one.translated, bound));
        let unsaid = form.patterns.len() - usize::from(written.is_some());
        if unsaid > 0 {
            self.lose(form.origin, "pattern", LossKind::Unenforced);
        }
        let is_pattern = written.is_some();
        let by_format = || Some(Plain::of(format_pattern(form.format.as_deref()?)?));
        if let Some(Plain { pattern, is_wider, open }) = written.or_else(by_format) {
            if is_wider {
                self.lose(form.origin, "pattern", LossKind::Loosened);
            }
            if let Some(max) = open {
                self.lose(form.origin, "pattern", LossKind::Tightened);
                self.bounds.push(AddedBound::new(at, max));
            }
            if pattern::min_length(&pattern) < form.min {
                self.lose(form.origin, "minLength", LossKind::Unenforced);
            }
            // The number of bytes is never below the number of characters.
            if bound.is_none()
                && form.max.is_some_and(|max| pattern::max_length(&pattern).is_none_or(|most| most > max))
            {
                self.lose(form.origin, "maxLength", LossKind::Unenforced);
            }
            if form.format.is_some() {
                let kind = if is_pattern { LossKind::Unenforced } else { LossKind::Loosened };
                self.lose(form.origin, "format", kind);
            }
            out.insert("pattern".to_owned(), json!(pattern));
            return;
        }
        self.format(form, out);
        if !out.contains_key("format") {
            return self.lengths(form, at, out);
        }
        for (keyword, is_set) in
            [("minLength", form.min > 0), ("maxLength", form.max.is_some() && bound.is_none())]
        {
            if is_set {
                self.lose(form.origin, keyword, LossKind::Unenforced);
            }
        }
    }

    fn lengths(&mut self, form: &StringForm, at: &str, out: &mut Map<String, Value>) {
        if !self.profile.lengths.of_strings() {
            for (keyword, is_set) in [("minLength", form.min > 0), ("maxLength", form.max.is_some())] {
                if is_set && form.role == Role::Text && !(form.is_bounded && keyword == "maxLength") {
                    self.lose(form.origin, keyword, LossKind::Unenforced);
                }
            }
            return;
        }
        let (min, max) = self.limited(form.origin, ["minLength", "maxLength"], form.min, form.max);
        if min > 0 {
            out.insert("minLength".to_owned(), json!(min));
        }
        if let Some(max) = max {
            if form.is_bounded {
                self.bounds.push(AddedBound::new(at, max));
            }
            out.insert("maxLength".to_owned(), json!(max));
        }
    }

    fn format(&mut self, form: &StringForm, out: &mut Map<String, Value>) {
        let Some(format) = &form.format else { return };
        if self.profile.formats.contains(&format.as_str()) {
            out.insert("format".to_owned(), json!(format));
            // A grammar does not know leap years, and parts of other formats have lengths that only the length of the
            // whole limits.
            let is_loose = match format.as_str() {
                "date" | "date-time" | "time" => true,
                "email" | "hostname" => !self.profile.lengths.of_strings() || form.max.is_none(),
                _ => false,
            };
            if is_loose {
                self.lose(form.origin, "format", LossKind::Loosened);
            }
        } else {
            self.lose(form.origin, "format", LossKind::Unenforced);
        }
    }

    pub(super) fn number(&mut self, form: &NumberForm) -> Value {
        let kind = if form.integer { "integer" } else { "number" };
        let mut out = Map::from_iter([("type".to_owned(), json!(kind))]);
        for (bound, inclusive, exclusive) in
            [(&form.min, "minimum", "exclusiveMinimum"), (&form.max, "maximum", "exclusiveMaximum")]
        {
            let Some(bound) = bound else { continue };
            let is_said = self.profile.bounds(form.integer) && (self.profile.large_bounds || is_safe(bound));
            let mut keyword = if bound.exclusive { exclusive } else { inclusive };
            if is_said && bound.exclusive && !self.profile.exclusive_bounds {
                self.lose(form.origin, keyword, LossKind::Loosened);
                keyword = inclusive;
            }
            if is_said {
                out.insert(keyword.to_owned(), Value::Number(bound.at.clone()));
            } else {
                self.lose(form.origin, keyword, LossKind::Unenforced);
            }
        }
        if let Some(step) = &form.multiple_of {
            if self.profile.multiple_of {
                out.insert("multipleOf".to_owned(), Value::Number(step.clone()));
            } else {
                self.lose(form.origin, "multipleOf", LossKind::Unenforced);
            }
        }
        Value::Object(out)
    }
}

/// Returns the index of the pattern that a dialect writes.
pub(super) fn written_pattern(form: &StringForm, profile: &Profile) -> Option<usize> {
    match profile.patterns {
        Patterns::Anchored => form.patterns.iter().position(|one| one.is_anchored),
        Patterns::Simple => {
            let has_format = form.format.as_deref().is_some_and(|format| profile.formats.contains(&format));
            let simple = form.patterns.iter().position(|one| pattern::is_simple(&one.source));
            simple.filter(|_| !has_format)
        }
        Patterns::None => None,
        Patterns::All | Patterns::One | Patterns::Plain => (!form.patterns.is_empty()).then_some(0),
    }
}

/// Returns whether every engine reads a bound exactly.
fn is_safe(bound: &Bound) -> bool {
    bound.at.as_f64().is_some_and(|at| at.abs() <= MAX_SAFE)
}

/// Returns patterns for formats that llama.cpp enforces more strictly than RFC 3339: its fractions of a second have
/// three digits.
fn format_pattern(format: &str) -> Option<&'static str> {
    match format {
        "time" => Some(
            r"^([01][0-9]|2[0-3])[\x3A][0-5][0-9][\x3A]([0-5][0-9]|60)([\x2E][0-9]+)?([Zz]|[\x2B\x2D]([01][0-9]|2[0-3])[\x3A][0-5][0-9])$",
        ),
        "date-time" => Some(
            r"^[0-9]{4}[\x2D](0[1-9]|1[0-2])[\x2D](0[1-9]|[12][0-9]|3[01])[Tt]([01][0-9]|2[0-3])[\x3A][0-5][0-9][\x3A]([0-5][0-9]|60)([\x2E][0-9]+)?([Zz]|[\x2B\x2D]([01][0-9]|2[0-3])[\x3A][0-5][0-9])$",
        ),
        _ => None,
    }
}
