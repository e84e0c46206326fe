//! One row, whose worker dies at any moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use formwork_core::{ErrorKind, SharedProvider, Time};
use formwork_extract::Extractor;
use serde_json::{Value, json};

use super::journal::{Died, Journal};
use super::provider::{Played, calls, contract, extractor, request};
use crate::halt::one_step;
use crate::restate::entry::{Entry, resume};
use crate::restate::message::{Lost, RowRequest, RunEnd};
use crate::restate::row::row;

/// The value, or the class of the error.
fn result_of(end: &RunEnd) -> Result<Value, ErrorKind> {
    match end {
        RunEnd::Accepted(accepted) => Ok(accepted.outcome.value.clone()),
        RunEnd::Failed(error) => Err(error.kind),
    }
}

#[tokio::test(start_paused = true)]
async fn a_row_whose_worker_dies_at_any_moment_has_the_result_of_one_that_lives() {
    for number in 0..8 {
        let provider = Arc::new(Played::default());
        let undisturbed = Journal::default();
        let reply = row(&undisturbed, &extractor(&provider), &calls(), request(number)).await.unwrap();
        assert_eq!(reply.lost, Lost::default(), "row {number}");
        undisturbed.at.store(0, Ordering::SeqCst);
        let replayed = row(&undisturbed, &extractor(&provider), &calls(), request(number)).await.unwrap();
        assert_eq!(replayed, reply, "row {number}");
        let (moments, needed) = (undisturbed.moments.into_inner(), provider.calls() as usize);
        assert!(needed == reply.end.calls().len() && moments >= 2 * needed);
        for death in 0..moments {
            let provider = Arc::new(Played::default());
            let mut journal = Journal { dies_at: Some(death), ..Journal::default() };
            let died = row(&journal, &extractor(&provider), &calls(), request(number)).await;
            assert_eq!(died, Err(Died), "row {number} at {death}");
            // Another worker has its own extractor, and shares only the journal.
            (journal.dies_at, journal.at) = (None, AtomicUsize::new(0));
            let again = row(&journal, &extractor(&provider), &calls(), request(number)).await.unwrap();
            assert_eq!(
                (again.restarted, result_of(&again.end)),
                (false, result_of(&reply.end)),
                "row {number} at {death}"
            );
            // At most one call was in flight, or had an answer that was not stored.
            let repeated = provider.calls() - again.end.calls().len() as u32;
            assert!(
                repeated <= again.lost.calls && again.lost.calls <= 1,
                "row {number} at {death}: {repeated} calls are not in the result"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_row_counts_each_execution_that_dies_after_its_call_and_before_its_entry() {
    for (number, deaths) in [(1, 1), (3, 1), (3, 3), (6, 4)] {
        let provider = Arc::new(Played::default());
        let mut journal = Journal::default();
        for death in 0..deaths {
            // The moments of an execution are those before and after its note, and before and after its call.
            journal.dies_at = Some(journal.moments.load(Ordering::SeqCst) + 3);
            journal.at = AtomicUsize::new(0);
            let died = row(&journal, &extractor(&provider), &calls(), request(number)).await;
            assert_eq!((died, provider.calls()), (Err(Died), death + 1));
        }
        (journal.dies_at, journal.at) = (None, AtomicUsize::new(0));
        let reply = row(&journal, &extractor(&provider), &calls(), request(number)).await.unwrap();
        assert_eq!(reply.lost.calls, deaths, "row {number}");
        // An answer has 15 tokens at a millionth of a US dollar; its call may have had more.
        assert!(reply.lost.micro_usd > u64::from(deaths) * 15, "row {number}");
        assert_eq!(provider.calls(), reply.end.calls().len() as u32 + deaths, "row {number}");
    }
}

#[tokio::test]
async fn an_entry_has_neither_the_input_nor_earlier_calls_and_gives_the_same_run() {
    let provider = Arc::new(Played::default());
    let extractor = extractor(&provider);
    let mut run = extractor.extraction(format!("text 7 {}", "long ".repeat(10_000))).into_parts().1;
    for call in 1..3 {
        let after = one_step(extractor.continued(run.clone()).unwrap()).await.unwrap();
        let Entry::Going { run: kept, .. } = Entry::going(&run, &after, Time(5), String::new()) else {
            panic!("it goes on")
        };
        let text = kept.to_string();
        assert!(
            text.len() < 10_000 && text.matches("no, for the").count() >= 1,
            "call {call}: {}",
            text.len()
        );
        assert!(!text.contains("long long"));
        assert_eq!(kept["ledger"].as_array().unwrap().len(), 1);
        let read = serde_json::from_str(&text).unwrap();
        assert_eq!(resume(&run, read).unwrap(), after);
        run = after;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_too_long_for_a_step_rejects_its_row() {
    let provider = Arc::new(Played::default());
    let journal = Journal::default();
    let reply = row(&journal, &extractor(&provider), &calls(), request(8)).await.unwrap();
    assert_eq!(result_of(&reply.end), Err(ErrorKind::Rejected));
    assert!(serde_json::to_vec(&reply).unwrap().len() < 100_000);
}

#[tokio::test(start_paused = true)]
async fn a_run_of_other_settings_starts_over() {
    let (provider, other) = (Arc::new(Played::default()), Arc::new(Played::default()));
    let schema = contract()["schema"].clone();
    let elsewhere =
        Extractor::for_document("other", schema).with_target(Arc::clone(&other) as SharedProvider);
    let run = one_step(elsewhere.build().unwrap().extraction("text 7")).await.unwrap();
    let begun = RowRequest { run: Some(Box::new(run)), ..request(1) };
    let reply = row(&Journal::default(), &extractor(&provider), &calls(), begun).await.unwrap();
    assert_eq!((reply.restarted, result_of(&reply.end)), (true, Ok(json!({"number": 1}))));
}
