use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use formwork_json::Level;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::call::written;
use crate::reader::Places;
use crate::{
    Call, Capabilities, Contract, Cost, Enforcement, Error, ErrorKind, Instruction, Lower, LowerRequest,
    Lowered, Message, Outline, Policy, Price, Refused, Retries, RetryPolicy, Sampling, Thresholds, Tighten,
    Usage,
};

/// The fixed parts of a request: the contract, the policy, the targets and the limits. [`Run`](crate::Run)s share it.
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use formwork_core::{Capabilities, Contract, Error, Lower, Plan, Policy, Target};
///
/// fn plan(contract: Contract, dialect: Arc<dyn Lower>) -> Result<Plan, Error> {
///     let target = Target::new("local", Capabilities::default()).with_mode(dialect);
///     Plan::new(contract, vec![target])
///         .with_policy(Policy::new(3))
///         .with_deadline(Duration::from_secs(10))
///         .build()
/// }
/// ```
#[derive(Debug)]
pub struct Plan {
    pub(crate) contract: Contract,
    pub(crate) policy: Arc<dyn RetryPolicy>,
    pub(crate) targets: Vec<Target>,
    pub(crate) options: PlanOptions,
    digest: String,
    schema_digest: String,
    /// The length of the contract's schema as JSON, in bytes.
    pub(crate) schema_bytes: usize,
}

/// The settings of a plan besides its contract, its targets and its policy.
///
/// ```
/// use std::time::Duration;
/// use formwork_core::PlanOptions;
///
/// let options = PlanOptions { deadline: Some(Duration::from_secs(10)), ..PlanOptions::default() };
/// # let _ = options;
/// ```
#[derive(Debug, Clone, Default)]
pub struct PlanOptions {
    /// See [`PlanBuilder::with_level`].
    pub level: Level,
    /// See [`PlanBuilder::with_instruction`].
    pub instruction: Instruction,
    /// See [`PlanBuilder::with_deadline`].
    pub deadline: Option<Duration>,
    /// See [`PlanBuilder::with_budget`].
    pub budget: Option<Cost>,
    /// See [`PlanBuilder::with_shared_budget`].
    pub shared_budget: Option<Cost>,
    /// See [`PlanBuilder::with_max_tokens`].
    pub max_tokens: Option<u32>,
    /// See [`PlanBuilder::with_async_checks`].
    pub async_checks: bool,
    /// See [`PlanBuilder::with_fallback`].
    pub fallback: bool,
}

/// One provider in a plan: its capabilities, and its output modes from the strictest to the weakest.
///
/// ```
/// use formwork_core::{Capabilities, Enforcement, Price, Target, Tighten};
///
/// let target = Target::new("mini", Capabilities::new(Enforcement::Schema).with_temperature())
///     .with_price(Price::new(150_000, 600_000))
///     .with_tighten(Tighten::None);
/// # let _ = target;
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Target {
    pub(crate) name: String,
    pub(crate) capabilities: Capabilities,
    pub(crate) modes: Vec<Mode>,
    pub(crate) price: Option<Price>,
    pub(crate) tighten: Tighten,
    pub(crate) retries: Retries,
    /// The parameters of sampling that neither the policy nor the input sets.
    pub(crate) sampling: Sampling,
    /// The dialects that cannot express the schema, each with the number of usable dialects before it and the reason.
    pub(crate) skipped: Vec<(usize, String, Refused)>,
    identity: Option<String>,
    lowers: Vec<Arc<dyn Lower>>,
}

/// One output mode of a target: a dialect, and the contract's schema in it.
#[derive(Debug, Clone)]
pub(crate) struct Mode {
    pub(crate) lower: Arc<dyn Lower>,
    pub(crate) whole: Arc<Lowered>,
    /// The message that describes the schema; `None` if the provider gets the schema beside the messages only.
    pub(crate) instruction: Option<Arc<Message>>,
    /// The length of its schema as JSON, in bytes; every call adds it to its prompt.
    pub(crate) schema_bytes: usize,
    /// The outline of answers in this mode; see [`Plan::outline`].
    outline: OnceLock<Option<Arc<Outline>>>,
}

impl Target {
    /// Creates a target without an output mode.
    pub fn new(name: impl Into<String>, capabilities: Capabilities) -> Self {
        Self {
            name: name.into(),
            capabilities,
            modes: Vec::new(),
            price: None,
            tighten: Tighten::default(),
            retries: Retries::default(),
            sampling: Sampling::default(),
            skipped: Vec::new(),
            identity: None,
            lowers: Vec::new(),
        }
    }

    /// Adds an output mode, by its dialect (default: none, at least one is needed). The first mode is used until the target
    /// refuses the schema in it, then the next one. If an answer proves that the target ignored the schema, the next mode
    /// with weaker enforcement is used.
    pub fn with_mode(mut self, lower: Arc<dyn Lower>) -> Self {
        self.lowers.push(lower);
        self
    }

    crate::setters! {
        /// Sets the price of its tokens (default: unknown, so that a limit of money is a configuration error).
        pub const fn with_price(Some(price): Price);
        /// Sets which valid answers lowering may exclude (default: [`Tighten::Closed`]). In [`Tighten::Closed`] the schema is
        /// bounded for one call after an answer of this target ran away or reached the token limit; in [`Tighten::None`] it
        /// never is.
        pub const fn with_tighten(tighten: Tighten);
        /// Sets the number and the delays of retries for this target (default: those of the policy).
        pub fn with_retries(retries: Retries);
        /// Sets the parameters of sampling of calls for which neither the policy nor the input sets one (default: none).
        pub const fn with_sampling(sampling: Sampling);
        /// Sets an identity that is the same in every configuration: its address and model (default: none). Observations about
        /// a target are stored on disk only under its identity.
        pub fn with_identity(Some(identity): impl Into<String>);
    }

    /// Returns the cost of tokens at the price of this target.
    pub(crate) fn cost(&self, usage: Usage) -> Cost {
        self.price.map_or_else(|| usage.unpriced(), |price| price.of(usage))
    }

    /// Lowers the contract's schema for each mode. Modes that cannot express it are left out.
    fn lower(
        &mut self,
        contract: &Contract,
        max_tokens: Option<u32>,
        instruction: &Instruction,
    ) -> Result<(), Refused> {
        let dependencies = if self.capabilities.rules { contract.dependencies() } else { Vec::new() };
        let request = LowerRequest {
            dependencies: &dependencies,
            tighten: self.tighten,
            max_tokens: max_tokens.or(self.capabilities.default_max_tokens),
            ..LowerRequest::new(contract.schema().document())
        };
        for lower in &self.lowers {
            match lower.lower(&request) {
                Ok(whole) => {
                    let schema_bytes = whole.schema.as_ref().map_or(0, written);
                    let kind = kind(contract.schema().document(), &whole);
                    let instruction = whole
                        .prompt_schema
                        .as_ref()
                        .map(|prompt_schema| Arc::new(instruction.message(prompt_schema, kind)));
                    let (lower, whole) = (Arc::clone(lower), Arc::new(whole));
                    let outline = OnceLock::new();
                    self.modes.push(Mode { lower, whole, instruction, schema_bytes, outline });
                }
                Err(reason) => self.skipped.push((self.modes.len(), lower.name().to_owned(), reason)),
            }
        }
        match self.skipped.first() {
            Some((_, _, reason)) if self.modes.is_empty() => Err(reason.clone()),
            _ => Ok(()),
        }
    }
}

/// Builds a [`Plan`].
///
/// ```
/// use formwork_core::{Contract, Cost, Error, Level, Plan, Target};
///
/// fn limited(contract: Contract, targets: Vec<Target>) -> Result<Plan, Error> {
///     Plan::new(contract, targets)
///         .with_level(Level::Lenient)
///         .with_max_tokens(512)
///         .with_budget(Cost { tokens: 20_000, micro_usd: None })
///         .build()
/// }
/// ```
#[must_use]
pub struct PlanBuilder {
    plan: Plan,
}

impl Plan {
    /// Builds a plan that calls these targets in this order, with [`Policy::default`] and no limits.
    #[expect(clippy::new_ret_no_self, reason = "a plan is checked before it can be used")]
    pub fn new(contract: Contract, targets: Vec<Target>) -> PlanBuilder {
        let plan = Self {
            contract,
            policy: Arc::new(Policy::default()),
            targets,
            options: PlanOptions::default(),
            digest: String::new(),
            schema_digest: String::new(),
            schema_bytes: 0,
        };
        PlanBuilder { plan }
    }

    /// Returns the contract.
    pub const fn contract(&self) -> &Contract {
        &self.contract
    }

    /// Returns how tolerantly answers are read.
    pub const fn level(&self) -> Level {
        self.options.level
    }

    /// Returns the names of the targets, in order.
    pub fn targets(&self) -> impl Iterator<Item = &str> {
        self.targets.iter().map(|target| target.name.as_str())
    }

    /// Returns the output modes of a target, from the strictest to the weakest: the name of the dialect and its
    /// enforcement. Dialects that cannot express the schema are left out.
    pub fn modes(&self, target: usize) -> impl Iterator<Item = (&str, Enforcement)> {
        let modes = self.targets.get(target).map(|target| target.modes.as_slice()).unwrap_or_default();
        modes.iter().map(|mode| (mode.lower.name(), mode.whole.enforcement))
    }

    /// Returns the contract's schema as the first output mode of a target has it, if the server enforces it and answers need no change
    /// to satisfy the contract's own.
    pub fn enforced(&self, target: usize) -> Option<&Value> {
        let Lowered { enforcement, lift, schema, .. } = &*self.targets.get(target)?.modes.first()?.whole;
        schema.as_ref().filter(|_| *enforcement == Enforcement::Schema && lift.is_empty())
    }

    /// Returns the identity of a target, if it has one; see [`Target::with_identity`].
    pub fn identity(&self, target: usize) -> Option<&str> {
        self.targets.get(target)?.identity.as_deref()
    }

    /// Returns the key of a target in [`Health`](crate::Health): its identity, else its name. A number is added for the second and
    /// later targets of the same name.
    pub(crate) fn key(&self, target: usize) -> String {
        if let Some(identity) = self.identity(target) {
            return identity.to_owned();
        }
        let name = self.targets.get(target).map(|target| target.name.as_str()).unwrap_or_default();
        match self.targets.iter().take(target).filter(|other| other.name == name).count() {
            0 => name.to_owned(),
            nth => format!("{name}#{nth}"),
        }
    }

    /// Returns the thresholds for runs of this plan, which its policy may replace.
    pub fn thresholds(&self, configured: &Thresholds) -> Thresholds {
        self.policy.thresholds(*configured)
    }

    /// Returns the dialects of a target that cannot express the schema, each with the reason. They are not used.
    pub fn skipped(&self, target: usize) -> impl Iterator<Item = (&str, &Refused)> {
        self.skipped_before(target, usize::MAX)
    }

    /// Returns the outline of the answer to a call for the whole document, whose values have these places; `None` if nothing in it can be
    /// judged before it is lifted. It is compiled once for each mode.
    pub(crate) fn outline(&self, call: &Call, places: &Places) -> Option<Arc<Outline>> {
        let compile = || self.contract.outline_at(places);
        let mut modes = self.targets.iter().flat_map(|target| &target.modes);
        match modes.find(|mode| Arc::ptr_eq(&mode.whole, &call.lowered)) {
            Some(mode) => mode.outline.get_or_init(compile).clone(),
            None => compile(),
        }
    }

    /// Returns the unusable dialects before a mode: a call in that mode is weaker than configured.
    pub(crate) fn skipped_before(
        &self,
        target: usize,
        mode: usize,
    ) -> impl Iterator<Item = (&str, &Refused)> {
        let skipped = self.targets.get(target).map(|target| target.skipped.as_slice()).unwrap_or_default();
        let before = skipped.iter().filter(move |(place, ..)| *place <= mode);
        before.map(|(_, dialect, reason)| (dialect.as_str(), reason))
    }

    /// Returns a digest of the contract's schema. Observations about refused schemas are stored under it, because a refusal does
    /// not depend on the rest of the contract.
    pub fn schema_digest(&self) -> &str {
        &self.schema_digest
    }

    /// Returns a digest of everything that a stored run depends on: a run resumes only with a plan of the same digest.
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

impl PlanBuilder {
    /// Sets the policy (default: [`Policy::default`](crate::Policy)).
    pub fn with_policy(mut self, policy: impl RetryPolicy + 'static) -> Self {
        self.plan.policy = Arc::new(policy);
        self
    }

    crate::setters! {
        in plan:
        /// Sets all options at once (default: [`PlanOptions::default`]).
        pub fn with_options(options: PlanOptions);
    }

    crate::setters! {
        in plan.options:
        /// Sets how tolerantly answers are read (default: [`Level::Clean`]).
        pub const fn with_level(level: Level);
        /// Sets the text that introduces the schema in a prompt (default: [`Instruction::default`]).
        pub fn with_instruction(instruction: Instruction);
        /// Limits the time from the first step to the end, delays included (default: no limit).
        pub const fn with_deadline(Some(deadline): Duration);
        /// Limits the cost of all calls together (default: no limit). The maximum cost of each call is reserved before
        /// the call. Each call then has a token limit, which is the larger of four times the longest answer so far and a size from
        /// schema and input; an answer that it cuts off is requested again with twice the limit, up to the limits of caller and target.
        pub const fn with_budget(Some(budget): Cost);
        /// Declares that the driver shares a budget with this limit (default: none is shared). Each call then has a token
        /// limit as with [`with_budget`](Self::with_budget), and a limit of money requires a price for every target.
        pub const fn with_shared_budget(Some(shared_budget): Cost);
        /// Limits the tokens of each answer (default: the target's own limit).
        pub const fn with_max_tokens(Some(max_tokens): u32);
        /// Makes the run request the driver's asynchronous checks before it accepts a value (default: there are none).
        pub const fn with_async_checks(async_checks = true);
        /// Makes the run request the driver's fallback before it fails (default: there is none).
        pub const fn with_fallback(fallback = true);
    }

    /// Builds and checks the plan.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] without targets, for a target without output modes, or with a limit of money and a target
    /// without a price; [`ErrorKind::Schema`] if no dialect of a target can express the schema.
    pub fn build(self) -> Result<Plan, Error> {
        let mut plan = self.plan;
        if plan.targets.is_empty() {
            return Err(Error::new(ErrorKind::Config, "the plan has no target: add one"));
        }
        let limits_money = [plan.options.budget, plan.options.shared_budget]
            .iter()
            .flatten()
            .any(|limit| limit.micro_usd.is_some());
        if let Some(unpriced) = plan.targets.iter().find(|target| limits_money && target.price.is_none()) {
            let message = format!(
                "target `{}` has no price, so no limit of money can be kept: set its price, or limit tokens alone",
                unpriced.name
            );
            return Err(Error::new(ErrorKind::Config, message));
        }
        plan.contract = plan.contract.or_coercion(plan.policy.coercion());
        for target in &mut plan.targets {
            target
                .lower(&plan.contract, plan.options.max_tokens, &plan.options.instruction)
                .map_err(|refused| Error::new(ErrorKind::Schema, refused.to_string()))?;
            if target.modes.is_empty() {
                let message = format!("target `{}` has no output mode: add a dialect", target.name);
                return Err(Error::new(ErrorKind::Config, message));
            }
        }
        let mut hash = Sha256::new();
        hash.update(plan.contract.digest());
        for target in &plan.targets {
            hash.update([0]);
            hash.update(&target.name);
            target.modes.iter().for_each(|mode| hash.update(mode.lower.name()));
        }
        plan.digest = hex(hash);
        let mut hash = Sha256::new();
        let schema = plan.contract.schema().document().to_string();
        plan.schema_bytes = schema.len();
        hash.update(schema);
        plan.schema_digest = hex(hash);
        Ok(plan)
    }
}

/// Returns what an instruction calls the answers, which may have another type than the document's values.
fn kind(document: &Value, whole: &Lowered) -> &'static str {
    match whole.schema.as_ref().unwrap_or(document).get("type").and_then(Value::as_str) {
        _ if whole.wrapper().is_some() => "object",
        Some("object") => "object",
        Some("array") => "array",
        _ => "value",
    }
}

/// Returns the first half of a hash in hexadecimal digits.
fn hex(hash: Sha256) -> String {
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Debug for PlanBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plan.fmt(f)
    }
}
