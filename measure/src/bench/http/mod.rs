//! Compares a call over HTTP with a bare client, and measures the memory of many calls and of long completions.

mod bare;
pub(super) mod calls;
pub(super) mod canned;
mod failover;
pub(super) mod flood;
pub(super) mod held;
mod ours;
pub(super) mod server;
mod texts;
pub(super) mod wires;

use super::measure::Pair;
use super::process::{measured, number};
use super::report::{Goal, Row};
use crate::Failure;
use calls::Load;
use wires::{CHAT, WIRES};

/// The number of calls of each side per turn, and the number of turns.
const CALLS: usize = 300;
const ROUNDS: usize = 41;

/// The number of concurrent calls.
const HELD: &str = "1000";

/// The length of the very long completion in bytes.
const FLOOD: &str = "1000000000";

/// The comparisons of each protocol: whether it streams, and the number of concurrent calls.
const MODES: [(bool, usize, &str); 3] = [
    (false, 1, "one call at a time"),
    (false, 32, "32 calls at a time"),
    (true, 32, "a stream of 240 events, 32 at a time"),
];

/// The maximum CPU time of a call and of a stream, as ratios.
const CALL_GOAL: f64 = 1.15;
const STREAM_GOAL: f64 = 1.35;

/// Returns the row of a comparison.
fn compared(wire: &str, stream: bool, how: &str, pair: &Pair) -> Row {
    let goal = if stream { STREAM_GOAL } else { CALL_GOAL };
    let from = format!("{:.1} / {:.1} CPU µs", pair.ours, pair.peer);
    Row::figure(&format!("{wire}, {how}: CPU of a call"), from, pair.ratio, "x", Some(Goal::AtMost(goal)))
}

pub(super) async fn measure() -> Result<Vec<Row>, Failure> {
    let short = Load { in_flight: 1, calls: 50, rounds: 3 };
    let burning = calls::measure(CHAT, false, true, short).await?;
    if compared("chat", false, "burning", &burning).is_met() != Some(false) {
        return Err(format!("calls that waste CPU time on purpose are not noticed: {}", burning.ratio).into());
    }
    let mut rows = Vec::new();
    for wire in &WIRES {
        for (stream, in_flight, how) in MODES {
            let load = Load { in_flight, calls: CALLS, rounds: ROUNDS };
            let pair = calls::measure(wire, stream, false, load).await?;
            rows.push(compared(wire.name, stream, how, &pair));
        }
    }
    let (ours, bare) = (measured(&["held", "ours", HELD])?, measured(&["held", "bare", HELD])?);
    let from = format!("bare client: {:.1}", number(&bare, "/peak_held")?);
    let what = format!("{HELD} calls held open: peak memory of each");
    rows.push(Row::figure(&what, from, number(&ours, "/peak_held")?, "KiB", Some(Goal::AtMost(64.0))));
    for (what, how) in [("a reader that stops", "stop"), ("a reader that reads it all", "whole")] {
        let line = measured(&["flood", how, FLOOD])?;
        let from = format!("{:.1} MB of it read", number(&line, "/read")? / 1e6);
        let what = format!("1 GB is offered to {what}: memory");
        // A slow reader may hold the buffers of the connection, and no more of the completion.
        rows.push(Row::figure(&what, from, number(&line, "/grown")? / 1e6, "MB", Some(Goal::AtMost(4.0))));
    }
    let (pair, over) = failover::measure(ROUNDS).await?;
    let from = format!("{:.2} ms each, {:.2} ms alone", pair.ours, pair.peer);
    let what = "first of two targets down, calls after the first: the most over the second's own time";
    rows.push(Row::figure(what, from, over, "ms", Some(Goal::AtMost(5.0))));
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_has_its_goal() {
        for (wire, stream, ratio, is_met) in [
            ("chat", false, 1.15, true),
            ("gemini", false, 1.16, false),
            ("chat", true, 1.35, true),
            ("ollama", true, 1.36, false),
        ] {
            let row = compared(wire, stream, "", &Pair { ours: 10.0 * ratio, peer: 10.0, ratio });
            assert_eq!(row.is_met(), Some(is_met), "{wire} {stream} {ratio}");
        }
    }
}
