//! The pace of a target, which workers share.

use std::sync::Arc;
use std::time::Duration;

use super::server::Server;
use crate::restate::ingress::Client;
use crate::restate::pool::Pool;
use crate::restate::slots::Slots;

#[tokio::test(start_paused = true)]
async fn workers_share_the_pace_of_a_target() {
    for (rate, workers) in [(0.5, 2), (7.0, 3), (100.0, 3), (2500.0, 5)] {
        let server = Arc::new(Server::new());
        let begun = tokio::time::Instant::now();
        let calls = 5 * (rate as usize) + 10;
        let slots: Vec<_> = (0..workers)
            .map(|_| Slots::new(Client(Arc::clone(&server) as _), &Pool::named("own", None).unwrap(), rate))
            .collect();
        let mut times = Vec::new();
        let waits = (0..calls).map(|call| {
            let slots = slots.get(call % workers).unwrap();
            async move {
                slots.wait("played").await;
                tokio::time::Instant::now()
            }
        });
        times.extend(futures_util::future::join_all(waits).await);
        times.sort();
        // No window of one second has more calls than the rate and one lease of each worker.
        let most = rate.ceil() as usize + workers * ((rate / 10.0) as usize + 1);
        for (nth, time) in times.iter().enumerate() {
            let within =
                times.iter().skip(nth).take_while(|other| **other - *time < Duration::from_secs(1)).count();
            assert!(within <= most, "{rate}: {within} calls in a second");
        }
        let took = begun.elapsed().as_secs_f64();
        assert!(took > 0.7 * calls as f64 / rate - 1.0, "{rate}: {took} s for {calls} calls");
    }
}
