//! Parquet and Arrow IPC.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_ipc::reader::FileReader;
use arrow_json::LineDelimitedWriter;
use arrow_schema::{ArrowError, Schema};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

use super::Rows;
use super::cells::check;
use super::columns::Columns;
use crate::members::Members;
use crate::{BadRow, BatchError, Row};

/// The number of rows that are decoded at a time.
const BATCH: usize = 256;

/// A row, or the id of one that cannot be used, and the reason.
type Read = Result<Row, (Value, String)>;

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// Returns the rows of a file whose ending says its format.
pub(super) fn rows(file: File, path: &Path, columns: &Columns) -> Result<Rows, BatchError> {
    let name = path.display().to_string();
    let wrong = |error: ArrowError| BatchError::Input { place: name.clone(), message: error.to_string() };
    let is_parquet = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("parquet"));
    let (schema, batches): (_, Batches) = if is_parquet {
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| wrong(error.into()))?;
        let schema = builder.schema().clone();
        (schema, Box::new(builder.with_batch_size(BATCH).build().map_err(|error| wrong(error.into()))?))
    } else {
        let reader = FileReader::try_new(BufReader::new(file), None).map_err(wrong)?;
        (reader.schema(), Box::new(reader))
    };
    check(&names(&schema), &name, columns)?;
    let columns = columns.clone();
    let mut number = 0_u64;
    Ok(Box::new(batches.flat_map(move |batch| {
        let read = batch.and_then(|batch| of_batch(&batch, &columns));
        match read {
            Ok(rows) => rows
                .into_iter()
                .map(|row| {
                    number += 1;
                    Ok(row.map_err(|(id, message)| BadRow {
                        id,
                        message: format!("{name}:{number}: {message}"),
                    }))
                })
                .collect::<Vec<_>>(),
            Err(error) => {
                let place = format!("{name}, after row {number}");
                vec![Err(BatchError::Input { place, message: error.to_string() })]
            }
        }
    })))
}

fn names(schema: &Schema) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().clone()).collect()
}

/// Returns the rows of a batch; a row that cannot be used has its id and the reason.
fn of_batch(batch: &RecordBatch, columns: &Columns) -> Result<Vec<Read>, ArrowError> {
    let mut lines = LineDelimitedWriter::new(Vec::new());
    lines.write(batch)?;
    lines.finish()?;
    let text = lines.into_inner();
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Ok(lines
        .map(|line| {
            let Members(members) =
                serde_json::from_slice(line).map_err(|error| (Value::Null, error.to_string()))?;
            columns.row(&members).map_err(|message| {
                let id = members.iter().find(|(name, _)| name == columns.id());
                (id.and_then(|(_, id)| serde_json::from_str(id.get()).ok()).unwrap_or_default(), message)
            })
        })
        .collect())
}
