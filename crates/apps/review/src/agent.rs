use std::sync::Arc;
use std::time::Duration;

use formwork_core::{
    Capabilities, Clock, Contract, Enforcement, Error, ErrorKind, Feedback, Inline, Input, Lower, Outcome,
    Patching, Policy, Temperature, Template, Time,
};
use formwork_dialect::registry::Registry;
use formwork_extract::{
    Backend, CancellationToken, Extractor, ExtractorBuilder, ObservationStore, Observer, TokioClock,
};
use serde_json::Value;
use tracing::{Instrument as _, Span};

/// The models that the services call, and the rules for every call: the agent layer.
///
/// - [`policy`] is the default policy: at most two attempts, the second with the previous answer and its
///   violations at a temperature of at most 0.2. Failed calls are repeated after 2, 4 and 8 seconds, or later if the
///   server sends a longer `Retry-After`.
/// - All calls of one [`begun`](Self::begun) agent share a time limit of [60 seconds](Self::TIME_LIMIT).
/// - Requests name the schema [`output_schema`](Self::SCHEMA_NAME). Spans are named `llm_generation` and `llm_review`.
/// - [`modes`] chooses the output modes of each model: native enforcement if the model registry lists it.
///
/// Clones share the observations about the models.
///
/// ```
/// use formwork_review::{Agent, policy};
/// use formwork_testkit::Scripted;
/// use std::sync::Arc;
///
/// let agent = Agent::new([Arc::new(Scripted::new(["{}"])).into()]).with_policy(policy(0.4)).with_seed(7);
/// assert_eq!((agent.seed(), agent.max_tokens()), (Some(7), None));
/// ```
#[must_use]
#[derive(Clone)]
pub struct Agent {
    backends: Vec<Backend>,
    policy: Policy,
    limit: Duration,
    until: Option<Time>,
    max_tokens: Option<u32>,
    seed: Option<u64>,
    clock: Arc<dyn Clock>,
    observers: Vec<Arc<dyn Observer>>,
    cancel: CancellationToken,
    store: ObservationStore,
}

/// Returns the policy of the agent layer: 2 whole attempts, the first at `temperature`, the second at 0.2 at most and
/// below the previous answer with its violations.
pub fn policy(temperature: f64) -> Policy {
    let template = Template::new(
        "Your previous response failed validation with these errors:\n",
        "- {path}: {detail}",
        "\n\nPlease correct the output to match the schema. \
         Ensure all required fields are present with correct types.",
    )
    .with_line_for_each();
    Policy::new(2)
        .with_temperature(Temperature::AtMost { first: temperature, then: 0.2 })
        .with_patching(Patching::Never)
        .with_feedback(Feedback::new(template))
        .with_stop_on_repeat(false)
        .with_stop(false)
}

impl Agent {
    /// The schema name in requests.
    pub const SCHEMA_NAME: &'static str = "output_schema";

    /// The default time limit for all calls of one [`begun`](Self::begun) agent.
    pub const TIME_LIMIT: Duration = Duration::from_secs(60);

    /// The temperature of first attempts, unless a policy says otherwise.
    pub const TEMPERATURE: f64 = 0.7;

    /// Creates an agent that calls these backends, in order: the next one is called when one fails.
    pub fn new(backends: impl IntoIterator<Item = Backend>) -> Self {
        let backends: Vec<Backend> = backends.into_iter().collect();
        let store = backends.iter().find_map(Backend::observation_store).cloned().unwrap_or_default();
        Self {
            backends,
            policy: policy(Self::TEMPERATURE),
            limit: Self::TIME_LIMIT,
            until: None,
            max_tokens: None,
            seed: None,
            clock: Arc::new(TokioClock::new()),
            observers: Vec::new(),
            cancel: CancellationToken::new(),
            store,
        }
    }

    formwork_core::setters! {
        /// Sets the policy (default: [`policy`] at [`Agent::TEMPERATURE`]).
        pub fn with_policy(policy: Policy);
        /// Sets the time limit for all calls of one [`begun`](Self::begun) agent (default: [`Agent::TIME_LIMIT`]).
        pub const fn with_time_limit(limit: Duration);
        /// Sets the maximum number of tokens of each answer (default: the target's own limit).
        pub const fn with_max_tokens(Some(max_tokens): u32);
        /// Sets the seed of inputs without their own (default: none, the provider chooses).
        pub const fn with_seed(Some(seed): u64);
        /// Sets the clock (default: [`TokioClock`]).
        pub fn with_clock(clock: Arc<dyn Clock>);
        /// Sets a token that cancels all calls (default: none).
        pub fn with_cancel(cancel: CancellationToken);
    }

    /// Adds an observer that is notified of every call (default: none).
    pub fn with_observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Starts the time limit, unless it has started already. All later calls of the returned agent share it.
    pub fn begun(mut self) -> Self {
        self.until = self.until.or_else(|| Some(self.clock.now().after(self.limit)));
        self
    }

    /// Returns this agent on the clock of `outer`, with no more time than `outer` has left.
    pub fn within(mut self, outer: &Self) -> Self {
        self.clock = Arc::clone(&outer.clock);
        self.until = match (self.until, outer.until) {
            (Some(own), Some(outer)) => Some(own.min(outer)),
            (own, outer) => own.or(outer),
        };
        self
    }

    /// Returns the policy.
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns the token that cancels all calls.
    pub(crate) const fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Returns the present time of the agent's clock.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Returns the seed of inputs without their own.
    pub const fn seed(&self) -> Option<u64> {
        self.seed
    }

    /// Returns the maximum number of tokens of each answer, if there is a limit.
    pub const fn max_tokens(&self) -> Option<u32> {
        self.max_tokens
    }

    /// Returns the policy with other temperatures.
    pub(crate) fn policy_at(&self, temperature: f64) -> Policy {
        self.policy.clone().with_temperature(Temperature::AtMost { first: temperature, then: 0.2 })
    }

    /// Returns the contract of answers that satisfy a schema.
    pub(crate) fn contract(schema: Value) -> Result<Contract, Error> {
        formwork_schema::contract_for(Arc::new(Inline::new(Self::SCHEMA_NAME, schema)))
            .map_err(|error| Error::new(ErrorKind::Schema, error.to_string()))
    }

    /// Requests one answer.
    pub(crate) async fn ask(
        &self,
        span: Span,
        contract: Contract,
        policy: Policy,
        max_tokens: Option<u32>,
        input: Input,
    ) -> Result<Outcome<Value>, Error> {
        let left = match self.until {
            None => self.limit,
            Some(until) => until.since(self.clock.now()),
        };
        if left.is_zero() {
            let message = format!("the {} seconds for all calls together are over", self.limit.as_secs_f64());
            return Err(Error::new(ErrorKind::Deadline, message));
        }
        let mut builder: ExtractorBuilder<Value> = Extractor::for_contract(contract)
            .with_policy(policy)
            .with_deadline(left)
            .with_clock(Arc::clone(&self.clock))
            .with_observation_store(self.store.clone());
        builder = max_tokens.into_iter().fold(builder, ExtractorBuilder::with_max_tokens);
        builder = self.seed.into_iter().fold(builder, ExtractorBuilder::with_seed);
        builder = self.backends.iter().cloned().fold(builder, ExtractorBuilder::with_target);
        builder = self.observers.iter().cloned().fold(builder, ExtractorBuilder::with_observer);
        let extraction = builder.build()?.extraction(input).with_cancel(self.cancel.clone());
        extraction.run().instrument(span).await
    }
}

formwork_core::debug_fields!(Agent { backends, policy, limit });

/// Returns the output modes for a model: those of its provider that the model registry confirms for this model.
///
/// A model that is not in the registry gets all modes of its provider. `model` may start with the host's name, as in
/// `openrouter/openai/gpt-4o`.
///
/// ```
/// use formwork_core::{Capabilities, Enforcement};
/// use formwork_review::modes;
///
/// let proxy = Capabilities::new(Enforcement::Schema).with_dialect("openai").with_dialect("json-object");
/// let names = |model| modes(model, &proxy).iter().map(|mode| mode.name().to_owned()).collect::<Vec<_>>();
/// assert_eq!(names("gpt-4o"), ["openai", "json-object", "prompt"]);
/// assert_eq!(names("gemini/gemini-1.5-pro"), ["prompt"]);
/// ```
pub fn modes(model: &str, capabilities: &Capabilities) -> Vec<Arc<dyn Lower>> {
    let native = Registry::embedded().lookup(model).map(|entry| {
        let own = entry.native.enforcement();
        if entry.json_object { own.max(Enforcement::JsonObject) } else { own }
    });
    let mut modes = formwork_dialect::modes(capabilities);
    if let Some(most) = native {
        modes.retain(|mode| mode.enforcement() <= most);
    }
    modes
}
