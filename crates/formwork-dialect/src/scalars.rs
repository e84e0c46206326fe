use formwork_core::LossKind;
use serde_json::{Number, Value};

use crate::expand::Expander;
use crate::flat::At;
use crate::form::{Bound, NumberForm, Pattern, StringForm};
use crate::pattern;

/// What JSON numbers carry exactly everywhere (RFC 8259 section 6, RFC 7493).
pub(crate) const MAX_SAFE: f64 = 9_007_199_254_740_991.0;

const NUMBER_KEYWORDS: [&str; 5] =
    ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];

/// A count in a schema, which may be written as `3.0`.
pub(crate) fn count(value: &Value) -> Option<u64> {
    let float = || value.as_f64().filter(|float| float.fract() == 0.0 && (0.0..=MAX_SAFE).contains(float));
    value.as_u64().or_else(|| float().map(|float| float as u64))
}

/// The largest of a lower bound in several schemas.
pub(crate) fn most(members: &[At<'_>], keyword: &str) -> u64 {
    members.iter().filter_map(|at| count(at.node.get(keyword)?)).max().unwrap_or(0)
}

/// The smallest of an upper bound in several schemas.
pub(crate) fn least(members: &[At<'_>], keyword: &str) -> Option<u64> {
    members.iter().filter_map(|at| count(at.node.get(keyword)?)).min()
}

impl<'a> Expander<'a> {
    /// What strings satisfy all of these.
    pub(crate) fn string(&mut self, members: &[At<'a>]) -> Option<StringForm> {
        let mut form = StringForm {
            min: most(members, "minLength"),
            max: least(members, "maxLength"),
            origin: members.first().map(|at| self.origin(&at.pointer)).unwrap_or_default(),
            ..StringForm::default()
        };
        for at in members {
            if at.node.get("maxLength").is_some() {
                form.origin = self.origin(&at.pointer);
            }
            if let Some(text) = at.node.get("pattern").and_then(Value::as_str) {
                match pattern::translate(text) {
                    Some(translated) if !form.patterns.iter().any(|known| known.translated == translated) => {
                        form.patterns.push(Pattern { source: text.to_owned(), translated });
                    }
                    Some(_) => {}
                    None => self.lose(&at.pointer, "pattern", LossKind::Unenforced),
                }
            }
            if let Some(name) = at.node.get("format").and_then(Value::as_str) {
                match &form.format {
                    None => form.format = Some(name.to_owned()),
                    Some(known) if known == name => {}
                    Some(_) => self.lose(&at.pointer, "format", LossKind::Unenforced),
                }
            }
        }
        form.max.is_none_or(|max| form.min <= max).then_some(form)
    }

    /// What numbers satisfy all of these.
    pub(crate) fn number(&mut self, members: &[At<'a>], integer: bool) -> Option<NumberForm> {
        let speaks = |at: &&At<'a>| NUMBER_KEYWORDS.iter().any(|keyword| at.node.get(*keyword).is_some());
        let origin = members.iter().find(speaks).map(|at| self.origin(&at.pointer));
        let mut form = NumberForm { integer, origin: origin.unwrap_or_default(), ..NumberForm::default() };
        for at in members {
            let bound = |keyword: &str| at.node.get(keyword).and_then(Value::as_f64);
            for keyword in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
                if integer && bound(keyword).is_some_and(|limit| limit.abs() > MAX_SAFE) {
                    self.lose(&at.pointer, keyword, LossKind::Tightened);
                }
            }
            for (keyword, exclusive) in [("minimum", false), ("exclusiveMinimum", true)] {
                if let Some(limit) = bound(keyword) {
                    let new = Bound { at: limit, exclusive };
                    form.min = Some(form.min.map_or(new, |old| tighter(old, new, old.at > limit)));
                }
            }
            for (keyword, exclusive) in [("maximum", false), ("exclusiveMaximum", true)] {
                if let Some(limit) = bound(keyword) {
                    let new = Bound { at: limit, exclusive };
                    form.max = Some(form.max.map_or(new, |old| tighter(old, new, old.at < limit)));
                }
            }
            if let Some(step) = at.node.get("multipleOf").and_then(Value::as_number) {
                match &form.multiple_of {
                    None => form.multiple_of = Some(step.clone()),
                    Some(known) => match common_multiple(known, step) {
                        Some(common) => form.multiple_of = Some(common),
                        None => self.lose(&at.pointer, "multipleOf", LossKind::Unenforced),
                    },
                }
            }
        }
        if integer {
            form.min = form.min.map(|bound| inclusive(bound, 1.0));
            form.max = form.max.map(|bound| inclusive(bound, -1.0));
        }
        is_possible(&form).then_some(form)
    }
}

fn tighter(old: Bound, new: Bound, old_wins: bool) -> Bound {
    if old.at == new.at {
        return Bound { at: old.at, exclusive: old.exclusive || new.exclusive };
    }
    if old_wins { old } else { new }
}

/// An integer bound that may be reached; `step` leads into the range.
fn inclusive(bound: Bound, step: f64) -> Bound {
    let rounded = if step > 0.0 { bound.at.ceil() } else { bound.at.floor() };
    let at = if bound.exclusive && rounded == bound.at { rounded + step } else { rounded };
    Bound { at, exclusive: false }
}

fn is_possible(form: &NumberForm) -> bool {
    let (Some(min), Some(max)) = (form.min, form.max) else { return true };
    let open = min.exclusive || max.exclusive;
    if min.at > max.at || (min.at == max.at && open) {
        return false;
    }
    let Some(step) = form.multiple_of.as_ref().and_then(Number::as_f64).filter(|step| *step > 0.0) else {
        return true;
    };
    // Enough for the usual bounds; what rounds wrongly here is found by whoever compiles the schema.
    (max.at / step).floor() * step >= min.at
}

/// The least common multiple of two steps, where both are integers.
fn common_multiple(one: &Number, other: &Number) -> Option<Number> {
    let (one, other) = (one.as_u64()?, other.as_u64()?);
    let (mut a, mut b) = (one, other);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    one.checked_div(a)?.checked_mul(other).map(Number::from)
}
