//! Compares a call over HTTP with a bare client, and measures the memory of many calls and of long completions.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::programs::{built, last_line, peers};
use super::report::{Goal, Row};

/// The number of calls of each side per turn, and the number of turns.
const CALLS: &str = "300";
const ROUNDS: &str = "41";

/// The number of concurrent calls.
const HELD: &str = "1000";

/// The length of the very long completion in bytes.
const FLOOD: &str = "1000000000";

/// The comparisons: document or stream, extractor or only the provider, and the number of concurrent calls.
const CALLED: [(&str, [&str; 3], Option<f64>); 6] = [
    ("document, one call at a time", ["document", "extractor", "1"], Some(1.3)),
    ("document, 32 calls at a time", ["document", "extractor", "32"], Some(1.3)),
    ("document, one call at a time, provider alone", ["document", "provider", "1"], None),
    ("document, 32 calls at a time, provider alone", ["document", "provider", "32"], None),
    ("stream of 240 events, 32 calls at a time", ["stream", "extractor", "32"], None),
    ("stream of 240 events, 32 calls at a time, provider alone", ["stream", "provider", "32"], None),
];

pub(super) fn measure() -> Result<Vec<Row>, String> {
    let program = built(&mut peers("http-side"), "http-side")?;
    let mut rows = Vec::new();
    for (what, [mode, part, in_flight], goal) in CALLED {
        let line = output_of(&program, &["calls", mode, part, in_flight, CALLS, ROUNDS])?;
        let from = format!("{:.1} / {:.1} CPU µs", number(&line, "ours")?, number(&line, "peer")?);
        let what = format!("{what}: CPU of a call");
        rows.push(Row::figure(&what, from, number(&line, "ratio")?, "x", goal.map(Goal::AtMost)));
    }
    let (ours, bare) =
        (output_of(&program, &["held", "ours", HELD])?, output_of(&program, &["held", "bare", HELD])?);
    let from = format!("bare client: {:.1}", number(&bare, "peak_held")?);
    let what = format!("{HELD} calls held open: peak memory of each");
    rows.push(Row::figure(&what, from, number(&ours, "peak_held")?, "KiB", Some(Goal::AtMost(64.0))));
    for (what, how) in [("a reader that stops", "stop"), ("a reader that reads it all", "whole")] {
        let line = output_of(&program, &["flood", how, FLOOD])?;
        let from = format!("{:.1} MB of it read", number(&line, "read")? / 1e6);
        let what = format!("1 GB is offered to {what}: memory");
        // A slow reader may hold the buffers of the connection, and no more of the completion.
        rows.push(Row::figure(&what, from, number(&line, "grown")? / 1e6, "MB", Some(Goal::AtMost(4.0))));
    }
    let line = output_of(&program, &["failover", ROUNDS])?;
    let from = format!("{:.2} ms each, {:.2} ms alone", number(&line, "both")?, number(&line, "alone")?);
    let what = "first of two targets down, calls after the first: the most over the second's own time";
    rows.push(Row::figure(what, from, number(&line, "over")?, "ms", Some(Goal::AtMost(5.0))));
    Ok(rows)
}

fn output_of(program: &Path, arguments: &[&str]) -> Result<Value, String> {
    last_line(Command::new(program).args(arguments))
}

fn number(line: &Value, name: &str) -> Result<f64, String> {
    line[name].as_f64().ok_or_else(|| format!("no `{name}` in {line}"))
}
