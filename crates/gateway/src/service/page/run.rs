//! One run: its calls with violations in their text, patches as differences, and the evidence in its input.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use formwork_core::{Message, Time, values_of_patch};
use formwork_evidence::{Index, Status};
use formwork_json::{JsonPath, Level, Places, read};
use formwork_ledger::{RunDetail, StoredCall, StoredRun};
use serde_json::Value;

use super::runs::labels;
use super::{Bar, Cell, Refusal, Table, Visitor, dollars, html, internal, time};
use crate::access::Client;
use crate::ask::Want;
use crate::contracts::{Known, NamedContract};
use crate::document::Document;
use crate::protocol::given::reduced;
use crate::service::routes::dialogue;
use crate::service::{Shared, pages};

/// The maximum length of a text on a page, in characters.
const MAX_TEXT: usize = 100_000;

/// The maximum length of a text that is searched for evidence, in bytes: that of the ledger.
const MAX_SEARCHED: usize = 1 << 20;

#[derive(Template)]
#[template(path = "page/run.html")]
struct Page {
    visitor: Visitor,
    id: String,
    about: Table,
    bars: Vec<Bar>,
    request: String,
    /// The text that the answer is about, with marks, and its evidence.
    evidence: Option<(Vec<Part>, Table)>,
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
    is_unused: bool,
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
    let named = detail.run.contract.as_deref().zip(shared.folder.as_ref());
    let named = named.and_then(|(name, folder)| folder.get(name, &shared.engine).ok());
    // The evidence of a long input takes a while.
    let page = move || page(visitor, detail, &base, (&shared.engine.schemas, named.as_deref()));
    html(&tokio::task::spawn_blocking(page).await.map_err(internal)?)
}

/// Returns the page of a run; `base` is the address of the service, and `named` the contract of the run as the folder has it.
fn page(
    visitor: Visitor,
    detail: RunDetail,
    base: &str,
    (schemas, named): (&Known, Option<&NamedContract>),
) -> Page {
    let RunDetail { run, request, calls, .. } = detail;
    let bars = bars(&run, &calls);
    let request = request.unwrap_or_default();
    let subject = subject(&run, &request, schemas).unwrap_or_default();
    let options = [
        ("x-formwork-contract", subject.contract.unwrap_or_default()),
        ("x-formwork-tags", labels(&run.tags)),
        ("x-formwork-user", run.user.clone().unwrap_or_default()),
    ];
    let curl = curl(base, &run.source, &options, &request);
    let mut document = None;
    let (id, started) = (run.id.to_string(), run.started);
    let calls: Vec<Call> = calls.into_iter().map(|one| call(one, started, &mut document)).collect();
    let schema = subject.schema.as_ref().or(named.map(|named| &named.schema));
    let value = document.filter(|_| run.outcome == "ok");
    let evidence = value.and_then(|value| evidence(subject.text, schema, &value));
    Page { visitor, id, about: about(run), bars, request: shortened(request), evidence, curl, calls }
}

/// The parts of a request that its page is about, as the run had them.
#[derive(Default)]
struct Subject {
    /// The text that the answer is about.
    text: String,
    /// The schema of the answer; `None` if the request does not have it.
    schema: Option<Value>,
    /// The contract that a header named.
    contract: Option<String>,
}

/// Returns the subject of the request of a run; `None` for a request that cannot be read.
fn subject(run: &StoredRun, request: &str, schemas: &Known) -> Option<Subject> {
    let Some(protocol) = dialogue(&run.source) else {
        // Commands record their messages, and `/v1/extract` has members of its own.
        if let Ok(messages) = serde_json::from_str::<Vec<Message>>(request) {
            return Some(Subject { text: messages.last()?.text(), ..Subject::default() });
        }
        let mut body: Value = serde_json::from_str(request).ok()?;
        let text = body["input"].as_str()?.to_owned();
        return Some(Subject { text, schema: body.get_mut("schema").map(Value::take), contract: None });
    };
    let read = |body: &str| (protocol.ask)(Document::read(body).ok()?, schemas).ok();
    // A request with members that only its target knows is read as its run reads it.
    let reduced = || read(&reduced(&serde_json::from_str(request).ok()?, protocol.fields).to_string());
    let ask = read(request).or_else(reduced)?;
    let (schema, own) = match ask.want {
        Want::Text => (None, Vec::new()),
        Want::Json { name, schema } => (Some(schema), vec![name]),
        Want::Call(tool) => (Some(tool.parameters), vec![tool.name]),
        Want::Tools { tools, format, .. } => {
            let format = format.map_or("turn".to_owned(), |(name, _)| name);
            (None, tools.into_iter().map(|tool| tool.name).chain([format]).collect())
        }
    };
    Some(Subject {
        text: ask.messages.last()?.text(),
        schema: schema.map(|schema| schema.value().clone()),
        contract: run.contract.clone().filter(|name| !own.contains(name)),
    })
}

fn about(run: StoredRun) -> Table {
    let mut about: Vec<Vec<Cell>> = Vec::new();
    let mut fact = |name: &str, value: String| {
        if !value.is_empty() {
            about.push(vec![name.into(), value.into()]);
        }
    };
    fact("outcome", run.outcome);
    fact("answer", if run.cached { "from the cache: no model was called".to_owned() } else { String::new() });
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
    fact("evidence", run.evidence.map(|evidence| evidence.to_string()).unwrap_or_default());
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
    let mut changes = Vec::new();
    let is_patch = !call.patched.is_empty();
    match candidate.map(|found| &found.value) {
        Some(value) if !is_patch => *document = Some(value.clone()),
        Some(value) => changes = patched(document.as_mut(), &call.patched, value),
        None => {}
    }
    let changed: Vec<JsonPath> = changes.iter().filter_map(|change| change.path.parse().ok()).collect();
    // The violations of a patch are those of the whole document: other values of the answer are not what they are about.
    let is_about = |path: &str| {
        let path: JsonPath = path.parse().unwrap_or_default();
        !is_patch || changed.iter().any(|changed| path.is_within(changed))
    };
    let violations = call.violations.iter().filter(|one| is_about(&one.path));
    let marks: Vec<(&str, String)> = violations
        .map(|one| (one.path.as_str(), format!("{} at {}: {}", one.class, one.path, one.message)))
        .collect();
    let marks = located(&answer, json, &marks);
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
        is_unused: is_patch && document.is_some() && !answer.is_empty() && changes.is_empty(),
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

/// Returns the values that a patch replaced or added, and applies it to the document.
fn patched(document: Option<&mut Value>, paths: &[String], patch: &Value) -> Vec<Change> {
    let shown = |value: Option<&Value>| shortened(value.map(ToString::to_string).unwrap_or_default());
    let Some(document) = document else { return Vec::new() };
    let paths: Vec<JsonPath> = paths.iter().filter_map(|path| path.parse().ok()).collect();
    let values = values_of_patch(&paths, document, patch);
    let change = |(path, after): (JsonPath, &Value)| {
        let (before, after_text) = (shown(path.get(document)), shown(Some(after)));
        if let Some(before) = path.get_mut(document) {
            before.clone_from(after);
        } else if let Some(Value::Array(items)) = path.parent().and_then(|list| list.get_mut(document)) {
            // The rest of a list.
            items.extend(after.as_array().into_iter().flatten().cloned());
        }
        Change { path: path.to_string(), before, after: after_text }
    };
    values.into_iter().map(change).collect()
}

/// Returns the text of a request with the place of each value of the answer, and a table of them; `None` for a text that is empty or
/// too long.
fn evidence(text: String, schema: Option<&Value>, value: &Value) -> Option<(Vec<Part>, Table)> {
    let text = Some(text).filter(|text| (1..=MAX_SEARCHED).contains(&text.len()))?;
    let found = Index::new(text.as_str()).evidence(value, schema);
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
    Some((parts(&shortened(text), marks), table))
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
    if !path.starts_with('/') || body.is_empty() {
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
        let changes =
            patched(document.as_mut(), &["$.items[0].price".to_owned()], &json!({"items[0].price": 3}));
        assert_eq!(
            changes,
            [Change { path: "$.items[0].price".into(), before: "\"x\"".into(), after: "3".into() }]
        );
        assert_eq!(document, Some(json!({"items": [{"price": 3}]})));
    }

    /// A run reads the answer to a request for a patch as a patch, also if it is a whole document.
    #[test]
    fn a_whole_document_in_place_of_a_patch_changes_and_marks_nothing() {
        let patch = |answer: &str| {
            let mut call = StoredCall::new("t", "m", Time(0), Time(0));
            call.patched = ["$.items[0].price", "$.items[1].price"].map(str::to_owned).into();
            let [class, path, message] = ["type", "$.items[0].price", "is no number"].map(str::to_owned);
            call.violations.push(formwork_ledger::ViolationRecord { class, path, message });
            call.answer = Some(answer.to_owned());
            call
        };
        let before = json!({"items": [{"price": "x"}, {"price": "y"}]});
        let mut document = Some(before.clone());
        let unused = call(patch(r#"{"items": [{"price": 3}, {"price": 4}]}"#), Time(0), &mut document);
        assert!(unused.is_unused && unused.changes.is_empty());
        assert!(unused.answer.iter().all(|part| part.title.is_empty()) && document == Some(before));
        // Values of the same list have one member in a patch.
        let used = call(patch(r#"{"items[*].price": {"0": 3, "1": 4}}"#), Time(0), &mut document);
        assert!(!used.is_unused && used.changes.len() == 2);
        assert_eq!(document, Some(json!({"items": [{"price": 3}, {"price": 4}]})));
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
