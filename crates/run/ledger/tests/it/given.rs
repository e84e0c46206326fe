//! Ledgers and runs for tests.

use std::collections::BTreeMap;
use std::time::Duration;

use formwork_core::{ErrorKind, Time, Usage};
use formwork_ledger::{Ledger, RunOutcome, RunRecord, Settings, StoredCall, ViolationRecord};
use proptest::prelude::*;
use rusqlite::Connection;
use tempfile::TempDir;

pub(crate) const NOW: Time = Time(1_795_000_000_000);

pub(crate) fn ledger() -> Ledger {
    Ledger::in_memory(Settings::default()).unwrap()
}

/// A ledger in a file, whose views a connection of its own reads.
pub(crate) fn in_file(settings: Settings) -> (TempDir, Ledger, Connection) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let ledger = Ledger::open(&path, settings).unwrap();
    let tool = Connection::open(&path).unwrap();
    (folder, ledger, tool)
}

/// Returns the view `hours`: the sums of each hour (milliseconds), contract, model and outcome.
pub(crate) fn hours(tool: &Connection) -> BTreeMap<(u64, String, String, String), [u64; 7]> {
    let sql = "SELECT unixepoch(hour) * 1000, contract, model, outcome,
        runs, attempts, input_tokens, output_tokens, CAST(round(usd * 1e6) AS INTEGER), unpriced, millis FROM hours";
    let mut query = tool.prepare(sql).unwrap();
    let rows = query.query_map([], |row| {
        let mut sums = [0; 7];
        for (nth, sum) in sums.iter_mut().enumerate() {
            *sum = row.get::<_, i64>(nth + 4)? as u64;
        }
        Ok(((row.get::<_, i64>(0)? as u64, row.get(1)?, row.get(2)?, row.get(3)?), sums))
    });
    rows.unwrap().map(Result::unwrap).collect()
}

/// Settings that record bodies and commit only on a flush.
pub(crate) fn with_bodies() -> Settings {
    Settings { bodies: true, group_delay: Duration::from_secs(3600), ..Settings::default() }
}

/// A run with a rejected and an accepted completion.
pub(crate) fn retried(started: Time) -> RunRecord {
    let mut run = RunRecord::new("extract", started);
    run.ended = Time(started.0 + 1200);
    let mut first = StoredCall::new("local", "smol", started, Time(started.0 + 700));
    first.class = "invalid".into();
    first.violations = vec![ViolationRecord {
        class: "type".to_owned(),
        path: "$.items[3].price".to_owned(),
        message: "Type mismatch at $.items[3].price: expected number".to_owned(),
    }];
    first.answer = Some(r#"{"items": [{"price": "5"}]}"#.to_owned());
    let mut second = StoredCall::new("local", "smol", Time(started.0 + 700), run.ended);
    second.number = 2;
    second.answer = Some(r#"{"items": [{"price": 5}]}"#.to_owned());
    run.usage = Usage::new(120, 40);
    run.micro_usd = Some(77);
    (run.target, run.model) = ("local".to_owned(), "smol".to_owned());
    run.calls = vec![first, second];
    run.request = Some(r#"{"messages": [{"role": "user", "content": "five"}]}"#.to_owned());
    run
}

fn word() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "a", "b", "smol", "gpt-5", "größe", "x y"]).prop_map(str::to_owned)
}

fn call() -> impl Strategy<Value = StoredCall> {
    let class =
        prop::sample::select(vec!["accepted", "invalid", "not_json", "timeout", "refused", "cancelled"]);
    let rule = prop::sample::select(vec!["type", "required", "minimum"]);
    let path = prop::sample::select(vec![
        "$",
        "$.a",
        "$.rows[0].x",
        "$.rows[17].x",
        "$['odd [3] name'][2]",
        "$[0][1]",
    ]);
    let violation = (rule, path).prop_map(|(rule, path)| ViolationRecord {
        class: rule.to_owned(),
        path: path.to_owned(),
        message: format!("{rule} at {path}"),
    });
    (class, word(), prop::collection::vec(violation, 0..4), any::<Option<u32>>()).prop_map(
        |(class, model, violations, micro_usd)| {
            let mut call = StoredCall::new("target", model, NOW, NOW);
            call.class = class.into();
            if class != "accepted" {
                call.violations = violations;
            }
            call.micro_usd = micro_usd.map(u64::from);
            call
        },
    )
}

/// Runs over three days, of all outcomes.
pub(crate) fn run() -> impl Strategy<Value = RunRecord> {
    let outcome = prop::sample::select(vec![
        RunOutcome::Ok,
        RunOutcome::Fallback,
        RunOutcome::Failed(ErrorKind::Rejected),
        RunOutcome::Failed(ErrorKind::Deadline),
    ]);
    let numbers = (0..72 * 3_600_000_u64, 0..60_000_u64, any::<u32>(), any::<u32>(), any::<Option<u32>>());
    let names =
        (word(), prop::option::of(word()), prop::option::of(word()), prop::collection::vec(word(), 0..3));
    (outcome, numbers, names, prop::collection::vec(call(), 0..5)).prop_map(
        |(outcome, (after, took, input, output, micro_usd), (model, contract, user, tags), calls)| {
            let started = Time(NOW.0 + after);
            let mut run = RunRecord::new("test", started);
            run.ended = Time(started.0 + took);
            (run.outcome, run.model, run.contract, run.user, run.tags) =
                (outcome, model, contract, user, tags);
            run.usage = Usage::new(u64::from(input), u64::from(output));
            run.micro_usd = micro_usd.map(u64::from);
            run.digest = run.user.clone();
            run.calls = calls;
            run
        },
    )
}
