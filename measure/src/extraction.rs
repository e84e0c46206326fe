//! `cargo evals extraction`: arguments of functions and entities, extracted by a real model and compared with the values that people accept.

use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use formwork::config::{Config, Named, TargetList};
use formwork::extract::{Backend, Extractor};
use formwork::providers::Providers;
use formwork_core::{Coerce, Context, Contract, Inline, Rule};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::accepted::is_accepted;
use crate::bench::runtime;
use crate::corpora::text;
use crate::data::{Data, Drawn, entities, f1, grounded_texts, hits};
use crate::workspace;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The data
    #[arg(long, value_enum, default_value = "functions")]
    data: Data,
    #[command(flatten)]
    drawn: Drawn,
    /// The configuration with the model
    #[arg(long, default_value = "examples/servers.toml")]
    config: PathBuf,
    /// A provider, list or alias of the configuration
    #[arg(long, default_value = "llama-server")]
    provider: String,
    /// The sides to ask, one after another
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["raw", "formwork", "in-process"])]
    sides: Vec<Side>,
    /// Formwork's sides have the rule `grounded` on all texts that the schema does not list, and leave out the items of lists that violate
    /// it, as the users of `LangExtract` do
    #[arg(long)]
    grounded: bool,
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
    /// `LangExtract` of PyPI over the server, for entities with examples (needs Python and PyPI)
    LangExtract,
}

#[derive(Default)]
struct Score {
    rows: usize,
    valid: usize,
    right: usize,
    /// The entities that are right, all of the answers, and all of the gold.
    hits: usize,
    given: usize,
    wanted: usize,
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
    let (rows, examples) = args.drawn.read(args.data)?;
    println!(
        "{:?}, {} rows by seed {}, temperature {}:",
        args.data,
        rows.len(),
        args.drawn.seed,
        args.temperature
    );
    for side in &args.sides {
        let score = runtime.block_on(args.score(*side, &rows, &examples))?;
        println!("{side:?}: {score}");
    }
    Ok(())
}

impl Args {
    async fn score(&self, side: Side, rows: &[Value], examples: &[Value]) -> Result<Score, String> {
        let backends = match side {
            Side::Raw => Vec::new(),
            Side::Instructor => return self.score_peer("arguments.py", rows, examples),
            Side::LangExtract => return self.score_peer("entities.py", rows, examples),
            Side::Formwork => backends(&self.config, &self.provider).await?,
            Side::InProcess => {
                let config = Config::from_toml("[providers.default]\nkind = \"local\"\n");
                of_config(&config.map_err(|error| error.to_string())?, "default").await?
            }
        };
        let mut score = Score::default();
        for row in rows {
            let extracted = match side {
                Side::Raw => self.ask_server(row, examples).await?,
                _ => self.extract(&backends, row, examples).await?,
            };
            score.add(self, row, &extracted);
        }
        Ok(score)
    }

    async fn extract(
        &self,
        backends: &[Backend],
        row: &Value,
        examples: &[Value],
    ) -> Result<Extracted, String> {
        let config = Config::load(&self.config).map_err(|error| error.to_string())?;
        let (mut schema, mut rules) = (row["schema"].clone(), Vec::new());
        if self.grounded {
            rules = grounded_texts(&schema);
            for path in rules.iter().flat_map(Rule::paths).filter(|path| path.to_string().ends_with(']')) {
                let drop: Coerce = format!("{path}=drop").parse()?;
                drop.declare(&mut schema);
            }
        }
        let builder = Extractor::<Value>::for_document(self.data.name(row), schema).with_rules(rules);
        let builder = config.defaults().apply(builder).with_temperature(self.temperature);
        let mut builder = builder.with_max_tokens(self.max_tokens);
        let (system, input) = self.asked(row);
        if let Some(system) = system {
            builder = builder.with_system(system);
        }
        for example in examples {
            builder = builder.with_example(text(example, "input"), &example["answer"]);
        }
        let builder = backends.iter().cloned().fold(builder, |builder, target| builder.with_target(target));
        let extractor = builder.build().map_err(|error| format!("{}: {error}", text(row, "id")))?;
        let extracted = extractor.extract(input).await;
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

    /// Returns the system message and the text that a model gets. The description of a function precedes its dialogue.
    fn asked<'a>(&self, row: &'a Value) -> (Option<&'a str>, String) {
        let (system, input) = (self.data.system(row), self.data.input(row));
        match self.data {
            Data::Entities => (Some(system), input),
            Data::Functions => (None, format!("{system}\n{input}")),
        }
    }

    /// Returns the messages of a request: the task, the examples and the text.
    fn messages(&self, row: &Value, examples: &[Value]) -> Vec<Value> {
        let (system, input) = self.asked(row);
        let message = |role: &str, content: &str| json!({"role": role, "content": content});
        let system = system.map(|system| message("system", system)).into_iter();
        let examples = examples.iter().flat_map(|example| {
            [message("user", text(example, "input")), message("assistant", &example["answer"].to_string())]
        });
        system.chain(examples).chain([message("user", &input)]).collect()
    }

    /// Returns the score of a program of `peers` over the server, whose values are judged by the same measure.
    fn score_peer(&self, script: &str, rows: &[Value], examples: &[Value]) -> Result<Score, String> {
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
        command.arg(workspace::root().join("measure/peers").join(script)).args([&base_url, &model]);
        command.args([self.temperature.to_string(), self.max_tokens.to_string()]);
        let failed = |error: std::io::Error| format!("python3: {error}");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let mut lines = String::new();
        for row in rows {
            let (system, input) = self.asked(row);
            let messages = self.messages(row, examples);
            let row = json!({"messages": messages, "schema": row["schema"], "system": system, "input": input, "examples": examples});
            lines.push_str(&format!("{row}\n"));
        }
        // The script reads a row only when the one before it is answered.
        let mut stdin = child.stdin.take().ok_or("python3 has no standard input")?;
        let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
        let output = child.wait_with_output().map_err(failed)?;
        writer.join().map_err(|_| "the rows cannot be written")?.map_err(failed)?;
        let answers = String::from_utf8_lossy(&output.stdout);
        if answers.lines().count() != rows.len() {
            return Err(format!("{script} answered {} of {} rows", answers.lines().count(), rows.len()));
        }
        let mut score = Score::default();
        for (row, line) in rows.iter().zip(answers.lines()) {
            let Answer { value, error, calls, output } =
                serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))?;
            let value = value.ok_or(error).and_then(|value| judged(row, value));
            score.add(self, row, &Extracted { value, calls, output });
        }
        Ok(score)
    }

    /// Sends one request without Formwork to the server of the provider.
    async fn ask_server(&self, row: &Value, examples: &[Value]) -> Result<Extracted, String> {
        let Server { base_url, model } = self.server()?;
        // reqwest panics without a default crypto provider; an error means that there is one already.
        _ = rustls::crypto::ring::default_provider().install_default();
        let schema = json!({"name": "answer", "strict": true, "schema": row["schema"]});
        let body = json!({
            "model": model,
            "messages": self.messages(row, examples),
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
    fn add(&mut self, args: &Args, row: &Value, Extracted { value, calls, output }: &Extracted) {
        let is_right = match args.data {
            Data::Functions => value.as_ref().is_ok_and(|value| is_accepted(value, &row["accepted"])),
            Data::Entities => {
                let hits = value.as_ref().map_or_else(|_| Vec::new(), |value| hits(value, &row["gold"]));
                let (right, wanted) =
                    (hits.iter().filter(|hit| **hit).count(), entities(&row["gold"]).count());
                self.hits += right;
                self.given += hits.len();
                self.wanted += wanted;
                value.is_ok() && right == wanted && right == hits.len()
            }
        };
        self.rows += 1;
        self.valid += usize::from(value.is_ok());
        self.right += usize::from(is_right);
        self.calls += calls;
        self.output += output;
        if args.verbose {
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

impl fmt::Display for Score {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, valid, right, hits, given, wanted, calls, output } = *self;
        write!(to, "{rows} rows, {valid} valid, {right} right, {calls} calls, {output} output tokens, ")?;
        if wanted > 0 {
            let share = |all: usize| 100.0 * hits as f64 / all.max(1) as f64;
            let (precision, recall, both) = (share(given), share(wanted), f1(hits, given, wanted));
            return write!(to, "precision {precision:.1} %, recall {recall:.1} %, micro F1 {both:.1} %");
        }
        match output.checked_div(right as u64) {
            Some(each) => write!(to, "{each} for each right answer"),
            None => to.write_str("no right answer"),
        }
    }
}
