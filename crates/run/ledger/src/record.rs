use std::borrow::Cow;

use formwork_core::evidence::Summary;
use formwork_core::{
    CallRecord, CallResult, Enforcement, ErrorKind, Failure, JsonPath, Leaves, Origin, Outcome, Time, Trust,
    Usage, Violation, Warning,
};
use serde::{Deserialize, Serialize};

use crate::{KeyId, RecordId, Redaction};

/// The outcome of a run.
///
/// ```
/// use formwork_core::ErrorKind;
/// use formwork_ledger::RunOutcome;
///
/// assert_eq!(RunOutcome::from_name("rejected"), Some(RunOutcome::Failed(ErrorKind::Rejected)));
/// assert_eq!(RunOutcome::Fallback.name(), "fallback");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunOutcome {
    /// A model's answer was accepted, or passed through.
    Ok,
    /// The fallback supplied the value.
    Fallback,
    /// There is no acceptable answer.
    Failed(ErrorKind),
}

impl RunOutcome {
    /// All outcomes by name.
    const NAMES: [(&'static str, Self); 11] = [
        ("ok", Self::Ok),
        ("fallback", Self::Fallback),
        ("config", Self::Failed(ErrorKind::Config)),
        ("schema", Self::Failed(ErrorKind::Schema)),
        ("rejected", Self::Failed(ErrorKind::Rejected)),
        ("not_stated", Self::Failed(ErrorKind::NotStated)),
        ("refused", Self::Failed(ErrorKind::Refused)),
        ("unavailable", Self::Failed(ErrorKind::Unavailable)),
        ("deadline", Self::Failed(ErrorKind::Deadline)),
        ("budget", Self::Failed(ErrorKind::Budget)),
        ("cancelled", Self::Failed(ErrorKind::Cancelled)),
    ];

    /// Returns the name in the file, in JSON and in metrics: `ok`, `fallback`, or the class of the error, such as `rejected`.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, outcome)| *outcome == self).map_or("failed", |(name, _)| name)
    }

    /// Returns the outcome with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, outcome)| *outcome)
    }

    /// Returns all names.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::NAMES.iter().map(|(name, _)| *name)
    }
}

mod by_name {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    use super::RunOutcome;

    pub(super) fn serialize<S: Serializer>(outcome: &RunOutcome, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(outcome.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<RunOutcome, D::Error> {
        let name = String::deserialize(from)?;
        RunOutcome::from_name(&name)
            .ok_or_else(|| D::Error::custom(format_args!("no outcome has the name {name}")))
    }
}

impl<T> From<&Result<Outcome<T>, formwork_core::Error>> for RunOutcome {
    fn from(result: &Result<Outcome<T>, formwork_core::Error>) -> Self {
        match result {
            Ok(outcome) if outcome.origin == Origin::Fallback => Self::Fallback,
            Ok(_) => Self::Ok,
            Err(error) => Self::Failed(error.kind()),
        }
    }
}

/// A run for the ledger: a request and all calls that were made for it.
///
/// Empty texts are unknown. [`RunRecord::of`] sets the fields that a run of Formwork knows; the caller sets the others.
///
/// ```
/// use formwork_core::Time;
/// use formwork_ledger::RunRecord;
///
/// let run = RunRecord::new("extract", Time(1_795_000_000_000))
///     .with_contract(Some("person".to_owned()), None)
///     .with_labels(Some("alice".to_owned()), vec!["nightly".to_owned()]);
/// assert_eq!(run.contract.as_deref(), Some("person"));
/// ```
#[must_use]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The id of the run; [`RunRecord::new`] makes one.
    pub id: RecordId,
    /// The start time.
    pub started: Time,
    /// The end time.
    pub ended: Time,
    /// The outcome of the run.
    #[serde(with = "by_name")]
    pub outcome: RunOutcome,
    /// The reason for which there is no answer, in one line without values of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The command or endpoint that started the run, such as `extract` or `/v1/chat/completions`.
    pub source: Cow<'static, str>,
    /// The key that the client presented.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyId>,
    /// The user, as the client named them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The name of the contract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<String>,
    /// The digest of the contract; see [`formwork_core::Contract::digest`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The name of the target that was asked last.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// The model behind the target.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Free words to find the run by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The tokens of all calls.
    pub usage: Usage,
    /// The cost of all calls in millionths of a US dollar; `None` where a price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_usd: Option<u64>,
    /// Whether the answer came from the cache of validated values.
    pub cached: bool,
    /// The warnings of the outcome; see [`Outcome::warnings`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// The paths of the members that are `null`, because the text does not state them; of an error, of those that are required.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_stated: Vec<JsonPath>,
    /// The history of the value's leaves; `None` without a value of a model or a fallback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
    /// The number of the value's leaves by their support in the text; `None` without a value, without a text, and for texts above 1 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Summary>,
    /// All calls, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<StoredCall>,
    /// The request's text. It is stored only with [`Settings::bodies`](crate::Settings::bodies).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

impl RunRecord {
    /// Returns a run with a new id that began now and has nothing in it yet. It ends when it began and has succeeded,
    /// unless the fields are set otherwise.
    pub fn new(source: impl Into<Cow<'static, str>>, started: Time) -> Self {
        Self {
            id: RecordId::next(),
            started,
            ended: started,
            outcome: RunOutcome::Ok,
            message: None,
            source: source.into(),
            key: None,
            user: None,
            contract: None,
            digest: None,
            target: String::new(),
            model: String::new(),
            tags: Vec::new(),
            usage: Usage::default(),
            micro_usd: Some(0),
            cached: false,
            warnings: Vec::new(),
            not_stated: Vec::new(),
            trust: None,
            evidence: None,
            calls: Vec::new(),
            request: None,
        }
    }

    /// Sets the evidence for an accepted value (default: none), unless its text is empty or longer than 1 MiB. The places of the values
    /// are searched for, which takes tens of microseconds for a short text.
    pub fn with_evidence_of<T: Serialize>(
        mut self,
        result: &Result<Outcome<T>, formwork_core::Error>,
    ) -> Self {
        let outcome = result.as_ref().ok().filter(|outcome| (1..=MAX_TEXT).contains(&outcome.source().len()));
        self.evidence = outcome.map(Outcome::evidence_summary);
        self
    }

    /// Sets the fields that a run of Formwork knows: the outcome, the calls with their answers, target, model, usage and cost. The
    /// model is the target's name; [`RunRecord::with_models`] replaces it.
    pub fn of<T: Serialize>(
        mut self,
        result: &Result<Outcome<T>, formwork_core::Error>,
        ended: Time,
    ) -> Self {
        (self.outcome, self.ended) = (RunOutcome::from(result), ended);
        let calls = match result {
            Ok(outcome) => {
                (self.usage, self.micro_usd) = (outcome.usage, outcome.cost.micro_usd);
                self.warnings.clone_from(&outcome.warnings);
                self.not_stated.clone_from(&outcome.not_stated);
                self.trust = Some(outcome.trust.clone());
                &outcome.calls[..]
            }
            Err(error) => {
                (self.usage, self.micro_usd) = (error.usage(), error.cost().micro_usd);
                self.message = Some(error.message().to_owned());
                self.not_stated = error.not_stated().to_vec();
                error.calls()
            }
        };
        self.calls = calls.iter().map(StoredCall::from).collect();
        if let Some(last) = self.calls.last() {
            (self.target, self.model) = (last.target.clone(), last.target.clone());
        }
        self
    }

    /// Returns the number of calls without probes.
    pub(crate) fn call_count(&self) -> u64 {
        self.calls.iter().filter(|call| call.class != PROBE).count() as u64
    }

    /// Replaces the model of the run and of each call by the model behind its target (default: the target's name).
    pub fn with_models(mut self, model_of: impl Fn(&str) -> Option<String>) -> Self {
        if let Some(model) = model_of(&self.target) {
            self.model = model;
        }
        for call in &mut self.calls {
            if let Some(model) = model_of(&call.target) {
                call.model = model;
            }
        }
        self
    }

    /// Sets the name and the digest of the contract (default: neither).
    pub fn with_contract(mut self, name: Option<String>, digest: Option<String>) -> Self {
        (self.contract, self.digest) = (name, digest);
        self
    }

    formwork_core::setters! {
        /// Sets the key that the client presented (default: none).
        pub const fn with_key(key: Option<KeyId>);

        /// Sets the request's text (default: none).
        pub fn with_request(request: Option<String>);
    }

    /// Sets the user and the tags (default: none).
    pub fn with_labels(mut self, user: Option<String>, tags: Vec<String>) -> Self {
        (self.user, self.tags) = (user, tags);
        self
    }

    /// Returns the contract as rollups name it: its name, else its digest, else nothing.
    pub(crate) fn contract_label(&self) -> &str {
        self.contract.as_deref().or(self.digest.as_deref()).unwrap_or_default()
    }
}

/// A call to a model, as the ledger stores it.
///
/// ```
/// use formwork_core::Time;
/// use formwork_ledger::StoredCall;
///
/// let started = Time(1_795_000_000_000);
/// let call = StoredCall::new("primary", "gpt-5.4-mini", started, Time(started.0 + 900));
/// assert_eq!((call.class.as_ref(), call.number), ("accepted", 1));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredCall {
    /// The number of the attempt to which the call belongs, from 1; repeated calls belong to the same attempt, and so do patches by
    /// a policy with `Patching::Within`.
    pub number: u32,
    /// The target's name.
    pub target: String,
    /// The model behind it.
    pub model: String,
    /// The enforcement of the schema: `schema`, `tool`, `json_object` or `none`.
    pub mode: Cow<'static, str>,
    /// `accepted`, `probe`, `cancelled`, `not_json`, `invalid`, `truncated`, `stopped`, `refused`, or the kind of a fault, such as `timeout`.
    pub class: Cow<'static, str>,
    /// The provider's fault, in one line, where the call failed without a violation.
    pub message: Option<String>,
    /// The start time.
    pub started: Time,
    /// The end time.
    pub ended: Time,
    /// The tokens of the call.
    pub usage: Usage,
    /// The cost in millionths of a US dollar; `None` where the price is not known.
    pub micro_usd: Option<u64>,
    /// The paths of a patch; empty if the whole document was requested.
    pub patched: Vec<String>,
    /// The violations of the answer.
    pub violations: Vec<ViolationRecord>,
    /// The number of violations beyond those, for telemetry; it is not stored.
    #[serde(skip)]
    pub left_out: u64,
    /// The reason why the model stopped, such as `stop` or `length`; `None` if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
    /// The model that answered, as the provider names it; `None` if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<String>,
    /// The answer. It is stored only with [`Settings::bodies`](crate::Settings::bodies).
    pub answer: Option<String>,
}

/// The maximum length of a text whose values are searched for the ledger, in bytes. An index of 1 MiB takes about 80 ms.
const MAX_TEXT: usize = 1 << 20;

/// The class of a call whose answer was accepted.
pub(crate) const ACCEPTED: &str = "accepted";

/// The class of the calls before a call, which probed the server or requested a part of the document.
pub(crate) const PROBE: &str = "probe";

impl StoredCall {
    /// Returns an accepted call without usage.
    pub fn new(target: impl Into<String>, model: impl Into<String>, started: Time, ended: Time) -> Self {
        Self {
            number: 1,
            target: target.into(),
            model: model.into(),
            mode: name(Enforcement::None),
            class: ACCEPTED.into(),
            message: None,
            started,
            ended,
            usage: Usage::default(),
            micro_usd: Some(0),
            patched: Vec::new(),
            violations: Vec::new(),
            left_out: 0,
            finish: None,
            answered: None,
            answer: None,
        }
    }
}

impl From<&CallRecord> for StoredCall {
    fn from(call: &CallRecord) -> Self {
        let failure = call.verdict.failure();
        let class = match (&call.verdict, failure) {
            (_, Some(Failure::Fault(fault))) => fault.kind.name().into(),
            (_, Some(failure)) => failure.class().into(),
            (CallResult::Cancelled, None) => "cancelled".into(),
            (CallResult::Probe, None) => PROBE.into(),
            (_, None) => ACCEPTED.into(),
        };
        Self {
            number: call.attempt,
            mode: name(call.enforcement),
            class,
            message: match failure {
                Some(Failure::Fault(fault)) => Some(fault.message.clone()),
                _ => None,
            },
            usage: call.usage,
            micro_usd: call.cost.micro_usd,
            patched: call.patched.iter().map(ToString::to_string).collect(),
            violations: failure
                .map_or(&[][..], Failure::violations)
                .iter()
                .map(ViolationRecord::from)
                .collect(),
            left_out: failure.map_or(0, |failure| failure.left_out() as u64),
            finish: call.finish.as_ref().map(|finish| name(finish).into_owned()),
            answered: call.model.clone(),
            answer: (!call.text.is_empty()).then(|| call.text.to_string()),
            ..Self::new(&call.target, &call.target, call.started, call.ended)
        }
    }
}

/// Returns the name of a class in JSON.
fn name(class: impl Serialize) -> Cow<'static, str> {
    match serde_json::to_value(class) {
        Ok(serde_json::Value::String(name)) => name.into(),
        _ => "other".into(),
    }
}

/// A violation, without the values of the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViolationRecord {
    /// The keyword of the schema or the name of the check.
    pub class: String,
    /// The place in the document, as messages write it: `$.items[0].price`.
    pub path: String,
    /// The sentence, without the value that was found.
    pub message: String,
}

impl From<&Violation> for ViolationRecord {
    fn from(violation: &Violation) -> Self {
        Self { class: violation.rule.clone(), path: violation.place(), message: violation.masked() }
    }
}

/// Methods of the queue and the writer.
impl RunRecord {
    /// Returns how many bytes its request and answers have.
    pub(crate) fn body_bytes(&self) -> usize {
        let answers = self.calls.iter().filter_map(|call| call.answer.as_ref());
        self.request.iter().chain(answers).map(String::len).sum()
    }

    pub(crate) fn drop_bodies(&mut self) {
        self.request = None;
        for call in &mut self.calls {
            call.answer = None;
        }
    }

    /// Drops requests and answers that are longer than `max`; returns whether there were any.
    pub(crate) fn drop_long_bodies(&mut self, max: usize) -> bool {
        let answers = self.calls.iter_mut().map(|call| &mut call.answer);
        let bodies = std::iter::once(&mut self.request).chain(answers);
        bodies.filter_map(|body| body.take_if(|text| text.len() > max)).count() > 0
    }

    /// Returns the run as one line of JSON, after the rules: without texts, violations and the paths of its history, because the caller
    /// waits for it. What it was doubted for stays.
    pub(crate) fn line(&mut self, rules: Redaction) -> Option<Vec<u8>> {
        use std::mem::take;
        let request = self.request.take();
        let paths: Vec<_> = histories(&mut self.trust).map(|leaves| take(&mut leaves.paths)).collect();
        let of_calls: Vec<_> = self
            .calls
            .iter_mut()
            .map(|call| (call.answer.take(), take(&mut call.patched), take(&mut call.violations)))
            .collect();
        self.redact(rules);
        let line = serde_json::to_vec(self).ok();
        self.request = request;
        histories(&mut self.trust).zip(paths).for_each(|(leaves, paths)| leaves.paths = paths);
        for (call, of_call) in self.calls.iter_mut().zip(of_calls) {
            (call.answer, call.patched, call.violations) = of_call;
        }
        line.map(|line| [line, vec![b'\n']].concat())
    }

    /// Applies the rules to all texts.
    pub(crate) fn redact(&mut self, rules: Redaction) {
        let calls = self.calls.iter_mut().flat_map(|call| {
            let violations = call.violations.iter_mut().flat_map(|one| [&mut one.path, &mut one.message]);
            call.message.iter_mut().chain(&mut call.answer).chain(&mut call.patched).chain(violations)
        });
        // A name in a path may be a value of the user, and a path has no place for the mark of a removed text.
        let is_clean = |path: &JsonPath| {
            let (mut text, place) = (path.to_string(), path.to_string());
            rules.text(&mut text);
            text == place
        };
        self.warnings.iter_mut().for_each(|warning| drop(warning.path.take_if(|path| !is_clean(path))));
        self.not_stated.retain(is_clean);
        histories(&mut self.trust).for_each(|leaves| leaves.paths.retain(is_clean));
        let warnings = self.warnings.iter_mut().map(|warning| &mut warning.message);
        let own = self
            .message
            .iter_mut()
            .chain(&mut self.request)
            .chain(&mut self.user)
            .chain(&mut self.tags)
            .chain(warnings);
        own.chain(calls).for_each(|text| rules.text(text));
    }
}

/// Returns the leaves of each history.
fn histories(trust: &mut Option<Trust>) -> impl Iterator<Item = &mut Leaves> {
    trust.iter_mut().flat_map(|trust| trust.other.values_mut())
}
