//! `formwork check`: documents against a schema.

use std::path::{Path, PathBuf};

use formwork_json::{Level, read};
use formwork_schema::{Compiled, Formats, compile_with, lint};
use serde_json::Value;

use crate::exit::{Done, Failed};
use crate::jsonl::Answer as _;
use crate::output::say;
use crate::rows::{CheckInput, CheckOutput, RowError};
use crate::{files, jsonl, output, snippet};

const AFTER_HELP: &str = "\
Examples:
  formwork check --schema person.schema.json ada.json grace.json
  formwork check --schema person.schema.json --json - < ada.json
  formwork check --jsonl rows.jsonl       rows: {\"id\", \"data\", \"schema\"?} -> {\"id\", \"valid\", \"violations\"}

Exit codes: 0 every document is valid, 1 one is not (with --jsonl unless --allow-failures), 2 the schema or a file
cannot be used.";

/// Check JSON documents against a JSON Schema
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The documents; `-` or nothing is standard input
    #[arg(default_value = "-")]
    documents: Vec<PathBuf>,
    /// The JSON Schema (with --jsonl: of rows that bring none)
    #[arg(long, short, required_unless_present = "jsonl")]
    schema: Option<PathBuf>,
    /// Take `format` as a remark instead of a demand
    #[arg(long)]
    no_formats: bool,
    /// Print one JSON object for each document
    #[arg(long)]
    json: bool,
    /// Read JSON Lines, an object with `id`, `data` and perhaps `schema` a line, and answer each at once with a line
    #[arg(long, conflicts_with = "json")]
    jsonl: bool,
    /// With --jsonl: exit with 0 although rows failed or their documents are invalid
    #[arg(long, requires = "jsonl")]
    allow_failures: bool,
}

pub(crate) fn run(args: &Args) -> Result<Done, Failed> {
    let formats = if args.no_formats { Formats::Annotate } else { Formats::Assert };
    let schema = match &args.schema {
        Some(path) => {
            let inputs: Vec<&Path> = args.documents.iter().chain([path]).map(PathBuf::as_path).collect();
            files::one_standard_input(&inputs)?;
            let document = files::json(path)?;
            let compiled = files::compiled(path, &document, formats)?;
            for finding in lint(&document) {
                say!("{}: {finding}", files::name(path));
            }
            Some(compiled)
        }
        None => None,
    };
    if args.jsonl {
        let [rows] = args.documents.as_slice() else {
            return Err(Failed::usage("--jsonl takes one file with rows, or standard input"));
        };
        let answer = |row| check_row(row, schema.as_deref(), formats);
        return jsonl::each_row(rows, args.allow_failures, answer, failed);
    }
    let Some(schema) = schema else { return Err(Failed::usage("--schema is missing")) };
    let mut all_valid = true;
    for document in &args.documents {
        let checked = check_document(&schema, document, args.json)?;
        all_valid &= checked.is_ok();
        if args.json {
            output::row(&checked)?;
        }
    }
    Ok(if all_valid { Done::Fine } else { Done::No })
}

fn check_row(row: CheckInput, common: Option<&Compiled>, formats: Formats) -> CheckOutput {
    let CheckInput { id, schema, data } = row;
    let own = match schema.map(|schema| compile_with(&schema, formats)).transpose() {
        Ok(own) => own,
        Err(error) => return failed(id, error.into()),
    };
    let Some(schema) = own.as_deref().or(common) else {
        let message = "the row has no `schema`, and there is no --schema".to_owned();
        return failed(id, RowError::Row { message });
    };
    let violations = files::violations(schema, &data);
    CheckOutput { id, valid: Some(violations.is_empty()), violations, error: None }
}

fn failed(id: Value, error: RowError) -> CheckOutput {
    CheckOutput { id, valid: None, violations: Vec::new(), error: Some(error) }
}

/// Checks one document; what is wrong is shown in its text unless the output is for programs.
fn check_document(schema: &Compiled, path: &Path, quiet: bool) -> Result<CheckOutput, Failed> {
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
                Some(at) => output::text(&snippet::message(&name, &text, at, &error.to_string()))?,
                None => output::line(format_args!("error: {name}: {error}"))?,
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
            say!("warning: {name}:{line}:{column}: {}: `{}`, the last one counts", edit.kind, edit.with);
        }
        for violation in &violations {
            output::text(&snippet::violation(&name, &text, violation))?;
        }
        match violations.len() {
            0 => output::line(format_args!("{name}: valid"))?,
            1 => output::line(format_args!("{name}: 1 violation"))?,
            n => output::line(format_args!("{name}: {n} violations"))?,
        }
    }
    Ok(CheckOutput { id, valid: Some(violations.is_empty()), violations, error: None })
}
