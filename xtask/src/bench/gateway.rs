//! Compares the gateway with a bare axum proxy in front of the same upstream server, which responds at once.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::programs::{built, last_line, peers};
use super::report::{Goal, Row};
use crate::{clients, workspace};

/// The number of concurrent connections.
const CONNECTIONS: &str = "64";

/// The number of requests of each side per turn, and the number of turns.
const REQUESTS: &str = "6400";
const ROUNDS: &str = "9";

/// The connections, requests and turns of LiteLLM's proxy, a request of which takes 10 ms of CPU.
const LITELLM: [&str; 3] = ["8", "300", "5"];

/// The requests per second, which are sent at a constant rate, and the seconds per side.
const RATE: &str = "500";
const SECONDS: &str = "10";

/// The number of concurrent streams.
const STREAMS: &str = "8000";

/// The comparisons: our side, the request, and the goal.
const COMPARED: [(&str, &str, &str, Option<f64>); 5] = [
    ("passed through", "ours", "plain", Some(1.2)),
    // The least that any validated answer costs.
    ("a proxy that only validates, written by hand", "by-hand", "contract", None),
    ("with a contract", "ours", "contract", Some(2.0)),
    ("with a contract and a ledger of runs", "ledger", "contract", None),
    ("with a contract and a ledger of runs and texts", "bodies", "contract", None),
];

/// The maximum CPU time that the ledger may add to a request, in microseconds: for runs, and for runs with their texts.
const LEDGER: [f64; 2] = [12.0, 30.0];

pub(super) fn measure() -> Result<Vec<Row>, String> {
    let program = built(&mut peers("gateway-side"), "gateway-side")?;
    let mut rows = Vec::new();
    let mut errors = 0.0;
    let mut contract = f64::NAN;
    for (what, side, request, goal) in COMPARED {
        let line = output_of(&program, &["compare", side, request, CONNECTIONS, REQUESTS, ROUNDS])?;
        let (ours, peer) = (number(&line["ours"])?, number(&line["peer"])?);
        let from = format!("{ours:.1} / {peer:.1} CPU µs");
        let ratio = number(&line["ratio"])?;
        rows.push(Row::figure(
            &format!("{what}: CPU of a request"),
            from,
            ratio,
            "x",
            goal.map(Goal::AtMost),
        ));
        errors += number(&line["errors"])?;
        match side {
            "ledger" | "bodies" => {
                let most = LEDGER[usize::from(side == "bodies")];
                let from = format!("{ours:.1} less {contract:.1} CPU µs");
                let what = format!("{what}: what the ledger adds");
                rows.push(Row::figure(&what, from, ours - contract, "µs", Some(Goal::AtMost(most))));
            }
            // The ledger is compared with the previous measurement, in which the bare proxy had the same load.
            _ => contract = ours,
        }
    }
    for (what, request) in
        [("LiteLLM's proxy, passed through", "plain"), ("the same with a schema", "contract")]
    {
        let what = format!("{what}: CPU of a request");
        match litellm(&program, request) {
            Ok(line) => {
                let from = format!("{:.0} / {:.1} CPU µs", number(&line["ours"])?, number(&line["peer"])?);
                rows.push(Row::figure(&what, from, number(&line["ratio"])?, "x", None));
                errors += number(&line["errors"])?;
            }
            Err(why) => rows.push(Row::absent(&what, why, "x")),
        }
    }
    let line = output_of(&program, &["latency", RATE, SECONDS])?;
    errors += number(&line["errors"])?;
    for (name, what) in
        [("bare", "the bare proxy"), ("ours", "passed through"), ("contract", "with a contract")]
    {
        for (at, most) in [("p50", 0.25), ("p99", 2.0)] {
            let (direct, side) = (number(&line["direct"][at])?, number(&line[name][at])?);
            let what = format!("{RATE} requests/s, {what}: added latency, {at}");
            let goal = (name != "bare").then_some(Goal::AtMost(most));
            rows.push(Row::figure(
                &what,
                format!("{side:.2} less {direct:.2} ms"),
                side - direct,
                "ms",
                goal,
            ));
        }
    }
    let line = output_of(&program, &["streams", STREAMS])?;
    let bare = number(&line["bare"]["each"])?;
    let what = format!("{STREAMS} streams held open: memory of each");
    let from = format!("the bare proxy: {bare:.1}");
    rows.push(Row::figure(&what, from, number(&line["ours"]["each"])?, "KiB", Some(Goal::AtMost(96.0))));
    let cut = number(&line["ours"]["cut"])?;
    rows.push(Row::figure("streams of these that were cut", String::new(), cut, "", Some(Goal::AtMost(0.0))));
    let line = output_of(&program, &["schema"])?;
    let (first, later) = (number(&line["first"])?, number(&line["later"])?);
    let from = format!("{later:.0} CPU µs later");
    rows.push(Row::figure("a request with a schema, for the first time: CPU", from, first, "µs", None));
    let from = "all of the above but streams".to_owned();
    rows.push(Row::figure("requests without their answer", from, errors, "", Some(Goal::AtMost(0.0))));
    Ok(rows)
}

/// Compares LiteLLM's proxy, from its registry, with the bare proxy.
fn litellm(program: &Path, request: &str) -> Result<Value, String> {
    let python = clients::litellm(Path::new("python3"))?;
    let script = workspace::root().join("bench/gateway/litellm_proxy.py");
    let [connections, requests, rounds] = LITELLM;
    let mut command = Command::new(program);
    command.arg("litellm").arg(python).arg(script).args([request, connections, requests, rounds]);
    last_line(&mut command)
}

fn output_of(program: &Path, arguments: &[&str]) -> Result<Value, String> {
    last_line(Command::new(program).args(arguments))
}

fn number(value: &Value) -> Result<f64, String> {
    value.as_f64().ok_or_else(|| format!("no number: {value}"))
}
