//! Batches on a played Restate.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use formwork_extract::CancellationToken;
use serde_json::{Value, json};

use super::provider::{Played, contract, extractor};
use super::server::{Later, Nowhere, Server};
use crate::restate::admin::{Admin, AdminError};
use crate::restate::{Pool, Restate};
use crate::{Batch, BatchError, Control, Ended, Engine as _, InProcess, Row, Spec, Stop, Store as _};

fn engine(server: &Arc<Server>) -> Restate {
    of(server, Pool::named("own", None).unwrap())
}

fn of(server: &Arc<Server>, pool: Pool) -> Restate {
    Restate::new(Arc::clone(server) as _, "http://restate:8080", pool, contract(), 4).with_ahead(4)
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
            for call in line["calls"].as_array_mut().into_iter().flatten() {
                (call["started"], call["ended"]) = (0.into(), 0.into());
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
        drop(batch);
        let batch = Arc::new(Batch::open(folder.path()).unwrap());
        // Submitted rows continue in Restate. This simulated server loses its open requests and keeps results only.
        let before = server.provider.calls();
        let progress = batch.view().progress().unwrap();
        assert!(before == 0 || progress.in_flight + progress.finished() > 0, "at {moment}: {progress:?}");
        let done = server.done.lock().await.len();
        assert_eq!(engine.run(batch.clone(), &none).await.unwrap(), Ended::Done);
        batch.close().unwrap();
        let progress = batch.view().progress().unwrap();
        assert_eq!((progress.finished(), progress.in_flight, progress.uncertain), (30, 0, 0));
        let keys = server.done.lock().await.len();
        assert_eq!(
            keys, 30,
            "at {moment}: each row has one key; {done} had a result and {before} calls were made"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn calls_of_workers_that_die_are_uncertain_in_the_store() {
    for (moment, made) in [(2, 0), (3, 30)] {
        let folder = tempfile::tempdir().unwrap();
        let server = Arc::new(Server { dies_at: Some(moment), ..Server::new() });
        let batch = batch(folder.path(), 30);
        assert_eq!(engine(&server).run(batch.clone(), &CancellationToken::new()).await.unwrap(), Ended::Done);
        let (progress, received) = (batch.view().progress().unwrap(), u64::from(server.provider.calls()));
        assert_eq!((progress.finished(), progress.in_flight, progress.uncertain), (30, 0, 30));
        assert_eq!(received, progress.calls + made);
        assert!(progress.uncertain_micro_usd > 30 * 15, "{progress:?}");
        assert_eq!(progress.reserved_micro_usd, 0);
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
        message.contains("no worker of the pool `own` is registered")
            && message.contains("formwork worker --listen"),
        "{message}"
    );
    let message = replies(Server { protocol: 0, ..Server::new() }).await;
    assert!(message.contains("older than this batch needs: start workers of version"), "{message}");

    let admin = Admin::new(Arc::new(Server::new()), "http://restate:9070");
    let error = admin.version().await.unwrap_err();
    assert!(matches!(error, AdminError::TooOld { .. }), "{error}");
    assert!(error.to_string().ends_with("older than 1.7: update the server"), "{error}");
    let error = admin.register("http://workers:9080").await.unwrap_err().to_string();
    assert!(error.contains("behind an address of their own"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn rows_reach_no_workers_of_another_pool_or_with_other_providers() {
    let own = json!({"model": "a"});
    for (pool, target, says) in [
        (Pool::named("other", None).unwrap(), None, "no worker of the pool `other` is registered"),
        (Pool::of(&own), None, "no worker of the pool `"),
        (
            Pool::named("own", Some(&own)).unwrap(),
            Some("x"),
            "the workers of the pool `own` at http://restate:8080 have other providers",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let server = Arc::new(Server { target: target.map(str::to_owned), ..Server::new() });
        let batch = batch(folder.path(), 3);
        let error =
            of(&server, pool).run(batch.clone(), &CancellationToken::new()).await.unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
        assert_eq!((server.provider.calls(), batch.view().progress().unwrap().open()), (0, 3));
    }
    // The workers with the settings of the batch take its rows, which carry the digest.
    let folder = tempfile::tempdir().unwrap();
    let pool = Pool::named("own", Some(&own)).unwrap();
    let server = Arc::new(Server { target: pool.target().map(str::to_owned), ..Server::new() });
    assert_eq!(
        of(&server, pool).run(batch(folder.path(), 3), &CancellationToken::new()).await.unwrap(),
        Ended::Done
    );
}

#[tokio::test(start_paused = true)]
async fn rows_are_submitted_ahead_and_the_oldest_are_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let server = Arc::new(Server::new());
    let batch = batch(folder.path(), 60);
    let engine = engine(&server).with_ahead(20);
    server.holds.store(true, Ordering::SeqCst);
    let submitted = async {
        while server.sent.lock().unwrap().len() < 16 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(server.sent.lock().unwrap().len(), 16, "20 rows are ahead, and 4 of them are waited for");
        let rows = |key: &String| key.rsplit('-').next().unwrap().parse::<u64>().unwrap();
        assert_eq!(
            server.sent.lock().unwrap().iter().map(rows).collect::<Vec<_>>(),
            (4..20).collect::<Vec<_>>()
        );
        server.holds.store(false, Ordering::SeqCst);
    };
    let none = CancellationToken::new();
    let (ended, ()) = tokio::join!(engine.run(batch.clone(), &none), submitted);
    assert_eq!(ended.unwrap(), Ended::Done);
    assert_eq!(server.waited.lock().unwrap().0, 4);
    assert_eq!(server.done.lock().await.len(), 60, "each row has one key");
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_goes_on_waits_for_its_workers() {
    let folder = tempfile::tempdir().unwrap();
    let batch = batch(folder.path(), 12);
    let server = Arc::new(Server::new());
    let (none, later) =
        (CancellationToken::new(), |away: usize| Later { server: Arc::clone(&server), away: away.into() });
    let of = |away: usize| {
        let pool = Pool::named("own", None).unwrap();
        Restate::new(Arc::new(later(away)), "http://restate:8080", pool, contract(), 4).with_ahead(4)
    };
    let ended = of(1).run(batch.clone(), &none).await.unwrap();
    assert!(matches!(ended, Ended::Unavailable(_)), "a new batch does not wait: {ended:?}");
    // The first process is stopped once it has a result.
    let (cancel, engine) = (CancellationToken::new(), of(0));
    let stops = async {
        while batch.view().progress().unwrap().finished() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        server.holds.store(true, Ordering::SeqCst);
        cancel.cancel();
    };
    let (ended, ()) = tokio::join!(engine.run(batch.clone(), &cancel), stops);
    assert_eq!(ended.unwrap(), Ended::Interrupted);
    server.holds.store(false, Ordering::SeqCst);
    let ended = of(1000).run(batch.clone(), &none).await.unwrap();
    assert!(matches!(ended, Ended::Unavailable(_)), "it waits for its patience: {ended:?}");
    assert_eq!(of(20).run(batch.clone(), &none).await.unwrap(), Ended::Done);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_not_there_leaves_all_rows_open() {
    let folder = tempfile::tempdir().unwrap();
    let batch = batch(folder.path(), 3);
    let engine = Restate::new(
        Arc::new(Nowhere),
        "http://restate:8080",
        Pool::named("own", None).unwrap(),
        contract(),
        4,
    );
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
    // Calls of the cancelled rows may have been made.
    assert_eq!(handles(&batch).await, [const { None }; 10]);
    assert_eq!(batch.view().progress().unwrap().uncertain, 4);
    batch.retry().unwrap();
    assert_eq!(engine.run(batch.clone(), &none).await.unwrap(), Ended::Done);
    assert_eq!(server.done.lock().await.len(), 30);
}

/// The handles of the calls of the first ten open rows.
async fn handles(batch: &Arc<Batch>) -> Vec<Option<String>> {
    batch.open_rows(None, 10).await.unwrap().into_iter().map(|row| row.handle).collect()
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
