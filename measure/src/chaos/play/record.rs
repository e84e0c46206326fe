//! The provider's own record of calls, and the calls that were in flight at the kills.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::answers::Answer;

/// A call that the provider received.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    /// The last letter of the model's name.
    pub(crate) model: char,
    /// Whether the response had correct values.
    pub(crate) is_right: bool,
    /// The digest of the answer's text.
    pub(crate) text: u64,
    pub(crate) began: Instant,
    /// The time at which the response was sent, or the client closed the connection.
    ended: Option<Instant>,
    /// Whether the client closed the connection before it had the response.
    is_abandoned: bool,
}

/// An interruption of calls.
#[derive(Debug, Clone, Copy)]
struct Kill {
    name: &'static str,
    from: Instant,
    /// The time from which on no process makes a call without knowing of the interruption.
    until: Instant,
    /// The maximum number of calls that it can interrupt.
    max: usize,
}

/// The calls of each row, in the order of arrival, and the kills.
#[derive(Debug, Clone, Default)]
pub(crate) struct Record {
    rows: HashMap<u64, Vec<Call>>,
    kills: Vec<Kill>,
    /// The number of calls of each row that a stopped process may have counted before it sent them.
    stopped: HashMap<u64, usize>,
}

/// The calls that were in flight at the kills.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct InFlight {
    /// The calls without a response.
    pub(crate) open: usize,
    /// The calls without a response, or with one that the client had for less than [`STORED`].
    pub(crate) all: usize,
    /// For each row, the ages of the responses of its calls in flight at the kills, the youngest first. A call without a response has age 0.
    pub(crate) ages: HashMap<u64, Vec<Duration>>,
}

/// The time within which a client has to store a response, also on a busy machine.
pub(crate) const STORED: Duration = Duration::from_millis(250);

/// The time after an interruption within which the provider reads the requests of clients that are gone, also on a busy machine.
const READ: Duration = Duration::from_secs(2);

impl Record {
    /// Notes a call with this body, and returns its number among the calls of its row, from 0.
    pub(crate) fn begin(&mut self, row: u64, request: &Value) -> usize {
        let model = request["model"].as_str().and_then(|name| name.chars().last()).unwrap_or_default();
        let calls = self.rows.entry(row).or_default();
        calls.push(Call {
            model,
            is_right: false,
            text: 0,
            began: Instant::now(),
            ended: None,
            is_abandoned: false,
        });
        calls.len() - 1
    }

    /// Notes the answer to a call.
    pub(crate) fn answered(&mut self, row: u64, nth: usize, answer: &Answer) {
        if let Some(call) = self.rows.get_mut(&row).and_then(|calls| calls.get_mut(nth)) {
            (call.text, call.is_right) = (digest(&answer.text), answer.is_right);
        }
    }

    /// Notes that the response to a call was sent, or that the client is gone.
    pub(crate) fn end(&mut self, row: u64, nth: usize) {
        if let Some(call) = self.rows.get_mut(&row).and_then(|calls| calls.get_mut(nth)) {
            call.ended = Some(Instant::now());
        }
    }

    /// Notes that the client closed the connection before it had the response to a call.
    pub(crate) fn abandoned(&mut self, row: u64, nth: usize) {
        if let Some(call) = self.rows.get_mut(&row).and_then(|calls| calls.get_mut(nth)) {
            call.is_abandoned = true;
        }
    }

    /// Notes an interruption of at most `max` calls, which began until this time.
    pub(crate) fn killed(&mut self, name: &'static str, from: Instant, until: Instant, max: usize) {
        self.kills.push(Kill { name, from, until, max });
    }

    /// Returns the calls of a row and the interruptions in their order, in milliseconds after the first interruption.
    pub(crate) fn history(&self, row: u64) -> String {
        let Some(zero) = self.kills.first().map(|kill| kill.from) else {
            return format!("row {row}: {} calls, no interruption", self.of(row).len());
        };
        let at = |time: Instant| {
            let before = zero.saturating_duration_since(time).as_secs_f64();
            (time.saturating_duration_since(zero).as_secs_f64() - before) * 1e3
        };
        let mut lines: Vec<(Instant, String)> = Vec::new();
        for kill in &self.kills {
            lines.push((kill.from, format!("{:.1} to {:.1}: {}", at(kill.from), at(kill.until), kill.name)));
        }
        for (nth, call) in self.of(row).iter().enumerate() {
            let ended = call.ended.map_or_else(|| "no end".to_owned(), |ended| format!("{:.1}", at(ended)));
            let end = if call.is_abandoned { "the client left" } else { "answered" };
            lines.push((call.began, format!("{:.1} to {ended}: call {nth}, {end}", at(call.began))));
        }
        lines.sort_by_key(|(time, _)| *time);
        lines.into_iter().fold(format!("row {row}"), |text, (_, line)| format!("{text}\n  {line}"))
    }

    /// Notes the calls without a response that lasted as long as their process was stopped. The time limit of such a call can pass before its
    /// request is sent.
    pub(crate) fn stopped(&mut self, calls: HashMap<u64, usize>) {
        self.stopped = calls;
    }

    /// Returns the number of calls of a row that may be in its results although the provider did not receive them.
    pub(crate) fn unsent(&self, row: u64) -> usize {
        self.stopped.get(&row).copied().unwrap_or_default()
    }

    /// Returns the record of these rows alone.
    pub(crate) fn within(&self, rows: &Range<u64>) -> Self {
        let calls = self.rows.iter().filter(|(row, _)| rows.contains(row));
        Self { rows: calls.map(|(row, calls)| (*row, calls.clone())).collect(), ..self.clone() }
    }

    /// Returns the calls of a row.
    pub(crate) fn of(&self, row: u64) -> &[Call] {
        self.rows.get(&row).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the number of all calls.
    pub(crate) fn calls(&self) -> usize {
        self.rows.values().map(Vec::len).sum()
    }

    /// Returns the rows with a call.
    pub(crate) fn rows(&self) -> impl Iterator<Item = u64> {
        self.rows.keys().copied()
    }

    /// Returns the maximum number of calls that began within any second.
    pub(crate) fn most_per_second(&self) -> usize {
        let mut began: Vec<Instant> = self.rows.values().flatten().map(|call| call.began).collect();
        began.sort_unstable();
        let mut first = 0;
        let within = |(last, time): (usize, &Instant)| {
            while time.duration_since(began[first]) >= Duration::from_secs(1) {
                first += 1;
            }
            last + 1 - first
        };
        began.iter().enumerate().map(within).max().unwrap_or_default()
    }

    /// Returns the number of calls that could be open at all kills together.
    pub(crate) fn most_in_flight(&self) -> usize {
        self.kills.iter().map(|kill| kill.max).sum()
    }

    /// Returns the calls in flight at the kills: of each row the last call before each kill, unless its response is older than
    /// [`STORED`]. A batch has one call of a row at a time, and stores it before the next one. A call that was read after a kill
    /// is in flight at it if its client closed the connection before it had the response.
    pub(crate) fn in_flight(&self) -> InFlight {
        let mut found = InFlight::default();
        let mut at_kills = vec![0; self.kills.len()];
        for (row, calls) in &self.rows {
            let mut known = vec![false; calls.len()];
            for (kill, at_kill) in self.kills.iter().zip(&mut at_kills) {
                let before = calls.partition_point(|call| call.began <= kill.from);
                let until = calls.partition_point(|call| call.began <= kill.until + READ);
                for nth in before.saturating_sub(1)..until {
                    if calls[nth].began > kill.until && !calls[nth].is_abandoned {
                        continue;
                    }
                    let age = calls[nth]
                        .ended
                        .map_or(Duration::ZERO, |ended| kill.from.saturating_duration_since(ended));
                    if age <= STORED && !std::mem::replace(&mut known[nth], true) {
                        *at_kill += 1;
                        found.open += usize::from(age.is_zero());
                        found.ages.entry(*row).or_default().push(age);
                    }
                }
            }
        }
        found.all = self.kills.iter().zip(at_kills).map(|(kill, calls)| calls.min(kill.max)).sum();
        found.ages.values_mut().for_each(|ages| ages.sort_unstable());
        found
    }
}

/// Returns a number that differs between different texts, in all likelihood.
pub(crate) fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
