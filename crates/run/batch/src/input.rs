//! Reading rows from JSON Lines, CSV and folders of files.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use formwork_json::{JsonPath, Level, Rounded, read_bytes, rounded};
use serde_json::{Map, Value};

use crate::{BadRow, BatchError, MAX_INPUT, Row};

/// The maximum length of a line of JSON Lines: an input of the maximum size, with escapes for every fifth byte.
const MAX_LINE: usize = 2 * MAX_INPUT;

/// The number of bytes of an invalid line that are searched for an id.
const HEAD: usize = 4096;

/// The rows of a source, which are read lazily. An inner error is an invalid row; an outer error ends the source.
pub type Rows = Box<dyn Iterator<Item = Result<Result<Row, BadRow>, BatchError>> + Send>;

/// Opens the rows of a file or folder.
///
/// - A folder has one row per file, hidden ones excepted: the path within the folder is the id, the text is the input.
/// - A file that ends in `.csv` has a header with the columns `id` and `input`; further columns are ignored.
/// - Any other file, and standard input for `-`, has JSON Lines: `{"id": ..., "input": "..."}`; further members are ignored.
///
/// # Errors
/// [`BatchError::File`] if it cannot be read, [`BatchError::Input`] for a CSV file without these columns.
///
/// ```
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("rows.jsonl");
/// std::fs::write(&path, "{\"id\": 1, \"input\": \"Maria is 34.\"}\n{\"id\": 2}\n")?;
/// let mut rows = formwork_batch::read_rows(&path)?;
/// assert_eq!(rows.next().unwrap()?.unwrap().input, "Maria is 34.");
/// assert!(rows.next().unwrap()?.unwrap_err().message.ends_with("rows.jsonl:2: the field `input` is missing"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_rows(path: &Path) -> Result<Rows, BatchError> {
    if path == Path::new("-") {
        return Ok(json_lines(BufReader::new(io::stdin()), "standard input".to_owned()));
    }
    let wrong = |error: io::Error| BatchError::file(path, &error);
    if fs::metadata(path).map_err(wrong)?.is_dir() {
        let mut files = Vec::new();
        list(path, &mut files)?;
        files.sort();
        let root = path.to_owned();
        return Ok(Box::new(files.into_iter().map(move |file| Ok(of_file(&root, &file)))));
    }
    let file = File::open(path).map_err(wrong)?;
    let is_csv = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
    if is_csv {
        csv_rows(file, path)
    } else {
        Ok(json_lines(BufReader::with_capacity(1 << 18, file), path.display().to_string()))
    }
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
    let bytes = fs::read(file).map_err(|error| bad(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        bad(format!("byte {} is not UTF-8: save the text as UTF-8", error.utf8_error().valid_up_to()))
    })?;
    Ok(Row::new(id.as_str(), text))
}

fn too_long(length: u64) -> String {
    format!("{} MiB, and a row has at most {} MiB: split the text", length >> 20, MAX_INPUT >> 20)
}

fn csv_rows(file: File, path: &Path) -> Result<Rows, BatchError> {
    let name = path.display().to_string();
    let mut reader = csv::ReaderBuilder::new().from_reader(BufReader::with_capacity(1 << 18, file));
    let header = reader
        .headers()
        .map_err(|error| BatchError::Input { place: name.clone(), message: error.to_string() })?;
    let column = |column_name: &str| {
        header.iter().position(|column| column.trim_start_matches('\u{feff}') == column_name)
    };
    let (Some(id), Some(input)) = (column("id"), column("input")) else {
        let columns: Vec<_> = header.iter().map(|column| format!("`{column}`")).collect();
        let message =
            format!("the columns are {}: rename two of them to `id` and `input`", columns.join(", "));
        return Err(BatchError::Input { place: format!("{name}:1"), message });
    };
    Ok(Box::new(reader.into_records().map(move |record| {
        let bad = |id: Value, line: Option<u64>, message: String| {
            let line = line.map(|line| format!(":{line}")).unwrap_or_default();
            Ok(Err(BadRow { id, message: format!("{name}{line}: {message}") }))
        };
        match record {
            Ok(record) => {
                let field = |nth| record.get(nth).unwrap_or_default();
                Ok(Ok(Row::new(field(id), field(input))))
            }
            Err(error) => {
                let line = error.position().map(csv::Position::line);
                match error.into_kind() {
                    csv::ErrorKind::Io(error) => {
                        Err(BatchError::Input { place: name.clone(), message: error.to_string() })
                    }
                    csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                        bad(Value::Null, line, format!("the row has {len} fields, and the header {expected_len}: quote fields with commas"))
                    }
                    csv::ErrorKind::Utf8 { .. } => bad(Value::Null, line, "the row is not UTF-8: save the file as UTF-8".to_owned()),
                    other => bad(Value::Null, line, format!("{other:?}")),
                }
            }
        }
    })))
}

fn json_lines(mut input: impl BufRead + Send + 'static, name: String) -> Rows {
    let mut number = 0_u64;
    let mut line = Vec::new();
    Box::new(std::iter::from_fn(move || {
        loop {
            number += 1;
            let length = match next_line(&mut input, &mut line) {
                Ok(0) => return None,
                Ok(length) => length,
                Err(error) => {
                    return Some(Err(BatchError::Input { place: name.clone(), message: error.to_string() }));
                }
            };
            if number == 1 && line.starts_with("\u{feff}".as_bytes()) {
                line.drain(..3);
            }
            if !line.trim_ascii().is_empty() {
                let row = of_line(&line, length);
                return Some(Ok(row.map_err(|message| BadRow {
                    id: id_of(&line),
                    message: format!("{name}:{number}: {message}"),
                })));
            }
        }
    }))
}

/// Reads a line without its end, and keeps at most [`MAX_LINE`] bytes of it. Returns its length with its end; 0 at the end of the
/// input.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<u64> {
    line.clear();
    let read = input.by_ref().take(MAX_LINE as u64 + 1).read_until(b'\n', line)?;
    if line.pop_if(|last| *last == b'\n').is_some() || read <= MAX_LINE {
        return Ok(read as u64);
    }
    line.truncate(MAX_LINE);
    Ok((read + input.skip_until(b'\n')?) as u64)
}

fn of_line(line: &[u8], length: u64) -> Result<Row, String> {
    if length > MAX_LINE as u64 {
        return Err(format!("the line has {}", too_long(length)));
    }
    let mut row: Map<String, Value> = serde_json::from_slice(line).map_err(|error| {
        let is_meant = line.trim_ascii_start().starts_with(b"{") && !error.is_data();
        let place =
            if is_meant { format!(": it breaks at column {}", error.column()) } else { String::new() };
        format!("this line is not a JSON object{place}")
    })?;
    let input = match row.remove("input") {
        Some(Value::String(input)) => input,
        Some(_) => return Err("`input` is not a string".to_owned()),
        None => return Err("the field `input` is missing".to_owned()),
    };
    match row.remove("id") {
        Some(id) => match rounded_id(&rounded(str::from_utf8(line).unwrap_or_default())) {
            Some(number) => Err(format!("{number}; write the id as a string")),
            None => Ok(Row { id, input }),
        },
        None => Err("the field `id` is missing".to_owned()),
    }
}

/// Returns the number in the id of a row that a result would not repeat exactly.
fn rounded_id(rounded: &[Rounded]) -> Option<&Rounded> {
    let id = JsonPath::root().key("id");
    rounded.iter().find(|number| number.path.is_within(&id))
}

/// Returns the id of a line that cannot be used, as far as it can be read.
fn id_of(line: &[u8]) -> Value {
    let head = line.get(..HEAD.min(line.len())).unwrap_or_default();
    let row =
        read_bytes(head, Level::Clean).ok().and_then(|reading| reading.into_candidates().into_iter().next());
    let row = row.filter(|row| rounded_id(&row.rounded).is_none());
    let id = row.and_then(|mut row| row.value.get_mut("id").map(Value::take)).unwrap_or_default();
    if id.is_string() || id.is_number() { id } else { Value::Null }
}
