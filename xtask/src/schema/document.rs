//! From a Rust type to the text of its schema file.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// The schema of what we write: a field that is always written is required.
pub(super) fn written<T: JsonSchema>() -> String {
    text::<T>(SchemaSettings::draft2020_12().for_serialize())
}

/// The schema of what we read: a field with a default may be left out.
pub(super) fn read<T: JsonSchema>() -> String {
    text::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

fn text<T: JsonSchema>(settings: SchemaSettings) -> String {
    let settings = settings.with_transform(RecursiveTransform(drop_foreign_format));
    let schema = settings.into_generator().into_root_schema_for::<T>();
    format!("{:#}\n", schema.to_value())
}

/// A schema that was put together elsewhere, in the same way.
pub(super) fn plain(document: Value) -> String {
    let mut schema = Schema::try_from(document).unwrap_or_default();
    RecursiveTransform(drop_foreign_format).transform(&mut schema);
    format!("{:#}\n", schema.to_value())
}

/// Removes a `format` that JSON Schema does not define (`uint16`): strict validators refuse it, and the range that it
/// stands for is in `minimum` and `maximum`.
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
        let document: Value = serde_json::from_str(&written::<Port>()).unwrap();
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
    fn the_side_decides_what_is_required() {
        #[derive(JsonSchema, serde::Serialize, serde::Deserialize)]
        struct Row {
            #[serde(default)]
            id: String,
        }
        let required = |text: String| serde_json::from_str::<Value>(&text).unwrap()["required"].clone();
        assert_eq!(required(written::<Row>()), json!(["id"]));
        assert_eq!(required(read::<Row>()), Value::Null);
    }
}
