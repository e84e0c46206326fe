//! Pages for admins, and runs as JSON.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};
use formwork_extract::ObservationStore;
use formwork_ledger::{Ledger, RecordId, RunDetail, RunQuery, format_usd};

use super::Shared;
use super::refused::refused;
use crate::access::{Client, now};
use crate::problem::{Kind, Problem};
use crate::protocol::{OpenAi, timestamp};

/// The pages load no files and run no scripts: the style is part of each page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}\
                     table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.2rem .6rem;\
                     border-bottom:1px solid #ddd;vertical-align:top}pre{white-space:pre-wrap;background:#f6f6f6;padding:.6rem}";

/// Answers `GET /v1/runs/{id}`: a client sees its own runs, an admin all.
pub(super) async fn run(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let client = shared.access.client(&headers)?;
        find(&shared, &client, &id).await
    };
    match found.await {
        Ok(run) => ([(header::CACHE_CONTROL, "no-store")], Json(run)).into_response(),
        Err(problem) => refused(&OpenAi, &problem),
    }
}

async fn find(shared: &Shared, client: &Client, id: &str) -> Result<RunDetail, Problem> {
    let unknown = || Problem::new(Kind::NotFound, "there is no such run");
    let ledger = ledger(shared)?;
    let id: RecordId = id.parse().map_err(|_| unknown())?;
    // The run may still be in the writer's queue.
    _ = ledger.flush().await;
    let run = ledger
        .run(id)
        .map_err(|error| Problem::new(Kind::Internal, error.to_string()))?
        .ok_or_else(unknown)?;
    // A run of another key does not exist for a client.
    if client.is_admin() || run.run.key == client.id() { Ok(run) } else { Err(unknown()) }
}

fn ledger(shared: &Shared) -> Result<&Ledger, Problem> {
    let message = "runs are not recorded: start the service with a ledger";
    shared.access.ledger().ok_or_else(|| Problem::new(Kind::NotFound, message))
}

/// Checks that a request may see pages and metrics.
///
/// # Errors
/// [`Kind::Unauthorized`], and [`Kind::Forbidden`] for a client's key.
pub(super) fn admin(shared: &Shared, headers: &HeaderMap) -> Result<(), Problem> {
    let client = shared.access.client(headers)?;
    match client.is_admin() {
        true => Ok(()),
        false => Err(Problem::new(Kind::Forbidden, "this needs an admin's key")),
    }
}

/// Answers `GET /`.
pub(super) async fn overview(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    match admin(&shared, &headers).map(|()| written(&shared)) {
        Ok(Ok(body)) => page("Formwork", &body),
        Ok(Err(problem)) | Err(problem) => refused(&OpenAi, &problem),
    }
}

fn written(shared: &Shared) -> Result<String, Problem> {
    const DAY: u64 = 24 * 3_600_000;

    let mut out = String::from(
        "<h1>Formwork</h1><h2>Targets</h2><table><tr><th>name<th>model<th>modes<th>passes through</tr>",
    );
    for target in shared.engine.names.targets() {
        let modes: Vec<String> = target.backend.modes().iter().map(|mode| mode.name().to_owned()).collect();
        let raw = target.raw.as_ref().map_or("-".to_owned(), |raw| format!("{:?}", raw.protocol));
        row(&mut out, &[target.name(), &target.model, &modes.join(", "), &raw]);
    }
    out.push_str("</table>");
    in_force(shared, &mut out);
    if let Some(batches) = &shared.batches {
        batches.write(&mut out);
    }
    let Ok(ledger) = ledger(shared) else {
        out.push_str("<p>Runs are not recorded: start the service with a ledger.</p>");
        return Ok(out);
    };
    let failed = |error: formwork_ledger::Error| Problem::new(Kind::Internal, error.to_string());
    out.push_str("<h2>Last runs</h2><table><tr><th>run<th>started<th>from<th>key<th>contract<th>target<th>calls<th>outcome<th>US dollars</tr>");
    for run in ledger.runs(&RunQuery::default()).map_err(failed)?.runs {
        let id = run.id.to_string();
        // An identifier has letters, digits and `_` alone.
        _ = write!(out, "<tr><td><a href=\"/runs/{id}\">{id}</a>");
        let cost = run.micro_usd.map_or("unknown".to_owned(), format_usd);
        let calls = if run.cached { "cached".to_owned() } else { run.calls.to_string() };
        for cell in [
            &timestamp(run.started.0 / 1000),
            &run.source,
            run.key_name.as_deref().unwrap_or(""),
            run.contract.as_deref().unwrap_or(""),
            &run.target,
            &calls,
            &run.outcome,
            &cost,
        ] {
            _ = write!(out, "<td>{}", escaped(cell));
        }
        out.push_str("</tr>");
    }
    out.push_str("</table><h2>Why calls were retried, last 24 hours</h2><table><tr><th>class<th>path<th>model<th>contract<th>times</tr>");
    let since = formwork_core::Time(now().0.saturating_sub(DAY));
    let mut reasons = std::collections::BTreeMap::new();
    for reason in ledger.hourly_reasons(Some(since), None).map_err(failed)? {
        *reasons.entry((reason.class, reason.path, reason.model, reason.contract)).or_insert(0) +=
            reason.count;
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for ((class, path, model, contract), count) in reasons.into_iter().take(50) {
        row(&mut out, &[&class, &path, &model, &contract, &count.to_string()]);
    }
    out.push_str("</table>");
    Ok(out)
}

/// Writes the observations about targets that are in force, if there are any.
fn in_force(shared: &Shared, out: &mut String) {
    let mut found = Vec::new();
    for target in shared.engine.names.targets() {
        let store = target.backend.observation_store().map(ObservationStore::in_force).unwrap_or_default();
        // Several names may share a store.
        found.extend(store.into_iter().filter(|one| !found.contains(one)).collect::<Vec<_>>());
    }
    if found.is_empty() {
        return;
    }
    out.push_str("<h2>In force</h2><table><tr><th>observation<th>since<th>last evidence<th>until</tr>");
    for one in &found {
        let [since, last, until] = [one.since, one.last, one.until].map(|time| timestamp(time.0 / 1000));
        row(out, &[&one.to_string(), &since, &last, &until]);
    }
    out.push_str("</table>");
}

/// Answers `GET /runs/{id}`.
pub(super) async fn one(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = async {
        admin(&shared, &headers)?;
        find(&shared, &Client::default(), &id).await
    };
    let RunDetail { run, request, calls, .. } = match found.await {
        Ok(run) => run,
        Err(problem) => return refused(&OpenAi, &problem),
    };
    let mut out = format!("<p><a href=\"/\">Formwork</a></p><h1>{}</h1><table>", run.id);
    for (name, value) in [
        ("outcome", run.outcome.as_str()),
        ("message", run.message.as_deref().unwrap_or("")),
        ("from", &run.source),
        ("key", run.key_name.as_deref().unwrap_or("")),
        ("user", run.user.as_deref().unwrap_or("")),
        ("tags", &run.tags.join(", ")),
        ("contract", run.contract.as_deref().unwrap_or("")),
        ("started", &timestamp(run.started.0 / 1000)),
        ("milliseconds", &run.ended.0.saturating_sub(run.started.0).to_string()),
        ("US dollars", &run.micro_usd.map_or("unknown".to_owned(), format_usd)),
    ] {
        row(&mut out, &[name, value]);
    }
    for warning in &run.warnings {
        row(&mut out, &["warning", &warning.to_string()]);
    }
    for path in &run.not_stated {
        row(&mut out, &["not stated", &path.to_string()]);
    }
    if let Some(trust) = &run.trust {
        row(&mut out, &["history", &trust.to_string()]);
    }
    out.push_str("</table>");
    if let Some(request) = request {
        _ = write!(out, "<h2>Request</h2><pre>{}</pre>", escaped(&request));
    }
    for call in calls {
        let head = format!("Attempt {}: {}, {}", call.number, call.target, call.class);
        _ = write!(out, "<h2>{}</h2><table>", escaped(&head));
        for violation in &call.violations {
            row(&mut out, &[&violation.path, &violation.class, &violation.message]);
        }
        out.push_str("</table>");
        for text in call.message.iter().chain(&call.answer) {
            _ = write!(out, "<pre>{}</pre>", escaped(text));
        }
    }
    page(&run.id.to_string(), &out)
}

pub(super) fn row(out: &mut String, cells: &[&str]) {
    out.push_str("<tr>");
    for cell in cells {
        _ = write!(out, "<td>{}", escaped(cell));
    }
    out.push_str("</tr>");
}

/// Returns a text that cannot be read as markup.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter => out.push(letter),
        }
    }
    out
}

fn page(title: &str, body: &str) -> Response {
    let html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{}</title><style>{STYLE}</style>{body}</html>",
        escaped(title)
    );
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, html).into_response()
}
