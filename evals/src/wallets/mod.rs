//! `cargo evals wallets`: wallets to evaluate with, one a line, each with the scores that are expected of it.

mod generate;
mod personas;
mod reference;

use std::io::{self, BufWriter, Write as _};

use generate::generate;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many
    #[arg(long, default_value_t = 200)]
    count: usize,
    /// The same seed gives the same wallets
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    match write(args) {
        // A reader that has enough (`| head`) is no error.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write the wallets: {error}"))
        }
        _ => Ok(()),
    }
}

fn write(args: &Args) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for (_, wallet) in generate(args.seed, args.count) {
        serde_json::to_writer(&mut out, &wallet)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}
