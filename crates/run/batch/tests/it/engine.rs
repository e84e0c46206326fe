use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use formwork_batch::{
    Batch, BatchError, Control, Ended, Engine, Identified, InProcess, MaxFailures, OpenRow, Pace, Progress,
    RejectedLine, ResultLine, RowEnd, RowState, Stop, Store, View,
};
use formwork_core::{
    Answer, Backoff, Call, Capabilities, Completion, Connection, Cost, Fault, FaultKind, Layer, Policy,
    Price, Provider, SharedProvider, Usage,
};
use formwork_extract::{Backend, Budget, CancellationToken, Extractor};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::store::{lines, rows, spec};

/// A provider that answers by the number in the text, and keeps a record of its calls.
#[derive(Debug, Default)]
pub(crate) struct Played {
    capabilities: Capabilities,
    calls: Mutex<HashMap<u64, u32>>,
    open: AtomicU64,
    max_open: AtomicU64,
}

/// The behaviour of the provider at the nth call of a row.
fn answer(row: u64, nth: u32) -> Result<String, Fault> {
    match row % 10 {
        3 | 6 if nth == 1 => Ok(format!("{{\"number\": \"row {row}\"}}")),
        7 => Ok(format!("no, for the {nth}. time")),
        5 if nth == 1 => Err(Fault::new(FaultKind::Unreachable, "closed")),
        _ => Ok(format!("{{\"number\": {row}}}")),
    }
}

/// Returns the number of calls of a row without a crash.
fn expected_calls(row: u64) -> u32 {
    match row % 10 {
        7 => 3,
        3 | 5 | 6 => 2,
        _ => 1,
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
        let row = number.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap();
        let nth = {
            let mut calls = self.calls.lock().unwrap();
            let nth = calls.entry(row).or_default();
            *nth += 1;
            *nth
        };
        let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
        self.max_open.fetch_max(open, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(1)).await;
        self.open.fetch_sub(1, Ordering::SeqCst);
        let completion = Completion::new(answer(row, nth)?).with_usage(Usage::new(10, 5));
        Ok(Answer::new(stream::iter(completion.into_deltas().map(Ok).collect::<Vec<_>>())))
    }
}

pub(crate) fn extractor(provider: &Arc<Played>, adapt: impl FnOnce(Backend) -> Backend) -> Extractor<Value> {
    extractor_within(provider, None, adapt)
}

fn extractor_within(
    provider: &Arc<Played>,
    deadline: Option<Duration>,
    adapt: impl FnOnce(Backend) -> Backend,
) -> Extractor<Value> {
    let schema =
        json!({"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]});
    let backend =
        Backend::new(Arc::clone(provider) as SharedProvider).with_price(Price::new(1_000_000, 1_000_000));
    let mut policy = Policy::default();
    policy.attempts = 3;
    policy.backoff = Backoff::of_seconds(&[0.001]);
    let builder = Extractor::for_document("answer", schema).with_policy(policy).with_target(adapt(backend));
    match deadline {
        Some(deadline) => builder.with_deadline(deadline),
        None => builder,
    }
    .build()
    .unwrap()
}

fn check(folder: &std::path::Path, count: u64) {
    let mut found: HashMap<u64, u32> = HashMap::new();
    for line in lines(folder, "part-") {
        let number = line["value"]["number"].as_u64().unwrap();
        assert_eq!(line["id"], format!("r{number}"), "crossed");
        *found.entry(number).or_default() += 1;
    }
    for line in lines(folder, "rejected-") {
        let number: u64 = line["id"].as_str().unwrap()[1..].parse().unwrap();
        assert_eq!((number % 10, line["calls"].as_array().unwrap().len()), (7, 3));
        *found.entry(number).or_default() += 1;
    }
    assert_eq!(found.len() as u64, count, "lost");
    assert!(found.values().all(|times| *times == 1), "doubled");
}

#[tokio::test(start_paused = true)]
async fn every_row_ends_once_and_takes_the_calls_that_it_needs() {
    let folder = tempfile::tempdir().unwrap();
    let provider = Arc::new(Played::default());
    let batch = Arc::new(Batch::create(folder.path(), &spec(7), rows(100)).unwrap());
    let engine = InProcess::new(extractor(&provider, |backend| backend), 8);
    assert_eq!(engine.run(batch.clone(), &CancellationToken::new()).await.unwrap(), Ended::Done);
    batch.close().unwrap();
    check(folder.path(), 100);
    let calls = provider.calls.lock().unwrap();
    assert!(calls.iter().all(|(row, calls)| *calls == expected_calls(*row)), "{calls:?}");
    let progress = batch.view().progress().unwrap();
    let all: u32 = (0..100).map(expected_calls).sum();
    assert_eq!((progress.calls, progress.accepted, progress.rejected), (u64::from(all), 90, 10));
    assert_eq!((progress.begun, progress.reasons), (0, [("rejected (json)".to_owned(), 10)].into()));
    // A failed call costs nothing.
    assert_eq!((progress.micro_usd, progress.unpriced), (15 * u64::from(all - 10), 0));
    assert!(provider.max_open.load(Ordering::SeqCst) <= 8);
}

/// The schema of the lines that a program writes, with every object closed.
fn closed<T: schemars::JsonSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    schema["unevaluatedProperties"] = json!(false);
    schema
}

#[tokio::test]
async fn each_line_of_a_result_is_described_by_its_schema() {
    let folder = tempfile::tempdir().unwrap();
    let mut source = rows(20);
    source.push(Err(formwork_batch::BadRow {
        id: Value::Null,
        message: "rows.jsonl:21: no object".to_owned(),
    }));
    let batch = Arc::new(Batch::create(folder.path(), &spec(7), source).unwrap());
    let engine = InProcess::new(extractor(&Arc::default(), |backend| backend), 8);
    engine.run(batch.clone(), &CancellationToken::new()).await.unwrap();
    batch.close().unwrap();
    let schemas = [
        ("part-", 18, closed::<Identified<ResultLine<'static>>>()),
        ("rejected-", 3, closed::<Identified<RejectedLine<'static>>>()),
    ];
    for (kind, count, schema) in &schemas {
        let lines = lines(folder.path(), kind);
        assert_eq!(lines.len(), *count);
        for line in &lines {
            jsonschema::validate(schema, line).unwrap_or_else(|error| panic!("{kind}: {error} in {line}"));
            let mut other = line.clone();
            other["more"] = json!(1);
            assert!(jsonschema::validate(schema, &other).is_err());
            other.as_object_mut().unwrap().retain(|name, _| name != "id" && name != "more");
            assert!(jsonschema::validate(schema, &other).is_err());
        }
    }
}

/// A process that dies: its future is dropped and its memory is lost.
#[tokio::test]
async fn whenever_a_process_dies_nothing_is_lost_or_doubled_and_only_open_calls_are_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let provider = Arc::new(Played::default());
    drop(Batch::create(folder.path(), &spec(10), rows(200)).unwrap());
    let mut deaths = 0;
    loop {
        let batch = Arc::new(Batch::open(folder.path()).unwrap());
        let engine = InProcess::new(extractor(&provider, |backend| backend), 8);
        let token = CancellationToken::new();
        let run = engine.run(batch.clone(), &token);
        // Each process runs a little longer than the one before, so that every state is interrupted once.
        let life = Duration::from_micros(2000 * (deaths + 1));
        match tokio::time::timeout(life, run).await {
            Ok(ended) => {
                assert_eq!(ended.unwrap(), Ended::Done);
                batch.close().unwrap();
                break;
            }
            Err(_) => deaths += 1,
        }
    }
    check(folder.path(), 200);
    let calls = provider.calls.lock().unwrap();
    let repeated: u32 = calls.iter().map(|(row, calls)| calls - expected_calls(*row).min(*calls)).sum();
    assert!(deaths > 1 && u64::from(repeated) <= 8 * deaths, "{repeated} repeated calls, {deaths} deaths");
    assert!(calls.iter().all(|(row, calls)| *calls >= expected_calls(*row)));
    // Each call left after its intent was written, so the calls that are not known to have been paid for are bounded.
    let made: u64 = calls.values().map(|calls| u64::from(*calls)).sum();
    let progress = View::open(folder.path()).unwrap().progress().unwrap();
    let (known, most) = (progress.calls, progress.calls + progress.uncertain);
    assert!(known <= made && made <= most, "{known} known, {made} made, {} uncertain", progress.uncertain);
    assert!(progress.uncertain > 0 && progress.uncertain_micro_usd > 0 && progress.in_flight == 0);
}

#[tokio::test]
async fn a_stop_finishes_what_is_open_and_an_interrupt_leaves_it() {
    for (want, ended) in [
        (Control::Stop(Stop::Paused), Ended::Stopped(Stop::Paused)),
        (Control::Stop(Stop::Cancelled), Ended::Stopped(Stop::Cancelled)),
        (Control::Run, Ended::Interrupted),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let provider = Arc::new(Played::default());
        let batch = Arc::new(Batch::create(folder.path(), &spec(10), rows(5000)).unwrap());
        let engine = InProcess::new(extractor(&provider, |backend| backend), 4);
        let token = CancellationToken::new();
        let run = engine.run(batch.clone(), &token);
        let stop = async {
            while batch.view().progress().unwrap().accepted < 20 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            View::open(folder.path()).unwrap().set_control(want).unwrap();
            if want == Control::Run {
                token.cancel();
            }
        };
        let (run, ()) = tokio::join!(run, stop);
        assert_eq!(run.unwrap(), ended);
        batch.close().unwrap();
        let progress = batch.view().progress().unwrap();
        // A dropped call is uncertain while the process still has the batch.
        assert!(progress.open() > 0 && progress.in_flight == 0, "{progress:?}");
        let results = lines(folder.path(), "part-").len() + lines(folder.path(), "rejected-").len();
        assert_eq!(results as u64, progress.finished());
    }
}

#[tokio::test(start_paused = true)]
async fn rows_wait_for_the_budget_of_the_batch_instead_of_ending_it() {
    // The budget allows a few reservations at a time, in the end only one, or all of them.
    for reserved in [1_500, 100_000] {
        let folder = tempfile::tempdir().unwrap();
        let provider = Arc::new(Played::default());
        let batch = Arc::new(Batch::create(folder.path(), &spec(7), rows(100)).unwrap());
        let all: u32 = (0..100).map(expected_calls).sum();
        let budget = Budget::new(Cost { tokens: u64::MAX, micro_usd: Some(15 * u64::from(all) + reserved) });
        let engine = InProcess::new(extractor(&provider, |backend| backend.with_budget(budget)), 8);
        assert_eq!(engine.run(batch.clone(), &CancellationToken::new()).await.unwrap(), Ended::Done);
        batch.close().unwrap();
        check(folder.path(), 100);
        assert!(reserved > 1_500 || provider.max_open.load(Ordering::SeqCst) < 8);
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_passes_while_a_row_waits_for_the_budget_is_no_fault_of_the_row() {
    let folder = tempfile::tempdir().unwrap();
    let provider = Arc::new(Played::default());
    let batch = Arc::new(Batch::create(folder.path(), &spec(7), rows(3)).unwrap());
    let limit = Cost { tokens: u64::MAX, micro_usd: Some(10_000) };
    let budget = Budget::new(limit);
    // Another program uses the whole budget for ten deadlines.
    let other = budget.reserve(Cost { tokens: 0, ..limit }).unwrap();
    let second = Some(Duration::from_secs(1));
    let engine =
        InProcess::new(extractor_within(&provider, second, |backend| backend.with_budget(budget)), 3);
    let release = async {
        tokio::time::sleep(Duration::from_millis(10_500)).await;
        other.settle(Cost::default());
    };
    let token = CancellationToken::new();
    // The clock of the test goes on while something is written, so this store writes nothing before a call.
    let store = Arc::new(Slow { batch: Arc::clone(&batch), permits: Semaphore::new(3) });
    let (ended, ()) = tokio::join!(engine.run(store, &token), release);
    assert_eq!(ended.unwrap(), Ended::Done);
    batch.close().unwrap();
    let progress = batch.view().progress().unwrap();
    assert_eq!((progress.accepted, progress.calls), (3, 3), "{progress:?}");
}

#[tokio::test]
async fn a_budget_and_too_many_failures_stop_the_batch_and_leave_the_other_rows_open() {
    let folder = tempfile::tempdir().unwrap();
    let provider = Arc::new(Played::default());
    let batch = Arc::new(Batch::create(folder.path(), &spec(10), rows(1000)).unwrap());
    let budget = Budget::new(Cost { tokens: u64::MAX, micro_usd: Some(10_000) });
    let own = budget.clone();
    let engine = InProcess::new(extractor(&provider, |backend| backend.with_budget(own)), 4);
    let ended = engine.run(batch.clone(), &CancellationToken::new()).await.unwrap();
    assert!(matches!(ended, Ended::OverBudget(_)), "{ended:?}");
    let progress = batch.view().progress().unwrap();
    assert!(progress.micro_usd <= 10_000 && progress.open() > 0, "{progress:?}");

    batch.stop_at(MaxFailures::Rows(2));
    let engine = InProcess::new(extractor(&provider, |backend| backend), 4);
    let ended = engine.run(batch.clone(), &CancellationToken::new()).await.unwrap();
    assert!(matches!(ended, Ended::Stopped(Stop::TooManyFailures) | Ended::Done), "{ended:?}");
}

/// A provider that is down.
#[derive(Debug, Default)]
struct Down {
    capabilities: Capabilities,
    kind: Option<FaultKind>,
}

#[async_trait]
impl Provider for Down {
    fn name(&self) -> &str {
        "down"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn call(&self, _: &Call) -> Result<Answer, Fault> {
        Err(Fault::new(self.kind.unwrap_or(FaultKind::Unreachable), "nobody listens"))
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_provider_all_rows_stay_open_and_the_batch_says_so() {
    for kind in [FaultKind::Unreachable, FaultKind::Overloaded] {
        let folder = tempfile::tempdir().unwrap();
        let batch = Arc::new(Batch::create(folder.path(), &spec(10), rows(50)).unwrap());
        let down = Down { kind: Some(kind), ..Down::default() };
        let extractor = Extractor::for_document("answer", json!({"type": "object"}))
            .with_target(Arc::new(down))
            .build()
            .unwrap();
        let ended = InProcess::new(extractor, 8).run(batch.clone(), &CancellationToken::new()).await.unwrap();
        assert!(
            matches!(&ended, Ended::Unavailable(message) if message.contains("nobody listens")),
            "{ended:?}"
        );
        assert_eq!(batch.view().progress().unwrap().open(), 50);
    }
}

/// A provider that answers some calls, fails the next sixty, and answers again.
#[derive(Debug)]
struct Outage {
    answered: usize,
    fault: Fault,
    capabilities: Capabilities,
    calls: AtomicUsize,
}

#[async_trait]
impl Provider for Outage {
    fn name(&self) -> &str {
        "restarting"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn call(&self, _: &Call) -> Result<Answer, Fault> {
        if (self.answered..self.answered + 60).contains(&self.calls.fetch_add(1, Ordering::SeqCst)) {
            return Err(self.fault.clone());
        }
        Ok(Answer::new(futures_util::stream::iter(Completion::new("{}").into_deltas().map(Ok))))
    }
}

/// Returns the end of a batch of three rows more than an outage's target answers before it, its accepted and open rows, and the calls.
async fn through_an_outage(answered: usize, fault: Fault) -> (Ended, u64, u64, usize) {
    let folder = tempfile::tempdir().unwrap();
    let batch = Arc::new(Batch::create(folder.path(), &spec(10), rows(3 + answered as u64)).unwrap());
    let (capabilities, calls) = (Capabilities::default(), AtomicUsize::new(0));
    let provider = Arc::new(Outage { answered, fault, capabilities, calls });
    let extractor = Extractor::for_document("answer", json!({"type": "object"}))
        .with_target(Arc::clone(&provider) as SharedProvider)
        .build()
        .unwrap();
    let engine = InProcess::new(extractor, 1).with_patience(Duration::from_secs(86_400));
    let ended = engine.run(batch.clone(), &CancellationToken::new()).await.unwrap();
    let progress = batch.view().progress().unwrap();
    (ended, progress.accepted, progress.open(), provider.calls.load(Ordering::SeqCst))
}

/// The outage may be there from the start. A batch ends soon only if its first rows show what waiting does not mend.
#[tokio::test(start_paused = true)]
async fn a_batch_waits_for_its_only_target_rejects_no_row_for_the_outage_and_continues() {
    for (kind, connection, waits) in [
        (FaultKind::Unreachable, Some(Connection::Failed), true),
        (FaultKind::Unreachable, Some(Connection::Broken), true),
        (FaultKind::Unreachable, None, true),
        (FaultKind::Overloaded, None, true),
        (FaultKind::Timeout, None, true),
        (FaultKind::RateLimited, None, true),
        (FaultKind::Unreachable, Some(Connection::NoAddress), false),
        (FaultKind::BadWire, Some(Connection::Failed), false),
        (FaultKind::Auth, None, false),
        (FaultKind::NoCredit, None, false),
    ] {
        let mut fault = Fault::new(kind, "nobody listens");
        fault.connection = connection;
        let (ended, accepted, open, calls) = through_an_outage(0, fault).await;
        match waits {
            true => assert_eq!((&ended, accepted, open), (&Ended::Done, 3, 0), "{kind:?} {connection:?}"),
            false => {
                assert!(matches!(ended, Ended::Unavailable(_)), "{kind:?} {connection:?}: {ended:?}");
                assert!(accepted == 0 && open == 3 && calls <= 12, "{kind:?} {connection:?}: {calls}");
            }
        }
    }
    let refused = Fault::new(FaultKind::Unreachable, "nobody listens").with_connection(Connection::Failed);
    // Each of the three rows that are left is tried five times during the outage, with three retries each.
    assert_eq!(through_an_outage(2, refused).await, (Ended::Done, 5, 0, 65));
}

#[tokio::test]
async fn the_pace_opens_as_many_rows_as_the_target_takes() {
    let folder = tempfile::tempdir().unwrap();
    let provider = Arc::new(Played::default());
    let batch = Arc::new(Batch::create(folder.path(), &spec(100), rows(600)).unwrap());
    let pace = Pace::new(64);
    let wrapped = pace.wrap(Arc::clone(&provider) as SharedProvider);
    let schema = json!({"type": "object", "properties": {"number": {"type": "integer"}}});
    let extractor =
        Extractor::for_document("answer", schema).with_target(Backend::new(wrapped)).build().unwrap();
    let engine = InProcess::new(extractor, 20).with_paces([pace.clone()]);
    engine.run(batch, &CancellationToken::new()).await.unwrap();
    let open = provider.max_open.load(Ordering::SeqCst);
    assert!((9..=20).contains(&open), "{open}");
}

/// A store that keeps every result waiting until it has a permit.
struct Slow {
    batch: Arc<Batch>,
    permits: Semaphore,
}

#[async_trait]
impl Store for Slow {
    async fn open_rows(&self, after: Option<u64>, max: usize) -> Result<Vec<OpenRow>, BatchError> {
        self.batch.open_rows(after, max).await
    }

    async fn rows_among(&self, numbers: &[u64]) -> Result<Vec<OpenRow>, BatchError> {
        self.batch.rows_among(numbers).await
    }

    async fn checkpoint(&self, row: u64, state: RowState) -> Result<(), BatchError> {
        self.batch.checkpoint(row, state).await
    }

    async fn finish(&self, row: u64, end: RowEnd) -> Result<(), BatchError> {
        self.permits.acquire().await.unwrap().forget();
        self.batch.finish(row, end).await
    }

    async fn control(&self) -> Result<Control, BatchError> {
        Ok(Control::Run)
    }

    async fn progress(&self) -> Result<Progress, BatchError> {
        self.batch.progress().await
    }

    async fn note(&self, key: &str) -> Result<Option<Value>, BatchError> {
        self.batch.note(key).await
    }

    async fn set_note(&self, key: &str, value: Value) -> Result<(), BatchError> {
        self.batch.set_note(key, value).await
    }
}

#[tokio::test]
async fn a_quarter_more_rows_start_while_results_are_stored() {
    for (open, started) in [(1, 1), (3, 3), (4, 5), (8, 10)] {
        let folder = tempfile::tempdir().unwrap();
        let provider = Arc::new(Played::default());
        let batch = Arc::new(Batch::create(folder.path(), &spec(100), rows(30)).unwrap());
        let store = Arc::new(Slow { batch: Arc::clone(&batch), permits: Semaphore::new(0) });
        let engine = InProcess::new(extractor(&provider, |backend| backend), open);
        let (cancel, shared) = (CancellationToken::new(), Arc::clone(&store));
        let run = engine.run(shared as _, &cancel);
        tokio::pin!(run);
        assert!(tokio::time::timeout(Duration::from_secs(1), &mut run).await.is_err());
        assert_eq!(provider.calls.lock().unwrap().len(), started, "{open} open");
        store.permits.add_permits(30);
        assert_eq!(run.await.unwrap(), Ended::Done);
        batch.close().unwrap();
        check(folder.path(), 30);
    }
}
