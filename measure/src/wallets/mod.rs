//! `cargo evals wallets`: prints generated wallets, one JSON object per line, each with its expected scores.

mod generate;
mod personas;
mod reference;

use std::io::{self, BufWriter, Write as _};

use generate::generate;
use personas::People;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The number of wallets
    #[arg(long, default_value_t = 200)]
    count: usize,
    /// The seed; the same seed generates the same wallets
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    match write(args) {
        // A reader that closes the pipe (`| head`) is not an error.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write the wallets: {error}"))
        }
        _ => Ok(()),
    }
}

fn write(args: &Args) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for (_, wallet) in generate(&People::read()?, args.seed, args.count) {
        serde_json::to_writer(&mut out, &wallet)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}
