//! Reviews a text against a rubric, with a judge that is implemented in this file: no network, no API key.
//!
//! `cargo run -p formwork-review --example embed-review`

use std::sync::Arc;

use async_trait::async_trait;
use formwork_core::{Answer, Call, Capabilities, Completion, Fault, Provider};
use formwork_extract::Backend;
use formwork_review::document::Format;
use formwork_review::{Agent, LlmReviewService, ReviewRubric};
use serde_json::json;

/// A provider that searches for a word instead of calling a model.
#[derive(Debug, Default)]
struct Judge(Capabilities);

#[async_trait]
impl Provider for Judge {
    fn name(&self) -> &str {
        "judge"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.0
    }

    async fn call(&self, call: &Call) -> Result<Answer, Fault> {
        let prompt = call.messages.last().map(|message| message.text()).unwrap_or_default();
        let verdict = if prompt.contains("please") { "pass" } else { "fail" };
        let answer = json!({"reasoning": "I looked for a word.", "verdict": verdict, "confidence": 80});
        Ok(Completion::new(answer.to_string()).into())
    }
}

const RUBRIC: &str = "
name: replies
criteria:
  - id: polite
    description: The reply is polite.
    fix: Say please.
  - id: short
    description: The reply has at most 60 characters.
    schema: {maxLength: 60}
  - id: brand
    description: The reply sounds like us.
    human: true
";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rubric = ReviewRubric::parse("replies.yaml", RUBRIC, Format::Yaml)?;
    let reviewer = LlmReviewService::new(Agent::new([Backend::from(Arc::new(Judge::default()))]));
    for reply in ["Send the form.", "Send us the form, please."] {
        let review = reviewer.review(json!(reply), &rubric).await?;
        println!("{reply}\n  {}", if review.pass { "passes" } else { "fails" });
        for line in review.issues.iter().chain(&review.suggested_fixes).chain(&review.indeterminate) {
            println!("  {line}");
        }
        println!("  {} call", review.price.calls);
    }
    Ok(())
}
