//! Measurements of the oracle's service for `cargo xtask bench oracle`. Each command prints one line of JSON.
//!
//! - `service-side compare CONNECTIONS REQUESTS ROUNDS` alternates with a bare handler: CPU time per request.
//! - `service-side hold CONNECTIONS REQUESTS` requests REQUESTS scores: memory before and after.
//! - `service-side serve (ours | bare ANSWER)` runs one of the servers as a separate process, so that the CPU time of the
//!   clients is not counted.

mod bare;
mod client;
mod ours;
mod process;

use std::error::Error;

use serde_json::{Value, json};

use crate::client::Load;
use crate::process::Server;

/// An error, which ends the program.
type Failure = Box<dyn Error + Send + Sync>;

/// The body of every request: a wallet of the examples.
const WALLET: &str = include_str!("../../../examples/wallets/whale.json");

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let line = match arguments.as_slice() {
        ["serve", "ours"] => return ours::serve().await,
        ["serve", "bare", answer] => return bare::serve(answer).await,
        ["compare", connections, requests, rounds] => {
            compare(connections.parse()?, requests.parse()?, rounds.parse()?).await?
        }
        ["hold", connections, requests] => hold(connections.parse()?, requests.parse()?).await?,
        _ => return Err("see the first lines of bench/service/src/main.rs".into()),
    };
    println!("{line}");
    Ok(())
}

async fn compare(connections: usize, requests: usize, rounds: usize) -> Result<Value, Failure> {
    let mut ours = Server::start(&["serve", "ours"])?;
    let answer = client::ask(&ours.address, WALLET).await?;
    let mut bare = Server::start(&["serve", "bare", &answer])?;
    // First check that both sides do equal work: the same bytes in, the same bytes out.
    if client::ask(&bare.address, WALLET).await? != answer {
        return Err("the sides do not answer with the same bytes".into());
    }
    let mut errors = 0;
    let mut turn = async |server: &mut Server, requests: usize| -> Result<f64, Failure> {
        let before = server.used()?.cpu;
        let load =
            Load { address: &server.address, wallet: WALLET, answer: answer.len(), connections, requests };
        errors += load.run().await?;
        Ok((server.used()?.cpu - before) / requests as f64)
    };
    turn(&mut ours, requests / 4).await?;
    turn(&mut bare, requests / 4).await?;
    let mut turns = Vec::with_capacity(rounds);
    for round in 0..rounds {
        // The sides swap the order every round, because the second one finds warm caches.
        turns.push(if round % 2 == 0 {
            let ours = turn(&mut ours, requests).await?;
            (ours, turn(&mut bare, requests).await?)
        } else {
            let bare = turn(&mut bare, requests).await?;
            (turn(&mut ours, requests).await?, bare)
        });
    }
    Ok(json!({
        "ours": median(turns.iter().map(|(ours, _)| *ours)),
        "peer": median(turns.iter().map(|(_, bare)| *bare)),
        "ratio": median(turns.iter().map(|(ours, bare)| ours / bare)),
        "errors": errors,
        "request": WALLET.len(),
        "answer": answer.len(),
    }))
}

async fn hold(connections: usize, requests: usize) -> Result<Value, Failure> {
    let mut server = Server::start(&["serve", "ours"])?;
    let answer = client::ask(&server.address, WALLET).await?.len();
    let load = |requests| Load { address: "", wallet: WALLET, answer, connections, requests };
    let address = server.address.clone();
    // Warm up twice: old and new connections, every metric label, and the allocator's arenas.
    let mut errors = 0;
    for _ in 0..2 {
        errors += Load { address: &address, ..load(requests / 2) }.run().await?;
    }
    let before = server.used()?.resident;
    errors += Load { address: &address, ..load(requests) }.run().await?;
    let after = server.used()?;
    Ok(json!({"errors": errors, "before": before, "after": after.resident, "peak": after.peak}))
}

fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}
