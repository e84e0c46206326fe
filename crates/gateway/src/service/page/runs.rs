//! The list of runs, one run, and their export.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse as _, Response};
use formwork_ledger::{RunDetail, RunQuery, StoredCall, StoredRun};

use super::filter::{Field, Filter};
use super::{Bar, Cell, Table, Visitor, dollars, html, read, refused, time, visitor};
use crate::access::Client;
use crate::protocol::OpenAi;
use crate::service::{Shared, pages};

/// The maximum number of runs of an export.
const MAX_EXPORT: usize = 1000;

/// The size at which an export ends, in bytes.
const MAX_BYTES: usize = 32 << 20;

/// The maximum length of a text on a page, in characters.
const MAX_TEXT: usize = 100_000;

#[derive(Template)]
#[template(path = "page/runs.html")]
struct List {
    visitor: Visitor,
    fields: Vec<Field>,
    export: String,
    table: Table,
    next: String,
}

#[derive(Template)]
#[template(path = "page/run.html")]
struct One {
    visitor: Visitor,
    id: String,
    about: Table,
    bars: Vec<Bar>,
    request: Option<String>,
    calls: Vec<Call>,
}

struct Call {
    title: String,
    facts: String,
    texts: Vec<String>,
    violations: Option<Table>,
}

/// Answers `GET /runs`.
pub(super) async fn runs(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap) -> Response {
    let visitor = match visitor(&shared, &headers) {
        Ok(visitor) => visitor,
        Err(response) => return *response,
    };
    let filter = Filter::parse(uri.query().unwrap_or_default());
    let found = async {
        let ledger = pages::ledger(&shared)?;
        let query = filter.query(ledger)?;
        read(ledger, move |ledger| ledger.runs(&query)).await
    };
    let found = match found.await {
        Ok(found) => found,
        Err(problem) => return refused(&OpenAi, &problem),
    };
    html(&List {
        visitor,
        fields: filter.fields(),
        export: filter.href("/runs.jsonl", filter.get("before").unwrap_or_default()),
        next: found.next.map(|next| filter.href("/runs", &next.to_string())).unwrap_or_default(),
        table: Table {
            title: "Newest first",
            head: &[
                "run",
                "started",
                "from",
                "key",
                "contract",
                "target",
                "tags",
                "calls",
                "ms",
                "outcome",
                "US dollars",
            ],
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
        run.tags.join(", ").into(),
        calls.into(),
        run.ended.0.saturating_sub(run.started.0).into(),
        run.outcome.as_str().into(),
        dollars(run.micro_usd).into(),
    ]
}

/// Answers `GET /runs.jsonl`: the newest runs of a filter with their calls, one on each line.
pub(super) async fn export(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap) -> Response {
    if let Err(response) = visitor(&shared, &headers) {
        return *response;
    }
    let filter = Filter::parse(uri.query().unwrap_or_default());
    let found = async {
        let ledger = pages::ledger(&shared)?;
        let query = RunQuery { limit: MAX_EXPORT, ..filter.query(ledger)? };
        read(ledger, move |ledger| {
            let mut out = Vec::new();
            for run in ledger.runs(&query)?.runs {
                let Some(line) = ledger.run(run.id)?.and_then(|run| serde_json::to_vec(&run).ok()) else {
                    continue;
                };
                if out.len() + line.len() > MAX_BYTES {
                    break;
                }
                out.extend(line);
                out.push(b'\n');
            }
            Ok(out)
        })
        .await
    };
    match found.await {
        Ok(lines) => {
            let headers = [
                (header::CONTENT_TYPE, "application/jsonl"),
                (header::CONTENT_DISPOSITION, "attachment; filename=\"runs.jsonl\""),
                (header::CACHE_CONTROL, "no-store"),
                (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            ];
            (headers, lines).into_response()
        }
        Err(problem) => refused(&OpenAi, &problem),
    }
}

/// Answers `GET /runs/{id}`.
pub(super) async fn run(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let visitor = match visitor(&shared, &headers) {
        Ok(visitor) => visitor,
        Err(response) => return *response,
    };
    match pages::find(&shared, &Client::default(), &id).await {
        Ok(detail) => html(&one(visitor, detail)),
        Err(problem) => refused(&OpenAi, &problem),
    }
}

fn one(visitor: Visitor, detail: RunDetail) -> One {
    let RunDetail { run, request, calls, .. } = detail;
    let bars = bars(&run, &calls);
    let mut about: Vec<Vec<Cell>> = Vec::new();
    let mut fact = |name: &str, value: String| {
        if !value.is_empty() {
            about.push(vec![name.into(), value.into()]);
        }
    };
    fact("outcome", run.outcome);
    fact("message", run.message.unwrap_or_default());
    fact("from", run.source);
    fact("key", run.key_name.unwrap_or_default());
    fact("user", run.user.unwrap_or_default());
    fact("tags", run.tags.join(", "));
    fact("contract", run.contract.unwrap_or_default());
    fact("digest of the contract", run.digest.unwrap_or_default());
    fact("target", run.target);
    fact("model", run.model);
    fact("started", time(run.started));
    fact("milliseconds", run.ended.0.saturating_sub(run.started.0).to_string());
    fact("tokens", format!("{} in, {} out", run.usage.input_tokens, run.usage.output_tokens));
    fact("US dollars", dollars(run.micro_usd));
    fact("feedback", run.feedback.unwrap_or_default());
    run.warnings.iter().for_each(|warning| fact("warning", warning.to_string()));
    run.not_stated.iter().for_each(|path| fact("not stated", path.to_string()));
    One {
        visitor,
        id: run.id.to_string(),
        about: Table { title: "About the run", head: &["fact", "value"], rows: about },
        bars,
        request: request.map(shortened),
        calls: calls.into_iter().map(call).collect(),
    }
}

fn call(call: StoredCall) -> Call {
    let patch = if call.patched.is_empty() {
        String::new()
    } else {
        format!(", patch of {}", call.patched.join(", "))
    };
    let rows: Vec<Vec<Cell>> = call
        .violations
        .into_iter()
        .map(|one| vec![one.path.into(), one.class.into(), one.message.into()])
        .collect();
    Call {
        title: format!("Attempt {}: {}, {}", call.number, call.target, call.class),
        facts: format!(
            "model {}, mode {}, {} ms, {} tokens in, {} out, {} US dollars{patch}",
            call.model,
            call.mode,
            call.ended.0.saturating_sub(call.started.0),
            call.usage.input_tokens,
            call.usage.output_tokens,
            dollars(call.micro_usd)
        ),
        texts: call.message.into_iter().chain(call.answer).map(shortened).collect(),
        violations: (!rows.is_empty()).then_some(Table {
            title: "Violations",
            head: &["path", "class", "message"],
            rows,
        }),
    }
}

/// Returns the calls on a line of time; the gaps are waits.
fn bars(run: &StoredRun, calls: &[StoredCall]) -> Vec<Bar> {
    let whole = run.ended.0.saturating_sub(run.started.0).max(1) as f64;
    let height = 76.0 / calls.len().max(1) as f64;
    let place = |time: formwork_core::Time| time.0.saturating_sub(run.started.0) as f64 * 600.0 / whole;
    let bar = |(nth, call): (usize, &StoredCall)| {
        let x = place(call.started).min(598.0);
        let width = (place(call.ended) - x).clamp(2.0, 600.0 - x);
        let took = call.ended.0.saturating_sub(call.started.0);
        let title = format!(
            "attempt {}: {}, {}, {took} ms, {} US dollars",
            call.number,
            call.target,
            call.class,
            dollars(call.micro_usd)
        );
        Bar { x, y: 2.0 + nth as f64 * height, width, height: height * 0.8, title }
    };
    calls.iter().enumerate().map(bar).collect()
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{} [shortened]", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
