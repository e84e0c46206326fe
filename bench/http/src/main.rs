//! Measurements of calls over HTTP for `cargo xtask bench http`. Each command prints one line of JSON.
//!
//! - `http-side calls (document | stream) (extractor | provider) IN_FLIGHT CALLS ROUNDS` alternates with a bare client: CPU time
//!   per call.
//! - `http-side only (ours | bare) (document | stream) CALLS` makes the calls of one side, one at a time, for a profiler:
//!   instructions per call.
//! - `http-side held (ours | bare) CALLS` holds CALLS responses in their middle: memory per call.
//! - `http-side flood (stop | whole) BYTES` reads a completion of BYTES bytes: memory of a slow reader and of a fast one.
//! - `http-side failover ROUNDS` calls two targets, of which the first is down: time per call after the first call.
//! - `http-side serve` runs the server for all of them as a separate process, so that its CPU time is not counted.

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

/// An error, which ends the program.
type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    // reqwest panics without a default crypto provider. Formwork installs its own; the bare client needs this one.
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
        ["only", side @ ("ours" | "bare"), mode @ ("document" | "stream"), calls] => {
            calls::only(*side == "ours", *mode == "stream", calls.parse()?).await?
        }
        ["held", side @ ("ours" | "bare"), calls] => held::measure(*side == "ours", calls.parse()?).await?,
        ["flood", how @ ("stop" | "whole"), bytes] => flood::measure(*how == "whole", bytes.parse()?).await?,
        ["failover", rounds] => failover::measure(rounds.parse()?).await?,
        _ => return Err("usage: http-side calls|held|flood|failover …, see bench/http/src/main.rs".into()),
    };
    println!("{line}");
    Ok(())
}
