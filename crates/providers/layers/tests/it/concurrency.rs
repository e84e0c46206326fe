use std::sync::Arc;
use std::sync::atomic::Ordering;

use formwork_core::Layer;
use formwork_layers::Concurrency;
use futures_util::StreamExt as _;
use futures_util::future::join_all;

use crate::slow::{Slow, call, seconds};

#[tokio::test(start_paused = true)]
async fn no_more_than_so_many_run_at_once() {
    let slow = Arc::new(Slow { before: seconds(1), pieces: vec![seconds(1); 2], ..Slow::default() });
    let limited = Concurrency::new(3).wrap(slow.clone());
    let call = call();
    let calls = (0..10).map(|_| async { limited.call(&call).await?.collect().await });
    assert!(join_all(calls).await.iter().all(Result::is_ok));
    assert_eq!(slow.most.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn a_permit_comes_back_from_whatever_end() {
    let call = call();
    let limit = Concurrency::new(1);
    let limited = limit.wrap(Arc::new(Slow { pieces: vec![seconds(1); 3], ..Slow::default() }));
    let mut answer = limited.call(&call).await.unwrap();
    answer.next().await;
    drop(answer);
    let mut answer = limited.call(&call).await.unwrap();
    while answer.next().await.is_some() {}
    let failing = limit.wrap(Arc::new(Slow { fails: true, ..Slow::default() }));
    assert!(failing.call(&call).await.is_err());
    assert!(limited.call(&call).await.unwrap().collect().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn one_call_is_always_let_through() {
    let limited = Concurrency::new(0).wrap(Arc::new(Slow::default()));
    assert!(limited.call(&call()).await.is_ok());
}
