//! Of several variants that a value fits none of, the one that it was meant to be.

use std::collections::HashSet;

use formwork_core::JsonPath;
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;

use crate::location::path;
use crate::words::{either, type_names};

/// The errors of the variant that the value at `at` was meant to be; `None` if that cannot be told.
///
/// A variant is ruled out by the wrong type of the value itself, or by a tag: a constant that a member has not. Of
/// those that are left the one with the fewest errors is meant, if it is alone with that.
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
            Kind::Constant { .. } | Kind::Enum { .. } => here == *at || here.parent().as_ref() == Some(at),
            _ => false,
        }
    })
}

/// Returns the variants' demands, in words: their types, or the tags that tell them apart.
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
            Kind::Constant { expected_value } => Some(expected_value.to_string()),
            Kind::Enum { options } => {
                Some(either(&options.as_array()?.iter().map(ToString::to_string).collect::<Vec<_>>()))
            }
            Kind::Type { kind } => Some(either(&type_names(kind))),
            _ => None,
        });
        let tag = || {
            errors.iter().find_map(|error| match error.kind() {
                Kind::Constant { expected_value } => {
                    Some(format!("{} = {expected_value}", member(&path(error, document), at)))
                }
                _ => None,
            })
        };
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

/// A path seen from a place outside of it: `.kind`.
fn member(path: &JsonPath, from: &JsonPath) -> String {
    let inner: JsonPath = path.segments().iter().skip(from.segments().len()).cloned().collect();
    inner.to_string().trim_start_matches('$').trim_start_matches('.').to_owned()
}
