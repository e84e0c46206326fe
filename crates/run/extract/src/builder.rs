use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use formwork_core::{
    Calibrations, Clock, Context, Contract, Cost, Error, ErrorKind, Inline, Instruction, JsonPath, Level,
    Message, Plan, PlanOptions, Policy, RetryPolicy, Rule, Schema, Target, Temperature, Validator, Warning,
    spaced,
};
use formwork_schema::{SaysNothing, SchemaError, says_nothing, unwrapped};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::budget::tighter;
use crate::external::FallbackFn;
use crate::extractor::{Extractor, Order, Shared};
use crate::{
    AsyncValidator, Backend, Budget, Budgets, Driver, Fallback, ObservationStore, Observer, Situation,
};

/// Builds an [`Extractor`]. [`build`](Self::build) reports all errors.
///
/// ```
/// use std::{sync::Arc, time::Duration};
///
/// use formwork_extract::Extractor;
/// use formwork_testkit::Scripted;
/// use serde_json::json;
///
/// let schema = json!({"properties": {"city": {"type": "string"}}, "required": ["city"]});
/// let extractor = Extractor::for_document("place", schema)
///     .with_target(Arc::new(Scripted::new([r#"{"city": "Lisbon"}"#])))
///     .with_system("Extract the city.")
///     .with_max_attempts(2)
///     .with_deadline(Duration::from_secs(30))
///     .build()?;
/// assert_eq!(extractor.extract_blocking("Maria moved to Lisbon.")?.value, json!({"city": "Lisbon"}));
/// # Ok::<(), formwork_core::Error>(())
/// ```
#[must_use]
pub struct ExtractorBuilder<T> {
    contract: Result<Contract, Error>,
    /// The reason why the schema of the request says nothing about values, if it does not.
    nothing: Option<SaysNothing>,
    backends: Vec<Backend>,
    policy: Policy,
    custom: Option<Arc<dyn RetryPolicy>>,
    max_attempts: Option<u32>,
    temperature: Option<f64>,
    options: PlanOptions,
    system: Option<String>,
    examples: Vec<(String, Result<Value, serde_json::Error>)>,
    data: Value,
    seed: Option<u64>,
    /// The driver, which gets its providers, its budgets and a store of the targets at the end.
    driver: Driver,
    shared_budget: Option<Budget>,
    store: Option<ObservationStore>,
    of: PhantomData<fn() -> T>,
}

impl<T: JsonSchema + DeserializeOwned + Send + 'static> Extractor<T> {
    /// Returns the builder of an extractor for a Rust type, with the schema that schemars derives.
    pub fn builder() -> ExtractorBuilder<T> {
        ExtractorBuilder::requesting(Arc::new(Inline::of::<T>()))
    }
}

impl Extractor<Value> {
    /// Returns the builder of an extractor for a schema without a Rust type.
    ///
    /// A schema inside of a vendor's wrapper, such as `{"name", "input_schema"}`, is [unwrapped](unwrapped), and every outcome
    /// has a warning about it.
    pub fn for_schema(schema: Arc<dyn Schema>) -> ExtractorBuilder<Value> {
        match unwrapped(schema.document()) {
            None => ExtractorBuilder::requesting(schema),
            Some((inner, warning)) => {
                ExtractorBuilder::requesting(Arc::new(Inline::new(schema.name(), inner.clone())))
                    .with_warning(warning)
            }
        }
    }

    /// Returns the builder of an extractor for a JSON Schema document. The name may contain letters, digits, `_` and `-`.
    pub fn for_document(name: impl Into<String>, schema: Value) -> ExtractorBuilder<Value> {
        Self::for_schema(Arc::new(Inline::new(name, schema)))
    }
}

impl<T: DeserializeOwned + Send + 'static> Extractor<T> {
    /// Returns the builder of an extractor for an existing contract, for example one with a validator of its own.
    pub fn for_contract(contract: Contract) -> ExtractorBuilder<T> {
        ExtractorBuilder::new(Ok(contract))
    }
}

impl<T: DeserializeOwned + Send + 'static> ExtractorBuilder<T> {
    /// Creates the builder for the schema of a request, which has to say something about values.
    fn requesting(schema: Arc<dyn Schema>) -> Self {
        let nothing = says_nothing(schema.document());
        Self { nothing, ..Self::new(contract_for(schema)) }
    }

    pub(crate) fn new(contract: Result<Contract, Error>) -> Self {
        Self {
            contract: contract.map(Contract::with_type::<T>),
            nothing: None,
            backends: Vec::new(),
            policy: Policy::default(),
            custom: None,
            max_attempts: None,
            temperature: None,
            options: PlanOptions::default(),
            system: None,
            examples: Vec::new(),
            data: Value::Null,
            seed: None,
            driver: Driver::new([]),
            shared_budget: None,
            store: None,
            of: PhantomData,
        }
    }

    /// Adds a target (default: none; at least one is required). A run starts with the first target, and the policy decides when
    /// it advances to the next one.
    pub fn with_target(mut self, backend: impl Into<Backend>) -> Self {
        self.backends.push(backend.into());
        self
    }

    /// Sets the retry policy: a [`Policy`] or your own [`RetryPolicy`] (default: [`Policy::default`]). Your own one that the configuration
    /// names for the first target goes before a [`Policy`]. [`with_max_attempts`](Self::with_max_attempts) and
    /// [`with_temperature`](Self::with_temperature) change a [`Policy`] and cannot be combined with your own one.
    pub fn with_policy(mut self, policy: impl RetryPolicy + 'static) -> Self {
        match (&policy as &dyn Any).downcast_ref::<Policy>() {
            Some(ready) => (self.policy, self.custom) = (ready.clone(), None),
            None => self.custom = Some(Arc::new(policy)),
        }
        self
    }

    formwork_core::setters! {
        /// Sets the maximum number of attempts over all targets, at least 1 (default: the number of the policy).
        pub const fn with_max_attempts(Some(max_attempts): u32);
        /// Sets the temperature of every attempt (default: the temperatures of the policy).
        pub const fn with_temperature(Some(temperature): f64);
        /// Sets the sampling seed of inputs without a seed (default: none, the provider chooses).
        pub const fn with_seed(Some(seed): u64);
        /// Sets a budget that all extractions share with all other users of its clones (default: none). A call waits in order while open
        /// calls may give enough back.
        pub fn with_shared_budget(Some(shared_budget): Budget);
        /// Sets the observation store, for extractors that share one (default: the store of the first target that
        /// [has one](Backend::with_observation_store), else a new store).
        pub fn with_observation_store(Some(store): ObservationStore);
        /// Sets the system prompt, which describes the task (default: none).
        pub fn with_system(Some(system): impl Into<String>);
        /// Sets the data that checks receive, for inputs without data (default: `null`).
        pub fn with_data(data: Value);
    }

    formwork_core::setters! {
        in options:
        /// Sets the token limit of each answer (default: the limit of the target).
        pub const fn with_max_tokens(Some(max_tokens): u32);
        /// Sets the time limit of each extraction, including delays between calls (default: no limit).
        pub const fn with_deadline(Some(deadline): Duration);
        /// Sets the cost limit of each extraction (default: no limit).
        pub const fn with_budget(Some(budget): Cost);
        /// Sets how tolerantly answers are read (default: [`Level::Clean`]).
        pub const fn with_level(level: Level);
        /// Sets the instruction around the schema in prompts (default: [`Instruction::default`]).
        pub fn with_instruction(instruction: Instruction);
    }

    /// Sets how long a call may wait for the shared budgets (default: until the deadline of the extraction); see
    /// [`Driver::with_max_budget_wait`].
    pub fn with_max_budget_wait(mut self, max: Duration) -> Self {
        self.driver = self.driver.with_max_budget_wait(max);
        self
    }

    /// Ends extractions at once while no target can be reached, after one extraction has failed for this reason (default: each
    /// extraction retries); see [`Driver::with_fail_fast`].
    pub fn with_fail_fast(mut self) -> Self {
        self.driver = self.driver.with_fail_fast();
        self
    }

    /// Adds an example of an input and its correct answer, as a value of the type or as JSON (default: none). It precedes the
    /// input in the prompt, and must satisfy the contract.
    pub fn with_example(mut self, input: impl Into<String>, output: impl Serialize) -> Self {
        self.examples.push((input.into(), serde_json::to_value(output)));
        self
    }

    /// Adds a rule that answers must satisfy (default: none).
    pub fn with_rule(self, rule: Rule) -> Self {
        self.contract(|contract| Ok(contract.with_rule(rule)))
    }

    /// Adds a rule whose violations are reported with the answer as warnings and do not reject it (default: none).
    pub fn with_soft_rule(self, rule: Rule) -> Self {
        self.contract(|contract| Ok(contract.with_soft_rule(rule)))
    }

    /// Adds rules that answers must satisfy (default: none), for example the rules of a file.
    pub fn with_rules(self, rules: impl IntoIterator<Item = Rule>) -> Self {
        rules.into_iter().fold(self, Self::with_rule)
    }

    /// Adds a validator that answers must pass (default: none): a type of your own, or a closure
    /// `|value: &Value, cx: &Context<'_>, out: &mut Report|`.
    pub fn with_check(self, check: impl Validator + 'static) -> Self {
        self.contract(|contract| Ok(contract.with_check(check)))
    }

    /// Adds a validator whose violations are reported with the answer as warnings and do not reject it (default: none).
    pub fn with_soft_check(self, check: impl Validator + 'static) -> Self {
        self.contract(|contract| Ok(contract.with_soft_check(check)))
    }

    /// Adds a check of the decoded answer (default: none). `path` is the path of its violations (`$.age`), `name` is their rule,
    /// and an `Err` contains the expectation (`at least 18`).
    pub fn check(
        self,
        path: &str,
        name: impl Into<String>,
        check: impl Fn(&T) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.contract(|contract| Ok(contract.with_typed_check(parsed(path)?, name, check)))
    }

    /// Adds a check like [`check`](Self::check), whose violations are reported as warnings and do not reject the answer (default:
    /// none).
    pub fn soft_check(
        self,
        path: &str,
        name: impl Into<String>,
        check: impl Fn(&T) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.contract(|contract| Ok(contract.with_soft_typed_check(parsed(path)?, name, check)))
    }

    /// Accepts a schema whose root constrains no value, such as `{}` or `true` (default: [`build`](Self::build) returns an
    /// error for it).
    pub fn with_any(mut self) -> Self {
        self.nothing = self.nothing.filter(|reason| *reason != SaysNothing::Root);
        self
    }

    /// Adds a warning about the contract, which every outcome then has (default: none).
    pub fn with_warning(self, warning: Warning) -> Self {
        self.contract(|contract| Ok(contract.with_warning(warning)))
    }

    /// Sets the calibrations of a file of `formwork eval --calibrate`, by which the [confidence](formwork_core::Outcome::confidence) in the
    /// values of each outcome is a probability (default: none, it is a score).
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use formwork_core::Calibrations;
    /// use formwork_extract::Extractor;
    /// use formwork_testkit::Scripted;
    ///
    /// let calibrations: Calibrations = serde_json::from_str(
    ///     r#"{"calibrations": [{"configuration": "small", "others": 0, "evidence": true, "documents": 40, "leaves": 500,
    ///         "error": 0.03, "points": [[0.2, 0.6], [0.8, 0.9]]}]}"#,
    /// )?;
    /// let extractor = Extractor::for_document("place", serde_json::json!({"properties": {"city": {"type": "string"}}}))
    ///     .with_target(Arc::new(Scripted::new([r#"{"city": "Lisbon"}"#])))
    ///     .with_calibrations(calibrations.named("small"))
    ///     .build()?;
    /// let outcome = extractor.extract_blocking("Maria moved to Lisbon.")?;
    /// assert!(outcome.confidence()[0].probability.is_some_and(|it| (0.6..=0.9).contains(&it)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_calibrations(self, calibrations: impl Into<Arc<Calibrations>>) -> Self {
        self.contract(|contract| Ok(contract.with_calibrations(calibrations)))
    }

    /// Adds an asynchronous validator (default: none).
    pub fn with_async_validator(mut self, validator: impl AsyncValidator + 'static) -> Self {
        self.driver = self.driver.with_validator(Arc::new(validator));
        self
    }

    /// Sets the fallback, which supplies a value when no answer was accepted (default: none).
    pub fn with_fallback(mut self, fallback: impl Fallback + 'static) -> Self {
        self.driver = self.driver.with_fallback(Arc::new(fallback));
        self
    }

    /// Sets a synchronous fallback (default: none).
    ///
    /// ```
    /// # #[derive(schemars::JsonSchema, serde::Deserialize)]
    /// # struct Person { age: Option<u8> }
    /// let builder = formwork_extract::Extractor::<Person>::builder()
    ///     .with_fallback_fn(|_| Some(serde_json::json!({"age": null})));
    /// ```
    pub fn with_fallback_fn(
        self,
        fallback: impl Fn(&Situation<'_>) -> Option<Value> + Send + Sync + 'static,
    ) -> Self {
        self.with_fallback(FallbackFn(fallback))
    }

    /// Adds an observer that receives the events of every extraction (default: none).
    pub fn with_observer(mut self, observer: impl Observer + 'static) -> Self {
        self.driver = self.driver.with_observer(Arc::new(observer));
        self
    }

    /// Sets the clock (default: [`TokioClock`](crate::TokioClock)).
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.driver = self.driver.with_clock(clock);
        self
    }

    /// Compiles the contract and the plan, and returns the extractor.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`] if the schema is invalid, [says nothing](says_nothing) about values, or no target can use it.
    /// [`ErrorKind::Config`] without targets, for a
    /// target without an output mode, for an example that violates the contract (the message contains the path), for a rule or check
    /// on a path that the schema does not allow (the message contains the nearest path), and for conflicting settings.
    pub fn build(mut self) -> Result<Extractor<T>, Error> {
        let policy = self.policy()?;
        let (contract, examples) = self.checked()?;
        let rotation = self.backends.iter().find_map(|backend| backend.rotation.clone());
        let targets: Vec<Target> = self.backends.iter().map(Backend::target).collect();
        let others = 1..rotation.as_ref().map_or(1, |_| targets.len().max(1));
        let rotated = |first| {
            let mut targets = targets.clone();
            targets.rotate_left(first);
            self.plan(contract.clone(), targets, Arc::clone(&policy))
        };
        let plans: Vec<Arc<Plan>> = others.clone().map(rotated).collect::<Result<_, _>>()?;
        let plan = self.plan(contract, targets, policy)?;
        self.driver.parts.budgets = self.budgets();
        let own = self.backends.iter().find_map(|backend| backend.observation_store().cloned());
        let mut driver = self.driver;
        driver.parts.providers = self.backends.into_iter().map(|backend| backend.provider).collect();
        if let Some(store) = self.store.or(own) {
            driver = driver.with_observation_store(store);
        }
        let others = plans.into_iter().zip(others.map(|first| Arc::new(driver.rotated(first)))).collect();
        let order = Order { plan, driver: Arc::new(driver), others, rotation };
        let system = self.system.map(|text| Arc::new(Message::system(text)));
        Ok(Extractor::new(Shared { order, system, examples, data: self.data, seed: self.seed }))
    }

    /// Checks the contract as [`build`](Self::build) does, without a plan for the targets.
    ///
    /// # Errors
    /// Returns the errors of [`build`](Self::build) about the schema, the rules, the checks and the examples.
    ///
    /// ```
    /// use formwork_extract::Extractor;
    /// use serde_json::json;
    ///
    /// let wrong = Extractor::for_document("person", json!({"type": "objekt"}));
    /// assert!(wrong.verify().is_err());
    /// ```
    pub fn verify(mut self) -> Result<(), Error> {
        self.checked().map(drop)
    }

    /// Returns the contract with its rules, and the examples as messages.
    fn checked(&mut self) -> Result<(Contract, Vec<Arc<Message>>), Error> {
        let mut contract = self.contract.clone()?;
        if let Some(reason) = self.nothing.take() {
            return Err(unusable(reason.into()));
        }
        contract.resolve(&self.backends.first().map(|first| first.rules.clone()).unwrap_or_default())?;
        contract.check_paths()?;
        let examples = checked(&contract, std::mem::take(&mut self.examples), &self.data)?;
        Ok((contract, examples))
    }

    /// Returns the budgets of all backends and of the builder.
    fn budgets(&self) -> Budgets {
        let backends = self.backends.iter().filter_map(Backend::budget);
        self.shared_budget.iter().chain(backends).cloned().collect()
    }

    fn plan(
        &self,
        contract: Contract,
        targets: Vec<Target>,
        policy: Arc<dyn RetryPolicy>,
    ) -> Result<Arc<Plan>, Error> {
        let options = PlanOptions {
            shared_budget: self.budgets().iter().map(Budget::limit).reduce(tighter),
            async_checks: !self.driver.parts.validators.is_empty(),
            fallback: self.driver.parts.fallback.is_some(),
            ..self.options.clone()
        };
        Plan::new(contract, targets).with_policy(policy).with_options(options).build().map(Arc::new)
    }

    fn contract(mut self, change: impl FnOnce(Contract) -> Result<Contract, Error>) -> Self {
        self.contract = self.contract.and_then(change);
        self
    }

    fn policy(&self) -> Result<Arc<dyn RetryPolicy>, Error> {
        let named = || self.backends.first().and_then(|first| first.retry_policy.as_ref());
        if let Some(own) = self.custom.as_ref().or_else(named) {
            if self.max_attempts.is_some() || self.temperature.is_some() {
                let message = "the maximum number of attempts and the temperature cannot be set together with a retry policy of your own, in the code or named by the configuration, which decides both";
                return Err(Error::new(ErrorKind::Config, message));
            }
            return Ok(Arc::clone(own));
        }
        let mut policy = self.policy.clone();
        if let Some(attempts) = self.max_attempts {
            policy.attempts = attempts.max(1);
        }
        if let Some(temperature) = self.temperature {
            policy.temperature = Temperature::Steps(vec![temperature]);
        }
        Ok(Arc::new(policy))
    }
}

formwork_core::debug_fields!(ExtractorBuilder<T> { contract, backends });

/// Returns the examples as messages. Each example is judged like an answer to its input.
fn checked(
    contract: &Contract,
    examples: Vec<(String, Result<Value, serde_json::Error>)>,
    data: &Value,
) -> Result<Vec<Arc<Message>>, Error> {
    let mut messages = Vec::new();
    for (nth, (input, output)) in examples.into_iter().enumerate() {
        let refuse = |why: String| Error::new(ErrorKind::Config, format!("example {}: {why}", nth + 1));
        let output = output.map_err(|error| refuse(error.to_string()))?;
        let judgement = contract.judge(&output, &Context { source: &input, data });
        if let Some(first) = judgement.violations.first() {
            return Err(refuse(match judgement.violations.len() - 1 + judgement.left_out {
                0 => first.to_string(),
                more => format!("{first} (and {more} more)"),
            }));
        }
        messages.extend([Message::user(input), Message::assistant(spaced(&output))].map(Arc::new));
    }
    Ok(messages)
}

/// Parses the path of a check.
fn parsed(path: &str) -> Result<JsonPath, Error> {
    path.parse().map_err(|error| {
        Error::new(ErrorKind::Config, format!("the path `{path}` of a check is invalid: {error}"))
    })
}

fn contract_for(schema: Arc<dyn Schema>) -> Result<Contract, Error> {
    formwork_schema::contract_for(schema).map_err(unusable)
}

fn unusable(error: SchemaError) -> Error {
    Error::new(ErrorKind::Schema, format!("#{}: {}", error.pointer, error.message))
}
