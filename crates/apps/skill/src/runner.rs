use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use formwork_core::{Context, Report, Validator as _};
use formwork_extract::Backend;
use formwork_review::document::nearest;
use formwork_review::{
    Agent, GenerateOptions, GenerationInput, LlmGenerationService, LlmReviewService, Material,
    generate_with_review,
};
use serde_json::{Map, Value};

use crate::handler::{Running, Skills};
use crate::{
    Backends, PolicySpec, Skill, SkillContext, SkillError, SkillHandler, SkillOutcome, TemplateType,
};

/// The maximum depth of skills that run skills.
const DEEPEST: usize = 8;

/// Runs skills by name, and holds the skills, the handlers and the models.
///
/// ```
/// use formwork_skill::{NamedBackends, Skill, SkillContext, SkillError, SkillHandler, SkillRunnerService};
/// use serde_json::{Value, json};
///
/// struct Count;
///
/// #[async_trait::async_trait]
/// impl SkillHandler for Count {
///     async fn handle(&self, cx: &SkillContext<'_>) -> Result<Value, SkillError> {
///         let words = cx.inputs()["text"].as_str().unwrap_or_default().split_whitespace().count();
///         Ok(json!({"words": words}))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), SkillError> {
/// let skill = Skill::parse("count.yaml", "
/// name: count-words
/// description: Counts words.
/// inputs: {text: {type: string}}
/// ")?;
/// let runner = SkillRunnerService::new(NamedBackends::default()).with_skill(skill).with_handler("count-words", Count);
/// let outcome = runner.execute("count-words", json!({"text": "Maria moved to Lisbon."})).await?;
/// assert_eq!(outcome.output, json!({"words": 4}));
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Clone)]
pub struct SkillRunnerService {
    skills: BTreeMap<String, Skill>,
    handlers: BTreeMap<String, Arc<dyn SkillHandler>>,
    backends: Arc<dyn Backends>,
    change: Arc<dyn Fn(Agent) -> Agent + Send + Sync>,
    defaults: PolicySpec,
}

impl SkillRunnerService {
    /// Creates a runner without skills, with this source of models.
    pub fn new(backends: impl Backends + 'static) -> Self {
        Self {
            skills: BTreeMap::new(),
            handlers: BTreeMap::new(),
            backends: Arc::new(backends),
            change: Arc::new(|agent| agent),
            defaults: PolicySpec::default(),
        }
    }

    /// Adds a skill, or replaces the skill of this name (default: none).
    pub fn with_skill(mut self, skill: Skill) -> Self {
        self.skills.insert(skill.name().to_owned(), skill);
        self
    }

    /// Adds a handler, or replaces the handler of this name (default: none).
    pub fn with_handler(mut self, name: impl Into<String>, handler: impl SkillHandler + 'static) -> Self {
        self.handlers.insert(name.into(), Arc::new(handler));
        self
    }

    /// Sets a function that changes the agent of every skill (default: none), for example its clock, seed, observer or
    /// cancellation token.
    pub fn with_agent(mut self, change: impl Fn(Agent) -> Agent + Send + Sync + 'static) -> Self {
        self.change = Arc::new(change);
        self
    }

    /// Sets the settings of skills whose files leave them out (default: the rules of the agent layer).
    pub fn with_defaults(mut self, defaults: PolicySpec) -> Self {
        self.defaults = defaults;
        self
    }

    /// Returns the skills, by name.
    pub fn skills(&self) -> impl Iterator<Item = &Skill> {
        self.skills.values()
    }

    /// Returns the skill of a name.
    ///
    /// # Errors
    /// [`SkillError::Unknown`] with the most similar name, if there is no skill of this name.
    pub fn skill(&self, name: &str) -> Result<&Skill, SkillError> {
        self.skills.get(name).ok_or_else(|| SkillError::Unknown {
            name: name.to_owned(),
            meant: nearest(name, self.skills.keys().map(String::as_str)).map(ToOwned::to_owned),
            there: self.skills.keys().cloned().collect(),
        })
    }

    /// Runs a skill: resolves it, validates the inputs, builds the context, and starts the template or the handler.
    ///
    /// # Errors
    /// [`SkillError`]. An unknown skill, invalid inputs, and a wrong template, handler or provider are errors before
    /// any call of a model; the others mean that the skill had no acceptable output.
    pub async fn execute(&self, skill: &str, inputs: Value) -> Result<SkillOutcome, SkillError> {
        self.run(skill, inputs, &[], None).await
    }

    /// Returns the agent of a skill, with its time limit started.
    fn agent(&self, skill: &Skill, outer: Option<&Agent>) -> Result<Agent, SkillError> {
        let descriptor = skill.descriptor();
        let backends: Vec<Backend> = self
            .backends
            .backends(descriptor.provider.as_deref())
            .map_err(|message| SkillError::Provider { place: skill.place("provider"), message })?;
        let spec = self.policy(skill);
        let mut agent = Agent::new(backends).with_policy(spec.policy()).with_time_limit(spec.time_limit());
        if let Some(tokens) = spec.max_tokens {
            agent = agent.with_max_tokens(tokens);
        }
        agent = (self.change)(agent).begun();
        Ok(match outer {
            Some(outer) => agent.within(outer),
            None => agent,
        })
    }

    /// Returns the settings of a skill: those of its file, then the defaults.
    fn policy(&self, skill: &Skill) -> PolicySpec {
        skill.descriptor().policy.clone().or(&self.defaults)
    }

    async fn handle(
        &self,
        skill: &Skill,
        inputs: &Map<String, Value>,
        agent: Agent,
        chain: &[String],
    ) -> Result<SkillOutcome, SkillError> {
        let name = skill.descriptor().handler.as_deref().unwrap_or(skill.name());
        let handler = self.handlers.get(name).ok_or_else(|| SkillError::Handler {
            skill: skill.name().to_owned(),
            handler: name.to_owned(),
            meant: nearest(name, self.handlers.keys().map(String::as_str)).map(ToOwned::to_owned),
            there: self.handlers.keys().cloned().collect(),
        })?;
        let policy = self.policy(skill);
        let limit = policy.time_limit();
        let (generation, review) = services(skill, &policy, agent);
        let cx = SkillContext { skills: self, skill, inputs, generation, review, chain };
        // Calls of models have their own deadline; this one limits everything else in a handler.
        let handled = tokio::time::timeout(limit, handler.handle(&cx)).await;
        let output = handled.map_err(|_| SkillError::Late {
            skill: skill.name().to_owned(),
            seconds: limit.as_secs_f64(),
        })??;
        Ok(SkillOutcome::new(skill, output))
    }
}

impl Skills for SkillRunnerService {
    fn run<'a>(
        &'a self,
        name: &'a str,
        supplied: Value,
        chain: &'a [String],
        outer: Option<&'a Agent>,
    ) -> Running<'a> {
        Box::pin(async move {
            let began = Instant::now();
            let skill = self.skill(name)?;
            let chain: Vec<String> = chain.iter().cloned().chain([name.to_owned()]).collect();
            if chain.iter().filter(|other| *other == name).count() > 1 {
                return Err(SkillError::Recursion { chain });
            }
            if chain.len() > DEEPEST {
                return Err(SkillError::Deep { limit: DEEPEST, chain });
            }
            let inputs = skill.complete(supplied)?;
            let agent = self.agent(skill, outer)?;
            let mut outcome = match skill.descriptor().template_type {
                Some(TemplateType::LlmJsonGeneration) => {
                    generate(skill, &self.policy(skill), &inputs, agent).await
                }
                Some(TemplateType::LlmReview) => review(skill, &self.policy(skill), &inputs, agent).await,
                None => self.handle(skill, &inputs, agent, &chain).await,
            }?;
            outcome.validation_micros = validate(skill, &outcome.output);
            outcome.total_millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            Ok(outcome)
        })
    }
}

formwork_core::debug_fields!(SkillRunnerService { skills.keys(), handlers.keys() });

fn services(skill: &Skill, policy: &PolicySpec, agent: Agent) -> (LlmGenerationService, LlmReviewService) {
    let review = if skill.descriptor().template_type == Some(TemplateType::LlmReview) {
        let mut review = LlmReviewService::new(agent.clone());
        review.temperature = policy.temperature.unwrap_or(review.temperature);
        review
    } else {
        // The skill's token limit is for generated data; a judge's answer must not be cut off by it.
        LlmReviewService::new(agent.clone().with_max_tokens(LlmReviewService::MAX_TOKENS))
    };
    (LlmGenerationService::new(agent), review)
}

async fn generate(
    skill: &Skill,
    policy: &PolicySpec,
    inputs: &Map<String, Value>,
    agent: Agent,
) -> Result<SkillOutcome, SkillError> {
    let (system, prompt) = skill.render(inputs)?;
    // A skill of this type has a schema, which was checked when the file was read.
    let schema = skill.output_schema().cloned().unwrap_or(Value::Bool(true));
    let input = GenerationInput { system, data: inputs.clone(), ..GenerationInput::new(prompt) };
    let (generation, review) = services(skill, policy, agent);
    let mut result = match skill.rubric() {
        None => generation.generate(&input, &schema).await,
        Some(rubric) => {
            let options = GenerateOptions { retry_once: skill.descriptor().retry_once };
            generate_with_review(&generation, &review, input, &schema, rubric, options).await
        }
    };
    match result.data.take().filter(|_| result.success) {
        Some(data) => {
            let review = result.review.clone();
            result.data = Some(data.clone());
            Ok(SkillOutcome { generation: Some(result), review, ..SkillOutcome::new(skill, data) })
        }
        None => Err(SkillError::Generation { skill: skill.name().to_owned(), result: Box::new(result) }),
    }
}

async fn review(
    skill: &Skill,
    policy: &PolicySpec,
    inputs: &Map<String, Value>,
    agent: Agent,
) -> Result<SkillOutcome, SkillError> {
    let (_, task) = skill.render(inputs)?;
    let failed = |error| SkillError::Review { skill: skill.name().to_owned(), error };
    let config = |message: &str| formwork_core::Error::new(formwork_core::ErrorKind::Config, message);
    let rubric = skill.rubric().ok_or_else(|| failed(config("there is no rubric")))?;
    let subject = skill.subject().and_then(|subject| inputs.get(subject)).cloned().unwrap_or_default();
    let data = inputs.iter().filter(|(name, _)| Some(name.as_str()) != skill.subject());
    let data = data.map(|(name, value)| (name.clone(), value.clone())).collect();
    let (_, service) = services(skill, policy, agent);
    let result = service.review(Material { output: subject, task, data }, rubric).await.map_err(failed)?;
    let output = serde_json::to_value(&result).map_err(|error| failed(config(&error.to_string())))?;
    Ok(SkillOutcome { review: Some(result), ..SkillOutcome::new(skill, output) })
}

/// Returns the duration of the output's validation in microseconds.
fn validate(skill: &Skill, output: &Value) -> u64 {
    let Some(compiled) = skill.output() else { return 0 };
    let began = Instant::now();
    let mut report = Report::default();
    compiled.validate(output, &Context::EMPTY, &mut report);
    u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX).max(1)
}
