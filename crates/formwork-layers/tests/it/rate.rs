use std::sync::Arc;

use formwork_core::Layer;
use formwork_layers::Rate;
use futures_util::future::join_all;
use tokio::time::Instant;

use crate::slow::{Slow, call, seconds};

#[tokio::test(start_paused = true)]
async fn no_more_than_so_many_begin_in_a_span() {
    let limited = Rate::new(3, seconds(10)).wrap(Arc::new(Slow::default()));
    let (call, start) = (call(), Instant::now());
    let asked = (0..8).map(|_| async {
        limited.call(&call).await.unwrap();
        start.elapsed().as_secs()
    });
    assert_eq!(join_all(asked).await, [0, 0, 0, 10, 10, 10, 20, 20]);
    // After a pause there is room again.
    tokio::time::sleep(seconds(30)).await;
    let before = Instant::now();
    limited.call(&call).await.unwrap();
    assert_eq!(before.elapsed().as_secs(), 0);
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
