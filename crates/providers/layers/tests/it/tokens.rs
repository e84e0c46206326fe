use std::sync::Arc;

use formwork_core::{Call, Layer, Lowered, Message, SharedProvider, Usage};
use formwork_layers::Tokens;
use futures_util::future::join_all;
use futures_util::{FutureExt as _, StreamExt as _};
use proptest::prelude::*;
use tokio::time::{Duration, Instant, sleep};

use crate::slow::{Slow, seconds};

/// A call with an approximate number of prompt tokens and a token limit.
fn call(prompt: usize, answer: u32) -> Call {
    Call::new(vec![Message::user("four".repeat(prompt))], Lowered::default()).with_max_tokens(answer)
}

/// Reads a whole answer, which uses 5 and 3 tokens.
async fn ask(limited: &SharedProvider, call: &Call) {
    let answer = limited.call(call).await.unwrap();
    answer.for_each(|_| async {}).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_until_its_reservation_is_free_and_the_end_of_an_answer_frees_the_rest() {
    let limited = Tokens::per_minute(100).wrap(Arc::new(Slow { before: seconds(2), ..Slow::default() }));
    let (call, start) = (call(10, 50), Instant::now());
    let ended = |_| async {
        ask(&limited, &call).await;
        start.elapsed().as_secs()
    };
    // Each call reserves 60 of 100 tokens and uses 8, so only one call runs at a time. Six calls leave 52 tokens.
    assert_eq!(join_all((0..6).map(ended)).await, [2, 4, 6, 8, 10, 12]);
    // The seventh call needs 60 tokens, so it waits for a minute after the start of the first call.
    ask(&limited, &call).await;
    assert_eq!(start.elapsed().as_secs(), 62);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_gives_its_answer_back_and_a_failed_one_too() {
    let start = Instant::now();
    let limited = Tokens::per_minute(100).wrap(Arc::new(Slow { before: seconds(9), ..Slow::default() }));
    assert!(limited.call(&call(10, 90)).now_or_never().is_none());
    ask(&limited, &call(10, 80)).await;
    assert_eq!(start.elapsed().as_secs(), 9);
    let failing = Tokens::per_minute(100).wrap(Arc::new(Slow { fails: true, ..Slow::default() }));
    for _ in 0..2 {
        failing.call(&call(10, 80)).await.unwrap_err();
    }
    assert_eq!(start.elapsed().as_secs(), 9);
}

#[tokio::test(start_paused = true)]
async fn a_call_beyond_the_limit_begins_alone_and_calls_without_a_limit_expect_the_mean() {
    let limited = Tokens::per_minute(0).wrap(Arc::new(Slow::default()));
    let start = Instant::now();
    ask(&limited, &call(1000, 1000)).await;
    ask(&limited, &call(1000, 1000)).await;
    assert_eq!(start.elapsed().as_secs(), 60);
    // At first 256 tokens are expected, which excludes a second concurrent call. Completions of three tokens lower the mean.
    let limited = Tokens::per_minute(300).wrap(Arc::new(Slow { before: seconds(1), ..Slow::default() }));
    let open = Call::new(vec![Message::user("four")], Lowered::default());
    let start = Instant::now();
    join_all((0..2).map(|_| ask(&limited, &open))).await;
    assert_eq!(start.elapsed().as_secs(), 2);
    for _ in 0..20 {
        ask(&limited, &open).await;
    }
    sleep(seconds(60)).await;
    let start = Instant::now();
    join_all((0..4).map(|_| ask(&limited, &open))).await;
    assert_eq!(start.elapsed().as_secs(), 1);
}

proptest! {
    #[test]
    fn no_minute_uses_more_than_the_limit_where_calls_use_what_they_reserve(
        calls in prop::collection::vec((0..3_usize, 0..20_u64), 1..30),
        limit in 8..60_u64,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let begins = runtime.block_on(async {
            let limited = Tokens::per_minute(limit).wrap(Arc::new(Slow::default()));
            let start = Instant::now();
            let mut begins: Vec<Duration> = Vec::new();
            for (_, pause) in &calls {
                sleep(seconds(*pause)).await;
                ask(&limited, &call(5, 3)).await;
                begins.push(start.elapsed());
            }
            begins
        });
        let each = Usage::new(5, 3);
        for first in &begins {
            let within = begins.iter().filter(|one| **one >= *first && **one - *first < seconds(60)).count() as u64;
            prop_assert!(within * (each.input_tokens + each.output_tokens) <= limit);
        }
    }
}
