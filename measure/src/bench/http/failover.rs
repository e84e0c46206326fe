//! Measures a call while the first of two targets is down, compared with the same call to only the second target.

use std::time::Instant;

use formwork_extract::Extractor;

use super::ours;
use super::wires::CHAT;
use crate::Failure;
use crate::bench::measure::{Pair, Side, rounds};
use crate::bench::oracle::{INPUT, Score};
use crate::bench::process::Server;

/// An address without a server: port 1 is a system port (RFC 6335, section 6).
const DOWN: &str = "http://127.0.0.1:1";

/// Returns the milliseconds of a call of both targets and of the second alone, and the most that the first adds in a round.
pub(super) async fn measure(count: usize) -> Result<(Pair, f64), Failure> {
    let server = Server::start(&["http"])?;
    let target = |url: &str| ours::provider(CHAT, url, false, 64 << 20);
    let alone = ours::extractor_of([target(&server.url())?])?;
    let both = ours::extractor_of([target(DOWN)?, target(&server.url())?])?;
    milliseconds(&alone).await?;
    milliseconds(&both).await?;
    let side = async |side| milliseconds(if side == Side::Ours { &both } else { &alone }).await;
    let rounds = rounds(count, side).await?;
    let over = rounds.iter().map(|(both, alone)| both - alone).fold(f64::NEG_INFINITY, f64::max);
    Ok((Pair::of(&rounds), over))
}

async fn milliseconds(extractor: &Extractor<Score>) -> Result<f64, Failure> {
    let start = Instant::now();
    extractor.extract(INPUT).await?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}
