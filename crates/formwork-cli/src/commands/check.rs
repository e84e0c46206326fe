//! `formwork check`: documents against a schema.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use formwork_json::{Level, read};
use formwork_schema::{Compiled, Formats, compile_with, lint};
use serde_json::Value;

use crate::exit::{Done, Failed};
use crate::rows::{CheckInput, CheckOutput};
use crate::{files, jsonl, snippet};

const AFTER_HELP: &str = "\
Examples:
  formwork check --schema person.schema.json ada.json grace.json
  formwork check --schema person.schema.json --json - < ada.json
  formwork check --jsonl rows.jsonl       rows: {\"id\", \"schema\", \"data\"} -> {\"id\", \"valid\", \"violations\"}

Exit codes: 0 every document is valid (with --jsonl: every row was answered), 1 one is not, 2 the schema or a file
cannot be used.";

/// Check JSON documents against a JSON Schema
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The documents; `-` or nothing is standard input
    #[arg(default_value = "-")]
    documents: Vec<PathBuf>,
    /// The JSON Schema
    #[arg(long, short, required_unless_present = "jsonl")]
    schema: Option<PathBuf>,
    /// Take `format` as a remark instead of a demand
    #[arg(long)]
    no_formats: bool,
    /// Print one JSON object for each document
    #[arg(long)]
    json: bool,
    /// Take rows with a schema each, one JSON object a line, and answer each with a row
    #[arg(long, conflicts_with_all = ["schema", "json"])]
    jsonl: bool,
}

pub(crate) fn run(args: &Args) -> Result<Done, Failed> {
    let formats = if args.no_formats { Formats::Annotate } else { Formats::Assert };
    let Some(schema) = &args.schema else {
        let first = args.documents.first().map_or(Path::new("-"), PathBuf::as_path);
        return jsonl::each_row(
            first,
            |row| check_row(row, formats),
            |error| CheckOutput { id: Value::Null, valid: None, violations: Vec::new(), error: Some(error) },
        );
    };
    let inputs: Vec<&Path> = args.documents.iter().chain([schema]).map(PathBuf::as_path).collect();
    files::one_standard_input(&inputs)?;
    let schema_document = files::json(schema)?;
    let compiled = files::compiled(schema, &schema_document, formats)?;
    for finding in lint(&schema_document) {
        eprintln!("{}: {finding}", files::name(schema));
    }
    let mut all_valid = true;
    let mut out = io::stdout().lock();
    for document in &args.documents {
        let output = check_document(&compiled, document, &mut out, args.json)?;
        all_valid &= output.valid == Some(true);
        if args.json {
            serde_json::to_writer(&mut out, &output).map_err(io::Error::from)?;
            writeln!(out)?;
        }
    }
    Ok(if all_valid { Done::Fine } else { Done::No })
}

fn check_row(row: CheckInput, formats: Formats) -> CheckOutput {
    let CheckInput { id, schema, data } = row;
    match compile_with(&schema, formats) {
        Ok(compiled) => {
            let violations = files::violations(&compiled, &data);
            CheckOutput { id, valid: Some(violations.is_empty()), violations, error: None }
        }
        Err(error) => CheckOutput { id, valid: None, violations: Vec::new(), error: Some(error.into()) },
    }
}

/// Checks one document; what is wrong is shown in its text unless the output is for programs.
fn check_document(
    schema: &Compiled,
    path: &Path,
    out: &mut impl Write,
    quiet: bool,
) -> Result<CheckOutput, Failed> {
    let bytes = files::bytes(path)?;
    let name = files::name(path);
    let id = Value::from(name.clone());
    let text = String::from_utf8_lossy(&bytes);
    let read = std::str::from_utf8(&bytes)
        .map_err(|error| formwork_json::ReadError::NotUtf8 { at: error.valid_up_to() })
        .and_then(|text| read(text, Level::Strict));
    let candidate = match read {
        Ok(reading) => reading.into_candidates().swap_remove(0),
        Err(error) => {
            match error.at() {
                _ if quiet => {}
                Some(at) => write!(out, "{}", snippet::message(&name, &text, at, &error.to_string()))?,
                None => writeln!(out, "error: {name}: {error}")?,
            }
            return Ok(CheckOutput {
                id,
                valid: Some(false),
                violations: Vec::new(),
                error: Some(error.into()),
            });
        }
    };
    let mut violations = files::violations(schema, &candidate.value);
    for violation in &mut violations {
        violation.span = formwork_json::locate(&text, &violation.path);
    }
    if !quiet {
        for edit in &candidate.edits {
            let (line, column) = formwork_json::line_column(&text, edit.span.start);
            eprintln!("warning: {name}:{line}:{column}: {}: `{}`, the last one counts", edit.kind, edit.with);
        }
        for violation in &violations {
            write!(out, "{}", snippet::violation(&name, &text, violation))?;
        }
        match violations.len() {
            0 => writeln!(out, "{name}: valid")?,
            1 => writeln!(out, "{name}: 1 violation")?,
            n => writeln!(out, "{name}: {n} violations")?,
        }
    }
    Ok(CheckOutput { id, valid: Some(violations.is_empty()), violations, error: None })
}
