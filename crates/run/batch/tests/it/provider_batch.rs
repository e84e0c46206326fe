use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use formwork_anthropic::{Anthropic, AnthropicBatches};
use formwork_batch::{Batch, Control, Ended, Engine as _, ProviderBatch, Stop, View, open_files};
use formwork_core::{Cost, Price, SharedProvider};
use formwork_extract::{Backend, Budget, CancellationToken, Extractor};
use formwork_openai::{OpenAi, OpenAiBatches};
use formwork_testkit::each;
use formwork_wire::Http;
use formwork_wire::batch::{FileLimits, SharedBatchApi};
use serde_json::{Value, json};

use crate::played::{Api, Faults, Played, Reply};
use crate::store::{lines, rows, spec};

const APIS: [Api; 2] = [Api::OpenAi, Api::Anthropic];

/// Invalid completions for 30 % of the rows, and server errors for 10 %.
fn answer(row: u64, nth: u32) -> Reply {
    match row % 10 {
        3 | 6 if nth == 1 => Reply::Text(format!("{{\"number\": \"row {row}\"}}")),
        7 => Reply::Text(format!("no, for the {nth}. time")),
        5 if nth == 1 => Reply::Error(500, "the server is in trouble"),
        _ => Reply::Text(format!("{{\"number\": {row}}}")),
    }
}

fn right(row: u64, _: u32) -> Reply {
    Reply::Text(format!("{{\"number\": {row}}}"))
}

/// Returns the number of calls of a row.
fn expected_calls(row: u64) -> u32 {
    match row % 10 {
        7 => 3,
        3 | 5 | 6 => 2,
        _ => 1,
    }
}

fn engine(played: &Arc<Played>) -> ProviderBatch {
    let schema =
        json!({"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]});
    let (provider, api): (SharedProvider, SharedBatchApi) = match played.api {
        Api::OpenAi => {
            let wire = OpenAi::new("gpt-4o-mini").with_stream(false).with_dialects(["prompt"]);
            let api = OpenAiBatches::new(wire.clone(), Arc::clone(played) as _);
            (Arc::new(Http::new(wire, Arc::clone(played) as _)), Arc::new(api))
        }
        Api::Anthropic => {
            let wire = Anthropic::new("claude-sonnet-4-6").with_stream(false);
            let capabilities = formwork_core::Capabilities::default().with_dialect("prompt");
            let wire = wire.with_capabilities(capabilities);
            let api = AnthropicBatches::new(wire.clone(), Arc::clone(played) as _);
            (Arc::new(Http::new(wire, Arc::clone(played) as _)), Arc::new(api))
        }
    };
    let price = Price::new(1_000_000, 2_000_000).in_batch();
    let backend = Backend::new(provider).with_name("played").with_price(price);
    let builder = Extractor::for_document("answer", schema).with_target(backend);
    // The time at the provider does not count: each file takes longer than this.
    let extractor = builder.with_deadline(Duration::from_secs(20)).build().unwrap();
    ProviderBatch::new(extractor).with_target("played", api).with_clock(Arc::clone(&played.clock) as _)
}

fn of(requests: usize) -> FileLimits {
    FileLimits { requests, bytes: 1 << 20 }
}

/// Opens the batch of a folder, and works on it until the engine ends or the process dies (`None`).
async fn work(folder: &Path, engine: &ProviderBatch, played: &Played) -> Option<Ended> {
    let batch = Arc::new(Batch::open(folder).unwrap());
    let cancel = CancellationToken::new();
    tokio::select! {
        biased;
        ended = engine.run(Arc::clone(&batch) as _, &cancel) => {
            batch.close().unwrap();
            Some(ended.unwrap())
        }
        () = played.died.notified() => None,
    }
}

/// Creates a batch, and works on it to its end.
async fn whole(count: u64, requests: usize, played: &Arc<Played>) -> (tempfile::TempDir, Ended) {
    let folder = tempfile::tempdir().unwrap();
    drop(Batch::create(folder.path(), &spec(1000), rows(count)).unwrap());
    let ended = work(folder.path(), &engine(played).with_file_limits(of(requests)), played).await;
    (folder, ended.unwrap())
}

/// Asserts that each row has the result that its own answers lead to.
fn check(folder: &Path, count: u64) {
    let (values, rejected) = (lines(folder, "part-"), lines(folder, "rejected-"));
    let ids: Vec<&str> = values.iter().chain(&rejected).map(|line| line["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), ids.iter().collect::<BTreeSet<_>>().len());
    assert_eq!(ids.len() as u64, count);
    for line in &values {
        let row: u64 = line["id"].as_str().unwrap()[1..].parse().unwrap();
        assert_eq!(line["value"], json!({"number": row}));
        assert_eq!(line["calls"], expected_calls(row), "{line}");
    }
    for line in &rejected {
        let row: u64 = line["id"].as_str().unwrap()[1..].parse().unwrap();
        assert_eq!((row % 10, line["calls"].as_array().unwrap().len()), (7, 3), "{line}");
    }
}

#[tokio::test]
async fn rows_are_answered_in_rounds_at_half_the_price() {
    for api in APIS {
        let played = Played::new(api, answer, Faults::default());
        let (folder, ended) = whole(50, 20, &played).await;
        assert_eq!(ended, Ended::Done, "{api:?}");
        check(folder.path(), 50);
        let calls = played.calls();
        assert_eq!(calls, (0..50).map(|row| (row, expected_calls(row))).collect());
        // All rows, then those with a wrong answer or an error, then those that are never right.
        let sizes: Vec<usize> = played.submitted().iter().map(Vec::len).collect();
        assert_eq!(sizes, [20, 20, 10, 20, 5], "{api:?}");
        // 1,000 tokens at 0.5 and 500 at 1 US dollar for a million.
        let line = lines(folder.path(), "part-").into_iter().find(|line| line["id"] == "r3").unwrap();
        assert_eq!(line["cost"]["micro_usd"], 2000, "{line}");
    }
}

#[tokio::test]
async fn repairs_start_when_the_results_of_their_file_arrive() {
    for api in APIS {
        let played = Played::new(api, answer, Faults { slow: Some((1, 50)), ..Faults::default() });
        let (folder, ended) = whole(40, 20, &played).await;
        assert_eq!(ended, Ended::Done, "{api:?}");
        check(folder.path(), 40);
        assert_eq!(played.calls(), (0..40).map(|row| (row, expected_calls(row))).collect());
        // The second file takes longer than the repairs of the first one.
        let submitted = played.submitted();
        let of_first: Vec<bool> = submitted.iter().map(|rows| rows.iter().all(|row| *row < 20)).collect();
        assert_eq!(of_first, [true, false, true, true, false, false], "{api:?}: {submitted:?}");
    }
}

#[tokio::test]
async fn a_file_has_no_more_bytes_than_it_may() {
    for api in APIS {
        let played = Played::new(api, right, Faults::default());
        let folder = tempfile::tempdir().unwrap();
        let long = formwork_batch::Row::new("r30", format!("text 30 {}", "x".repeat(20_000)));
        let all = rows(30).into_iter().chain([Ok(long)]);
        drop(Batch::create(folder.path(), &spec(1000), all.collect::<Vec<_>>()).unwrap());
        let limits = FileLimits { requests: 1000, bytes: 8000 };
        let ended = work(folder.path(), &engine(&played).with_file_limits(limits), &played).await;
        assert_eq!(ended, Some(Ended::Done));
        let largest = played.state.lock().unwrap().largest;
        assert!((4000..=8000).contains(&largest), "{api:?}: {largest}");
        assert_eq!(lines(folder.path(), "part-").len(), 30);
        let rejected = lines(folder.path(), "rejected-");
        assert_eq!((rejected.len(), &rejected[0]["id"]), (1, &json!("r30")));
        assert!(rejected[0].to_string().contains("and a file at most 8000"), "{rejected:?}");
    }
}

#[test]
fn nothing_is_submitted_twice_whenever_the_process_dies() {
    each(APIS, |api| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(nothing_is_submitted_twice(api));
    });
}

async fn nothing_is_submitted_twice(api: Api) {
    let whole_run = Played::new(api, answer, Faults::default());
    whole(10, 6, &whole_run).await;
    let requests = whole_run.requests();
    assert!(requests > 12, "{requests}");
    for death in 0..requests {
        for is_accepted in [false, true] {
            let faults = Faults { death: Some((death, is_accepted)), ..Faults::default() };
            let played = Played::new(api, answer, faults);
            let folder = tempfile::tempdir().unwrap();
            drop(Batch::create(folder.path(), &spec(1000), rows(10)).unwrap());
            let engine = engine(&played).with_file_limits(of(6));
            assert_eq!(work(folder.path(), &engine, &played).await, None);
            let progress = View::open(folder.path()).unwrap().progress().unwrap();
            let made = u64::from(played.calls().values().sum::<u32>());
            assert!(
                progress.calls <= made && made <= progress.calls + progress.in_flight,
                "{api:?}, {death}, {is_accepted}: {made} calls, {progress:?}"
            );
            // The process dies, and the clock of the next one is behind.
            let ended = work(folder.path(), &engine, &played).await;
            assert_eq!(ended, Some(Ended::Done), "{api:?}, {death}, {is_accepted}");
            check(folder.path(), 10);
            let expected = (0..10).map(|row| (row, expected_calls(row))).collect();
            assert_eq!(played.calls(), expected, "{api:?}, {death}, {is_accepted}");
            let progress = View::open(folder.path()).unwrap().progress().unwrap();
            let counts = (progress.calls, progress.in_flight, progress.uncertain);
            assert_eq!(counts, (15, 0, 0), "{api:?}, {death}, {is_accepted}");
            let submitted: usize = played.submitted().iter().map(Vec::len).sum();
            assert_eq!(submitted, 15, "{api:?}, {death}, {is_accepted}");
        }
    }
}

#[tokio::test]
async fn rows_that_expire_are_called_again_and_their_calls_count_once() {
    for api in APIS {
        let faults = Faults { expired: (1, |row| row % 4 == 1), ..Faults::default() };
        let played = Played::new(api, answer, faults);
        let (folder, ended) = whole(40, 20, &played).await;
        assert_eq!(ended, Ended::Done, "{api:?}");
        check(folder.path(), 40);
        assert_eq!(played.calls(), (0..40).map(|row| (row, expected_calls(row))).collect());
    }
}

#[tokio::test]
async fn a_row_that_is_never_processed_is_rejected_if_others_are() {
    let faults = Faults { expired: (usize::MAX, |row| row == 4), ..Faults::default() };
    let played = Played::new(Api::OpenAi, right, faults);
    let (folder, ended) = whole(10, 20, &played).await;
    assert_eq!(ended, Ended::Done);
    let rejected = lines(folder.path(), "rejected-");
    assert_eq!((rejected.len(), &rejected[0]["id"]), (1, &json!("r4")));
    assert!(rejected[0]["error"]["message"].as_str().unwrap().contains("in 3 files"), "{rejected:?}");
    assert_eq!(played.submitted().len(), 3);

    // If the provider processes no request, no row has failed.
    let faults = Faults { expired: (3, |_| true), ..Faults::default() };
    let played = Played::new(Api::Anthropic, right, faults);
    let (folder, ended) = whole(10, 20, &played).await;
    assert!(matches!(ended, Ended::Unavailable(_)), "{ended:?}");
    let ended = work(folder.path(), &engine(&played), &played).await;
    assert_eq!((ended, lines(folder.path(), "part-").len()), (Some(Ended::Done), 10));
}

#[tokio::test]
async fn a_refusal_ends_the_batch_with_one_message_and_loses_nothing() {
    for (status, message) in
        [(401, "Incorrect API key provided"), (400, "Invalid file"), (403, "You have no access")]
    {
        for api in APIS {
            let played = Played::new(api, right, Faults::default());
            played.faults.lock().unwrap().refusal = Some((status, message));
            let (folder, ended) = whole(10, 20, &played).await;
            let Ended::Config(text) = &ended else { panic!("{ended:?}") };
            assert!(text.contains("the batch API of `played` failed") && text.contains(message), "{text}");
            assert_eq!(played.requests(), 1);
            played.faults.lock().unwrap().refusal = None;
            assert_eq!(work(folder.path(), &engine(&played), &played).await, Some(Ended::Done));
            check_right(folder.path(), 10);
        }
    }
}

fn check_right(folder: &Path, count: u64) {
    let values: Vec<Value> = lines(folder, "part-").iter().map(|line| line["value"].clone()).collect();
    assert_eq!(values, (0..count).map(|row| json!({"number": row})).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_file_that_is_refused_as_a_whole_ends_the_batch_unless_it_is_taken_later() {
    let failed = vec![("token_limit_exceeded", "Enqueued token limit reached"); 2];
    let played = Played::new(Api::OpenAi, right, Faults { failed, ..Faults::default() });
    let (folder, ended) = whole(10, 20, &played).await;
    assert_eq!((ended, played.submitted().len()), (Ended::Done, 3));
    check_right(folder.path(), 10);

    let failed = vec![("invalid_model", "The model `m` does not exist")];
    let played = Played::new(Api::OpenAi, right, Faults { failed, ..Faults::default() });
    let (folder, ended) = whole(10, 20, &played).await;
    let Ended::Config(text) = &ended else { panic!("{ended:?}") };
    assert!(text.contains("refused the file batch-0: The model `m` does not exist"), "{text}");
    assert_eq!(work(folder.path(), &engine(&played), &played).await, Some(Ended::Done));
    check_right(folder.path(), 10);
}

#[tokio::test]
async fn a_provider_that_is_down_is_waited_for_with_patience() {
    let played = Played::new(Api::OpenAi, right, Faults::default());
    played.faults.lock().unwrap().refusal = Some((503, "down for maintenance"));
    let (folder, ended) = whole(10, 20, &played).await;
    let Ended::Unavailable(text) = &ended else { panic!("{ended:?}") };
    assert!(text.contains("down for maintenance"), "{text}");
    assert!(played.requests() > 100, "one hour at a request in 30 s");
    played.faults.lock().unwrap().refusal = None;
    assert_eq!(work(folder.path(), &engine(&played), &played).await, Some(Ended::Done));
    assert_eq!(played.submitted().len(), 1);
}

#[tokio::test]
async fn a_target_without_a_batch_api_is_an_error_before_anything_is_sent() {
    let played = Played::new(Api::OpenAi, right, Faults::default());
    let schema = json!({"type": "object"});
    let model = Arc::new(formwork_testkit::Scripted::new(["{}"]));
    let extractor = Extractor::for_document("answer", schema).with_target(model).build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    drop(Batch::create(folder.path(), &spec(1000), rows(3)).unwrap());
    let Some(Ended::Config(text)) = work(folder.path(), &ProviderBatch::new(extractor), &played).await else {
        panic!("it ran")
    };
    assert!(text.starts_with("the provider `scripted` has no batch API"), "{text}");
}

#[tokio::test]
async fn a_pause_leaves_files_to_the_provider_and_a_cancel_takes_them_back() {
    for api in APIS {
        let faults = Faults { polls: u32::MAX, ..Faults::default() };
        let played = Played::new(api, right, faults);
        let folder = tempfile::tempdir().unwrap();
        drop(Batch::create(folder.path(), &spec(1000), rows(10)).unwrap());
        let engine = engine(&played).with_file_limits(of(5));
        for stop in [Stop::Paused, Stop::Cancelled] {
            let batch = Arc::new(Batch::open(folder.path()).unwrap());
            batch.view().set_control(Control::Run).unwrap();
            let cancel = CancellationToken::new();
            let run = engine.run(Arc::clone(&batch) as _, &cancel);
            let stopped = async {
                while played.state.lock().unwrap().batches.len() < 2 {
                    tokio::task::yield_now().await;
                }
                batch.view().set_control(Control::Stop(stop)).unwrap();
                std::future::pending::<Ended>().await
            };
            let ended = tokio::select! { ended = run => ended.unwrap(), ended = stopped => ended };
            assert_eq!(ended, Ended::Stopped(stop));
            // Another engine would pay for the rows of these batches again.
            assert_eq!(open_files(batch.view()).unwrap(), 2);
        }
        assert_eq!(played.submitted().len(), 2);
        let batch = Batch::open(folder.path()).unwrap();
        batch.retry().unwrap();
        drop(batch);
        played.faults.lock().unwrap().polls = 1;
        assert_eq!(work(folder.path(), &engine, &played).await, Some(Ended::Done));
        check_right(folder.path(), 10);
        assert_eq!(open_files(&View::open(folder.path()).unwrap()).unwrap(), 0);
        assert_eq!(played.calls(), (0..10).map(|row| (row, 1)).collect());
    }
}

#[tokio::test]
async fn a_budget_is_kept_over_files_and_processes() {
    let played = Played::new(Api::OpenAi, right, Faults::default());
    let folder = tempfile::tempdir().unwrap();
    drop(Batch::create(folder.path(), &spec(1000), rows(200)).unwrap());
    let budget = || Budget::new(Cost { tokens: u64::MAX, micro_usd: Some(400_000) });
    let own = budget();
    let engine_with = |budget: Budget| engine(&played).with_file_limits(of(50)).with_budget(budget);
    let ended = work(folder.path(), &engine_with(own.clone()), &played).await;
    let calls: u32 = played.calls().values().sum();
    match ended {
        Some(Ended::OverBudget(text)) => assert!(text.contains("the budget has no room"), "{text}"),
        Some(Ended::Done) => assert_eq!(calls, 200),
        other => panic!("{other:?}"),
    }
    assert!(own.spent().micro_usd.unwrap() <= 400_000);
    assert_eq!(own.spent().micro_usd, Some(u64::from(calls) * 1000));
}

/// The long form has 5,000 rows: `FORMWORK_CHAOS_ROWS=5000 cargo test --release -p formwork-batch --test it twenty_five_files`.
#[tokio::test]
async fn twenty_five_files_that_lose_rows_and_deaths_leave_one_result_for_each_row() {
    let count: u64 = std::env::var("FORMWORK_CHAOS_ROWS").map_or(500, |rows| rows.parse().unwrap());
    for api in APIS {
        let faults = Faults { expired: (1, |row| row % 20 == 1), ..Faults::default() };
        let played = Played::new(api, answer, faults);
        let folder = tempfile::tempdir().unwrap();
        drop(Batch::create(folder.path(), &spec(1000), rows(count)).unwrap());
        let engine = engine(&played).with_file_limits(of(usize::try_from(count.div_ceil(25)).unwrap()));
        for (death, is_accepted) in [(11, true), (24, false), (50, true), (75, false), (90, true)] {
            played.faults.lock().unwrap().death = Some((death, is_accepted));
            assert_eq!(work(folder.path(), &engine, &played).await, None, "{api:?}, {death}");
        }
        assert_eq!(work(folder.path(), &engine, &played).await, Some(Ended::Done));
        check(folder.path(), count);
        assert_eq!(played.calls(), (0..count).map(|row| (row, expected_calls(row))).collect());
        let (lost, all) =
            ((0..count).filter(|row| row % 20 == 1).count(), (0..count).map(expected_calls).sum::<u32>());
        let submitted: usize = played.submitted().iter().map(Vec::len).sum();
        assert_eq!(submitted, all as usize + lost, "a request without a result is submitted once more");
        assert!(played.submitted().len() > 25);
    }
}
