//! The features of schemas that the rules of several dialects are about.

use serde_json::Value;

use super::Place;
use crate::plain::is_plain;

/// The bounds of numbers.
pub(crate) const BOUNDS: &[&str] = &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];

/// The keywords about numbers.
pub(crate) const NUMBERS: &[&str] =
    &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];

pub(crate) fn has(place: &Place<'_>, keyword: &str) -> bool {
    place.has(keyword)
}

pub(crate) fn is_boolean(place: &Place<'_>, _: &str) -> bool {
    place.schema.is_boolean()
}

pub(crate) fn beside_properties(place: &Place<'_>, keyword: &str) -> bool {
    place.has(keyword) && place.has("properties")
}

pub(crate) fn has_several(place: &Place<'_>, keyword: &str) -> bool {
    place.get(keyword).and_then(Value::as_array).is_some_and(|schemas| schemas.len() > 1)
}

pub(crate) fn is_remote(place: &Place<'_>, keyword: &str) -> bool {
    place.text(keyword).is_some_and(|reference| !reference.starts_with('#'))
}

pub(crate) fn is_whole_document(place: &Place<'_>, keyword: &str) -> bool {
    place.text(keyword) == Some("#")
}

pub(crate) fn is_anchor(place: &Place<'_>, keyword: &str) -> bool {
    place
        .text(keyword)
        .and_then(|reference| reference.strip_prefix('#'))
        .is_some_and(|name| !name.is_empty() && !name.starts_with('/'))
}

pub(crate) fn is_escaped(place: &Place<'_>, keyword: &str) -> bool {
    place.text(keyword).is_some_and(|reference| reference.starts_with("#/") && reference.contains(['~', '%']))
}

pub(crate) fn has_siblings(place: &Place<'_>, keyword: &str) -> bool {
    let says_nothing = |name: &str| {
        matches!(
            name,
            "title" | "description" | "examples" | "$defs" | "definitions" | "$schema" | "$id" | "$comment"
        )
    };
    place.has(keyword)
        && place
            .schema
            .as_object()
            .is_some_and(|keywords| keywords.keys().any(|name| name != keyword && !says_nothing(name)))
}

pub(crate) fn names_unknown(place: &Place<'_>, keyword: &str) -> bool {
    let known = place.get("properties").and_then(Value::as_object);
    place.has(keyword)
        && place.required().iter().any(|name| !known.is_some_and(|known| known.contains_key(*name)))
}

pub(crate) fn is_unsaid(place: &Place<'_>, keyword: &str) -> bool {
    place.has("properties") && !place.has(keyword)
}

pub(crate) fn is_true(place: &Place<'_>, keyword: &str) -> bool {
    place.get(keyword) == Some(&Value::Bool(true))
}

pub(crate) fn looks_around(place: &Place<'_>, keyword: &str) -> bool {
    let signs = ["(?=", "(?!", "(?<=", "(?<!"];
    place.text(keyword).is_some_and(|pattern| signs.iter().any(|sign| pattern.contains(sign)))
}

pub(crate) fn is_misread(place: &Place<'_>, keyword: &str) -> bool {
    !looks_around(place, keyword) && place.text(keyword).is_some_and(|pattern| !is_plain(pattern))
}

pub(crate) fn has_other_format(place: &Place<'_>, keyword: &str) -> bool {
    place.text(keyword).is_some_and(|format| !place.profile.formats.contains(&format))
}
