use std::fmt;
use std::io::{self, Write as _};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use formwork_core::{
    Clock, Contract, Cost, Enforcement, Error, ErrorKind, Feedback, Inline, Level, Lower, Patching, Policy,
    Role, Schema, Temperature, Template, Validator,
};
use formwork_dialect::{Dialects, JsonObject, Prompt, Silent, Tool};
use formwork_extract::{Backend, Extractor, ExtractorBuilder, Observer, TokioClock};
use formwork_layers::Rate;
use formwork_schema::SchemaError;
use serde::de::DeserializeOwned;

use crate::calls::Offer;
use crate::client::{Asker, Shared, Toolbox};
use crate::contract::governance;
use crate::debug::{Debug, Sink};
use crate::turn::{self, Judge, Turn};
use crate::validator::TopLevel;
use crate::{AnswerContract, ChatTool, JsonModeChatClient, StructuredAnswerLite};

/// Builds a [`JsonModeChatClient`]. Mistakes in the settings are errors of [`build`](Self::build).
///
/// ```
/// use formwork_chat::JsonModeChatClient;
/// use formwork_testkit::Scripted;
/// use std::{sync::Arc, time::Duration};
///
/// let client = JsonModeChatClient::builder()
///     .with_target(Arc::new(Scripted::new(["not JSON"])))
///     .with_max_retries(0)
///     .with_system("Answer in French.")
///     .with_timeout(Duration::from_secs(20))
///     .build()?;
/// let failure = client.ask_blocking("What is JSON?").into_result().unwrap_err();
/// assert_eq!((failure.code.as_str(), failure.attempts), ("INVALID_JSON", 1));
/// # Ok::<(), formwork_core::Error>(())
/// ```
#[must_use]
pub struct ChatBuilder<A> {
    policy: Policy,
    max_tool_calls: u32,
    settings: Settings,
    of: PhantomData<fn() -> A>,
}

/// The settings that are absent by default.
#[derive(Default)]
struct Settings {
    backends: Vec<Backend>,
    additions: Vec<String>,
    tools: Vec<ChatTool>,
    by_schema: bool,
    rejects_copies: bool,
    forced_tool: bool,
    native_tools: bool,
    debug: Option<Sink>,
    timeout: Option<Duration>,
    max_tokens: Option<u32>,
    seed: Option<u64>,
    budget: Option<Cost>,
    rate: Option<Rate>,
    clock: Option<Arc<dyn Clock>>,
    observers: Vec<Arc<dyn Observer>>,
}

/// The default maximum number of tool calls for one question.
const TOOL_CALLS: u32 = 8;

/// Returns the policy of the chat client: `1 + max_retries` whole attempts, a corrective system message, no temperature of
/// its own.
pub fn policy(max_retries: u32) -> Policy {
    let template = Template::new(
        "{code}: the previous answer breaks the contract:\n",
        "- {message}",
        "\nReturn only a corrected JSON object.",
    );
    Policy::new(max_retries.saturating_add(1))
        .with_patching(Patching::Never)
        .with_feedback(Feedback::new(template).with_role(Role::System))
        .with_stop_on_repeat(false)
        .with_stop(false)
}

impl JsonModeChatClient<StructuredAnswerLite> {
    /// Returns a builder of a client for [`StructuredAnswerLite`] 1.0.
    pub fn builder() -> ChatBuilder<StructuredAnswerLite> {
        ChatBuilder::new()
    }
}

impl<A: AnswerContract> JsonModeChatClient<A> {
    /// Returns a builder of a client for either contract: `JsonModeChatClient::<StructuredAnswer<MyData>>::typed()`.
    pub fn typed() -> ChatBuilder<A> {
        ChatBuilder::new()
    }
}

impl<A: AnswerContract> ChatBuilder<A> {
    fn new() -> Self {
        let settings = Settings::default();
        Self { policy: policy(1), max_tool_calls: TOOL_CALLS, settings, of: PhantomData }
    }

    /// Adds a provider (default: none; at least one is required). The client calls the first one, and the next one if
    /// that one is unavailable.
    ///
    /// A provider with a JSON mode is called in JSON mode, `{"type": "json_object"}`, whatever else it supports; the
    /// prompt alone is the fallback. A provider without it, such as a model in this process, is called in its own
    /// modes.
    pub fn with_target(mut self, backend: impl Into<Backend>) -> Self {
        self.settings.backends.push(backend.into());
        self
    }

    formwork_core::setters! {
        in settings:
        /// Rejects answers that are copied out of the prompt (default: they are accepted): the contract's own word in place of
        /// every text, or the example's answer to another question. Very small models give such answers; for other models it
        /// would be a rule that the contract does not have.
        pub const fn with_copies_rejected(rejects_copies = true);
        /// Validates answers by their compiled JSON Schema (default: by the hand-written validator). Both have the same
        /// verdicts.
        pub const fn with_schema_validation(by_schema = true);
        /// Offers the tools by the provider's own interface for tool calls (default: in the prompt, and the model writes its calls as
        /// JSON, which works with every model). A provider that takes no tools, or that is [forced](Self::with_forced_tool) to call one
        /// for its answer, gets them in the prompt, and the result has a [warning](crate::Reply::warnings).
        ///
        /// Calls are validated and corrected in both ways alike. If a model requests several calls at once, all of them are carried out in
        /// order, within [`with_max_tool_calls`](Self::with_max_tool_calls).
        ///
        /// ```
        /// use formwork_chat::{ChatTool, JsonModeChatClient};
        /// use formwork_core::{Capabilities, Completion, Enforcement, Finish, ToolCall};
        /// use formwork_testkit::{Reply, Scripted};
        /// use std::sync::Arc;
        ///
        /// #[derive(schemars::JsonSchema, serde::Deserialize)]
        /// struct City {
        ///     city: String,
        /// }
        ///
        /// let good = r#"{"task": {"type": "qa", "user_intent": "plan"}, "answer": {"text": "It is sunny."},
        ///   "quality": {"confidence": 0.9, "assumptions": [], "risks": []}, "debug": {"schema_version": "1.0", "model": "m"}}"#;
        /// let mut call = Completion::new("").with_finish(Finish::ToolCall);
        /// call.tool_calls.push(ToolCall::new("call_1", "weather", r#"{"city": "Lisbon"}"#));
        /// let model = Scripted::new([Reply::completion(call), Reply::text(good)])
        ///     .with_capabilities(Capabilities::new(Enforcement::Tool));
        /// let model = Arc::new(model);
        /// let weather = ChatTool::new("weather", "Returns the weather.", |City { city }| async move {
        ///     Ok::<_, String>(format!("sunny in {city}"))
        /// })?;
        /// let builder = JsonModeChatClient::builder().with_target(Arc::clone(&model));
        /// let client = builder.with_tool(weather).with_native_tools().build()?;
        /// let reply = client.ask_blocking("How is the weather in Lisbon?").into_result()?;
        /// assert_eq!(reply.tools[0].result, "sunny in Lisbon");
        /// assert_eq!(model.calls()[0].tools[0].name, "weather");
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        pub const fn with_native_tools(native_tools = true);
        /// Asks for the answer as the arguments of a tool that the model is forced to call (default: JSON mode). A provider that
        /// forces no tools is called in JSON mode.
        ///
        /// A provider whose [modes](Backend::with_mode) begin with a [forced tool](formwork_dialect::Tool) is called so anyway.
        pub const fn with_forced_tool(forced_tool = true);
        /// Sets the time limit of each question, including corrections, backoff and tools (default: no limit).
        pub const fn with_timeout(Some(timeout): Duration);
        /// Sets the maximum number of tokens of each answer (default: the target's own limit).
        pub const fn with_max_tokens(Some(max_tokens): u32);
        /// Sets the seed, for providers that support it (default: none).
        pub const fn with_seed(Some(seed): u64);
        /// Sets the maximum cost of each question, or of each turn if there are tools (default: no limit).
        pub const fn with_budget(Some(budget): Cost);
        /// Sets the clock (default: [`TokioClock`]).
        pub fn with_clock(Some(clock): Arc<dyn Clock>);
    }

    /// Sets the maximum number of corrections of an answer (default: 1).
    pub const fn with_max_retries(mut self, retries: u32) -> Self {
        self.policy.attempts = retries.saturating_add(1);
        self
    }

    formwork_core::setters! {
        /// Sets the whole policy (default: [`policy`] with one retry): attempts over all targets and of each, temperatures, backoff (2, 4
        /// and 8 seconds, or a longer `Retry-After`), and the template of the correction.
        pub fn with_policy(policy: Policy);
        /// Sets the maximum number of tool calls for one question (default: 8). Of several calls in one answer those beyond the
        /// maximum are not carried out; the model is told, and the result has a [warning](crate::Reply::warnings).
        pub const fn with_max_tool_calls(max_tool_calls: u32);
    }

    /// Sets the temperature (default: none is sent).
    pub fn with_temperature(mut self, temperature: f64) -> Self {
        self.policy = self.policy.with_temperature(Temperature::Steps(vec![temperature]));
        self
    }

    /// Adds a text to the system message, below the contract (default: none). It cannot replace the contract.
    pub fn with_system(mut self, addition: impl Into<String>) -> Self {
        self.settings.additions.push(addition.into());
        self
    }

    /// Adds a tool that the model can call (default: none).
    pub fn with_tool(mut self, tool: ChatTool) -> Self {
        self.settings.tools.push(tool);
        self
    }

    /// Sets whether the client logs attempts, failures and convergence to standard error (default: `false`). Requests
    /// and answers stay the same.
    pub fn with_debug(mut self, debug: bool) -> Self {
        // Standard error may be closed, and a debug line is no reason to panic.
        let log = |line: &str| _ = writeln!(io::stderr().lock(), "{line}");
        if debug {
            return self.with_debug_log(log);
        }
        self.settings.debug = None;
        self
    }

    /// Sets a function that receives the lines of [`with_debug`](Self::with_debug) (default: none).
    pub fn with_debug_log(mut self, log: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.settings.debug = Some(Arc::new(log));
        self
    }

    /// Sets the maximum number of calls in a period, over all questions and targets (default: no limit). Further calls
    /// wait.
    pub fn with_rate_limit(mut self, calls: usize, per: Duration) -> Self {
        self.settings.rate = Some(Rate::new(calls, per));
        self
    }

    /// Adds an observer that is notified of every turn (default: none).
    pub fn with_observer(mut self, observer: impl Observer + 'static) -> Self {
        self.settings.observers.push(Arc::new(observer));
        self
    }

    /// Compiles the contract, the validator and the tools.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] without targets, or for a tool whose name is not `[A-Za-z0-9_-]{1,64}` or is used twice.
    /// [`ErrorKind::Schema`] if the schema of the payload's type cannot be used.
    pub fn build(mut self) -> Result<JsonModeChatClient<A>, Error> {
        named(&self.settings.tools)?;
        let schema = Inline::of::<A>();
        let judge: Arc<dyn Validator> = if self.settings.by_schema {
            formwork_schema::compile(schema.document()).map_err(unusable)?
        } else {
            A::validator().map_err(unusable)?
        };
        let clock = self.settings.clock.clone().unwrap_or_else(|| Arc::new(TokioClock::new()));
        let most = self.policy.attempts;
        let debug = self.settings.debug.take().map(|sink| Arc::new(Debug { sink, most }));
        let (timeout, tools) =
            (self.settings.timeout, Arc::<[ChatTool]>::from(std::mem::take(&mut self.settings.tools)));
        let asker = if tools.is_empty() {
            Asker::Plain(self.extractor(
                Arc::new(schema),
                judge,
                governance::<A>(),
                &clock,
                debug.as_ref(),
                &tools,
            )?)
        } else {
            let inline = Inline::new(schema.name(), turn::schema::<A>(&tools));
            let toolbox = Toolbox { tools: Arc::clone(&tools), most: self.max_tool_calls };
            let judge = Arc::new(Judge { answer: judge, tools: Arc::clone(&tools) });
            let extractor: Extractor<Turn<A>> =
                self.extractor(Arc::new(inline), judge, governance::<A>(), &clock, debug.as_ref(), &tools)?;
            Asker::Tools(extractor, toolbox)
        };
        Ok(JsonModeChatClient::new(Shared { asker, timeout, clock, debug }))
    }

    fn extractor<X: DeserializeOwned + Send + 'static>(
        self,
        schema: Arc<dyn Schema>,
        judge: Arc<dyn Validator>,
        governing: String,
        clock: &Arc<dyn Clock>,
        debug: Option<&Arc<Debug>>,
        tools: &[ChatTool],
    ) -> Result<Extractor<X>, Error> {
        let rejects_copies = self.settings.rejects_copies;
        let structure = TopLevel { judge, example: A::example(), rejects_copies };
        let contract = Contract::new(schema, Arc::new(structure));
        let system =
            std::iter::once(governing).chain(self.settings.additions).collect::<Vec<_>>().join("\n\n");
        let mut extractor = Extractor::for_contract(contract)
            .with_policy(self.policy)
            .with_level(Level::Strict)
            .with_system(system)
            .with_clock(Arc::clone(clock));
        let rate = self.settings.rate.as_ref();
        let forced_tool = self.settings.forced_tool;
        let native_tools = self.settings.native_tools;
        let target = |backend| {
            let backend = mode(backend, forced_tool);
            let backend = if tools.is_empty() { backend } else { offered(backend, tools, native_tools) };
            match rate {
                Some(rate) => backend.with_layer(rate),
                None => backend,
            }
        };
        extractor =
            self.settings.backends.into_iter().map(target).fold(extractor, ExtractorBuilder::with_target);
        extractor = self.settings.timeout.into_iter().fold(extractor, ExtractorBuilder::with_deadline);
        extractor = self.settings.max_tokens.into_iter().fold(extractor, ExtractorBuilder::with_max_tokens);
        extractor = self.settings.seed.into_iter().fold(extractor, ExtractorBuilder::with_seed);
        extractor = self.settings.budget.into_iter().fold(extractor, ExtractorBuilder::with_budget);
        extractor = debug.cloned().into_iter().fold(extractor, ExtractorBuilder::with_observer);
        self.settings.observers.into_iter().fold(extractor, ExtractorBuilder::with_observer).build()
    }
}

/// Replaces the provider's output modes by the client's: a forced tool if that was asked for, else JSON mode if there is one,
/// then the prompt alone. The system prompt contains the contract, so no mode has to describe the schema.
fn mode(backend: Backend, forced_tool: bool) -> Backend {
    let own = backend.modes();
    let configured = own.first().filter(|mode| mode.enforcement() == Enforcement::Tool).cloned();
    let promised = backend.provider().capabilities();
    let made = || Tool::of(promised, &Dialects::builtin()).map(|tool| Arc::new(tool) as Arc<dyn Lower>);
    let tool = configured.or_else(|| made().filter(|_| forced_tool));
    let has_json_mode = promised.dialects.iter().any(|name| name == "json-object");
    let modes: Vec<Arc<dyn Lower>> = match tool {
        Some(tool) => vec![tool, Arc::new(Prompt::new())],
        None if has_json_mode => vec![Arc::new(JsonObject), Arc::new(Prompt::new())],
        None => own,
    };
    backend.with_modes(modes.into_iter().map(|lower| Arc::new(Silent::new(lower)) as Arc<dyn Lower>))
}

/// Offers tools to a provider: by its own interface if that is wanted and the answer is not the arguments of a tool itself.
fn offered(backend: Backend, tools: &[ChatTool], is_native: bool) -> Backend {
    let has_tools = backend.provider().capabilities().enforcement >= Enforcement::Tool;
    let is_forced = backend.modes().first().is_some_and(|mode| mode.enforcement() == Enforcement::Tool);
    let refusal = match (has_tools, is_forced) {
        (false, _) => Some("the provider has none for this model"),
        (true, true) => Some("the answer itself is a forced tool call"),
        (true, false) => None,
    };
    let offer = if is_native { Offer::native(tools, refusal) } else { Offer::in_prompt(tools) };
    backend.with_layer(&offer)
}

fn named(tools: &[ChatTool]) -> Result<(), Error> {
    for (index, tool) in tools.iter().enumerate() {
        let name = tool.name();
        let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || name.len() > 64 || !name.chars().all(safe) {
            let message =
                format!("the name of the tool {name:?} is not made of 1 to 64 letters, digits, `_` and `-`");
            return Err(Error::new(ErrorKind::Config, message));
        }
        if tools.iter().take(index).any(|other| other.name() == name) {
            return Err(Error::new(
                ErrorKind::Config,
                format!("there are two tools called `{name}`: rename one"),
            ));
        }
    }
    Ok(())
}

fn unusable(error: SchemaError) -> Error {
    Error::new(ErrorKind::Schema, format!("#{}: {}", error.pointer, error.message))
}

impl<A> fmt::Debug for ChatBuilder<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatBuilder")
            .field("backends", &self.settings.backends)
            .field("tools", &self.settings.tools)
            .finish_non_exhaustive()
    }
}
