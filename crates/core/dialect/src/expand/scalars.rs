//! Strings and numbers.

use std::cmp::Ordering;

use formwork_core::LossKind;
use formwork_json::compare;
use serde_json::{Number, Value};

use super::Expander;
use super::flat::At;
use crate::form::{Bound, NumberForm, StringForm};
use crate::pattern;

/// The largest integer that every JSON parser represents exactly (RFC 8259 section 6, RFC 7493).
pub(crate) const MAX_SAFE: f64 = 9_007_199_254_740_991.0;

/// Returns a count of a schema, which can be written as `3.0`.
pub(crate) fn count(value: &Value) -> Option<u64> {
    let float = || value.as_f64().filter(|float| float.fract() == 0.0 && (0.0..=MAX_SAFE).contains(float));
    value.as_u64().or_else(|| float().map(|float| float as u64))
}

/// Returns the number of a keyword.
pub(super) fn number_of<'a>(node: &'a Value, keyword: &str) -> Option<&'a Number> {
    node.get(keyword).and_then(Value::as_number)
}

/// Returns the largest lower bound of several schemas.
pub(super) fn largest(members: &[At<'_>], keyword: &str) -> u64 {
    members.iter().filter_map(|at| count(at.node.get(keyword)?)).max().unwrap_or(0)
}

/// Returns the smallest upper bound of several schemas.
pub(super) fn smallest(members: &[At<'_>], keyword: &str) -> Option<u64> {
    members.iter().filter_map(|at| count(at.node.get(keyword)?)).min()
}

impl<'a> Expander<'a> {
    /// Returns the strings that satisfy all of these schemas.
    pub(super) fn string(&mut self, members: &[At<'a>]) -> Option<StringForm> {
        let mut form = StringForm {
            min: largest(members, "minLength"),
            max: smallest(members, "maxLength"),
            origin: members.first().map(|at| at.place).unwrap_or_default(),
            ..StringForm::default()
        };
        for at in members {
            if at.node.get("maxLength").is_some() {
                form.origin = at.place;
            }
            if let Some(text) = at.node.get("pattern").and_then(Value::as_str) {
                match pattern::translate(text) {
                    Some(pattern)
                        if !form.patterns.iter().any(|known| known.translated == pattern.translated) =>
                    {
                        form.patterns.push(pattern);
                    }
                    Some(_) => {}
                    None => self.lose(at.place, "pattern", LossKind::Unenforced),
                }
            }
            if let Some(name) = at.node.get("format").and_then(Value::as_str) {
                match &form.format {
                    None => form.format = Some(name.to_owned()),
                    Some(known) if known == name => {}
                    Some(_) => self.lose(at.place, "format", LossKind::Unenforced),
                }
            }
        }
        form.max.is_none_or(|max| form.min <= max).then_some(form)
    }

    /// Returns the numbers that satisfy all of these schemas.
    pub(super) fn number(&mut self, members: &[At<'a>], integer: bool) -> Option<NumberForm> {
        const BOUNDS: [(&str, bool, Ordering); 4] = [
            ("minimum", false, Ordering::Greater),
            ("exclusiveMinimum", true, Ordering::Greater),
            ("maximum", false, Ordering::Less),
            ("exclusiveMaximum", true, Ordering::Less),
        ];
        let speaks = |at: &&At<'a>| {
            BOUNDS.iter().any(|(keyword, ..)| at.node.get(*keyword).is_some())
                || at.node.get("multipleOf").is_some()
        };
        let origin = members.iter().find(speaks).map(|at| at.place).unwrap_or_default();
        let mut form = NumberForm { integer, origin, ..NumberForm::default() };
        for at in members {
            for (keyword, exclusive, tighter) in BOUNDS {
                let Some(limit) = number_of(at.node, keyword) else { continue };
                let mut new = Bound { at: limit.clone(), exclusive };
                if integer {
                    new = whole(new, tighter);
                }
                let slot = if tighter == Ordering::Greater { &mut form.min } else { &mut form.max };
                let wins = slot.as_ref().is_none_or(|old| match compare(&new.at, &old.at) {
                    Ordering::Equal => new.exclusive,
                    order => order == tighter,
                });
                if wins {
                    *slot = Some(new);
                }
            }
            if let Some(step) = number_of(at.node, "multipleOf") {
                match &form.multiple_of {
                    None => form.multiple_of = Some(step.clone()),
                    Some(known) => match common_multiple(known, step) {
                        Some(common) => form.multiple_of = Some(common),
                        None => self.lose(at.place, "multipleOf", LossKind::Unenforced),
                    },
                }
            }
        }
        is_possible(&form).then_some(form)
    }
}

/// Returns the equivalent inclusive bound of integers.
fn whole(bound: Bound, inwards: Ordering) -> Bound {
    let step: i128 = if inwards == Ordering::Greater { 1 } else { -1 };
    let at = match bound.at.as_i128() {
        Some(at) => at + if bound.exclusive { step } else { 0 },
        None => {
            let float = bound.at.as_f64().unwrap_or_default();
            let rounded = if step > 0 { float.ceil() } else { float.floor() };
            if rounded.abs() > MAX_SAFE {
                return bound;
            }
            rounded as i128 + if bound.exclusive && rounded == float { step } else { 0 }
        }
    };
    let number = i64::try_from(at).map(Number::from).or_else(|_| u64::try_from(at).map(Number::from));
    match number {
        Ok(at) => Bound { at, exclusive: false },
        Err(_) => bound,
    }
}

/// Returns `false` if no number within these bounds exists.
fn is_possible(form: &NumberForm) -> bool {
    let (Some(min), Some(max)) = (&form.min, &form.max) else { return true };
    match compare(&min.at, &max.at) {
        Ordering::Greater => return false,
        Ordering::Equal if min.exclusive || max.exclusive => return false,
        _ => {}
    }
    // Multiples of fractions are not exact in floats, so they prove nothing.
    let whole = |number: &Number| number.as_i128();
    match (whole(&min.at), whole(&max.at), form.multiple_of.as_ref().and_then(whole)) {
        (Some(min), Some(max), Some(step)) if step > 0 => max.div_euclid(step) * step >= min,
        _ => true,
    }
}

/// Returns the least common multiple of two integer steps.
fn common_multiple(one: &Number, other: &Number) -> Option<Number> {
    let (one, other) = (one.as_u64()?, other.as_u64()?);
    let (mut a, mut b) = (one, other);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    one.checked_div(a)?.checked_mul(other).map(Number::from)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn number(value: Value) -> Number {
        value.as_number().cloned().unwrap_or_else(|| Number::from(0))
    }

    #[test]
    fn bounds_of_integers_become_whole_and_never_tighter() {
        let up = |at: Value, exclusive| whole(Bound { at: number(at), exclusive }, Ordering::Greater);
        let down = |at: Value, exclusive| whole(Bound { at: number(at), exclusive }, Ordering::Less);
        let inclusive = |at: Value| Bound { at: number(at), exclusive: false };
        assert_eq!(up(json!(0.5), false), inclusive(json!(1)));
        assert_eq!(up(json!(0.5), true), inclusive(json!(1)));
        assert_eq!(up(json!(1), true), inclusive(json!(2)));
        assert_eq!(up(json!(1.0), true), inclusive(json!(2)));
        assert_eq!(down(json!(-0.5), false), inclusive(json!(-1)));
        assert_eq!(down(json!(i64::MIN), true), Bound { at: number(json!(i64::MIN)), exclusive: true });
        assert_eq!(up(json!(1e300), false), inclusive(json!(1e300)));
    }
}
