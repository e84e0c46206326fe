//! `formwork evidence`: finds the place of each value of an answer in its input.

use std::fs;
use std::path::{Path, PathBuf};

use formwork::providers::Providers;
use formwork_core::Rules;
use formwork_evidence::{Evidence, Index, Span};
use formwork_schema::compile;
use serde_json::Value;

use crate::exit::{Failed, Status};
use crate::rows::{EvidenceInput, EvidenceOutput, RowError};
use crate::{files, jsonl, output, rules};

const AFTER_HELP: &str = "\
Examples:
  formwork evidence --input letter.txt ada.json
  formwork evidence --input letter.txt --schema person.schema.json --json - < ada.json
  formwork evidence --input letter.txt --html ada.html ada.json
  formwork evidence --jsonl rows.jsonl
      rows: {\"id\", \"input\", \"value\", \"schema\"?} -> {\"id\", \"evidence\": [{\"path\", \"status\", \"spans\"}]}

Each leaf of the value has one entry:
  exact        the value stands in the input as it is
  normalised   it stands there in another notation: case, white space, punctuation, numbers, dates, currencies
  computed     it does not, but a rule in `x-formwork-rules` of the schema derives it
  not_found    it was not found; null and empty texts never are

`spans` has the chosen place first, then up to 31 other places. Offsets count Unicode scalar values from 0; form feeds separate
pages. Of several places, the one whose surroundings fit is chosen: words of the member's name, title and description, values of
the same record near by, the order of rows and their columns. No model is called.

Exit codes: 0 the evidence is printed (with --jsonl: for each row), 1 a row failed (unless --allow-failures), 2 a file cannot be
used.";

/// Find the place of each value of an answer in its input
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The answer, a JSON document (with --jsonl: the rows); `-` is standard input
    #[arg(default_value = "-")]
    value: PathBuf,
    /// File with the input text
    #[arg(long, short, value_name = "FILE", required_unless_present = "jsonl", conflicts_with = "jsonl")]
    input: Option<PathBuf>,
    /// The JSON Schema of the answer: its titles, descriptions and rules (with --jsonl: of rows without `schema`)
    #[arg(long, short)]
    schema: Option<PathBuf>,
    /// Print the evidence as one JSON object
    #[arg(long, conflicts_with = "jsonl")]
    json: bool,
    /// Write a page with the text, in which the places are marked, and the values beside it
    #[arg(long, value_name = "FILE", conflicts_with = "jsonl")]
    html: Option<PathBuf>,
    /// Read one JSON object per line with `id`, `input`, `value` and optionally `schema`, and print one result per line
    #[arg(long)]
    jsonl: bool,
    /// Exit with 0 even if rows failed (requires --jsonl)
    #[arg(long, requires = "jsonl")]
    allow_failures: bool,
}

pub(crate) fn run(args: &Args, providers: &Providers) -> Result<Status, Failed> {
    let inputs = [&args.value].into_iter().chain(&args.input).chain(&args.schema);
    files::one_standard_input(&inputs.map(PathBuf::as_path).collect::<Vec<_>>())?;
    let schema = args.schema.as_deref().map(files::json).transpose()?;
    if let Some((path, schema)) = args.schema.as_deref().zip(schema.as_ref()) {
        let named = |error: RowError| Failed::usage(format!("{}: {}", files::name(path), error.message()));
        check(schema, providers.rules()).map_err(named)?;
    }
    let Some(input) = &args.input else {
        let answer = |row: EvidenceInput| {
            if let Some(Err(error)) = row.schema.as_ref().map(|schema| check(schema, providers.rules())) {
                return failed(row.id, error);
            }
            let evidence =
                Index::new(&row.input).evidence(&row.value, row.schema.as_ref().or(schema.as_ref()));
            EvidenceOutput { id: row.id, evidence: Some(evidence), error: None }
        };
        return jsonl::each_row(&args.value, args.allow_failures, answer, failed, |it| it.error.is_none());
    };
    let (text, value) = (files::text(input)?, files::json(&args.value)?);
    let evidence = Index::new(&text).evidence(&value, schema.as_ref());
    if let Some(file) = &args.html {
        page(file, &files::name(input), &text, &value, &evidence)?;
    }
    let words = || table(&evidence, &value, &text);
    let id = files::name(&args.value).into();
    output::either(args.json, &EvidenceOutput { id, evidence: Some(evidence.clone()), error: None }, words)?;
    Ok(Status::Ok)
}

/// Checks that a schema and its rules can be read.
fn check(schema: &Value, known: &Rules) -> Result<(), RowError> {
    let mut schema = schema.clone();
    let own = rules::take(&mut schema);
    let all = own.and_then(|own| own.into_iter().try_for_each(|rule| rule.resolved(known).map(drop)));
    all.map_err(|message| RowError::Row { message })?;
    compile(&schema).map(drop).map_err(RowError::from)
}

fn failed(id: Value, error: RowError) -> EvidenceOutput {
    EvidenceOutput { id, evidence: None, error: Some(error) }
}

/// Writes the page of the evidence.
pub(crate) fn page(
    file: &Path,
    title: &str,
    text: &str,
    value: &Value,
    evidence: &[Evidence],
) -> Result<(), Failed> {
    let page = formwork_evidence::page(title, text, value, evidence);
    fs::write(file, page).map_err(|error| Failed::usage(format!("cannot write {}: {error}", file.display())))
}

/// Returns a line for each leaf: its path, its status, the value, and the chosen place with its line.
pub(crate) fn table(evidence: &[Evidence], value: &Value, text: &str) -> String {
    const MAX: usize = 40;

    let cut = |text: &str| {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        // A terminal executes control characters, so they are escaped as in JSON.
        let shown = line.chars().take(MAX).fold(String::new(), |shown, c| match c.is_control() {
            true => shown + &format!("\\u{:04x}", u32::from(c)),
            false => shown + c.encode_utf8(&mut [0; 4]),
        });
        if line.chars().nth(MAX).is_some() { shown + "…" } else { shown }
    };
    let characters: Vec<char> = text.chars().collect();
    let place = |span: &Span| {
        let before = characters.get(..span.start).unwrap_or_default();
        let line = before.iter().filter(|c| **c == '\n').count() + 1;
        let slice: String = characters.get(span.start..span.end).unwrap_or_default().iter().collect();
        format!("line {line}: {}", cut(&slice))
    };
    let row = |it: &Evidence| {
        let status =
            serde_json::to_value(it.status).ok().and_then(|status| status.as_str().map(str::to_owned));
        let value = it.path.get(value).map(|value| cut(&value.to_string())).unwrap_or_default();
        let place = it.spans.first().map(place).unwrap_or_default();
        [it.path.to_string(), status.unwrap_or_default(), value, place]
    };
    output::table(&evidence.iter().map(row).collect::<Vec<_>>(), |_| false)
}
