use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::{Common, Defaults, Serve};
use crate::providers::Providers;

/// The JSON Schema of a configuration file, for editors: what each kind of these providers may be told.
pub fn schema(providers: &Providers) -> Value {
    let common = document_of::<Common>();
    let mut definitions = Map::new();
    let sections: Vec<Value> = providers
        .kinds()
        .map(|kind| {
            let mut own = kind.schema();
            let mut section = common.clone();
            definitions.extend(taken(&mut own, "$defs"));
            definitions.extend(taken(&mut section, "$defs"));
            let mut properties = taken(&mut section, "properties");
            properties.insert("kind".to_owned(), json!({"const": kind.name(), "description": kind.about()}));
            properties.extend(taken(&mut own, "properties"));
            let mut required = vec![json!("kind")];
            required.extend(own["required"].as_array().into_iter().flatten().cloned());
            json!({
                "title": kind.name(),
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            })
        })
        .collect();
    let [defaults, serve] = [document_of::<Defaults>(), document_of::<Serve>()].map(|mut document| {
        if let Value::Object(document) = &mut document {
            document.remove("$schema");
        }
        document
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "formwork.toml",
        "description": "Which models are asked, in which order, and how.",
        "type": "object",
        "properties": {
            "targets": {
                "description": "The providers that are asked, in order: the next one when one fails. All of them in the order of the file by default.",
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
            },
            "defaults": defaults,
            "registry": {
                "description": "A file with rows about models, in the form of schemas/registry.json, that go before those that are known. A path below the folder of the configuration.",
                "type": "string",
            },
            "aliases": {
                "description": "Further names that clients of `formwork serve` may ask for: a provider, or a list of providers in the order in which they are asked.",
                "type": "object",
                "additionalProperties": {
                    "anyOf": [
                        {"type": "string"},
                        {"type": "array", "items": {"type": "string"}, "minItems": 1},
                    ],
                },
            },
            "contracts": {
                "description": "The folder of named contracts. A path below the folder of the configuration.",
                "type": "string",
            },
            "serve": serve,
            "providers": {
                "description": "Providers by name.",
                "type": "object",
                "additionalProperties": {"oneOf": sections},
                "minProperties": 1,
            },
        },
        "required": ["providers"],
        "additionalProperties": false,
        "$defs": definitions,
    })
}

fn document_of<T: JsonSchema>() -> Value {
    SchemaGenerator::default().into_root_schema_for::<T>().to_value()
}

fn taken(document: &mut Value, name: &str) -> Map<String, Value> {
    match document.get_mut(name).map(Value::take) {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    }
}
