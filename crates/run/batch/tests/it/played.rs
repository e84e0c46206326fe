//! A simulated provider with a batch API, in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use formwork_core::{Clock as _, Fault, Time};
use formwork_testkit::VirtualClock;
use formwork_wire::http::{Method, Request, Response};
use formwork_wire::{Body, Bytes, Transport};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// The simulated API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    OpenAi,
    Anthropic,
}

/// The behaviour of the provider at the nth processed call of a row.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Text(String),
    Error(u16, &'static str),
}

/// A submitted batch.
#[derive(Debug, Clone)]
pub(crate) struct Submitted {
    pub(crate) id: String,
    key: Option<String>,
    created: u64,
    /// The id and the row of each request.
    pub(crate) requests: Vec<(String, u64)>,
    polls: u32,
    is_cancelled: bool,
    results: Option<Vec<Value>>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    files: HashMap<String, String>,
    pub(crate) batches: Vec<Submitted>,
    /// The number of processed calls of each row.
    pub(crate) calls: BTreeMap<u64, u32>,
    lost: BTreeMap<u64, usize>,
    /// The largest file in bytes.
    pub(crate) largest: usize,
    requests: usize,
}

/// The faults of the provider.
#[derive(Debug, Clone)]
pub(crate) struct Faults {
    /// The request at which the process dies, and whether the provider has acted on it.
    pub(crate) death: Option<(usize, bool)>,
    /// The response to every request.
    pub(crate) refusal: Option<(u16, &'static str)>,
    /// The errors of the first batches, which fail as a whole.
    pub(crate) failed: Vec<(&'static str, &'static str)>,
    /// The number of times that each of these rows is not processed.
    pub(crate) expired: (usize, fn(u64) -> bool),
    /// The number of polls before a batch is done.
    pub(crate) polls: u32,
    /// A batch that takes this number of polls more.
    pub(crate) slow: Option<(usize, u32)>,
}

impl Default for Faults {
    fn default() -> Self {
        Self { death: None, refusal: None, failed: Vec::new(), expired: (0, |_| true), polls: 2, slow: None }
    }
}

#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) api: Api,
    pub(crate) clock: Arc<VirtualClock>,
    pub(crate) state: Mutex<State>,
    pub(crate) faults: Mutex<Faults>,
    pub(crate) answer: fn(u64, u32) -> Reply,
    pub(crate) died: Notify,
}

impl Played {
    pub(crate) fn new(api: Api, answer: fn(u64, u32) -> Reply, faults: Faults) -> Arc<Self> {
        Arc::new(Self {
            api,
            clock: Arc::new(VirtualClock::starting_at(Time(1_760_000_000_000))),
            state: Mutex::default(),
            faults: Mutex::new(faults),
            answer,
            died: Notify::new(),
        })
    }

    /// Returns the rows of all accepted requests, in order, batch by batch.
    pub(crate) fn submitted(&self) -> Vec<Vec<u64>> {
        let state = self.state.lock().unwrap();
        let rows = |batch: &Submitted| batch.requests.iter().map(|(_, row)| *row).collect();
        state.batches.iter().map(rows).collect()
    }

    pub(crate) fn calls(&self) -> BTreeMap<u64, u32> {
        self.state.lock().unwrap().calls.clone()
    }

    /// Returns the number of requests so far.
    pub(crate) fn requests(&self) -> usize {
        self.state.lock().unwrap().requests
    }

    fn respond(&self, method: &Method, path: &str, query: &str, body: &Bytes) -> (u16, String) {
        let faults = self.faults.lock().unwrap().clone();
        if let Some((status, message)) = faults.refusal {
            return (status, json!({"error": {"type": "e", "message": message}}).to_string());
        }
        let mut state = self.state.lock().unwrap();
        let state = &mut *state;
        let (prefix, list) = match self.api {
            Api::OpenAi => ("/batches", "/batches"),
            Api::Anthropic => ("/v1/messages/batches", "/v1/messages/batches"),
        };
        let body = std::str::from_utf8(body).unwrap();
        if path == "/files" {
            let lines = body.split("\r\n\r\n").nth(2).unwrap().split("\r\n--").next().unwrap();
            assert!(body.contains("name=\"purpose\"\r\n\r\nbatch\r\n"), "{body}");
            state.largest = state.largest.max(lines.len());
            let id = format!("file-{}", state.files.len());
            state.files.insert(id.clone(), lines.to_owned());
            return (200, json!({"id": id}).to_string());
        }
        if let Some(file) = path.strip_prefix("/files/") {
            return (200, state.files[file.trim_end_matches("/content")].clone());
        }
        if path == list && *method == Method::POST {
            let sent: Value = serde_json::from_str(body).unwrap();
            let (key, lines): (_, Vec<Value>) = match self.api {
                Api::OpenAi => {
                    assert_eq!(sent["completion_window"], "24h");
                    assert_eq!(sent["endpoint"], "/v1/chat/completions");
                    let file = &state.files[sent["input_file_id"].as_str().unwrap()];
                    let lines: Vec<Value> =
                        file.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
                    assert!(lines.iter().all(|line| line["url"] == "/v1/chat/completions"
                        && line["method"] == "POST"
                        && line["body"]["stream"] != true));
                    (Some(sent["metadata"]["formwork"].as_str().unwrap().to_owned()), lines)
                }
                Api::Anthropic => {
                    state.largest = state.largest.max(body.len());
                    (None, sent["requests"].as_array().unwrap().clone())
                }
            };
            let requests = lines.iter().map(|line| {
                let id = line["custom_id"].as_str().unwrap().to_owned();
                assert!(id.len() <= 64, "{id}");
                (id, row_of(line))
            });
            let batch = Submitted {
                id: format!("batch-{}", state.batches.len()),
                key,
                created: self.clock.now().0 / 1000,
                requests: requests.collect(),
                polls: 0,
                is_cancelled: false,
                results: None,
            };
            let document = self.document(&batch, &faults, state.batches.len());
            state.batches.push(batch);
            return (200, document.to_string());
        }
        if path == list {
            // The provider works on all batches, not only on the polled one.
            for nth in 0..state.batches.len() {
                state.batches[nth].polls = state.batches[nth].polls.saturating_add(1);
                self.go_on(state, nth, &faults);
            }
            // Two batches on a page, the newest first.
            let after = query.split('&').find_map(|part| part.split_once("after"));
            let after = after.map(|(_, after)| after.trim_start_matches("_id").trim_start_matches('='));
            let all: Vec<&Submitted> = state.batches.iter().rev().collect();
            let from = after.map_or(0, |id| all.iter().position(|batch| batch.id == id).unwrap() + 1);
            let page: Vec<Value> = all
                .iter()
                .skip(from)
                .take(2)
                .map(|batch| self.document(batch, &faults, number(&batch.id)))
                .collect();
            let has_more = from + 2 < all.len();
            return (200, json!({"data": page, "has_more": has_more}).to_string());
        }
        let rest = path.strip_prefix(prefix).unwrap().trim_start_matches('/');
        let (id, action) = rest.split_once('/').unwrap_or((rest, ""));
        let nth = number(id);
        match action {
            "cancel" => state.batches[nth].is_cancelled = true,
            "results" => {
                let lines = state.batches[nth].results.clone().unwrap();
                return (200, text(&lines));
            }
            _ => state.batches[nth].polls = state.batches[nth].polls.saturating_add(1),
        }
        self.go_on(state, nth, &faults);
        (200, self.document(&state.batches[nth], &faults, nth).to_string())
    }

    /// Lets the provider work on a batch.
    fn go_on(&self, state: &mut State, nth: usize, faults: &Faults) {
        let is_failed = faults.failed.len() > nth;
        let batch = &state.batches[nth];
        let slow = faults.slow.filter(|(slow, _)| *slow == nth).map_or(0, |(_, polls)| polls);
        let is_done = (batch.polls >= faults.polls + slow || batch.is_cancelled) && !is_failed;
        if is_done && batch.results.is_none() {
            let results = self.process(&batch.clone(), faults, &mut state.calls, &mut state.lost);
            if self.api == Api::OpenAi {
                let (good, bad): (Vec<_>, Vec<_>) =
                    results.iter().cloned().partition(|line| line["response"]["status_code"] == 200);
                state.files.insert(format!("out-{nth}"), text(&good));
                state.files.insert(format!("err-{nth}"), text(&bad));
            }
            state.batches[nth].results = Some(results);
        }
    }

    /// Processes the requests of a batch; returns the lines of the results, the last one first.
    fn process(
        &self,
        batch: &Submitted,
        faults: &Faults,
        calls: &mut BTreeMap<u64, u32>,
        lost: &mut BTreeMap<u64, usize>,
    ) -> Vec<Value> {
        let mut lines = Vec::new();
        let mut is_lost = |row: u64| {
            let times = lost.entry(row).or_default();
            let is_lost = *times < faults.expired.0 && (faults.expired.1)(row);
            *times += usize::from(is_lost);
            is_lost
        };
        for (id, row) in batch.requests.iter().rev() {
            if batch.is_cancelled || is_lost(*row) {
                lines.push(match self.api {
                    Api::OpenAi => json!({"custom_id": id, "response": null,
                        "error": {"code": "batch_expired", "message": "This request could not be executed."}}),
                    Api::Anthropic => json!({"custom_id": id, "result": {"type": "expired"}}),
                });
                continue;
            }
            let count = calls.entry(*row).or_default();
            *count += 1;
            lines.push(match ((self.answer)(*row, *count), self.api) {
                (Reply::Text(text), Api::OpenAi) => json!({
                    "id": "r", "custom_id": id, "error": null,
                    "response": {"status_code": 200, "request_id": "q", "body": {
                        "id": "c", "object": "chat.completion", "created": 1, "model": "m",
                        "choices": [{"index": 0, "finish_reason": "stop",
                            "message": {"role": "assistant", "content": text}}],
                        "usage": {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500},
                    }},
                }),
                (Reply::Error(status, message), Api::OpenAi) => json!({
                    "custom_id": id, "error": null,
                    "response": {"status_code": status, "body": {"error": {"message": message}}},
                }),
                (Reply::Text(text), Api::Anthropic) => json!({"custom_id": id, "result": {
                    "type": "succeeded", "message": {
                        "id": "m", "type": "message", "role": "assistant", "model": "m",
                        "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
                        "usage": {"input_tokens": 1000, "output_tokens": 500},
                    },
                }}),
                (Reply::Error(status, message), Api::Anthropic) => {
                    let kind = if status >= 500 { "api_error" } else { "invalid_request_error" };
                    json!({"custom_id": id, "result": {"type": "errored",
                        "error": {"type": "error", "error": {"type": kind, "message": message}}}})
                }
            });
        }
        lines
    }

    fn document(&self, batch: &Submitted, faults: &Faults, nth: usize) -> Value {
        let is_done = batch.results.is_some();
        let total = batch.requests.len();
        match self.api {
            Api::OpenAi => {
                let mut document = json!({
                    "id": batch.id, "object": "batch", "created_at": batch.created,
                    "metadata": {"formwork": batch.key},
                    "status": if is_done { "completed" } else { "in_progress" },
                    "request_counts": {"total": total, "completed": if is_done { total } else { 0 }, "failed": 0},
                });
                if let Some((code, message)) = faults.failed.get(nth) {
                    document["status"] = json!("failed");
                    document["errors"] =
                        json!({"object": "list", "data": [{"code": code, "message": message}]});
                }
                if is_done {
                    document["output_file_id"] = json!(format!("out-{nth}"));
                    document["error_file_id"] = json!(format!("err-{nth}"));
                }
                document
            }
            Api::Anthropic => json!({
                "id": batch.id, "type": "message_batch",
                "created_at": format!("2025-10-09T{:06}Z", batch.created % 86_400),
                "processing_status": if is_done { "ended" } else { "in_progress" },
                "request_counts": {
                    "processing": if is_done { 0 } else { total }, "succeeded": if is_done { total } else { 0 },
                    "errored": 0, "canceled": 0, "expired": 0,
                },
            }),
        }
    }
}

fn text(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn number(id: &str) -> usize {
    id.rsplit('-').next().unwrap().parse().unwrap()
}

/// Returns the row that a request is for, from its text.
fn row_of(line: &Value) -> u64 {
    let text = line.to_string();
    let number = text.split("text ").nth(1).unwrap();
    number.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
}

#[async_trait]
impl Transport for Played {
    async fn send(&self, request: Request<Bytes>, _: Option<Time>) -> Result<Response<Body>, Fault> {
        let nth = {
            let mut state = self.state.lock().unwrap();
            state.requests += 1;
            state.requests - 1
        };
        let death = self.faults.lock().unwrap().death.filter(|(request, _)| *request == nth);
        if death.is_some_and(|(_, is_accepted)| !is_accepted) {
            self.died.notify_one();
            std::future::pending::<()>().await;
        }
        if self.api == Api::Anthropic {
            assert_eq!(request.headers()["anthropic-version"], "2023-06-01");
        }
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let (status, body) = self.respond(request.method(), path, query, request.body());
        if death.is_some() {
            self.died.notify_one();
            std::future::pending::<()>().await;
        }
        // Delays of the simulated clock do not yield.
        tokio::task::yield_now().await;
        self.clock.advance(Duration::from_millis(10));
        Ok(Response::builder().status(status).body(Body::from(body.into_bytes())).unwrap())
    }

    fn now(&self) -> Time {
        self.clock.now()
    }
}
