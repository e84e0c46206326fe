//! One request in progress: its contract, its maximum cost, its runs and its response.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use formwork_core::{
    CallRecord, Capabilities, ClientRequest, Error, Input, Message, Outcome, Part, Role, Warning,
    WarningKind, precision,
};
use formwork_extract::{CancellationToken, Extraction, Observer};
use formwork_serve::{BodyError, Kept, Turn, read_body};
use serde_json::Value;
use tokio::time::Instant;

use super::Shared;
use super::heard::Heard;
use super::reserve::{Cost, reserve};
use crate::access::Client;
use crate::ask::{Ask, Sampling, Want};
use crate::contracts::{ContractError, Schema, Spec};
use crate::document::Extent;
use crate::engine::{self, Ready};
use crate::options::Options;
use crate::problem::{Kind, Problem};
use crate::protocol::Protocol;
use crate::record::Record;
use crate::reply::{Meta, Reply, Support};
use crate::vendor::sent;

/// The digests of a request with its contract, and of its question alone, under which the cache has the former.
pub(super) type Digests = (String, Option<String>);

/// A valid request that is allowed.
pub(super) struct Job {
    pub(super) shared: Arc<Shared>,
    pub(super) protocol: &'static Protocol,
    pub(super) ask: Ask,
    /// The extent of the request's prompt.
    pub(super) prompt: Extent,
    pub(super) targets: Vec<usize>,
    pub(super) options: Box<Options>,
    pub(super) meta: Meta,
    pub(super) client: Client,
    pub(super) record: Box<Record>,
    /// The end of the time for the request.
    pub(super) until: Instant,
    /// Warnings about the numbers of the request and of its contract.
    pub(super) warnings: Vec<Warning>,
    /// Held while the request is worked on.
    pub(super) turn: Turn,
    /// The request as its protocol has it, for targets of the protocol.
    pub(super) given: Option<Arc<ClientRequest>>,
    /// The places of the request that a target of the protocol does not get, although it gets the request.
    pub(super) unsent: Vec<String>,
    /// The contract of the final message beside tools.
    pub(super) named: Option<Spec>,
}

impl Job {
    /// Returns the contract of the request, its own or a named one, and its instructions for the model in addition to the dialogue.
    async fn spec(&mut self) -> Result<Option<(Spec, Option<Message>)>, Problem> {
        let Some(name) = &self.options.contract else { return Ok(engine::spec_of(&self.ask.want)) };
        match &mut self.ask.want {
            Want::Text => named(&self.shared, name).await.map(|spec| Some((spec, None))),
            Want::Tools { format: format @ None, .. } => {
                let mut spec = named(&self.shared, name).await?;
                *format = Some((spec.name.clone(), spec.schema.clone()));
                self.warnings.append(&mut spec.warnings);
                self.named = Some(spec);
                Ok(engine::spec_of(&self.ask.want))
            }
            _ => {
                let message = format!(
                    "the contract `{name}` is named, and the request has a format or a forced tool: use one of them"
                );
                Err(Problem::invalid("x-formwork-contract", message))
            }
        }
    }

    /// Returns the contract of the request, and reserves its maximum cost.
    pub(super) async fn prepared(
        &mut self,
        is_passed: bool,
    ) -> Result<Option<(Spec, Option<Message>)>, Problem> {
        let mut spec = self.spec().await?;
        self.warnings.extend(spec.iter_mut().flat_map(|(spec, _)| spec.warnings.drain(..)));
        if let Some((spec, _)) = &mut spec
            && !matches!(self.ask.want, Want::Tools { .. })
        {
            spec.mark(self.options.absent.as_ref(), self.options.coerce.as_ref());
        }
        if let Some((spec, _)) = &spec
            && self.ask.want == Want::Text
        {
            // The answer is a document, as if the request had brought its schema.
            self.ask.want = Want::Json { name: spec.name.clone(), schema: Schema::default() };
        }
        if !is_passed {
            self.rules_hold()?;
        }
        self.note_ignored();
        if self.record.has_hold() {
            // Targets of the same protocol were asked before.
            return Ok(spec);
        }
        let mut prompt = self.prompt;
        let named = self.named.as_ref().or_else(|| spec.as_ref().map(|(spec, _)| spec));
        if let Some(named) = named.filter(|_| self.options.contract.is_some()) {
            prompt.add(named.length());
        }
        let is_run = spec.is_some() && !is_passed && !self.is_talk();
        let given = is_passed.then_some(self.protocol.own.0);
        let cost = Cost { ask: &self.ask, prompt, given, is_run };
        let record = (&self.client, &mut *self.record);
        let turn = (&mut self.turn, self.until);
        reserve(&self.shared, record, cost, &self.targets, &mut self.options.bounds, turn).await?;
        Ok(spec)
    }

    /// Refuses a named contract whose rules nothing would check: those beside tools, for targets without tools.
    pub(super) fn rules_hold(&self) -> Result<(), Problem> {
        let Some(named) = self.named.as_ref().filter(|named| !named.rules.is_empty() && !self.is_talk())
        else {
            return Ok(());
        };
        let message = format!(
            "the contract `{}` has rules, and no target of the request has tools beside them",
            named.name
        );
        Err(Problem::invalid("x-formwork-contract", message))
    }

    /// Returns the instructions of a named contract beside tools, and an instruction beside them; `None` if there are none.
    pub(super) fn instructions(&self, more: Option<String>) -> Option<String> {
        let own = self.named.iter().filter_map(|named| named.instructions.clone());
        let texts: Vec<_> = own.chain(more).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    /// Puts instructions at the end of the system message of a dialogue, and the examples of a named contract behind it.
    pub(super) fn introduce(&self, messages: &mut Vec<Message>, more: Option<String>) {
        let leading = messages.iter().take_while(|message| message.role == Role::System).count();
        let examples = self.named.iter().flat_map(|named| &named.examples);
        let examples = examples
            .flat_map(|(input, output)| [Message::user(input), Message::assistant(output.to_string())]);
        messages.splice(leading..leading, examples);
        match (self.instructions(more), leading.checked_sub(1).and_then(|last| messages.get_mut(last))) {
            (Some(text), Some(system)) => system.parts.push(Part::Text { text: format!("\n\n{text}") }),
            (Some(text), None) => messages.insert(0, Message::system(text)),
            (None, _) => {}
        }
    }

    /// Returns the dialogue of the request as the input of its runs.
    pub(super) fn input(&mut self, instructions: Option<Message>) -> Input {
        let mut messages = std::mem::take(&mut self.ask.messages);
        self.introduce(&mut messages, None);
        self.ask.messages = messages;
        let mut input = engine::input(&mut self.ask, instructions);
        input.client.clone_from(&self.given);
        input
    }

    /// Takes the body of the request for targets of its protocol. The others are left out if they cannot answer it.
    pub(super) fn give(&mut self, mut body: Value, is_only: bool, headers: &HeaderMap) {
        let (protocol, path) = self.protocol.own;
        if is_only {
            let all = self.shared.engine.names.targets();
            self.targets.retain(|nth| all.get(*nth).is_some_and(|target| target.raw(protocol).is_some()));
        }
        body["stream"] = self.ask.stream.into();
        let mut client = ClientRequest::new(path, body);
        client.is_only = is_only;
        let headers = sent(headers)
            .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
        client.headers = headers.collect();
        self.given = Some(Arc::new(client));
    }

    /// Returns whether all targets have the protocol of the request.
    pub(super) fn has_one_protocol(&self) -> bool {
        let own = self.protocol.own.0;
        self.shared.engine.targets(&self.targets).all(|target| target.raw(own).is_some())
    }

    /// Returns the observer that keeps the response of the target; `None` for a request that no target gets as it is, and for several
    /// answers.
    pub(super) fn heard(&self) -> Option<Arc<Heard>> {
        (self.given.is_some() && self.ask.count == 1).then(Arc::default)
    }

    /// Adds the parameters of sampling and the settings that a target of the request does not take.
    fn note_ignored(&mut self) {
        let engine = &self.shared.engine;
        let lacks = |has: &dyn Fn(&Capabilities) -> bool| {
            engine.targets(&self.targets).any(|target| !has(target.backend.capabilities()))
        };
        let Sampling { temperature, top_p, seed, .. } = self.ask.sampling;
        let at = self.protocol.sampling_at;
        for (name, is_ignored) in [
            ("temperature", temperature.is_some_and(|it| lacks(&|promised| promised.takes_temperature(it)))),
            ("top_p", top_p.is_some() && lacks(&|promised| promised.top_p)),
            ("seed", seed.is_some() && lacks(&|promised| promised.seed)),
        ] {
            if is_ignored {
                self.unsent.push(format!("{at}{name}"));
            }
        }
        if self.given.is_some() && self.has_one_protocol() {
            // Every target gets all else as the client wrote it.
            self.ask.ignored.clear();
        } else {
            for target in engine.targets(&self.targets) {
                let lost = self.ask.settings.lost(target.backend.capabilities());
                self.ask.ignored.extend(lost.map(str::to_owned));
            }
        }
        self.ask.ignored.extend_from_slice(&self.unsent);
        self.ask.ignored.sort_unstable();
        self.ask.ignored.dedup();
        self.meta.ignored.clone_from(&self.ask.ignored);
    }

    /// Returns the limit of money of each answer: equal shares of that of the request.
    pub(super) fn share(&self) -> Option<u64> {
        self.options.bounds.budget.map(|budget| budget / u64::from(self.ask.count.max(1)))
    }

    /// Compiles the contract, and counts whether that was done before.
    pub(super) async fn ready(&self, spec: &Spec) -> Result<Ready, Problem> {
        let mut bounds = self.options.bounds;
        bounds.budget = self.share();
        bounds.is_eager = self.is_eager();
        bounds.deadline = Some(self.until.saturating_duration_since(Instant::now()));
        let ready = self.shared.engine.ready(spec, &self.targets, self.ask.sampling, bounds).await?;
        self.shared.metrics.contract(ready.was_compiled);
        Ok(ready)
    }

    /// Returns whether the targets are asked for text and calls of tools, and not for one document.
    pub(super) fn is_talk(&self) -> bool {
        let mut targets = self.shared.engine.targets(&self.targets);
        let has_tools = targets.all(|target| target.backend.capabilities().tools);
        matches!(self.ask.want, Want::Tools { .. }) && has_tools
    }

    /// Returns whether the first attempt is shown as it comes. A turn with several tools is known only when it is whole.
    pub(super) const fn is_eager(&self) -> bool {
        self.options.is_eager
            && self.ask.stream
            && self.ask.count == 1
            && !matches!(self.ask.want, Want::Tools { .. })
    }

    /// Compiles the contract, and records that its run begins. Returns the digests for the cache and the answer that it has as well.
    pub(super) async fn begun(
        &mut self,
        spec: &Spec,
    ) -> Result<(Ready, Option<Digests>, Option<Reply>), Problem> {
        let ready = Box::pin(self.ready(spec)).await;
        let ready = self.record.checked(ready)?;
        self.record.runs_now();
        let name = Some(spec.name.clone());
        let digest = Some(ready.extractor.plan().schema_digest().to_owned());
        self.record.change(|run| run.with_contract(name, digest));
        let digests = self.digests(spec, &ready);
        let cached = self.cached(digests.as_ref(), &ready);
        Ok((ready, digests, cached))
    }

    /// Makes the runs of the request with a contract, one for each answer.
    pub(super) fn runs(
        &mut self,
        (ready, instructions): (Ready, Option<Message>),
        observers: Vec<Arc<dyn Observer>>,
        cancel: CancellationToken,
    ) -> impl Future<Output = Vec<Result<Outcome<Value>, Error>>> + Send + use<> {
        let (input, count) = (self.input(instructions), self.ask.count);
        let run = move |nth| {
            let extraction = ready.extraction(input.clone(), nth, &cancel);
            observers.iter().cloned().fold(extraction, Extraction::with_observer).run()
        };
        async move {
            match count {
                // Most requests; one future needs no list.
                1 => vec![run(0).await],
                count => futures_util::future::join_all((0..count).map(run)).await,
            }
        }
    }

    /// Answers with the value of a contract.
    pub(super) async fn contract(
        mut self: Box<Self>,
        spec: Spec,
        instructions: Option<Message>,
    ) -> Result<Response, Problem> {
        let (ready, digests, cached) = self.begun(&spec).await?;
        if let Some(reply) = cached {
            let response = from_cache(self.respond(&reply, None), true);
            self.record.cached();
            return Ok(response);
        }
        let heard = self.heard();
        let observers = heard.iter().cloned().map(|heard| heard as Arc<dyn Observer>).collect();
        let cancel = CancellationToken::new();
        let runs = self.runs((ready, instructions), observers, cancel.clone());
        let run = async move {
            let mut results = runs.await;
            let mut response = self.finish(&mut results).map(|reply| self.respond(&reply, heard.as_deref()));
            if digests.is_some() {
                response = response.map(|response| from_cache(response, false));
            }
            self.cache(digests, &results);
            self.record.runs(&results, None);
            response
        };
        // If the client disconnects, the runs are cancelled, and still recorded and settled.
        Kept::new(run, cancel).await
    }

    /// Adds the warnings about the request, and puts the results together.
    pub(super) fn finish(&self, results: &mut [Result<Outcome<Value>, Error>]) -> Result<Reply, Problem> {
        results.iter_mut().for_each(|result| warn(result, &self.warnings));
        let mut reply = engine::reply(&self.ask.want, results)?;
        if let [Ok(outcome)] = results {
            reply.support = self.options.evidence.then(|| Support::of(outcome));
        }
        Ok(reply)
    }

    /// Returns the facts about the response of a target that got the request as it is.
    pub(super) fn heard_meta(&self) -> Meta {
        Meta { ignored: self.unsent.clone(), ..self.meta.clone() }
    }

    /// Returns the response that a reply is: that of the target, if it got the request as it is.
    pub(super) fn respond(&self, reply: &Reply, heard: Option<&Heard>) -> Response {
        let body = heard.and_then(|heard| {
            let meta = self.heard_meta();
            heard.whole(self.protocol, (reply, &meta), || (self.protocol.reply)(reply, &meta))
        });
        let is_heard = body.is_some();
        let body = body.unwrap_or_else(|| (self.protocol.reply)(reply, &self.meta));
        let mut response = Response::new(Body::from(body));
        // A response has more headers than those for which a map has place at first.
        response.headers_mut().reserve(12);
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.head(&mut response, is_heard);
        // Calls of targets that were left for others belong to no run.
        let calls = reply.calls + self.record.made.len();
        response.headers_mut().insert("x-formwork-calls", calls.into());
        if let Some(warnings) = warnings(&reply.warnings) {
            response.headers_mut().insert("x-formwork-warnings", warnings);
        }
        response
    }

    /// Adds what every answer says of itself; `is_heard` says whether it is that of a target that got the request as it is.
    pub(super) fn head(&self, response: &mut Response, is_heard: bool) {
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(warnings) = warnings(&self.warnings) {
            headers.insert("x-formwork-warnings", warnings);
        }
        let ignored = if is_heard { &self.unsent } else { &self.ask.ignored };
        if let Some(ignored) = listed(ignored) {
            headers.insert("x-formwork-ignored", ignored);
        }
    }
}

/// Adds whether a response is an answer of the cache.
pub(super) fn from_cache(mut response: Response, is_hit: bool) -> Response {
    let name = HeaderValue::from_static(if is_hit { "hit" } else { "miss" });
    response.headers_mut().insert("x-formwork-cache", name);
    response
}

/// Returns the value of `x-formwork-warnings`: the kind and the path of each warning, as in `repaired, rounded at $.total`; `None` if
/// there are none. The run in the ledger has the sentences.
pub(super) fn warnings(warnings: &[Warning]) -> Option<HeaderValue> {
    let item = |Warning { kind, path, .. }: &Warning| match path {
        Some(path) => format!("{} at {path}", kind.name()),
        None => kind.name().to_owned(),
    };
    listed(&warnings.iter().map(item).collect::<Vec<_>>())
}

/// Returns the value of a header that lists names or places, in ASCII; `None` if there are none.
pub(super) fn listed(places: &[String]) -> Option<HeaderValue> {
    /// The longest value, in bytes: proxies refuse responses with long headers.
    const MAX: usize = 1_000;

    let mut text = String::new();
    for (nth, place) in places.iter().enumerate() {
        if text.len() + place.len() > MAX {
            text.push_str(&format!(", and {} more", places.len() - nth));
            break;
        }
        let comma = if nth == 0 { "" } else { ", " };
        text.push_str(comma);
        text.extend(place.chars().map(|letter| match letter {
            ' '..='~' => letter,
            _ => '?',
        }));
    }
    HeaderValue::from_str(&text).ok().filter(|_| !text.is_empty())
}

pub(super) fn calls<T>(result: &Result<Outcome<T>, Error>) -> &[CallRecord] {
    match result {
        Ok(outcome) => outcome.calls(),
        Err(error) => error.calls(),
    }
}

/// Finds a named contract.
pub(super) async fn named(shared: &Shared, name: &str) -> Result<Spec, Problem> {
    let Some(folder) = &shared.folder else {
        return Err(Problem::invalid(
            "x-formwork-contract",
            "there are no named contracts: set `contracts` in the configuration",
        ));
    };
    match folder.get(name, &shared.engine) {
        Ok(named) => {
            let mut warnings = precision(&named.rounded).1;
            warnings.extend(folder.problem(name).map(|problem| {
                let message =
                    format!("the file of the contract is wrong, and its last version is used: {problem}");
                Warning::new(WarningKind::Note, message)
            }));
            Ok(Spec { warnings, ..Spec::from(&*named) })
        }
        Err(ContractError::Unknown(names)) => {
            let name: String = name.chars().take(100).collect();
            let message = match names.is_empty() {
                true => format!("there is no contract `{name}`: the folder of contracts has none"),
                false => format!("there is no contract `{name}`; there are: {}", names.join(", ")),
            };
            Err(Problem {
                param: Some("x-formwork-contract".to_owned()),
                ..Problem::new(Kind::NotFound, message)
            })
        }
        Err(ContractError::Unusable(reason)) => Err(Problem::new(Kind::Internal, reason)),
    }
}

/// Refuses a body with an integer that would change, because the body is not passed on as it is. Returns a warning for each
/// fraction that is rounded.
pub(super) fn exact(text: &str) -> Result<Vec<Warning>, Problem> {
    let rounded = formwork_json::exact(text);
    let rounded = rounded.map_err(|error| Problem::new(Kind::Invalid, error.to_string()))?;
    Ok(precision(&rounded).1)
}

/// Adds warnings about the request to its result, if it has a value.
pub(super) fn warn(result: &mut Result<Outcome<Value>, Error>, warnings: &[Warning]) {
    result.iter_mut().for_each(|outcome| outcome.warnings.extend_from_slice(warnings));
}

/// Returns the problem of a body that cannot be parsed.
pub(super) fn no_json(error: &serde_json::Error) -> Problem {
    Problem::new(Kind::Invalid, format!("the body is not JSON: {error}"))
}

/// Reads a body as text, within the limits of size and time.
pub(super) async fn text(shared: &Shared, headers: &HeaderMap, body: Body) -> Result<String, Problem> {
    let limits = &shared.engine.limits;
    let bytes =
        read_body(headers, body, limits.max_body, limits.read_timeout).await.map_err(
            |error| match error {
                BodyError::TooLong => {
                    Problem::new(Kind::TooLarge, format!("a body has at most {} bytes", limits.max_body))
                }
                BodyError::TooSlow => Problem::new(Kind::ReadTimeout, "the body did not arrive in time"),
                BodyError::Broken(reason) => {
                    Problem::new(Kind::Invalid, format!("the body broke off: {reason}"))
                }
            },
        )?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Problem::new(Kind::Invalid, format!("the body is not UTF-8 at byte {at}"))
    })?;
    if text.len() > MAX_VALUES && marks(&text) > MAX_VALUES {
        let message = format!("a body has at most {MAX_VALUES} values in lists and objects");
        return Err(Problem::new(Kind::TooLarge, message));
    }
    Ok(text)
}

/// The maximum number of values in a body, because each takes many times the bytes of its text in memory.
const MAX_VALUES: usize = 1_000_000;

/// Returns the number of commas and opening brackets of a JSON text, without those in strings. There is one for each value at least.
fn marks(text: &str) -> usize {
    let (mut count, mut is_text) = (0, false);
    for piece in text.split('"') {
        if is_text {
            // The quote after an odd number of backslashes is a part of the string.
            is_text = (piece.len() - piece.trim_end_matches('\\').len()) % 2 == 1;
        } else {
            count += piece.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
            is_text = true;
        }
    }
    count
}

/// Returns the problem of an answer that did not come in time.
pub(super) fn late() -> Problem {
    Problem::new(Kind::Deadline, "there was no answer in time, and the call is broken off")
}

/// Returns the seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}
