//! Tables in Parquet and Arrow IPC.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use super::cells::{fault, text};
use super::table::{Table, Type, is_integer};
use crate::{BatchError, View};

/// The number of rows, and of bytes, that are written at a time.
const BATCH: (usize, usize) = (4096, 16 << 20);

/// The size of a group of rows in Parquet, in bytes of memory.
const GROUP: usize = 8 << 20;

/// A column that is being filled.
enum Column {
    Bool(BooleanBuilder),
    Int(Int64Builder),
    Float(Float64Builder),
    Text(StringBuilder),
    Json(StringBuilder),
}

impl Column {
    fn new(kind: Type) -> Self {
        match kind {
            Type::Bool => Self::Bool(BooleanBuilder::new()),
            Type::Int => Self::Int(Int64Builder::new()),
            Type::Float => Self::Float(Float64Builder::new()),
            Type::Null | Type::Text => Self::Text(StringBuilder::new()),
            Type::Json => Self::Json(StringBuilder::new()),
        }
    }

    fn kind(&self) -> DataType {
        match self {
            Self::Bool(_) => DataType::Boolean,
            Self::Int(_) => DataType::Int64,
            Self::Float(_) => DataType::Float64,
            Self::Text(_) | Self::Json(_) => DataType::Utf8,
        }
    }

    /// Adds a cell; the error says why its value does not fit.
    fn add(&mut self, json: Option<String>) -> Result<(), String> {
        let misfit = |json: &str, kind: &str| format!("{json} does not fit {kind}");
        match self {
            Self::Bool(column) => column.append_option(json.map(|json| json == "true")),
            Self::Int(column) => {
                let number = json.map(|json| json.parse().map_err(|_| misfit(&json, "a 64-bit integer")));
                column.append_option(number.transpose()?);
            }
            Self::Float(column) => {
                let number = json.map(|json| match json.parse::<f64>() {
                    Ok(number) if number.is_finite() && is_exact(&json, number) => Ok(number),
                    _ => Err(misfit(&json, "a 64-bit floating-point number exactly")),
                });
                column.append_option(number.transpose()?);
            }
            Self::Text(column) => column.append_option(json.map(text)),
            Self::Json(column) => column.append_option(json),
        }
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Bool(column) => Arc::new(column.finish()),
            Self::Int(column) => Arc::new(column.finish()),
            Self::Float(column) => Arc::new(column.finish()),
            Self::Text(column) | Self::Json(column) => Arc::new(column.finish()),
        }
    }
}

/// Returns whether a number that is written as an integer is that integer.
fn is_exact(json: &str, number: f64) -> bool {
    !is_integer(json) || json.parse().is_ok_and(|exact: i128| exact == number as i128)
}

/// A file of one of the formats.
enum Output<W: Write + Send> {
    Parquet(Box<ArrowWriter<W>>),
    Arrow(Box<FileWriter<W>>),
}

impl<W: Write + Send> Output<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        match self {
            Self::Parquet(file) => {
                file.write(batch)?;
                if file.in_progress_size() > GROUP {
                    file.flush()?;
                }
                Ok(())
            }
            Self::Arrow(file) => file.write(batch),
        }
    }
}

/// Writes the rows of a view. Returns their number.
pub(super) fn write(
    view: &View,
    table: &Table,
    is_parquet: bool,
    rejected: bool,
    file: impl Write + Send,
    path: &Path,
) -> Result<u64, BatchError> {
    let failed = |error: ArrowError| BatchError::File { path: path.to_owned(), message: error.to_string() };
    let mut columns: Vec<Column> = table.types.iter().map(|kind| Column::new(*kind)).collect();
    let fields = table.names.iter().zip(&columns).map(|(name, column)| Field::new(name, column.kind(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let mut output = if is_parquet {
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties));
        Output::Parquet(Box::new(writer.map_err(|error| failed(error.into()))?))
    } else {
        Output::Arrow(Box::new(FileWriter::try_new(file, &schema).map_err(failed)?))
    };
    let (mut rows, mut bytes) = (0, 0);
    let mut put = |columns: &mut Vec<Column>| {
        let arrays = columns.iter_mut().map(Column::finish).collect();
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays);
        batch.and_then(|batch| output.write(&batch)).map_err(failed)
    };
    let lines = view.each_cells(rejected, |row, cells| {
        for ((column, name), cell) in columns.iter_mut().zip(&table.names).zip(table.line(cells)) {
            bytes += cell.as_ref().map_or(0, String::len);
            column.add(cell).map_err(|message| {
                fault(row, &format!("the column `{name}`: {message}: export CSV or JSON Lines"))
            })?;
        }
        rows += 1;
        if rows >= BATCH.0 || bytes >= BATCH.1 {
            (rows, bytes) = (0, 0);
            put(&mut columns)?;
        }
        Ok(())
    })?;
    if rows > 0 {
        put(&mut columns)?;
    }
    match output {
        Output::Parquet(file) => file.close().map(drop).map_err(|error| failed(error.into()))?,
        Output::Arrow(mut file) => file.finish().map_err(failed)?,
    }
    Ok(lines)
}
