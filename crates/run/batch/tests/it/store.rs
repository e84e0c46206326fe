use std::collections::BTreeSet;
use std::path::Path;

use formwork_batch::{
    BadRow, Batch, BatchError, Control, MaxFailures, Row, RowEnd, Spec, Stop, Store as _, View,
};
use formwork_core::{Error, ErrorKind};
use serde_json::{Value, json};

pub(crate) fn spec(part_rows: u64) -> Spec {
    Spec { part_rows, ..Spec::new(json!({"schema": {"type": "object"}}), "rows.jsonl") }
}

pub(crate) fn rows(count: u64) -> Vec<Result<Row, BadRow>> {
    (0..count).map(|number| Ok(Row::new(format!("r{number}"), format!("text {number}")))).collect()
}

fn rejected(message: &str) -> RowEnd {
    RowEnd::new(Vec::new(), Err(Error::new(ErrorKind::Rejected, message)))
}

/// The lines of all files of a kind, in the order of the files.
pub(crate) fn lines(folder: &Path, kind: &str) -> Vec<Value> {
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| path.file_name().unwrap().to_string_lossy().starts_with(kind));
    names.sort();
    let text: String = names.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn ids(lines: &[Value]) -> Vec<String> {
    lines.iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn each_row_has_one_result_whatever_order_and_however_often_it_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let batch = Batch::create(folder.path(), &spec(4), rows(10)).unwrap();
    for number in [9, 3, 3, 0, 1, 2, 8, 5, 4, 7, 6, 0] {
        batch.finish(number, rejected(&format!("no {number}"))).await.unwrap();
    }
    batch.close().unwrap();
    let lines = lines(folder.path(), "rejected-");
    assert_eq!(ids(&lines), (0..10).map(|number| format!("r{number}")).collect::<Vec<_>>());
    assert_eq!(lines[3]["error"]["message"], "no valid answer: no 3");
    let progress = batch.view().progress().unwrap();
    assert_eq!((progress.rows, progress.rejected, progress.open()), (10, 10, 0));
    let files = [
        "rejected-00001.jsonl",
        "rejected-00002.jsonl",
        "rejected-00003.jsonl",
        "ledger.db",
        "store.db",
        "lock",
    ];
    let found: BTreeSet<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| !name.contains(".db-"))
        .collect();
    assert_eq!(found, files.map(str::to_owned).into());
}

#[tokio::test]
async fn a_batch_opens_with_the_rows_that_have_no_result() {
    let folder = tempfile::tempdir().unwrap();
    let batch = Batch::create(folder.path(), &spec(3), rows(7)).unwrap();
    for number in [0, 1, 2, 5] {
        batch.finish(number, rejected("no")).await.unwrap();
    }
    assert!(matches!(Batch::open(folder.path()), Err(BatchError::Locked { process: Some(_), .. })));
    drop(batch);
    // Simulates a process that died between the commit and the file.
    std::fs::remove_file(folder.path().join("rejected-00001.jsonl")).unwrap();
    let batch = Batch::open(folder.path()).unwrap();
    let open = batch.open_rows(None, 100).await.unwrap();
    assert_eq!(open.iter().map(|row| row.number).collect::<Vec<_>>(), [3, 4, 6]);
    assert_eq!((&open[0].id, open[0].input.as_str()), (&json!("r3"), "text 3"));
    assert_eq!(batch.open_rows(Some(3), 1).await.unwrap()[0].number, 4);
    batch.close().unwrap();
    assert_eq!(ids(&lines(folder.path(), "rejected-00002")), ["r5"]);
}

#[tokio::test]
async fn invalid_rows_are_rejected_and_the_others_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let bad = |message: &str| Err(BadRow { id: Value::Null, message: message.to_owned() });
    let input = vec![
        Ok(Row::new("a", "one")),
        bad("rows.jsonl:2: this line is not a JSON object"),
        Ok(Row::new("a", "two")),
        Ok(Row::new(7, "  ")),
        Ok(Row::new(Value::Null, "three")),
        Ok(Row::new("long", "x".repeat(formwork_batch::MAX_INPUT + 1))),
        Ok(Row::new(7, "four")),
    ];
    let batch = Batch::create(folder.path(), &spec(100), input).unwrap();
    let open = batch.open_rows(None, 100).await.unwrap();
    assert_eq!(open.iter().map(|row| &row.id).collect::<Vec<_>>(), [&json!("a"), &json!(7)]);
    batch.close().unwrap();
    let lines = lines(folder.path(), "rejected-");
    let messages: Vec<_> = lines.iter().map(|line| line["error"]["message"].as_str().unwrap()).collect();
    assert_eq!(
        messages,
        [
            "rows.jsonl:2: this line is not a JSON object",
            "row 3: the id \"a\" is that of row 1 already: give each row an id of its own",
            "row 4: the input is empty: there is nothing to extract from",
            "row 5: the `id` is neither a string nor a number: give each row an id of its own",
            "row 6: the input has 16 MiB, and a row has at most 16 MiB: split the text",
        ]
    );
}

#[tokio::test]
async fn the_user_stops_a_batch_from_another_process_and_failures_stop_it() {
    let folder = tempfile::tempdir().unwrap();
    let batch = Batch::create(folder.path(), &spec(100), rows(300)).unwrap();
    let view = View::open(folder.path()).unwrap();
    view.set_control(Control::Stop(Stop::Paused)).unwrap();
    assert_eq!(batch.control().await.unwrap(), Control::Stop(Stop::Paused));
    assert_eq!(view.process(), Some(std::process::id()));
    batch.stop_at(MaxFailures::Share(0.02));
    for number in 0..3 {
        assert_ne!(batch.control().await.unwrap(), Control::Stop(Stop::TooManyFailures), "{number}");
        batch.finish(number, rejected("no")).await.unwrap();
    }
    assert_eq!(batch.control().await.unwrap(), Control::Stop(Stop::TooManyFailures));
}

#[tokio::test]
async fn rejected_rows_open_again_and_their_files_go() {
    let folder = tempfile::tempdir().unwrap();
    let input = [rows(3), vec![Err(BadRow { id: Value::Null, message: "bad".to_owned() })]].concat();
    let batch = Batch::create(folder.path(), &spec(2), input).unwrap();
    for number in 0..3 {
        batch.finish(number, rejected("no")).await.unwrap();
    }
    batch.close().unwrap();
    drop(batch);
    let batch = Batch::open(folder.path()).unwrap();
    assert_eq!(batch.retry().unwrap(), 3);
    assert_eq!(lines(folder.path(), "rejected-").len(), 1);
    assert_eq!(batch.open_rows(None, 9).await.unwrap().len(), 3);
    let progress = batch.view().progress().unwrap();
    assert_eq!((progress.rejected, progress.reasons.get("input")), (1, Some(&1)));
}

#[tokio::test]
async fn a_folder_of_something_else_or_of_another_batch_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("notes.txt"), "mine").unwrap();
    assert!(matches!(Batch::create(&other, &spec(9), rows(1)), Err(BatchError::NotABatch(_))));
    assert!(matches!(Batch::open(&other), Err(BatchError::NoBatch(_))));
    assert_eq!(std::fs::read_dir(&other).unwrap().count(), 1);

    let mine = folder.path().join("mine");
    let batch = Batch::create(&mine, &spec(9), rows(3)).unwrap();
    let changed = |change: fn(&mut Vec<Result<Row, BadRow>>)| {
        let mut rows = rows(3);
        change(&mut rows);
        batch.check_rows(rows.into_iter().map(Ok)).map_err(|error| error.to_string())
    };
    assert_eq!(changed(|_| ()), Ok(()));
    for (change, expected) in [
        (
            (|rows| rows.push(Ok(Row::new("new", "x")))) as fn(&mut Vec<_>),
            "it has 3 rows, and rows.jsonl has more",
        ),
        (|rows| drop(rows.pop()), "it has more rows than the 2 of the input"),
        (|rows| rows[1] = Ok(Row::new("x", "text 1")), "row 2 had the id \"r1\" and has the id \"x\" now"),
        (|rows| rows[1] = Ok(Row::new("r1", "other")), "the input of row 2 (id \"r1\") has changed"),
    ] {
        let error = changed(change).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn rows_with_the_same_input_are_called_once_and_each_has_its_result() {
    let folder = tempfile::tempdir().unwrap();
    let rows = (0..9).map(|number| Ok(Row::new(number, format!("text {}", number % 3))));
    let batch =
        Batch::create(folder.path(), &Spec { dedupe: true, ..spec(4) }, rows.collect::<Vec<_>>()).unwrap();
    let open = batch.open_rows(None, 100).await.unwrap();
    assert_eq!((open.len(), batch.view().askable().unwrap()), (3, 3));
    for row in open {
        batch.finish(row.number, rejected(&row.input)).await.unwrap();
    }
    batch.close().unwrap();
    let lines = lines(folder.path(), "rejected-");
    let found: Vec<_> =
        lines.iter().map(|line| (line["id"].clone(), line["error"]["message"].clone())).collect();
    let expected = |number| (json!(number), json!(format!("no valid answer: text {}", number % 3)));
    assert_eq!(found, (0..9).map(expected).collect::<Vec<_>>());
    assert_eq!(batch.view().progress().unwrap().rejected, 9);
}

#[tokio::test]
async fn a_limit_hands_out_the_first_rows_or_a_sample_that_is_the_same_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let batch = Batch::create(folder.path(), &spec(100), rows(500)).unwrap();
    assert_eq!(batch.limit(3, None).unwrap(), 3);
    let numbers = async || {
        let rows = batch.open_rows(None, 500).await.unwrap();
        rows.iter().map(|row| row.number).collect::<Vec<_>>()
    };
    assert_eq!(numbers().await, [0, 1, 2]);
    for number in 0..2 {
        batch.finish(number, rejected("no")).await.unwrap();
    }
    assert_eq!(batch.open_rows(None, 1).await.unwrap()[0].number, 2);
    batch.limit(50, Some(1)).unwrap();
    let sample = numbers().await;
    batch.limit(50, Some(1)).unwrap();
    assert_eq!((sample.len(), numbers().await == sample), (50, true));
    assert!(sample.windows(2).all(|pair| pair[0] < pair[1]) && sample[49] > 300);
}

#[tokio::test]
async fn a_damaged_page_and_a_newer_store_are_named() {
    use std::io::{Seek as _, SeekFrom, Write as _};

    for (name, table) in [("store.db", "answer"), ("ledger.db", "rows")] {
        for damage in ["page", "newer"] {
            let folder = tempfile::tempdir().unwrap();
            let batch = Batch::create(folder.path(), &spec(10), rows(2000)).unwrap();
            for row in 0..200 {
                batch.finish(row, rejected("refused")).await.unwrap();
            }
            batch.close().unwrap();
            drop(batch);
            let path = folder.path().join(name);
            let file = rusqlite::Connection::open(&path).unwrap();
            if damage == "newer" {
                file.pragma_update(None, "user_version", 99).unwrap();
            }
            file.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
            let root = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
            let page: u64 = file.query_row(root, [table], |row| row.get::<_, i64>(0)).unwrap().unsigned_abs();
            drop(file);
            if damage == "page" {
                let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
                file.seek(SeekFrom::Start((page - 1) * 4096)).unwrap();
                file.write_all(&[0x5a; 64]).unwrap();
            }
            let out = folder.path().join("out.jsonl");
            let exported = Batch::open(folder.path()).and_then(|batch| batch.view().export_to(&out, false));
            let error = match exported {
                Ok(rows) => panic!("{name}, {damage}: {rows} rows were exported"),
                Err(error) => error.to_string(),
            };
            let says = match damage {
                "newer" => "has format 99, and this version of formwork knows formats up to",
                _ => "malformed",
            };
            assert!(error.contains(says), "{name}, {damage}: {error}");
            assert!(damage == "newer" || error.contains(&format!("page {page}")), "{name}: {error}");
        }
    }
}
