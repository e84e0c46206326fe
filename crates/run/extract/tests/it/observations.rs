use std::sync::Arc;
use std::time::Duration;

use formwork_core::*;
use formwork_extract::{Backend, Extractor, ObservationStore};
use formwork_testkit::{Reply, Scripted, VirtualClock};
use serde_json::{Value, json};

use crate::support::*;

const NO: FaultKind = FaultKind::SchemaRefused;

/// A backend with three output modes: OpenAI's dialect, any JSON object, and the prompt.
fn ladder(model: &Arc<Scripted>) -> Backend {
    let dialects = ["openai", "json-object", "prompt"];
    dialects.iter().fold(Backend::from(Arc::clone(model)), |backend, name| {
        backend.with_mode(formwork_dialect::dialect(name).unwrap())
    })
}

fn on(
    model: &Arc<Scripted>,
    schema: &Value,
    store: &ObservationStore,
) -> (Extractor<Value>, Arc<VirtualClock>) {
    let clock = Arc::new(VirtualClock::starting_at(Time(1_000)));
    let extractor = Extractor::for_document("thing", schema.clone())
        .with_target(ladder(model))
        .with_observation_store(store.clone())
        .with_clock(clock.clone())
        .build()
        .unwrap();
    (extractor, clock)
}

async fn dialects(extractor: &Extractor<Value>) -> Vec<String> {
    let outcome = extractor.extract(TEXT).await.unwrap();
    outcome.calls.into_iter().map(|call| call.dialect).collect()
}

fn thing() -> Value {
    json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false})
}

#[tokio::test]
async fn what_was_refused_once_is_not_called_again() {
    let model = Arc::new(Scripted::new([NO.into(), NO.into(), Reply::text(r#"{"a": 1}"#)]));
    let (extractor, clock) = on(&model, &thing(), &ObservationStore::new());
    assert_eq!(dialects(&extractor).await, ["openai", "json-object", "prompt"]);
    assert_eq!(dialects(&extractor.clone()).await, ["prompt"], "clones share what was learnt");
    let outcome = extractor.stream(TEXT).outcome().await.unwrap();
    assert_eq!(outcome.calls[0].dialect, "prompt", "a stream is driven alike");
    clock.advance(Duration::from_secs(3601));
    assert_eq!(dialects(&extractor).await, ["openai"], "after an hour it is tried again");
}

#[tokio::test]
async fn a_refused_parameter_of_sampling_is_omitted_for_an_hour() {
    let refused = Fault::new(FaultKind::BadRequest, "`seed` is not supported").with_status(400);
    let model = Arc::new(Scripted::new([Reply::fault(refused), Reply::text(r#"{"a": 1}"#)]));
    let (extractor, clock) = on(&model, &thing(), &ObservationStore::new());
    let skipped = async |seed: u64| {
        let outcome = extractor.extract(Input::new([TEXT]).with_seed(seed)).await.unwrap();
        outcome.calls.into_iter().map(|call| call.skipped).collect::<Vec<_>>()
    };
    assert_eq!(skipped(1).await, [vec![], vec!["seed".to_owned()]]);
    assert_eq!(skipped(2).await, [vec!["seed".to_owned()]], "known from the start");
    clock.advance(Duration::from_secs(3601));
    assert_eq!(skipped(3).await, [Vec::<String>::new()], "after an hour it is tried again");
}

#[tokio::test]
async fn a_refusal_is_about_one_schema_and_one_target() {
    let store = ObservationStore::new();
    let model = Arc::new(Scripted::new([NO.into(), Reply::text(r#"{"a": 1}"#)]));
    assert_eq!(dialects(&on(&model, &thing(), &store).0).await, ["openai", "json-object"]);
    assert_eq!(dialects(&on(&model, &thing(), &store).0).await, ["json-object"], "extractors share it");
    let other = json!({"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]});
    assert_eq!(dialects(&on(&model, &other, &store).0).await, ["openai"]);
    let elsewhere = Arc::new(Scripted::new([r#"{"a": 1}"#]).with_name("elsewhere"));
    assert_eq!(dialects(&on(&elsewhere, &thing(), &store).0).await, ["openai"]);
    assert_eq!(dialects(&on(&model, &thing(), &ObservationStore::new()).0).await, ["openai"]);
    store.forget(None);
    assert_eq!(dialects(&on(&model, &thing(), &store).0).await, ["openai"]);
}

#[tokio::test]
async fn one_impossible_document_changes_the_mode_of_its_own_run_alone() {
    let store = ObservationStore::new();
    let model = Arc::new(Scripted::new([r#"{"b": 1}"#, r#"{"a": 1}"#]));
    let (extractor, _) = on(&model, &thing(), &store);
    let outcome = extractor.extract(TEXT).await.unwrap();
    let observation = outcome.calls[0].observation.as_ref().unwrap();
    assert_eq!((observation.kind, observation.dialect.as_str()), (ObservationKind::Ignored, "openai"));
    assert_eq!(outcome.calls[1].dialect, "json-object", "the next attempt is asked in another mode");
    assert_eq!(dialects(&extractor).await, ["openai"]);
    assert!(store.in_force_at(Time(1_000)).is_empty());
}

#[tokio::test]
async fn targets_of_one_name_are_distinguished() {
    let first = Arc::new(Scripted::new([NO.into(), Reply::from(FaultKind::Auth)]));
    let second = Arc::new(Scripted::new([r#"{"a": 1}"#]));
    let extractor = Extractor::for_document("thing", thing())
        .with_target(ladder(&first))
        .with_target(ladder(&second))
        .build()
        .unwrap();
    assert_eq!(dialects(&extractor).await, ["openai", "json-object", "openai"]);
    assert_eq!(dialects(&extractor).await, ["json-object", "openai"]);
}

#[tokio::test]
async fn a_memory_stays_small() {
    let store = ObservationStore::new();
    for nth in 0..300 {
        let model = Arc::new(Scripted::new([NO.into(), Reply::text(r#"{"a": 1}"#)]));
        let schema = json!({"description": format!("{nth}"), "type": "object"});
        on(&model, &schema, &store).0.extract(TEXT).await.unwrap();
    }
    assert_eq!(store.in_force_at(Time(1_000)).len(), 256);
}

/// Returns an extractor for a list of strings, with an observation store in a file.
fn listing(model: &Arc<Scripted>, identity: Option<&str>, file: &std::path::Path) -> Extractor<Value> {
    let schema = json!({
        "type": "object", "properties": {"list": {"type": "array", "items": {"type": "string"}}}, "required": ["list"]
    });
    let backend = Backend::from(Arc::clone(model))
        .with_mode(formwork_dialect::dialect("llama-cpp").unwrap())
        .with_default_max_tokens(512)
        .with_observation_store(ObservationStore::with_file(file));
    let backend = match identity {
        Some(identity) => backend.with_identity(identity),
        None => backend,
    };
    Extractor::for_document("list", schema).with_target(backend).build().unwrap()
}

/// Returns whether the list was bounded, for each call so far.
fn bounded(model: &Scripted) -> Vec<bool> {
    let calls = model.calls();
    calls
        .iter()
        .map(|call| !call.lowered.schema.as_ref().unwrap()["properties"]["list"]["maxItems"].is_null())
        .collect()
}

#[tokio::test]
async fn who_ran_away_is_bounded_in_later_processes_until_two_documents_are_complete() {
    let file = std::env::temp_dir().join(format!("formwork-run-away-{}.jsonl", std::process::id()));
    // An answer that does not repeat itself would be continued.
    let cut = || Reply::truncated(format!(r#"{{"list": [{}"a"#, r#""a", "#.repeat(9)));
    let right = || Reply::text(r#"{"list": ["a"]}"#);
    let many = |n: usize| Reply::text(json!({"list": vec!["a"; n]}).to_string());

    let model = Arc::new(Scripted::new([cut(), right()]));
    listing(&model, Some("it"), &file).extract(TEXT).await.unwrap();
    assert_eq!(bounded(&model), [false, true]);
    // A later process knows the observation, but not for another target or for a target without an identity.
    for (identity, expected) in [(Some("it"), true), (Some("another"), false), (None, false)] {
        let model = Arc::new(Scripted::new([right()]));
        listing(&model, identity, &file).extract(TEXT).await.unwrap();
        assert_eq!(bounded(&model), [expected], "{identity:?}");
    }
    // After a list that fills its bound, the next call has no bound. Two complete answers without bounds end the observation, and
    // bounds exceed the longest complete answer.
    for _ in 0..2 {
        let model = Arc::new(Scripted::new([right()]));
        listing(&model, Some("it"), &file).extract(TEXT).await.unwrap();
        let schema = model.calls()[0].lowered.schema.clone().unwrap();
        let max = schema["properties"]["list"]["maxItems"].as_u64().unwrap() as usize;
        let model = Arc::new(Scripted::new([many(max), many(100)]));
        let outcome = listing(&model, Some("it"), &file).extract(TEXT).await.unwrap();
        assert_eq!(outcome.value["list"].as_array().unwrap().len(), 100);
        assert_eq!(bounded(&model), [true, false]);
    }
    let model = Arc::new(Scripted::new([right()]));
    listing(&model, Some("it"), &file).extract(TEXT).await.unwrap();
    assert_eq!(bounded(&model), [false]);
    std::fs::remove_file(file).unwrap();
}

/// Returns an extractor with both targets in this order and a shared store.
fn pair(
    down: &Arc<Scripted>,
    up: &Arc<Scripted>,
    store: &ObservationStore,
) -> (Extractor<Value>, Arc<VirtualClock>) {
    let clock = Arc::new(VirtualClock::starting_at(Time(1_000)));
    let extractor = Extractor::for_document("thing", thing())
        .with_target(ladder(down))
        .with_target(ladder(up).with_name("backup"))
        .with_observation_store(store.clone())
        .with_clock(clock.clone())
        .build()
        .unwrap();
    (extractor, clock)
}

/// Finding C1.
#[tokio::test]
async fn a_target_that_is_down_costs_one_call_and_then_none_until_it_may_be_back() {
    let down = Arc::new(Scripted::new([Reply::from(FaultKind::Unreachable), Reply::text(r#"{"a": 1}"#)]));
    let up = Arc::new(Scripted::new([r#"{"a": 2}"#]));
    let store = ObservationStore::new();
    let (extractor, clock) = pair(&down, &up, &store);
    for _ in 0..3 {
        assert_eq!(extractor.extract(TEXT).await.unwrap().value, json!({"a": 2}));
    }
    assert_eq!((down.calls().len(), clock.waits().len()), (1, 0));
    // Another extractor knows the outage too, and after 30 s the target is called again.
    let (another, clock) = pair(&down, &up, &store);
    assert_eq!(another.extract(TEXT).await.unwrap().value, json!({"a": 2}));
    clock.advance(Duration::from_secs(31));
    assert_eq!(another.extract(TEXT).await.unwrap().value, json!({"a": 1}));
}

/// A model that never answers.
#[derive(Debug)]
struct Hanging(Arc<Scripted>, Arc<VirtualClock>);

#[async_trait::async_trait]
impl Provider for Hanging {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn capabilities(&self) -> &Capabilities {
        self.0.capabilities()
    }

    async fn call(&self, call: &Call) -> Result<Answer, Fault> {
        if let Some(deadline) = call.deadline {
            self.1.sleep_until(deadline).await;
        }
        self.0.call(call).await
    }
}

#[tokio::test]
async fn a_short_deadline_of_the_callers_blames_no_target_and_a_long_one_does() {
    let slow = Fault::new(FaultKind::Timeout, "too slow");
    let (short, long) = (Duration::from_millis(10), Duration::from_secs(60));
    for (deadline, blamed) in [(None, true), (Some(short), false), (Some(long), true)] {
        let model = Arc::new(Scripted::new([Reply::fault(slow.clone())]));
        let (store, clock) = (ObservationStore::new(), Arc::new(VirtualClock::starting_at(Time(1_000))));
        let hanging = Arc::new(Hanging(Arc::clone(&model), clock.clone()));
        let mut builder = Extractor::for_document("thing", thing())
            .with_target(Backend::from(hanging).with_mode(formwork_dialect::dialect("prompt").unwrap()))
            .with_policy(Policy::new(1).with_backoff(Backoff::none()))
            .with_observation_store(store.clone())
            .with_clock(clock);
        if let Some(deadline) = deadline {
            builder = builder.with_deadline(deadline);
        }
        let extractor = builder.build().unwrap();
        // Three time-outs are an outage.
        for _ in 0..3 {
            extractor.extract(TEXT).await.unwrap_err();
        }
        let up = Arc::new(Scripted::new([r#"{"a": 2}"#]));
        let before = model.calls().len();
        pair(&model, &up, &store).0.extract(TEXT).await.unwrap();
        assert_eq!(model.calls().len() == before, blamed, "{deadline:?}");
    }
}

/// Finding H13.
#[test]
fn a_long_file_of_evidence_is_read_at_once_and_old_lines_are_no_error() {
    let file = std::env::temp_dir().join(format!("formwork-evidence-{}.jsonl", std::process::id()));
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64;
    let line = |target: &str, nth: u64| {
        let shown = Shown::RanAway { reason: "the limit of tokens".to_owned(), longest: Size::default() };
        let evidence = Evidence::new(target, format!("{nth}"), Time(now), shown).with_request(nth);
        serde_json::to_string(&evidence).unwrap() + "\n"
    };
    let old: String = (0..20_000)
        .map(|nth| format!("{{\"target\":\"a\",\"schema\":\"{nth}\",\"ran_away\":true,\"at\":1}}\n"))
        .collect();
    std::fs::write(&file, old + "no JSON\n" + &line("a", 1) + &line("b", 2)).unwrap();
    let in_force = |file: &std::path::Path| {
        let found = ObservationStore::with_file(file).in_force();
        found.into_iter().map(|one| one.target).collect::<Vec<_>>()
    };
    assert_eq!(in_force(&file), ["a", "b"]);
    assert!(std::fs::read_to_string(&file).unwrap().lines().count() <= 1_000, "old lines are removed");
    ObservationStore::with_file(&file).forget(Some("a"));
    assert_eq!(in_force(&file), ["b"]);
    ObservationStore::with_file(&file).forget(None);
    assert!(in_force(&file).is_empty());
    std::fs::remove_file(file).unwrap();
}

#[test]
fn a_file_that_one_process_appends_to_stays_short() {
    let file = std::env::temp_dir().join(format!("formwork-appended-{}.jsonl", std::process::id()));
    drop(std::fs::remove_file(&file));
    let model = Arc::new(Scripted::new(["{}"]));
    let extractor = Extractor::for_document("thing", thing()).with_target(ladder(&model)).build().unwrap();
    let store = ObservationStore::with_file(&file);
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64;
    for nth in 0..2_100 {
        let shown = Shown::Impossible { reason: "scripted".to_owned() };
        let mut evidence = Evidence::new("it", "schema", Time(now), shown).with_request(nth);
        evidence.has_identity = true;
        store.record(extractor.plan(), &[evidence]);
    }
    let lines = std::fs::read_to_string(&file).unwrap().lines().count();
    assert!((1_000..2_000).contains(&lines), "{lines} lines");
    std::fs::remove_file(file).unwrap();
}

/// Each store has a handle of its own to the file, like another process.
#[test]
fn no_line_is_lost_while_others_rewrite_the_file() {
    const LINES: u64 = 300;
    let file = std::env::temp_dir().join(format!("formwork-rewritten-{}.jsonl", std::process::id()));
    drop(std::fs::remove_file(&file));
    let model = Arc::new(Scripted::new(["{}"]));
    let extractor = Extractor::for_document("thing", thing()).with_target(ladder(&model)).build().unwrap();
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64;
    let done = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (store, plan, done) = (ObservationStore::with_file(&file), extractor.plan(), &done);
            scope.spawn(move || {
                for nth in 0..LINES {
                    let shown = Shown::Impossible { reason: "scripted".to_owned() };
                    let request = writer * LINES + nth;
                    let mut evidence = Evidence::new("it", "schema", Time(now), shown).with_request(request);
                    evidence.has_identity = true;
                    store.record(plan, &[evidence]);
                }
                done.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            });
        }
        for _ in 0..2 {
            let (store, done) = (ObservationStore::with_file(&file), &done);
            scope.spawn(move || {
                while done.load(std::sync::atomic::Ordering::SeqCst) < 2 {
                    store.forget(Some("none of the targets"));
                }
            });
        }
    });
    let lines = std::fs::read_to_string(&file).unwrap().lines().count();
    assert_eq!(lines as u64, 2 * LINES);
    std::fs::remove_file(file).unwrap();
}

#[tokio::test]
async fn later_processes_skip_a_target_that_is_down_and_try_it_again_by_the_clock() {
    let file = std::env::temp_dir().join(format!("formwork-outage-{}.jsonl", std::process::id()));
    drop(std::fs::remove_file(&file));
    let began = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64 - 300_000;
    let right = || Reply::text("{\"a\": 1}");
    let first = Arc::new(Scripted::new([FaultKind::Unreachable.into(), right(), right()]));
    let backup = Arc::new(Scripted::new(["{\"a\": 1}"; 3]));
    // Each line is a process: the seconds since the beginning, and the calls of the two targets until then.
    for (seconds, calls) in [(0, (1, 1)), (10, (1, 2)), (40, (2, 2)), (41, (3, 2))] {
        let clock = Arc::new(VirtualClock::starting_at(Time(began + seconds * 1_000)));
        let targets = [(&first, "first"), (&backup, "backup")];
        let builder = Extractor::for_document("thing", thing())
            .with_clock(clock)
            .with_observation_store(ObservationStore::with_file(&file));
        let builder = targets.into_iter().fold(builder, |builder, (model, name)| {
            builder.with_target(ladder(model).with_name(name).with_identity(name))
        });
        builder.build().unwrap().extract(TEXT).await.unwrap();
        assert_eq!((first.calls().len(), backup.calls().len()), calls, "after {seconds} s");
    }
    std::fs::remove_file(file).unwrap();
}
