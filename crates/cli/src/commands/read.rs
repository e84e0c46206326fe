//! `formwork read`: reads the JSON in a text.

use std::path::PathBuf;
use std::sync::Arc;

use formwork_core::{
    Coerce, Context, Contract, Fit, Inline, Outline, Outlook, Reader, Report, Settled, Validator as _,
    Warning, WarningKind, declares_coercion, precision,
};
use formwork_json::{Candidate, JsonPath, Level, ReadError, Reading, read, read_bytes};
use formwork_schema::{Compiled, Formats, SchemaError, compile, contract_for};
use serde_json::Value;

use crate::exit::{Failed, Status};
use crate::flags::one_of;
use crate::rows::{ReadInput, ReadOutput, ReadProgress, RowError};
use crate::stderr::say;
use crate::{files, jsonl, output};

const AFTER_HELP: &str = "\
Examples:
  formwork read answer.txt
  echo \"Sure: {'age': 34,}\" | formwork read -v
  echo \"{\\\"a\\\": 1} or {\\\"a\\\": 2}?\" | formwork read --all
  formwork read --level strict --schema person.schema.json answer.txt
  formwork read --schema person.schema.json --coerce fix answer.txt
  formwork read --jsonl rows.jsonl
      rows: {\"id\", \"input\", \"schema\"?} -> {\"id\", \"ok\", \"value\"?, \"edits\"?, \"others\"?, \"error\"?}
  formwork read --progress --jsonl rows.jsonl
      rows: {\"id\", \"text\", \"schema\"?} -> {\"id\", \"complete_at\", \"impossible_at\", \"valid_prefix\"}

If the text contains several documents, the schema selects one: first by the type of the root, then by the number of
violations, then strict JSON before JSON that needs other quotes, then the later document. Without a schema, a fenced
document precedes a bare one, and a long document a short one.

With --progress, each row says which byte of a growing text decides about its first document:
  complete_at    0-based index of the last byte of the valid document (after a number: of the next byte, or the length of
                 the text), else null
  impossible_at  0-based index of the byte after which the document cannot become valid, else null. Syntax errors decide at
                 the levels strict and clean. null for an optional member never decides, because it can mean an absent one.
                 Each value of a repeated name counts.
  valid_prefix   length in bytes of the text up to the end of the last string, number, literal, list or object that ended
                 while the document could become valid; open values are not part of it. 0 before the first end

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
    /// Convert, drop or replace values that do not fit the schema, as `formwork extract` does: strict, ask, fix, drop, default or guess,
    /// for the whole or for the member at PATH (repeatable) [default: ask]
    #[arg(long, value_name = "[PATH=]HOW")]
    coerce: Vec<Coerce>,
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
    /// Print which byte of each text completes its first document, or makes it impossible (requires --jsonl)
    #[arg(long, requires = "jsonl", conflicts_with = "coerce")]
    progress: bool,
    /// Exit with 0 even if rows failed (requires --jsonl)
    #[arg(long, requires = "jsonl")]
    allow_failures: bool,
    /// Print every edit on standard error
    #[arg(long, short)]
    verbose: bool,
}

pub(crate) fn run(args: &Args) -> Result<Status, Failed> {
    let level = args.level;
    let coerce = args.coerce.as_slice();
    let schema = match &args.schema {
        Some(path) => {
            files::one_standard_input(&[path, &args.file])?;
            let mut document = files::json(path)?;
            coerce.iter().for_each(|coerce| coerce.declare(&mut document));
            let schema = files::compiled(path, &document, Formats::Assert)?;
            Some((document, schema))
        }
        None => None,
    };
    if args.jsonl {
        if args.progress {
            let outline = |document: &Value| Ok(contract(document)?.outline());
            let common = schema.as_ref().map(|(document, _)| outline(document)).transpose();
            let common = common.map_err(|error: SchemaError| Failed::usage(error.to_string()))?;
            let common = common.unwrap_or_else(|| Arc::new(Outline::any()));
            let answer = |row: ReadInput| match row.schema.as_ref().map(outline).transpose() {
                Ok(own) => progress(row.id, &row.input, own.as_ref().unwrap_or(&common), level),
                Err(error) => no_progress(row.id, SchemaError::into(error)),
            };
            let is_ok = |row: &ReadProgress| row.error.is_none();
            return jsonl::each_row(&args.file, args.allow_failures, answer, no_progress, is_ok);
        }
        let schema = schema.as_ref().map(|(document, schema)| (document, schema.as_ref()));
        let answer = |row| read_row(row, schema, level, coerce);
        return jsonl::each_row(&args.file, args.allow_failures, answer, failed, |answer| answer.ok);
    }
    let name = files::name(&args.file);
    let mut all = Vec::new();
    let bytes = files::bytes(&args.file)?;
    let reading = read_bytes(&bytes, level);
    let pair = schema.as_ref().map(|(document, schema)| (document, schema.as_ref()));
    if let (Ok(reading), true, false) = (&reading, args.all, args.json) {
        let documents = reading.documents().into_iter().filter(|document| left_out(document).is_none());
        all = documents.map(|document| document.value.clone()).collect();
    }
    let id = Value::from(name.clone());
    let read = match pair.filter(|(document, _)| declares_coercion(document)) {
        Some((document, _)) => coerced(id, reading, &String::from_utf8_lossy(&bytes), document)
            .map_err(|error| Failed::usage(error.to_string()))?,
        None => reading
            .map_or_else(|error| failed(id.clone(), error.into()), |read| chosen(id.clone(), read, pair)),
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
            RowError::Invalid { violations, total, .. } => {
                violations.iter().for_each(|violation| say!("error: {name}: {violation}"));
                if total > violations.len() {
                    say!("error: {name}: and {} more", total - violations.len());
                }
            }
            RowError::Unreadable { message, reason } => {
                let place = reason.at().map_or_else(|| name.clone(), |at| files::place(&name, &bytes, at));
                say!("error: {place}: {message}");
            }
            other => say!("error: {name}: {}", other.message()),
        }
    }
    Ok(if read.ok { Status::Ok } else { Status::Negative })
}

/// Reads a text along with its schema.
fn progress(id: Value, text: &str, outline: &Outline, level: Level) -> ReadProgress {
    let mut reader = Reader::new(level);
    reader.push(outline, text, |_| {});
    let (complete_at, impossible_at) = match reader.end(outline, |_| {}) {
        Outlook::Complete { at } => (Some(*at), None),
        Outlook::Impossible { at, .. } => (None, Some(*at)),
        _ => (None, None),
    };
    let prefix = reader.valid_prefix();
    let valid_prefix = if prefix.is_empty() { 0 } else { prefix.end };
    ReadProgress { id, complete_at, impossible_at, valid_prefix, error: None }
}

fn no_progress(id: Value, error: RowError) -> ReadProgress {
    ReadProgress { id, complete_at: None, impossible_at: None, valid_prefix: 0, error: Some(error) }
}

fn read_row(
    row: ReadInput,
    common: Option<(&Value, &Compiled)>,
    level: Level,
    coerce: &[Coerce],
) -> ReadOutput {
    let ReadInput { id, input, mut schema } = row;
    schema.iter_mut().for_each(|schema| coerce.iter().for_each(|coerce| coerce.declare(schema)));
    let own = match schema.as_ref().map(compile).transpose() {
        Ok(own) => own,
        Err(error) => return failed(id, error.into()),
    };
    let pair = schema.as_ref().zip(own.as_deref()).or(common);
    let reading = read(&input, level);
    match (pair.filter(|(document, _)| declares_coercion(document)), reading) {
        (Some((document, _)), reading) => coerced(id.clone(), reading, &input, document)
            .unwrap_or_else(|error| failed(id, RowError::Row { message: error.to_string() })),
        (None, Ok(reading)) => chosen(id, reading, pair),
        (None, Err(error)) => failed(id, error.into()),
    }
}

fn contract(schema: &Value) -> Result<Contract, SchemaError> {
    let mut schema = schema.clone();
    // Rules are about the text that a document was made of, which is not known here.
    schema.as_object_mut().map(|schema| schema.remove(formwork_core::RULES));
    contract_for(Arc::new(Inline::new("schema", schema)))
}

/// Returns the candidate that fits the schema best once its values are converted as the schema permits. Where nothing in the text fits
/// and doubtful conversions are permitted, the text itself may stand for the document.
fn coerced(
    id: Value,
    reading: Result<Reading, ReadError>,
    text: &str,
    schema: &Value,
) -> Result<ReadOutput, SchemaError> {
    let contract = contract(schema)?;
    let mut best: Option<(Fit, Settled, Report, &Candidate)> = None;
    for candidate in reading.iter().flat_map(Reading::candidates) {
        let source = Some(candidate.span.of(text)).filter(|_| candidate.edits.is_empty());
        let mut settled = contract.settle_text(candidate.value.clone(), source, &Context::EMPTY);
        let (mut report, judged) = (Report::default(), std::mem::take(&mut settled.judgement.violations));
        report.extend_at(&JsonPath::root(), judged, settled.judgement.left_out);
        report.extend(files::unkept(&candidate.rounded));
        let changes = settled.coerced.len();
        let fit = Fit::new(schema, candidate, &settled.value, report.violations()).with_changes(changes);
        if best.as_ref().is_none_or(|(best, ..)| fit > *best) {
            best = Some((fit, settled, report, candidate));
        }
    }
    if contract.guesses() {
        let whole = contract.settle(Value::from(text), &Context::EMPTY);
        // A text that fits as it is precedes what was made of a part of it. An object is never made of the whole text.
        let is_made = |(_, settled, report, candidate): &(Fit, Settled, Report, &Candidate)| {
            let is_exact = candidate.is_exact() && settled.coerced.is_empty();
            !report.is_empty() || whole.coerced.is_empty() && !is_exact
        };
        if whole.judgement.is_accepted() && !whole.value.is_object() && best.as_ref().is_none_or(is_made) {
            let warnings = whole.coerced.iter().map(Warning::from).collect();
            let (value, edits) = (Some(whole.value), Some(Vec::new()));
            return Ok(ReadOutput { id, ok: true, value, edits, others: Vec::new(), warnings, error: None });
        }
    }
    let (_, settled, report, candidate) = match (best, reading.as_ref().err()) {
        (Some(best), _) => best,
        (None, error) => {
            let error = error.cloned().unwrap_or(ReadError::NotFound);
            return Ok(failed(id, error.into()));
        }
    };
    let error = if report.is_empty() { None } else { Some(RowError::from(report)) };
    let warnings = settled.coerced.iter().map(Warning::from).chain(precision(&candidate.rounded).1).collect();
    let (value, edits) = (Some(settled.value), Some(candidate.all_edits()));
    Ok(ReadOutput { id, ok: error.is_none(), value, edits, others: Vec::new(), warnings, error })
}

/// Returns the candidate that [fits](Fit) the schema best, else the best candidate without a schema, and the other documents.
fn chosen(id: Value, reading: Reading, schema: Option<(&Value, &Compiled)>) -> ReadOutput {
    let mut best: Option<(Option<Fit>, Report, &Candidate)> = None;
    for candidate in reading.candidates() {
        let mut report = Report::default();
        report.extend(files::unkept(&candidate.rounded));
        if let Some((_, schema)) = schema {
            schema.validate(&candidate.value, &Context::EMPTY, &mut report);
        }
        let fit =
            schema.map(|(schema, _)| Fit::new(schema, candidate, &candidate.value, report.violations()));
        if best.as_ref().is_none_or(|(best, ..)| fit > *best) {
            best = Some((fit, report, candidate));
        }
    }
    let Some((_, report, chosen)) = best else {
        return failed(id, formwork_json::ReadError::NotFound.into());
    };
    let documents = reading.documents().into_iter().filter(|document| !chosen.span.contains(document.span));
    let (others, left_out): (Vec<_>, Vec<_>) = documents.partition(|document| left_out(document).is_none());
    let mut warnings = precision(&chosen.rounded).1;
    warnings.extend(left_out.into_iter().filter_map(self::left_out));
    let error = if report.is_empty() { None } else { Some(RowError::from(report)) };
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
    ReadOutput { id, error: Some(error), ..ReadOutput::default() }
}
