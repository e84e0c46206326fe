//! The oracle's answer: the schema that it is judged by, and what each dialect makes of it.

use formwork_core::LowerRequest;
use formwork_oracle::{AI_RESPONSE_SCHEMA, CrossCheck, DEFAULT_MAX_TOKENS};
use serde_json::{Map, Value};

/// What is judged.
pub(super) fn ai_score() -> String {
    text(&AI_RESPONSE_SCHEMA)
}

/// What is sent in a dialect, for an answer of the usual length. A model in this process writes the breakdown first,
/// because it keeps to the weighted sum.
pub(super) fn lowered(dialect: &str) -> String {
    let dependencies: Vec<_> = match dialect {
        "llguidance" => CrossCheck::default().rule().dependency().into_iter().collect(),
        _ => Vec::new(),
    };
    let request = LowerRequest {
        dependencies: &dependencies,
        max_tokens: Some(DEFAULT_MAX_TOKENS),
        ..LowerRequest::new(&AI_RESPONSE_SCHEMA)
    };
    let lowered = formwork_dialect::dialect(dialect).and_then(|lower| lower.lower(&request).ok()?.schema);
    // A dialect that does not take it has no file worth its name: the test of all files says so.
    text(&lowered.unwrap_or_default())
}

fn text(schema: &Value) -> String {
    let mut document = Map::new();
    document.insert("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
    document.extend(schema.as_object().cloned().unwrap_or_default());
    format!("{:#}\n", Value::Object(document))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_dialect_takes_the_answer() {
        for dialect in ["llama-cpp", "llguidance", "ollama", "openai"] {
            let document: Value = serde_json::from_str(&lowered(dialect)).unwrap();
            assert_eq!(document["properties"]["score"]["maximum"], 1000, "{dialect}");
        }
        let local: Value = serde_json::from_str(&lowered("llguidance")).unwrap();
        let first = local["properties"].as_object().unwrap().keys().next();
        assert_eq!(json!(first), "scoreBreakdown");
    }
}
