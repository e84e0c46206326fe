//! `cargo evals extraction`: arguments of functions, extracted by a real model and compared with the values that people accept.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use formwork::config::{Config, Named, TargetList};
use formwork::extract::{Backend, Extractor};
use formwork::providers::Providers;
use formwork_core::{Context, Contract, Inline};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::accepted::is_accepted;
use crate::bench::runtime;
use crate::corpora::{rows, text};
use crate::mixed::{STEP, mixed};
use crate::workspace;

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
    /// The seed by which the rows are drawn from the file
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The sides to ask, one after another
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["raw", "formwork", "in-process"])]
    sides: Vec<Side>,
    /// The temperature of all calls, 0 to 2
    #[arg(long, default_value_t = 0.0)]
    temperature: f64,
    /// The maximum number of tokens of an answer
    #[arg(long, default_value_t = 512)]
    max_tokens: u32,
    /// Print each row: its result, its value or error, and its output tokens
    #[arg(short, long)]
    verbose: bool,
}

/// A side of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Side {
    /// One request to the server, with the schema as its response format
    Raw,
    /// An extractor over the server
    Formwork,
    /// An extractor with the default model in this process
    InProcess,
    /// instructor of PyPI over the server, with up to three retries (needs Python and PyPI)
    Instructor,
}

#[derive(Default)]
struct Score {
    rows: usize,
    valid: usize,
    right: usize,
    calls: usize,
    output: u64,
}

/// The result of one row.
struct Extracted {
    value: Result<Value, String>,
    calls: usize,
    output: u64,
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    let runtime = runtime().map_err(|error| format!("the runtime cannot be started: {error}"))?;
    let rows = drawn(rows(&args.rows)?, args.count, args.seed);
    println!("{} rows by seed {}, temperature {}:", rows.len(), args.seed, args.temperature);
    for side in &args.sides {
        let score = runtime.block_on(args.score(*side, &rows))?;
        let Score { rows, valid, right, calls, output } = score;
        let each =
            output.checked_div(right as u64).map_or_else(|| "none".to_owned(), |each| each.to_string());
        println!(
            "{side:?}: {rows} rows, {valid} valid, {right} right, {calls} calls, {output} output tokens, {each} for each right answer"
        );
    }
    Ok(())
}

/// Returns `count` of the rows, drawn by a seed, in the order of the file.
fn drawn(rows: Vec<Value>, count: usize, seed: u64) -> Vec<Value> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|index| mixed((seed << 32 | *index as u64).wrapping_mul(STEP)));
    order.truncate(count);
    let is_drawn = |(index, row): (usize, Value)| order.contains(&index).then_some(row);
    rows.into_iter().enumerate().filter_map(is_drawn).collect()
}

impl Args {
    async fn score(&self, side: Side, rows: &[Value]) -> Result<Score, String> {
        let backends = match side {
            Side::Raw => Vec::new(),
            Side::Instructor => return self.score_instructor(rows),
            Side::Formwork => backends(&self.config, &self.provider).await?,
            Side::InProcess => {
                let config = Config::from_toml("[providers.default]\nkind = \"local\"\n");
                of_config(&config.map_err(|error| error.to_string())?, "default").await?
            }
        };
        let mut score = Score::default();
        for row in rows {
            let extracted = match side {
                Side::Raw => self.ask_server(row).await?,
                _ => self.extract(&backends, row).await?,
            };
            score.add(row, &extracted, self.verbose);
        }
        Ok(score)
    }

    async fn extract(&self, backends: &[Backend], row: &Value) -> Result<Extracted, String> {
        let config = Config::load(&self.config).map_err(|error| error.to_string())?;
        let builder = Extractor::<Value>::for_document(text(&row["function"], "name"), row["schema"].clone());
        let builder = config.defaults().apply(builder).with_temperature(self.temperature);
        let builder = builder.with_max_tokens(self.max_tokens);
        let builder = backends.iter().cloned().fold(builder, |builder, target| builder.with_target(target));
        let extractor = builder.build().map_err(|error| format!("{}: {error}", text(row, "id")))?;
        let extracted = extractor.extract(input(row)).await;
        let (calls, usage) = match &extracted {
            Ok(outcome) => (outcome.calls().len(), outcome.usage()),
            Err(error) => (error.calls().len(), error.usage()),
        };
        let value = extracted.map(|outcome| outcome.value).map_err(|error| error.to_string());
        Ok(Extracted { value, calls, output: usage.output_tokens })
    }

    fn server(&self) -> Result<Server, String> {
        let config = Config::load(&self.config).map_err(|error| error.to_string())?;
        let Ok(Named::Provider(section)) = config.named(&self.provider) else {
            return Err(format!("`{}` is no provider of {}", self.provider, self.config.display()));
        };
        section.read().map_err(|error| error.to_string())
    }

    /// Returns the score of instructor over the server, whose values are judged by the same measure.
    fn score_instructor(&self, rows: &[Value]) -> Result<Score, String> {
        #[derive(Deserialize)]
        struct Answer {
            value: Option<Value>,
            #[serde(default)]
            error: String,
            calls: usize,
            output: u64,
        }
        let Server { base_url, model } = self.server()?;
        let mut command = Command::new("python3");
        command.arg(workspace::root().join("measure/peers/arguments.py")).args([&base_url, &model]);
        command.args([self.temperature.to_string(), self.max_tokens.to_string()]);
        let failed = |error: std::io::Error| format!("python3: {error}");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let mut lines = String::new();
        for row in rows {
            let row = json!({"id": row["id"], "input": input(row), "schema": row["schema"]});
            lines.push_str(&format!("{row}\n"));
        }
        // The script reads a row only when the one before it is answered.
        let mut stdin = child.stdin.take().ok_or("python3 has no standard input")?;
        let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
        let output = child.wait_with_output().map_err(failed)?;
        writer.join().map_err(|_| "the rows cannot be written")?.map_err(failed)?;
        let answers = String::from_utf8_lossy(&output.stdout);
        if answers.lines().count() != rows.len() {
            return Err(format!("instructor answered {} of {} rows", answers.lines().count(), rows.len()));
        }
        let mut score = Score::default();
        for (row, line) in rows.iter().zip(answers.lines()) {
            let Answer { value, error, calls, output } =
                serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))?;
            let value = value.ok_or(error).and_then(|value| judged(row, value));
            score.add(row, &Extracted { value, calls, output }, self.verbose);
        }
        Ok(score)
    }

    /// Sends one request without Formwork to the server of the provider.
    async fn ask_server(&self, row: &Value) -> Result<Extracted, String> {
        let Server { base_url, model } = self.server()?;
        // reqwest panics without a default crypto provider; an error means that there is one already.
        _ = rustls::crypto::ring::default_provider().install_default();
        let schema = json!({"name": "answer", "strict": true, "schema": row["schema"]});
        let body = json!({
            "model": model,
            "messages": [{"role": "user", "content": input(row)}],
            "response_format": {"type": "json_schema", "json_schema": schema},
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
        });
        let failed = |error: reqwest::Error| format!("{base_url}: {error}");
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(600));
        let request = client.build().map_err(failed)?.post(format!("{base_url}/chat/completions"));
        let request = request.header("content-type", "application/json").body(body.to_string());
        let answer = request.send().await.map_err(failed)?.bytes().await.map_err(failed)?;
        let answer: Value =
            serde_json::from_slice(&answer).map_err(|error| format!("{base_url}: {error}"))?;
        let output = answer["usage"]["completion_tokens"].as_u64().unwrap_or_default();
        let said = answer["choices"][0]["message"]["content"].as_str().unwrap_or_default();
        let value = serde_json::from_str(said).map_err(|error| format!("{error}: {answer}"));
        let value = value.and_then(|value| judged(row, value));
        Ok(Extracted { value, calls: 1, output })
    }
}

/// The server of a provider.
#[derive(Deserialize)]
struct Server {
    base_url: String,
    model: String,
}

/// Returns a value that satisfies the schema of its row.
fn judged(row: &Value, value: Value) -> Result<Value, String> {
    let inline = Inline::new("answer", row["schema"].clone());
    let contract: Contract =
        formwork_schema::contract_for(std::sync::Arc::new(inline)).map_err(|error| error.to_string())?;
    let judged = contract.judge(&value, &Context::EMPTY).violations;
    judged.first().map_or(Ok(value), |violation| Err(violation.to_string()))
}

/// Returns the text that a model gets: the description of the function, and the dialogue.
fn input(row: &Value) -> String {
    let question = row["messages"].as_array().into_iter().flatten().map(|message| text(message, "content"));
    let question = question.collect::<Vec<_>>().join("\n");
    format!("{}\n{question}", text(&row["function"], "description"))
}

/// Returns the targets of a name in a configuration, with no memory of earlier runs.
pub(crate) async fn backends(file: &Path, name: &str) -> Result<Vec<Backend>, String> {
    of_config(&Config::load(file).map_err(|error| error.to_string())?, name).await
}

async fn of_config(config: &Config, name: &str) -> Result<Vec<Backend>, String> {
    let list = match config.named(name).map_err(|error| error.to_string())? {
        Named::Provider(section) => {
            TargetList { targets: vec![section.name.clone()], order: None, weights: None }
        }
        Named::List(list) => list.clone(),
        named => return Err(format!("{named:?} is no provider or list of the configuration")),
    };
    let backends = Providers::builtin().probed_list(config, &list).await;
    backends.map_err(|error| error.to_string())
}

impl Score {
    fn add(&mut self, row: &Value, Extracted { value, calls, output }: &Extracted, is_verbose: bool) {
        let is_right = value.as_ref().is_ok_and(|value| is_accepted(value, &row["accepted"]));
        self.rows += 1;
        self.valid += usize::from(value.is_ok());
        self.right += usize::from(is_right);
        self.calls += calls;
        self.output += output;
        if is_verbose {
            let result = match (value, is_right) {
                (Ok(_), true) => "right",
                (Ok(_), false) => "wrong",
                (Err(_), _) => "error",
            };
            let told = value.as_ref().map_or_else(Clone::clone, ToString::to_string);
            println!("{} {result} {calls} {output} {told}", text(row, "id"));
        }
    }
}
