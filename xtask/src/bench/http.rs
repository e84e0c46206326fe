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

/// The protocols, by their names in `http-side`.
const WIRES: [&str; 5] = ["chat", "responses", "anthropic", "gemini", "ollama"];

/// The comparisons of each protocol: document or stream, and the number of concurrent calls.
const MODES: [(&str, &str, &str); 3] = [
    ("document", "1", "one call at a time"),
    ("document", "32", "32 calls at a time"),
    ("stream", "32", "a stream of 240 events, 32 at a time"),
];

/// The maximum CPU time of a call over Chat Completions, and that of every other call and of every stream, as ratios.
const CHAT: f64 = 1.15;
const OTHERS: f64 = 1.2;

/// Returns the row of a comparison.
fn compared(wire: &str, mode: &str, how: &str, line: &Value) -> Result<Row, String> {
    let goal = if (wire, mode) == ("chat", "document") { CHAT } else { OTHERS };
    let from = format!("{:.1} / {:.1} CPU µs", number(line, "ours")?, number(line, "peer")?);
    let what = format!("{wire}, {how}: CPU of a call");
    Ok(Row::figure(&what, from, number(line, "ratio")?, "x", Some(Goal::AtMost(goal))))
}

pub(super) fn measure() -> Result<Vec<Row>, String> {
    let program = built(&mut peers("http-side"), "http-side")?;
    let line = output_of(&program, &["calls", "chat", "document", "burning", "1", "50", "3"])?;
    if compared("chat", "document", "burning", &line)?.is_met() != Some(false) {
        return Err(format!("calls that waste CPU time on purpose are not noticed: {line}"));
    }
    let mut rows = Vec::new();
    for wire in WIRES {
        for (mode, in_flight, how) in MODES {
            let line = output_of(&program, &["calls", wire, mode, "extractor", in_flight, CALLS, ROUNDS])?;
            rows.push(compared(wire, mode, how, &line)?);
        }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_protocol_has_its_goal() {
        for (wire, mode, ratio, is_met) in [
            ("chat", "document", 1.15, true),
            ("chat", "document", 1.16, false),
            ("chat", "stream", 1.2, true),
            ("gemini", "document", 1.2, true),
            ("gemini", "document", 1.21, false),
            ("ollama", "stream", 1.21, false),
        ] {
            let line = json!({"ours": 10.0 * ratio, "peer": 10.0, "ratio": ratio});
            let row = compared(wire, mode, "", &line).unwrap();
            assert_eq!(row.is_met(), Some(is_met), "{wire} {mode} {ratio}");
        }
        assert!(compared("chat", "document", "", &json!({"ours": 1.0})).is_err());
    }
}
