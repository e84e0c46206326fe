//! Selects the intended variant for a value that fits none of several.

use std::collections::HashSet;

use formwork_core::JsonPath;
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;

use crate::location::path;
use crate::words::{either, quoted, type_names};

/// Returns the errors of the variant that the value at `at` most likely follows; `None` if that is ambiguous.
///
/// A wrong type of the value itself, or a missing tag (a constant of a member), rules a variant out. Of the others, the one
/// with the fewest errors is selected, if it is the only one.
pub(crate) fn meant_variant<'c, 'e>(
    variants: &'c [Vec<ValidationError<'e>>],
    at: &JsonPath,
    document: &Value,
) -> Option<&'c [ValidationError<'e>]> {
    let possible: Vec<_> = variants.iter().filter(|errors| !is_ruled_out(errors, at, document)).collect();
    match possible.as_slice() {
        [only] => return Some(only),
        [] => return None,
        _ => {}
    }
    let fewest = possible.iter().map(|errors| errors.len()).min()?;
    let mut nearest = possible.into_iter().filter(|errors| errors.len() == fewest);
    let first = nearest.next()?;
    if nearest.next().is_some() { None } else { Some(first) }
}

fn is_ruled_out(errors: &[ValidationError<'_>], at: &JsonPath, document: &Value) -> bool {
    errors.iter().any(|error| {
        let here = path(error, document);
        match error.kind() {
            Kind::Type { .. } | Kind::FalseSchema => here == *at,
            // `null` is no tag: it may stand for an absent member.
            Kind::Constant { .. } | Kind::Enum { .. } => {
                here == *at || here.parent().as_ref() == Some(at) && !error.instance().is_null()
            }
            _ => false,
        }
    })
}

/// Returns a description of the variants: their types, or the tags that distinguish them.
pub(crate) fn expected_variants(
    variants: &[Vec<ValidationError<'_>>],
    at: &JsonPath,
    document: &Value,
) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut known = HashSet::new();
    for errors in variants {
        let here = |error: &&ValidationError<'_>| path(error, document) == *at;
        let value = errors.iter().filter(here).find_map(|error| match error.kind() {
            Kind::Type { kind } => Some(either(&type_names(kind))),
            kind => choice(kind),
        });
        let tag =
            || tag(errors, at, document).map(|(path, words)| format!("{} = {words}", member(&path, at)));
        let field = || {
            errors.iter().filter(here).find_map(|error| match error.kind() {
                Kind::Required { property } => Some(format!("an object with {property}")),
                _ => None,
            })
        };
        let word = value.or_else(tag).or_else(field);
        let word = word.unwrap_or_else(|| "another variant".to_owned());
        if known.insert(word.clone()) {
            words.push(word);
        }
    }
    either(&words)
}

/// Returns the tag that no variant has, such as `kind = "star"`, if the same member distinguishes all variants; else the value.
pub(crate) fn found_variant(
    variants: &[Vec<ValidationError<'_>>],
    at: &JsonPath,
    document: &Value,
) -> String {
    let mut tags = variants.iter().map(|errors| Some(tag(errors, at, document)?.0));
    let tag = tags.next().flatten().filter(|first| tags.all(|tag| tag.as_ref() == Some(first)));
    let value = |path: &JsonPath| path.get(document).map(quoted);
    tag.and_then(|tag| Some(format!("{} = {}", member(&tag, at), value(&tag)?)))
        .or_else(|| value(at))
        .unwrap_or_default()
}

/// Returns the member below `at` that rules a variant out, and its possible values.
fn tag(errors: &[ValidationError<'_>], at: &JsonPath, document: &Value) -> Option<(JsonPath, String)> {
    let wrong = |constant: bool| {
        errors.iter().find_map(|error| {
            let path = Some(path(error, document)).filter(|path| path != at)?;
            let is_constant = matches!(error.kind(), Kind::Constant { .. });
            (is_constant == constant).then(|| choice(error.kind()))?.map(|words| (path, words))
        })
    };
    wrong(true).or_else(|| wrong(false))
}

/// Returns the values that a constant or an enumeration allows.
fn choice(kind: &Kind) -> Option<String> {
    match kind {
        Kind::Constant { expected_value } => Some(expected_value.to_string()),
        Kind::Enum { options } => {
            Some(either(&options.as_array()?.iter().map(ToString::to_string).collect::<Vec<_>>()))
        }
        _ => None,
    }
}

/// Returns a path relative to a place around it: `.kind`.
fn member(path: &JsonPath, from: &JsonPath) -> String {
    let inner: JsonPath = path.segments().iter().skip(from.segments().len()).cloned().collect();
    inner.to_string().trim_start_matches('$').trim_start_matches('.').to_owned()
}
