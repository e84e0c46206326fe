//! Adds annotations, and unenforced constraints as text, to a schema, for models that get no other description.

use std::borrow::Cow;
use std::fmt::Write as _;

use formwork_core::{Lift, cut, spaced};
use serde_json::{Value, json};

use super::scalars::written_pattern;
use crate::form::{Alternative, ArrayForm, Literals, Notes, NumberForm, Role, Shape, StringForm};
use crate::profile::{Lengths, Profile};

/// The maximum number of characters of a list of values that is too long to be enforced and is described instead.
const MAX_LISTED: usize = 4000;

/// The maximum number of characters of a default value or of the examples.
const MAX_EXAMPLES: usize = 400;

/// Adds the annotations of a place, and the unenforced constraints of these alternatives, to its schema.
pub(super) fn annotate(
    schema: &mut Value,
    notes: &Notes,
    alternatives: &[Alternative],
    profile: &Profile,
    most_values: usize,
) {
    let Value::Object(keywords) = schema else { return };
    let mut parts = Vec::new();
    if let Some(annotations) = notes.get() {
        if let Some(title) = &annotations.title {
            keywords.insert("title".to_owned(), json!(title));
        }
        parts.extend(annotations.description.clone());
        // No strict mode accepts these keywords.
        if let Some(default) = &annotations.default {
            parts.push(format!("(Default: {}.)", short(&spaced(default))));
        }
        match annotations.examples.as_slice() {
            [] => {}
            [one] => parts.push(format!("(Example: {}.)", short(&spaced(one)))),
            several => {
                let listed: Vec<_> = several.iter().map(spaced).collect();
                parts.push(format!("(Examples: {}.)", short(&listed.join(", "))));
            }
        }
    }
    for alternative in alternatives {
        unsaid(alternative, profile, most_values, &mut parts);
    }
    if !parts.is_empty() {
        keywords.insert("description".to_owned(), Value::from(parts.join(" ")));
    }
}

fn short(text: &str) -> Cow<'_, str> {
    cut(text, MAX_EXAMPLES)
}

fn unsaid(alternative: &Alternative, profile: &Profile, most_values: usize, parts: &mut Vec<String>) {
    match &alternative.shape {
        Shape::String(string) => strings(string, profile, parts),
        Shape::Literals(literals) => values(literals, most_values, parts),
        Shape::Number(number) => numbers(number, profile, parts),
        Shape::Array(array) => lists(array, profile, parts),
        _ => {}
    }
    if alternative.lifts.contains(&Lift::PairsToMap) {
        parts.push("(Each key once.)".to_owned());
    }
}

fn values(literals: &Literals, most_values: usize, parts: &mut Vec<String>) {
    let is_long = literals.values.len() > most_values;
    if !is_long && literals.values.iter().all(|literal| literal.description.is_none()) {
        return;
    }
    let mut listed = String::from(if is_long { "(One of" } else { "(" });
    for literal in &literals.values {
        if listed.len() > MAX_LISTED {
            listed.push('…');
            break;
        }
        if !listed.ends_with(['(', 'f']) {
            listed.push(if literal.description.is_some() { ';' } else { ',' });
        }
        if !listed.ends_with('(') {
            listed.push(' ');
        }
        listed.push_str(&spaced(&literal.value));
        if let Some(description) = &literal.description {
            let _ = write!(listed, ": {}", description.trim().trim_end_matches('.'));
        }
    }
    parts.push(format!("{listed}.)"));
}

fn strings(string: &StringForm, profile: &Profile, parts: &mut Vec<String>) {
    if string.role == Role::Json {
        parts.push(match &string.holds {
            Some(outline) => format!("(JSON, as text: {})", short(outline)),
            None => "(JSON, as text.)".to_owned(),
        });
    }
    if string.role != Role::Text {
        return;
    }
    if !profile.lengths.of_strings() {
        match (string.min, string.max) {
            (0, None) => {}
            (0, Some(max)) => parts.push(format!("(At most {max} characters.)")),
            (min, None) => parts.push(format!("(At least {min} characters.)")),
            (min, Some(max)) => parts.push(format!("({min} to {max} characters.)")),
        }
    }
    if let Some(format) = string.format.as_deref().filter(|format| !profile.formats.contains(format)) {
        parts.push(format!("(Format: {format}.)"));
    }
    let written = written_pattern(string, profile);
    for (_, pattern) in string.patterns.iter().enumerate().filter(|(index, _)| Some(*index) != written) {
        parts.push(format!("(Matches {}.)", pattern.source));
    }
}

fn numbers(number: &NumberForm, profile: &Profile, parts: &mut Vec<String>) {
    if !profile.bounds(number.integer) {
        let bounds = [(&number.min, "more than", "at least"), (&number.max, "less than", "at most")];
        let phrases = bounds.into_iter().filter_map(|(bound, exclusive, inclusive)| {
            let bound = bound.as_ref()?;
            Some(format!("{} {}", if bound.exclusive { exclusive } else { inclusive }, bound.at))
        });
        let phrases: Vec<String> = phrases.collect();
        if !phrases.is_empty() {
            parts.push(format!("(Number: {}.)", phrases.join(", ")));
        }
    } else if !profile.exclusive_bounds {
        for (bound, words) in [(&number.min, "Greater than"), (&number.max, "Less than")] {
            let bound = bound.as_ref().filter(|bound| bound.exclusive);
            parts.extend(bound.map(|bound| format!("({words} {}.)", bound.at)));
        }
    }
    let step = number.multiple_of.as_ref().filter(|_| !profile.multiple_of);
    parts.extend(step.map(|step| format!("(A multiple of {step}.)")));
}

fn lists(array: &ArrayForm, profile: &Profile, parts: &mut Vec<String>) {
    if profile.lengths.of_lists() {
        return;
    }
    match (array.min, array.max) {
        (0, None) => {}
        (1, None) if profile.lengths == Lengths::NotEmpty => {}
        (min, Some(max)) if min == max => parts.push(format!("(Exactly {max} items.)")),
        (0, Some(max)) => parts.push(format!("(At most {max} items.)")),
        (min, None) => parts.push(format!("(At least {min} items.)")),
        (min, Some(max)) => parts.push(format!("({min} to {max} items.)")),
    }
}
