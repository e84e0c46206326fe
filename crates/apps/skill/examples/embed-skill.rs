//! Runs a skill with a model that is implemented in this file: no network, no API key.
//!
//! `cargo run -p formwork-skill --example embed-skill`

use std::sync::Arc;

use async_trait::async_trait;
use formwork_core::{Answer, Call, Capabilities, Completion, Fault, Provider};
use formwork_skill::{NamedBackends, Skill, SkillError, SkillRunnerService};
use serde_json::json;

/// A provider with one fixed answer.
#[derive(Debug, Default)]
struct Model(Capabilities);

#[async_trait]
impl Provider for Model {
    fn name(&self) -> &str {
        "model"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.0
    }

    async fn call(&self, _: &Call) -> Result<Answer, Fault> {
        Ok(Completion::new(r#"{"headline": "Maria moves to Lisbon"}"#).into())
    }
}

const SKILL: &str = r#"
name: headline
description: Finds a headline for a text.
template_type: LLM_JSON_GENERATION
inputs:
  text: {type: string}
prompt: "Find a headline: {{ text }}"
output:
  shape: '{"headline": string}'
rubric:
  name: headline
  criteria:
    - id: short
      description: The headline has at most 40 characters.
      schema: {properties: {headline: {maxLength: 40}}}
"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), SkillError> {
    let model = Arc::new(Model::default());
    let runner = SkillRunnerService::new(NamedBackends::new([model.into()]))
        .with_skill(Skill::parse("headline.yaml", SKILL)?);
    let outcome = runner.execute("headline", json!({"text": "Maria, 34, moved to Lisbon."})).await?;
    println!("{} (review: {})", outcome.output, outcome.review.is_some_and(|review| review.pass));
    Ok(())
}
