//! One row in, one row out, in order.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::mpsc::{Receiver, channel};

use crate::exit::{Done, Failed};
use crate::files::name;
use crate::rows::RowError;

/// Answers every row of a file, or of standard input for `-`. A row that cannot be read is answered too.
pub(crate) fn each_row<I: DeserializeOwned, O: Serialize>(
    path: &Path,
    answer: impl Fn(I) -> O,
    unreadable: impl Fn(RowError) -> O,
) -> Result<Done, Failed> {
    let mut output = BufWriter::new(io::stdout().lock());
    let progress = progress();
    for row in rows(path)? {
        let row = match row? {
            Ok(row) => answer(row),
            Err(message) => unreadable(RowError::Row { message }),
        };
        serde_json::to_writer(&mut output, &row).map_err(io::Error::from)?;
        output.write_all(b"\n")?;
        progress.inc(1);
    }
    progress.finish_and_clear();
    output.flush()?;
    Ok(Done::Fine)
}

/// A row, or why it is none: file, line and reason.
pub(crate) type Row<I> = Result<I, String>;

/// The rows as another thread reads them, so that whoever waits for the next one can do something else meanwhile: end on
/// Ctrl-C, answer the rows before.
pub(crate) fn incoming<I: DeserializeOwned + Send + 'static>(
    path: &Path,
) -> Result<Receiver<Result<Row<I>, Failed>>, Failed> {
    let rows = rows(path)?;
    let (sender, receiver) = channel(1);
    thread::Builder::new()
        .name("rows".to_owned())
        .spawn(move || {
            for row in rows {
                if sender.blocking_send(row).is_err() {
                    return;
                }
            }
        })
        .map_err(|error| Failed::usage(format!("a thread to read the rows cannot be started: {error}")))?;
    Ok(receiver)
}

/// The rows of a file, or of standard input for `-`, as they are asked for. Empty lines are none.
fn rows<I: DeserializeOwned>(
    path: &Path,
) -> Result<impl Iterator<Item = Result<Row<I>, Failed>> + Send + use<I>, Failed> {
    let file = name(path);
    let unreadable = {
        let file = file.clone();
        move |error: io::Error| Failed::usage(format!("cannot read {file}: {error}"))
    };
    let input: Box<dyn BufRead + Send> = if path == Path::new("-") {
        Box::new(BufReader::new(io::stdin()))
    } else {
        Box::new(BufReader::new(File::open(path).map_err(&unreadable)?))
    };
    let lines = input.split(b'\n').enumerate();
    Ok(lines.filter_map(move |(index, line)| match line {
        Err(error) => Some(Err(unreadable(error))),
        Ok(line) if line.trim_ascii().is_empty() => None,
        Ok(line) => {
            Some(Ok(serde_json::from_slice(&line).map_err(|error| format!("{file}:{}: {error}", index + 1))))
        }
    }))
}

/// Counts rows on a terminal, once it takes a while. Drawn on standard error, and only if that is a terminal.
pub(crate) fn progress() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {pos} rows, {per_sec}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
