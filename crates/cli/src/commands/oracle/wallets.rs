//! Reads many wallets from folders, files and rows.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use formwork_oracle::wallet::{Reader, Wallet};
use tokio::sync::mpsc::{Receiver, Sender};

use crate::exit::Failed;
use crate::files;
use crate::jsonl::read_in_thread;
use crate::stderr::say;

/// A wallet or the reason why it is invalid, with the name of its row.
pub(super) struct Named {
    pub(super) id: String,
    pub(super) wallet: Result<Wallet, String>,
}

/// Returns a reader for this file with a survey. It prints its notes on standard error.
pub(super) fn reader(path: &Path, survey: Option<&Path>) -> Result<Reader, Failed> {
    let mut reader = noticing(files::name(path));
    if let Some(path) = survey {
        let survey = Reader::survey(&files::bytes(path)?, &files::name(path)).map_err(Failed::usage)?;
        reader.survey = Some(survey);
    }
    Ok(reader)
}

fn noticing(name: String) -> Reader {
    Reader::new().with_notices(move |message| say!("note: {name}: {message}"))
}

/// Reads the wallet of a file, or of standard input for `-`: JSON, or CSV if it does not start like JSON.
pub(super) fn one(reader: &Reader, path: &Path) -> Result<Wallet, Failed> {
    if path != Path::new("-") {
        return reader.file(path).map_err(Failed::usage);
    }
    let bytes = files::bytes(path)?;
    let is_json = matches!(bytes.trim_ascii_start().first(), None | Some(b'{' | b'['));
    let name = files::name(path);
    let wallet = if is_json { reader.json(&*bytes, &name) } else { reader.csv(&*bytes, &name) };
    wallet.map_err(Failed::usage)
}

/// Returns the wallets of these paths in their order, which another thread reads on demand, and their number, if it is known
/// before reading. A folder contributes its `.json` and `.csv` files, sorted by name. A `.jsonl` file, and `-` for standard
/// input, has one wallet per line.
pub(super) fn incoming(paths: &[PathBuf]) -> Result<(Receiver<Named>, Option<u64>), Failed> {
    let mut sources = Vec::new();
    for path in paths {
        if path.is_dir() {
            let inside = inside(path)?;
            if inside.is_empty() {
                let message = format!("there is no .json or .csv file in {}", path.display());
                return Err(Failed::usage(message));
            }
            sources.extend(inside);
        } else if path == Path::new("-") || path.is_file() {
            sources.push(path.clone());
        } else {
            return Err(Failed::usage(format!(
                "cannot read {}: there is no such file or folder",
                path.display()
            )));
        }
    }
    files::one_standard_input(&sources.iter().map(PathBuf::as_path).collect::<Vec<_>>())?;
    let is_known = !sources.iter().any(|path| is_rows(path));
    let total = u64::try_from(sources.len()).ok().filter(|_| is_known);
    let receiver = read_in_thread("wallets", move |sender| {
        for source in sources {
            if !send(&source, sender) {
                return;
            }
        }
    })?;
    Ok((receiver, total))
}

/// Returns whether a path has one wallet per line.
fn is_rows(path: &Path) -> bool {
    path == Path::new("-") || path.extension().is_some_and(|end| end == "jsonl")
}

fn inside(folder: &Path) -> Result<Vec<PathBuf>, Failed> {
    let failed = |error: io::Error| Failed::usage(format!("cannot read {}: {error}", folder.display()));
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let is_wallet =
            path.extension().and_then(OsStr::to_str).is_some_and(|end| matches!(end, "json" | "csv"));
        if is_wallet && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Reads the wallets of a path. Returns `false` if the receiver has ended.
fn send(path: &Path, out: &Sender<Named>) -> bool {
    let name = files::name(path);
    let reader = noticing(name.clone());
    if !is_rows(path) {
        let wallet = reader.file(path).map_err(|error| error.to_string());
        return out.blocking_send(Named { id: name, wallet }).is_ok();
    }
    let input: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(BufReader::new(io::stdin()))
    } else {
        match File::open(path) {
            Ok(file) => Box::new(BufReader::new(file)),
            Err(error) => {
                let wallet = Err(format!("cannot read {name}: {error}"));
                return out.blocking_send(Named { id: name, wallet }).is_ok();
            }
        }
    };
    for (index, line) in input.split(b'\n').enumerate() {
        let id = format!("{name}:{}", index + 1);
        let (wallet, is_over) = match line {
            Ok(line) if line.trim_ascii().is_empty() => continue,
            Ok(line) => (reader.slice(&line).map_err(|error| format!("{id}: {error}")), false),
            Err(error) => (Err(format!("{id}: {error}")), true),
        };
        if out.blocking_send(Named { id, wallet }).is_err() {
            return false;
        }
        if is_over {
            break;
        }
    }
    true
}
