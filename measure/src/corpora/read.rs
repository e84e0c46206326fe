//! Scores parsing on mechanically damaged JSON, and on the test suites of similar projects.

use std::sync::Arc;

use formwork_core::{Coercion, Context, Fit, Inline, Report, Validator as _};
use formwork_json::{Level, is_same, read};
use formwork_schema::{compile, contract_for};
use serde_json::Value;

use super::{Args, Scores, percent, rows, text};

/// The result of reading a row.
#[derive(Clone, Copy, PartialEq, Eq)]
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
    // Of the rows of whole texts, and of all rows.
    let (mut whole, mut all) = ([0; 3], [0; 3]);
    let is_plain = |row: &Value| row["contradicted"] != true && row["core"] == true;
    for row in rows(&args.folder.join("repair_suites.jsonl"))?.into_iter().filter(is_plain) {
        let peer = text(&row, "peer");
        let found = found(args, &row, peer);
        let is_whole = !text(&row, "mode").contains("partial");
        for counts in [&mut all].into_iter().chain(is_whole.then_some(&mut whole)) {
            counts[found as usize] += 1;
        }
        scores.add(&format!("{peer} {}", text(&row, "mode")), found == Found::Right);
    }
    scores.print("peers' suites, no schema");
    for (rows, counts) in [("final", whole), ("all", all)] {
        let [right, wrong, error] = counts.map(|count| percent(count, counts.iter().sum()));
        println!(
            "  {rows} rows: {right:.1} % right, {wrong:.1} % a wrong value as success, {error:.1} % an error ({counts:?})"
        );
    }
    Ok(())
}

/// Scores the rows of the suites that need a schema, each peer at the levels of conversion. `null` counts as absent, and rows of
/// unfinished texts are left out.
pub(super) fn suites_with_schema(args: &Args) -> Result<(), String> {
    for coercion in [Coercion::Ask, Coercion::Fix, Coercion::Guess] {
        let mut scores = Scores::default();
        let mut wrong = 0;
        let rows = rows(&args.folder.join("repair_suites.jsonl"))?;
        let is_final =
            |row: &&Value| !row["needs_schema"].is_null() && !text(row, "mode").contains("partial");
        for row in rows.iter().filter(is_final) {
            let (peer, schema) = (text(row, "peer"), &row["needs_schema"]);
            let found = coerced(text(row, "input"), schema, coercion);
            let is_right = match (&found, text(row, "expect") == "value") {
                (Some(value), true) => is_same(&stated(value), &stated(&row["expected"])),
                (found, expects) => found.is_some() == expects,
            };
            wrong += usize::from(!is_right && found.is_some());
            scores.add(peer, is_right);
            if !is_right && args.prints(peer) {
                println!(
                    "{} {coercion}\n  input    {}\n  expected {}\n  read     {found:?}",
                    text(row, "id"),
                    row["input"],
                    row["expected"]
                );
            }
        }
        scores.print(&format!("peers' suites, with a schema, coercion {coercion}"));
        println!("  wrong value returned as success: {wrong}");
    }
    Ok(())
}

/// Returns the valid document of a text, once its values are converted.
fn coerced(text: &str, schema: &Value, coercion: Coercion) -> Option<Value> {
    let contract = contract_for(Arc::new(Inline::new("row", schema.clone()))).ok()?.with_coercion(coercion);
    let reading = read(text, Level::Lenient).ok();
    let settled = reading.iter().flat_map(|reading| reading.candidates()).map(|candidate| {
        let source = Some(candidate.span.of(text)).filter(|_| candidate.edits.is_empty());
        let settled = contract.settle_text(candidate.value.clone(), source, &Context::EMPTY);
        let fit = Fit::new(schema, candidate, &settled.value, &settled.judgement.violations);
        (fit.with_changes(settled.coerced.len()), settled)
    });
    let best = settled.max_by_key(|(fit, _)| *fit).map(|(_, settled)| settled);
    let best = best.filter(|settled| settled.judgement.is_accepted());
    let whole = contract.guesses().then(|| contract.settle(Value::from(text), &Context::EMPTY));
    let whole = whole.filter(|whole| whole.judgement.is_accepted() && !whole.value.is_object());
    match (best, whole) {
        (Some(best), Some(whole)) if !whole.coerced.is_empty() || best.coerced.is_empty() => Some(best.value),
        (best, whole) => whole.or(best).map(|settled| settled.value),
    }
}

/// Returns a value without members that are `null`.
fn stated(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let stated = members.iter().filter(|(_, member)| !member.is_null());
            Value::Object(stated.map(|(name, member)| (name.clone(), self::stated(member))).collect())
        }
        Value::Array(items) => items.iter().map(stated).collect(),
        other => other.clone(),
    }
}
