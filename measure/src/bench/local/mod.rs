//! Measures the in-process model: valid completions over many seeds, decoding speed compared with candle's own example, and the
//! cost of the schema.

pub(super) mod choosing;
pub(super) mod decode;

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::measure::median;
use super::process::{number, part};
use super::report::{Goal, Row};
use crate::{Failure, workspace};

/// The number of seeds per question.
const SEEDS: u64 = 50;

/// The number of tokens that each side decodes per round, and the number of rounds.
const TOKENS: u32 = 200;
const ROUNDS: usize = 5;

const SYSTEM: &str = "You are a helpful assistant.";
const STORY: &str = "Tell a long story about a lighthouse keeper and a storm.";

/// A schema of `examples/` with its input.
struct Question {
    name: &'static str,
    schema: &'static str,
    text: &'static str,
    /// The correct answer, if there is only one.
    right: Option<&'static str>,
}

const QUESTIONS: [Question; 3] = [
    Question {
        name: "the README's example",
        schema: "person.schema.json",
        text: "Maria Lindqvist, 34, moved to Lisbon last spring.",
        right: Some(r#"{"name": "Maria Lindqvist", "age": 34, "city": "Lisbon"}"#),
    },
    Question {
        name: "the oracle's schema",
        schema: "ai-score.schema.json",
        text: "Score this wallet. 412 transactions over 3 years, 18 protocols, mostly DEX trades and lending, no \
               liquidations, one interaction with a flagged mixer, survey answers match on-chain behaviour.",
        right: None,
    },
    Question {
        name: "StructuredAnswerLite",
        schema: "structured-answer-lite.schema.json",
        text: "What is the capital of France?",
        right: None,
    },
];

pub(super) fn measure() -> Result<Vec<Row>, Failure> {
    let build = ["build", "--release", "--package", "formwork-cli"];
    let formwork = workspace::built(workspace::cargo().args(build), "release", "formwork")?;
    let mut rows = Vec::new();
    for question in &QUESTIONS {
        rows.extend(question.ask(&formwork)?);
    }
    rows.extend(beside_the_peer()?);
    Ok(rows)
}

impl Question {
    /// Makes one attempt per seed, and counts the results.
    fn ask(&self, formwork: &Path) -> Result<Vec<Row>, Failure> {
        let answers = (1..=SEEDS).map(|seed| self.answer(formwork, seed)).collect::<Result<Vec<_>, _>>()?;
        let share = |what: &str, goal: Goal, is: &dyn Fn(&Value) -> bool| {
            let count = answers.iter().filter(|answer| is(answer)).count();
            let percent = 100.0 * count as f64 / answers.len() as f64;
            let from = format!("{count} of {}", answers.len());
            Row::figure(&format!("{}: {what}", self.name), from, percent, "%", Some(goal))
        };
        let mut rows = vec![
            share("valid", Goal::AtLeast(100.0), &|answer| answer["ok"] == true),
            share("truncated", Goal::AtMost(0.0), &|answer| has(&answer["calls"], "finish", "length")),
            share("closed without the model", Goal::AtMost(10.0), &|answer| {
                has(&answer["provenance"], "source", "closed")
            }),
        ];
        if let Some(right) = self.right {
            let right: Value = serde_json::from_str(right).map_err(|error| format!("{right}: {error}"))?;
            rows.push(share("all fields right", Goal::AtLeast(80.0), &|answer| answer["value"] == right));
            let age = |answer: &Value| answer["value"]["age"] == right["age"];
            rows.push(share("age right", Goal::AtLeast(100.0), &age));
        }
        Ok(rows)
    }

    fn answer(&self, formwork: &Path, seed: u64) -> Result<Value, Failure> {
        let schema = workspace::root().join("examples").join(self.schema);
        let seed = seed.to_string();
        let mut command = Command::new(formwork);
        command.args(["extract", "--json", "--max-attempts", "1", "--seed", &seed, "--schema"]);
        let output = command.arg(schema).arg(self.text).output();
        let output = output.map_err(|error| format!("cannot start {}: {error}", formwork.display()))?;
        // Exit code 1 means an invalid answer, which is counted as well.
        serde_json::from_slice(&output.stdout).map_err(|_| {
            format!("formwork extract: {}", String::from_utf8_lossy(&output.stderr).trim()).into()
        })
    }
}

/// Returns whether one of the objects has such a property.
fn has(objects: &Value, key: &str, word: &str) -> bool {
    objects.as_array().is_some_and(|objects| objects.iter().any(|object| object[key] == word))
}

/// Measures decoding, alternating with candle's own quantized llama with the same weights; then the cost of masks and sampling.
fn beside_the_peer() -> Result<Vec<Row>, Failure> {
    let build =
        ["build", "--profile", "dist", "--package", "candle-peer", "--manifest-path", "measure/Cargo.toml"];
    let peer = workspace::built(workspace::cargo().args(build), "dist", "candle-peer")?;
    let tokens = TOKENS.to_string();
    let (mut our_speeds, mut peer_speeds) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let line = one_thread(&mut part(&["decode", &tokens, SYSTEM, STORY])?)?;
        our_speeds.push(number(&line, "/tokens")? / number(&line, "/seconds")?);
        let weights = line["weights"].as_str().ok_or("the engine names no weights")?;
        let line = one_thread(Command::new(&peer).args([weights, &tokens, SYSTEM, STORY]))?;
        peer_speeds.push(number(&line, "/tokens")? / number(&line, "/seconds")?);
    }
    let ratio = median(our_speeds.iter().zip(&peer_speeds).map(|(ours, peer)| ours / peer));
    let (our_speed, peer_speed) = (median(our_speeds.into_iter()), median(peer_speeds.into_iter()));
    let from = format!("{our_speed:.1} / {peer_speed:.1}");
    let what = "tokens per CPU-second beside candle-transformers";
    let mut rows = vec![Row::figure(what, from, ratio, "x", Some(Goal::AtLeast(1.0)))];

    for question in &QUESTIONS {
        let schema = workspace::root().join("examples").join(question.schema);
        let mut command = part(&["choosing", "3", "5"])?;
        let line = one_thread(command.arg(schema).arg(question.text))?;
        let share = number(&line, "/share")?;
        let (choosing, decode) = (1e3 * number(&line, "/choosing")?, 1e3 * number(&line, "/decode")?);
        let from = format!("{choosing:.3} / {decode:.1} ms a step");
        let what = format!("{}: masking and sampling", question.name);
        rows.push(Row::figure(&what, from, 100.0 * share, "%", Some(Goal::AtMost(3.0))));
    }
    Ok(rows)
}

/// Runs a program and returns its line of JSON. Both sides decode on one thread.
fn one_thread(command: &mut Command) -> Result<Value, Failure> {
    let text = workspace::stdout(command.env("CANDLE_NUM_THREADS", "1"))?;
    Ok(serde_json::from_str(&text).map_err(|error| format!("{text}: {error}"))?)
}
