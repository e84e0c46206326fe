//! The reactions by keyword and dialect, as data: probed on the engines, read in their source code, or documented by
//! the provider (2026-11).

use serde_json::Value;

use crate::Reaction::{self, Forbids as F, Ignored as I, Rejected as R};
use crate::expand::{MAX_SAFE, count};
use crate::profile::features::{
    beside_properties, has, has_other_format, has_several, has_siblings, is_anchor, is_boolean, is_escaped,
    is_misread, is_remote, is_true, is_unsaid, is_whole_document, looks_around, names_unknown,
};
use crate::profile::{Engine, Feature, Place};

/// A feature of a schema, with the reaction of each engine.
pub(super) struct Row {
    /// The keyword in findings.
    pub(super) keyword: &'static str,
    /// Returns whether a schema has the feature; called with the keyword.
    pub(super) when: Feature,
    /// The reactions in the order of [`Engine`].
    reactions: [Option<Reaction>; 3],
    pub(super) words: &'static str,
}

impl Row {
    pub(super) fn reaction(&self, engine: Engine) -> Option<Reaction> {
        self.reactions.get(engine as usize).copied().flatten()
    }
}

const fn row(
    keyword: &'static str,
    when: Feature,
    openai: Option<Reaction>,
    llama_cpp: Option<Reaction>,
    llguidance: Option<Reaction>,
    words: &'static str,
) -> Row {
    Row { keyword, when, reactions: [openai, llama_cpp, llguidance], words }
}

const NO: Option<Reaction> = None;

#[rustfmt::skip]
pub(super) const ROWS: [Row; 57] = [
    //  keyword                 when                openai   llama.cpp llguidance
    row("type",                 is_boolean,         Some(R), Some(R), NO,      "a schema has to be an object, not `true` or `false`"),
    row("type",                 says_no_type,       Some(R), NO,      NO,      "every schema needs a type"),
    row("type",                 is_other_root,      Some(R), NO,      NO,      "the root has to be an object: wrap it"),
    row("anyOf",                is_root,            Some(R), NO,      NO,      "the root cannot be a union: wrap it"),
    row("anyOf",                beside_properties,  Some(R), Some(F), NO,      "the properties beside it cannot be written: move them into the branches"),
    row("oneOf",                beside_properties,  NO,      Some(F), Some(R), "the properties beside it cannot be written: move them into the branches"),
    row("oneOf",                has,                Some(R), NO,      NO,      "not permitted: write anyOf"),
    row("oneOf",                has,                NO,      Some(I), NO,      "read as anyOf: that only one fits is not enforced"),
    row("allOf",                has,                Some(R), NO,      NO,      "not permitted: merge the schemas"),
    row("allOf",                has_several,        NO,      Some(F), NO,      "optional members become required, and scalars come out as `{}`: merge the schemas"),
    row("not",                  has,                Some(R), Some(I), Some(R), "not supported"),
    row("if",                   has,                Some(R), Some(I), Some(R), "conditions are not supported"),
    row("dependentRequired",    has,                Some(R), Some(I), Some(R), "not supported"),
    row("dependentSchemas",     has,                Some(R), Some(I), Some(R), "not supported"),
    row("dependencies",         has,                Some(R), Some(I), Some(R), "not supported"),
    row("default",              has,                Some(R), NO,      NO,      "not permitted"),
    row("$ref",                 is_remote,          Some(R), Some(R), Some(R), "nothing is fetched: put the schema into $defs"),
    row("$ref",                 is_whole_document,  NO,      Some(R), NO,      "refers to the root, which has no name: move it into $defs"),
    row("$ref",                 is_anchor,          NO,      Some(R), Some(R), "anchors are not followed: refer to `#/$defs/name`"),
    row("$ref",                 is_escaped,         NO,      Some(R), Some(R), "names of definitions cannot have `/`, `~` or `%` in them"),
    row("$ref",                 has_siblings,       Some(R), Some(I), NO,      "what stands beside it does not count: merge it into the definition"),
    row("required",             leaves_out,         Some(R), NO,      NO,      "every property has to be required: make optional ones nullable"),
    row("required",             names_unknown,      NO,      Some(F), NO,      "a required name that is not in properties cannot be written"),
    row("additionalProperties", is_open,            Some(R), NO,      NO,      "has to be `false`: write maps as arrays of key and value"),
    row("additionalProperties", is_unsaid,          NO,      Some(F), NO,      "read as `false` where it is absent"),
    row("properties",           optional_first,     NO,      Some(I), NO,      "their order: required ones are generated first"),
    row("patternProperties",    has,                Some(R), Some(F), NO,      "write maps as arrays of key and value"),
    row("propertyNames",        has,                Some(R), Some(I), Some(R), "not supported"),
    row("minProperties",        has,                Some(R), Some(I), NO,      "not supported"),
    row("maxProperties",        has,                Some(R), Some(I), NO,      "not supported"),
    row("unevaluatedProperties",has,                Some(R), Some(I), Some(R), "not supported"),
    row("uniqueItems",          is_true,            Some(R), Some(I), Some(R), "not supported"),
    row("contains",             has,                Some(R), Some(I), Some(R), "not supported"),
    row("minContains",          has,                Some(R), Some(I), Some(R), "not supported"),
    row("maxContains",          has,                Some(R), Some(I), Some(R), "not supported"),
    row("unevaluatedItems",     has,                Some(R), Some(I), Some(R), "not supported"),
    row("minItems",             is_huge,            NO,      Some(R), NO,      "more than 2000 repetitions: the grammar does not parse"),
    row("maxItems",             is_huge,            NO,      Some(R), NO,      "more than 2000 repetitions: the grammar does not parse"),
    row("minimum",              of_number,          NO,      Some(I), NO,      "bounds hold for integers only"),
    row("maximum",              of_number,          NO,      Some(I), NO,      "bounds hold for integers only"),
    row("exclusiveMinimum",     of_number,          NO,      Some(I), NO,      "bounds hold for integers only"),
    row("exclusiveMaximum",     of_number,          NO,      Some(I), NO,      "bounds hold for integers only"),
    row("exclusiveMinimum",     has_inclusive_too,  NO,      Some(I), NO,      "not read where `minimum` is there"),
    row("minimum",              is_unsafe,          NO,      Some(R), Some(F), "over 2^53: the grammar is broken"),
    row("maximum",              is_unsafe,          NO,      Some(R), Some(F), "over 2^53: the grammar is broken"),
    row("multipleOf",           has,                NO,      Some(I), NO,      "not supported"),
    row("minLength",            has,                Some(R), NO,      NO,      "not supported"),
    row("maxLength",            has,                Some(R), NO,      NO,      "not supported"),
    row("minLength",            is_huge,            NO,      Some(R), NO,      "more than 2000 repetitions: the grammar does not parse"),
    row("maxLength",            is_huge,            NO,      Some(R), NO,      "more than 2000 repetitions: the grammar does not parse"),
    row("minLength",            has_stronger,       NO,      Some(I), NO,      "does not count beside a pattern or a format"),
    row("maxLength",            has_stronger,       NO,      Some(I), NO,      "does not count beside a pattern or a format"),
    row("pattern",              looks_around,       Some(R), Some(I), Some(R), "look-around is not supported"),
    row("pattern",              is_misread,         NO,      Some(I), NO,      "only characters, `[…]`, `(…)`, `|` and counts between `^` and `$` are understood; other patterns mean any string, or a broken one"),
    row("format",               has_other_format,   Some(R), NO,      NO,      "not one of the formats that are supported"),
    row("format",               unknown_to_llama,   NO,      Some(I), NO,      "only date, time, date-time and uuid are enforced, and only without a pattern"),
    row("format",               unknown_to_llg,     NO,      NO,      Some(R), "not one of the formats that are supported"),
];

fn says_no_type(place: &Place<'_>, _: &str) -> bool {
    let says = ["type", "anyOf", "oneOf", "allOf", "$ref", "enum", "const"];
    place.schema.is_object() && !says.iter().any(|keyword| place.has(keyword))
}

fn is_other_root(place: &Place<'_>, _: &str) -> bool {
    let is_union = place.has("anyOf") || place.has("oneOf");
    let is_reference = place.has("$ref");
    place.is_root && place.has("type") && place.text("type") != Some("object") && !is_union && !is_reference
}

fn is_root(place: &Place<'_>, keyword: &str) -> bool {
    place.is_root && place.has(keyword)
}

fn leaves_out(place: &Place<'_>, _: &str) -> bool {
    let required = place.required();
    place.named("properties").any(|(name, _)| !required.contains(&name.as_str()))
}

fn is_open(place: &Place<'_>, keyword: &str) -> bool {
    place.is_object() && place.get(keyword) != Some(&Value::Bool(false))
}

fn optional_first(place: &Place<'_>, keyword: &str) -> bool {
    let required = place.required();
    let order: Vec<bool> = place.named(keyword).map(|(name, _)| !required.contains(&name.as_str())).collect();
    !order.is_sorted()
}

fn is_huge(place: &Place<'_>, keyword: &str) -> bool {
    place.get(keyword).and_then(count).is_some_and(|count| count > 2000)
}

fn of_number(place: &Place<'_>, keyword: &str) -> bool {
    (place.is("number") || !place.is("integer")) && place.has(keyword)
}

fn has_inclusive_too(place: &Place<'_>, keyword: &str) -> bool {
    place.has(keyword) && place.has("minimum")
}

fn is_unsafe(place: &Place<'_>, keyword: &str) -> bool {
    place.is("integer")
        && place.get(keyword).and_then(Value::as_f64).is_some_and(|bound| bound.abs() > MAX_SAFE)
}

fn has_stronger(place: &Place<'_>, keyword: &str) -> bool {
    let formatted = place.text("format").is_some_and(|format| place.profile.formats.contains(&format));
    place.has(keyword) && (place.has("pattern") || formatted)
}

fn unknown_to_llama(place: &Place<'_>, keyword: &str) -> bool {
    place.text(keyword).is_some_and(|format| !place.profile.formats.contains(&format) || place.has("pattern"))
}

fn unknown_to_llg(place: &Place<'_>, keyword: &str) -> bool {
    place.is("string") && place.text(keyword).is_some_and(|format| !place.profile.formats.contains(&format))
}
