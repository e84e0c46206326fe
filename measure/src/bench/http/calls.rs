//! Measures the CPU time of a call, from a text to a validated, typed value. Both sides take turns.

use std::future::Future;
use std::time::{Duration, Instant};

use formwork_extract::Extractor;
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};

use super::bare::Bare;
use super::ours;
use super::wires::{Wire, named};
use crate::Failure;
use crate::bench::client::get;
use crate::bench::measure::{Pair, Side, rounds};
use crate::bench::oracle::{INPUT, Score};
use crate::bench::process::{Server, cpu};

/// The CPU time that a planted mistake wastes in each call, more than twice that of a call.
const BURNT: Duration = Duration::from_micros(200);

/// Both sides of a protocol.
struct Sides {
    server: Server,
    extractor: Extractor<Score>,
    bare: Bare,
}

impl Sides {
    /// Prepares both sides, and checks that they do equal work: the same request, the same value.
    async fn new(wire: &'static Wire, stream: bool) -> Result<Self, Failure> {
        let server = Server::start(&["http"])?;
        let extractor = ours::extractor(wire, &server.url(), stream)?;
        let value = extractor.extract(INPUT).await?.value;
        let (head, body) = last(&server).await?;
        let bare = Bare::new(wire, &server.url(), stream, serde_json::from_str(&body)?)?;
        if bare.call(INPUT).await? != value {
            return Err("the sides do not read the same value".into());
        }
        let (other_head, other) = last(&server).await?;
        if head != other_head {
            return Err(format!("the sides do not send the same head: {head:?} and {other_head:?}").into());
        }
        if serde_json::from_str::<Value>(&other)? != serde_json::from_str::<Value>(&body)?
            || other.len() != body.len()
        {
            return Err(format!("the sides do not send the same request: {body} and {other}").into());
        }
        Ok(Self { server, extractor, bare })
    }
}

/// Returns the sorted head and the body of the last request.
async fn last(server: &Server) -> Result<(Vec<String>, String), Failure> {
    Ok((sorted(&get(&server.address, "/head").await?), get(&server.address, "/last").await?))
}

/// Returns the lines of a head, without the order of its headers and the case of their names, which have no meaning.
fn sorted(head: &str) -> Vec<String> {
    let line = |line: &str| match line.split_once(": ") {
        Some((name, value)) => format!("{}: {value}", name.to_ascii_lowercase()),
        None => line.to_owned(),
    };
    let mut lines: Vec<String> = head.lines().map(line).collect();
    lines.sort();
    lines
}

/// The load of a comparison: the number of concurrent calls, the calls of each side per turn, and the number of turns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) in_flight: usize,
    pub(super) calls: usize,
    pub(super) rounds: usize,
}

/// Compares both sides: the CPU time of a call in microseconds. With `burning`, our side wastes CPU time on purpose.
pub(super) async fn measure(
    wire: &'static Wire,
    stream: bool,
    burning: bool,
    Load { in_flight, calls, rounds: count }: Load,
) -> Result<Pair, Failure> {
    let Sides { server: _server, extractor, bare } = Sides::new(wire, stream).await?;
    let ours = async || {
        let start = Instant::now();
        while burning && start.elapsed() < BURNT {
            std::hint::spin_loop();
        }
        Ok(extractor.extract(INPUT).await?.value)
    };
    let peer = async || bare.call(INPUT).await;
    // Warm up connections, branch predictors and the allocator.
    turn(&ours, in_flight, calls).await?;
    turn(&peer, in_flight, calls).await?;
    let rounds = rounds(count, async |side| match side {
        Side::Ours => turn(&ours, in_flight, calls).await,
        Side::Peer => turn(&peer, in_flight, calls).await,
    });
    Ok(Pair::of(&rounds.await?))
}

/// Makes calls of one side, one at a time. Two runs that differ in their number show what one call costs.
pub(in crate::bench) async fn only(
    wire: &str,
    is_ours: bool,
    stream: bool,
    calls: usize,
) -> Result<Value, Failure> {
    let Sides { server: _server, extractor, bare } = Sides::new(named(wire)?, stream).await?;
    for _ in 0..calls {
        if is_ours {
            extractor.extract(INPUT).await?;
        } else {
            bare.call(INPUT).await?;
        }
    }
    Ok(json!({"calls": calls}))
}

/// Returns the CPU time per call in microseconds.
async fn turn<T, F>(call: &impl Fn() -> F, in_flight: usize, calls: usize) -> Result<f64, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    let start = cpu()?;
    let mut answers = stream::iter((0..calls).map(|_| call())).buffer_unordered(in_flight);
    while let Some(answer) = answers.next().await {
        answer?;
    }
    Ok((cpu()? - start) / calls as f64)
}
