use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use formwork_core::{Error, ErrorKind, Run, Time};
use formwork_extract::{Extractor, Journal};
use formwork_testkit::Scripted;
use serde_json::{Value, json};

/// Keeps every state as text, and fails from a state on.
#[derive(Default)]
struct Kept {
    states: Mutex<Vec<String>>,
    fails_at: Option<usize>,
}

#[async_trait]
impl Journal for Kept {
    async fn store(&self, run: &Run) -> Result<(), Error> {
        let mut states = self.states.lock().unwrap();
        if self.fails_at == Some(states.len()) {
            return Err(Error::new(ErrorKind::Cancelled, "the disk is full"));
        }
        states.push(serde_json::to_string(run).unwrap());
        Ok(())
    }
}

const ANSWERS: [&str; 3] = ["no JSON", r#"{"age": "x"}"#, r#"{"age": 34}"#];

fn extractor(answers: &[&str], maximum: u64) -> (Extractor<Value>, Arc<Scripted>) {
    let model = Arc::new(Scripted::new(answers.iter().copied()));
    let schema = json!({"properties": {"age": {"type": "integer", "maximum": maximum}}, "required": ["age"]});
    let extractor = Extractor::for_document("person", schema).with_target(model.clone()).build().unwrap();
    (extractor, model)
}

#[tokio::test]
async fn a_run_continues_from_each_state_that_the_journal_has_and_only_with_its_own_plan() {
    let kept = Arc::new(Kept::default());
    let (first, _) = extractor(&ANSWERS, 150);
    let whole = first.extraction("Maria, 34").with_journal(kept.clone()).run().await.unwrap();
    let states = kept.states.lock().unwrap().clone();
    // The last state is returned to the caller and not stored.
    assert_eq!(states.len(), 2);
    for (nth, state) in states.iter().enumerate() {
        let (next, model) = extractor(&ANSWERS[nth + 1..], 150);
        let run: Run = serde_json::from_str(state).unwrap();
        let run = run.resumed(Time(0), Time(9_000_000_000_000));
        let outcome = next.continued(run.clone()).unwrap().run().await.unwrap();
        assert_eq!((outcome.value, outcome.calls.len()), (whole.value.clone(), 3));
        assert_eq!(model.calls().len(), 2 - nth);
        assert!(extractor(&ANSWERS, 99).0.continued(run).is_none());
    }
}

#[tokio::test]
async fn a_state_that_cannot_be_stored_ends_the_run_before_its_next_call() {
    let kept = Arc::new(Kept { fails_at: Some(1), ..Kept::default() });
    let (extractor, model) = extractor(&ANSWERS, 150);
    let error = extractor.extraction("Maria, 34").with_journal(kept).run().await.unwrap_err();
    assert_eq!((error.message(), model.calls().len()), ("the disk is full", 2));
}
