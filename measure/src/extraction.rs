//! `cargo evals extraction`: arguments of functions, extracted by a real model and compared with the values that people accept.

use std::path::{Path, PathBuf};

use formwork::config::{Config, Named, TargetList};
use formwork::extract::{Backend, Extractor};
use formwork::providers::Providers;
use formwork_core::Usage;
use serde_json::Value;

use crate::accepted::is_accepted;
use crate::bench::runtime;
use crate::corpora::{rows, text};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The rows, each with `messages`, `function`, `schema` and `accepted`
    #[arg(long, default_value = "../shared/corpora/extraction_bfcl.jsonl")]
    rows: PathBuf,
    /// The configuration with the model
    #[arg(long, default_value = "examples/servers.toml")]
    config: PathBuf,
    /// A provider, list or alias of the configuration
    #[arg(long, default_value = "llama-server")]
    provider: String,
    /// The number of rows
    #[arg(long, default_value_t = 100)]
    count: usize,
    /// The temperature of all calls, 0 to 2
    #[arg(long, default_value_t = 0.0)]
    temperature: f64,
    /// Print each row: its result, its value or error, and its output tokens
    #[arg(short, long)]
    verbose: bool,
}

#[derive(Default)]
struct Score {
    rows: usize,
    valid: usize,
    right: usize,
    calls: usize,
    usage: Usage,
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    let runtime = runtime().map_err(|error| format!("the runtime cannot be started: {error}"))?;
    let mut rows = rows(&args.rows)?;
    rows.truncate(args.count);
    let score = runtime.block_on(async {
        let backends = backends(&args.config, &args.provider).await?;
        let mut score = Score::default();
        for row in &rows {
            score.row(args, &backends, row).await?;
        }
        Ok::<_, String>(score)
    })?;
    let Score { rows, valid, right, calls, usage } = score;
    let tokens = usage.output_tokens;
    println!(
        "{rows} rows: {valid} valid, {right} right, {calls} calls, {tokens} output tokens, {} for each right answer",
        tokens.checked_div(right as u64).map_or_else(|| "none".to_owned(), |each| each.to_string())
    );
    Ok(())
}

/// Returns the targets of a name in a configuration, with no memory of earlier runs.
pub(crate) async fn backends(file: &Path, name: &str) -> Result<Vec<Backend>, String> {
    let config = Config::load(file).map_err(|error| error.to_string())?;
    let list = match config.named(name).map_err(|error| error.to_string())? {
        Named::Provider(section) => {
            TargetList { targets: vec![section.name.clone()], order: None, weights: None }
        }
        Named::List(list) => list.clone(),
        named => return Err(format!("{named:?} is no provider or list of {}", file.display())),
    };
    let backends = Providers::builtin().probed_list(&config, &list).await;
    backends.map_err(|error| error.to_string())
}

impl Score {
    async fn row(&mut self, args: &Args, backends: &[Backend], row: &Value) -> Result<(), String> {
        let config = Config::load(&args.config).map_err(|error| error.to_string())?;
        let builder = Extractor::<Value>::for_document(text(&row["function"], "name"), row["schema"].clone());
        let builder = config.defaults().apply(builder).with_temperature(args.temperature);
        let builder = backends.iter().cloned().fold(builder, |builder, target| builder.with_target(target));
        let extractor = builder.build().map_err(|error| format!("{}: {error}", text(row, "id")))?;
        let question =
            row["messages"].as_array().into_iter().flatten().map(|message| text(message, "content"));
        let question = question.collect::<Vec<_>>().join("\n");
        let input = format!("{}\n{question}", text(&row["function"], "description"));
        let extracted = extractor.extract(input).await;
        let (calls, usage) = match &extracted {
            Ok(outcome) => (outcome.calls().len(), outcome.usage()),
            Err(error) => (error.calls().len(), error.usage()),
        };
        let is_right = extracted.as_ref().is_ok_and(|outcome| is_accepted(&outcome.value, &row["accepted"]));
        self.rows += 1;
        self.valid += usize::from(extracted.is_ok());
        self.right += usize::from(is_right);
        self.calls += calls;
        self.usage = self.usage.plus(usage);
        if args.verbose {
            let result = match (&extracted, is_right) {
                (Ok(_), true) => "right",
                (Ok(_), false) => "wrong",
                (Err(_), _) => "error",
            };
            let told = extracted.map_or_else(|error| error.to_string(), |outcome| outcome.value.to_string());
            println!("{} {result} {calls} {} {told}", text(row, "id"), usage.output_tokens);
        }
        Ok(())
    }
}
