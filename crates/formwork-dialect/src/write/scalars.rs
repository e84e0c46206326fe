use formwork_core::LossKind;
use serde_json::{Map, Value, json};

use super::Writer;
use crate::form::{Bound, Literals, NumberForm, Role, StringForm};
use crate::pattern;
use crate::plain::{Plain, plain};
use crate::profile::{Lengths, Patterns};
use crate::scalars::MAX_SAFE;

impl Writer<'_> {
    pub(super) fn literals(&mut self, literals: &Literals) -> Value {
        let Literals { values, origin } = literals;
        if values.len() > self.most_values {
            self.lose(origin, "enum", LossKind::Loosened);
        }
        if !self.profile.typed_literals {
            return match values.as_slice() {
                [one] => json!({"const": one}),
                _ => json!({"enum": values}),
            };
        }
        let mut kinds: Vec<(&str, Vec<&Value>)> = Vec::new();
        for value in values {
            let kind = kind_of(value);
            match kinds.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, values)) => values.push(value),
                None => kinds.push((kind, vec![value])),
            }
        }
        let is_long = values.len() > self.most_values;
        let written = kinds.into_iter().map(|(kind, values)| match kind {
            "null" => json!({"type": kind}),
            "boolean" if values.len() == 2 => json!({"type": kind}),
            _ if is_long => json!({"type": kind}),
            _ => json!({"type": kind, "enum": values}),
        });
        let mut written: Vec<Value> = written.collect();
        if written.len() == 1 { written.swap_remove(0) } else { json!({"anyOf": written}) }
    }

    pub(super) fn string(&mut self, form: &StringForm) -> Value {
        let mut out = Map::from_iter([("type".to_owned(), json!("string"))]);
        match self.profile.patterns {
            Patterns::All => {
                self.lengths(form, &mut out);
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
            Patterns::One => {
                self.lengths(form, &mut out);
                self.format(form, &mut out);
                if let Some(one) = form.patterns.first() {
                    out.insert("pattern".to_owned(), json!(one.source));
                }
                if form.patterns.len() > 1 {
                    self.lose(&form.origin, "pattern", LossKind::Unenforced);
                }
            }
            Patterns::Plain => self.either(form, &mut out),
        }
        Value::Object(out)
    }

    /// A pattern, a format or lengths: the first of them is all that counts.
    fn either(&mut self, form: &StringForm, out: &mut Map<String, Value>) {
        let room = form.max.unwrap_or(u64::MAX).min(self.caps.text);
        let mut patterns = form.patterns.iter();
        let written = patterns.by_ref().find_map(|one| plain(&one.translated, room));
        let unsaid = form.patterns.len() - usize::from(written.is_some());
        if unsaid > 0 {
            self.lose(&form.origin, "pattern", LossKind::Unenforced);
        }
        if let Some(Plain { pattern, narrowed }) = written {
            if narrowed && form.role == Role::Text {
                self.lose(&form.origin, "pattern", LossKind::Tightened);
            }
            if pattern::min_length(&pattern) < form.min {
                self.lose(&form.origin, "minLength", LossKind::Unenforced);
            }
            // Bytes are never fewer than characters.
            if form.max.is_some_and(|max| pattern::max_length(&pattern).is_none_or(|most| most > max)) {
                self.lose(&form.origin, "maxLength", LossKind::Unenforced);
            }
            if form.format.is_some() {
                self.lose(&form.origin, "format", LossKind::Unenforced);
            }
            out.insert("pattern".to_owned(), json!(pattern));
            return;
        }
        self.format(form, out);
        if !out.contains_key("format") {
            return self.lengths(form, out);
        }
        for (keyword, said) in [("minLength", form.min > 0), ("maxLength", form.max.is_some())] {
            if said {
                self.lose(&form.origin, keyword, LossKind::Unenforced);
            }
        }
    }

    fn lengths(&mut self, form: &StringForm, out: &mut Map<String, Value>) {
        let is_text = form.role == Role::Text;
        if self.profile.lengths == Lengths::ListsOnly {
            for (keyword, said) in [("minLength", form.min > 0), ("maxLength", form.max.is_some())] {
                if said && is_text {
                    self.lose(&form.origin, keyword, LossKind::Unenforced);
                }
            }
            return;
        }
        let limit = self.limit();
        let (mut min, mut max) = (form.min, self.caps.string(form));
        if min > limit {
            self.lose(&form.origin, "minLength", LossKind::Loosened);
            (min, max) = (limit, None);
        }
        if min > 0 {
            out.insert("minLength".to_owned(), json!(min));
        }
        if let Some(max) = max.map(|max| max.min(limit)) {
            if is_text && form.max.is_none_or(|original| max < original) {
                self.lose(&form.origin, "maxLength", LossKind::Tightened);
            }
            out.insert("maxLength".to_owned(), json!(max));
        }
    }

    fn format(&mut self, form: &StringForm, out: &mut Map<String, Value>) {
        let Some(format) = &form.format else { return };
        if self.profile.formats.contains(&format.as_str()) {
            out.insert("format".to_owned(), json!(format));
            // Their parts have a length, which only the length of the whole keeps.
            if self.profile.lengths == Lengths::ListsOnly && matches!(format.as_str(), "email" | "hostname") {
                self.lose(&form.origin, "format", LossKind::Loosened);
            }
        } else {
            self.lose(&form.origin, "format", LossKind::Unenforced);
        }
    }

    pub(super) fn number(&mut self, form: &NumberForm) -> Value {
        let kind = if form.integer { "integer" } else { "number" };
        let mut out = Map::from_iter([("type".to_owned(), json!(kind))]);
        let (mut min, mut max) = (form.min, form.max);
        if form.integer {
            let guard =
                |limit: f64| self.profile.guards_integers.then_some(Bound { at: limit, exclusive: false });
            let safe = |bound: Option<Bound>, limit: f64| match bound {
                Some(bound) if bound.at.abs() <= MAX_SAFE => Some(bound),
                // Digits without end are what a small model writes when nothing stops it.
                _ => guard(limit),
            };
            (min, max) = (safe(min, -MAX_SAFE), safe(max, MAX_SAFE));
        }
        for (bound, plain, exclusive) in
            [(min, "minimum", "exclusiveMinimum"), (max, "maximum", "exclusiveMaximum")]
        {
            let Some(bound) = bound else { continue };
            let keyword = if bound.exclusive { exclusive } else { plain };
            if form.integer || self.profile.number_bounds {
                out.insert(keyword.to_owned(), write_bound(bound.at));
            } else {
                self.lose(&form.origin, keyword, LossKind::Unenforced);
            }
        }
        if let Some(step) = &form.multiple_of {
            if self.profile.multiple_of {
                out.insert("multipleOf".to_owned(), Value::Number(step.clone()));
            } else {
                self.lose(&form.origin, "multipleOf", LossKind::Unenforced);
            }
        }
        Value::Object(out)
    }

    fn lose(&mut self, origin: &str, keyword: &str, kind: LossKind) {
        self.losses.insert((origin.to_owned(), keyword.to_owned(), kind));
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn write_bound(at: f64) -> Value {
    if at.fract() == 0.0 && at.abs() <= MAX_SAFE { json!(at as i64) } else { json!(at) }
}
