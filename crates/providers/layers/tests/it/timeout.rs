use std::sync::Arc;

use formwork_core::{Completion, Fault, FaultKind, Layer};
use formwork_layers::Timeout;

use crate::slow::{Slow, call, seconds};

async fn ask(timeout: Timeout, before: u64, pieces: &[u64]) -> Result<Completion, Fault> {
    let pieces = pieces.iter().map(|wait| seconds(*wait)).collect();
    let slow = timeout.wrap(Arc::new(Slow { before: seconds(before), pieces, ..Slow::default() }));
    slow.call(&call()).await?.collect().await
}

#[tokio::test(start_paused = true)]
async fn each_limit_is_kept() {
    let all = Timeout::new().with_first(seconds(10)).with_idle(seconds(5)).with_total(seconds(20));
    assert_eq!(ask(all, 5, &[4, 4, 4]).await.unwrap().text, "xxx");
    for (before, pieces, words) in [
        (11, &[][..], "the first piece of the answer did not arrive within 10s"),
        // The head arrived in time, and the first piece did not.
        (5, &[6], "the first piece of the answer did not arrive within 10s"),
        (5, &[4, 6], "the next piece of the answer did not arrive within 5s"),
        (5, &[4, 4, 4, 4], "the end of the answer did not arrive within 20s"),
    ] {
        let fault = ask(all, before, pieces).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Timeout);
        assert!(fault.message.contains(words), "{words}: {fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn there_is_no_limit_until_one_is_named() {
    assert_eq!(ask(Timeout::new(), 100_000, &[100_000]).await.unwrap().text, "x");
    assert!(ask(Timeout::new().with_idle(seconds(1)), 100_000, &[2, 2]).await.is_err());
    assert!(ask(Timeout::new().with_total(seconds(1)), 2, &[]).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_probe_is_limited_too() {
    let slow = Arc::new(Slow { before: seconds(9), ..Slow::default() });
    let timed = Timeout::new().with_total(seconds(3)).wrap(slow.clone());
    assert_eq!(timed.probe().await.unwrap_err().kind, FaultKind::Timeout);
    assert!(Timeout::new().wrap(slow).probe().await.is_ok());
}
