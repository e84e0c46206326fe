use formwork_core::{Error, ErrorKind};
use formwork_schema::compile;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::generation::Generate;
use crate::review::Review;
use crate::{Critique, GenerationInput, GenerationResult, Material, ReviewResult, ReviewRubric};

/// The options of [`generate_with_review`].
///
/// ```
/// use formwork_review::GenerateOptions;
///
/// assert!(!GenerateOptions::default().retry_once);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GenerateOptions {
    /// Whether an answer that fails its review is generated once more, with the critique (default: `false`).
    pub retry_once: bool,
}

/// Generates JSON, reviews it, and generates it once more with the critique if the review failed and
/// [`retry_once`](GenerateOptions::retry_once) is set.
///
/// A rubric with a path at which the schema allows no value is an error before any call. A failed generation is not reviewed. If the second generation fails, the result holds the first answer, its review and
/// the error, and `retried` is `true`. A review that cannot be carried out fails with the reason in
/// [`error`](crate::ReviewResult::error), and causes no second generation.
///
/// ```
/// use formwork_review::{
///     Agent, Criterion, GenerateOptions, GenerationInput, LlmGenerationService, LlmReviewService, ReviewRubric,
///     generate_with_review,
/// };
/// use formwork_testkit::Scripted;
/// use serde_json::{Value, json};
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let agent = Agent::new([Arc::new(Scripted::new([r#"{"word": "long-winded"}"#, r#"{"word": "brief"}"#])).into()]);
/// let schema = json!({"properties": {"word": {"maxLength": 6}}});
/// let short = Criterion { schema: Some(schema), ..Criterion::new("short", "The word has at most 6 letters.") };
/// let result = generate_with_review::<Value>(
///     &LlmGenerationService::new(agent.clone()),
///     &LlmReviewService::new(agent),
///     GenerationInput::new("Say it in a word."),
///     &json!({"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}),
///     &ReviewRubric::new("brevity").with_criterion(short),
///     GenerateOptions { retry_once: true },
/// ).await;
/// assert_eq!(result.data.unwrap()["word"], "brief");
/// assert!(result.retried && result.review.unwrap().pass);
/// # }
/// ```
pub async fn generate_with_review<T: DeserializeOwned>(
    generator: &dyn Generate,
    reviewer: &dyn Review,
    input: GenerationInput,
    schema: &Value,
    rubric: &ReviewRubric,
    options: GenerateOptions,
) -> GenerationResult<T> {
    if let Err(error) = fits(rubric, schema) {
        return GenerationResult::failed(&error);
    }
    let first = generator.generate(&input, schema).await;
    let first = reviewed(reviewer, &input, rubric, first).await;
    let critique = match &first.review {
        Some(review) if options.retry_once && !review.pass && review.error.is_none() => {
            Critique { issues: review.issues.clone(), suggestions: review.suggested_fixes.clone() }
        }
        _ => return first.decoded(),
    };
    let again = GenerationInput { critique: Some(critique), ..input };
    let second = generator.generate(&again, schema).await;
    let failed = !second.success;
    let mut result = if failed {
        GenerationResult { error: second.error, ..first.clone() }
    } else {
        let second = GenerationResult { first_review: first.review.clone(), ..second.clone() };
        reviewed(reviewer, &again, rubric, second).await
    };
    result.retried = true;
    result.calls = first.calls.into_iter().chain(second.calls).collect();
    result.usage = first.usage.plus(second.usage);
    result.cost = first.cost.plus(second.cost);
    result.decoded()
}

/// Checks that outputs of the schema can have the values that the rubric names.
fn fits(rubric: &ReviewRubric, schema: &Value) -> Result<(), Error> {
    let compiled = compile(schema).map_err(|error| Error::new(ErrorKind::Schema, error.to_string()))?;
    rubric.usable(Some(compiled.as_ref()))
}

/// Returns the generation with the review of its data.
async fn reviewed(
    reviewer: &dyn Review,
    input: &GenerationInput,
    rubric: &ReviewRubric,
    mut result: GenerationResult,
) -> GenerationResult {
    let Some(data) = result.data.as_ref().filter(|_| result.success) else { return result };
    let material = Material { output: data.clone(), task: input.prompt.clone(), data: input.data.clone() };
    let review = reviewer.review(material, rubric).await;
    result.review = Some(review.unwrap_or_else(|error| ReviewResult::not_carried_out(&error)));
    result
}
