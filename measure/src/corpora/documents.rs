//! Scores recorded answers of models about documents: how many are valid at the first call, in each dialect.

use std::collections::BTreeMap;
use std::sync::Arc;

use formwork_core::{Absent, Context, Contract, Inline, LowerRequest, Lowered, Tighten, lift};
use formwork_dialect::lower_value;
use formwork_schema::{Formats, compile_with};
use serde_json::Value;

use super::lower::dialects;
use super::{Args, rows, text};

/// The recorded answers of a row: the hand-verified one, and those of models.
const ANSWERS: [&str; 4] = ["gold", "gpt", "gemini", "claude"];

/// The ways to judge an answer.
const WAYS: [&str; 3] = ["plain validation", "null for absent", "absent: all"];

pub(super) fn run(args: &Args) -> Result<(), String> {
    let rows = rows(&args.folder.join("documents.jsonl"))?;
    let rows: Vec<_> = rows.iter().filter(|row| text(row, "id").starts_with("docubench/")).collect();
    for (formats, name) in [(Formats::Annotate, "ignored"), (Formats::Assert, "asserted")] {
        println!("formats {name}: valid at the first call of {} rows ({})", rows.len(), ANSWERS.join(" / "));
        table(args, &rows, formats)?;
    }
    Ok(())
}

fn table(args: &Args, rows: &[&Value], formats: Formats) -> Result<(), String> {
    println!("| dialect | {} |", WAYS.join(" | "));
    println!("|---|---|---|---|");
    let mut left: BTreeMap<String, usize> = BTreeMap::new();
    for dialect in dialects(args) {
        let mut valid = [[0_usize; ANSWERS.len()]; WAYS.len()];
        for row in rows {
            let plain = row["schema"].clone();
            let mut absent = plain.clone();
            Absent::All.declare(&mut absent);
            for (way, schema) in [(0, &plain), (1, &plain), (2, &absent)] {
                let request = LowerRequest::new(schema).with_tighten(Tighten::Closed);
                let lowered =
                    dialect.lower(&request).map_err(|refused| format!("{}: {refused}", text(row, "id")))?;
                let contract = contract(schema, formats)?;
                for (nth, who) in ANSWERS.into_iter().enumerate() {
                    let answer = if who == "gold" { &row["gold"] } else { &row["answers"][who] };
                    let wrong = judged(&contract, &lowered, answer, way > 0);
                    valid[way][nth] += usize::from(wrong.is_empty());
                    for (rule, found, place) in wrong {
                        let kind = format!("{} {}: {rule}, found {found}", dialect.name(), WAYS[way]);
                        if args.prints(&kind) {
                            println!("{} {who} {kind} at {place}", text(row, "id"));
                        }
                        *left.entry(format!("{}: {rule}, found {found}", WAYS[way])).or_default() += 1;
                    }
                }
            }
        }
        let shown = valid.map(|all| all.map(|count| count.to_string()).join(" / "));
        println!("| {} | {} |", dialect.name(), shown.join(" | "));
    }
    println!("violations that remain, in all dialects:");
    for (kind, count) in left {
        println!("  {count:>6} {kind}");
    }
    Ok(())
}

fn contract(schema: &Value, formats: Formats) -> Result<Contract, String> {
    let compiled = compile_with(schema, formats).map_err(|error| error.to_string())?;
    Ok(Contract::new(Arc::new(Inline::new("document", schema.clone())), compiled))
}

/// Returns the violations of an answer that a model gives in a dialect: the rule, the found value and the path of each. A model that
/// the dialect cannot hold to the lowered schema gives the answer as it is.
fn judged(
    contract: &Contract,
    lowered: &Lowered,
    answer: &Value,
    settles: bool,
) -> Vec<(String, String, String)> {
    let completion = lower_value(answer, lowered).unwrap_or_else(|| answer.clone());
    let (value, mut violations) = lift(completion, lowered);
    let judgement = if settles {
        contract.settle(value, &Context::EMPTY).judgement
    } else {
        contract.judge(&value, &Context::EMPTY)
    };
    violations.extend(judgement.violations);
    let found = |found: &str| if found == "null" { "null" } else { "another value" }.to_owned();
    violations.into_iter().map(|one| (one.rule.clone(), found(&one.found), one.path.to_string())).collect()
}
