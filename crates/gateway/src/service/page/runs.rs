//! The list of runs, and their export.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderName, Uri, header};
use axum::response::{IntoResponse as _, Response};
use formwork_ledger::{RunQuery, StoredRun};

use super::filter::{Field, Filter, SCAN};
use super::{Cell, Refusal, Table, Visitor, dollars, html, read, time};
use crate::service::{Shared, pages};

/// The maximum number of runs of an export.
const MAX_EXPORT: usize = 1000;

/// The size at which an export ends, in bytes.
const MAX_BYTES: usize = 32 << 20;

#[derive(Template)]
#[template(path = "page/runs.html")]
struct List {
    visitor: Visitor,
    fields: Vec<Field>,
    export: String,
    note: String,
    table: Table,
    next: String,
}

/// Answers `GET /runs`.
pub(super) async fn runs(
    State(shared): State<Arc<Shared>>,
    visitor: Visitor,
    uri: Uri,
) -> Result<Response, Refusal> {
    let filter = Filter::parse(uri.query().unwrap_or_default());
    let ledger = pages::ledger(&shared)?;
    let query = filter.query(ledger)?;
    let found = read(ledger, move |ledger| ledger.runs(&query)).await?;
    html(&List {
        visitor,
        fields: filter.fields(),
        export: filter.href("/runs.jsonl", ""),
        note: match found.next {
            // A page that the limit of the scan ended, and not its own length.
            Some(next) if found.runs.last().is_none_or(|last| last.id != next) => {
                format!("This page examined {SCAN} runs. Older runs may match.")
            }
            _ => String::new(),
        },
        next: found.next.map(|next| filter.href("/runs", &next.to_string())).unwrap_or_default(),
        table: Table {
            title: "Newest first",
            head: "run | started | from | key | contract | target | tags | unsure | calls | ms | outcome | US dollars",
            rows: found.runs.iter().map(row).collect(),
        },
    })
}

fn row(run: &StoredRun) -> Vec<Cell> {
    let id = run.id.to_string();
    let calls = if run.cached { "cached".to_owned() } else { run.calls.to_string() };
    vec![
        Cell { href: format!("/runs/{id}"), text: id },
        time(run.started).into(),
        run.source.as_str().into(),
        run.key_name.as_deref().unwrap_or("").into(),
        run.contract.as_deref().unwrap_or("").into(),
        run.target.as_str().into(),
        labels(&run.tags).into(),
        run.doubts().join(", ").into(),
        calls.into(),
        run.ended.0.saturating_sub(run.started.0).into(),
        run.outcome.as_str().into(),
        dollars(run.micro_usd).into(),
    ]
}

/// Returns the tags that a client has set.
pub(super) fn labels(tags: &[String]) -> String {
    let own = tags.iter().filter(|tag| !tag.starts_with("request:") && !tag.starts_with("trace:"));
    own.map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Answers `GET /runs.jsonl`: the newest runs of a filter with their calls, one on each line. `x-formwork-more` says that there are more.
pub(super) async fn export(
    State(shared): State<Arc<Shared>>,
    _: Visitor,
    uri: Uri,
) -> Result<Response, Refusal> {
    let filter = Filter::parse(uri.query().unwrap_or_default());
    let ledger = pages::ledger(&shared)?;
    let query = RunQuery { limit: MAX_EXPORT, scan: 0, ..filter.query(ledger)? };
    let (lines, has_more) = read(ledger, move |ledger| {
        let mut out = Vec::new();
        let found = ledger.runs(&query)?;
        let mut has_more = found.next.is_some();
        for run in found.runs {
            let Some(line) = ledger.run(run.id)?.and_then(|run| serde_json::to_vec(&run).ok()) else {
                continue;
            };
            if out.len() + line.len() > MAX_BYTES {
                has_more = true;
                break;
            }
            out.extend(line);
            out.push(b'\n');
        }
        Ok((out, has_more))
    })
    .await?;
    let headers = [
        (header::CONTENT_TYPE, "application/jsonl"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"runs.jsonl\""),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    let more = has_more.then_some([(HeaderName::from_static("x-formwork-more"), "true")]);
    Ok((headers, more, lines).into_response())
}
