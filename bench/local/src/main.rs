//! Measurements inside formwork's engine for `cargo xtask bench local`. Each command prints one line of JSON.
//!
//! - `formwork-side decode TOKENS SYSTEM USER` decodes greedily without a schema, like the peers.
//! - `formwork-side choosing SEEDS ROUNDS SCHEMA TEXT` decodes with a schema like `formwork extract` at its default temperature:
//!   the CPU time of schema and sampling.

mod choosing;
mod decode;

use std::error::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let line = match arguments.as_slice() {
        ["decode", tokens, system, user] => decode::measure(tokens.parse()?, system, user).await?,
        ["choosing", seeds, rounds, schema, text] => {
            choosing::measure(seeds.parse()?, rounds.parse()?, schema, text).await?
        }
        _ => {
            return Err(
                "usage: formwork-side (decode TOKENS SYSTEM USER | choosing SEEDS ROUNDS SCHEMA TEXT)".into(),
            );
        }
    };
    println!("{line}");
    Ok(())
}
