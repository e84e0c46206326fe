//! Runs: with a contract, or one call for text.

use std::sync::Arc;
use std::time::Duration;

use formwork::config::Defaults;
use formwork::contract::take_rules;
use formwork::providers::Protocol;
use formwork_core::{
    Cost, Error, Inline, Input, MAX_BYTES, MAX_PREVIOUS, Message, ModelSettings, Outcome, Patching, Policy,
    Temperature, Usage,
};
use formwork_extract::{CancellationToken, Extraction, Extractor};
use serde_json::Value;
use tokio::time::Instant;

use crate::ask::{Ask, Sampling, Want};
use crate::contracts::{Cache, Key, Known, Spec};
use crate::document::Extent;
use crate::limits::Limits;
use crate::names::{Names, Target};
use crate::outages::Outages;
use crate::problem::{self, Kind, Problem, Unaccepted};
use crate::reply::{Choice, Content, Finish, Reply};
use crate::tools;

/// Carries out requests.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) names: Names,
    pub(crate) defaults: Defaults,
    pub(crate) limits: Limits,
    pub(crate) cache: Cache,
    /// The schemas that requests had.
    pub(crate) schemas: Known,
    pub(crate) outages: Outages,
}

/// The limits of one request, beside those of the service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// In millionths of a US dollar.
    pub(crate) budget: Option<u64>,
    pub(crate) deadline: Option<Duration>,
    /// Whether only the first completion is used, because it is sent while it is generated.
    pub(crate) is_eager: bool,
}

/// A contract that is ready to be asked for.
pub(crate) struct Ready {
    pub(crate) key: Key,
    pub(crate) extractor: Extractor<Value>,
    pub(crate) was_compiled: bool,
    /// The time and the money, in millionths of a US dollar, of a request's runs.
    limits: (Duration, Option<u64>),
}

impl Ready {
    /// Returns one extraction of a request. Several answers with the same seed would be the same answer.
    pub(crate) fn extraction(
        &self,
        mut input: Input,
        nth: u32,
        cancel: &CancellationToken,
    ) -> Extraction<Value> {
        input.seed = input.seed.map(|seed| seed.wrapping_add(u64::from(nth)));
        let (deadline, budget) = self.limits;
        input.deadline = Some(deadline);
        input.budget = budget.map(|micro_usd| Cost { tokens: u64::MAX, micro_usd: Some(micro_usd) });
        self.extractor.extraction(input).with_cancel(cancel.clone())
    }
}

impl Engine {
    /// Returns the time that a request may take.
    pub(crate) fn deadline(&self, bounds: Bounds) -> Duration {
        let own = self.defaults.timeout();
        [bounds.deadline, own].into_iter().flatten().fold(self.limits.timeout, Duration::min)
    }

    /// Returns the end of the time for a request, if its client set it: then a target that does not answer until then may be in service.
    pub(crate) fn wish(&self, bounds: Bounds, until: Instant) -> Option<Instant> {
        bounds.deadline.filter(|own| *own == self.deadline(bounds)).map(|_| until)
    }

    /// Returns the targets of a model, those in service first.
    ///
    /// # Errors
    /// [`Kind::UnknownModel`](crate::problem::Kind::UnknownModel).
    pub(crate) fn resolve(&self, model: &str) -> Result<Vec<usize>, Problem> {
        let mut targets = self.names.resolve(model)?;
        let all = self.names.targets();
        self.outages.sort(&mut targets, |nth| all.get(nth).map_or("", Target::name));
        Ok(targets)
    }

    /// Returns the most attempts of a request.
    pub(crate) fn attempts(&self) -> u32 {
        self.defaults.limit(Policy::default()).attempts.min(self.limits.max_attempts).max(1)
    }

    /// Compiles a contract for these targets, or finds the compiled one.
    ///
    /// # Errors
    /// [`Kind::Invalid`] for a schema that cannot be used, is too long, or takes too long to compile.
    pub(crate) async fn ready(
        &self,
        spec: &Spec,
        targets: &[usize],
        sampling: Sampling,
        bounds: Bounds,
    ) -> Result<Ready, Problem> {
        if spec.schema.length() > self.limits.max_schema {
            let message = format!("the schema is longer than {} bytes", self.limits.max_schema);
            return Err(Problem::invalid("schema", message));
        }
        if let Some(target) = self.targets(targets).find(|target| target.backend.price().is_none())
            && bounds.budget.is_some()
        {
            let message = format!(
                "target `{}` has no price, so no limit of money can be kept: set its price, or leave the budget out",
                target.name()
            );
            return Err(Problem::invalid("budget", message));
        }
        let Sampling { temperature, max_tokens, .. } = sampling;
        // The limits of a request are those of its run: a contract that is asked for with others is the same contract.
        let parts = (
            &spec.name,
            &spec.rules,
            &spec.instructions,
            &spec.examples,
            (targets, temperature, max_tokens, bounds.is_eager),
        );
        let key = Key::new(spec.schema.digest(), &parts);
        let compile = || {
            let builder = self.builder(spec, targets, sampling, bounds);
            move || builder?.build().map_err(|error| unusable(&error))
        };
        let within = self.limits.compile_timeout;
        let Some((extractor, was_compiled)) = self.cache.get(key.clone(), within, compile).await else {
            let message = format!("the schema was not compiled within {} s", within.as_secs_f64());
            return Err(Problem {
                param: Some("schema".to_owned()),
                ..Problem::new(Kind::Deadline, message)
            });
        };
        let limits = (self.deadline(bounds), bounds.budget);
        Ok(Ready { key, extractor: extractor?, was_compiled, limits })
    }

    /// Checks that a contract can be used.
    ///
    /// # Errors
    /// [`Kind::Invalid`] for a schema, a rule or an example that cannot be used.
    pub(crate) fn check(&self, spec: &Spec) -> Result<(), Problem> {
        let all: Vec<usize> = (0..self.names.targets().len()).collect();
        let builder = self.builder(spec, &all, Sampling::default(), Bounds::default())?;
        builder.verify().map_err(|error| unusable(&error))
    }

    fn builder(
        &self,
        spec: &Spec,
        targets: &[usize],
        sampling: Sampling,
        bounds: Bounds,
    ) -> Result<formwork_extract::ExtractorBuilder<Value>, Problem> {
        let defaults = &self.defaults;
        let mut policy = defaults.limit(Policy::default());
        policy.attempts = self.attempts();
        policy.backoff = self.limits.backoff.clone();
        if let Some(temperature) = sampling.temperature.or(defaults.temperature) {
            policy.temperature = Temperature::Steps(vec![temperature]);
        }
        if bounds.is_eager {
            (policy.attempts, policy.patching) = (1, Patching::Never);
        }
        let mut schema = spec.schema.value().clone();
        let rules = take_rules(&mut schema).map_err(|message| Problem::invalid("schema", message))?;
        let schema = Arc::new(Inline::new(identifier(&spec.name), schema));
        let mut builder = Extractor::for_schema(schema)
            .with_policy(policy)
            .with_rules(spec.rules.iter().cloned().chain(rules))
            // A request does not wait for the money of other requests.
            .with_max_budget_wait(Duration::ZERO);
        if self.limits.any {
            builder = builder.with_any();
        }
        if let Some(tokens) = sampling.max_tokens.or(defaults.max_tokens) {
            builder = builder.with_max_tokens(tokens);
        }
        if let Some(calibrations) = &defaults.calibrations {
            builder = builder.with_calibrations(calibrations.clone());
        }
        if let Some(instructions) = &spec.instructions {
            builder = builder.with_system(instructions.clone());
        }
        for (input, output) in &spec.examples {
            builder = builder.with_example(input.clone(), output);
        }
        let targets = self.targets(targets).map(|target| target.backend.clone());
        Ok(targets.fold(builder, formwork_extract::ExtractorBuilder::with_target))
    }

    /// Returns the maximum cost of a request in millionths of a US dollar, and that of its first call. A token has at
    /// least one byte; input that the server adds is limited by the context of the model, as is an answer without a limit. Targets
    /// of the protocol `given` get the request as the client wrote it, with no limit of ours.
    ///
    /// # Errors
    /// Why the cost has no limit that is known: a target has no price, or no limit of an answer or of its context is known.
    pub(crate) fn worst(
        &self,
        ask: &Ask,
        prompt: Extent,
        targets: &[usize],
        (given, is_run): (Option<Protocol>, bool),
    ) -> Result<(u64, u64), String> {
        /// The tokens of an answer that only a run limits.
        const ANSWER: u32 = 4_096;
        /// The bytes of what a run tells a model whose server does not enforce schemas.
        const INSTRUCTION: u64 = 2_048;
        /// The bytes of a token, which few texts exceed on average.
        const TOKEN: u64 = 16;

        // Only such a run limits its answers to what was reserved.
        let is_single = is_run && ask.count == 1 && matches!(ask.want, Want::Json { .. } | Want::Call(_));
        let calls = if ask.want.is_contract() { u64::from(self.attempts()) } else { 1 };
        let (mut call, mut instructed, mut correction, mut least) = (0, 0, 0, 0);
        for target in self.targets(targets) {
            let name = target.name();
            let price =
                target.backend.price().ok_or_else(|| format!("the price of `{name}` is not known"))?;
            let promised = target.backend.capabilities();
            let input = match prompt.hidden() {
                None => prompt.most(),
                Some(member) => promised.input_tokens.or(promised.context_tokens).map(u64::from).ok_or_else(|| {
                    format!(
                        "`{member}` adds input at the server of `{name}` that no known context of its model limits"
                    )
                })?,
            };
            let is_given = given.is_some_and(|own| target.raw(own).is_some());
            let ours = [self.defaults.max_tokens, promised.default_max_tokens]
                .map(|limit| limit.filter(|_| !is_given));
            let known = [promised.output_tokens, promised.context_tokens];
            let limits = [ask.sampling.max_tokens].into_iter().chain(ours).chain(known);
            let none = || {
                format!(
                    "no limit of the tokens of an answer of `{name}` is known from the configuration or of its model: send one with \
                     the request"
                )
            };
            let is_free = is_run || price.output == 0;
            let output = limits.flatten().next().or(is_free.then_some(ANSWER)).ok_or_else(none)?;
            // Several texts of one call have one prompt. In another protocol, and of a contract, each answer has calls of its own.
            let is_shared = is_given && !ask.want.is_contract();
            let prompts = if is_shared { 1 } else { u64::from(ask.count) };
            let cost = |input: u64, output: u32| {
                let output = u64::from(output).saturating_mul(u64::from(ask.count));
                let usage = Usage::new(input.saturating_mul(prompts), output);
                let cost =
                    if is_single || prompt.is_cached() { price.at_most(usage) } else { price.of(usage) };
                cost.micro_usd.unwrap_or(0)
            };
            call = call.max(cost(input, output));
            if is_run {
                instructed = instructed.max(cost(INSTRUCTION, 0));
            }
            // The prompt of a correction has the answer before it and its violations as well.
            let answer = u64::from(output).saturating_mul(TOKEN).min(MAX_PREVIOUS as u64);
            correction = correction.max(cost(input.saturating_add(answer + MAX_BYTES as u64), output));
            // A run limits its first call by the length of schema and text; see `limit.rs` of formwork-core.
            let expected = u32::try_from(1_024 + prompt.most() / 2).unwrap_or(u32::MAX);
            least = least.max(cost(input, if is_single { output.min(expected) } else { output }));
        }
        let more = instructed.saturating_add(correction.saturating_mul(calls.saturating_sub(1)));
        Ok((call.saturating_add(more), least))
    }

    /// Returns the usage of a call that gave no answer in time. The target may have written up to its limit.
    pub(crate) fn unanswered(&self, ask: &Ask, prompt: Extent, answers: u32) -> Usage {
        let output = ask.sampling.max_tokens.or(self.defaults.max_tokens).unwrap_or(0);
        Usage::new(prompt.estimate(), u64::from(output).saturating_mul(u64::from(answers)))
            .with_estimated(true)
    }

    pub(crate) fn targets<'e>(&'e self, targets: &'e [usize]) -> impl Iterator<Item = &'e Target> {
        targets.iter().filter_map(|nth| self.names.targets().get(*nth))
    }
}

/// Returns the contract of a request, and the instructions for the model in addition to the dialogue.
pub(crate) fn spec_of(want: &Want) -> Option<(Spec, Option<Message>)> {
    match want {
        Want::Text => None,
        Want::Json { name, schema } => Some((Spec::new(name.clone(), schema.clone()), None)),
        Want::Call(tool) => {
            let schema = tool.parameters.clone().with_description(&tool.description);
            Some((Spec::new(tool.name.clone(), schema), None))
        }
        Want::Tools { tools, required, format } => {
            let schema = format.as_ref().map(|(_, schema)| schema);
            let spec = Spec::new("turn".to_owned(), tools::schema(tools, *required, schema));
            let instruction = tools::instruction(tools, *required, format.is_some());
            Some((spec, Some(Message::system(instruction))))
        }
    }
}

/// Takes the dialogue of a request as the input of its runs, which share it.
pub(crate) fn input(ask: &mut Ask, instructions: Option<Message>) -> Input {
    let messages = std::mem::take(&mut ask.messages);
    let messages = match ask.want {
        Want::Tools { .. } => tools::retold(messages),
        _ => messages,
    };
    let mut input = Input::new(instructions.into_iter().chain(messages));
    input.seed = ask.sampling.seed;
    let top_p = ask.sampling.top_p;
    input.settings = match (ask.settings.shared(), top_p) {
        (None, Some(_)) => Some(Arc::new(ModelSettings { top_p, ..ModelSettings::default() })),
        (Some(own), Some(_)) => Some(Arc::new(ModelSettings { top_p, ..ModelSettings::clone(&own) })),
        (settings, None) => settings,
    };
    input
}

/// Returns the reply that the results of a request's runs come to.
///
/// # Errors
/// The problem of the first run that has one.
pub(crate) fn reply(want: &Want, results: &[Result<Outcome<Value>, Error>]) -> Result<Reply, Problem> {
    let trust = match results {
        [Ok(outcome)] => Some(outcome.trust.clone()),
        _ => None,
    };
    let made = |result: &Result<Outcome<Value>, Error>| match result {
        Ok(outcome) => outcome.calls.len(),
        Err(error) => error.calls().len(),
    };
    let calls = results.iter().map(made).sum();
    let mut reply = Reply { trust, calls, ..Reply::default() };
    for result in results {
        let (usage, cost) = match result {
            Ok(outcome) => (outcome.usage, outcome.cost),
            Err(error) => (error.usage(), error.cost()),
        };
        reply.usage = reply.usage.plus(usage);
        reply.cost = reply.cost.plus(cost);
        reply.not_stated.extend(result.iter().flat_map(|outcome| outcome.not_stated.iter().cloned()));
        reply.warnings.extend(result.iter().flat_map(|outcome| outcome.warnings.iter().cloned()));
        reply.choices.push(match result {
            Ok(outcome) => choice(want, &outcome.value),
            Err(error) => match problem::of_error(error) {
                Unaccepted::Problem(problem) => return Err(Problem { calls, ..problem }),
                Unaccepted::Refused(reason) => Choice::refused(reason),
                Unaccepted::Truncated(text) => {
                    let content = match want {
                        Want::Call(tool) => Content::call(tool.name.clone(), text),
                        _ => Content::Text(text),
                    };
                    Choice::new(content, Finish::Length)
                }
            },
        });
    }
    Ok(reply)
}

/// Returns the answer that an accepted value is.
pub(crate) fn choice(want: &Want, value: &Value) -> Choice {
    match want {
        Want::Call(tool) => Choice::new(Content::call(tool.name.clone(), text_of(value)), Finish::Call),
        Want::Tools { .. } => tools::choice(value),
        Want::Text | Want::Json { .. } => Choice::new(Content::Text(text_of(value)), Finish::Stop),
    }
}

/// Returns the text of a document. Its `to_string` goes through a formatter, which takes twice as long.
fn text_of(value: &Value) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Returns the problem of a contract that cannot be asked for: its schema, a rule or an example is wrong, or it has a limit on money
/// and a target whose price is not known.
fn unusable(error: &Error) -> Problem {
    Problem::invalid("schema", error.to_string())
}

/// Returns a name that every provider takes: letters, digits, `_` and `-`, at most 64.
pub(crate) fn identifier(name: &str) -> String {
    let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let name: String =
        name.chars().take(64).map(|letter| if is_plain(&letter) { letter } else { '_' }).collect();
    if name.is_empty() { "answer".to_owned() } else { name }
}
