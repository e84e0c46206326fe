//! Scores lowering beside the outputs of other projects' transforms that were recorded from their own tests.

use std::collections::BTreeMap;

use formwork_core::{Lower as _, LowerRequest, Lowered, Tighten, lift};
use formwork_dialect::{Native, lower_value};
use formwork_json::is_same;
use formwork_schema::{Compiled, compile};
use formwork_testkit::instance;
use proptest::strategy::{Strategy as _, ValueTree as _};
use serde_json::{Value, json};

use super::{Args, Transformed, percent, rows, runner, text};

/// The number of valid instances that are made up for each schema.
const INSTANCES: usize = 20;

pub(super) fn run(args: &Args) -> Result<(), String> {
    let mut scores: BTreeMap<(String, String, bool), Transformed> = BTreeMap::new();
    for row in rows(&args.folder.join("schema_transforms.jsonl"))? {
        let dialect = match text(&row, "dialect") {
            "openai-strict" => Native::OPENAI,
            "anthropic" => Native::ANTHROPIC,
            // The transforms are those of `responseSchema`, except where they keep `$defs`.
            "google" => Native::GEMINI,
            _ => continue,
        };
        let input = &row["input_schema"];
        let Ok(original) = compile(input) else { continue };
        let instances = instances(input, &original);
        let key = |is_ours| (dialect.name().to_owned(), text(&row, "peer").to_owned(), is_ours);
        let theirs = scores.entry(key(false)).or_default();
        let schema = row.get("expected_schema").filter(|schema| schema.is_object());
        if let Some(compiled) = theirs.schema(dialect.name(), schema) {
            instances.iter().for_each(|(value, valid)| theirs.instance(*valid, compiled.is_valid(value)));
        }
        let ours = scores.entry(key(true)).or_default();
        let lowered =
            dialect.lower(&LowerRequest::new(input).with_tighten(Tighten::Closed)).unwrap_or_default();
        if let Some(compiled) = ours.schema(dialect.name(), lowered.schema.as_ref()) {
            for (value, valid) in &instances {
                ours.instance(*valid, survives(value, &lowered, &compiled));
            }
        }
    }
    println!(
        "| dialect | rows of | transform | schemas that can be sent | valid instances that survive | invalid ones that are refused |"
    );
    println!("|---|---|---|---|---|---|");
    for ((dialect, peer, is_ours), score) in &scores {
        let Transformed { schemas, valid, kept, invalid, refused, .. } = *score;
        let who = if *is_ours { "ours" } else { peer };
        println!(
            "| {dialect} | {peer} | {who} | {} of {schemas} | {:.1} % ({kept} of {valid}) | {:.1} % ({refused} of {invalid}) |",
            score.sent(),
            percent(kept, valid),
            percent(refused, invalid),
        );
    }
    Ok(())
}

/// Returns whether a value that is lowered for a schema satisfies it, and comes back from it.
fn survives(value: &Value, lowered: &Lowered, compiled: &Compiled) -> bool {
    let answer = lower_value(value, lowered).filter(|answer| compiled.is_valid(answer));
    let back = answer.map(|answer| lift(answer, lowered)).filter(|(_, problems)| problems.is_empty());
    back.is_some_and(|(back, _)| is_same(&back, value))
}

/// Returns made-up instances of a schema, and whether each is valid: valid ones without members that it does not name, and the same with
/// a member less, a member more, or a value of another type.
fn instances(schema: &Value, original: &Compiled) -> Vec<(Value, bool)> {
    let closed = Native::LLGUIDANCE.lower(&LowerRequest::new(schema).with_tighten(Tighten::Closed)).ok();
    let source = closed.and_then(|lowered| lowered.schema.clone()).unwrap_or_else(|| schema.clone());
    let mut runner = runner();
    let strategy = instance(&source);
    let mut instances = Vec::new();
    for _ in 0..INSTANCES {
        let Ok(tree) = strategy.new_tree(&mut runner) else { break };
        let value = tree.current();
        if original.is_valid(&value) {
            let broken = broken(&value).into_iter().filter(|value| !original.is_valid(value));
            instances.extend(broken.map(|value| (value, false)));
            instances.push((value, true));
        }
    }
    instances
}

fn broken(value: &Value) -> Vec<Value> {
    let mut all = vec![json!(null), json!("text"), json!(12.5), json!([]), json!({})];
    if let Value::Object(members) = value {
        for (name, member) in members {
            let mut less = members.clone();
            less.shift_remove(name);
            all.push(Value::Object(less));
            for other in broken_leaf(member) {
                let mut changed = members.clone();
                changed.insert(name.clone(), other);
                all.push(Value::Object(changed));
            }
        }
    }
    all
}

fn broken_leaf(value: &Value) -> Vec<Value> {
    let mut all = vec![json!({"unknown": 1}), json!([[]]), json!(-123_456_789.5), json!("\u{1}")];
    if let Value::Object(_) = value {
        all.extend(broken(value));
    }
    all
}
