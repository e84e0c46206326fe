//! Scores lowering beside the outputs of other projects' transforms that were recorded from their own tests.

use std::collections::BTreeMap;

use formwork_core::{Lower as _, LowerRequest, Lowered, Tighten, lift};
use formwork_dialect::{Native, Verdict, lint, lower_value};
use formwork_json::is_same;
use formwork_schema::{Compiled, compile};
use formwork_testkit::instance;
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use super::{Args, rows, text};

/// The number of valid instances that are made up for each schema.
const INSTANCES: usize = 20;

/// The results of one transform.
#[derive(Default)]
struct Score {
    schemas: usize,
    /// Schemas without a result that can be sent: the transform fails, the linter knows a keyword that the provider rejects, or no
    /// validator can read the result.
    unsent: usize,
    valid: usize,
    kept: usize,
    invalid: usize,
    refused: usize,
}

pub(super) fn run(args: &Args) -> Result<(), String> {
    let mut scores: BTreeMap<(String, String, bool), Score> = BTreeMap::new();
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
        let (valid, invalid) = instances(input, &original);
        let peer = text(&row, "peer").to_owned();
        let theirs = row.get("expected_schema").filter(|schema| schema.is_object());
        scores.entry((dialect.name().to_owned(), peer.clone(), false)).or_default().theirs(
            dialect.name(),
            theirs,
            &valid,
            &invalid,
        );
        let ours = dialect.lower(&LowerRequest::new(input).with_tighten(Tighten::Closed)).ok();
        scores.entry((dialect.name().to_owned(), peer, true)).or_default().ours(
            ours.as_ref(),
            &valid,
            &invalid,
        );
    }
    println!(
        "| dialect | rows of | transform | schemas that can be sent | valid instances that survive | invalid ones that are refused |"
    );
    println!("|---|---|---|---|---|---|");
    for ((dialect, peer, is_ours), score) in &scores {
        let Score { schemas, unsent, valid, kept, invalid, refused } = score;
        let who = if *is_ours { "ours" } else { peer };
        let percent = |part: &usize, whole: &usize| 100.0 * *part as f64 / (*whole).max(1) as f64;
        println!(
            "| {dialect} | {peer} | {who} | {} of {schemas} | {:.1} % ({kept} of {valid}) | {:.1} % ({refused} of {invalid}) |",
            schemas - unsent,
            percent(kept, valid),
            percent(refused, invalid),
        );
    }
    Ok(())
}

/// Returns made-up valid instances of a schema without members that it does not name, and invalid ones: the valid ones with a
/// member less, a member more, or a value of another type.
fn instances(schema: &Value, original: &Compiled) -> (Vec<Value>, Vec<Value>) {
    let closed = Native::LLGUIDANCE.lower(&LowerRequest::new(schema).with_tighten(Tighten::Closed)).ok();
    let source = closed.and_then(|lowered| lowered.schema.clone()).unwrap_or_else(|| schema.clone());
    let mut runner = TestRunner::new_with_rng(
        Config { max_local_rejects: 20, ..Config::default() },
        TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]),
    );
    let strategy = instance(&source);
    let (mut valid, mut invalid) = (Vec::new(), Vec::new());
    for _ in 0..INSTANCES {
        let Ok(tree) = strategy.new_tree(&mut runner) else { break };
        let value = tree.current();
        if original.is_valid(&value) {
            invalid.extend(broken(&value).into_iter().filter(|value| !original.is_valid(value)));
            valid.push(value);
        }
    }
    (valid, invalid)
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

impl Score {
    fn theirs(&mut self, dialect: &str, schema: Option<&Value>, valid: &[Value], invalid: &[Value]) {
        self.schemas += 1;
        let is_rejected =
            |schema: &Value| lint(dialect, schema).iter().any(|finding| finding.verdict == Verdict::Rejected);
        let compiled = schema.filter(|schema| !is_rejected(schema)).and_then(|schema| compile(schema).ok());
        let Some(compiled) = compiled else {
            self.unsent += 1;
            return;
        };
        self.count(valid, invalid, |value| compiled.is_valid(value));
    }

    fn ours(&mut self, lowered: Option<&Lowered>, valid: &[Value], invalid: &[Value]) {
        self.schemas += 1;
        let sent = lowered.and_then(|lowered| Some((lowered, compile(lowered.schema.as_ref()?).ok()?)));
        let Some((lowered, compiled)) = sent else {
            self.unsent += 1;
            return;
        };
        self.count(valid, invalid, |value| {
            let answer = lower_value(value, lowered).filter(|answer| compiled.is_valid(answer));
            let back = answer.map(|answer| lift(answer, lowered)).filter(|(_, problems)| problems.is_empty());
            back.is_some_and(|(back, _)| is_same(&back, value))
        });
    }

    fn count(&mut self, valid: &[Value], invalid: &[Value], survives: impl Fn(&Value) -> bool) {
        self.valid += valid.len();
        self.kept += valid.iter().filter(|value| survives(value)).count();
        self.invalid += invalid.len();
        self.refused += invalid.iter().filter(|value| !survives(value)).count();
    }
}
