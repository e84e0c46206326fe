//! Bounds values that a schema leaves unbounded, so that the longest document fits into the token budget.
//!
//! The bounds are for models that the registry marks as tiny, and for a target that ran away with this schema. An
//! answer that is full at such a bound counts as incomplete. Numbers have no bounds, because a bound would change them, and
//! lengths of strings only where they are enforced, because a described length would shorten the text.

use formwork_core::{LossKind, LowerRequest, Size};

use crate::expand::Losses;
use crate::form::{
    Alternative, ArrayForm, Bound, FormId, Forms, NumberForm, ObjectForm, Pattern, Role, Shape, StringForm,
};
use crate::pattern;
use crate::profile::Profile;

/// The number of characters per token of prose, for models with a small vocabulary.
const CHARACTERS_PER_TOKEN: f64 = 3.0;

/// The maximum number of characters of a name that is not enumerated.
const MAX_NAME: u64 = 32;

/// Bounds strings, arrays and maps that do not fit into the token limit of a request.
pub(crate) fn bound(forms: &mut Forms, profile: &Profile, request: &LowerRequest<'_>, losses: &mut Losses) {
    let caps = Caps::fitting(forms, profile, request);
    let has_lengths = profile.lengths.of_strings();
    for id in forms.ids() {
        let mut alternatives = std::mem::take(&mut forms.get_mut(id).alternatives);
        // Types that the schema only allows implicitly would not keep a model short.
        if alternatives.iter().any(|alternative| !alternative.is_unsaid) {
            alternatives.retain(|alternative| {
                if alternative.is_unsaid {
                    losses.insert((
                        forms.places.pointer(origin(&alternative.shape)),
                        "type".to_owned(),
                        LossKind::Tightened,
                    ));
                }
                !alternative.is_unsaid
            });
        }
        for alternative in &mut alternatives {
            if matches!(alternative.shape, Shape::String(_)) && !has_lengths {
                continue;
            }
            let Some((keyword, origin)) = caps.apply(&mut alternative.shape) else { continue };
            losses.insert((forms.places.pointer(origin), keyword.to_owned(), LossKind::Tightened));
        }
        forms.get_mut(id).alternatives = alternatives;
    }
}

fn origin(shape: &Shape) -> crate::place::PlaceId {
    match shape {
        Shape::Array(array) => array.origin,
        Shape::Object(object) => object.origin,
        Shape::String(string) => string.origin,
        _ => crate::place::PlaceId::default(),
    }
}

/// The bounds of strings and arrays without tighter ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Caps {
    items: u64,
    /// The maximum number of characters.
    text: u64,
    /// The lengths that are allowed in any case.
    at_least: Size,
}

impl Caps {
    /// Returns the widest bounds with which the longest document fits; the narrowest ones if none does. They are never below
    /// the lengths that the request allows in any case.
    fn fitting(forms: &Forms, profile: &Profile, request: &LowerRequest<'_>) -> Self {
        let (token_budget, at_least) = (&profile.token_budget, request.at_least);
        let tokens = f64::from(request.max_tokens.unwrap_or(token_budget.tokens));
        let fits = |caps: Self| {
            let known = vec![None; forms.len()];
            Estimate { forms, caps, known }.form(forms.root, 0) <= tokens
        };
        let steps =
            token_budget.ladder.iter().map(|(items, text)| Self { items: *items, text: *text, at_least });
        let narrowest = steps.clone().next_back();
        let mut caps = steps.into_iter().find(|caps| fits(*caps)).or(narrowest).unwrap_or(Self {
            items: 1,
            text: 16,
            at_least,
        });
        // The rest of the budget goes to the strings.
        while caps.text < token_budget.text && fits(Self { text: caps.text + caps.text / 4, ..caps }) {
            caps.text += caps.text / 4;
        }
        caps.text = caps.text.min(token_budget.text).max(at_least.text);
        caps.items = caps.items.max(at_least.items);
        caps
    }

    /// Bounds a value; returns the keyword that became tighter, if any.
    fn apply(self, shape: &mut Shape) -> Option<(&'static str, crate::place::PlaceId)> {
        match shape {
            Shape::String(string) => {
                let max = self.string(string);
                let is_tighter = max != string.max;
                string.is_bounded |= is_tighter;
                string.max = max;
                // A name, or JSON in a string, has no length in the original.
                (is_tighter && string.role == Role::Text).then_some(("maxLength", string.origin))
            }
            Shape::Array(array) => {
                let max = Some(self.array(array));
                let is_tighter = max != array.max;
                array.is_bounded |= is_tighter;
                array.max = max;
                is_tighter.then_some(("maxItems", array.origin))
            }
            Shape::Object(object) if !object.extras.is_empty() => {
                if !object.properties.iter().all(|property| property.required) {
                    // Optional members and others cannot be counted together.
                    object.extras.clear();
                    return Some(("additionalProperties", object.origin));
                }
                // A pattern beside others may overlap with them.
                if let [extra] = object.extras.as_mut_slice()
                    && object.properties.is_empty()
                {
                    extra.pattern.get_or_insert_with(|| short_name(MAX_NAME.max(self.at_least.name)));
                }
                let max = Some(object.properties.len() as u64 + self.extras(object));
                let is_tighter = max != object.max;
                object.is_bounded |= is_tighter;
                object.max = max;
                is_tighter.then_some(("maxProperties", object.origin))
            }
            _ => None,
        }
    }

    /// Returns the maximum number of characters of a string; the schema's own if its pattern or format limits it.
    fn string(self, form: &StringForm) -> Option<u64> {
        let bounded = form.patterns.iter().filter_map(|one| pattern::max_length(&one.translated)).min();
        if form.format.as_deref().is_some_and(is_short) || bounded.is_some_and(|bound| bound <= self.text) {
            return form.max;
        }
        let needed = form.patterns.iter().map(|one| pattern::min_length(&one.translated)).max().unwrap_or(0);
        let cap = match (form.role, form.format.as_deref()) {
            (Role::Name, _) => MAX_NAME.max(self.at_least.name),
            (_, None) => self.text,
            (_, Some("uri")) => self.text.max(64),
            // Longer ones violate the rules of these formats about their parts (64 characters before an `@`).
            (_, Some(_)) => self.at_least.text.max(64),
        };
        Some(form.max.unwrap_or(u64::MAX).min(cap.max(form.min).max(needed)))
    }

    /// Returns the maximum number of items of an array.
    fn array(self, form: &ArrayForm) -> u64 {
        let cap = (form.prefix.len() as u64).max(self.items).max(form.min);
        form.max.unwrap_or(u64::MAX).min(cap)
    }

    /// Returns the maximum number of members of an object whose names are not enumerated.
    fn extras(self, form: &ObjectForm) -> u64 {
        if form.extras.is_empty() {
            return 0;
        }
        let named = form.properties.len() as u64;
        let cap = self.items.max(form.min.saturating_sub(named));
        form.max.map_or(cap, |max| cap.min(max.saturating_sub(named)))
    }
}

/// Returns a pattern for names that are not empty and have at most `max` characters.
fn short_name(max: u64) -> Pattern {
    let translated = format!(r"^[\x00-\x{{10FFFF}}]{{1,{max}}}$");
    Pattern { source: format!("^.{{1,{max}}}$"), translated, is_anchored: true }
}

/// Returns whether a format limits the length of its strings.
fn is_short(format: &str) -> bool {
    matches!(format, "date" | "uuid" | "ipv4" | "ipv6")
}

/// Estimates the tokens of the longest document. Recursion counts once.
struct Estimate<'f> {
    forms: &'f Forms,
    caps: Caps,
    known: Vec<Option<f64>>,
}

/// The depth from which documents are not estimated, because they are too long in any case.
const MAX_DEPTH: usize = 200;

impl Estimate<'_> {
    fn form(&mut self, id: FormId, depth: usize) -> f64 {
        if let Some(known) = self.known[id.index()] {
            return known;
        }
        if depth > MAX_DEPTH {
            return f64::INFINITY;
        }
        self.known[id.index()] = Some(0.0);
        let forms = self.forms;
        let alternatives = forms[id].alternatives.iter();
        let most =
            alternatives.map(|alternative| self.alternative(alternative, depth + 1)).fold(0.0, f64::max);
        self.known[id.index()] = Some(most);
        most
    }

    fn alternative(&mut self, alternative: &Alternative, depth: usize) -> f64 {
        match &alternative.shape {
            Shape::Any => self.caps.items as f64 * self.text(self.caps.text.min(MAX_NAME)),
            Shape::Same(inner) => self.form(*inner, depth),
            Shape::Literals(literals) => {
                let length = |value: &serde_json::Value| value.to_string().len() as f64 / 2.0;
                literals.values.iter().map(|literal| length(&literal.value)).fold(1.0, f64::max)
            }
            Shape::Null | Shape::Boolean => 1.0,
            Shape::Number(number) => digits(number),
            Shape::String(string) => self.text(self.caps.string(string).unwrap_or(40)),
            Shape::Array(array) => self.array(array, depth),
            Shape::Object(object) => self.object(object, depth),
        }
    }

    fn text(&self, characters: u64) -> f64 {
        characters as f64 / CHARACTERS_PER_TOKEN + 2.0
    }

    fn array(&mut self, array: &ArrayForm, depth: usize) -> f64 {
        let most = self.caps.array(array);
        let prefix: f64 = array.prefix.iter().map(|item| self.form(item.form, depth) + 1.0).sum();
        let rest = array.items.as_ref().map_or(0.0, |items| self.form(items.form, depth) + 1.0);
        2.0 + prefix + rest * most.saturating_sub(array.prefix.len() as u64) as f64
    }

    fn object(&mut self, object: &ObjectForm, depth: usize) -> f64 {
        let mut named = 0.0;
        for property in &object.properties {
            named += property.name.len() as f64 / 2.0 + 3.0 + self.form(property.value.form, depth);
        }
        let extra = object.extras.iter().map(|extra| self.form(extra.value.form, depth)).fold(0.0, f64::max);
        let extras = self.caps.extras(object) as f64 * (MAX_NAME as f64 / CHARACTERS_PER_TOKEN + 4.0 + extra);
        2.0 + named + extras
    }
}

/// Returns the number of tokens of a number: small models' vocabularies have one per digit.
fn digits(number: &NumberForm) -> f64 {
    let wide = |bound: &Option<Bound>| {
        let at = bound.as_ref().and_then(|bound| bound.at.as_f64());
        at.map_or(6.0, |at| at.abs().max(1.0).log10().floor() + 1.0)
    };
    let whole = wide(&number.min).max(wide(&number.max)).min(16.0);
    if number.integer { whole + 1.0 } else { whole + 5.0 }
}
