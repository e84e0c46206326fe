//! Words beside a schema, for who is shown nothing else: descriptions, and what the dialect does not enforce.

use formwork_core::{Lift, spaced};

use crate::form::{Alternative, Form, Role, StringForm};
use crate::profile::{Lengths, Profile};

/// The most characters of the values that are written in words because they are too many to be enforced.
const MAX_LISTED: usize = 4000;

/// What a form means beyond what is written; `None` if nothing.
pub(super) fn words(form: &Form, profile: &Profile, most_values: usize) -> Option<String> {
    let mut parts: Vec<String> = form.description.clone().into_iter().collect();
    for alternative in &form.alternatives {
        unsaid(alternative, profile, most_values, &mut parts);
    }
    (!parts.is_empty()).then(|| parts.join(" "))
}

fn unsaid(alternative: &Alternative, profile: &Profile, most_values: usize, parts: &mut Vec<String>) {
    match alternative {
        Alternative::String(string) => strings(string, profile, parts),
        Alternative::Literals(literals) if literals.values.len() > most_values => {
            let mut listed = String::from("(One of ");
            for value in &literals.values {
                if listed.len() > MAX_LISTED {
                    listed.push('…');
                    break;
                }
                if !listed.ends_with("of ") {
                    listed.push_str(", ");
                }
                listed.push_str(&spaced(value));
            }
            parts.push(format!("{listed}.)"));
        }
        Alternative::Mapped(sent, lifts) => {
            unsaid(sent, profile, most_values, parts);
            if lifts.contains(&Lift::PairsToMap) {
                parts.push("(Each key once.)".to_owned());
            }
        }
        _ => {}
    }
}

fn strings(string: &StringForm, profile: &Profile, parts: &mut Vec<String>) {
    if string.role == Role::Json {
        parts.push(match &string.holds {
            Some(outline) => format!("(JSON, as text: {outline})"),
            None => "(JSON, as text.)".to_owned(),
        });
    }
    if string.role != Role::Text {
        return;
    }
    if profile.lengths == Lengths::ListsOnly {
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
    for pattern in string.patterns.iter().skip(1) {
        parts.push(format!("(Matches {}.)", pattern.source));
    }
}
