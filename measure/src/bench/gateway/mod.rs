//! Compares the gateway with a bare axum proxy in front of the same upstream server, which responds at once.

pub(super) mod bare;
pub(super) mod by_hand;
pub(super) mod ours;
pub(super) mod plant;
pub(super) mod played;
pub(super) mod sides;
pub(super) mod upstream;

use super::client::Load;
use super::measure::Pair;
use super::process::Server;
use super::report::{Goal, Row};
use crate::{Failure, workspace};

/// The load of our sides, and that of LiteLLM's proxy, a request of which takes 10 ms of CPU.
const OURS: Load = Load { connections: 64, requests: 6400, rounds: 9 };
const LITELLM: Load = Load { connections: 8, requests: 300, rounds: 5 };

/// The requests per second, which are sent at a constant rate, and the seconds per side.
const RATE: u32 = 500;
const SECONDS: u32 = 10;

/// The number of concurrent streams.
const STREAMS: usize = 8000;

/// The comparisons: our side, the request, and the goal.
const COMPARED: [(&str, &str, &str, Option<f64>); 5] = [
    ("passed through", "ours", "plain", Some(1.4)),
    // The least that any validated answer costs.
    ("a proxy that only validates, written by hand", "by-hand", "contract", None),
    ("with a contract", "ours", "contract", Some(2.9)),
    ("with a contract and a ledger of runs", "ledger", "contract", None),
    ("with a contract and a ledger of runs and texts", "bodies", "contract", None),
];

/// The sides with a ledger, and the maximum that it adds to a request with a contract, in microseconds of CPU.
const ADDED: [(&str, &str, f64); 2] = [
    ("what a ledger of runs adds", "ledger", 12.0),
    ("what a ledger of runs and texts adds", "bodies", 30.0),
];

pub(super) async fn measure() -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let mut errors = 0;
    for (what, side, request, goal) in COMPARED {
        let (Pair { ours, peer, ratio }, failed) =
            sides::compare(|url| Server::start(&[side, url]), "bare", request, OURS).await?;
        errors += failed;
        let from = format!("{ours:.1} / {peer:.1} CPU µs");
        let what = format!("{what}: CPU of a request");
        rows.push(Row::figure(&what, from, ratio, "x", goal.map(Goal::AtMost)));
    }
    for (what, side, most) in ADDED {
        // In turns with the same service without a ledger: the speed of the machine changes between two comparisons.
        let (Pair { ours, peer, .. }, failed) =
            sides::compare(|url| Server::start(&[side, url]), "ours", "contract", OURS).await?;
        errors += failed;
        let from = format!("{ours:.1} less {peer:.1} CPU µs");
        rows.push(Row::figure(what, from, ours - peer, "µs", Some(Goal::AtMost(most))));
    }
    for (what, request) in
        [("LiteLLM's proxy, passed through", "plain"), ("the same with a schema", "contract")]
    {
        let what = format!("{what}: CPU of a request");
        match sides::compare(litellm, "bare", request, LITELLM).await {
            Ok((Pair { ours, peer, ratio }, failed)) => {
                let from = format!("{ours:.0} / {peer:.1} CPU µs");
                rows.push(Row::figure(&what, from, ratio, "x", None));
                errors += failed;
            }
            Err(why) => rows.push(Row::absent(&what, why.to_string(), "x")),
        }
    }
    let ([direct, sides @ ..], failed) = sides::latency(RATE, SECONDS).await?;
    errors += failed;
    for side in sides {
        let goal = |most| (side.name != "the bare proxy").then_some(Goal::AtMost(most));
        for (at, side_took, direct_took, most) in
            [("p50", side.p50, direct.p50, 0.25), ("p99", side.p99, direct.p99, 2.0)]
        {
            let what = format!("{RATE} requests/s, {}: added latency, {at}", side.name);
            let from = format!("{side_took:.2} less {direct_took:.2} ms");
            rows.push(Row::figure(&what, from, side_took - direct_took, "ms", goal(most)));
        }
    }
    let (bare, _) = sides::streams("bare", STREAMS).await?;
    let (each, cut) = sides::streams("ours", STREAMS).await?;
    let what = format!("{STREAMS} streams held open: memory of each");
    let from = format!("the bare proxy: {bare:.1}");
    rows.push(Row::figure(&what, from, each, "KiB", Some(Goal::AtMost(96.0))));
    let cut = cut as f64;
    rows.push(Row::figure("streams of these that were cut", String::new(), cut, "", Some(Goal::AtMost(0.0))));
    let (first, later) = sides::schema().await?;
    let from = format!("{later:.0} CPU µs later");
    rows.push(Row::figure("a request with a schema, for the first time: CPU", from, first, "µs", None));
    let from = "all of the above but streams".to_owned();
    let errors = errors as f64;
    rows.push(Row::figure("requests without their answer", from, errors, "", Some(Goal::AtMost(0.0))));
    Ok(rows)
}

/// Starts LiteLLM's proxy, from its registry.
fn litellm(url: &str) -> Result<Server, Failure> {
    let script = workspace::root().join("measure/peers/litellm_proxy.py");
    Server::of(workspace::server("litellm", 0)?.arg(script).arg(url))
}
