use std::sync::Arc;
use std::time::Duration;

use formwork_core::*;
use formwork_testkit::{Reply, Scripted};

use crate::support::*;

#[test]
fn blocking_threads_do_not_disturb_each_other() {
    let threads = (0..8).map(|_| {
        std::thread::spawn(|| {
            let model = Arc::new(Scripted::new([Reply::from(FaultKind::Overloaded), MARIA.into()]));
            let (builder, clock) = persons(&model);
            let outcome = builder.build().unwrap().extract_blocking(TEXT).unwrap();
            assert_eq!(clock.waits(), [Duration::from_secs(2)]);
            outcome.value
        })
    });
    let threads: Vec<_> = threads.collect();
    assert!(threads.into_iter().all(|thread| thread.join().unwrap() == maria()));
}

#[test]
fn the_real_clock_works_without_a_runtime_of_the_caller() {
    // The deadline has passed at the first check, so nothing waits.
    let model = Endless::new(&[], Then::Hang);
    let builder = formwork_extract::Extractor::<Person>::builder().with_target(backend(&model));
    let extractor = builder.with_deadline(Duration::ZERO).build().unwrap();
    assert_eq!(extractor.extract_blocking(TEXT).unwrap_err().kind(), ErrorKind::Deadline);
}

#[tokio::test]
async fn inside_of_a_runtime_blocking_is_refused() {
    let model = Arc::new(Scripted::new([MARIA]));
    let extractor = persons(&model).0.build().unwrap();
    let refused = |error: Error| {
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.message().contains("inside of an async runtime"), "{error}");
    };
    refused(extractor.extract_blocking(TEXT).unwrap_err());
    let there = tokio::task::spawn_blocking(move || extractor.extract_blocking(TEXT).unwrap_err());
    refused(there.await.unwrap());
    assert!(model.calls().is_empty());
}
