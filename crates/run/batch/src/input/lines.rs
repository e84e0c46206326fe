//! JSON Lines.

use std::io::{self, BufRead, Read as _};

use formwork_json::{Level, read_bytes};
use serde_json::Value;

use super::columns::Columns;
use super::{Rows, too_long};
use crate::members::Members;
use crate::{BadRow, BatchError, MAX_INPUT, Row};

/// The maximum length of a line: an input of the maximum size, with escapes for every fifth byte.
const MAX_LINE: usize = 2 * MAX_INPUT;

/// The number of bytes of an invalid line that are searched for an id.
const HEAD: usize = 4096;

/// Returns the rows of JSON Lines.
pub(super) fn json_lines(mut input: impl BufRead + Send + 'static, name: String, columns: Columns) -> Rows {
    let mut number = 0_u64;
    let mut line = Vec::new();
    Box::new(std::iter::from_fn(move || {
        loop {
            number += 1;
            let length = match next_line(&mut input, &mut line) {
                Ok(0) => return None,
                Ok(length) => length,
                Err(error) => {
                    let place = format!("{name}:{number}");
                    return Some(Err(BatchError::Input { place, message: error.to_string() }));
                }
            };
            if number == 1 && line.starts_with("\u{feff}".as_bytes()) {
                line.drain(..3);
            }
            if !line.trim_ascii().is_empty() {
                let row = of_line(&line, length, &columns);
                return Some(Ok(row.map_err(|message| BadRow {
                    id: id_of(&line, &columns),
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

fn of_line(line: &[u8], length: u64, columns: &Columns) -> Result<Row, String> {
    if length > MAX_LINE as u64 {
        return Err(format!("the line has {}", too_long(length)));
    }
    let members: Members<'_> = serde_json::from_slice(line).map_err(|error| {
        let is_meant = line.trim_ascii_start().starts_with(b"{") && !error.is_data();
        let place =
            if is_meant { format!(": it breaks at column {}", error.column()) } else { String::new() };
        format!("this line is not a JSON object{place}")
    })?;
    columns.row(&members.0)
}

/// Returns the id of a line that cannot be used, as far as it can be read.
fn id_of(line: &[u8], columns: &Columns) -> Value {
    let head = line.get(..HEAD.min(line.len())).unwrap_or_default();
    let row =
        read_bytes(head, Level::Clean).ok().and_then(|reading| reading.into_candidates().into_iter().next());
    let row = row.filter(|_| columns.rounded_id(&String::from_utf8_lossy(head)).is_none());
    let id = row.and_then(|mut row| row.value.get_mut(columns.id()).map(Value::take)).unwrap_or_default();
    if id.is_string() || id.is_number() { id } else { Value::Null }
}
