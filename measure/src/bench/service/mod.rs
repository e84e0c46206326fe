//! Compares the oracle's service with a bare handler that reads and writes the same bytes, and measures its memory over many
//! requests.

pub(super) mod bare;
pub(super) mod ours;

use super::client::{self, Connection, Load, load, post};
use super::measure::Pair;
use super::process::Server;
use super::report::{Goal, Row};
use crate::Failure;

/// The load of the comparison.
const LOAD: Load = Load { connections: 256, requests: 10_240, rounds: 7 };

/// The number of requests for the measurement of memory.
const HELD: usize = 100_000;

/// The body of every request: a wallet of the examples.
const WALLET: &str = include_str!("../../../../examples/wallets/whale.json");

pub(super) async fn measure() -> Result<Vec<Row>, Failure> {
    let request = post("/v1/score", "", WALLET);
    let (pair, failed) = compare(&request).await?;
    let from = format!("{:.1} / {:.1} CPU µs", pair.ours, pair.peer);
    let what = format!(
        "POST /v1/score over {} connections, a model that answers at once: CPU of a request",
        LOAD.connections
    );
    let ratio = Row::figure(&what, from, pair.ratio, "x", Some(Goal::AtMost(2.5)));
    let (before, after, lost) = hold(&request).await?;
    let from = format!("{after:.1} / {before:.1} MB");
    let what = format!("{HELD} requests: memory after, beside before");
    let memory = Row::figure(&what, from, after / before, "x", Some(Goal::AtMost(1.05)));
    let from = "both of the above".to_owned();
    let errors = (failed + lost) as f64;
    let errors = Row::figure("requests without their answer", from, errors, "", Some(Goal::AtMost(0.0)));
    Ok(vec![ratio, memory, errors])
}

/// Returns the body of one response.
async fn answer(server: &Server, request: &[u8]) -> Result<String, Failure> {
    let mut connection = Connection::open(&server.address).await?;
    Ok(String::from_utf8(connection.ask(request, |_| true).await?.to_vec())?)
}

/// Returns the CPU time of a request in microseconds, and the number of requests without their answer.
async fn compare(request: &[u8]) -> Result<(Pair, usize), Failure> {
    let ours = Server::start(&["oracle"])?;
    let expected = answer(&ours, request).await?;
    let bare = Server::start(&["oracle-bare", &expected])?;
    // First check that both sides do equal work: the same bytes in, the same bytes out.
    if answer(&bare, request).await? != expected {
        return Err("the sides do not answer with the same bytes".into());
    }
    client::compare(ours, bare, request, |body| body.len() == expected.len(), LOAD).await
}

/// Returns the memory before and after many requests in megabytes, and the number of requests without their answer.
async fn hold(request: &[u8]) -> Result<(f64, f64, usize), Failure> {
    let mut server = Server::start(&["oracle"])?;
    let length = answer(&server, request).await?.len();
    let address = server.address.clone();
    let load = async |requests| {
        load(&address, request, |body| body.len() == length, LOAD.connections, requests).await
    };
    // Warm up twice: old and new connections, every metric label, and the allocator's arenas.
    let mut errors = load(HELD / 2).await + load(HELD / 2).await;
    let before = server.used()?.resident as f64 / 1e6;
    errors += load(HELD).await;
    Ok((before, server.used()?.resident as f64 / 1e6, errors))
}
