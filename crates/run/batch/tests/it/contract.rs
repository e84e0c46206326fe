use std::sync::Arc;

use formwork_batch::{Batch, Ended, Engine as _, InProcess, Question, Row, Spec};
use formwork_extract::CancellationToken;
use serde_json::{Value, json};

use crate::engine::{Played, extractor};
use crate::store::{rows, spec};

#[tokio::test]
async fn a_run_of_another_contract_starts_over_and_its_calls_stay_counted() {
    let folder = tempfile::tempdir().unwrap();
    let provider = Arc::new(Played::default());
    let source =
        vec![Ok(Row::new("r0", "text 0")), Ok(Row::new("r3", "text 3")), Ok(Row::new("r7", "text 7"))];
    let batch = Arc::new(Batch::create(folder.path(), &Spec::new(json!(1), "rows"), source).unwrap());
    let engine = InProcess::new(extractor(&provider, |backend| backend), 1);
    engine.run(batch.clone(), &CancellationToken::new()).await.unwrap();
    batch.close().unwrap();
    drop(engine);
    drop(batch);
    let mut batch = Batch::open(folder.path()).unwrap();
    let question = Question::default().with_prompt_of(&json!(2));
    let judged = batch.judge(&json!(2), &question, |value, _| value["number"] == 0).unwrap();
    let opened = batch.ask(json!(2), question, judged).unwrap();
    assert_eq!((opened, batch.view().spec().contract.clone()), (2, json!(2)));
    let before = batch.view().progress().unwrap();
    assert_eq!((before.calls, before.accepted, before.rejected), (6, 1, 0));
    let batch = Arc::new(batch);
    let engine = InProcess::new(extractor(&provider, |backend| backend), 1);
    assert_eq!(engine.run(batch.clone(), &CancellationToken::new()).await.unwrap(), Ended::Done);
    batch.close().unwrap();
    let progress = batch.view().progress().unwrap();
    // Row 3 is right at once now, and row 7 takes three calls again.
    assert_eq!((progress.calls, progress.accepted, progress.rejected), (10, 2, 1));
}

#[tokio::test]
async fn values_that_a_wrong_contract_set_aside_return_without_a_call() {
    let folder = tempfile::tempdir().unwrap();
    let provider = Arc::new(Played::default());
    let mut batch = Batch::create(folder.path(), &spec(10), rows(40)).unwrap();
    let right = batch.view().spec().contract.clone();
    let batch = {
        let shared = Arc::new(batch);
        let engine = InProcess::new(extractor(&provider, |backend| backend), 4);
        engine.run(Arc::clone(&shared) as _, &CancellationToken::new()).await.unwrap();
        shared.close().unwrap();
        drop(engine);
        batch = Arc::into_inner(shared).unwrap();
        &mut batch
    };
    let exported = |batch: &Batch| {
        let mut lines = Vec::new();
        batch.view().export(false, &mut lines).unwrap();
        lines
    };
    let (before, values) = (batch.view().progress().unwrap(), exported(batch));
    assert!(before.accepted > 20);
    let question = Question::default().with_prompt_of(&right);
    // A value is judged with the text of its row.
    let stands = |value: &Value, text: &str| text == format!("text {}", value["number"]);
    let judged = batch.judge(&json!("of texts"), &question, stands).unwrap();
    assert_eq!((judged.valid, judged.changed()), (before.accepted, 0));
    // A value that answers other instructions is one to another question.
    let other = json!({"instructions": "Be brief."});
    let judged = batch.judge(&other, &question.clone().with_prompt_of(&other), |_, _| true).unwrap();
    assert_eq!(
        (judged.valid, judged.asked_otherwise, judged.changed() as u64),
        (0, judged.changed(), before.accepted)
    );
    for wrong in [json!("a typo"), json!("another")] {
        let judged = batch.judge(&wrong, &question, |_, _| false).unwrap();
        assert_eq!((judged.valid, judged.changed() as u64), (0, batch.view().progress().unwrap().accepted));
        batch.ask(wrong, question.clone(), judged).unwrap();
        assert_eq!(exported(batch), b"");
    }
    // A value that was made under the right contract satisfies it.
    let judged = batch.judge(&right, &question, |_, _| false).unwrap();
    assert_eq!((judged.returned() as u64, judged.open), (before.accepted, before.rows - before.accepted));
    let open = batch.ask(right.clone(), question, judged).unwrap();
    let after = batch.view().progress().unwrap();
    assert_eq!(
        (after.accepted, after.calls, open),
        (before.accepted, before.calls, before.rows - before.accepted)
    );
    assert_eq!(exported(batch), values);
}
