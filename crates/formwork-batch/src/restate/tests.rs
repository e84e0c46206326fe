//! Rows whose worker dies at any moment, and batches whose Restate is a played one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use formwork_core::{
    Answer, Call, Capabilities, Completion, ErrorKind, Fault, FaultKind, Policy, Provider, SharedProvider,
    Time, Usage,
};
use formwork_extract::{Backend, CancellationToken, Extractor, TokioClock};
use formwork_wire::http::{Request, Response, StatusCode};
use formwork_wire::{Body, Bytes, Transport};
use futures_util::future::BoxFuture;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::admin::{Admin, AdminError};
use super::entry::{Entry, MAX_ENTRY, resume};
use super::message::{Hello, PROTOCOL, RowReply, RowRequest, RunEnd, digest};
use super::row::{Calls, Durable, row};
use super::slots::{Slots, Take};
use super::{Restate, start_anew};
use crate::halt::one_step;
use crate::{Batch, BatchError, Control, Ended, Engine as _, InProcess, Row, Spec, Stop};

/// A provider that answers by the number in the text and by how often it was asked, and keeps a record of its calls.
#[derive(Debug, Default)]
struct Played {
    capabilities: Capabilities,
    calls: Mutex<HashMap<u64, u32>>,
}

impl Played {
    fn calls(&self) -> u32 {
        self.calls.lock().unwrap().values().sum()
    }
}

#[async_trait]
impl Provider for Played {
    fn name(&self) -> &str {
        "played"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn call(&self, call: &Call) -> Result<Answer, Fault> {
        let text = call.messages.iter().map(|message| message.text()).collect::<String>();
        let number = text.split("text ").nth(1).unwrap();
        let number: u64 = number.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap();
        let nth = {
            let mut calls = self.calls.lock().unwrap();
            let nth = calls.entry(number).or_default();
            *nth += 1;
            *nth
        };
        tokio::time::sleep(Duration::from_millis(20)).await;
        let text = match number % 10 {
            3 | 6 if nth == 1 => format!("{{\"number\": \"{number}\"}}"),
            7 => format!("no, for the {nth}. time"),
            8 => format!("{{\"number\": {number}, \"pad\": \"{}\"}}", "x".repeat(MAX_ENTRY)),
            5 if nth == 1 => return Err(Fault::new(FaultKind::Unreachable, "closed")),
            _ => format!("{{\"number\": {number}}}"),
        };
        let completion = Completion::new(text).with_usage(Usage::new(10, 5));
        Ok(Answer::new(stream::iter(completion.into_deltas().map(Ok).collect::<Vec<_>>())))
    }
}

fn contract() -> Value {
    let schema =
        json!({"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]});
    json!({"schema": schema})
}

fn extractor(provider: &Arc<Played>) -> Extractor<Value> {
    let backend = Backend::new(Arc::clone(provider) as SharedProvider);
    let mut policy = Policy::default();
    policy.attempts = 3;
    policy.backoff.waits = vec![5000];
    let schema = contract()["schema"].clone();
    Extractor::for_document("answer", schema).with_policy(policy).with_target(backend).build().unwrap()
}

fn calls() -> Calls {
    Calls { clock: TokioClock::new(), permits: Arc::new(Semaphore::new(8)), slots: None }
}

fn request(number: u64) -> RowRequest {
    let contract = digest(&contract());
    RowRequest { protocol: PROTOCOL, contract, input: format!("text {number}"), run: None, stored: Time(0) }
}

/// The journal of one row. It dies at one moment of its life, before it carries a step out, or before it keeps its entry.
#[derive(Default)]
struct Journal {
    kept: Mutex<Vec<String>>,
    at: AtomicUsize,
    /// The moments that have passed.
    moments: AtomicUsize,
    dies_at: Option<usize>,
}

#[derive(Debug, PartialEq)]
struct Died;

impl Journal {
    fn live(&self) -> Result<(), Died> {
        let moment = self.moments.fetch_add(1, Ordering::SeqCst);
        if Some(moment) == self.dies_at { Err(Died) } else { Ok(()) }
    }

    /// Returns the stored result of the next step, if it was carried out before.
    fn again(&self) -> Option<String> {
        let at = self.at.fetch_add(1, Ordering::SeqCst);
        self.kept.lock().unwrap().get(at).cloned()
    }

    fn keep(&self, entry: String) {
        self.kept.lock().unwrap().push(entry);
    }
}

#[async_trait]
impl Durable for Journal {
    type Error = Died;

    async fn step(&self, work: BoxFuture<'static, Entry>) -> Result<Entry, Died> {
        if let Some(entry) = self.again() {
            return Ok(serde_json::from_str(&entry).unwrap());
        }
        self.live()?;
        let entry = work.await;
        self.live()?;
        self.keep(serde_json::to_string(&entry).unwrap());
        Ok(entry)
    }

    async fn sleep(&self, _: Duration) -> Result<(), Died> {
        if self.again().is_none() {
            self.live()?;
            self.keep("null".to_owned());
        }
        Ok(())
    }
}

/// The value, or the class of the error.
fn result_of(end: &RunEnd) -> Result<Value, ErrorKind> {
    match end {
        RunEnd::Accepted(outcome) => Ok(outcome.value.clone()),
        RunEnd::Failed(error) => Err(error.kind),
    }
}

#[tokio::test(start_paused = true)]
async fn a_row_whose_worker_dies_at_any_moment_has_the_result_of_one_that_lives() {
    for number in 0..8 {
        let provider = Arc::new(Played::default());
        let undisturbed = Journal::default();
        let reply = row(&undisturbed, &extractor(&provider), &calls(), request(number)).await.unwrap();
        let (moments, needed) = (undisturbed.moments.into_inner(), provider.calls() as usize);
        assert!(needed == reply.end.attempts().len() && moments >= 2 * needed);
        for death in 0..moments {
            let provider = Arc::new(Played::default());
            let mut journal = Journal { dies_at: Some(death), ..Journal::default() };
            let died = row(&journal, &extractor(&provider), &calls(), request(number)).await;
            assert_eq!(died, Err(Died), "row {number} at {death}");
            // Another worker has its own extractor, and shares only the journal.
            (journal.dies_at, journal.at) = (None, AtomicUsize::new(0));
            let again = row(&journal, &extractor(&provider), &calls(), request(number)).await.unwrap();
            assert_eq!(
                (again.restarted, result_of(&again.end)),
                (false, result_of(&reply.end)),
                "row {number} at {death}"
            );
            // At most one call was in flight, or had an answer that was not stored.
            let repeated = provider.calls() as usize - again.end.attempts().len();
            assert!(repeated <= 1, "row {number} at {death}: {repeated} calls are not in the result");
        }
    }
}

#[tokio::test]
async fn an_entry_has_neither_the_input_nor_earlier_calls_and_gives_the_same_run() {
    let provider = Arc::new(Played::default());
    let extractor = extractor(&provider);
    let mut run = extractor.extraction(format!("text 7 {}", "long ".repeat(10_000))).into_parts().1;
    for call in 1..3 {
        let after = one_step(extractor.continued(run.clone()).unwrap()).await.unwrap();
        let Entry::Going { run: kept, .. } = Entry::going(&run, &after, Time(5)) else {
            panic!("it goes on")
        };
        let text = kept.to_string();
        assert!(
            text.len() < 10_000 && text.matches("no, for the").count() >= 1,
            "call {call}: {}",
            text.len()
        );
        assert!(!text.contains("long long"));
        assert_eq!(kept["ledger"].as_array().unwrap().len(), 1);
        let read = serde_json::from_str(&text).unwrap();
        assert_eq!(resume(&run, read).unwrap(), after);
        run = after;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_too_long_for_a_step_rejects_its_row() {
    let provider = Arc::new(Played::default());
    let journal = Journal::default();
    let reply = row(&journal, &extractor(&provider), &calls(), request(8)).await.unwrap();
    assert_eq!(result_of(&reply.end), Err(ErrorKind::Rejected));
    assert!(serde_json::to_vec(&reply).unwrap().len() < 100_000);
}

#[tokio::test(start_paused = true)]
async fn a_run_of_other_settings_starts_over() {
    let (provider, other) = (Arc::new(Played::default()), Arc::new(Played::default()));
    let schema = contract()["schema"].clone();
    let elsewhere =
        Extractor::for_document("other", schema).with_target(Arc::clone(&other) as SharedProvider);
    let run = one_step(elsewhere.build().unwrap().extraction("text 7")).await.unwrap();
    let begun = RowRequest { run: Some(Box::new(run)), ..request(1) };
    let reply = row(&Journal::default(), &extractor(&provider), &calls(), begun).await.unwrap();
    assert_eq!((reply.restarted, result_of(&reply.end)), (true, Ok(json!({"number": 1}))));
}

/// A Restate with one worker that never dies: it carries each key out once, and fails in the ways of a server that restarts.
#[derive(Debug)]
struct Server {
    provider: Arc<Played>,
    protocol: u32,
    has_worker: bool,
    done: tokio::sync::Mutex<HashMap<String, String>>,
    requests: AtomicUsize,
    cancelled: AtomicUsize,
    /// Whether no row ends.
    holds: AtomicBool,
    contracts: Mutex<Vec<String>>,
    /// The next slot of the target.
    next: tokio::sync::Mutex<Option<tokio::time::Instant>>,
}

impl Server {
    fn new() -> Self {
        Self {
            provider: Arc::default(),
            protocol: PROTOCOL,
            has_worker: true,
            done: tokio::sync::Mutex::default(),
            requests: AtomicUsize::new(0),
            cancelled: AtomicUsize::new(0),
            holds: AtomicBool::new(false),
            contracts: Mutex::default(),
            next: tokio::sync::Mutex::default(),
        }
    }

    async fn answer(&self, path: &str, key: Option<String>, body: &[u8]) -> (u16, String) {
        match path {
            "/restate/health" => (200, "{}".to_owned()),
            _ if !self.has_worker => (404, json!({"message": "service not found"}).to_string()),
            "/FormworkRow/hello" => {
                let hello = Hello { protocol: self.protocol, ..Hello::own() };
                (200, serde_json::to_string(&hello).unwrap())
            }
            "/FormworkRow/run" => {
                if self.requests.fetch_add(1, Ordering::SeqCst) % 5 == 4 {
                    return (503, json!({"message": "not yet"}).to_string());
                }
                while self.holds.load(Ordering::SeqCst) {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                let mut done = self.done.lock().await;
                let key = key.unwrap();
                if let Some(reply) = done.get(&key) {
                    return (200, reply.clone());
                }
                let request: RowRequest = serde_json::from_slice(body).unwrap();
                assert!(self.contracts.lock().unwrap().contains(&request.contract));
                let reply: Result<RowReply, Died> =
                    row(&Journal::default(), &extractor(&self.provider), &calls(), request).await;
                let reply = serde_json::to_string(&reply.unwrap()).unwrap();
                done.insert(key, reply.clone());
                (200, reply)
            }
            "/FormworkRow/run/send" => (202, json!({"invocationId": key}).to_string()),
            "/FormworkRow/cancel" => {
                let ids: Vec<String> = serde_json::from_slice(body).unwrap();
                self.cancelled.fetch_add(ids.len(), Ordering::SeqCst);
                (200, "null".to_owned())
            }
            "/FormworkPace/played/take" => {
                let take: Take = serde_json::from_slice(body).unwrap();
                let (mut next, now) = (self.next.lock().await, tokio::time::Instant::now());
                let slot = next.unwrap_or(now).max(now);
                *next = Some(slot + Duration::from_secs_f64(f64::from(take.count) / take.calls_per_second));
                (200, (slot - now).as_millis().to_string())
            }
            "/version" => (200, json!({"version": "1.5.9"}).to_string()),
            "/deployments" => (409, json!({"message": "exists"}).to_string()),
            path => {
                let digest = path.trim_start_matches("/FormworkContract/").trim_end_matches("/put");
                assert_eq!(digest, super::message::digest(&serde_json::from_slice(body).unwrap()));
                self.contracts.lock().unwrap().push(digest.to_owned());
                (200, "null".to_owned())
            }
        }
    }
}

#[async_trait]
impl Transport for Server {
    async fn send(&self, request: Request<Bytes>, _: Option<Time>) -> Result<Response<Body>, Fault> {
        let path = request.uri().path().to_owned();
        let key = request.headers().get("idempotency-key").map(|key| key.to_str().unwrap().to_owned());
        let (status, body) = self.answer(&path, key, request.body()).await;
        let mut response = Response::new(Body::from(body.into_bytes()));
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        Ok(response)
    }

    fn now(&self) -> Time {
        Time(0)
    }
}

fn engine(server: &Arc<Server>) -> Restate {
    Restate::new(Arc::clone(server) as _, "http://restate:8080", contract(), 4)
}

fn batch(folder: &std::path::Path, count: u64) -> Arc<Batch> {
    let row = |number: u64| Ok(Row::new(format!("r{number}"), format!("text {number}")));
    Arc::new(
        Batch::create(folder, &Spec::new(contract(), "rows"), (0..count).map(row).collect::<Vec<_>>())
            .unwrap(),
    )
}

/// The files of results, times left out.
fn results(batch: &Batch) -> Vec<String> {
    ["part-00001.jsonl", "rejected-00001.jsonl"]
        .iter()
        .flat_map(|name| {
            let text = std::fs::read_to_string(batch.view().folder().join(name)).unwrap_or_default();
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines
        })
        .map(|line| {
            let mut line: Value = serde_json::from_str(&line).unwrap();
            for attempt in line["attempts"].as_array_mut().into_iter().flatten() {
                (attempt["started"], attempt["ended"]) = (0.into(), 0.into());
            }
            line.to_string()
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn the_results_are_those_of_the_engine_in_this_process() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let none = CancellationToken::new();
    let server = Arc::new(Server::new());
    let on_restate = batch(there.path(), 38);
    assert_eq!(engine(&server).run(on_restate.clone(), &none).await.unwrap(), Ended::Done);
    on_restate.close().unwrap();
    let in_process = batch(here.path(), 38);
    let provider = Arc::new(Played::default());
    let direct = InProcess::new(extractor(&provider), 4);
    // The long answers of rows that end with 8 exceed the size limit of journal entries only.
    assert_eq!(direct.run(in_process.clone(), &none).await.unwrap(), Ended::Done);
    in_process.close().unwrap();
    let is_bounded = |line: &String| ["r8\"", "r18\"", "r28\""].iter().any(|id| line.contains(id));
    let (mut ours, mut theirs) = (results(&on_restate), results(&in_process));
    ours.retain(|line| !is_bounded(line));
    theirs.retain(|line| !is_bounded(line));
    assert_eq!(ours, theirs);
    assert_eq!(ours.len(), 35);
    assert_eq!(server.provider.calls(), provider.calls());
}

#[tokio::test(start_paused = true)]
async fn a_submitting_process_that_dies_gets_the_results_of_what_continued_without_it() {
    for moment in [1, 30, 90, 200, 400] {
        let folder = tempfile::tempdir().unwrap();
        let server = Arc::new(Server::new());
        let batch = batch(folder.path(), 30);
        let (engine, none) = (engine(&server), CancellationToken::new());
        let first = engine.run(batch.clone(), &none);
        assert!(tokio::time::timeout(Duration::from_millis(moment), first).await.is_err());
        // Submitted rows continue in Restate. This simulated server loses its open requests and keeps results only.
        let before = server.provider.calls();
        let done = server.done.lock().await.len();
        assert_eq!(engine.run(batch.clone(), &none).await.unwrap(), Ended::Done);
        batch.close().unwrap();
        assert_eq!(batch.view().progress().unwrap().finished(), 30);
        let keys = server.done.lock().await.len();
        assert_eq!(
            keys, 30,
            "at {moment}: each row has one key; {done} had a result and {before} calls were made"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn bad_input_is_one_message_each_with_its_remedy() {
    let replies = |server: Server| async move {
        let folder = tempfile::tempdir().unwrap();
        match engine(&Arc::new(server)).run(batch(folder.path(), 3), &CancellationToken::new()).await {
            Err(BatchError::Engine(message)) => message,
            other => panic!("{other:?}"),
        }
    };
    let message = replies(Server { has_worker: false, ..Server::new() }).await;
    assert!(
        message.contains("no worker is registered") && message.contains("formwork worker --listen"),
        "{message}"
    );
    let message = replies(Server { protocol: 0, ..Server::new() }).await;
    assert!(message.contains("older than this batch needs: start workers of version"), "{message}");

    let admin = Admin::new(Arc::new(Server::new()), "http://restate:9070");
    let error = admin.version().await.unwrap_err();
    assert!(matches!(error, AdminError::TooOld { .. }), "{error}");
    assert!(error.to_string().ends_with("older than 1.6: update the server"), "{error}");
    let error = admin.register("http://workers:9080").await.unwrap_err().to_string();
    assert!(error.contains("behind an address of their own"), "{error}");
    let error = admin.contract("1 OR 1").await.unwrap_err();
    assert!(matches!(error, AdminError::NoContract { .. }), "{error}");
}

/// A server that is not there.
#[derive(Debug)]
struct Nowhere;

#[async_trait]
impl Transport for Nowhere {
    async fn send(&self, _: Request<Bytes>, _: Option<Time>) -> Result<Response<Body>, Fault> {
        Err(Fault::new(FaultKind::Unreachable, "nothing listens"))
    }

    fn now(&self) -> Time {
        Time(0)
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_not_there_leaves_all_rows_open() {
    let folder = tempfile::tempdir().unwrap();
    let batch = batch(folder.path(), 3);
    let engine = Restate::new(Arc::new(Nowhere), "http://restate:8080", contract(), 4);
    let ended = engine.run(batch.clone(), &CancellationToken::new()).await.unwrap();
    assert!(matches!(&ended, Ended::Unavailable(message) if message.contains("--ingress")), "{ended:?}");
    assert_eq!(batch.view().progress().unwrap().finished(), 0);
    let admin = Admin::new(Arc::new(Nowhere), "http://restate:9070");
    assert!(matches!(admin.version().await, Err(AdminError::Unreachable { .. })));
}

#[tokio::test(start_paused = true)]
async fn cancelled_rows_are_cancelled_in_restate_and_have_other_keys_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let server = Arc::new(Server::new());
    let batch = batch(folder.path(), 30);
    let (engine, none) = (engine(&server), CancellationToken::new());
    server.holds.store(true, Ordering::SeqCst);
    let cancelled = async {
        while server.requests.load(Ordering::SeqCst) < 4 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        batch.view().set_control(Control::Stop(Stop::Cancelled)).unwrap();
    };
    let (ended, ()) = tokio::join!(engine.run(batch.clone(), &none), cancelled);
    assert_eq!(ended.unwrap(), Ended::Stopped(Stop::Cancelled));
    assert_eq!(server.cancelled.load(Ordering::SeqCst), 4);
    server.holds.store(false, Ordering::SeqCst);
    let era = || batch.view().note("restate").unwrap().unwrap()["era"].as_u64();
    assert_eq!(era(), Some(1));
    start_anew(batch.view()).unwrap();
    assert_eq!(era(), Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_budget_stops_further_rows() {
    let folder = tempfile::tempdir().unwrap();
    let server = Arc::new(Server::new());
    let batch = batch(folder.path(), 30);
    // The targets of the simulated worker have no price, and a budget of 0 is exhausted from the start.
    let engine = engine(&server).with_budget(0);
    let ended = engine.run(batch.clone(), &CancellationToken::new()).await.unwrap();
    assert!(matches!(ended, Ended::OverBudget(_)), "{ended:?}");
    assert_eq!(server.provider.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn workers_share_the_pace_of_a_target() {
    for (rate, workers) in [(0.5, 2), (7.0, 3), (100.0, 3), (2500.0, 5)] {
        let server = Arc::new(Server::new());
        let begun = tokio::time::Instant::now();
        let calls = 5 * (rate as usize) + 10;
        let slots: Vec<_> = (0..workers)
            .map(|_| Slots::new(super::ingress::Client(Arc::clone(&server) as _), rate))
            .collect();
        let mut times = Vec::new();
        let waits = (0..calls).map(|call| {
            let slots = slots.get(call % workers).unwrap();
            async move {
                slots.wait("played").await;
                tokio::time::Instant::now()
            }
        });
        times.extend(futures_util::future::join_all(waits).await);
        times.sort();
        // No window of one second has more calls than the rate and one lease of each worker.
        let most = rate.ceil() as usize + workers * ((rate / 10.0) as usize + 1);
        for (nth, time) in times.iter().enumerate() {
            let within =
                times.iter().skip(nth).take_while(|other| **other - *time < Duration::from_secs(1)).count();
            assert!(within <= most, "{rate}: {within} calls in a second");
        }
        let took = begun.elapsed().as_secs_f64();
        assert!(took > 0.7 * calls as f64 / rate - 1.0, "{rate}: {took} s for {calls} calls");
    }
}
