use async_trait::async_trait;
use formwork_core::{CallRecord, Cost, Error, Input, Message, Outcome, Trust, Usage, decode};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tracing::info_span;

use crate::quote::sentences;
use crate::{Agent, GenerationError, ReviewPrice, ReviewResult};

/// The input of a generation.
///
/// ```
/// use formwork_review::GenerationInput;
///
/// let input = GenerationInput { seed: Some(7), ..GenerationInput::new("Greet Maria.") };
/// assert_eq!((input.prompt.as_str(), input.critique), ("Greet Maria.", None));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GenerationInput {
    /// The prompt: the user message.
    pub prompt: String,
    /// The system prompt (default: none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Data for the review of the answer, by name; the generator does not see it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub data: Map<String, Value>,
    /// A reviewer's critique of an earlier answer (default: none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critique: Option<Critique>,
    /// The seed of the model's sampling (default: the agent's).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// A reviewer's critique of an answer, for the next generation.
///
/// ```
/// use formwork_review::{Critique, GenerationInput};
///
/// let critique = Critique { issues: vec!["too long".into()], suggestions: vec!["Cut the greeting.".into()] };
/// let input = GenerationInput { critique: Some(critique), ..GenerationInput::new("Answer the customer.") };
/// assert_eq!(input.critique.unwrap().issues, ["too long"]);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Critique {
    /// The issues.
    pub issues: Vec<String>,
    /// The suggested changes.
    pub suggestions: Vec<String>,
}

/// The result of a generation.
///
/// ```
/// use formwork_core::{Error, ErrorKind};
/// use formwork_review::GenerationResult;
///
/// let result = GenerationResult::<u8>::failed(&Error::new(ErrorKind::Unavailable, "the server is down"));
/// assert!(!result.success && result.data.is_none());
/// assert_eq!((result.error.unwrap().kind, result.calls.len()), (ErrorKind::Unavailable, 0));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GenerationResult<T = Value> {
    /// Whether `data` holds an answer.
    pub success: bool,
    /// The answer; it satisfies the schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<T>,
    /// The reason why there is no data, or why the second generation failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<GenerationError>,
    /// The review of the data, if there is a rubric; [`ReviewResult::error`] is the reason if it could not be carried
    /// out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<ReviewResult>,
    /// The failed review of the first answer, if `data` is the second answer. Its price is separate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_review: Option<ReviewResult>,
    /// Whether the answer was generated once more, with the critique.
    #[serde(default)]
    pub retried: bool,
    /// The history of the leaves of `data`: how many the model wrote freely, and which it did not; absent without data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
    /// Every call of the generation, in order; the calls of reviews are not included.
    #[serde(alias = "attempts")]
    pub calls: Vec<CallRecord>,
    /// The tokens of these calls; a review states its own price.
    pub usage: Usage,
    /// The cost of these calls.
    pub cost: Cost,
}

impl GenerationInput {
    /// Creates an input with this prompt.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self { prompt: prompt.into(), ..Self::default() }
    }

    fn messages(&self) -> Vec<Message> {
        let critique = self.critique.as_ref().map(|critique| Message::user(critique.words()));
        let system = self.system.as_ref().map(Message::system);
        system.into_iter().chain([Message::user(&self.prompt)]).chain(critique).collect()
    }
}

impl Critique {
    /// The maximum number of points of each kind in the prompt, and the maximum number of characters of each.
    const MOST: (usize, usize) = (20, 500);

    fn words(&self) -> String {
        let list = |title: &str, points: &[String]| {
            let points: String = points
                .iter()
                .take(Self::MOST.0)
                .map(|point| format!("\n- {}", sentences(point, Self::MOST.1)))
                .collect();
            if points.is_empty() { String::new() } else { format!("\n\n{title}:{points}") }
        };
        format!(
            "A reviewer rejected an earlier answer.{}{}\n\nAnswer again so that no issue is left.",
            list("Issues", &self.issues),
            list("Suggestions", &self.suggestions)
        )
    }
}

impl<T> GenerationResult<T> {
    /// Returns a result without data, for this reason.
    pub fn failed(error: &Error) -> Self {
        let calls = error.calls().to_vec();
        Self { error: Some(error.into()), ..Self::new(None, calls, error.usage(), error.cost()) }
    }

    fn new(data: Option<T>, calls: Vec<CallRecord>, usage: Usage, cost: Cost) -> Self {
        let success = data.is_some();
        let (error, review, first_review, retried, trust) = (None, None, None, false, None);
        Self { success, data, error, review, first_review, retried, trust, calls, usage, cost }
    }

    /// Returns the number of attempts beyond the first: answers that were requested again because of their content.
    pub fn retries(&self) -> u32 {
        self.calls.iter().map(|call| call.attempt.saturating_sub(1)).max().unwrap_or_default()
    }

    /// Returns the cost of all reviews: the review of the data and the one that the first answer failed.
    pub fn review_price(&self) -> ReviewPrice {
        let reviews = self.first_review.iter().chain(&self.review);
        reviews.fold(ReviewPrice::default(), |sum, review| sum.plus(review.price))
    }
}

impl GenerationResult<Value> {
    /// Returns the result with the data deserialized as `T`. Data that cannot be deserialized makes a failed result.
    pub fn decoded<T: DeserializeOwned>(self) -> GenerationResult<T> {
        let Self { success, data, mut error, review, first_review, retried, trust, calls, usage, cost } =
            self;
        let data = data.as_ref().map(decode).transpose().unwrap_or_else(|wrong| {
            let message = format!("the answer satisfies the schema and is none of the type: {wrong}");
            error = Some(GenerationError::unusable(message));
            None
        });
        let success = success && data.is_some();
        GenerationResult { success, data, error, review, first_review, retried, trust, calls, usage, cost }
    }
}

impl From<Outcome<Value>> for GenerationResult<Value> {
    fn from(outcome: Outcome<Value>) -> Self {
        let Outcome { value, trust, calls, usage, cost, .. } = outcome;
        Self { trust: Some(trust), ..Self::new(Some(value), calls, usage, cost) }
    }
}

/// Generates JSON. [`LlmGenerationService`] implements it; implement it for a generator of your own.
///
/// ```
/// use formwork_core::{Error, ErrorKind};
/// use formwork_review::{Generate, GenerationInput, GenerationResult};
/// use serde_json::Value;
///
/// #[derive(Debug)]
/// struct Offline;
///
/// #[async_trait::async_trait]
/// impl Generate for Offline {
///     async fn generate(&self, _: &GenerationInput, _: &Value) -> GenerationResult {
///         GenerationResult::failed(&Error::new(ErrorKind::Unavailable, "no network"))
///     }
/// }
/// # let _: Box<dyn Generate> = Box::new(Offline);
/// ```
#[async_trait]
pub trait Generate: Send + Sync {
    /// Generates JSON that satisfies a schema. Failures are in the result's `error`.
    async fn generate(&self, input: &GenerationInput, schema: &Value) -> GenerationResult;
}

/// Generates JSON with a model. The schema is enforced natively where the model supports it. Every answer is validated,
/// and an invalid one is requested once more with its violations.
///
/// ```
/// use formwork_review::{Agent, GenerationInput, LlmGenerationService};
/// use formwork_testkit::Scripted;
/// use serde_json::json;
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let model = Scripted::new([r#"{"age": "34"}"#, r#"{"age": 34}"#]);
/// let generator = LlmGenerationService::new(Agent::new([Arc::new(model).into()]));
/// let schema = json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]});
/// let result = generator.generate(&GenerationInput::new("How old is Maria, 34?"), &schema).await;
/// assert_eq!((result.data, result.calls.len()), (Some(json!({"age": 34})), 2));
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct LlmGenerationService {
    agent: Agent,
}

impl LlmGenerationService {
    /// Creates a service that calls the models of this agent.
    pub const fn new(agent: Agent) -> Self {
        Self { agent }
    }

    /// Returns the agent.
    pub const fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Generates JSON that satisfies a schema. Failures are in the result's `error`.
    pub async fn generate(&self, input: &GenerationInput, schema: &Value) -> GenerationResult {
        match self.ask(input, schema).await {
            Ok(outcome) => outcome.into(),
            Err(error) => GenerationResult::failed(&error),
        }
    }

    async fn ask(&self, input: &GenerationInput, schema: &Value) -> Result<Outcome<Value>, Error> {
        let contract = Agent::contract(schema.clone())?;
        let mut request = Input::new(input.messages()).with_source(&input.prompt);
        request.seed = input.seed;
        let span =
            info_span!(target: "formwork", "llm_generation", "formwork.critique" = input.critique.is_some());
        self.agent.ask(span, contract, self.agent.policy().clone(), self.agent.max_tokens(), request).await
    }
}

#[async_trait]
impl Generate for LlmGenerationService {
    async fn generate(&self, input: &GenerationInput, schema: &Value) -> GenerationResult {
        Self::generate(self, input, schema).await
    }
}
