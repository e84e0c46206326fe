use std::time::Duration;

use formwork_ledger::{Error, Ledger, NewKey, ReserveError, RunQuery, Settings};
use rusqlite::Connection;

use crate::given::{NOW, retried, with_bodies};

/// The size of an empty ledger plus a number of bytes.
fn room_for(more: u64) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    drop(Ledger::open(&path, Settings::default()).unwrap());
    std::fs::metadata(&path).unwrap().len() + more
}

#[test]
fn a_full_file_sheds_bodies_first_then_runs_and_counts_both_while_spending_continues() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let max_bytes = Some(room_for(200_000));
    let ledger = Ledger::open(&path, Settings { max_bytes, ..with_bodies() }).unwrap();
    let (key, _) = ledger.add_key(NewKey { budget: Some(1_000_000), ..NewKey::new("k") }, NOW).unwrap();
    let mut recorded = 0;
    let mut is_order_kept = true;
    for _ in 0..60 {
        for _ in 0..10 {
            let mut run = retried(NOW);
            run.request = Some("x".repeat(2000));
            ledger.record(run);
            recorded += 1;
        }
        ledger.flush_blocking().unwrap();
        ledger.reserve_blocking(key.id, 10, None, NOW).unwrap().settle_blocking(9).unwrap();
        let health = ledger.health();
        assert_eq!(health.recorded + health.shed_runs, recorded);
        is_order_kept &= health.shed_runs == 0 || health.shed_bodies > 0;
    }
    let health = ledger.health();
    assert!(is_order_kept, "bodies go before runs");
    assert!(health.shed_bodies > 0 && health.shed_runs > 0 && health.recorded > 0, "{health:?}");
    assert!(health.last_error.as_deref().is_some_and(|error| error.contains("full")), "{health:?}");
    assert_eq!(ledger.keys().unwrap()[0].spent, 60 * 9);
    let mut stored = Vec::new();
    assert_eq!(ledger.export(&RunQuery::default(), &mut stored).unwrap(), health.recorded);

    let all = formwork_ledger::Prune { runs: Some(formwork_core::Time(u64::MAX)), ..Default::default() };
    ledger.prune(all).unwrap();
    ledger.record(retried(NOW));
    ledger.flush_blocking().unwrap();
    let after = ledger.health();
    assert_eq!((after.recorded, after.last_error), (health.recorded + 1, None));
    ledger.close();
    assert_eq!(integrity(&path), "ok");
}

fn integrity(path: &std::path::Path) -> String {
    Connection::open(path).unwrap().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap()
}

#[test]
fn a_full_queue_sheds_bodies_first_then_runs() {
    let settings =
        Settings { group_size: 1_000_000, max_queued: 50, max_queued_bytes: 20_000, ..with_bodies() };
    let ledger = Ledger::in_memory(settings).unwrap();
    for _ in 0..80 {
        let mut run = retried(NOW);
        run.request = Some("x".repeat(1000));
        ledger.record(run);
    }
    let health = ledger.health();
    assert_eq!((health.queued, health.shed_runs), (50, 30));
    ledger.flush_blocking().unwrap();
    let health = ledger.health();
    let mut exported = Vec::new();
    ledger.export(&RunQuery::default(), &mut exported).unwrap();
    let with_bodies = String::from_utf8(exported).unwrap().matches("\"request\":").count() as u64;
    assert_eq!((health.recorded, health.queued), (50, 0));
    assert_eq!(with_bodies + health.shed_bodies, 50);
    assert!(with_bodies > 10, "{with_bodies}");
}

#[test]
fn a_body_that_is_too_long_is_omitted_and_counted() {
    let ledger = Ledger::in_memory(Settings { max_body: 100, ..with_bodies() }).unwrap();
    for length in [100, 101] {
        let mut run = retried(NOW);
        run.request = Some("x".repeat(length));
        let id = run.id;
        ledger.record(run);
        ledger.flush_blocking().unwrap();
        let stored = ledger.run(id).unwrap().unwrap();
        assert_eq!((stored.request.is_some(), stored.calls[0].answer.is_some()), (length == 100, true));
    }
    assert_eq!(ledger.health().shed_bodies, 1);
}

#[test]
fn while_spending_cannot_be_written_it_is_counted_in_memory_and_written_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let ledger = Ledger::open(&path, Settings::default()).unwrap();
    let (key, _) = ledger.add_key(NewKey { budget: Some(100), ..NewKey::new("k") }, NOW).unwrap();
    let hold = ledger.reserve_blocking(key.id, 40, None, NOW).unwrap();
    // Another program makes every write of spending fail.
    let other = Connection::open(&path).unwrap();
    other
        .execute_batch("CREATE TRIGGER broken BEFORE UPDATE ON key BEGIN SELECT RAISE(FAIL, 'broken'); END")
        .unwrap();
    assert!(matches!(hold.settle_blocking(15), Err(Error::Storage { is_write: true, .. })));
    assert_eq!(ledger.keys().unwrap()[0].held, 40, "the upper bound stands");
    // The rest of the budget is known: 85, of which 50 are reserved in memory.
    let in_memory = ledger.reserve_blocking(key.id, 50, None, NOW).unwrap();
    let refused = ledger.reserve_blocking(key.id, 36, None, NOW);
    let Err(ReserveError::Exceeded(exceeded)) = refused else { panic!("{refused:?}") };
    assert_eq!((exceeded.spent, exceeded.held), (0, 65));
    in_memory.settle_blocking(30).unwrap();
    drop(ledger.reserve_blocking(key.id, 30, None, NOW).unwrap());
    assert!(matches!(ledger.reserve_blocking(key.id, 26, None, NOW), Err(ReserveError::Exceeded(_))));
    other.execute_batch("DROP TRIGGER broken").unwrap();
    drop(ledger.reserve_blocking(key.id, 0, None, NOW).unwrap());
    ledger.flush_blocking().unwrap();
    let key = &ledger.keys().unwrap()[0];
    // What was dropped without a settlement has cost all that was reserved.
    assert_eq!((key.spent, key.held), (15 + 30 + 30, 0), "the settlements were tried again");
    assert!(matches!(ledger.reserve_blocking(key.id, 26, None, NOW), Err(ReserveError::Exceeded(_))));
}

#[test]
fn runs_that_cannot_be_written_wait_in_the_queue_as_many_as_it_has_room_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let ledger = Ledger::open(&path, Settings { max_queued: 5, ..Settings::default() }).unwrap();
    let other = Connection::open(&path).unwrap();
    other
        .execute_batch("CREATE TRIGGER broken BEFORE INSERT ON run BEGIN SELECT RAISE(FAIL, 'broken'); END")
        .unwrap();
    for _ in 0..2 {
        for _ in 0..4 {
            ledger.record(retried(NOW));
        }
        ledger.flush_blocking().unwrap();
    }
    let health = ledger.health();
    assert_eq!((health.queued, health.shed_runs, health.recorded), (5, 3, 0));
    assert!(health.last_error.as_deref().is_some_and(|error| error.contains("broken")), "{health:?}");
    other.execute_batch("DROP TRIGGER broken").unwrap();
    ledger.flush_blocking().unwrap();
    let health = ledger.health();
    assert_eq!((health.queued, health.recorded, health.last_error), (0, 5, None));
}

#[test]
fn a_key_is_found_and_bounded_while_the_file_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let ledger = Ledger::open(&path, Settings::default()).unwrap();
    let (key, secret) = ledger.add_key(NewKey { budget: Some(100), ..NewKey::new("k") }, NOW).unwrap();
    assert_eq!(ledger.find_key(secret.reveal(), NOW).unwrap().id, key.id);
    let other = Connection::open(&path).unwrap();
    other.execute_batch("ALTER TABLE key RENAME TO gone").unwrap();
    let later = formwork_core::Time(NOW.0 + 60_000);
    assert_eq!(ledger.find_key(secret.reveal(), later).unwrap().id, key.id);
    assert!(ledger.find_key(secret.reveal(), formwork_core::Time(NOW.0 + 3_600_000)).is_err());
    let hold = ledger.reserve_blocking(key.id, 70, None, later).unwrap();
    assert!(matches!(ledger.reserve_blocking(key.id, 31, None, later), Err(ReserveError::Exceeded(_))));
    hold.settle_blocking(60).unwrap();
    other.execute_batch("ALTER TABLE gone RENAME TO key").unwrap();
    drop(ledger.reserve_blocking(key.id, 0, None, later).unwrap());
    assert_eq!(ledger.keys().unwrap()[0].spent, 60);
}

#[test]
fn settings_of_nothing_still_record() {
    let settings =
        Settings { group_size: 0, group_delay: Duration::ZERO, max_cache_bytes: 0, ..Settings::default() };
    let ledger = Ledger::in_memory(settings).unwrap();
    ledger.cache_put(None, "d", "value", Duration::from_secs(1), NOW);
    ledger.record(retried(NOW));
    ledger.flush_blocking().unwrap();
    assert_eq!(ledger.health().recorded, 1);
    assert_eq!(ledger.cache_get(None, "d", NOW), Ok(None));
}

#[test]
fn a_closed_ledger_counts_and_refuses() {
    let ledger =
        Ledger::in_memory(Settings { group_delay: Duration::from_secs(3600), ..Settings::default() })
            .unwrap();
    let (key, _) = ledger.add_key(NewKey::new("k"), NOW).unwrap();
    ledger.record(retried(NOW));
    ledger.close();
    ledger.close();
    assert_eq!(ledger.runs(&RunQuery::default()).unwrap().runs.len(), 1, "closing writes what waits");
    ledger.record(retried(NOW));
    assert_eq!((ledger.health().recorded, ledger.health().shed_runs), (1, 1));
    assert_eq!(ledger.flush_blocking(), Err(Error::Closed));
    assert!(matches!(
        ledger.reserve_blocking(key.id, 1, None, NOW),
        Err(ReserveError::Ledger(Error::Closed))
    ));
}

#[test]
fn what_cannot_be_written_before_the_end_is_counted() {
    let (folder, ledger, other) = crate::given::in_file(with_bodies());
    let (key, _) = ledger.add_key(NewKey::new("k"), NOW).unwrap();
    let hold = ledger.reserve_blocking(key.id, 20, None, NOW).unwrap();
    ledger.reserve_blocking(key.id, 30, None, NOW).unwrap().settle_blocking(9).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    ledger.record(retried(NOW));
    ledger.record(retried(NOW));
    drop(hold);
    let left = ledger.close_within(Duration::from_millis(100));
    assert_eq!((left.waiting, left.runs, left.settlements, left.amount), (2, 0, 1, 20));
    drop((other, ledger, folder));

    let ledger = Ledger::in_memory(with_bodies()).unwrap();
    ledger.record(retried(NOW));
    // Longer than any machine needs.
    assert_eq!(ledger.close_within(Duration::from_secs(300)), formwork_ledger::Unwritten::default());
    assert_eq!(ledger.health().recorded, 1);
}
