//! One run: its calls with violations in their text, patches as differences, and the evidence in its input.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use formwork_core::Time;
use formwork_evidence::{Index, Status};
use formwork_json::{JsonPath, Level, Places, read};
use formwork_ledger::{RunDetail, StoredCall, StoredRun};
use serde_json::Value;

use super::runs::labels;
use super::{Bar, Cell, Refusal, Table, Visitor, dollars, html, internal, time};
use crate::access::Client;
use crate::contracts::Folder;
use crate::service::{Shared, pages};

/// The maximum length of a text on a page, in characters.
const MAX_TEXT: usize = 100_000;

#[derive(Template)]
#[template(path = "page/run.html")]
struct Page {
    visitor: Visitor,
    id: String,
    about: Table,
    bars: Vec<Bar>,
    request: Vec<Part>,
    evidence: Option<Table>,
    curl: String,
    calls: Vec<Call>,
}

struct Call {
    title: String,
    facts: String,
    message: String,
    answer: Vec<Part>,
    violations: Option<Table>,
    changes: Vec<Change>,
}

/// A part of a text; marked if it has a title.
#[derive(Debug, PartialEq)]
struct Part {
    text: String,
    class: &'static str,
    title: String,
}

/// A value that a patch replaced.
#[derive(Debug, PartialEq)]
struct Change {
    path: String,
    before: String,
    after: String,
}

/// A mark of a text, by the offsets of its characters.
#[derive(Debug, Clone)]
struct Mark {
    start: usize,
    end: usize,
    class: &'static str,
    title: String,
}

/// Answers `GET /runs/{id}`.
pub(super) async fn run(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    visitor: Visitor,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let detail = pages::find(&shared, &Client::default(), &id).await?;
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let scheme = if shared.tls.is_some() { "https" } else { "http" };
    let base = match shared.is_view {
        // A view has no models: the request is for a service at its usual address.
        true => "http://127.0.0.1:8190".to_owned(),
        false => format!("{scheme}://{host}"),
    };
    let named = shared.folder.as_ref().map(Folder::names).unwrap_or_default();
    // The evidence of a long input takes a while.
    let page = tokio::task::spawn_blocking(move || page(visitor, detail, (&base, &named))).await;
    html(&page.map_err(internal)?)
}

/// Returns the page of a run; `base` is the address of the service, and `named` are its named contracts.
fn page(visitor: Visitor, detail: RunDetail, (base, named): (&str, &[String])) -> Page {
    let RunDetail { run, request, calls, .. } = detail;
    let bars = bars(&run, &calls);
    let command = |body: &str| {
        // A format, a tool or a contract in the body has its name there.
        let is_named = |name: &&String| named.contains(name) && !body.contains(&format!("\"{name}\""));
        let options = [
            ("x-formwork-contract", run.contract.as_ref().filter(is_named).cloned().unwrap_or_default()),
            ("x-formwork-tags", labels(&run.tags)),
            ("x-formwork-user", run.user.clone().unwrap_or_default()),
        ];
        curl(base, &run.source, &options, body)
    };
    let curl = request.as_deref().map(command).unwrap_or_default();
    let mut document = None;
    let (id, started) = (run.id.to_string(), run.started);
    let calls: Vec<Call> = calls.into_iter().map(|one| call(one, started, &mut document)).collect();
    let request = request.map(shortened).unwrap_or_default();
    let (request, evidence) = evidence(&request, document.as_ref().filter(|_| run.outcome == "ok"));
    Page { visitor, id, about: about(run), bars, request, evidence, curl, calls }
}

fn about(run: StoredRun) -> Table {
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
    Table { title: "About the run", head: "fact | value", rows: about }
}

/// Returns a call; `document` is the document before it, and after it.
fn call(call: StoredCall, started: Time, document: &mut Option<Value>) -> Call {
    let patch = if call.patched.is_empty() {
        String::new()
    } else {
        format!(", patch of {}", call.patched.join(", "))
    };
    let finish = call.finish.map(|finish| format!(", ended with {finish}")).unwrap_or_default();
    let answered = call.answered.map(|model| format!(", answered by {model}")).unwrap_or_default();
    let facts = format!(
        "model {}, mode {}, began after {} ms, took {} ms, {} tokens in, {} out, {} US dollars{patch}{finish}{answered}",
        call.model,
        call.mode,
        call.started.0.saturating_sub(started.0),
        call.ended.0.saturating_sub(call.started.0),
        call.usage.input_tokens,
        call.usage.output_tokens,
        dollars(call.micro_usd)
    );
    let answer = call.answer.map(shortened).unwrap_or_default();
    let reading = read(&answer, Level::Lenient).ok();
    let candidate = reading.as_ref().and_then(|reading| reading.candidates().first());
    let json = candidate.map_or(0..answer.len(), |found| found.span.start..found.span.end);
    let marks: Vec<(&str, String)> = call
        .violations
        .iter()
        .map(|one| (one.path.as_str(), format!("{} at {}: {}", one.class, one.path, one.message)))
        .collect();
    let marks = located(&answer, json, &marks);
    let mut changes = Vec::new();
    match (candidate.map(|found| &found.value), call.patched.is_empty()) {
        (Some(value), true) => *document = Some(value.clone()),
        (Some(value), false) => changes = patched(document, &call.patched, value),
        (None, _) => {}
    }
    let rows: Vec<Vec<Cell>> = call
        .violations
        .into_iter()
        .map(|one| vec![one.path.into(), one.class.into(), one.message.into()])
        .collect();
    Call {
        title: format!("Attempt {}: {}, {}", call.number, call.target, call.class),
        facts,
        message: call.message.map(shortened).unwrap_or_default(),
        answer: parts(&answer, marks),
        violations: (!rows.is_empty()).then_some(Table {
            title: "Violations",
            head: "path | class | message",
            rows,
        }),
        changes,
    }
}

/// Returns the marks of the values at these paths of the JSON text in these bytes of a text.
fn located(text: &str, json: std::ops::Range<usize>, found: &[(&str, String)]) -> Vec<Mark> {
    let Some(document) = text.get(json.clone()) else { return Vec::new() };
    let paths: Vec<JsonPath> = found.iter().map(|(path, _)| path.parse().unwrap_or_default()).collect();
    let places = Places::find(document, &paths);
    let characters = |bytes: usize| text.get(..json.start + bytes).unwrap_or(text).chars().count();
    let mark = |(path, (_, title)): (&JsonPath, &(&str, String))| {
        // A member that is missing is marked at its object.
        let span = places.value(path).or_else(|| places.value(&path.parent()?))?;
        let (start, end) = (characters(span.start), characters(span.end));
        Some(Mark { start, end, class: "violation", title: title.clone() })
    };
    paths.iter().zip(found).filter_map(mark).collect()
}

/// Returns the values that a patch replaced, and replaces them in the document.
fn patched(document: &mut Option<Value>, paths: &[String], patch: &Value) -> Vec<Change> {
    let shown = |value: Option<&Value>| value.map(ToString::to_string).unwrap_or_default();
    let change = |path: &String| {
        let place: JsonPath = path.parse().ok()?;
        // The name of a value in a patch is its path without `$` and the first dot.
        let name = path.trim_start_matches('$').trim_start_matches('.');
        let after = patch.get(name).or_else(|| place.get(patch))?;
        let before = document.as_mut().and_then(|document| place.get_mut(document));
        let change = Change {
            path: path.clone(),
            before: shortened(shown(before.as_deref())),
            after: shortened(shown(Some(after))),
        };
        if let Some(before) = before {
            before.clone_from(after);
        }
        Some(change)
    };
    paths.iter().filter_map(change).collect()
}

/// Returns the input with the place of each value of the answer, and a table of them.
fn evidence(input: &str, value: Option<&Value>) -> (Vec<Part>, Option<Table>) {
    let Some(value) = value.filter(|_| !input.is_empty()) else { return (parts(input, Vec::new()), None) };
    let found = Index::new(input).evidence(value, None);
    let (mut marks, mut rows) = (Vec::new(), Vec::new());
    for one in found.iter().take(200) {
        let class = match one.status {
            Status::Exact => "exact",
            Status::Normalised => "normalised",
            Status::Computed => "computed",
            _ => "not found",
        };
        if let Some(span) = one.spans.first() {
            let title = format!("{}: {class}", one.path);
            marks.push(Mark { start: span.start, end: span.end, class: "evidence", title });
        }
        let shown = one.path.get(value).map(ToString::to_string).unwrap_or_default();
        rows.push(vec![one.path.to_string().into(), shortened(shown).into(), class.into()]);
    }
    let table =
        Table { title: "Values and their evidence in the request", head: "path | value | evidence", rows };
    (parts(input, marks), Some(table))
}

/// Splits a text at its marks. Of marks that overlap, the first one counts.
fn parts(text: &str, mut marks: Vec<Mark>) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut letters = text.chars();
    let mut at = 0;
    let mut push = |length: usize, class: &'static str, title: String| {
        let text: String = letters.by_ref().take(length).collect();
        if !text.is_empty() {
            parts.push(Part { text, class, title });
        }
    };
    marks.sort_by_key(|mark| (mark.start, mark.end));
    for mark in marks {
        if mark.start < at || mark.end <= mark.start {
            continue;
        }
        push(mark.start - at, "", String::new());
        push(mark.end - mark.start, mark.class, mark.title);
        at = mark.end;
    }
    push(usize::MAX, "", String::new());
    parts
}

/// Returns the command that repeats a request, with the headers that have a value; empty for runs that did not come over HTTP.
fn curl(base: &str, path: &str, headers: &[(&str, String)], body: &str) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    if !path.starts_with('/') {
        return String::new();
    }
    let headers = headers.iter().filter(|(_, value)| !value.is_empty());
    let headers: String =
        headers.map(|(name, value)| format!(" -H {}", quoted(&format!("{name}: {value}")))).collect();
    format!(
        "curl {} -H \"authorization: Bearer $FORMWORK_KEY\" -H 'content-type: application/json'{headers} --data-binary {}",
        quoted(&format!("{base}{path}")),
        quoted(body)
    )
}

/// Returns the calls on a line of time, and the waits between them.
fn bars(run: &StoredRun, calls: &[StoredCall]) -> Vec<Bar> {
    let whole = run.ended.0.saturating_sub(run.started.0).max(1) as f64;
    let height = 76.0 / calls.len().max(1) as f64;
    let place = |time: Time| (time.0.saturating_sub(run.started.0) as f64 * 600.0 / whole).min(598.0);
    let mut bars = Vec::new();
    let mut free = run.started;
    for (nth, call) in calls.iter().enumerate() {
        let y = 2.0 + nth as f64 * height;
        let mut bar = |from: Time, to: Time, height: f64, class: &'static str, title: String| {
            let x = place(from);
            let width = (place(to) - x).clamp(2.0, 600.0 - x);
            bars.push(Bar { x, y, width, height, class, title });
        };
        let waited = call.started.0.saturating_sub(free.0);
        if waited > 0 {
            bar(free, call.started, height * 0.2, "wait", format!("{waited} ms of waiting"));
        }
        let took = call.ended.0.saturating_sub(call.started.0);
        let cost = dollars(call.micro_usd);
        let title =
            format!("attempt {}: {}, {}, {took} ms, {cost} US dollars", call.number, call.target, call.class);
        bar(call.started, call.ended, height * 0.8, "", title);
        free = Time(free.0.max(call.ended.0));
    }
    bars
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{} [shortened]", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_parts_of_a_text_are_the_text_whatever_is_marked() {
        let text = "Grüße: \u{1F600} {\"a\": 1}";
        for marks in
            [vec![], vec![(0, 5)], vec![(7, 8), (7, 9)], vec![(3, 5), (4, 90)], vec![(2, 2), (90, 95)]]
        {
            let marks =
                marks.into_iter().map(|(start, end)| Mark { start, end, class: "x", title: "t".to_owned() });
            let parts = parts(text, marks.collect());
            assert_eq!(parts.iter().map(|part| part.text.as_str()).collect::<String>(), text);
        }
    }

    #[test]
    fn violations_are_marked_in_the_document_of_an_answer_and_patches_change_it() {
        let answer = "Sure – here: {\"items\": [{\"price\": \"x\"}]} done";
        let start = answer.find('{').unwrap();
        let marks = located(answer, start..answer.len() - 5, &[("$.items[0].price", "bad".to_owned())]);
        let marked: Vec<_> = parts(answer, marks).into_iter().filter(|part| part.title == "bad").collect();
        assert_eq!((marked.len(), marked[0].text.as_str()), (1, "\"x\""));
        let marks = located(answer, start..answer.len() - 5, &[("$.items[0].name", "missing".to_owned())]);
        assert_eq!(
            (marks.len(), marks[0].start),
            (1, answer.chars().position(|letter| letter == '[').unwrap() + 1)
        );
        let mut document = Some(json!({"items": [{"price": "x"}]}));
        let changes = patched(&mut document, &["$.items[0].price".to_owned()], &json!({"items[0].price": 3}));
        assert_eq!(
            changes,
            [Change { path: "$.items[0].price".into(), before: "\"x\"".into(), after: "3".into() }]
        );
        assert_eq!(document, Some(json!({"items": [{"price": 3}]})));
    }

    #[test]
    fn a_command_has_no_more_words_than_its_own() {
        let headers = [("x-a", "it's; $HOME".to_owned()), ("x-b", String::new())];
        let command = curl(
            "http://localhost:8190",
            "/v1/chat/completions",
            &headers,
            "{\"a\": \"it's; rm -rf $HOME\"}",
        );
        assert!(
            command.contains(r#" -H 'x-a: it'\''s; $HOME' --data"#) && !command.contains("x-b"),
            "{command}"
        );
        assert!(command.ends_with(r#"--data-binary '{"a": "it'\''s; rm -rf $HOME"}'"#), "{command}");
        assert_eq!(curl("http://localhost", "extract", &[], "{}"), "");
    }
}
