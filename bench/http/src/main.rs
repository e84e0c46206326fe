//! What `cargo xtask bench http` asks of formwork's way over HTTP: each prints one line of JSON.
//!
//! - `http-side calls (document | stream) (extractor | provider) IN_FLIGHT CALLS ROUNDS` takes turns with a bare client:
//!   CPU time of a call.
//! - `http-side held (ours | bare) CALLS` holds so many answers open in their middle: memory of a call.
//! - `http-side flood (stop | whole) BYTES` is offered so much of one answer: memory of a slow reader, and of a fast one.
//! - `http-side failover ROUNDS` asks two targets of which the first is down: time of a call after the first one.
//! - `http-side serve` is the server of them all, which is started as a process of its own: its CPU time is not counted.

mod bare;
mod calls;
mod failover;
mod flood;
mod held;
mod oracle;
mod ours;
mod process;
mod server;

use std::error::Error;

/// What can go wrong here ends the program.
type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    // reqwest panics without one. Formwork installs it for itself, the bare client needs it as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let line = match arguments.as_slice() {
        ["serve"] => return server::serve().await,
        [
            "calls",
            mode @ ("document" | "stream"),
            part @ ("extractor" | "provider"),
            in_flight,
            calls,
            rounds,
        ] => {
            let (stream, alone) = (*mode == "stream", *part == "provider");
            calls::measure(stream, alone, in_flight.parse()?, calls.parse()?, rounds.parse()?).await?
        }
        ["held", side @ ("ours" | "bare"), calls] => held::measure(*side == "ours", calls.parse()?).await?,
        ["flood", how @ ("stop" | "whole"), bytes] => flood::measure(*how == "whole", bytes.parse()?).await?,
        ["failover", rounds] => failover::measure(rounds.parse()?).await?,
        _ => return Err("usage: http-side calls|held|flood|failover …, see bench/http/src/main.rs".into()),
    };
    println!("{line}");
    Ok(())
}
