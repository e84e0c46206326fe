//! Converts the validator's errors to violations: flat, readable, one root cause for each path.

use formwork_core::keywords::type_name;
use formwork_core::{Report, Stage, Violation};
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::paths::LocationSegment;
use serde_json::Value;

use crate::location::path;
use crate::variant::{expected_variants, found_variant, meant_variant};
use crate::words::{bound, count, either, quoted, type_names};

/// Reports every error in `document`.
pub(crate) fn shape<'e>(
    errors: impl Iterator<Item = ValidationError<'e>>,
    document: &Value,
    out: &mut Report,
) {
    let mut found = Found(Vec::with_capacity(errors.size_hint().0));
    for error in errors {
        flatten(&error, document, &mut found);
    }
    out.extend(found.0);
}

/// The maximum number of violations that are compared with each other.
const MAX_COMPARED: usize = 1000;

/// A list of violations, none of which is the reason for another.
struct Found(Vec<Violation>);

impl Found {
    fn push(&mut self, violation: Violation) {
        // Comparing takes quadratic time, so violations beyond the limit are added without it.
        if self.0.len() >= MAX_COMPARED {
            self.0.push(violation);
            return;
        }
        let here = |other: &Violation| other.path == violation.path;
        let says_enough = |other: &Violation| explains(other, &violation) || other.rule == violation.rule;
        if self.0.iter().any(|other| here(other) && says_enough(other)) {
            return;
        }
        self.0.retain(|other| !(here(other) && explains(&violation, other)));
        self.0.push(violation);
    }

    fn extend(&mut self, violations: impl Iterator<Item = Violation>) {
        violations.for_each(|violation| self.push(violation));
    }
}

/// Returns whether the first of two violations at one path is the reason for the second.
fn explains(cause: &Violation, effect: &Violation) -> bool {
    let weight = |violation: &Violation| match violation.rule.as_str() {
        "type" => 0,
        "const" | "enum" => 1,
        _ => 2,
    };
    weight(cause) < weight(effect)
}

/// Adds the violations of one error; if there are variants, those of the intended one.
fn flatten(error: &ValidationError<'_>, document: &Value, out: &mut Found) {
    let path = path(error, document);
    match error.kind() {
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            match meant_variant(context, &path, document) {
                Some(errors) => errors.iter().for_each(|error| flatten(error, document, out)),
                None => {
                    let violation = Violation::new(path.clone(), error.kind().keyword(), Stage::Schema);
                    out.push(
                        violation
                            .with_expected(expected_variants(context, &path, document))
                            .with_found(found_variant(context, &path, document)),
                    );
                }
            }
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let unexpected = unexpected
                .iter()
                .map(|name| Violation::new(path.key(name.as_str()), error.kind().keyword(), Stage::Schema));
            out.extend(unexpected);
        }
        // Without any property, `additionalProperties: false` allows no member.
        Kind::FalseSchema if is_closed(error) && path.get(document).is_some_and(Value::is_object) => {
            let names = path.get(document).and_then(Value::as_object).into_iter().flatten();
            let unexpected = names.map(|(name, _)| {
                Violation::new(path.key(name.as_str()), "additionalProperties", Stage::Schema)
            });
            out.extend(unexpected);
        }
        Kind::Required { property } => {
            out.push(Violation::new(
                path.key(property.as_str().unwrap_or_default()),
                "required",
                Stage::Schema,
            ));
        }
        Kind::PropertyNames { error } => {
            let name = error.instance().as_str().unwrap_or_default();
            let (expected, _) = words(error.kind(), error.instance());
            let violation = Violation::new(path.key(name), "propertyNames", Stage::Schema);
            out.push(
                violation.with_expected(format!("a name: {expected}")).with_found(quoted(error.instance())),
            );
        }
        kind => {
            let (expected, found) = words(kind, error.instance());
            let violation = Violation::new(path, kind.keyword(), Stage::Schema);
            out.push(violation.with_expected(expected).with_found(found));
        }
    }
}

fn is_closed(error: &ValidationError<'_>) -> bool {
    let last = error.schema_path().into_iter().last();
    matches!(last, Some(LocationSegment::Property(name)) if matches!(&*name, "additionalProperties" | "unevaluatedProperties"))
}

/// Returns descriptions of the expected and the found value.
pub(crate) fn words(kind: &Kind, value: &Value) -> (String, String) {
    let characters = || count("", value.as_str().map_or(0, |text| text.chars().count()) as u64, "character");
    let items = || count("", value.as_array().map_or(0, Vec::len) as u64, "item");
    let fields = || count("", value.as_object().map_or(0, serde_json::Map::len) as u64, "field");
    match kind {
        Kind::Type { kind } => {
            let names = type_names(kind);
            // For a number that should be an integer, the value is more helpful than its type.
            let shows = value.is_number() && names.contains(&"integer");
            (either(&names), if shows { quoted(value) } else { type_name(value).to_owned() })
        }
        Kind::Enum { options } => {
            let options: Vec<String> =
                options.as_array().into_iter().flatten().map(ToString::to_string).collect();
            (either(&options), quoted(value))
        }
        Kind::Constant { expected_value } => (expected_value.to_string(), quoted(value)),
        Kind::Minimum { limit } => (bound("at least ", limit), quoted(value)),
        Kind::Maximum { limit } => (bound("at most ", limit), quoted(value)),
        Kind::ExclusiveMinimum { limit } => (bound("more than ", limit), quoted(value)),
        Kind::ExclusiveMaximum { limit } => (bound("less than ", limit), quoted(value)),
        Kind::MultipleOf { multiple_of } => (bound("a multiple of ", multiple_of), quoted(value)),
        Kind::MinLength { limit } => (count("at least ", *limit, "character"), characters()),
        Kind::MaxLength { limit } => (count("at most ", *limit, "character"), characters()),
        Kind::Pattern { pattern } => (format!("text that matches `{pattern}`"), quoted(value)),
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            ("text on which the pattern can be decided".to_owned(), quoted(value))
        }
        Kind::Format { format } => (format!("text of the format `{format}`"), quoted(value)),
        Kind::ContentEncoding { content_encoding } => {
            (format!("text encoded as {content_encoding}"), quoted(value))
        }
        Kind::ContentMediaType { content_media_type } => {
            (format!("text of the type {content_media_type}"), quoted(value))
        }
        Kind::FromUtf8 { .. } => ("encoded text".to_owned(), quoted(value)),
        Kind::MinItems { limit } => (count("at least ", *limit, "item"), items()),
        Kind::MaxItems { limit } => (count("at most ", *limit, "item"), items()),
        Kind::AdditionalItems { limit } => (count("at most ", *limit as u64, "item"), items()),
        Kind::UnevaluatedItems { .. } => ("no further items".to_owned(), items()),
        Kind::UniqueItems => ("no item twice".to_owned(), String::new()),
        Kind::Contains => ("an item that fits `contains`".to_owned(), String::new()),
        Kind::MinProperties { limit } => (count("at least ", *limit, "field"), fields()),
        Kind::MaxProperties { limit } => (count("at most ", *limit, "field"), fields()),
        Kind::OneOfMultipleValid { context } => {
            let fitting = context.iter().filter(|errors| errors.is_empty()).count();
            ("exactly one variant to fit".to_owned(), count("", fitting as u64, "variant"))
        }
        Kind::Not { .. } => ("anything that `not` does not describe".to_owned(), quoted(value)),
        Kind::FalseSchema => ("nothing here".to_owned(), quoted(value)),
        Kind::Custom { message, .. } => (message.clone(), quoted(value)),
        Kind::Referencing(reason) => (reason.to_string(), String::new()),
        // The other kinds are handled before.
        _ => (String::new(), quoted(value)),
    }
}
