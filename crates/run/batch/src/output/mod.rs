//! Exports: the results of a batch as JSON Lines and as tables.

#[cfg(feature = "parquet")]
mod arrow;
mod cells;
mod packed;
mod table;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use self::cells::{Cell, cells, text};
use self::table::Table;
use crate::sqlite::Found;
use crate::{BatchError, View, input};

/// The endings of files that exports write.
const ENDINGS: &str = ".jsonl, .csv or .tsv (each also with .gz or .zst), .parquet or .arrow";

/// The kind of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Lines,
    /// The byte between two cells.
    Cells(u8),
    Parquet,
    Arrow,
}

impl View {
    /// Writes the results in the order of the rows, one JSON object per line: the values, or the rejected rows. Returns the number
    /// of lines.
    ///
    /// # Errors
    /// [`BatchError::Store`], [`BatchError::Engine`] if results were pruned, after the others are written, or [`BatchError::File`] if the
    /// output cannot be written.
    pub fn export(&self, rejected: bool, output: &mut dyn Write) -> Result<u64, BatchError> {
        let (mut lines, mut pruned) = (0, 0);
        self.each_row(|row| {
            if row.is_accepted != Some(!rejected) {
                return Ok(());
            }
            let Some(line) = row.line else {
                pruned += 1;
                return Ok(());
            };
            lines += 1;
            let columns = row.columns.map(|columns| format!("\"columns\":{columns},")).unwrap_or_default();
            let rest = line.strip_prefix('{').unwrap_or(line);
            writeln!(output, "{{\"id\":{},{columns}{rest}", row.id)
                .map_err(|error| BatchError::file(Path::new("the output"), &error))
        })?;
        self.none_pruned(pruned)?;
        Ok(lines)
    }

    /// Writes the results to a file, whose ending chooses the format: JSON Lines as [`export`](Self::export) does, or a table with
    /// one line for every row (for every rejected row with `rejected`). Returns the number of lines.
    ///
    /// A table has the columns `id`, those of the input, `value` or `value.*`, `verdict` (`accepted`, `rejected` or `open`),
    /// `contract`, `target`, `model`, `prompt`, `at`, `attempts`, `cost_usd`, `evidence.*`, `confidence.*`, `warnings`, `not_stated` and
    /// `error.*`; a column without a cell is left out.
    /// A column of the input with one of these names is called `input.NAME`. A row whose result is from the store or from a row with the
    /// same input has no attempts and the cost 0.
    /// Lists are JSON. The file appears when it is whole; after an error, an older file of this name is as it was.
    ///
    /// # Errors
    /// [`BatchError::Input`] for another ending, two columns of one name, or a number that Parquet cannot hold;
    /// [`BatchError::Store`], [`BatchError::File`].
    ///
    /// ```
    /// use formwork_batch::{Batch, Row, Spec};
    /// use serde_json::json;
    ///
    /// let folder = tempfile::tempdir()?;
    /// let rows = [Ok(Row { columns: r#"{"year":2024}"#.into(), ..Row::new("maria", "Maria is 34.") })];
    /// let batch = Batch::create(folder.path().join("letters"), &Spec::new(json!({"type": "object"}), "letters"), rows)?;
    /// let table = folder.path().join("letters.csv");
    /// assert_eq!(batch.view().export_to(&table, false)?, 1);
    /// assert_eq!(std::fs::read_to_string(&table)?, "id,year,verdict\nmaria,2024,open\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn export_to(&self, path: &Path, rejected: bool) -> Result<u64, BatchError> {
        let wrong = |message: String| BatchError::Input { place: path.display().to_string(), message };
        let kind = match input::ending(path).as_str() {
            "" | "jsonl" | "ndjson" => Kind::Lines,
            "csv" => Kind::Cells(b','),
            "tsv" => Kind::Cells(b'\t'),
            "parquet" => Kind::Parquet,
            "arrow" | "feather" => Kind::Arrow,
            other => {
                return Err(wrong(format!("exports do not write `.{other}`: name a file with {ENDINGS}")));
            }
        };
        #[cfg(not(feature = "parquet"))]
        if matches!(kind, Kind::Parquet | Kind::Arrow) {
            return Err(wrong(crate::NO_PARQUET.to_owned()));
        }
        let failed = |error: io::Error| BatchError::file(path, &error);
        // A pipe or a device is written in place.
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            let file = File::options().write(true).open(path).map_err(failed)?;
            return self.write(kind, file, path, rejected);
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
        let written = File::create(&temporary)
            .map_err(failed)
            .and_then(|file| self.write(kind, file, path, rejected))
            .and_then(|lines| fs::rename(&temporary, path).map_err(failed).map(|()| lines));
        if written.is_err() {
            _ = fs::remove_file(&temporary);
        }
        written
    }

    fn write(&self, kind: Kind, file: File, path: &Path, rejected: bool) -> Result<u64, BatchError> {
        let failed = |error: io::Error| BatchError::file(path, &error);
        let name = path.to_string_lossy().to_lowercase();
        let mut file = packed::Packed::new(BufWriter::with_capacity(1 << 18, file), &name);
        let lines = match kind {
            Kind::Lines => self.export(rejected, &mut file).map_err(|error| match error {
                BatchError::File { message, .. } => BatchError::File { path: path.to_owned(), message },
                error => error,
            })?,
            Kind::Cells(delimiter) => {
                let mut out = csv::WriterBuilder::new().delimiter(delimiter).from_writer(&mut file);
                let broken = |error: csv::Error| BatchError::file(path, &error.into());
                let table = self.table(rejected)?;
                out.write_record(&table.names).map_err(broken)?;
                let lines = self.each_cells(rejected, |_, row| {
                    let line = table.line(row).into_iter().map(|cell| cell.map(text).unwrap_or_default());
                    out.write_record(line).map_err(broken)
                })?;
                out.flush().map_err(failed)?;
                lines
            }
            #[cfg(feature = "parquet")]
            Kind::Parquet | Kind::Arrow => {
                arrow::write(self, &self.table(rejected)?, kind == Kind::Parquet, rejected, &mut file, path)?
            }
            #[cfg(not(feature = "parquet"))]
            Kind::Parquet | Kind::Arrow => 0,
        };
        let file = file.finish().and_then(|file| file.into_inner().map_err(io::IntoInnerError::into_error));
        file.and_then(|file| if kind == Kind::Lines { Ok(()) } else { file.sync_all() }).map_err(failed)?;
        Ok(lines)
    }

    /// Returns the columns of all rows.
    fn table(&self, rejected: bool) -> Result<Table, BatchError> {
        let mut found = table::Found::default();
        self.each_cells(rejected, |_, row| {
            found.add(row);
            Ok(())
        })?;
        Ok(found.table())
    }

    /// Gives the cells of each row of a table to a function. Returns the number of rows.
    fn each_cells(
        &self,
        rejected: bool,
        mut each: impl FnMut(&Found<'_>, Vec<Cell>) -> Result<(), BatchError>,
    ) -> Result<u64, BatchError> {
        let contract = format!("{:x}", Sha256::digest(self.spec().contract.to_string()));
        let (mut lines, mut pruned) = (0, 0);
        self.each_row(|row| {
            if rejected && row.is_accepted != Some(false) {
                return Ok(());
            }
            lines += 1;
            pruned += u64::from(row.is_accepted.is_some() && row.line.is_none());
            each(&row, cells(&row, &contract)?)
        })?;
        self.none_pruned(pruned)?;
        Ok(lines)
    }
}
