//! `cargo evals soak`: a long run of the gateway with all kinds of failures.

pub(super) mod planted;
pub(super) mod traffic;

use super::{is_optimized, optimized, runtime};
use crate::Failure;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The duration in minutes
    #[arg(long, default_value_t = 30.0)]
    minutes: f64,
    /// Make mistakes on purpose instead, and fail if the bench or the soak does not notice one
    #[arg(long)]
    planted: bool,
    /// The number of requests per second
    #[arg(long, default_value_t = 100)]
    rate: u32,
    /// The number of times that the gateway is killed, and started again on the same ledger
    #[arg(long, default_value_t = 3)]
    kills: u32,
}

/// The maximum growth of memory, as a share.
const GROWTH: f64 = 1.05;

/// Runs the soak. It fails if a response is lost, has no record or belongs to another client, if memory grows, or if the cost in the
/// ledger differs from the simulated server's count by more than what killed processes had reserved.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if args.planted {
        // One of the mistakes is measured in processor time.
        if !is_optimized() {
            return optimized();
        }
        println!("{}", planted::all()?);
        return Ok(());
    }
    let soaked = runtime()?.block_on(traffic::soak(args.minutes, args.rate, args.kills))?;
    println!("{}", serde_json::to_string_pretty(&soaked)?);
    let checks = [
        ("answers that were lost", soaked.lost == 0),
        ("answers that were another client's", soaked.crossed == 0),
        ("growth of memory over 5 %", soaked.memory.growth() <= GROWTH),
        ("spending that is not the server's count", soaked.is_paid()),
        ("answers without a record", soaked.unrecorded == 0),
        ("money that is still held", soaked.held == 0),
    ];
    let failed: Vec<&str> = checks.iter().filter(|(_, holds)| !holds).map(|(what, _)| *what).collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join(", ").into()) }
}
