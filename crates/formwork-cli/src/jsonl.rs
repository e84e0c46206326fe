//! One row in, one row out, in order.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde::{Serialize, de::DeserializeOwned};

use crate::exit::{Done, Failed};
use crate::files::name;
use crate::rows::RowError;

/// Answers every row of a file, or of standard input for `-`. A row that cannot be read is answered too.
pub(crate) fn each_row<I: DeserializeOwned, O: Serialize>(
    path: &Path,
    answer: impl Fn(I) -> O,
    unreadable: impl Fn(RowError) -> O,
) -> Result<Done, Failed> {
    let input: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(path)
            .map_err(|error| Failed::usage(format!("cannot read {}: {error}", name(path))))?;
        Box::new(BufReader::new(file))
    };
    let mut output = BufWriter::new(io::stdout().lock());
    let progress = progress();
    for (index, line) in input.split(b'\n').enumerate() {
        let line = line.map_err(|error| Failed::usage(format!("cannot read {}: {error}", name(path))))?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let row = match serde_json::from_slice(&line) {
            Ok(row) => answer(row),
            Err(error) => {
                unreadable(RowError::Row { message: format!("{}:{}: {error}", name(path), index + 1) })
            }
        };
        serde_json::to_writer(&mut output, &row).map_err(io::Error::from)?;
        output.write_all(b"\n")?;
        progress.inc(1);
    }
    progress.finish_and_clear();
    output.flush()?;
    Ok(Done::Fine)
}

/// Counts rows on a terminal, once it takes a while. Drawn on standard error, and only if that is a terminal.
fn progress() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {pos} rows, {per_sec}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
