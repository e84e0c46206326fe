//! Converts a Rust type to the text of its schema file.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use crate::config::drop_examples;

/// Returns the schema of the values that a program writes: fields that are always written are required.
pub(super) fn written<T: JsonSchema>() -> Value {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>().to_value()
}

/// Returns the schema of the values that a program reads: fields with a default are optional.
pub(super) fn read<T: JsonSchema>() -> Value {
    SchemaSettings::draft2020_12().for_deserialize().into_generator().into_root_schema_for::<T>().to_value()
}

/// Returns a schema in the form of its file.
pub(super) fn for_file(document: &Value) -> Value {
    let Ok(mut schema) = Schema::try_from(with_draft(document)) else { return document.clone() };
    RecursiveTransform(drop_foreign_format).transform(&mut schema);
    schema.to_value()
}

/// Returns the schema of a Rust type in the form of its file: without the examples of the type's documentation.
pub(super) fn for_type(document: &Value) -> Value {
    let Ok(mut schema) = Schema::try_from(for_file(document)) else { return document.clone() };
    RecursiveTransform(drop_examples).transform(&mut schema);
    schema.to_value()
}

/// Returns a schema with `$schema`: its own, otherwise draft 2020-12 as the first member.
pub(super) fn with_draft(document: &Value) -> Value {
    match document {
        Value::Object(keywords) if !keywords.contains_key("$schema") => {
            let draft = ("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
            std::iter::once(draft).chain(keywords.clone()).collect()
        }
        document => document.clone(),
    }
}

/// Returns the text of a schema file: indented by two spaces, with a newline at the end.
pub(super) fn text(document: &Value) -> String {
    format!("{document:#}\n")
}

/// Removes a `format` that JSON Schema does not define (`uint16`): strict validators reject it, and `minimum` and
/// `maximum` have its range.
fn drop_foreign_format(schema: &mut Schema) {
    let foreign = schema
        .get("format")
        .is_some_and(|format| format.as_str().is_none_or(|format| !FORMATS.contains(&format)));
    if foreign {
        schema.remove("format");
    }
}

/// The formats of JSON Schema 2020-12, Validation, section 7.3.
const FORMATS: &[&str] = &[
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only described")]
    struct Port {
        number: u16,
        format: Option<u32>,
        #[schemars(extend("format" = "hostname"))]
        host: String,
    }

    #[test]
    fn foreign_formats_go_and_everything_else_stays() {
        let document = for_file(&written::<Port>());
        assert_eq!(
            document["properties"]["number"],
            json!({"type": "integer", "minimum": 0, "maximum": 65535})
        );
        assert_eq!(
            document["properties"]["format"]["type"],
            json!(["integer", "null"]),
            "a property of that name"
        );
        assert_eq!(document["properties"]["host"]["format"], "hostname");
    }

    #[test]
    fn examples_of_the_documentation_stay_out_of_the_file() {
        for (documentation, description) in [
            ("A port.", "A port."),
            ("A port.\n\n```\nassert!(true);\n```", "A port."),
            (
                "A port.\n\n```\nlet a = 1;\n```\n\nFrom 1.\n\n```no_run\nlet b = 1;\n```",
                "A port.\n\nFrom 1.",
            ),
        ] {
            let document = json!({"properties": {"port": {"description": documentation}}});
            assert_eq!(for_type(&document)["properties"]["port"]["description"], description);
            assert_eq!(for_file(&document)["properties"]["port"]["description"], documentation);
        }
    }

    #[test]
    fn the_side_decides_what_is_required() {
        #[derive(JsonSchema, serde::Serialize, serde::Deserialize)]
        struct Row {
            #[serde(default)]
            id: String,
        }
        assert_eq!(written::<Row>()["required"], json!(["id"]));
        assert_eq!(read::<Row>().get("required"), None);
    }
}
