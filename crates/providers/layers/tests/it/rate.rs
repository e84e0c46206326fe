use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use formwork_core::{Layer, SharedProvider};
use formwork_layers::Rate;
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use proptest::prelude::*;
use tokio::time::{Instant, sleep};

use crate::slow::{Slow, call, seconds};

/// Returns when each of these simultaneous calls begins, in milliseconds.
async fn begins(limited: &SharedProvider, calls: usize) -> Vec<u128> {
    let (call, start) = (call(), Instant::now());
    let calls_made = (0..calls).map(|_| async {
        limited.call(&call).await.unwrap();
        start.elapsed().as_millis()
    });
    join_all(calls_made).await
}

#[tokio::test(start_paused = true)]
async fn calls_begin_evenly_and_a_burst_at_once() {
    let limited = Rate::new(4, seconds(10)).wrap(Arc::new(Slow::default()));
    assert_eq!(begins(&limited, 6).await, [0, 2500, 5000, 7500, 10_000, 12_500]);
    let limited = Rate::new(4, seconds(10)).with_burst(3).wrap(Arc::new(Slow::default()));
    assert_eq!(begins(&limited, 6).await, [0, 0, 0, 2500, 5000, 7500]);
    // After the pause several calls may begin at once.
    sleep(seconds(30)).await;
    assert_eq!(begins(&limited, 4).await, [0, 0, 0, 2500]);
}

#[tokio::test(start_paused = true)]
async fn the_limit_is_shared_and_at_least_one() {
    let rate = Rate::new(0, seconds(5));
    let (one, other) = (rate.wrap(Arc::new(Slow::default())), rate.wrap(Arc::new(Slow::default())));
    let (call, start) = (call(), Instant::now());
    one.call(&call).await.unwrap();
    other.call(&call).await.unwrap();
    assert_eq!(start.elapsed(), seconds(5));
}

/// Finding D6.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_while_it_waits_takes_no_turn() {
    let limited = Rate::new(1, seconds(10)).wrap(Arc::new(Slow::default()));
    let (call, start) = (call(), Instant::now());
    limited.call(&call).await.unwrap();
    for after in [0, 3, 9] {
        // One call waits at the head of the queue, the others behind it.
        let mut waiting: Vec<Pin<Box<dyn Future<Output = _>>>> =
            (0..5).map(|_| limited.call(&call) as Pin<Box<dyn Future<Output = _>>>).collect();
        for one in &mut waiting {
            assert!(one.as_mut().now_or_never().is_none());
        }
        sleep(seconds(after) - start.elapsed().min(seconds(after))).await;
    }
    limited.call(&call).await.unwrap();
    assert_eq!(start.elapsed(), seconds(10));
}

#[tokio::test(start_paused = true)]
async fn numbers_without_measure_are_no_panic() {
    for (calls, per) in [
        (usize::MAX, Duration::ZERO),
        (usize::MAX, Duration::MAX),
        (1, Duration::ZERO),
        (1, Duration::MAX),
        (0, Duration::from_nanos(1)),
    ] {
        let limited = Rate::new(calls, per).with_burst(u32::MAX).wrap(Arc::new(Slow::default()));
        limited.call(&call()).await.unwrap();
    }
}

proptest! {
    /// No span has more calls than allowed, calls begin in order, and no turn is lost, whenever calls come and go.
    #[test]
    fn no_span_has_more_than_so_many(
        calls in 1_usize..6,
        per in 1_u64..20,
        // The time between two calls, and the time after which a call is dropped, in milliseconds.
        script in prop::collection::vec((0_u64..4_000, prop::option::of(0_u64..9_000)), 1..25),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let begun = runtime.block_on(async {
            let limited = Rate::new(calls, seconds(per)).wrap(Arc::new(Slow::default()));
            let (call, start, begun) = (call(), Instant::now(), Arc::new(Mutex::new(Vec::new())));
            let mut at = 0;
            let calls_made = script.iter().enumerate().map(|(n, (after, patience))| {
                at += after;
                let (limited, call, begun) = (limited.clone(), call.clone(), Arc::clone(&begun));
                let (come, patience) = (Duration::from_millis(at), patience.map(Duration::from_millis));
                async move {
                    sleep(come).await;
                    let calls_made = async {
                        limited.call(&call).await.unwrap();
                        begun.lock().unwrap().push((n, come, start.elapsed()));
                    };
                    match patience {
                        Some(patience) => _ = tokio::time::timeout(patience, calls_made).await,
                        None => calls_made.await,
                    }
                }
            });
            join_all(calls_made).await;
            begun.lock().unwrap().clone()
        });
        let spacing = seconds(per) / u32::try_from(calls).unwrap();
        let mut due = Duration::ZERO;
        for (index, (n, come, at)) in begun.iter().enumerate() {
            if let Some((_, _, first)) = index.checked_sub(calls).map(|before| begun[before]) {
                prop_assert!(*at - first >= seconds(per), "{} calls within {per} s: {begun:?}", calls + 1);
            }
            prop_assert!(index == 0 || begun[index - 1].1 <= *come, "call {n} is out of order: {begun:?}");
            // A timer of tokio rounds up to a millisecond.
            prop_assert!(*at <= (*come).max(due) + Duration::from_millis(2), "late: {begun:?}");
            due = *at + spacing + Duration::from_nanos(1);
        }
    }
}
