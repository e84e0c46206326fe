//! Compares the oracle's service with a bare handler that reads and writes the same bytes, and measures its memory over many
//! requests.

pub(super) mod bare;
pub(super) mod ours;

use super::client::{Connection, load, post};
use super::measure::{Pair, Side, rounds};
use super::process::Server;
use super::report::{Goal, Row};
use crate::Failure;

/// The number of concurrent connections.
const CONNECTIONS: usize = 256;

/// The number of requests of each side per turn, and the number of turns.
const REQUESTS: usize = 10_240;
const ROUNDS: usize = 7;

/// The number of requests for the measurement of memory.
const HELD: usize = 100_000;

/// The body of every request: a wallet of the examples.
const WALLET: &str = include_str!("../../../../examples/wallets/whale.json");

pub(super) async fn measure() -> Result<Vec<Row>, Failure> {
    let request = post("/v1/score", "", WALLET);
    let (pair, failed) = compare(&request).await?;
    let from = format!("{:.1} / {:.1} CPU µs", pair.ours, pair.peer);
    let what = format!(
        "POST /v1/score over {CONNECTIONS} connections, a model that answers at once: CPU of a request"
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
    let mut ours = Server::start(&["oracle"])?;
    let expected = answer(&ours, request).await?;
    let mut bare = Server::start(&["oracle-bare", &expected])?;
    // First check that both sides do equal work: the same bytes in, the same bytes out.
    if answer(&bare, request).await? != expected {
        return Err("the sides do not answer with the same bytes".into());
    }
    let mut errors = 0;
    let mut turn = async |side, requests: usize| -> Result<f64, Failure> {
        let server = if side == Side::Ours { &mut ours } else { &mut bare };
        let before = server.used()?.cpu;
        let is_right = |body: &[u8]| body.len() == expected.len();
        errors += load(&server.address, request, is_right, CONNECTIONS, requests).await;
        Ok((server.used()?.cpu - before) / requests as f64)
    };
    turn(Side::Ours, REQUESTS / 4).await?;
    turn(Side::Peer, REQUESTS / 4).await?;
    let rounds = rounds(ROUNDS, async |side| turn(side, REQUESTS).await).await?;
    Ok((Pair::of(&rounds), errors))
}

/// Returns the memory before and after many requests in megabytes, and the number of requests without their answer.
async fn hold(request: &[u8]) -> Result<(f64, f64, usize), Failure> {
    let mut server = Server::start(&["oracle"])?;
    let length = answer(&server, request).await?.len();
    let address = server.address.clone();
    let load =
        async |requests| load(&address, request, |body| body.len() == length, CONNECTIONS, requests).await;
    // Warm up twice: old and new connections, every metric label, and the allocator's arenas.
    let mut errors = load(HELD / 2).await + load(HELD / 2).await;
    let before = server.used()?.resident as f64 / 1e6;
    errors += load(HELD).await;
    Ok((before, server.used()?.resident as f64 / 1e6, errors))
}
