//! Which types have a schema file. One line each: the file's name, and the side from which the type is described.

use formwork_chat::{ChatResult, StructuredAnswerLite};
use formwork_cli::rows;
use formwork_core::{
    Attempt, Edit, ErrorKind, Failure, Fault, LiftOp, Loss, Lowered, Outcome, Rule, Violation,
};
use formwork_dialect::registry::{Entry, Registry, RegistryError};
use formwork_json::ReadError;
use formwork_oracle::report::Report;
use formwork_oracle::wallet::Wallet;
use formwork_oracle::{ScoreEvent, Scored};
use formwork_review::{Comparison, GenerationResult, ReviewResult, ReviewRubric};
use formwork_schema::SchemaError;
use formwork_skill::{SkillDescriptor, SkillOutcome, SkillReport};
use serde_json::Value;

use super::document::{plain, read, written};
use super::oracle;

/// Every schema: the name of its file without `.json`, and its text.
pub(super) fn all() -> Vec<(&'static str, String)> {
    vec![
        // formwork-json
        ("edit", written::<Edit>()),
        ("read-error", written::<ReadError>()),
        // formwork-core
        ("attempt", written::<Attempt>()),
        ("error-kind", written::<ErrorKind>()),
        ("failure", written::<Failure>()),
        ("fault", written::<Fault>()),
        ("lift-op", written::<LiftOp>()),
        ("loss", written::<Loss>()),
        ("lowered", written::<Lowered>()),
        ("outcome", written::<Outcome<Value>>()),
        ("rule", read::<Rule>()),
        ("rules", read::<Vec<Rule>>()),
        ("violation", written::<Violation>()),
        // formwork-dialect
        ("registry", read::<Registry>()),
        ("registry-entry", written::<Entry>()),
        ("registry-error", written::<RegistryError>()),
        // formwork-schema
        ("schema-error", written::<SchemaError>()),
        // formwork-chat
        ("chat-result", written::<ChatResult<StructuredAnswerLite>>()),
        ("structured-answer-lite.v1", written::<StructuredAnswerLite>()),
        // formwork-oracle
        ("ai-score.v1", oracle::ai_score()),
        ("ai-score.v1.llama-cpp", oracle::lowered("llama-cpp")),
        ("ai-score.v1.llguidance", oracle::lowered("llguidance")),
        ("ai-score.v1.ollama", oracle::lowered("ollama")),
        ("ai-score.v1.openai", oracle::lowered("openai")),
        ("score", written::<Scored>()),
        ("score-event", written::<ScoreEvent>()),
        ("wallet", read::<Wallet>()),
        // formwork-review
        ("comparison", written::<Comparison>()),
        ("generation-result", written::<GenerationResult>()),
        ("review-result", written::<ReviewResult>()),
        ("rubric", read::<ReviewRubric>()),
        // formwork-skill
        ("skill", read::<SkillDescriptor>()),
        ("skill-outcome", written::<SkillOutcome>()),
        ("skill-report", written::<SkillReport>()),
        // formwork
        ("formwork.toml", config()),
        // formwork-cli
        ("check-input", read::<rows::CheckInput>()),
        ("check-output", written::<rows::CheckOutput>()),
        ("doctor-output", written::<rows::DoctorOutput>()),
        ("extract-input", read::<rows::ExtractInput>()),
        ("extract-output", written::<rows::ExtractOutput>()),
        ("lower-input", read::<rows::LowerInput>()),
        ("lower-output", written::<rows::LowerOutput>()),
        ("model-output", written::<rows::ModelOutput>()),
        ("oracle-compare-output", written::<rows::OracleCompareOutput>()),
        ("oracle-output", written::<rows::OracleOutput>()),
        ("oracle-report", written::<Report>()),
        ("read-input", read::<rows::ReadInput>()),
        ("read-output", written::<rows::ReadOutput>()),
        ("server-model-details", written::<rows::ServerModelDetails>()),
        ("server-model-output", written::<rows::ServerModelOutput>()),
        ("skill-run-output", written::<rows::SkillRunOutput>()),
        ("skill-row", written::<rows::SkillRow>()),
    ]
}

/// Of the configuration file, with every kind of provider that there is.
fn config() -> String {
    plain(formwork::config::schema(&formwork::providers::Providers::builtin()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn every_name_stands_once() {
        let names: Vec<_> = all().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }

    #[test]
    fn every_schema_compiles_and_ends_with_a_newline() {
        for (name, text) in all() {
            assert!(text.ends_with("}\n"), "{name}");
            let document: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(document["$schema"], "https://json-schema.org/draft/2020-12/schema", "{name}");
            formwork_schema::compile(&document).unwrap();
        }
    }

    #[test]
    fn what_serde_writes_satisfies_its_schema() {
        let schema = |wanted: &str| {
            let (_, text) = all().into_iter().find(|(name, _)| *name == wanted).unwrap();
            formwork_schema::compile(&serde_json::from_str(&text).unwrap()).unwrap()
        };
        let violation = Violation::new("$.a[0]".parse().unwrap(), "type", formwork_core::Stage::Schema);
        let violation = violation.with_expected("string").with_found("number");
        assert!(schema("violation").is_valid(&serde_json::to_value(&violation).unwrap()));
        let fault = Fault::new(formwork_core::FaultKind::Timeout, "too late").with_status(504);
        let failure = serde_json::to_value(Failure::Fault(fault.clone())).unwrap();
        assert!(schema("failure").is_valid(&failure), "{failure}");
        assert!(schema("fault").is_valid(&serde_json::to_value(&fault).unwrap()));
        assert!(schema("read-error").is_valid(&serde_json::to_value(ReadError::Empty).unwrap()));
        assert!(schema("check-input").is_valid(&json!({"schema": true, "data": [1]})));
        assert!(!schema("check-input").is_valid(&json!({"schema": true})));
        assert!(schema("rule").is_valid(&json!({"rule": "atMost", "target": "$.low", "limit": "$.high"})));
    }
}
