//! `cargo xtask soak`: a long run of the gateway with all kinds of failures.

use std::process::Command;

use serde_json::Value;

use crate::workspace;

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
}

/// The maximum growth of memory, as a share.
const GROWTH: f64 = 1.05;

/// Runs the soak. It fails if a response is lost or belongs to another client, if memory grows, or if the cost in the ledger differs
/// from the simulated server's count.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    let manifest = workspace::root().join("bench").join("Cargo.toml");
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--release", "--package", "gateway-side", "--manifest-path"]).arg(manifest);
    cargo.env("CARGO_TARGET_DIR", workspace::target());
    let status = cargo.status().map_err(|error| format!("cannot start cargo: {error}"))?;
    if !status.success() {
        return Err("gateway-side cannot be built, see above".to_owned());
    }
    let program = workspace::target().join("release").join("gateway-side");
    if args.planted {
        let line = workspace::stdout(Command::new(program).arg("plants"))?;
        println!("{line}");
        return Ok(());
    }
    let mut soak = Command::new(program);
    soak.args(["soak", &args.minutes.to_string(), &args.rate.to_string()]);
    let text = workspace::stdout(&mut soak)?;
    let line: Value = serde_json::from_str(text.trim()).map_err(|error| format!("{text}: {error}"))?;
    println!("{line:#}");
    let number = |pointer: &str| line.pointer(pointer).and_then(Value::as_f64).unwrap_or(f64::NAN);
    let growth = number("/memory/after") / number("/memory/before");
    let checks = [
        ("answers that were lost", number("/lost") == 0.0),
        ("answers that were another client's", number("/crossed") == 0.0),
        ("growth of memory over 5 %", growth <= GROWTH),
        ("spending that is not the server's count", number("/spent") == number("/paid")),
        ("money that is still held", number("/held") == 0.0),
    ];
    let failed: Vec<&str> = checks.iter().filter(|(_, holds)| !holds).map(|(what, _)| *what).collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join(", ")) }
}
