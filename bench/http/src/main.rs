//! Measurements of calls over HTTP for `cargo xtask bench http`. Each command prints one line of JSON.
//!
//! `WIRE` is a protocol: `chat`, `responses`, `anthropic`, `gemini` or `ollama`.
//!
//! - `http-side calls WIRE (document | stream) (extractor | provider | burning) IN_FLIGHT CALLS ROUNDS` alternates with a bare
//!   client: CPU time per call. With `burning` our side wastes CPU time on purpose.
//! - `http-side only WIRE (ours | bare) (document | stream) CALLS` makes the calls of one side, one at a time, for a profiler:
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
mod wires;

use std::error::Error;

use calls::Part;

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
        ["calls", wire, mode @ ("document" | "stream"), part, in_flight, calls, rounds] => {
            let part = match *part {
                "extractor" => Part::Extractor,
                "provider" => Part::Provider,
                "burning" => Part::Burning,
                other => return Err(format!("there is no part {other}").into()),
            };
            let (stream, in_flight) = (*mode == "stream", in_flight.parse()?);
            calls::measure(wires::named(wire)?, stream, part, in_flight, calls.parse()?, rounds.parse()?)
                .await?
        }
        ["only", wire, side @ ("ours" | "bare"), mode @ ("document" | "stream"), calls] => {
            calls::only(wires::named(wire)?, *side == "ours", *mode == "stream", calls.parse()?).await?
        }
        ["held", side @ ("ours" | "bare"), calls] => held::measure(*side == "ours", calls.parse()?).await?,
        ["flood", how @ ("stop" | "whole"), bytes] => flood::measure(*how == "whole", bytes.parse()?).await?,
        ["failover", rounds] => failover::measure(rounds.parse()?).await?,
        _ => {
            return Err(
                "usage: http-side calls|only|held|flood|failover …, see bench/http/src/main.rs".into()
            );
        }
    };
    println!("{line}");
    Ok(())
}
