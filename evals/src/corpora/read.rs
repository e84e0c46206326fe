//! Scores parsing on mechanically damaged JSON, and on the test suites of similar projects.

use formwork_json::{Level, is_same, read};

use super::{Args, Scores, rows, text};

/// Scores mechanically damaged JSON without a schema, by deep equality, per kind of damage.
pub(super) fn mechanical(args: &Args) -> Result<(), String> {
    let mut scores = Scores::default();
    for row in rows(&args.folder.join("repair_mechanical.jsonl"))? {
        let kind = text(&row, "kind");
        let read = read(text(&row, "input"), Level::Lenient);
        let value = read.as_ref().ok().map(|reading| &reading.candidates()[0].value);
        let right = value.is_some_and(|value| is_same(value, &row["expected"]));
        scores.add(kind, right);
        if !right && args.prints(kind) {
            println!(
                "{}\n  input    {}\n  expected {}\n  read     {}",
                text(&row, "id"),
                row["input"],
                row["expected"],
                value.map_or_else(
                    || read.as_ref().err().map(ToString::to_string).unwrap_or_default(),
                    ToString::to_string
                )
            );
        }
    }
    scores.print("mechanical damage, no schema");
    Ok(())
}

/// Scores the test suites of similar projects, except rows that need a schema or a streaming mode.
pub(super) fn suites(args: &Args) -> Result<(), String> {
    let mut scores = Scores::default();
    let (mut wrong, mut errors) = (0, 0);
    for row in rows(&args.folder.join("repair_suites.jsonl"))? {
        if row["contradicted"] == true || row["core"] != true {
            continue;
        }
        let peer = text(&row, "peer");
        let read = read(text(&row, "input"), Level::Lenient);
        let value = read.as_ref().ok().map(|reading| &reading.candidates()[0].value);
        let right = match text(&row, "expect") {
            "value" => value.is_some_and(|value| is_same(value, &row["expected"])),
            _ => value.is_none(),
        };
        wrong += usize::from(!right && value.is_some());
        errors += usize::from(!right && value.is_none());
        scores.add(&format!("{peer} {}", text(&row, "mode")), right);
        if !right && args.prints(peer) {
            println!(
                "{}\n  input    {}\n  expected {} {}\n  read     {}",
                text(&row, "id"),
                row["input"],
                text(&row, "expect"),
                row["expected"],
                value.map_or_else(
                    || read.as_ref().err().map(ToString::to_string).unwrap_or_default(),
                    ToString::to_string
                )
            );
        }
    }
    scores.print("peers' suites, no schema");
    println!("  wrong value returned as success: {wrong}, error instead of a value: {errors}");
    Ok(())
}
