//! Reading rows from tables and folders of files.

#[cfg(feature = "parquet")]
mod arrow;
mod cells;
mod columns;
mod lines;
mod packed;

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

pub use self::cells::Quoted;
pub use self::columns::{Columns, Render};
use crate::{BadRow, BatchError, MAX_INPUT, Row};

/// The number of rows of a table of which one must be usable.
const TRIED: usize = 10;

/// The rows of a source, which are read lazily. An inner error is an invalid row; an outer error ends the source.
pub type Rows = Box<dyn Iterator<Item = Result<Result<Row, BadRow>, BatchError>> + Send>;

/// Opens the rows of a table or of a folder.
///
/// - A folder has one row per file, hidden ones excepted: the path within the folder is the id, the text is the input.
/// - A file that ends in `.csv` or `.tsv` has a header with the names of its columns.
/// - A file that ends in `.parquet` or `.arrow` (Arrow IPC) needs the feature `parquet`.
/// - Any other file, and standard input for `-`, has JSON Lines: `{"id": ..., "input": "..."}`.
///
/// Text may be compressed with gzip or Zstandard (`rows.csv.gz`, `rows.jsonl.zst`). Columns other than those of `columns` are
/// kept as [`Row::columns`].
///
/// # Errors
/// [`BatchError::File`] if it cannot be read. [`BatchError::Input`] for a table without these columns, with two columns of
/// one name, or of whose first ten rows none is usable; and, as the last item, for a file that changed while it was read.
///
/// ```
/// use formwork_batch::{Columns, read_rows};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("rows.jsonl");
/// std::fs::write(&path, "{\"id\": 1, \"input\": \"Maria is 34.\"}\n{\"id\": 2}\n")?;
/// let mut rows = read_rows(&path, &Columns::default())?;
/// assert_eq!(rows.next().unwrap()?.unwrap().input, "Maria is 34.");
/// assert!(rows.next().unwrap()?.unwrap_err().message.ends_with("rows.jsonl:2: the field `input` is missing"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_rows(path: &Path, columns: &Columns) -> Result<Rows, BatchError> {
    if path == Path::new("-") {
        let name = "standard input";
        return usable(read_text(io::stdin(), name, "", columns)?, name);
    }
    let wrong = |error: io::Error| BatchError::file(path, &error);
    let name = path.display().to_string();
    let before = fs::metadata(path).map_err(wrong)?;
    if before.is_dir() {
        let mut files = Vec::new();
        list(path, &mut files)?;
        files.sort();
        let root = path.to_owned();
        return Ok(Box::new(files.into_iter().map(move |file| Ok(of_file(&root, &file)))));
    }
    let file = File::open(path).map_err(wrong)?;
    let rows = match ending(path).as_str() {
        "parquet" | "arrow" | "feather" => of_arrow(file, path, columns)?,
        ending => read_text(file, &name, ending, columns)?,
    };
    Ok(unchanged(usable(rows, &name)?, path.to_owned(), before))
}

/// Returns the ending of a file in small letters, without that of its compression.
pub(crate) fn ending(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let name = [".gz", ".zst"].iter().find_map(|packed| name.strip_suffix(packed)).unwrap_or(&name);
    name.rsplit_once('.').map(|(_, ending)| ending.to_owned()).unwrap_or_default()
}

fn read_text(
    file: impl io::Read + Send + 'static,
    name: &str,
    ending: &str,
    columns: &Columns,
) -> Result<Rows, BatchError> {
    let wrong = |error: io::Error| BatchError::Input { place: name.to_owned(), message: error.to_string() };
    let text = packed::unpacked(file).map_err(wrong)?;
    match ending {
        "csv" => cells::cells(text, name, b',', columns.clone()),
        "tsv" => cells::cells(text, name, b'\t', columns.clone()),
        _ => Ok(lines::json_lines(text, name.to_owned(), columns.clone())),
    }
}

#[cfg(feature = "parquet")]
fn of_arrow(file: File, path: &Path, columns: &Columns) -> Result<Rows, BatchError> {
    arrow::rows(file, path, columns)
}

#[cfg(not(feature = "parquet"))]
fn of_arrow(_: File, path: &Path, _: &Columns) -> Result<Rows, BatchError> {
    Err(BatchError::Input { place: path.display().to_string(), message: crate::NO_PARQUET.to_owned() })
}

/// Reads the first rows of a table: if none of them is usable, the file is not the table that it is taken for.
fn usable(mut rows: Rows, name: &str) -> Result<Rows, BatchError> {
    let mut first = Vec::new();
    for row in rows.by_ref() {
        let row = row?;
        let is_usable = row.is_ok();
        first.push(row);
        if is_usable || first.len() == TRIED {
            break;
        }
    }
    if let Some(Err(BadRow { message, .. })) = first.first().filter(|_| first.iter().all(Result::is_err)) {
        let (place, reason) = message.split_once(": ").unwrap_or((name, message));
        let message = format!(
            "{reason}; none of the first rows ({}) can be used: rows are JSON Lines, *.csv or *.tsv (each also with .gz or .zst), \
             *.parquet or *.arrow, with the columns that --id and --input name",
            first.len()
        );
        return Err(BatchError::Input { place: place.to_owned(), message });
    }
    Ok(Box::new(first.into_iter().map(Ok).chain(rows)))
}

/// Ends rows with an error if their file changed meanwhile.
fn unchanged(mut rows: Rows, path: PathBuf, before: Metadata) -> Rows {
    let mut count = 0_u64;
    let mut is_ended = false;
    Box::new(std::iter::from_fn(move || {
        if is_ended {
            return None;
        }
        let next = rows.next();
        count += u64::from(matches!(next, Some(Ok(_))));
        if matches!(next, Some(Ok(_))) {
            return next;
        }
        is_ended = true;
        let state = |found: &Metadata| (found.len(), found.modified().ok());
        if fs::metadata(&path).is_ok_and(|now| state(&now) == state(&before)) {
            return next;
        }
        let message = format!(
            "the file was changed while it was read, after row {count}; nothing was stored: run the command again"
        );
        Some(Err(BatchError::Input { place: path.display().to_string(), message }))
    }))
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), BatchError> {
    let wrong = |error: io::Error| BatchError::file(folder, &error);
    for entry in fs::read_dir(folder).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        if path.is_dir() {
            // A link to a folder may lead back to this one.
            if !entry.file_type().map_err(wrong)?.is_symlink() {
                list(&path, files)?;
            }
        } else {
            files.push(path);
        }
    }
    Ok(())
}

fn of_file(root: &Path, file: &Path) -> Result<Row, BadRow> {
    let name = file.strip_prefix(root).unwrap_or(file);
    let id = name.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/");
    let bad = |message: String| BadRow {
        id: Value::from(id.as_str()),
        message: format!("{}: {message}", file.display()),
    };
    let length = fs::metadata(file).map_err(|error| bad(error.to_string()))?.len();
    if length > MAX_INPUT as u64 {
        return Err(bad(too_long(length)));
    }
    let mut bytes = fs::read(file).map_err(|error| bad(error.to_string()))?;
    // A byte order mark is no part of the text.
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes.drain(..3);
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        bad(format!("byte {} is not UTF-8: save the text as UTF-8", error.utf8_error().valid_up_to()))
    })?;
    Ok(Row::new(id.as_str(), text))
}

fn too_long(length: u64) -> String {
    format!("{} MiB, and a row has at most {} MiB: split the text", length >> 20, MAX_INPUT >> 20)
}
