//! The contracts: what their schemas and dialects say, which versions ran, and where answers fail.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use formwork::contract::ContractError;
use formwork_core::Time;
use formwork_dialect::Dialects;
use formwork_ledger::{Group, HourlyReason, Ledger, Version};
use formwork_schema::{compare, lint};
use serde_json::Value;

use super::{Cell, Refusal, Table, Visitor, html, internal, read, share, time};
use crate::access::now;
use crate::contracts::Folder;
use crate::problem::{Kind, Problem};
use crate::service::Shared;

/// The period of the figures, in days.
const DAYS: u64 = 30;

/// The maximum number of rows of a table.
const MAX_ROWS: usize = 100;

#[derive(Template)]
#[template(path = "page/contracts.html")]
struct Page {
    visitor: Visitor,
    title: String,
    note: &'static str,
    tables: Vec<Table>,
    schema: String,
}

fn start() -> Time {
    Time(now().0.saturating_sub(DAYS * 86_400_000))
}

/// Answers `GET /contracts`.
pub(super) async fn contracts(
    State(shared): State<Arc<Shared>>,
    visitor: Visitor,
) -> Result<Response, Refusal> {
    let groups = match shared.access.ledger() {
        Some(ledger) => read(ledger, |ledger| Ok(ledger.overview(start())?.contracts)).await?,
        None => Vec::new(),
    };
    let names = shared.folder.as_ref().map(Folder::names).unwrap_or_default();
    let state = |name: &String| {
        let folder = shared.folder.as_ref().filter(|_| names.contains(name));
        match folder.map(|folder| (folder.get(name, &shared.engine), folder.problem(name))) {
            None => "",
            Some((Ok(_), None)) => "yes",
            Some((Ok(_), Some(_))) => "cannot be used: the last version is in use",
            Some((Err(_), _)) => "cannot be used",
        }
    };
    let mut rows = Vec::new();
    for group in groups.iter().filter(|group| !group.name.is_empty()).take(MAX_ROWS) {
        rows.push(row(&group.name, group, state(&group.name)));
    }
    for name in names.iter().filter(|name| !groups.iter().any(|group| group.name == **name)) {
        rows.push(row(name, &Group::default(), state(name)));
    }
    let head = "contract | in the folder | runs | without an answer | valid at the first try | p95 ms";
    html(&Page {
        visitor,
        title: "Contracts".to_owned(),
        note: "The last 30 days.",
        tables: vec![Table { title: "All contracts", head, rows }],
        schema: String::new(),
    })
}

fn row(name: &str, group: &Group, state: &str) -> Vec<Cell> {
    let encoded: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
    vec![
        Cell { text: name.to_owned(), href: format!("/contracts/{}", encoded.replace('+', "%20")) },
        state.into(),
        group.runs.into(),
        group.failed.into(),
        share(group.first_try, group.called).into(),
        group.percentile(95).into(),
    ]
}

/// Answers `GET /contracts/{name}`.
pub(super) async fn contract(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    visitor: Visitor,
) -> Result<Response, Refusal> {
    let (mut tables, mut schema) = (Vec::new(), String::new());
    match shared.folder.as_ref().map(|folder| folder.get(&name, &shared.engine)) {
        Some(Ok(contract)) => {
            let problem = shared.folder.as_ref().and_then(|folder| folder.problem(&name));
            tables.extend(problem.map(|problem| Table {
                title: "The file cannot be used: its last version is in use",
                head: "reason",
                rows: vec![vec![problem.into()]],
            }));
            schema = serde_json::to_string_pretty(&contract.schema).unwrap_or_default();
            let before = shared.folder.as_ref().and_then(|folder| folder.before(&name));
            let own = contract.schema.clone();
            // Comparing versions may take seconds.
            let work = move || of_schema(&own, before.as_ref().map(|before| &before.schema));
            let of_schema = tokio::task::spawn_blocking(work).await;
            tables.extend(of_schema.map_err(internal)?);
        }
        Some(Err(ContractError::Unusable(reason))) => {
            let rows = vec![vec![Cell::from(reason)]];
            tables.push(Table { title: "The file cannot be used", head: "reason", rows });
        }
        _ => {}
    }
    if let Some(ledger) = shared.access.ledger() {
        let of = name.clone();
        let of_runs = move |ledger: &Ledger| {
            let reasons = ledger.reasons(start(), Some(&of), 1_000)?;
            let groups = ledger.overview(start())?.contracts;
            Ok((reasons, groups, ledger.versions(&of)?))
        };
        let (reasons, groups, found) = read(ledger, of_runs).await?;
        let runs = groups.iter().find(|group| group.name == name).map_or(0, |group| group.runs);
        if tables.is_empty() && found.is_empty() && runs == 0 {
            return Err(Problem::new(Kind::NotFound, "there is no such contract, and no run has it").into());
        }
        tables.push(failures(reasons, &name, runs));
        tables.push(versions(found, &name));
    }
    html(&Page { visitor, title: format!("Contract {name}"), note: "", tables, schema })
}

/// Returns what is known of a schema without a run.
fn of_schema(schema: &Value, before: Option<&Value>) -> Vec<Table> {
    let mut tables = Vec::new();
    if let Some(before) = before {
        let compared = compare(before, schema);
        let mut rows = vec![vec![Cell::from("the whole"), compared.verdict.to_string().into()]];
        let change =
            |change: &formwork_schema::Change| vec![change.path.as_str().into(), change.to_string().into()];
        rows.extend(compared.changes.iter().take(MAX_ROWS).map(change));
        tables.push(Table { title: "Compared with the version before", head: "place | change", rows });
    }
    let findings = lint(schema);
    let rows = findings.iter().take(MAX_ROWS).map(|finding| vec![finding.to_string().into()]).collect();
    tables.push(Table { title: "Lint", head: "finding", rows });
    let dialects = Dialects::builtin();
    let row = |dialect: &Arc<dyn formwork_dialect::Dialect>| {
        let found = dialect.lint(schema);
        let survives =
            if found.is_empty() { "as it is".to_owned() } else { format!("without {} parts", found.len()) };
        let first: Vec<String> = found.iter().take(3).map(ToString::to_string).collect();
        vec![dialect.name().into(), survives.into(), first.join("; ").into()]
    };
    let rows = dialects.iter().map(row).collect();
    tables.push(Table { title: "Dialects", head: "dialect | the schema survives | parts", rows });
    tables
}

/// Returns how often calls failed at each path.
fn failures(reasons: Vec<HourlyReason>, name: &str, runs: u64) -> Table {
    let mut counts = BTreeMap::<(String, String), u64>::new();
    for one in reasons {
        *counts.entry((one.path, one.class)).or_default() += one.count;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let since = (start().0 / 1000).to_string();
    let row = |((path, class), count): ((String, String), u64)| {
        let filter = [("class", class.as_str()), ("path", &path), ("contract", name), ("since", &since)];
        let count_cell = Cell::runs(count, &filter);
        let rate = match runs {
            0 => "-".to_owned(),
            runs => format!("{:.1}", count as f64 * 100.0 / runs as f64),
        };
        vec![path.into(), class.into(), count_cell, rate.into()]
    };
    let rows = counts.into_iter().take(MAX_ROWS).map(row).collect();
    Table { title: "Failures by path, 30 days", head: "path | class | times | of 100 runs", rows }
}

fn versions(found: Vec<Version>, name: &str) -> Table {
    let row = |one: Version| {
        vec![
            Cell::runs(
                one.digest.get(..12).unwrap_or(&one.digest),
                &[("contract", name), ("digest", &one.digest)],
            ),
            one.runs.into(),
            time(one.first).into(),
            time(one.last).into(),
        ]
    };
    let rows = found.into_iter().map(row).collect();
    Table { title: "Versions in the last 20,000 runs", head: "digest | runs | first run | last run", rows }
}
