//! Scores parsing on mechanically damaged JSON, and on the test suites of similar projects.

use formwork_core::{Context, Fit, Report, Validator as _};
use formwork_json::{Level, is_same, read};
use formwork_schema::compile;
use serde_json::Value;

use super::{Args, Scores, rows, text};

/// The result of reading a row.
#[derive(PartialEq, Eq)]
enum Found {
    Right,
    /// A wrong value, which is returned as if it were right.
    Wrong,
    /// An error instead of a value.
    Error,
}

/// Compares what is read of a row with its expected value, or with its expected failure, and prints a row of this kind that is not right.
fn found(args: &Args, row: &Value, kind: &str) -> Found {
    let read = read(text(row, "input"), Level::Lenient);
    let value = read.as_ref().map(|reading| &reading.candidates()[0].value);
    let found = match (&value, row.get("expect").is_none_or(|expect| expect == "value")) {
        (Ok(value), true) if is_same(value, &row["expected"]) => Found::Right,
        (Err(_), false) => Found::Right,
        (Ok(_), _) => Found::Wrong,
        (Err(_), true) => Found::Error,
    };
    if found != Found::Right && args.prints(kind) {
        println!(
            "{}\n  input    {}\n  expected {} {}\n  read     {}",
            text(row, "id"),
            row["input"],
            text(row, "expect"),
            row["expected"],
            value.map_or_else(ToString::to_string, ToString::to_string)
        );
    }
    found
}

/// Scores mechanically damaged JSON without a schema, by deep equality, per kind of damage.
pub(super) fn mechanical(args: &Args) -> Result<(), String> {
    let mut scores = Scores::default();
    for row in rows(&args.folder.join("repair_mechanical.jsonl"))? {
        let kind = text(&row, "kind");
        scores.add(kind, found(args, &row, kind) == Found::Right);
    }
    scores.print("mechanical damage, no schema");
    Ok(())
}

/// Scores the same texts with a schema: of the documents in a text, the one that fits the schema best is read.
pub(super) fn mechanical_with_schema(args: &Args) -> Result<(), String> {
    let mut scores = Scores::default();
    let rows = rows(&args.folder.join("repair_mechanical.jsonl"))?;
    for row in rows.iter().filter(|row| !row["needs_schema"].is_null()) {
        let (kind, schema) = (text(row, "kind"), &row["needs_schema"]);
        let validator = compile(schema).map_err(|error| format!("{}: {error}", text(row, "id")))?;
        let reading = read(text(row, "input"), Level::Lenient).ok();
        let fit = |candidate: &formwork_json::Candidate| {
            let mut report = Report::default();
            validator.validate(&candidate.value, &Context::EMPTY, &mut report);
            Fit::new(schema, candidate, &candidate.value, report.violations())
        };
        let best =
            reading.iter().flat_map(|reading| reading.candidates()).max_by_key(|candidate| fit(candidate));
        let is_right = best.is_some_and(|best| is_same(&best.value, &row["expected"]));
        if !is_right && args.prints(kind) {
            println!(
                "{}\n  input    {}\n  expected {}\n  read     {}",
                text(row, "id"),
                row["input"],
                row["expected"],
                best.map_or(&Value::Null, |best| &best.value)
            );
        }
        scores.add(kind, is_right);
    }
    scores.print("mechanical damage, with a schema");
    Ok(())
}

/// Scores the test suites of similar projects, except rows that need a schema or a streaming mode.
pub(super) fn suites(args: &Args) -> Result<(), String> {
    let mut scores = Scores::default();
    let (mut wrong, mut errors) = (0, 0);
    let is_plain = |row: &Value| row["contradicted"] != true && row["core"] == true;
    for row in rows(&args.folder.join("repair_suites.jsonl"))?.into_iter().filter(is_plain) {
        let peer = text(&row, "peer");
        let found = found(args, &row, peer);
        wrong += usize::from(found == Found::Wrong);
        errors += usize::from(found == Found::Error);
        scores.add(&format!("{peer} {}", text(&row, "mode")), found == Found::Right);
    }
    scores.print("peers' suites, no schema");
    println!("  wrong value returned as success: {wrong}, error instead of a value: {errors}");
    Ok(())
}
