//! Measures a call while the first of two targets is down, compared with the same call to only the second target.

use std::time::Instant;

use formwork_extract::Extractor;
use serde_json::{Value, json};

use crate::oracle::{INPUT, Score};
use crate::process::Server;
use crate::wires::CHAT;
use crate::{Failure, calls, ours};

/// An address without a server: port 1 is a system port (RFC 6335, section 6).
const DOWN: &str = "http://127.0.0.1:1";

pub(crate) async fn measure(rounds: usize) -> Result<Value, Failure> {
    let server = Server::start()?;
    let target = |address: &str| ours::provider(CHAT, address, false, 64 << 20);
    let alone = ours::extractor_of([target(&server.address)?])?;
    let both = ours::extractor_of([target(DOWN)?, target(&server.address)?])?;
    milliseconds(&alone).await?;
    let first = milliseconds(&both).await?;
    let mut turns = Vec::with_capacity(rounds);
    for round in 0..rounds {
        turns.push(if round % 2 == 0 {
            let both = milliseconds(&both).await?;
            (both, milliseconds(&alone).await?)
        } else {
            let alone = milliseconds(&alone).await?;
            (milliseconds(&both).await?, alone)
        });
    }
    Ok(json!({
        "first": first,
        "both": calls::median(turns.iter().map(|(both, _)| *both)),
        "alone": calls::median(turns.iter().map(|(_, alone)| *alone)),
        "over": turns.iter().map(|(both, alone)| both - alone).fold(f64::NEG_INFINITY, f64::max),
    }))
}

async fn milliseconds(extractor: &Extractor<Score>) -> Result<f64, Failure> {
    let start = Instant::now();
    extractor.extract(INPUT).await?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}
