//! The schemas of the oracle's completion: the contract, and its lowering to each dialect.

use formwork::golden::Folder;
use formwork_core::LowerRequest;
use formwork_oracle::{AI_RESPONSE_SCHEMA, CrossCheck, DEFAULT_MAX_TOKENS};

const DIALECTS: [&str; 4] = ["llama-cpp", "llguidance", "ollama", "openai"];

/// Adds the schema of the contract, and the schema sent in each dialect for a completion of the usual length.
pub(super) fn add(folder: Folder) -> Folder {
    let folder = folder.document("ai-score.v1", AI_RESPONSE_SCHEMA.clone());
    DIALECTS.iter().fold(folder, |folder, dialect| {
        // The in-process model writes the breakdown first, because the grammar enforces the weighted sum.
        let dependencies: Vec<_> = match *dialect {
            "llguidance" => CrossCheck::default().rule().dependency().into_iter().collect(),
            _ => Vec::new(),
        };
        let request = LowerRequest::new(&AI_RESPONSE_SCHEMA)
            .with_dependencies(&dependencies)
            .with_max_tokens(Some(DEFAULT_MAX_TOKENS));
        folder.lowered_by(dialect, &request)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn every_dialect_takes_the_answer() {
        let files = add(Folder::new("schemas")).files().unwrap();
        let document = |dialect: &str| -> Value {
            serde_json::from_str(&files[&format!("ai-score.v1.{dialect}.json")]).unwrap()
        };
        for dialect in DIALECTS {
            assert_eq!(document(dialect)["properties"]["score"]["maximum"], 1000, "{dialect}");
        }
        let local = document("llguidance");
        let first = local["properties"].as_object().unwrap().keys().next();
        assert_eq!(json!(first), "scoreBreakdown");
    }
}
