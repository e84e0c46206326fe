//! Compares the oracle's service with a bare handler that reads and writes the same bytes, and measures its memory over many
//! requests.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::programs::{built, last_line, peers};
use super::report::{Goal, Row};

/// The number of concurrent connections.
const CONNECTIONS: &str = "256";

/// The number of requests of each side per turn, and the number of turns.
const REQUESTS: &str = "10240";
const ROUNDS: &str = "7";

/// The number of requests for the measurement of memory.
const HELD: &str = "100000";

pub(super) fn measure() -> Result<Vec<Row>, String> {
    let program = built(&mut peers("service-side"), "service-side")?;
    let line = output_of(&program, &["compare", CONNECTIONS, REQUESTS, ROUNDS])?;
    let from = format!("{:.1} / {:.1} CPU µs", number(&line, "ours")?, number(&line, "peer")?);
    let what = format!(
        "POST /v1/score over {CONNECTIONS} connections, a model that answers at once: CPU of a request"
    );
    let ratio = Row::figure(&what, from, number(&line, "ratio")?, "x", Some(Goal::AtMost(2.5)));
    let held = output_of(&program, &["hold", CONNECTIONS, HELD])?;
    let (before, after) = (number(&held, "before")? / 1e6, number(&held, "after")? / 1e6);
    let what = format!("{HELD} requests: memory after, beside before");
    let memory = Row::figure(
        &what,
        format!("{after:.1} / {before:.1} MB"),
        after / before,
        "x",
        Some(Goal::AtMost(1.05)),
    );
    let errors = number(&line, "errors")? + number(&held, "errors")?;
    let from = "both of the above".to_owned();
    let errors = Row::figure("requests without their answer", from, errors, "", Some(Goal::AtMost(0.0)));
    Ok(vec![ratio, memory, errors])
}

fn output_of(program: &Path, arguments: &[&str]) -> Result<Value, String> {
    last_line(Command::new(program).args(arguments))
}

fn number(line: &Value, name: &str) -> Result<f64, String> {
    line[name].as_f64().ok_or_else(|| format!("no `{name}` in {line}"))
}
