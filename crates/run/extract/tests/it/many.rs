use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use formwork_core::*;
use formwork_testkit::Scripted;
use futures_core::Stream;

use crate::support::*;

/// A model that delays answers for small numbers longer, and counts its concurrent calls.
#[derive(Debug)]
struct Backwards {
    inner: Scripted,
    open: AtomicUsize,
    max_open: AtomicUsize,
}

#[async_trait::async_trait]
impl Provider for Backwards {
    fn name(&self) -> &str {
        "backwards"
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    async fn call(&self, call: &Call) -> Result<Answer, Fault> {
        let number: u32 = call.messages[0].text().parse().unwrap();
        let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
        self.max_open.fetch_max(open, Ordering::SeqCst);
        for _ in 0..(40 - number) {
            tokio::task::yield_now().await;
        }
        self.open.fetch_sub(1, Ordering::SeqCst);
        if number == 3 {
            return Err(Fault::new(FaultKind::Auth, "not this one"));
        }
        Ok(Completion::new(format!(r#"{{"name": "{number}", "age": {number}}}"#)).into())
    }
}

async fn collect<T>(stream: impl Stream<Item = T>) -> Vec<T> {
    let (mut stream, mut all) = (pin!(stream), Vec::new());
    while let Some(item) = std::future::poll_fn(|cx| stream.as_mut().poll_next(cx)).await {
        all.push(item);
    }
    all
}

#[tokio::test]
async fn many_inputs_keep_their_order() {
    for concurrency in [0, 1, 4, 100] {
        let model = Arc::new(Backwards {
            inner: Scripted::new([MARIA]),
            open: AtomicUsize::new(0),
            max_open: AtomicUsize::new(0),
        });
        let extractor = persons(&model).0.build().unwrap();
        let results = collect(extractor.extract_all((0..20).map(|n: u32| n.to_string()), concurrency)).await;
        let names: Vec<_> = results
            .iter()
            .map(|result| {
                result.as_ref().map_or(ErrorKind::Cancelled.to_string(), |one| one.value.name.clone())
            })
            .collect();
        let expected: Vec<_> =
            (0..20).map(|n| if n == 3 { ErrorKind::Cancelled.to_string() } else { n.to_string() }).collect();
        assert_eq!(names, expected);
        assert_eq!(results[3].as_ref().unwrap_err().kind(), ErrorKind::Unavailable);
        assert_eq!(model.max_open.load(Ordering::SeqCst), concurrency.clamp(1, 20));
    }
}
