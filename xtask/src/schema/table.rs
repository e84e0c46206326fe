//! The types with a schema file. Each line has the file's name, and whether programs read or write the type.

use std::path::Path;

use formwork::golden::Folder;
use formwork_batch::{Identified, RejectedLine, ResultLine};
use formwork_chat::{ChatResult, StructuredAnswerLite};
use formwork_cli::rows;
use formwork_core::{
    CallRecord, Edit, ErrorKind, Failure, Fault, LiftOp, Loss, Lowered, Outcome, Rule, Violation,
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

use super::oracle;

/// The OpenAPI description of the service, which contains JSON Schemas.
pub(super) const OPENAPI: &str = "openapi.json";

/// Returns every file of `schemas/`.
pub(super) fn all(folder: &Path) -> Folder {
    oracle::add(Folder::new(folder))
        .written::<Edit>("edit")
        .written::<ReadError>("read-error")
        .written::<CallRecord>("call")
        .written::<ErrorKind>("error-kind")
        .written::<Failure>("failure")
        .written::<Fault>("fault")
        .written::<LiftOp>("lift-op")
        .written::<Loss>("loss")
        .written::<Lowered>("lowered")
        .written::<Outcome<Value>>("outcome")
        .typed::<Rule>("rule")
        .typed::<Vec<Rule>>("rules")
        .written::<Violation>("violation")
        .typed::<Registry>("registry")
        .written::<Entry>("registry-entry")
        .written::<RegistryError>("registry-error")
        .written::<SchemaError>("schema-error")
        .written::<ChatResult<StructuredAnswerLite>>("chat-result")
        .written::<StructuredAnswerLite>("structured-answer-lite.v1")
        .written::<Scored>("score")
        .written::<ScoreEvent>("score-event")
        .typed::<Wallet>("wallet")
        .written::<Comparison>("comparison")
        .written::<GenerationResult>("generation-result")
        .written::<ReviewResult>("review-result")
        .typed::<ReviewRubric>("rubric")
        .typed::<SkillDescriptor>("skill")
        .written::<SkillOutcome>("skill-outcome")
        .written::<SkillReport>("skill-report")
        .document("formwork.toml", config())
        .verbatim("openapi", formwork_gateway::openapi())
        .written::<Identified<RejectedLine<'static>>>("batch-rejected")
        .written::<Identified<ResultLine<'static>>>("batch-result")
        .written::<rows::BatchOutput>("batch-output")
        .typed::<rows::CheckInput>("check-input")
        .written::<rows::CheckOutput>("check-output")
        .written::<rows::ConfigOutput>("config-output")
        .written::<rows::DoctorOutput>("doctor-output")
        .typed::<rows::EvalAnswer>("eval-answer")
        .typed::<rows::EvalGold>("eval-gold")
        .written::<formwork_eval::Comparison>("eval-comparison")
        .written::<formwork_eval::Report>("eval-output")
        .typed::<rows::EvidenceInput>("evidence-input")
        .written::<rows::EvidenceOutput>("evidence-output")
        .typed::<rows::ExtractInput>("extract-input")
        .written::<rows::ExtractOutput>("extract-output")
        .typed::<rows::LowerInput>("lower-input")
        .written::<rows::LowerOutput>("lower-output")
        .written::<rows::ModelOutput>("model-output")
        .written::<rows::OracleCompareOutput>("oracle-compare-output")
        .written::<rows::OracleOutput>("oracle-output")
        .written::<Report>("oracle-report")
        .typed::<rows::ReadInput>("read-input")
        .written::<rows::ReadOutput>("read-output")
        .written::<rows::ReadProgress>("read-progress")
        .written::<rows::ServerModelDetails>("server-model-details")
        .written::<rows::ServerModelOutput>("server-model-output")
        .written::<rows::SkillRunOutput>("skill-run-output")
        .written::<rows::SkillRow>("skill-row")
        .with_command("cargo xtask schema")
}

/// Returns the schema of the configuration file with all kinds of providers.
fn config() -> Value {
    formwork::config::schema(&formwork::providers::Providers::builtin())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn files() -> BTreeMap<String, String> {
        all(Path::new("schemas")).files().unwrap()
    }

    #[test]
    fn every_schema_compiles_and_ends_with_a_newline() {
        for (name, text) in files() {
            assert!(text.ends_with("}\n"), "{name}");
            if name == OPENAPI {
                continue;
            }
            let document: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(document["$schema"], "https://json-schema.org/draft/2020-12/schema", "{name}");
            formwork_schema::compile(&document).unwrap();
        }
    }

    #[test]
    fn what_serde_writes_satisfies_its_schema() {
        let schema = |name: &str| {
            let text = &files()[&format!("{name}.json")];
            formwork_schema::compile(&serde_json::from_str(text).unwrap()).unwrap()
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
