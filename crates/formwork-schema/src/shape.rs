//! From the validator's errors to violations: flat, in words, one root cause for each place.

use formwork_core::{JsonPath, Report, Segment, Stage, Violation};
use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::paths::LocationSegment;
use serde_json::Value;

use crate::variant::{expected_variants, meant_variant};
use crate::words::{count, either, shown, type_name};

/// Reports every error about `document`.
pub(crate) fn shape<'e>(
    errors: impl Iterator<Item = ValidationError<'e>>,
    document: &Value,
    out: &mut Report,
) {
    let mut found = Vec::with_capacity(errors.size_hint().0);
    for error in errors {
        flatten(&error, document, &mut found);
    }
    let is_caused = |(index, violation): (usize, &Violation)| {
        let mut others = found.iter().enumerate().filter(|(other, _)| *other != index);
        others.any(|(other, cause)| {
            cause.path == violation.path
                && (explains(cause, violation) || (other < index && cause.rule == violation.rule))
        })
    };
    let caused: Vec<bool> = found.iter().enumerate().map(is_caused).collect();
    out.extend(found.into_iter().zip(caused).filter(|(_, caused)| !caused).map(|(violation, _)| violation));
}

/// Whether the first of two violations at one place is the reason for the second.
fn explains(cause: &Violation, effect: &Violation) -> bool {
    let weight = |violation: &Violation| match violation.rule.as_str() {
        "type" => 0,
        "const" | "enum" => 1,
        _ => 2,
    };
    weight(cause) < weight(effect)
}

/// One error as violations; those of the variant that was meant, where there are variants.
fn flatten(error: &ValidationError<'_>, document: &Value, out: &mut Vec<Violation>) {
    let path = path(error, document);
    match error.kind() {
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            match meant_variant(context, &path, document) {
                Some(errors) => errors.iter().for_each(|error| flatten(error, document, out)),
                None => {
                    let violation = Violation::new(path.clone(), error.kind().keyword(), Stage::Schema);
                    let found = path.get(document).map(shown).unwrap_or_default();
                    out.push(
                        violation
                            .with_expected(expected_variants(context, &path, document))
                            .with_found(found),
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
        // `additionalProperties: false` without any property beside it allows none at all.
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
                violation.with_expected(format!("a name: {expected}")).with_found(shown(error.instance())),
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

/// What a keyword asks for, and what the value is instead.
fn words(kind: &Kind, value: &Value) -> (String, String) {
    let characters =
        || count(value.as_str().map_or(0, |text| text.chars().count()) as u64, "character").to_string();
    let items = || count(value.as_array().map_or(0, Vec::len) as u64, "item").to_string();
    let fields = || count(value.as_object().map_or(0, serde_json::Map::len) as u64, "field").to_string();
    match kind {
        Kind::Type { kind: TypeKind::Single(name) } if !value.is_number() => {
            (name.to_string(), type_name(value).to_owned())
        }
        Kind::Type { kind } => {
            let names = type_names(kind);
            // Of a number that should be an integer the value says more than its type.
            let found = if value.is_number() && names.iter().any(|name| name == "integer") {
                value.to_string()
            } else {
                type_name(value).to_owned()
            };
            (either(&names), found)
        }
        Kind::Enum { options } => {
            let options: Vec<String> =
                options.as_array().into_iter().flatten().map(ToString::to_string).collect();
            (either(&options), shown(value))
        }
        Kind::Constant { expected_value } => (expected_value.to_string(), shown(value)),
        Kind::Minimum { limit } => (format!("at least {limit}"), shown(value)),
        Kind::Maximum { limit } => (format!("at most {limit}"), shown(value)),
        Kind::ExclusiveMinimum { limit } => (format!("more than {limit}"), shown(value)),
        Kind::ExclusiveMaximum { limit } => (format!("less than {limit}"), shown(value)),
        Kind::MultipleOf { multiple_of } => (format!("a multiple of {multiple_of}"), shown(value)),
        Kind::MinLength { limit } => (format!("at least {}", count(*limit, "character")), characters()),
        Kind::MaxLength { limit } => (format!("at most {}", count(*limit, "character")), characters()),
        Kind::Pattern { pattern } => (format!("text that matches `{pattern}`"), shown(value)),
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            ("text on which the pattern can be decided".to_owned(), shown(value))
        }
        Kind::Format { format } => (format!("text of the format `{format}`"), shown(value)),
        Kind::ContentEncoding { content_encoding } => {
            (format!("text encoded as {content_encoding}"), shown(value))
        }
        Kind::ContentMediaType { content_media_type } => {
            (format!("text of the type {content_media_type}"), shown(value))
        }
        Kind::FromUtf8 { .. } => ("encoded text".to_owned(), shown(value)),
        Kind::MinItems { limit } => (format!("at least {}", count(*limit, "item")), items()),
        Kind::MaxItems { limit } => (format!("at most {}", count(*limit, "item")), items()),
        Kind::AdditionalItems { limit } => (format!("at most {}", count(*limit as u64, "item")), items()),
        Kind::UnevaluatedItems { .. } => ("no further items".to_owned(), items()),
        Kind::UniqueItems => ("no item twice".to_owned(), String::new()),
        Kind::Contains => ("an item that fits `contains`".to_owned(), String::new()),
        Kind::MinProperties { limit } => (format!("at least {}", count(*limit, "field")), fields()),
        Kind::MaxProperties { limit } => (format!("at most {}", count(*limit, "field")), fields()),
        Kind::OneOfMultipleValid { context } => {
            let fitting = context.iter().filter(|errors| errors.is_empty()).count();
            ("exactly one variant to fit".to_owned(), count(fitting as u64, "variant").to_string())
        }
        Kind::Not { .. } => ("anything that `not` does not describe".to_owned(), shown(value)),
        Kind::FalseSchema => ("nothing here".to_owned(), shown(value)),
        Kind::Custom { message, .. } => (message.clone(), shown(value)),
        Kind::Referencing(reason) => (reason.to_string(), String::new()),
        // The rest is told apart before.
        _ => (String::new(), shown(value)),
    }
}

pub(crate) fn type_names(kind: &TypeKind) -> Vec<String> {
    match kind {
        TypeKind::Single(name) => vec![name.to_string()],
        TypeKind::Multiple(names) => names.iter().map(|name| name.to_string()).collect(),
    }
}

/// Where an error is. The document tells names from indexes: in the error's pointer both may be `0`.
pub(crate) fn path(error: &ValidationError<'_>, document: &Value) -> JsonPath {
    let pointer = error.instance_path().as_str();
    let steps = || pointer.split('/').skip(1);
    let is_number = |step: &str| !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit());
    // Most paths have names alone, and need no look at the document.
    let mut here = Some(document).filter(|_| steps().any(is_number));
    steps()
        .map(|step| {
            let index = here.filter(|value| value.is_array()).and_then(|_| step.parse().ok());
            let segment = index.map_or_else(|| Segment::Key(unescape(step)), Segment::Index);
            here = here.and_then(|value| match &segment {
                Segment::Key(name) => value.get(name),
                Segment::Index(index) => value.get(index),
            });
            segment
        })
        .collect()
}

/// A step of a JSON Pointer as the name that it stands for.
fn unescape(step: &str) -> String {
    if step.contains('~') { step.replace("~1", "/").replace("~0", "~") } else { step.to_owned() }
}
