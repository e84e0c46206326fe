//! `formwork read`: reads the JSON in a text.

use std::path::PathBuf;

use formwork_core::{Fit, Violation, Warning, WarningKind, precision};
use formwork_json::{Candidate, Level, Reading, read, read_bytes};
use formwork_schema::{Compiled, Formats, compile};
use serde_json::Value;

use crate::exit::{Failed, Status};
use crate::flags::one_of;
use crate::rows::{ReadInput, ReadOutput, RowError};
use crate::stderr::say;
use crate::{files, jsonl, output};

const AFTER_HELP: &str = "\
Examples:
  formwork read answer.txt
  echo \"Sure: {'age': 34,}\" | formwork read -v
  echo \"{\\\"a\\\": 1} or {\\\"a\\\": 2}?\" | formwork read --all
  formwork read --level strict --schema person.schema.json answer.txt
  formwork read --jsonl rows.jsonl
      rows: {\"id\", \"input\", \"schema\"?} -> {\"id\", \"ok\", \"value\"?, \"edits\"?, \"others\"?, \"error\"?}

If the text contains several documents, the schema selects one: first by the type of the root, then by the number of
violations, then strict JSON before JSON that needs other quotes, then the later document. Without a schema, a fenced
document precedes a bare one, and a long document a short one.

Levels:
  strict   the text is one JSON document
  clean    also: fences, prose, reasoning, control characters, trailing commas, an unclosed end
  lenient  also: other quotes, missing commas, comments, other languages' literals

Exit codes: 0 a document was read (with --jsonl: for each row), 1 there is none, or none that satisfies the schema
(with --jsonl: for a row, unless --allow-failures), 2 the schema or a file is invalid.";

/// Read the JSON in a text
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The text; `-` is standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// Tolerance in reading the text, see below
    #[arg(long, short, default_value = "lenient", value_parser = one_of::<Level, 3>(["strict", "clean", "lenient"]))]
    level: Level,
    /// The JSON Schema of the document; it also selects one of several documents (with --jsonl: of rows without
    /// `schema`)
    #[arg(long, short)]
    schema: Option<PathBuf>,
    /// Print every document of the text on its own line, in the order of the text (--json and --jsonl always have them in
    /// `others`)
    #[arg(long)]
    all: bool,
    /// Print the document with all edits as one JSON object
    #[arg(long)]
    json: bool,
    /// Read one JSON object per line with `id`, `input` and optionally `schema`, and print one result per line
    #[arg(long, conflicts_with = "json")]
    jsonl: bool,
    /// Exit with 0 even if rows failed (requires --jsonl)
    #[arg(long, requires = "jsonl")]
    allow_failures: bool,
    /// Print every edit on standard error
    #[arg(long, short)]
    verbose: bool,
}

pub(crate) fn run(args: &Args) -> Result<Status, Failed> {
    let level = args.level;
    let schema = match &args.schema {
        Some(path) => {
            files::one_standard_input(&[path, &args.file])?;
            let document = files::json(path)?;
            let schema = files::compiled(path, &document, Formats::Assert)?;
            Some((document, schema))
        }
        None => None,
    };
    if args.jsonl {
        let schema = schema.as_ref().map(|(document, schema)| (document, schema.as_ref()));
        let answer = |row| read_row(row, schema, level);
        return jsonl::each_row(&args.file, args.allow_failures, answer, failed, |answer| answer.ok);
    }
    let name = files::name(&args.file);
    let mut all = Vec::new();
    let read = match read_bytes(&files::bytes(&args.file)?, level) {
        Ok(reading) => {
            let schema = schema.as_ref().map(|(document, schema)| (document, schema.as_ref()));
            if args.all && !args.json {
                let documents =
                    reading.documents().into_iter().filter(|document| left_out(document).is_none());
                all = documents.map(|document| document.value.clone()).collect();
            }
            chosen(Value::from(name.clone()), reading, schema)
        }
        Err(error) => failed(Value::from(name.clone()), error.into()),
    };
    if args.json {
        output::row(&read)?;
    } else if args.all && read.ok {
        for document in all {
            output::row(&document)?;
        }
    } else if let Some(value) = read.value.as_ref().filter(|_| read.ok) {
        output::line(format_args!("{value:#}"))?;
    }
    let others = read.others.len();
    if others > 0 && !args.all && !args.json {
        let (documents, are) = if others == 1 { ("document", "is") } else { ("documents", "are") };
        say!("warning: {name}: {others} other {documents} {are} not printed (--all prints each)");
    }
    read.warnings.iter().filter(|_| !args.json).for_each(|warning| say!("warning: {name}: {warning}"));
    if args.verbose {
        for edit in read.edits.iter().flatten() {
            say!("{name}: {edit}");
        }
    }
    if let Some(error) = read.error.filter(|_| !args.json) {
        match error {
            RowError::Invalid { violations, .. } => {
                violations.iter().for_each(|violation| say!("error: {name}: {violation}"))
            }
            RowError::Unreadable { message, .. }
            | RowError::Schema { message, .. }
            | RowError::Row { message } => {
                say!("error: {name}: {message}");
            }
        }
    }
    Ok(if read.ok { Status::Ok } else { Status::Negative })
}

fn read_row(row: ReadInput, common: Option<(&Value, &Compiled)>, level: Level) -> ReadOutput {
    let ReadInput { id, input, schema } = row;
    let own = match schema.as_ref().map(compile).transpose() {
        Ok(own) => own,
        Err(error) => return failed(id, error.into()),
    };
    match read(&input, level) {
        Ok(reading) => chosen(id, reading, schema.as_ref().zip(own.as_deref()).or(common)),
        Err(error) => failed(id, error.into()),
    }
}

/// Returns the candidate that [fits](Fit) the schema best, else the best candidate without a schema, and the other documents.
fn chosen(id: Value, reading: Reading, schema: Option<(&Value, &Compiled)>) -> ReadOutput {
    let mut best: Option<(Option<Fit>, Vec<Violation>, &Candidate)> = None;
    for candidate in reading.candidates() {
        let mut violations = precision(&candidate.rounded).0;
        violations.extend(schema.iter().flat_map(|(_, schema)| files::violations(schema, &candidate.value)));
        let fit = schema.map(|(schema, _)| Fit::new(schema, candidate, &candidate.value, &violations));
        if best.as_ref().is_none_or(|(best, ..)| fit > *best) {
            best = Some((fit, violations, candidate));
        }
    }
    let Some((_, violations, chosen)) = best else {
        return failed(id, formwork_json::ReadError::NotFound.into());
    };
    let documents = reading.documents().into_iter().filter(|document| !chosen.span.contains(document.span));
    let (others, left_out): (Vec<_>, Vec<_>) = documents.partition(|document| left_out(document).is_none());
    let mut warnings = precision(&chosen.rounded).1;
    warnings.extend(left_out.into_iter().filter_map(self::left_out));
    let error = if violations.is_empty() { None } else { Some(RowError::from(violations)) };
    ReadOutput {
        id,
        ok: error.is_none(),
        value: Some(chosen.value.clone()),
        edits: Some(chosen.all_edits()),
        others: others.into_iter().map(|document| document.value.clone()).collect(),
        warnings,
        error,
    }
}

/// Returns the warning of another document that is not printed, because it has a number that cannot be kept.
fn left_out(document: &Candidate) -> Option<Warning> {
    let number = document.rounded.iter().find(|number| !number.is_tolerable())?;
    Some(Warning::new(WarningKind::Documents, format!("another document was left out: {number}")))
}

fn failed(id: Value, error: RowError) -> ReadOutput {
    ReadOutput {
        id,
        ok: false,
        value: None,
        edits: None,
        others: Vec::new(),
        warnings: Vec::new(),
        error: Some(error),
    }
}
