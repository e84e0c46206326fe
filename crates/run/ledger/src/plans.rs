//! The query plans of the pages: `EXPLAIN QUERY PLAN` of every statement that they read.

use formwork_core::{ErrorKind, Time};

use crate::hourly::REASONS;
use crate::overview::{OVERVIEW, VERSIONS};
use crate::query::{BODY, CALLS, END_OF_SCAN, VIOLATIONS};
use crate::store::Store;
use crate::{Feedback, KeyId, RunOutcome, RunQuery};

/// Returns the steps of a statement.
fn plan(store: &Store, sql: &str) -> Vec<String> {
    let steps = store.read(|connection| {
        let mut rows = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
        let (mut rows, mut steps) = (rows.raw_query(), Vec::new());
        while let Some(row) = rows.next()? {
            steps.push(row.get::<_, String>("detail")?);
        }
        Ok(steps)
    });
    steps.unwrap()
}

#[test]
fn a_page_reads_runs_by_their_ids_and_sorts_nothing() {
    let store = Store::in_memory().unwrap();
    let text = |text: &str| Some(text.to_owned());
    let all = RunQuery::default;
    let queries = [
        all(),
        RunQuery { since: Some(Time(1)), until: Some(Time(2)), ..all() },
        RunQuery { key: Some(KeyId(1)), ..all() },
        RunQuery { outcome: Some(RunOutcome::Failed(ErrorKind::Rejected)), ..all() },
        RunQuery { contract: text("c"), model: text("m"), target: text("t"), source: text("s"), ..all() },
        RunQuery { user: text("u"), tag: text("t"), text: text("x"), ..all() },
        RunQuery { class: text("type"), ..all() },
        RunQuery { class: text("type"), path: text("$.a[*]"), ..all() },
        RunQuery { called: text("m"), ..all() },
        RunQuery { class: text("type"), path: text("$.a[*]"), called: text("m"), ..all() },
        RunQuery { feedback: Some(Feedback::Bad), retried: true, unsure: true, ..all() },
    ];
    for query in queries {
        // The page bounds the scan by an id.
        let (sql, _) = query.statement(Some(1), 50);
        let steps = plan(&store, &sql);
        let is_bounded = steps.iter().any(|step| step.starts_with("SEARCH run USING"));
        let has_sorted = steps.iter().any(|step| step.contains("TEMP B-TREE"));
        assert!(is_bounded && !has_sorted, "{query:?}: {steps:#?}");
        let scans: Vec<_> = steps.iter().filter(|step| step.starts_with("SCAN")).collect();
        assert!(scans.iter().all(|step| step.contains("json_each")), "{query:?}: {steps:#?}");
    }
}

#[test]
fn every_other_statement_of_the_pages_searches_a_key() {
    let store = Store::in_memory().unwrap();
    for (sql, expected) in [
        (OVERVIEW, "SEARCH daily_run USING PRIMARY KEY (day>?)"),
        (REASONS, "SEARCH daily_reason USING PRIMARY KEY (day>?)"),
        (END_OF_SCAN, "SEARCH run USING INTEGER PRIMARY KEY (rowid<?)"),
        // Of the last 20,000 runs.
        (VERSIONS, "SCAN run"),
        (BODY, "SEARCH body USING INTEGER PRIMARY KEY (rowid=?)"),
        (CALLS, "SEARCH attempt USING PRIMARY KEY (run=?)"),
        (VIOLATIONS, "SEARCH violation USING PRIMARY KEY (run=?)"),
    ] {
        let steps = plan(&store, sql);
        assert!(steps.iter().any(|step| step == expected), "{sql}: {steps:#?}");
    }
}
