//! `formwork check`: validates documents against a schema.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use formwork::providers::Providers;
use formwork_core::{
    Coerce, Context, Contract, Inline, JsonPath, Report, Rule, Rules, Violation, Warning, WarningKind,
    declares_coercion,
};
use formwork_json::{Level, Places, read};
use formwork_schema::{Compiled, Formats, compile_with, lint};
use serde_json::Value;

use crate::exit::{Failed, Status};
use crate::rows::{CheckInput, CheckOutput, RowError};
use crate::rules::Placed;
use crate::stderr::say;
use crate::{files, jsonl, output, rules, snippet};

const AFTER_HELP: &str = "\
Examples:
  formwork check --schema person.schema.json ada.json grace.json
  formwork check --schema person.schema.json --json - < ada.json
  formwork check --schema invoice.schema.json --rules invoice.rules.json --all invoice.json
  formwork check --schema person.schema.json --coerce fix ada.json
  formwork check --jsonl rows.jsonl       rows: {\"id\", \"data\", \"schema\"?} -> {\"id\", \"valid\", \"violations\"}

Rules are conditions that JSON Schema cannot express. They are an array in a file, or in `x-formwork-rules` of the schema:

  [{\"rule\": \"weightedSum\", \"target\": \"$.total\", \"terms\": [{\"path\": \"$.lines[*].total\", \"weight\": 1}], \"tolerance\": 0.01}]

Exit codes: 0 every document is valid, 1 a document is invalid (with --jsonl unless --allow-failures), 2 the schema or a file
cannot be used.";

/// Validate JSON documents against a JSON Schema
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The documents; `-` is standard input
    #[arg(default_value = "-")]
    documents: Vec<PathBuf>,
    /// The JSON Schema (with --jsonl: of rows without `schema`)
    #[arg(long, short, required_unless_present = "jsonl")]
    schema: Option<PathBuf>,
    /// File with rules, in addition to those in `x-formwork-rules` of the schema
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// File with the source text of the documents, for `grounded` rules
    #[arg(long, value_name = "FILE")]
    source: Option<PathBuf>,
    /// Show all violations of a document instead of the first 64
    #[arg(long)]
    all: bool,
    /// Convert, drop or replace values that do not fit the schema, as `formwork extract` does, before the document is judged: strict,
    /// ask, fix, drop, default or guess, for the whole or for the member at PATH (repeatable) [default: ask]
    #[arg(long, value_name = "[PATH=]HOW")]
    coerce: Vec<Coerce>,
    /// Do not check `format`
    #[arg(long)]
    no_formats: bool,
    /// Print one JSON object per document
    #[arg(long)]
    json: bool,
    /// Read one JSON object per line with `id`, `data` and optionally `schema`, and print one result per line
    #[arg(long, conflicts_with = "json")]
    jsonl: bool,
    /// Exit with 0 even if rows failed or documents are invalid (requires --jsonl)
    #[arg(long, requires = "jsonl")]
    allow_failures: bool,
}

pub(crate) fn run(args: &Args, providers: &Providers) -> Result<Status, Failed> {
    let inputs = args.documents.iter().chain(&args.schema).chain(&args.rules).chain(&args.source);
    files::one_standard_input(&inputs.map(PathBuf::as_path).collect::<Vec<_>>())?;
    let examiner = Examiner {
        formats: if args.no_formats { Formats::Annotate } else { Formats::Assert },
        rules: args.rules.as_deref().map(rules::of_file).transpose()?.unwrap_or_default(),
        known: providers.rules().clone(),
        source: args.source.as_deref().map(files::text).transpose()?,
        all: args.all,
        coerce: &args.coerce,
    };
    let contract = args.schema.as_deref().map(|path| examiner.contract_of_file(path)).transpose()?;
    if args.jsonl {
        let [rows] = args.documents.as_slice() else {
            return Err(Failed::usage("--jsonl takes one file with rows, or standard input"));
        };
        let answer = |row| examiner.check_row(row, contract.as_ref());
        return jsonl::each_row(rows, args.allow_failures, answer, failed, CheckOutput::is_ok);
    }
    let Some(contract) = contract else { return Err(Failed::usage("--schema is missing")) };
    let mut all_valid = true;
    for document in &args.documents {
        let checked = examiner.check_document(&contract, document, args.json);
        if let (Err(failed), true) = (&checked, args.json) {
            let error = RowError::Row { message: failed.to_string() };
            output::row(&self::failed(Value::from(files::name(document)), error))?;
        }
        let checked = checked?;
        all_valid &= checked.is_ok();
        if args.json {
            output::row(&checked)?;
        }
    }
    Ok(if all_valid { Status::Ok } else { Status::Negative })
}

/// The settings of the validation.
struct Examiner<'a> {
    formats: Formats,
    /// The rules of `--rules`, which apply with every schema.
    rules: Vec<Placed>,
    source: Option<String>,
    all: bool,
    coerce: &'a [Coerce],
    /// The rules from outside of Formwork.
    known: Rules,
}

/// The violations of a document.
struct Found {
    violations: Vec<Violation>,
    left_out: usize,
    /// The repeated names and converted values, and the numbers that were rounded.
    warnings: Vec<Warning>,
}

impl Found {
    const fn total(&self) -> usize {
        self.violations.len() + self.left_out
    }

    fn into_output(self, id: Value) -> CheckOutput {
        CheckOutput {
            id,
            valid: Some(self.total() == 0),
            total: self.total(),
            not_shown: self.left_out,
            violations: self.violations,
            warnings: self.warnings,
            error: None,
        }
    }
}

impl Examiner<'_> {
    fn contract_of_file(&self, path: &Path) -> Result<Contract, Failed> {
        let mut document = unwrapped(&files::name(path), files::json(path)?);
        let own = rules::of_schema(&mut document, path)?;
        let compiled = files::compiled(path, &document, self.formats)?;
        for finding in lint(&document) {
            say!("{}: {finding}", files::name(path));
        }
        self.contract(document, compiled, own).map_err(Failed::usage)
    }

    fn contract(
        &self,
        mut schema: Value,
        mut compiled: Arc<Compiled>,
        own: Vec<Placed>,
    ) -> Result<Contract, String> {
        if !self.coerce.is_empty() {
            self.coerce.iter().for_each(|coerce| coerce.declare(&mut schema));
            compiled = compile_with(&schema, self.formats)
                .map_err(|error| format!("--coerce: {}", error.message))?;
        }
        let mut contract = Contract::new(Arc::new(Inline::new("schema", schema)), compiled.clone());
        for placed in own.into_iter().chain(self.rules.iter().cloned()) {
            placed.check(&compiled)?;
            if self.source.is_none() && matches!(placed.rule, Rule::Grounded { .. }) {
                return Err(format!(
                    "{}: the rule `grounded` needs the source text of the documents: name its file with --source",
                    placed.place
                ));
            }
            contract = contract.with_rule(placed.resolved(&self.known)?);
        }
        Ok(contract)
    }

    /// Judges a document, whose text has the digits of its numbers.
    fn examine(&self, contract: &Contract, value: &Value, text: Option<&str>) -> Found {
        let cx = Context { source: self.source.as_deref().unwrap_or_default(), data: &Value::Null };
        if declares_coercion(contract.schema().document()) {
            let settled = contract.settle_text(value.clone(), text, &cx);
            let absent = |path: &JsonPath| {
                Warning::new(WarningKind::NullAsAbsent, "null in an optional member counts as absent")
                    .at(path.clone())
            };
            let warnings =
                settled.removed.iter().map(absent).chain(settled.coerced.iter().map(Warning::from));
            let (warnings, judgement) = (warnings.collect(), settled.judgement);
            return Found { left_out: judgement.left_out, violations: judgement.violations, warnings };
        }
        let judgement = if self.all { contract.judge_all(value, &cx) } else { contract.judge(value, &cx) };
        Found { left_out: judgement.left_out, violations: judgement.violations, warnings: Vec::new() }
    }

    fn check_row(&self, row: CheckInput, common: Option<&Contract>) -> CheckOutput {
        let CheckInput { id, schema, data } = row;
        let own = match schema.map(|schema| self.contract_of_row(&id, schema)).transpose() {
            Ok(own) => own,
            Err(error) => return failed(id, error),
        };
        let Some(contract) = own.as_ref().or(common) else {
            let message = "the row has no `schema`, and there is no --schema".to_owned();
            return failed(id, RowError::Row { message });
        };
        self.examine(contract, &data, None).into_output(id)
    }

    fn contract_of_row(&self, id: &Value, schema: Value) -> Result<Contract, RowError> {
        let of_row = |message| RowError::Row { message };
        let mut schema = unwrapped(&format!("row {id}"), schema);
        let own = rules::take(&mut schema).map_err(of_row)?;
        let compiled = compile_with(&schema, self.formats)?;
        self.contract(schema, compiled, own).map_err(of_row)
    }

    /// Validates one document. Prints violations with their location in the text, unless the output is JSON.
    fn check_document(&self, contract: &Contract, path: &Path, quiet: bool) -> Result<CheckOutput, Failed> {
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
                return Ok(CheckOutput { valid: Some(false), ..failed(id, error.into()) });
            }
        };
        let document = std::str::from_utf8(&bytes).ok();
        let mut found = self.examine(contract, &candidate.value, document);
        found.warnings.extend(files::warnings(&text, &candidate));
        let mut unkept = if self.all { Report::uncapped() } else { Report::default() };
        unkept.extend(files::unkept(&candidate.rounded));
        found.left_out += unkept.left_out();
        found.violations.splice(0..0, unkept.violations().iter().cloned());
        let paths: Vec<JsonPath> = found.violations.iter().map(|violation| violation.path.clone()).collect();
        let places = Places::find(&text, &paths);
        for violation in &mut found.violations {
            violation.span = places.value(&violation.path);
        }
        if !quiet {
            found.warnings.iter().for_each(|warning| say!("warning: {name}: {warning}"));
            for violation in &found.violations {
                output::text(&snippet::violation(&name, &text, &places, violation))?;
            }
            let hidden = match found.left_out {
                0 => String::new(),
                hidden => format!(" ({hidden} not shown: --all shows all)"),
            };
            match found.total() {
                0 => output::line(format_args!("{name}: valid"))?,
                1 => output::line(format_args!("{name}: 1 violation"))?,
                n => output::line(format_args!("{name}: {n} violations{hidden}"))?,
            }
        }
        Ok(found.into_output(id))
    }
}

/// Returns a schema without the wrapper of a vendor, and prints a warning if it had one.
fn unwrapped(name: &str, schema: Value) -> Value {
    let (schema, warning) = files::unwrapped(schema);
    warning.iter().for_each(|warning| say!("warning: {name}: {warning}"));
    schema
}

fn failed(id: Value, error: RowError) -> CheckOutput {
    CheckOutput { id, error: Some(error), ..CheckOutput::default() }
}
