//! CSV and TSV.

use std::io::{self, Read};

use serde_json::Value;

use super::Rows;
use super::columns::Columns;
use crate::{BadRow, BatchError};

/// Returns the rows of a table with a header, whose cells are separated by `delimiter`.
pub(super) fn cells(
    text: impl Read + Send + 'static,
    name: &str,
    delimiter: u8,
    columns: Columns,
) -> Result<Rows, BatchError> {
    let name = name.to_owned();
    let text = Quoted::new(text, delimiter);
    let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_reader(text);
    let header: Vec<String> = reader
        .headers()
        .map_err(|error| BatchError::Input { place: format!("{name}:1"), message: error.to_string() })?
        .iter()
        .map(|column| column.trim_start_matches('\u{feff}').to_owned())
        .collect();
    check(&header, &format!("{name}:1"), &columns)?;
    let separator = if delimiter == b'\t' { "tabs" } else { "commas" };
    Ok(Box::new(reader.into_records().map(move |record| {
        let bad_row = |id: Value, line: Option<u64>, message: String| {
            let line = line.map(|line| format!(":{line}")).unwrap_or_default();
            Ok(Err(BadRow { id, message: format!("{name}{line}: {message}") }))
        };
        let bad = |line, message| bad_row(Value::Null, line, message);
        match record {
            Ok(record) => {
                let line = record.position().map(csv::Position::line);
                match columns.row_of_cells(header.iter().map(String::as_str).zip(&record)) {
                    Ok(row) => Ok(Ok(row)),
                    Err(message) => {
                        let id = header.iter().zip(&record).find(|(name, _)| *name == columns.id());
                        bad_row(id.map(|(_, id)| Value::from(id)).unwrap_or_default(), line, message)
                    }
                }
            }
            Err(error) => {
                let line = error.position().map(csv::Position::line);
                match error.into_kind() {
                    csv::ErrorKind::Io(error) => {
                        Err(BatchError::Input { place: name.clone(), message: error.to_string() })
                    }
                    csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                        bad(line, format!("the row has {len} fields, and the header {expected_len}: quote fields with {separator}"))
                    }
                    csv::ErrorKind::Utf8 { .. } => bad(line, "the row is not UTF-8: save the file as UTF-8".to_owned()),
                    other => bad(line, format!("{other:?}")),
                }
            }
        }
    })))
}

/// The text of a table. Its end within a quoted cell is an error, because all rows since the quotation mark would be one cell.
#[derive(Debug)]
pub struct Quoted<R> {
    text: R,
    delimiter: u8,
    before: u8,
    line: u64,
    /// The line in which the last quoted cell begins, and whether it is open.
    begins: u64,
    is_open: bool,
    /// Whether the last byte closed it.
    is_closed: bool,
}

impl<R: Read> Quoted<R> {
    /// Creates the reader of a table whose cells are separated by `delimiter`.
    pub const fn new(text: R, delimiter: u8) -> Self {
        Self { text, delimiter, before: b'\n', line: 1, begins: 1, is_open: false, is_closed: false }
    }
}

impl<R: Read> Read for Quoted<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.text.read(to)?;
        for byte in to.iter().take(count).copied() {
            let is_quote = byte == b'"';
            let is_start = [self.delimiter, b'\n', b'\r'].contains(&self.before);
            if is_quote && is_start && !self.is_open {
                self.begins = self.line;
            }
            // Two quotation marks in a quoted cell are one of its text: the second opens the cell again.
            let opens = is_quote && !self.is_open && (is_start || self.is_closed);
            self.is_closed = is_quote && self.is_open;
            self.is_open = opens || self.is_open && !is_quote;
            self.line += u64::from(byte == b'\n');
            self.before = byte;
        }
        if self.is_open && count == 0 && !to.is_empty() {
            let line = self.begins;
            let message = format!("the quotation mark that begins a cell in line {line} is not closed");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(count)
    }
}

/// Checks the names of the columns of a table.
pub(super) fn check(header: &[String], place: &str, columns: &Columns) -> Result<(), BatchError> {
    let wrong = |message: String| Err(BatchError::Input { place: place.to_owned(), message });
    let twice =
        header.iter().enumerate().find(|(nth, name)| header.iter().take(*nth).any(|other| other == *name));
    if let Some((_, name)) = twice {
        return wrong(format!("two columns are called `{name}`: rename one"));
    }
    let needed = columns.needed();
    if let Some(missing) = needed.iter().find(|needed| !header.iter().any(|name| name == *needed)) {
        let names: Vec<_> = header.iter().map(|column| format!("`{column}`")).collect();
        return wrong(format!(
            "there is no column `{missing}`; the columns are {}: name them with --id and --input (or --template)",
            names.join(", ")
        ));
    }
    Ok(())
}
