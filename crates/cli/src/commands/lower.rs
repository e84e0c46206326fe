//! `formwork lower`: converts a schema to the dialect of a provider.

use std::path::PathBuf;
use std::sync::Arc;

use formwork::providers::Providers;
use formwork_core::{LowerRequest, Lowered, Tighten, lift};
use formwork_dialect::{Dialect, Dialects, lower_value};
use formwork_schema::compile;
use serde_json::Value;

use crate::exit::{Failed, Status};
use crate::rows::{LowerError, LowerInput, LowerOutput, RowError};
use crate::stderr::say;
use crate::{files, jsonl, output};

const EXAMPLES: &str = "\
Examples:
  formwork lower --dialect openai person.schema.json
  formwork lower --dialect ollama --explain person.schema.json
  formwork lower --dialect openai --lint person.schema.json
  formwork lower --dialect ollama --tighten bounded --max-tokens 500 person.schema.json
  formwork lower --dialect llama-cpp --jsonl rows.jsonl
                                          rows: {\"id\", \"schema\"} -> {\"id\", \"ok\", \"schema\"?, \"losses\"?, \"error\"?}
                                          with \"instances\": [...] also {\"lowered\": [...], \"lifted\": [...]}: each valid
                                          document in the form of an answer, and the document that this is lifted to

Dialects:
";

const EXIT_CODES: &str = "
If a dialect sends no schema, the command prints the schema in the prompt.

Exit codes: 0 the schema was lowered (with --jsonl: all were), 1 --lint found something (with --jsonl: or a row failed,
unless --allow-failures), 2 the schema is invalid, or cannot be lowered to this dialect.";

/// Returns the help text with the examples, the dialects of this binary and the exit codes.
pub(crate) fn after_help(dialects: &Dialects) -> String {
    let line = |dialect: &Arc<dyn Dialect>| format!("  {:14}  {}\n", dialect.name(), dialect.about());
    format!("{EXAMPLES}{}{EXIT_CODES}", dialects.iter().map(line).collect::<String>())
}

/// Convert a JSON Schema to the form that a provider accepts (its dialect)
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The JSON Schema; `-` is standard input
    #[arg(default_value = "-")]
    schema: PathBuf,
    /// The dialect: the part of JSON Schema that a provider takes; see below
    #[arg(long, short)]
    dialect: String,
    /// The valid answers that the converted schema may exclude
    #[arg(long, value_enum, default_value_t)]
    tighten: TightenArg,
    /// Maximum number of tokens of an answer; `--tighten bounded` limits the lengths of lists and strings to it [default: that of the
    /// dialect]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: Option<u32>,
    /// Convert also a schema that constrains no value, such as {} or true
    #[arg(long)]
    any: bool,
    /// Print also the dropped keywords, the conversion of answers, and the schema in the prompt
    #[arg(long)]
    explain: bool,
    /// Do not convert the schema: report the parts that the provider would reject, ignore or misread
    #[arg(long, conflicts_with = "explain")]
    lint: bool,
    /// Print one JSON object with all results
    #[arg(long)]
    json: bool,
    /// Read one JSON object per line with `id` and `schema`, and print one result per line
    #[arg(long, conflicts_with = "json")]
    jsonl: bool,
    /// Exit with 0 even if rows failed (requires --jsonl)
    #[arg(long, requires = "jsonl")]
    allow_failures: bool,
}

/// The valid answers that lowering may exclude.
#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum TightenArg {
    /// No answers: every valid answer stays possible
    None,
    /// Answers with properties that an object does not list, unless `additionalProperties` allows them
    #[default]
    Closed,
    /// As closed, and answers with strings, lists or maps above a maximum length, for models that do not stop
    Bounded,
}

impl From<TightenArg> for Tighten {
    fn from(argument: TightenArg) -> Self {
        match argument {
            TightenArg::None => Self::None,
            TightenArg::Closed => Self::Closed,
            TightenArg::Bounded => Self::Bounded,
        }
    }
}

pub(crate) fn run(args: &Args, providers: &Providers) -> Result<Status, Failed> {
    let dialect = providers.dialects().get(&args.dialect).map_err(Failed::usage)?;
    let dialect = dialect.as_ref();
    if args.jsonl {
        return jsonl::each_row(
            &args.schema,
            args.allow_failures,
            |LowerInput { id, schema, instances }| {
                answer(args, dialect, id, schema, instances.as_deref(), args.explain)
            },
            |id, error| LowerOutput::failed(id, error.into()),
            LowerOutput::is_ok,
        );
    }
    let name = files::name(&args.schema);
    let id = Value::from(name.clone());
    let (answer, failed) = match files::json(&args.schema) {
        Ok(schema) => {
            let answer = answer(args, dialect, id, schema, None, true);
            let failed =
                answer.error.as_ref().map(|error| Failed::usage(format!("{name}: {}", error.message())));
            (answer, failed)
        }
        Err(failed) => {
            (LowerOutput::failed(id, LowerError::Row { message: failed.to_string() }), Some(failed))
        }
    };
    if args.json {
        output::row(&answer)?;
    }
    if let Some(failed) = failed {
        return Err(failed);
    }
    if !args.json {
        print(&answer)?;
        if args.explain {
            explain(&answer);
        }
    }
    Ok(if answer.is_ok() { Status::Ok } else { Status::Negative })
}

/// Lowers or lints one schema.
fn answer(
    args: &Args,
    dialect: &dyn Dialect,
    id: Value,
    schema: Value,
    instances: Option<&[Value]>,
    explained: bool,
) -> LowerOutput {
    let (schema, warning) = files::unwrapped(schema);
    let name = || id.as_str().map_or_else(|| format!("row {id}"), str::to_owned);
    warning.iter().for_each(|warning| say!("warning: {}: {warning}", name()));
    if let Err(error) = compile(&schema).and_then(|_| files::says_something(&schema, args.any)) {
        return LowerOutput::failed(id, error.into());
    }
    let schema = &schema;
    if args.lint {
        return LowerOutput::found(id, dialect.lint(schema));
    }
    let (tighten, max_tokens) = (args.tighten.into(), args.max_tokens);
    let request = LowerRequest::new(schema).with_tighten(tighten).with_max_tokens(max_tokens);
    match dialect.lower(&request) {
        Ok(lowered) => {
            let (sent, lifted) = match instances {
                Some(instances) => {
                    let (sent, lifted) =
                        instances.iter().map(|instance| there_and_back(instance, &lowered)).unzip();
                    (Some(sent), Some(lifted))
                }
                None => (None, None),
            };
            LowerOutput { lowered: sent, lifted, ..LowerOutput::new(id, lowered, explained) }
        }
        Err(error) => LowerOutput::failed(id, error.into()),
    }
}

/// Returns a document in the form of an answer, and the document that this is lifted to; `null` for either if there is
/// none.
fn there_and_back(instance: &Value, lowered: &Lowered) -> (Value, Value) {
    let is_allowed = |answer: &Value| match &lowered.schema {
        Some(schema) => compile(schema).is_ok_and(|schema| schema.is_valid(answer)),
        None => true,
    };
    // If no schema is sent, the answer is the document itself or wraps it.
    let answer = match lowered.schema {
        Some(_) => lower_value(instance, lowered),
        None => {
            let mut anything = lowered.clone();
            anything.schema = Some(Value::Bool(true));
            lower_value(instance, &anything)
        }
    };
    let Some(answer) = answer.filter(is_allowed) else { return (Value::Null, Value::Null) };
    let (back, problems) = lift(answer.clone(), lowered);
    (answer, if problems.is_empty() { back } else { Value::Null })
}

/// Prints for people: the schema, or the prompt if no schema is sent, or the lint findings.
fn print(answer: &LowerOutput) -> Result<(), Failed> {
    for finding in answer.findings.iter().flatten() {
        output::line(finding)?;
    }
    match (&answer.schema, &answer.prompt_schema) {
        (Some(schema), _) => output::line(format_args!("{schema:#}")),
        (None, Some(schema)) => output::line(schema.text()),
        (None, None) => Ok(()),
    }
}

fn explain(output: &LowerOutput) {
    for loss in output.losses.iter().flatten() {
        say!("lost: {loss}");
    }
    for bound in output.bounds.iter().flatten() {
        say!("added bound: #{}: at most {}", bound.at, bound.max);
    }
    for op in output.lift.iter().flatten() {
        say!("mapped back: {op}");
    }
    match &output.prompt_schema {
        Some(schema) => say!("shown to the model: {}", schema.text()),
        None => say!("shown to the model: nothing, the provider does that"),
    }
}

impl From<RowError> for LowerError {
    fn from(error: RowError) -> Self {
        match error {
            RowError::Schema { message, reason } => Self::Schema { message, reason },
            RowError::Unreadable { message, .. }
            | RowError::Invalid { message, .. }
            | RowError::Row { message } => Self::Row { message },
        }
    }
}
