//! Tables: what is read, what is kept, and what is written.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use formwork_batch::{Batch, BatchError, Columns, Engine as _, InProcess, Row, Spec, View, read_rows};
use formwork_extract::{CancellationToken, Extractor};
use formwork_testkit::Scripted;
use serde_json::{Value, json};

const ENDINGS: &[&str] = &[
    "jsonl",
    "jsonl.gz",
    "jsonl.zst",
    "csv",
    "csv.gz",
    "csv.zst",
    "tsv",
    "tsv.gz",
    "tsv.zst",
    #[cfg(feature = "parquet")]
    "parquet",
    #[cfg(feature = "parquet")]
    "arrow",
];

/// Creates a batch of these rows, each with the completion of a model, and processes it.
fn batch(folder: &Path, rows: Vec<Row>, completions: &[&str]) -> View {
    let schema = json!({"type": "object", "properties": {"n": {"type": ["integer", "number", "null"]}}, "required": ["n"]});
    let model = Scripted::new(completions.iter().copied());
    let extractor =
        Extractor::for_document("x", schema.clone()).with_target(Arc::new(model)).with_max_attempts(1);
    let rows: Vec<_> = rows.into_iter().map(Ok).collect();
    let batch = Arc::new(Batch::create(folder.join("batch"), &Spec::new(schema, "rows"), rows).unwrap());
    let engine = InProcess::new(extractor.build().unwrap(), 1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // Without a completion, the rows stay open.
    if !completions.is_empty() {
        runtime.block_on(engine.run(Arc::clone(&batch) as _, &CancellationToken::new())).unwrap();
    }
    batch.close().unwrap();
    batch.view().clone()
}

fn row(id: impl Into<Value>, columns: &str) -> Row {
    Row { columns: columns.to_owned(), ..Row::new(id, "a text") }
}

fn read(path: &Path, columns: &Columns) -> Result<Vec<Row>, BatchError> {
    read_rows(path, columns)?.map(|row| Ok(row?.unwrap())).collect()
}

#[test]
fn every_format_is_written_and_read_again_with_its_columns() {
    let folder = tempfile::tempdir().unwrap();
    let kept = r#"{"text":"Zoë, \"34\"\n\tyears","note":"x"}"#;
    let view = batch(
        folder.path(),
        vec![row("a", kept), row("b", kept), row("c", kept)],
        &[r#"{"n": 1, "who": {"name": "Ann", "tags": ["x"]}}"#, "no", r#"{"n": 2, "who": null}"#],
    );
    let columns = Columns::default().with_input("text");
    for ending in ENDINGS {
        let path = folder.path().join(format!("out.{ending}"));
        let is_table = !ending.starts_with("jsonl");
        assert_eq!(view.export_to(&path, false).unwrap(), if is_table { 3 } else { 2 }, "{ending}");
        if !is_table {
            let lines = read(
                &path,
                &Columns::default().with_render(["value"], Arc::new(|row| Ok(row["value"]["n"].to_string()))),
            );
            let found: Vec<_> = lines.unwrap().into_iter().map(|row| (row.id, row.input)).collect();
            assert_eq!(found, [(json!("a"), "1".to_owned()), (json!("c"), "2".to_owned())], "{ending}");
            continue;
        }
        let rows = read(&path, &columns).unwrap();
        let ids: Vec<_> = rows.iter().map(|row| &row.id).collect();
        assert_eq!(ids, ["a", "b", "c"], "{ending}");
        assert!(rows.iter().all(|row| row.input == "Zoë, \"34\"\n\tyears"), "{ending}: {rows:?}");
        let cells: Vec<Value> = rows.iter().map(|row| serde_json::from_str(&row.columns).unwrap()).collect();
        let is_text = !["parquet", "arrow"].contains(ending);
        let one = if is_text { json!("1") } else { json!(1) };
        assert_eq!((&cells[0]["note"], &cells[0]["value.n"]), (&json!("x"), &one), "{ending}");
        assert_eq!(
            (&cells[0]["value.who.name"], &cells[0]["value.who.tags"]),
            (&json!("Ann"), &json!("[\"x\"]"))
        );
        assert_eq!(cells[0].get("value.who"), None, "an object is no column beside its members");
        let verdicts: Vec<_> = cells.iter().map(|cells| &cells["verdict"]).collect();
        assert_eq!(verdicts, ["accepted", "rejected", "accepted"], "{ending}");
        assert!(cells[1]["error.message"].as_str().is_some_and(|text| !text.is_empty()), "{ending}");
        assert_eq!(cells[0]["contract"].as_str().map(str::len), Some(64), "{ending}");
        let at = cells[0]["at"].as_str().unwrap_or_default();
        assert!(at.len() == 20 && at.ends_with('Z') && cells[0]["prompt"].is_string(), "{ending}: {at}");
    }
    let path = folder.path().join("rejected.csv");
    assert_eq!(view.export_to(&path, true).unwrap(), 1);
    let header = fs::read_to_string(&path).unwrap().lines().next().unwrap().to_owned();
    assert_eq!(header, "id,text,note,verdict,contract,prompt,at,error.class,error.message,attempts");
}

#[test]
fn a_column_of_the_input_with_a_name_of_the_table_is_renamed() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["model", "value", "value.n", "verdict", "target", "error.class", "at", "year", "valued"];
    let columns = names.map(|name| format!("{name:?}:\"own\"")).join(",");
    let view = batch(folder.path(), vec![row("a", &format!("{{{columns}}}"))], &[r#"{"n": 1}"#]);
    let path = folder.path().join("out.csv");
    assert_eq!(view.export_to(&path, false).unwrap(), 1);
    let begin = "id,input.model,input.value,input.value.n,input.verdict,input.target,input.error.class,input.at,year,valued,value.n,";
    let table = fs::read_to_string(&path).unwrap();
    assert!(table.starts_with(begin) && table.contains("own,own,1,accepted"), "{table}");
}

#[test]
fn a_table_that_cannot_be_written_leaves_the_older_file() {
    let folder = tempfile::tempdir().unwrap();
    let big = r#"{"big":18446744073709551615}"#;
    let view = batch(
        folder.path(),
        vec![row("a", r#"{"big":1}"#), row("b", big), row(3, r#"{"verdict":1,"input.verdict":2}"#)],
        &[],
    );
    for (ending, says) in [
        (
            "csv",
            "row 3 (id 3): two columns are called `input.verdict`: export JSON Lines, or rename the column of the rows",
        ),
        ("xlsx", "exports do not write `.xlsx`: name a file with .jsonl, .csv or .tsv"),
    ] {
        let path = folder.path().join(format!("out.{ending}"));
        fs::write(&path, "older").unwrap();
        let error = view.export_to(&path, false).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "older");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "no temporary file stays");
}

#[cfg(feature = "parquet")]
#[test]
fn a_value_that_does_not_fit_the_type_of_parquet_names_its_row() {
    for (columns, says) in [
        (
            ["1", "18446744073709551615"],
            "row 2 (id 1): the column `x`: 18446744073709551615 does not fit a 64-bit integer",
        ),
        (
            ["0.5", "9007199254740993"],
            "row 2 (id 1): the column `x`: 9007199254740993 does not fit a 64-bit floating-point number exactly",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let rows = columns.iter().enumerate().map(|(id, x)| row(id, &format!("{{\"x\":{x}}}"))).collect();
        let view = batch(folder.path(), rows, &[]);
        let path = folder.path().join("out.parquet");
        let error = view.export_to(&path, false).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
        assert!(!path.exists());
        // Text holds every number as it was written.
        view.export_to(&folder.path().join("out.csv"), false).unwrap();
        let text = fs::read_to_string(folder.path().join("out.csv")).unwrap();
        assert!(text.contains(columns[1]), "{text}");
    }
}

#[test]
fn a_table_that_changes_while_it_is_read_or_is_damaged_stores_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let line = |id: usize| format!("{{\"id\": {id}, \"input\": \"x\"}}\n");
    let path = folder.path().join("rows.jsonl");
    fs::write(&path, (0..25_000).map(line).collect::<String>()).unwrap();
    let mut rows = read_rows(&path, &Columns::default()).unwrap();
    rows.next().unwrap().unwrap().unwrap();
    fs::File::options().append(true).open(&path).unwrap().write_all(line(25_000).as_bytes()).unwrap();
    let spec = Spec::new(json!({}), "rows");
    let error = Batch::create_fallible(folder.path().join("batch"), &spec, rows).unwrap_err().to_string();
    assert!(error.contains("rows.jsonl: the file was changed while it was read, after row 2500"), "{error}");
    let view = batch(folder.path(), vec![row("a", ""), row("b", "")], &["no"; 2]);
    for ending in ["jsonl.gz", "jsonl.zst"] {
        let whole = folder.path().join(format!("whole.{ending}"));
        view.export_to(&whole, true).unwrap();
        let mut bytes = fs::read(&whole).unwrap();
        bytes.truncate(bytes.len() - 12);
        let damaged = folder.path().join(format!("damaged.{ending}"));
        fs::write(&damaged, bytes).unwrap();
        let columns = Columns::default().with_render([""; 0], Arc::new(|_| Ok("x".to_owned())));
        let found = read(&whole, &columns).unwrap();
        assert_eq!(found.len(), 2, "{ending}");
        assert!(read(&damaged, &columns).is_err(), "{ending}: {} rows", found.len());
    }
}
