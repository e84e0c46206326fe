//! Reading runs: pages, one run, JSON Lines; and what users think of them.

use std::borrow::Cow;
use std::io;

use formwork_core::evidence::Summary;
use formwork_core::{History, JsonPath, Time, Trust, Usage, Warning};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Row, params, params_from_iter};
use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};

use crate::id::RecordId;
use crate::insert::{amount, count, number};
use crate::record::{RunOutcome, StoredCall, ViolationRecord};
use crate::{Error, KeyId, Ledger};

/// The maximum number of runs on a page.
pub const MAX_PAGE: usize = 1000;

/// For how long the clocks of a caller and of this process may differ, in milliseconds.
pub(crate) const SKEW: u64 = 24 * 3_600_000;

/// A user's verdict on a run.
///
/// ```
/// use formwork_core::Time;
/// use formwork_ledger::{Feedback, Ledger, RunQuery, RunRecord, Settings};
///
/// let ledger = Ledger::in_memory(Settings::default())?;
/// let run = RunRecord::new("extract", Time(1_795_000_000_000));
/// let id = run.id;
/// ledger.record(run);
/// ledger.feedback(id, Feedback::Good)?;
/// let query = RunQuery { feedback: Some(Feedback::Good), ..RunQuery::default() };
/// assert_eq!(ledger.runs(&query)?.runs[0].feedback.as_deref(), Some(Feedback::Good.name()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Feedback {
    /// The answer was good.
    Good,
    /// The answer was bad.
    Bad,
}

impl Feedback {
    /// Returns the name in the file and in JSON: `good` or `bad`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
        }
    }
}

/// A filter for runs: a run matches if it satisfies every field that is set (default: all runs, 50 on a page).
///
/// ```
/// use formwork_core::ErrorKind;
/// use formwork_ledger::{Ledger, RunOutcome, RunQuery, Settings};
///
/// let ledger = Ledger::in_memory(Settings::default())?;
/// let rejected = RunQuery {
///     outcome: Some(RunOutcome::Failed(ErrorKind::Rejected)),
///     class: Some("type".to_owned()),
///     path: Some("$.items[*].price".to_owned()),
///     ..RunQuery::default()
/// };
/// assert!(ledger.runs(&rejected)?.runs.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunQuery {
    /// Runs that began at this time or later.
    pub since: Option<Time>,
    /// Runs that began before this time.
    pub until: Option<Time>,
    /// Runs that are older than this one: [`Page::next`] of the page before.
    pub before: Option<RecordId>,
    /// The number of runs per page, at most [`MAX_PAGE`] (default: 0, which is 50).
    pub limit: usize,
    /// The number of runs that are examined for a page (default: 0, which is no limit). A page that has fewer runs for it goes on with
    /// [`Page::next`], so that a rare filter costs no more time than a frequent one.
    pub scan: usize,
    /// Runs of this key, or with [`KeyId::NONE`] those without one.
    pub key: Option<KeyId>,
    /// Runs with this outcome.
    pub outcome: Option<RunOutcome>,
    /// Runs with a contract of this name or digest; those without a contract for an empty text.
    pub contract: Option<String>,
    /// Runs with a contract of this digest.
    pub digest: Option<String>,
    /// Runs whose last call went to this model; those without a call for an empty text.
    pub model: Option<String>,
    /// Runs whose last call went to this target.
    pub target: Option<String>,
    /// Runs from this command or endpoint.
    pub source: Option<String>,
    /// Runs of this user.
    pub user: Option<String>,
    /// Runs with this tag.
    pub tag: Option<String>,
    /// Runs with a violation or a failed call of this class.
    pub class: Option<String>,
    /// Runs with a violation at this path; `$.items[*].price` is any index.
    pub path: Option<String>,
    /// Runs with a call of this model; with `class` or `path`, the call that they are about.
    pub called: Option<String>,
    /// Runs with this text, in any case, in their message, user, tags, contract, model or target.
    pub text: Option<String>,
    /// Runs with this feedback.
    pub feedback: Option<Feedback>,
    /// Runs with more than one call.
    pub retried: bool,
    /// Runs whose value should be checked: those with [`StoredRun::doubts`].
    pub unsure: bool,
}

/// A stored run, without its calls.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StoredRun {
    /// The id.
    pub id: RecordId,
    /// The start time.
    pub started: Time,
    /// The end time.
    pub ended: Time,
    /// The outcome; see [`RunOutcome::name`].
    pub outcome: String,
    /// The reason for which there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The command or endpoint.
    pub source: String,
    /// The key that the client presented.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyId>,
    /// The name of that key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_name: Option<String>,
    /// The user, as the client named them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The name of the contract.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract: Option<String>,
    /// The digest of the contract.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The target of the last call.
    pub target: String,
    /// Its model.
    pub model: String,
    /// The tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The number of calls.
    pub calls: u32,
    /// The tokens of all calls.
    pub usage: Usage,
    /// The cost of all calls in millionths of a US dollar; `None` where a price is not known.
    pub micro_usd: Option<u64>,
    /// Whether the answer came from the cache.
    pub cached: bool,
    /// The user's verdict: `good` or `bad`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// The warnings of the outcome; see [`formwork_core::Outcome::warnings`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// The paths of the members that are `null`, because the text does not state them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_stated: Vec<JsonPath>,
    /// The history of the value's leaves; `None` without a value, and for values that came from the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
    /// The number of the value's leaves by their support in the text; `None` without a value and for values that came from the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Summary>,
}

impl StoredRun {
    /// Returns the reasons to check the value of the run, such as `1 not found`: its warnings, and its leaves that the text does not
    /// state, that were not found there, that were converted or finished, or that are the fallback's. Most runs have none.
    pub fn doubts(&self) -> Vec<String> {
        let history = |kind| self.trust.as_ref()?.other.get(&kind).map(|leaves| leaves.count);
        let counts = [
            (self.warnings.len() as u64, "warnings"),
            (self.not_stated.len() as u64, "not stated"),
            (self.evidence.map_or(0, |evidence| evidence.not_found as u64), "not found"),
            (history(History::Coerced).unwrap_or(0), "converted"),
            (history(History::Finished).unwrap_or(0), "finished"),
            (history(History::Fallback).unwrap_or(0), "of the fallback"),
        ];
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect()
    }
}

/// A stored run with its calls, violations and bodies.
///
/// ```
/// use formwork_core::Time;
/// use formwork_ledger::{StoredCall, Ledger, RunRecord, Settings};
///
/// let ledger = Ledger::in_memory(Settings::default())?;
/// let now = Time(1_795_000_000_000);
/// let mut run = RunRecord::new("extract", now);
/// run.calls.push(StoredCall::new("primary", "gpt-5.4-mini", now, now));
/// let id = run.id;
/// ledger.record(run);
/// ledger.flush_blocking()?;
/// let detail = ledger.run(id)?.unwrap();
/// assert_eq!(detail.calls[0].model, "gpt-5.4-mini");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunDetail {
    /// The run. In JSON the calls stand in place of their number.
    #[serde(flatten, serialize_with = "without_calls")]
    pub run: StoredRun,
    /// The request's text, if it was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The calls, in order, with their answers if these were kept.
    pub calls: Vec<StoredCall>,
}

/// Writes a run without the number of its calls, whose name in JSON is that of the calls.
fn without_calls<S: Serializer>(run: &StoredRun, serializer: S) -> Result<S::Ok, S::Error> {
    let mut run = serde_json::to_value(run).map_err(S::Error::custom)?;
    if let Some(members) = run.as_object_mut() {
        members.retain(|name, _| name != "calls");
    }
    run.serialize(serializer)
}

/// A page of runs, the newest first.
///
/// ```
/// use formwork_core::Time;
/// use formwork_ledger::{Ledger, RunQuery, RunRecord, Settings};
///
/// let ledger = Ledger::in_memory(Settings::default())?;
/// for _ in 0..3 {
///     ledger.record(RunRecord::new("extract", Time(1_795_000_000_000)));
/// }
/// ledger.flush_blocking()?;
/// let first = ledger.runs(&RunQuery { limit: 2, ..RunQuery::default() })?;
/// let second = ledger.runs(&RunQuery { limit: 2, before: first.next, ..RunQuery::default() })?;
/// assert_eq!((first.runs.len(), second.runs.len(), second.next), (2, 1, None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Page {
    /// The runs.
    pub runs: Vec<StoredRun>,
    /// The value of [`RunQuery::before`] for the next page; `None` on the last page.
    pub next: Option<RecordId>,
}

const COLUMNS: &str = "run.id, run.started, run.ended, run.outcome, run.message, run.source, run.key, key.name, run.user,
    run.contract, run.digest, run.target, run.model, run.tags, run.attempts, run.input_tokens, run.output_tokens,
    run.cached_tokens, run.reasoning_tokens, run.estimated, run.micro_usd, run.cached, run.feedback, run.warnings,
    run.not_stated, run.trust, run.evidence
    FROM run LEFT JOIN key ON key.id = run.key";

pub(crate) const END_OF_SCAN: &str = "SELECT id FROM run WHERE id < ?1 ORDER BY id DESC LIMIT 2 OFFSET ?2";

/// Reads five columns: tokens, and whether they were estimated.
fn usage(row: &Row<'_>, from: usize) -> rusqlite::Result<Usage> {
    let mut usage = Usage::new(count(row, from)?, count(row, from + 1)?);
    usage.cached_tokens = count(row, from + 2)?;
    usage.reasoning_tokens = count(row, from + 3)?;
    usage.estimated = row.get(from + 4)?;
    Ok(usage)
}

fn object<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<T>> {
    Ok(row.get::<_, Option<String>>(column)?.and_then(|text| serde_json::from_str(&text).ok()))
}

fn list<T: serde::de::DeserializeOwned>(text: Option<String>) -> Vec<T> {
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

fn stored(row: &Row<'_>) -> rusqlite::Result<StoredRun> {
    Ok(StoredRun {
        id: RecordId(row.get(0)?),
        started: Time(count(row, 1)?),
        ended: Time(count(row, 2)?),
        outcome: row.get(3)?,
        message: row.get(4)?,
        source: row.get(5)?,
        key: row.get::<_, Option<i64>>(6)?.map(KeyId),
        key_name: row.get(7)?,
        user: row.get(8)?,
        contract: row.get(9)?,
        digest: row.get(10)?,
        target: row.get(11)?,
        model: row.get(12)?,
        tags: list(row.get(13)?),
        calls: row.get(14)?,
        usage: usage(row, 15)?,
        micro_usd: amount(row, 20)?,
        cached: row.get(21)?,
        feedback: row.get(22)?,
        warnings: list(row.get(23)?),
        not_stated: list(row.get(24)?),
        trust: object(row, 25)?,
        evidence: object(row, 26)?,
    })
}

pub(crate) const BODY: &str = "SELECT request, answers FROM body WHERE run = ?1";
pub(crate) const CALLS: &str = "SELECT number, target, model, mode, class, message, started, ended, input_tokens, output_tokens,
    cached_tokens, reasoning_tokens, estimated, micro_usd, patched, finish, answered FROM attempt WHERE run = ?1 ORDER BY call";
pub(crate) const VIOLATIONS: &str =
    "SELECT call, class, path, message FROM violation WHERE run = ?1 ORDER BY call, nth";

fn detail(connection: &Connection, run: StoredRun) -> rusqlite::Result<RunDetail> {
    let id = run.id.0;
    let body = connection
        .prepare_cached(BODY)?
        .query_row([id], |row| Ok((row.get::<_, Option<String>>(0)?, row.get::<_, String>(1)?)))
        .optional()?;
    let (request, answers) = body.unwrap_or_default();
    let mut answers: Vec<Option<String>> = serde_json::from_str(&answers).unwrap_or_default();
    let mut rows = connection.prepare_cached(CALLS)?;
    let calls = rows.query_map([id], |row| {
        Ok(StoredCall {
            number: row.get(0)?,
            target: row.get(1)?,
            model: row.get(2)?,
            mode: Cow::Owned(row.get(3)?),
            class: Cow::Owned(row.get(4)?),
            message: row.get(5)?,
            started: Time(count(row, 6)?),
            ended: Time(count(row, 7)?),
            usage: usage(row, 8)?,
            micro_usd: amount(row, 13)?,
            patched: list(row.get(14)?),
            violations: Vec::new(),
            left_out: 0,
            finish: row.get(15)?,
            answered: row.get(16)?,
            answer: None,
        })
    })?;
    let mut calls: Vec<_> = calls.collect::<Result<_, _>>()?;
    for (call, answer) in calls.iter_mut().zip(answers.iter_mut()) {
        call.answer = answer.take();
    }
    let mut rows = connection.prepare_cached(VIOLATIONS)?;
    let mut rows = rows.query([id])?;
    while let Some(row) = rows.next()? {
        let number = usize::try_from(count(row, 0)?).unwrap_or_default();
        if let Some(call) = number.checked_sub(1).and_then(|index| calls.get_mut(index)) {
            call.violations.push(ViolationRecord {
                class: row.get(1)?,
                path: row.get(2)?,
                message: row.get(3)?,
            });
        }
    }
    Ok(RunDetail { run, request, calls })
}

/// Runs with [`StoredRun::doubts`].
const UNSURE: &str = "(run.warnings IS NOT NULL OR run.not_stated IS NOT NULL OR run.evidence ->> '$.not_found' > 0
    OR EXISTS (SELECT 1 FROM json_each(run.trust, '$.other') WHERE json_each.key IN ('coerced', 'finished', 'fallback')))";

/// Conditions with the values that they are about.
#[derive(Default)]
struct Conditions {
    sql: String,
    values: Vec<Value>,
}

impl Conditions {
    fn add(&mut self, sql: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.values.push(value.into());
            self.also(&sql.replace('@', &format!("?{}", self.values.len())));
        }
    }

    /// Returns a further condition on a column; empty without a value.
    fn and(&mut self, column: &str, value: Option<String>) -> String {
        let Some(value) = value else { return String::new() };
        self.values.push(value.into());
        format!(" AND {column} = ?{}", self.values.len())
    }

    fn also(&mut self, sql: &str) {
        self.sql.push_str(if self.sql.is_empty() { " WHERE " } else { " AND " });
        self.sql.push_str(sql);
    }
}

impl RunQuery {
    /// Returns the conditions of the query on runs from the id `end` on.
    fn conditions(&self, end: Option<i64>) -> Conditions {
        let mut all = Conditions::default();
        all.add("run.id < @", self.before.map(|id| id.0));
        all.add("run.started >= @", self.since.map(|time| number(time.0)));
        // Ids grow with time, so older ones need not be examined. Of two bounds SQLite would end its scan at one only.
        let since = self.since.map(|time| RecordId::at(Time(time.0.saturating_sub(SKEW))).0);
        all.add("run.id >= @", since.max(end));
        all.add("run.started < @", self.until.map(|time| number(time.0)));
        all.add("coalesce(run.key, 0) = @", self.key.map(|key| key.0));
        all.add("run.outcome = @", self.outcome.map(|outcome| outcome.name().to_owned()));
        all.add("@ IN (coalesce(run.contract, run.digest, ''), run.digest)", self.contract.clone());
        all.add("run.digest = @", self.digest.clone());
        all.add("run.model = @", self.model.clone());
        all.add("run.target = @", self.target.clone());
        all.add("run.source = @", self.source.clone());
        all.add("run.user = @", self.user.clone());
        all.add("EXISTS (SELECT 1 FROM json_each(run.tags) WHERE value = @)", self.tag.clone());
        all.add("run.feedback = @", self.feedback.map(|feedback| feedback.name().to_owned()));
        all.add(
            "instr(lower(concat_ws(char(10), run.message, run.user, run.tags, run.contract, run.model, run.target)), lower(@)) > 0",
            self.text.clone(),
        );
        if self.unsure {
            all.also(UNSURE);
        }
        if self.retried {
            all.also("run.attempts > 1");
        }
        // One violation of one call must satisfy all conditions.
        let class = all.and("class", self.class.clone());
        let called = all.and("model", self.called.clone());
        let of_violation = if called.is_empty() {
            class.clone()
        } else {
            format!(
                "{class} AND EXISTS (SELECT 1 FROM attempt WHERE attempt.run = run.id AND attempt.call = violation.call{called})"
            )
        };
        let violation = "EXISTS (SELECT 1 FROM violation WHERE violation.run = run.id";
        let call = format!("EXISTS (SELECT 1 FROM attempt WHERE attempt.run = run.id{class}{called})");
        match &self.path {
            Some(path) => {
                let matches = if path.contains("[*]") { "general(path)" } else { "path" };
                all.add(&format!("{violation} AND {matches} = @{of_violation})"), Some(path.clone()));
            }
            None if self.class.is_some() => all.also(&format!("({violation}{of_violation}) OR {call})")),
            None if self.called.is_some() => all.also(&call),
            None => {}
        }
        all
    }
}

impl RunQuery {
    /// Returns the statement for a page, and its values.
    pub(crate) fn statement(&self, end: Option<i64>, limit: usize) -> (String, Vec<Value>) {
        let Conditions { sql, mut values } = self.conditions(end);
        // One row more than the page shows whether there is a next page.
        values.push(number(limit as u64 + 1).into());
        (format!("SELECT {COLUMNS}{sql} ORDER BY run.id DESC LIMIT ?{}", values.len()), values)
    }
}

/// Reading, feedback and retention.
impl Ledger {
    /// Returns a page of runs, newest first. Runs that wait in memory are not among them; see [`Ledger::flush`].
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn runs(&self, query: &RunQuery) -> Result<Page, Error> {
        let limit = if query.limit == 0 { 50 } else { query.limit.min(MAX_PAGE) };
        let end = self.end_of_scan(query)?;
        let (sql, values) = query.statement(end, limit);
        let mut runs: Vec<_> = self.core().store.read(|connection| {
            connection.prepare_cached(&sql)?.query_map(params_from_iter(values), stored)?.collect()
        })?;
        let is_last = runs.len() <= limit;
        runs.truncate(limit);
        let next = if is_last { end.map(RecordId) } else { runs.last().map(|run| run.id) };
        Ok(Page { runs, next })
    }

    /// Returns the last id that a query examines, if there are older ones.
    fn end_of_scan(&self, query: &RunQuery) -> Result<Option<i64>, Error> {
        if query.scan == 0 {
            return Ok(None);
        }
        let before = query.before.map_or(i64::MAX, |id| id.0);
        let ids: Vec<i64> = self.core().store.read(|connection| {
            let values = params![before, number(query.scan as u64 - 1)];
            connection.prepare_cached(END_OF_SCAN)?.query_map(values, |row| row.get(0))?.collect()
        })?;
        Ok(ids.first().copied().filter(|_| ids.len() == 2))
    }

    /// Returns one run with its calls; `None` if the ledger has no such run, or it waits in memory still.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn run(&self, id: RecordId) -> Result<Option<RunDetail>, Error> {
        self.core().store.read(|connection| {
            let run = connection
                .prepare_cached(&format!("SELECT {COLUMNS} WHERE run.id = ?1"))?
                .query_row([id.0], stored)
                .optional()?;
            run.map(|run| detail(connection, run)).transpose()
        })
    }

    /// Writes runs as JSON Lines, newest first: one [`RunDetail`] each. Ignores [`RunQuery::limit`]. Returns the number of runs.
    ///
    /// # Errors
    /// The errors of the writer, and [`Error::Storage`] as an [`io::Error`].
    pub fn export(&self, query: &RunQuery, mut to: impl io::Write) -> io::Result<u64> {
        let mut query = RunQuery { limit: MAX_PAGE, ..query.clone() };
        let mut written = 0;
        loop {
            let page = self.runs(&query).map_err(io::Error::other)?;
            for run in page.runs {
                let run =
                    self.core().store.read(|connection| detail(connection, run)).map_err(io::Error::other)?;
                serde_json::to_writer(&mut to, &run)?;
                to.write_all(b"\n")?;
                written += 1;
            }
            if page.next.is_none() {
                to.flush()?;
                return Ok(written);
            }
            query.before = page.next;
        }
    }

    /// Stores a user's verdict on a run; a later verdict replaces an earlier one.
    ///
    /// # Errors
    /// [`Error::NoSuchRun`], [`Error::Storage`].
    pub fn feedback(&self, run: RecordId, feedback: Feedback) -> Result<(), Error> {
        // The run may still be in the writer's queue.
        self.flush_blocking()?;
        let noted = self.submit(move |connection| {
            connection.execute("UPDATE run SET feedback = ?2 WHERE id = ?1", params![run.0, feedback.name()])
        });
        if noted.wait()? == 0 { Err(Error::NoSuchRun(run)) } else { Ok(()) }
    }
}
