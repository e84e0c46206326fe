use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::thread;

use formwork_core::Time;
use formwork_ledger::{Error, Hold, Key, Ledger, NewKey, Period, ReserveError, Settings};
use proptest::prelude::*;
use rusqlite::Connection;

use crate::given::{NOW, ledger};

const BUDGET: u64 = 1000;

#[derive(Debug, Clone)]
enum Act {
    Reserve(u64),
    /// Settles one of the open holds at a percentage of its amount.
    Settle(prop::sample::Index, u64),
    Drop(prop::sample::Index),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => (0_u64..400).prop_map(Act::Reserve),
        2 => (any::<prop::sample::Index>(), 0_u64..=100).prop_map(|(which, percent)| Act::Settle(which, percent)),
        1 => any::<prop::sample::Index>().prop_map(Act::Drop),
    ]
}

fn only_key(ledger: &Ledger) -> Key {
    ledger.keys().unwrap().remove(0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn spent_and_held_are_what_a_ledger_on_paper_has(acts in prop::collection::vec(act(), 1..60)) {
        let ledger = ledger();
        let (key, _) = ledger.add_key(NewKey { budget: Some(BUDGET), ..NewKey::new("k") }, NOW).unwrap();
        let (mut spent, mut holds) = (0, Vec::<Hold>::new());
        for act in acts {
            let held: u64 = holds.iter().map(Hold::amount).sum();
            match act {
                Act::Reserve(amount) => match ledger.reserve_blocking(key.id, amount, None, NOW) {
                    Ok(hold) => {
                        prop_assert!(spent + held + amount <= BUDGET);
                        holds.push(hold);
                    },
                    Err(ReserveError::Exceeded(exceeded)) => {
                        prop_assert!(spent + held + amount > BUDGET);
                        prop_assert_eq!((exceeded.budget, exceeded.spent, exceeded.held, exceeded.amount), (BUDGET, spent, held, amount));
                    },
                    Err(other) => prop_assert!(false, "{}", other),
                },
                Act::Settle(which, percent) if !holds.is_empty() => {
                    let hold = holds.swap_remove(which.index(holds.len()));
                    let actual = hold.amount() * percent / 100;
                    hold.settle_blocking(actual).unwrap();
                    spent += actual;
                },
                Act::Drop(which) if !holds.is_empty() => {
                    let hold = holds.swap_remove(which.index(holds.len()));
                    spent += hold.amount();
                    drop(hold);
                    ledger.flush_blocking().unwrap();
                },
                Act::Settle(..) | Act::Drop(_) => {},
            }
            let now = only_key(&ledger);
            prop_assert_eq!((now.spent, now.held), (spent, holds.iter().map(Hold::amount).sum::<u64>()));
        }
    }

}

proptest! {
    // Each case waits for the disk a few hundred times.
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Threads with handles of two connections to one file draw on one budget.
    #[test]
    fn concurrent_reservations_never_exceed_the_budget(
        scripts in prop::collection::vec(prop::collection::vec((1_u64..120, 0_u64..=100, any::<bool>()), 1..12), 2..6),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        let ledgers = [0, 1].map(|_| Ledger::open(&path, Settings::default()).unwrap());
        let (key, _) = ledgers[0].add_key(NewKey { budget: Some(BUDGET), ..NewKey::new("k") }, NOW).unwrap();
        let threads: Vec<_> = scripts.into_iter().enumerate().map(|(nth, script)| {
            let ledger = ledgers[nth % 2].clone();
            thread::spawn(move || {
                let (mut spent, mut kept) = (0, Vec::new());
                for (amount, percent, is_kept) in script {
                    let Ok(hold) = ledger.reserve_blocking(key.id, amount, None, NOW) else { continue };
                    let now = only_key(&ledger);
                    assert!(now.spent + now.held <= BUDGET, "{} and {}", now.spent, now.held);
                    if is_kept {
                        kept.push(hold);
                    } else {
                        let actual = amount * percent / 100;
                        hold.settle_blocking(actual).unwrap();
                        spent += actual;
                    }
                }
                (spent, kept)
            })
        }).collect();
        let done: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        let spent: u64 = done.iter().map(|(spent, _)| spent).sum();
        let held: u64 = done.iter().flat_map(|(_, kept)| kept).map(Hold::amount).sum();
        let key = only_key(&ledgers[0]);
        prop_assert_eq!((key.spent, key.held), (spent, held));
        prop_assert!(spent + held <= BUDGET);
    }
}

#[test]
fn a_budget_is_drawn_to_its_last_millionth_by_racing_calls() {
    let ledger = Arc::new(ledger());
    let (key, _) = ledger.add_key(NewKey { budget: Some(100), ..NewKey::new("k") }, NOW).unwrap();
    let racers = (0..8).map(|_| {
        let ledger = Arc::clone(&ledger);
        thread::spawn(move || {
            (0..100).filter_map(|_| ledger.reserve_blocking(key.id, 1, None, NOW).ok()).collect::<Vec<_>>()
        })
    });
    let racers: Vec<_> = racers.collect();
    let holds: Vec<_> = racers.into_iter().flat_map(|racer| racer.join().unwrap()).collect();
    assert_eq!(holds.len(), 100);
    drop(holds);
    ledger.flush_blocking().unwrap();
    let key = only_key(&ledger);
    assert_eq!((key.spent, key.held, key.left(NOW)), (100, 0, Some(0)));
}

#[test]
fn a_reservation_that_nobody_waits_for_is_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let ledger = Ledger::open(&path, Settings::default()).unwrap();
    let (key, _) = ledger.add_key(NewKey { budget: Some(100), ..NewKey::new("k") }, NOW).unwrap();
    let polled = |amount| {
        let mut reserved = Box::pin(ledger.reserve(key.id, amount, None, NOW));
        let mut context = Context::from_waker(Waker::noop());
        assert!(reserved.as_mut().poll(&mut context).is_pending());
        reserved
    };
    // The caller leaves before the commit, and before it has seen its end.
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (left, late) = (polled(60), polled(40));
    drop(left);
    other.execute_batch("COMMIT").unwrap();
    ledger.flush_blocking().unwrap();
    drop(late);
    // A settlement that is pushed meanwhile is in the next group.
    (0..2).for_each(|_| ledger.flush_blocking().unwrap());
    assert_eq!((only_key(&ledger).spent, only_key(&ledger).held), (0, 0));
    let written: u32 =
        other.query_row("SELECT count(*) FROM spending WHERE actual = 0", [], |row| row.get(0)).unwrap();
    assert_eq!(written, 2);
}

#[tokio::test]
async fn what_is_reserved_survives_the_process_and_counts_as_spent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let ledger = Ledger::open(&path, Settings::default()).unwrap();
    let (key, _) = ledger.add_key(NewKey { budget: Some(100), ..NewKey::new("k") }, NOW).unwrap();
    let settled = ledger.reserve(key.id, 30, None, NOW).await.unwrap();
    settled.settle(10).await.unwrap();
    // A process that is killed does not run destructors.
    std::mem::forget(ledger.reserve(key.id, 60, None, NOW).await.unwrap());
    ledger.close();
    let again = Ledger::open(&path, Settings::default()).unwrap();
    let Err(ReserveError::Exceeded(exceeded)) = again.reserve(key.id, 31, None, NOW).await else {
        panic!("too much")
    };
    assert_eq!(
        exceeded.to_string(),
        "the budget of the API key `k` does not allow another call: of 0.0001 US dollars 0.00001 are spent and 0.00006 \
         reserved, and the call may cost 0.000031"
    );
    let hold = again.reserve(key.id, 30, None, NOW).await.unwrap();
    again.close();
    assert_eq!(hold.settle(1).await, Err(Error::Closed));
    assert_eq!(
        (only_key(&again).spent, only_key(&again).held),
        (10, 90),
        "a closed ledger leaves the upper bound"
    );
}

#[test]
fn keys_that_ended_and_amounts_that_nobody_has_are_refused() {
    let ledger = ledger();
    let (ends, _) =
        ledger.add_key(NewKey { expires: Some(Time(NOW.0 + 5)), ..NewKey::new("ends") }, NOW).unwrap();
    let hold = ledger.reserve_blocking(ends.id, u64::from(u32::MAX), None, NOW).unwrap();
    assert!(matches!(
        ledger.reserve_blocking(ends.id, 1, None, Time(NOW.0 + 5)),
        Err(ReserveError::KeyEnded)
    ));
    assert!(matches!(
        ledger.reserve_blocking(ends.id, u64::MAX, None, NOW),
        Err(ReserveError::Ledger(Error::Invalid(_)))
    ));
    ledger.revoke_key("ends", NOW).unwrap();
    assert!(matches!(ledger.reserve_blocking(ends.id, 1, None, NOW), Err(ReserveError::KeyEnded)));
    hold.settle_blocking(5).unwrap();
    assert_eq!(only_key(&ledger).spent, 5, "a call that was under way is settled");
}

#[test]
fn a_settlement_beyond_its_reservation_counts_in_full() {
    let ledger = ledger();
    let (key, _) = ledger.add_key(NewKey { budget: Some(100), ..NewKey::new("k") }, NOW).unwrap();
    ledger.reserve_blocking(key.id, 100, None, NOW).unwrap().settle_blocking(250).unwrap();
    let key = only_key(&ledger);
    assert_eq!((key.spent, key.left(NOW)), (250, Some(0)));
    assert!(matches!(ledger.reserve_blocking(key.id, 1, None, NOW), Err(ReserveError::Exceeded(_))));
}

#[test]
fn a_budget_of_a_period_is_whole_again_when_the_next_one_begins() {
    const HOUR: u64 = 3_600_000;

    // 2026-11-24T10:00:00Z, a Tuesday.
    let tuesday = 1_795_514_400_000;
    for (period, same, next) in [
        (Period::Day, 13, 14),
        (Period::Week, 5 * 24 + 13, 5 * 24 + 14),
        (Period::Month, 6 * 24 + 13, 6 * 24 + 14),
    ] {
        let ledger = ledger();
        let new = NewKey { budget: Some(BUDGET), period: Some(period), ..NewKey::new("k") };
        let (key, _) = ledger.add_key(new, Time(tuesday)).unwrap();
        let reserve =
            |amount, hours| ledger.reserve_blocking(key.id, amount, None, Time(tuesday + hours * HOUR));
        reserve(900, 0).unwrap().settle_blocking(900).unwrap();
        let refused = reserve(101, same).unwrap_err();
        assert!(
            matches!(&refused, ReserveError::Exceeded(exceeded) if exceeded.spent == 900),
            "{period:?}: {refused}"
        );
        // A reservation of the last period that is open still counts.
        let open = reserve(100, same).unwrap();
        assert!(reserve(901, next).is_err(), "{period:?}");
        open.settle_blocking(0).unwrap();
        reserve(BUDGET, next).unwrap().settle_blocking(7).unwrap();
        let key = only_key(&ledger);
        let left = |hours| (key.spent_in_period(Time(hours)), key.left(Time(hours)));
        assert_eq!((key.spent, key.spent_before), (907, 900), "{period:?}");
        assert_eq!(left(tuesday + next * HOUR), (7, Some(BUDGET - 7)), "{period:?}");
        assert_eq!(left(tuesday + (next + 31 * 24) * HOUR), (0, Some(BUDGET)), "{period:?}");
        assert_eq!(key.period, Some(period));
    }
    let wrong = NewKey { period: Some(Period::Day), ..NewKey::new("k") };
    assert!(matches!(ledger().add_key(wrong, NOW), Err(Error::Invalid(_))));
}

#[test]
fn the_view_of_spending_shows_the_present_period_as_the_key_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let ledger = Ledger::open(&path, Settings::default()).unwrap();
    let of_file = rusqlite::Connection::open(&path).unwrap();
    let time = || Time(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64);
    for period in [None, Some(Period::Day), Some(Period::Week), Some(Period::Month)] {
        let name = period.map_or("none", Period::name);
        // The first and the last millisecond of a period, the period before it, and long ago.
        for (reserved, settled) in [(0, 900), (400, 0), (250, 300)] {
            let new = NewKey { budget: Some(1_000_000), period, ..NewKey::new(name) };
            let (key, _) = ledger.add_key(new, time()).unwrap();
            ledger.reserve_blocking(key.id, 900, None, time()).unwrap().settle_blocking(settled).unwrap();
            let hold = ledger.reserve_blocking(key.id, reserved, None, time()).unwrap();
            for (back, before) in [(0, 0), (0, 200), (1, 0), (40 * 86_400_000, 100)] {
                let start = period.map_or(0, |period| period.start(time()).0 - back);
                let before = if period.is_some() { before.min(settled) } else { 0 };
                let set = "UPDATE key SET period_start = ?1, spent_before = ?2 WHERE name = ?3";
                of_file.execute(set, rusqlite::params![start as i64, before as i64, name]).unwrap();
                let key = ledger.key(name).unwrap();
                let shown = |column: &str| -> u64 {
                    let sql = format!("SELECT {column} FROM spend WHERE key = ?1");
                    let usd: f64 = of_file.query_row(&sql, [name], |row| row.get(0)).unwrap();
                    (usd * 1e6).round() as u64
                };
                let at = format!("{name}, {back} ms before, {before} of {settled}");
                assert_eq!(shown("spent_usd"), key.spent_in_period(time()), "{at}");
                assert_eq!(Some(shown("left_usd")), key.left(time()), "{at}");
                assert_eq!((shown("total_usd"), shown("held_usd")), (settled, reserved), "{at}");
                let is_over = period.is_some() && back > 0;
                assert_eq!(shown("spent_usd"), if is_over { 0 } else { settled - before }, "{at}");
            }
            drop(hold);
            of_file.execute("DELETE FROM spending", []).unwrap();
            of_file.execute("DELETE FROM key", []).unwrap();
        }
    }
}

#[test]
fn reservations_of_a_process_that_ended_are_released_and_those_of_others_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let open = || Ledger::open(&path, Settings::default()).unwrap();
    let (first, second) = (open(), open());
    let (key, _) = first.add_key(NewKey { budget: Some(BUDGET), ..NewKey::new("k") }, NOW).unwrap();
    // A hold that is forgotten is what a process leaves that is killed.
    std::mem::forget(first.reserve_blocking(key.id, 300, None, NOW).unwrap());
    std::mem::forget(first.reserve_blocking(key.id, 100, None, NOW).unwrap());
    let marks = || -> Vec<_> {
        let paths = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        paths.filter(|path| path.to_string_lossy().contains("-process-")).collect()
    };
    let of_first = marks().remove(0);
    let alive = second.reserve_blocking(key.id, 200, None, NOW).unwrap();
    assert_eq!(second.release_ended().unwrap().count, 0);
    assert_eq!(only_key(&second).held, 600);
    assert_eq!(marks().len(), 2);
    // The forgotten holds keep the ledger of `first` and its lock, which the end of a process takes away like this.
    std::fs::remove_file(of_first).unwrap();
    let released = second.release_ended().unwrap();
    assert_eq!((released.count, released.amount), (2, 400));
    assert_eq!((only_key(&second).held, only_key(&second).spent), (200, 0));
    assert_eq!(second.release_ended().unwrap().count, 0);
    alive.settle_blocking(150).unwrap();
    assert_eq!((only_key(&second).held, only_key(&second).spent), (0, 150));
    drop(second);
    assert!(marks().is_empty());
}
