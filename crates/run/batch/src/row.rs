//! Rows, from their input to their end.

use std::collections::BTreeMap;

use formwork_core::evidence::Summary;
use formwork_core::{
    CallRecord, Confidence, Cost, Error, ErrorKind, JsonPath, Origin, Outcome, Run, Time, Trust, Usage,
    Warning,
};
use formwork_extract::{Extraction, Extractor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The maximum size of the input of a row in bytes (16 MiB). A longer row is rejected without a call.
pub const MAX_INPUT: usize = 16 << 20;

/// One row of the input of a batch.
///
/// ```
/// use formwork_batch::Row;
///
/// let row = Row::new("maria", "Maria Lindqvist, 34, moved to Lisbon.");
/// assert_eq!(row.id, "maria");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The id, which the result repeats: a JSON string or number, unique in the batch.
    pub id: Value,
    /// The text to extract from.
    pub input: String,
    /// The other columns of the row, which exports repeat: the text of a JSON object, or an empty text if there are none.
    pub columns: String,
}

impl Row {
    /// Creates a row without further columns.
    pub fn new(id: impl Into<Value>, input: impl Into<String>) -> Self {
        Self { id: id.into(), input: input.into(), columns: String::new() }
    }
}

/// An invalid row of the input. It is rejected without a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRow {
    /// The id as far as it can be read; null otherwise.
    pub id: Value,
    /// The place, the reason and the remedy: `rows.jsonl:3: the field `input` is missing`.
    pub message: String,
}

/// A row that has no result yet.
///
/// ```
/// use formwork_batch::OpenRow;
///
/// let row = OpenRow::new(0, "maria".into(), "Maria is 34.".to_owned(), None);
/// assert!(row.state.is_none(), "no call was made yet");
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct OpenRow {
    /// The position in the input, from 0. It identifies the row within its batch.
    pub number: u64,
    /// The id, which the result repeats.
    pub id: Value,
    /// The text to extract from.
    pub input: String,
    /// The state that was stored last; `None` if the row was not started.
    pub state: Option<RowState>,
    /// The handle of its open call, if that has one ([`Store::intend`](crate::Store::intend)).
    pub handle: Option<String>,
}

impl OpenRow {
    /// Creates a row without an open call, for implementations of [`Store`](crate::Store).
    pub const fn new(number: u64, id: Value, input: String, state: Option<RowState>) -> Self {
        Self { number, id, input, state, handle: None }
    }
}

/// The durable state of a row that was started and has no result yet.
///
/// ```
/// use formwork_batch::RowState;
///
/// let state = RowState { deferred: 1, ..RowState::default() };
/// assert_eq!((state.calls().count(), state.restarted().run), (0, None));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RowState {
    /// The calls of earlier runs of the row: runs that no provider answered, or that were created under other settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<CallRecord>,
    /// The run, to be continued with [`Run::resumed`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Box<Run>>,
    /// The time at which the run was stored.
    #[serde(default)]
    pub stored: Time,
    /// The number of times that the row was deferred, because its run ended for a reason that was not its own.
    #[serde(default)]
    pub deferred: u32,
}

impl RowState {
    /// Returns every call of the row so far, in order.
    pub fn calls(&self) -> impl Iterator<Item = &CallRecord> {
        self.history.iter().chain(self.run.iter().flat_map(|run| run.ledger()))
    }

    /// Discards the open run, so that the row starts over: its calls become history.
    #[must_use]
    pub fn restarted(mut self) -> Self {
        if let Some(run) = self.run.take() {
            self.history.extend(run.ledger().iter().cloned());
        }
        self
    }

    /// Continues the run. If there is none, or it was created with another plan, its calls become the history of the row.
    pub(crate) fn continued(&mut self, extractor: &Extractor<Value>, now: Time) -> Option<Extraction<Value>> {
        let run = self.run.take()?;
        let extraction = extractor.continued(run.as_ref().clone().resumed(self.stored, now));
        if extraction.is_none() {
            self.history.extend(run.ledger().iter().cloned());
        }
        extraction
    }
}

/// The result of a row: a value that satisfies the contract, or the reasons why there is none.
///
/// ```
/// use formwork_batch::RowEnd;
/// use formwork_core::{Error, ErrorKind};
///
/// let end = RowEnd::new(Vec::new(), Err(Error::new(ErrorKind::Refused, "the model refused")));
/// assert!(!end.is_accepted());
/// assert_eq!(end.reason().as_deref(), Some("refused"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RowEnd {
    calls: Vec<CallRecord>,
    /// Without the calls of the last run, which are among those of the row.
    result: Result<Accepted, RunError>,
}

/// An accepted value with the support of its leaves, which is found where the text is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Accepted {
    #[serde(flatten)]
    pub(crate) outcome: Outcome<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    evidence: Option<Summary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    confidence: Option<Confidence>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    factors: BTreeMap<String, f64>,
}

impl From<Outcome<Value>> for Accepted {
    fn from(outcome: Outcome<Value>) -> Self {
        let has_text = !outcome.source().is_empty();
        let evidence = has_text.then(|| outcome.evidence_summary());
        let all = outcome.confidence();
        let factors =
            all.iter().filter(|it| it.factor < 1.0).map(|it| (it.path.to_string(), it.factor)).collect();
        let least = all.into_iter().min_by(|one, other| one.score.total_cmp(&other.score));
        Self { outcome, evidence, confidence: least.filter(|_| has_text), factors }
    }
}

impl RowEnd {
    /// Creates the end of a row from the calls of its earlier runs and the result of the last one.
    pub fn new(history: Vec<CallRecord>, result: Result<Outcome<Value>, Error>) -> Self {
        Self::of(history, result.map(Accepted::from).map_err(RunError::from))
    }

    /// Creates the end of a row whose run may have ended on another machine.
    pub(crate) fn of(history: Vec<CallRecord>, mut result: Result<Accepted, RunError>) -> Self {
        let mut calls = history;
        calls.append(match &mut result {
            Ok(accepted) => &mut accepted.outcome.calls,
            Err(error) => &mut error.calls,
        });
        Self { calls, result }
    }

    /// Returns whether the row has a value.
    pub const fn is_accepted(&self) -> bool {
        self.result.is_ok()
    }

    /// Returns every call of the row, in order.
    pub fn calls(&self) -> &[CallRecord] {
        &self.calls
    }

    /// Returns the reason under which a rejected row is counted: its class, and the first violated rule of the last answer. `None` if
    /// the row has a value.
    pub fn reason(&self) -> Option<String> {
        let rejected = self.result.as_ref().err()?;
        let class = serde_json::to_value(rejected.kind).ok()?;
        let class = class.as_str()?.to_owned();
        let last = self.calls.iter().rev().find_map(|call| call.verdict.failure());
        let rule = last.and_then(|failure| failure.violations().first()).map(|violation| &violation.rule);
        Some(match rule.filter(|_| rejected.kind == ErrorKind::Rejected) {
            Some(rule) => format!("{class} ({rule})"),
            None => class,
        })
    }
}

/// The error of a run, as it travels between machines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunError {
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
    #[serde(alias = "attempts")]
    pub(crate) calls: Vec<CallRecord>,
    /// Boxed, because an error of this type is returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) best: Option<Box<Value>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_stated: Vec<JsonPath>,
}

impl From<Error> for RunError {
    fn from(error: Error) -> Self {
        let message = match error.kind() {
            ErrorKind::Config => error.message().to_owned(),
            _ => error.to_string(),
        };
        let best = error.best().map(|best| Box::new(best.value.clone()));
        let (calls, not_stated) = (error.calls().to_vec(), error.not_stated().to_vec());
        Self { kind: error.kind(), message, calls, best, not_stated }
    }
}

/// A line of `part-*.jsonl` ([`ResultLine`]) or of `rejected-*.jsonl` ([`RejectedLine`]) with the id of its row.
///
/// Rows with the same input share the result (`--dedupe`).
#[derive(Debug, Serialize, JsonSchema)]
pub struct Identified<T> {
    /// The id of the row, as it was given; null if it cannot be read.
    pub id: Value,
    /// The other columns of the row; absent if there are none, and in `part-*.jsonl` and `rejected-*.jsonl`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<Map<String, Value>>,
    /// The result of the row.
    #[serde(flatten)]
    pub result: T,
}

/// The value of one row: a line of `part-*.jsonl` without its id ([`Identified`]).
#[derive(Debug, Serialize, JsonSchema)]
pub struct ResultLine<'a> {
    /// The value; it satisfies the contract.
    pub value: &'a Value,
    /// The origin of the value.
    pub origin: &'a Origin,
    /// Warnings for readers of the value: whatever was cut, repaired, dropped, chosen, rounded, coerced or restrained.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub warnings: &'a [Warning],
    /// The paths of the members that are null, because the text does not state them.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub not_stated: &'a [JsonPath],
    /// The history of the value's leaves: how many the model wrote freely, and which it did not.
    pub trust: &'a Trust,
    /// The number of the value's leaves by their support in the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<&'a Summary>,
    /// The confidence in the most doubtful leaf.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<&'a Confidence>,
    /// The factors of the leaves whose history or tokens lower their confidence, by path.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub factors: &'a BTreeMap<String, f64>,
    /// The number of calls that the row took.
    pub calls: usize,
    /// The tokens of all calls together.
    pub usage: Usage,
    /// The cost of all calls together; `micro_usd` is null if a price is not known.
    pub cost: Cost,
}

/// A row without a value, with every call and the violations of its answer: a line of `rejected-*.jsonl` without its id
/// ([`Identified`]).
#[derive(Debug, Serialize, JsonSchema)]
pub struct RejectedLine<'a> {
    /// The reason.
    pub error: RejectedError<'a>,
    /// Every call, in order; empty for an invalid row.
    pub calls: &'a [CallRecord],
    /// The tokens of all calls together.
    pub usage: Usage,
    /// The cost of all calls together; `micro_usd` is null if a price is not known.
    pub cost: Cost,
}

/// The reason why a row has no value.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RejectedError<'a> {
    /// The class.
    pub class: ErrorKind,
    /// The reason in words.
    pub message: &'a str,
    /// The answer that came nearest to the contract.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best: Option<&'a Value>,
    /// The paths of the required members that the text does not state.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub not_stated: &'a [JsonPath],
}

/// Returns the tokens and the cost of calls.
pub(crate) fn total(calls: &[CallRecord]) -> (Usage, Cost) {
    let zero = Cost { tokens: 0, micro_usd: Some(0) };
    calls
        .iter()
        .fold((Usage::default(), zero), |(usage, cost), call| (usage.plus(call.usage), cost.plus(call.cost)))
}

impl RowEnd {
    /// Returns the line of the result without its id: a JSON object.
    pub(crate) fn line(&self) -> String {
        let (usage, cost) = total(&self.calls);
        let line = match &self.result {
            Ok(Accepted { outcome, evidence, confidence, factors }) => {
                let Outcome { value, origin, warnings, not_stated, trust, .. } = outcome;
                serde_json::to_string(&ResultLine {
                    evidence: evidence.as_ref(),
                    confidence: confidence.as_ref(),
                    factors,
                    value,
                    origin,
                    warnings,
                    not_stated,
                    trust,
                    calls: self.calls.len(),
                    usage,
                    cost,
                })
            }
            Err(RunError { kind, message, best, not_stated, .. }) => serde_json::to_string(&RejectedLine {
                error: RejectedError { class: *kind, message, best: best.as_deref(), not_stated },
                calls: &self.calls,
                usage,
                cost,
            }),
        };
        // Serializing these types cannot fail: none of their maps has keys that are not strings.
        line.unwrap_or_default()
    }
}
