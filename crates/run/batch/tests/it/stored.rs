//! Rows whose answers the store has.

use std::path::Path;
use std::sync::Arc;

use formwork_batch::{
    Batch, Columns, Ended, Engine as _, InProcess, Question, Row, Spec, Store as _, View, read_rows,
};
use formwork_extract::{Backend, CancellationToken, Extractor};
use serde_json::{Value, json};

use crate::engine::{Played, extractor};
use crate::store::{lines, rows, spec};

/// Asks a question about the rows of a batch, with the answers that the store has now.
fn asked(mut batch: Batch, question: Question) -> Batch {
    let contract = batch.view().spec().contract.clone();
    let judged = batch.judge(&contract, &question, |_, _| true).unwrap();
    batch.ask(contract, question, judged).unwrap();
    batch
}

/// Runs a batch to its end, with this number of rows at a time; returns the number of its calls and its values.
async fn ended(batch: Batch, extractor: &Extractor<Value>, rows: usize) -> (u64, Vec<Value>) {
    let batch = Arc::new(batch);
    let engine = InProcess::new(extractor.clone(), rows);
    assert_eq!(engine.run(Arc::clone(&batch) as _, &CancellationToken::new()).await.unwrap(), Ended::Done);
    batch.close().unwrap();
    (batch.view().progress().unwrap().calls, lines(batch.view().folder(), "part-"))
}

async fn finished(batch: Batch, extractor: &Extractor<Value>, question: Question) -> (u64, Vec<Value>) {
    ended(asked(batch, question), extractor, 4).await
}

/// Returns the sum of the attempts in the table of a batch, which cost 15 millionths of a dollar each, if a provider answered them.
fn attempts(folder: &Path) -> u64 {
    let path = folder.with_extension("csv");
    View::open(folder).unwrap().export_to(&path, false).unwrap();
    let cell = |name: &'static str| {
        let columns = Columns::default()
            .with_render([name], Arc::new(move |row| Ok(row[name].as_str().unwrap().to_owned())));
        read_rows(&path, &columns).unwrap().map(|row| row.unwrap().unwrap().input).collect::<Vec<_>>()
    };
    let costs = cell("cost_usd");
    let attempts = cell("attempts");
    assert!(
        attempts
            .iter()
            .zip(&costs)
            .all(|(attempts, cost)| (attempts == "0") == (cost.parse::<f64>().unwrap() == 0.0))
    );
    attempts.iter().map(|attempts| attempts.parse::<u64>().unwrap()).sum()
}

fn created(folder: &Path, name: &str, count: u64) -> Batch {
    let spec = Spec { store: Some(folder.join("shared").join("store.db")), ..spec(7) };
    Batch::create(folder.join(name), &spec, rows(count)).unwrap()
}

#[tokio::test]
async fn batches_with_the_same_rows_and_the_same_question_pay_once() {
    let folder = tempfile::tempdir().unwrap();
    let provider = Arc::new(Played::default());
    let own = extractor(&provider, |backend| backend.with_identity("a model"));
    let question = Question::of(&own);
    let (calls, values) = finished(created(folder.path(), "first", 20), &own, question.clone()).await;
    assert_eq!((calls, values.len()), (30, 18));
    // Five rows are new, of which the fourth takes a second call at first; rejected rows are asked about again, with three calls each.
    let (calls, more) = finished(created(folder.path(), "second", 25), &own, question.clone()).await;
    assert_eq!((&more[..18], more.len()), (&values[..], 23));
    assert_eq!(calls, 6 + 2 * 3);
    let other_model = extractor(&provider, |backend| backend.with_identity("another model"));
    for (name, own, question) in [
        ("model", &other_model, Question::of(&other_model)),
        ("sample", &own, question.clone().with_sample(1)),
        ("prompt", &own, question.with_prompt_of(&json!({"instructions": "Be brief."}))),
    ] {
        let (calls, values) = finished(created(folder.path(), name, 10), own, question).await;
        assert_eq!((calls, values.len()), (12, 9), "{name}");
    }
}

#[tokio::test]
async fn a_row_whose_answer_was_paid_for_after_its_batch_began_takes_no_call() {
    let folder = tempfile::tempdir().unwrap();
    let provider = Arc::new(Played::default());
    let own = extractor(&provider, |backend| backend);
    let question = Question::of(&own);
    // All of these begin before the first one makes a call.
    let batch = |name, sample| asked(created(folder.path(), name, 10), question.clone().with_sample(sample));
    let (first, second, sample) = (batch("first", 0), batch("second", 0), batch("sample", 1));
    let (calls, values) = ended(first, &own, 4).await;
    assert_eq!((calls, values.len()), (15, 9));
    // Only the rejected row is asked about again; another sample asks about all rows.
    assert_eq!(ended(second, &own, 4).await, (3, values));
    assert_eq!(ended(sample, &own, 4).await.0, 12);
    // A table has no call for a row that made none.
    for (name, calls) in [("first", 15), ("second", 3), ("sample", 12)] {
        assert_eq!(attempts(&folder.path().join(name)), calls, "{name}");
    }

    for (name, dedupe, texts, calls) in [
        ("equal", false, &["text 101", "text 102", "text 101", "text 102"][..], 2),
        ("dedupe", true, &["text 121", "text 121"], 1),
        ("other", false, &["text 111", "text 112"], 2),
    ] {
        let rows: Vec<_> = texts.iter().enumerate().map(|(nth, text)| Ok(Row::new(nth, *text))).collect();
        let batch = Batch::create(folder.path().join(name), &Spec { dedupe, ..spec(3) }, rows).unwrap();
        let (found, values) = ended(asked(batch, question.clone()), &own, 1).await;
        assert_eq!((found, values.len()), (calls, texts.len()), "{name}");
        let numbers = values.iter().map(|line| format!("text {}", line["value"]["number"]));
        assert_eq!(numbers.collect::<Vec<_>>(), texts, "{name}");
        assert_eq!(attempts(&folder.path().join(name)), calls, "{name}");
    }
}

#[tokio::test]
async fn only_new_and_changed_rows_are_paid_for() {
    let folder = tempfile::tempdir().unwrap();
    let provider = Arc::new(Played::default());
    let own = extractor(&provider, |backend: Backend| backend);
    finished(created(folder.path(), "batch", 20), &own, Question::of(&own)).await;
    let open = || Batch::open(folder.path().join("batch")).unwrap();
    let before = open().view().progress().unwrap();
    // Row 0 is gone, row 2 has another text, and two rows are new; all others stand at other places.
    let mut input = vec![Ok(Row::new("new", "text 900"))];
    input.extend(rows(20).into_iter().skip(1));
    input[2] = Ok(Row::new("r2", "text 902"));
    input.push(Ok(Row::new("last", "text 901")));
    let mut batch = open();
    assert_eq!(batch.replace_rows("rows.jsonl", input.into_iter().map(Ok)).unwrap(), 18);
    let progress = batch.view().progress().unwrap();
    assert_eq!((progress.rows, progress.open(), progress.calls), (21, 3, before.calls));
    let (calls, values) = finished(batch, &own, Question::of(&own)).await;
    assert_eq!((calls, values.len()), (before.calls + 3, 19));
    let ids: Vec<_> = values.iter().map(|line| line["id"].as_str().unwrap()).collect();
    assert_eq!((ids[0], ids[2], ids[18]), ("new", "r2", "last"));
    assert!(values.iter().all(|line| match line["id"].as_str().unwrap() {
        "new" => line["value"]["number"] == 900,
        "r2" => line["value"]["number"] == 902,
        "last" => line["value"]["number"] == 901,
        id => line["value"]["number"] == id[1..].parse::<u64>().unwrap(),
    }));
    // The row that is gone comes back without a call, because its answer is still in the store.
    let mut batch = open();
    batch.replace_rows("rows.jsonl", rows(20).into_iter().map(Ok)).unwrap();
    let (again, values) = finished(batch, &own, Question::of(&own)).await;
    assert_eq!((again, values.len()), (calls, 18));
}

#[tokio::test]
async fn files_that_are_still_to_be_written_and_those_of_changed_rows_do_not_meet() {
    let folder = tempfile::tempdir().unwrap();
    let provider = Arc::new(Played::default());
    let own = extractor(&provider, |backend| backend);
    let (_, values) = finished(created(folder.path(), "batch", 60), &own, Question::of(&own)).await;
    let path = folder.path().join("batch");
    for time in 0..30 {
        let file = rusqlite::Connection::open(path.join("ledger.db")).unwrap();
        file.execute_batch("UPDATE parts SET written = 0").unwrap();
        drop(file);
        // Opening the batch begins to write all files; another text for the last row writes them again.
        let mut batch = Batch::open(&path).unwrap();
        let mut input = rows(60);
        input[59] = Ok(Row::new("r59", format!("text {}", 1000 + time)));
        assert_eq!(batch.replace_rows("rows.jsonl", input.into_iter().map(Ok)).unwrap(), 59, "{time}");
        batch.close().unwrap();
    }
    let left = lines(&path, "part-");
    assert_eq!(left[..], values[..left.len()]);
    assert!(left.len() + 1 >= values.len());
}

#[tokio::test]
async fn a_lost_commit_of_the_folder_is_made_good_by_the_store_and_a_lost_store_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let provider = Arc::new(Played::default());
    let own = extractor(&provider, |backend| backend);
    let (calls, values) = finished(created(folder.path(), "batch", 20), &own, Question::of(&own)).await;
    let path = folder.path().join("batch");
    // The process died between the commits of the two files.
    let file = rusqlite::Connection::open(path.join("ledger.db")).unwrap();
    file.execute_batch(
        "UPDATE rows SET state = 0, answer = NULL WHERE number IN (3, 7, 11);
         UPDATE totals SET accepted = accepted - 2, rejected = rejected - 1;
         UPDATE parts SET open = 2, written = 0 WHERE part = 0; UPDATE parts SET open = 1, written = 0 WHERE part = 1",
    )
    .unwrap();
    drop(file);
    let batch = Batch::open(&path).unwrap();
    let progress = batch.view().progress().unwrap();
    assert_eq!((progress.open(), progress.accepted, progress.rejected), (0, 18, 2));
    assert_eq!(progress.reasons, [("rejected (json)".to_owned(), 2)].into());
    assert_eq!(finished(batch, &own, Question::of(&own)).await, (calls, values));
    let store = folder.path().join("shared").join("store.db");
    let ledger = formwork_ledger::Ledger::open(&store, formwork_ledger::Settings::default()).unwrap();
    let counts = ledger.answers(formwork_core::Time(u64::MAX)).unwrap();
    assert_eq!((counts.batches, counts.calls, counts.values, counts.open), (1, calls, 18, 0));
    let prune = formwork_ledger::Prune { answers: Some(formwork_core::Time(u64::MAX)), ..Default::default() };
    assert_eq!(ledger.prune(prune).unwrap().answers, counts.older);
    let (mut out, view) = (Vec::new(), View::open(&path).unwrap());
    let error = view.export(false, &mut out).unwrap_err().to_string();
    assert!(out.is_empty() && error.contains("18 results are not in") && error.contains("prune"), "{error}");
    assert_eq!(view.progress().unwrap().calls, calls);
    drop((ledger, view));
    std::fs::remove_dir_all(folder.path().join("shared")).unwrap();
    let error = Batch::open(&path).unwrap_err().to_string();
    assert!(error.contains("store.db: the answers of") && error.contains("put it back"), "{error}");
}

#[tokio::test]
async fn a_folder_of_an_earlier_version_keeps_its_results_its_costs_and_its_runs() {
    let folder = tempfile::tempdir().unwrap();
    let file = rusqlite::Connection::open(folder.path().join("ledger.db")).unwrap();
    file.execute_batch(include_str!("older.sql")).unwrap();
    drop(file);
    let view = View::open(folder.path()).unwrap();
    let progress = view.progress().unwrap();
    assert_eq!((progress.rows, progress.accepted, progress.rejected, progress.begun), (8, 3, 2, 1));
    assert_eq!(
        (progress.calls, progress.input_tokens, progress.micro_usd, progress.unpriced),
        (11, 110, 165, 0)
    );
    assert_eq!(progress.reasons, [("input".to_owned(), 1), ("rejected (json)".to_owned(), 1)].into());
    let exported = |rejected| {
        let mut out = Vec::new();
        view.export(rejected, &mut out).unwrap();
        let line = |line: &str| serde_json::from_str::<Value>(line).unwrap();
        String::from_utf8(out).unwrap().lines().map(line).collect::<Vec<_>>()
    };
    let values: Vec<_> =
        exported(false).iter().map(|line| (line["id"].clone(), line["value"].clone())).collect();
    let zero = json!({"number": 0});
    assert_eq!(
        values,
        [(json!("r0"), zero.clone()), (json!("r3"), json!({"number": 3})), (json!("again"), zero)]
    );
    assert_eq!(exported(true)[0]["calls"].as_array().unwrap().len(), 3);
    let costs = view.row_costs().unwrap().into_iter().map(|(cost, tokens, _)| (cost, tokens));
    assert_eq!(costs.collect::<Vec<_>>(), [(Some(15), 15), (Some(30), 30), (Some(90), 90)]);

    // A value that the older version set aside returns with its contract, and the other rows are asked about.
    let mut batch = Batch::open(folder.path()).unwrap();
    let open = batch.open_rows(None, 9).await.unwrap();
    assert_eq!(open.iter().map(|row| row.number).collect::<Vec<_>>(), [3, 6, 7]);
    assert_eq!(open[2].state.as_ref().unwrap().calls().count(), 1);
    let provider = Arc::new(Played::default());
    let own = extractor(&provider, |backend| backend);
    let first = json!({"schema": {"type": "object"}, "instructions": "Read."});
    let question = Question::of(&own).with_prompt_of(&first);
    let judged = batch.judge(&first, &question, |_, _| true).unwrap();
    assert_eq!((judged.valid, judged.changed(), judged.returned(), judged.open), (2, 0, 1, 3));
    batch.ask(first, question.clone(), judged).unwrap();
    let (_, values) = finished(batch, &own, question).await;
    assert_eq!(values.iter().map(|line| &line["value"]["number"]).collect::<Vec<_>>(), [0, 3, 8, 0, 11]);
    assert_eq!(lines(folder.path(), "rejected-").len(), 3);
}

#[tokio::test]
async fn a_stored_answer_is_as_sure_as_it_was_at_first() {
    let folder = tempfile::tempdir().unwrap();
    let schema = serde_json::json!({"type": "object", "properties": {"age": {"type": "integer"}, "name": {"type": "string"}}});
    for (answer, factor) in
        [(r#"{"age": 34, "name": "Maria"}"#, 1.0), (r#"{"age": 34, "name": "Maria",}"#, 0.8)]
    {
        let model = std::sync::Arc::new(formwork_testkit::Scripted::new([answer]));
        let extractor = Extractor::for_document("person", schema.clone()).with_target(model).build().unwrap();
        let answers = formwork_batch::Answers::open(folder.path().join(format!("{factor}.db"))).unwrap();
        let (question, text) = (Question::of(&extractor), "Maria is 34.");
        let entry = std::sync::Arc::new(answers.entry(&question, &extractor, text).unwrap());
        let result = extractor.extraction(text).with_journal(entry.clone()).run().await;
        entry.end(&result).await.unwrap();
        let stored = answers.find(&question, &extractor, text).unwrap().unwrap();
        assert_eq!(stored.confidence(), result.unwrap().confidence());
        assert!(stored.confidence().iter().all(|it| (it.factor - factor).abs() < 1e-9));
    }
}
