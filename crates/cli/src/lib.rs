//! The `formwork` command: typed, schema-valid JSON from any language model, and tools to check and read JSON.
//!
//! The command is a library, so that a binary can add its own providers, dialects, rules, retry policies and subcommands
//! ([`run_with`]), and tests can read the schemas of its
//! output. [`rows`] has the types of the rows that `--json` and `--jsonl` read and print.

// The standard macros panic if their stream is closed; the functions of `output` and `stderr` do not.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod agents;
mod argument;
mod color;
mod commands;
mod configuration;
mod exit;
mod files;
mod flags;
mod health;
#[cfg(feature = "local")]
mod hub;
mod interrupt;
mod jsonl;
mod ledger;
mod log;
mod model;
mod output;
mod pool;
#[cfg(feature = "local")]
mod progress;
mod redaction;
pub mod rows;
mod rules;
mod service;
mod signals;
mod snippet;
mod spinner;
mod stderr;
mod subcommand;
mod targets;
mod terminal;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser};
use formwork::providers::Providers;

use crate::color::Color;
use crate::exit::Failed;

pub use clap;
pub use subcommand::Subcommand;

const AFTER_HELP: &str = "\
Examples:
  formwork extract --schema examples/person.schema.json \"Maria Lindqvist, 34, moved to Lisbon last spring.\"
  formwork batch run examples/letters.jsonl --contract examples/person.schema.json --out letters
  formwork check --schema examples/person.schema.json examples/people/*.json
  formwork chat \"What is JSON?\"
  formwork shape run --shape examples/feature-design.shape --input examples/feature-design-input.json
  echo \"Sure: {'age': 34,}\" | formwork read --json
  formwork evidence --input examples/letter.txt --schema examples/person.schema.json examples/people/ada.json
  formwork eval examples/gold/gold.jsonl --answers examples/gold/answers.jsonl
  formwork review --rubric examples/skills/rubrics/reply.yaml examples/reply.txt
  formwork skill run headline --dir examples/skills --input text=\"Maria moved to Lisbon.\"
  formwork init
  formwork doctor
  formwork oracle score examples/wallets/staker.json
  formwork runs list --outcome rejected
  formwork keys add alice --budget 5.00
  formwork serve --listen 127.0.0.1:8190

Exit codes:
  0    done
  1    no valid answer, an invalid document, or text that cannot be read
  2    wrong usage, configuration, or a schema that cannot be used
  3    no provider answered
  130  interrupted";

#[derive(Parser)]
#[command(name = "formwork", version, about, after_help = AFTER_HELP)]
struct Args {
    /// Color diagnostics; `auto`: on a terminal, unless NO_COLOR is set
    #[arg(long, value_name = "WHEN", global = true, value_enum, default_value_t)]
    color: Color,
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Extract(commands::extract::Args),
    #[command(subcommand)]
    Batch(commands::batch::Command),
    Worker(commands::worker::Args),
    Check(commands::check::Args),
    Chat(commands::chat::Args),
    #[command(subcommand)]
    Shape(commands::shape::Command),
    Read(commands::read::Args),
    Evidence(commands::evidence::Args),
    Eval(commands::eval::Args),
    Doctor(commands::doctor::Args),
    Init(commands::init::Args),
    #[command(subcommand)]
    Config(commands::config::Command),
    Lower(commands::lower::Args),
    Review(commands::review::Args),
    #[command(subcommand)]
    Skill(commands::skill::Command),
    #[cfg(feature = "local")]
    Models(commands::models::Args),
    #[command(subcommand)]
    Oracle(commands::oracle::Command),
    Runs(commands::runs::Args),
    Store(commands::store::Args),
    Keys(commands::keys::Args),
    Serve(commands::serve::Args),
    View(commands::view::Args),
}

/// Runs `formwork` with the arguments of the process, and returns its exit code.
///
/// ```no_run
/// fn main() -> std::process::ExitCode {
///     formwork_cli::run()
/// }
/// ```
pub fn run() -> ExitCode {
    run_with(Providers::builtin(), [])
}

/// Runs `formwork` with the arguments of the process, and with everything that `providers` registers and with subcommands of your
/// own. Returns its exit code: 2, if a subcommand has the name of a command of Formwork.
///
/// This is the whole `main` of a binary with an additional provider, dialect and subcommand:
///
/// ```no_run
/// use std::process::ExitCode;
/// use std::sync::Arc;
///
/// use formwork::dialect::Native;
/// use formwork::dialect::profile::{LLAMA_CPP, Profile};
/// use formwork::providers::{Kind, Made, Providers};
/// use serde_json::json;
///
/// const ACME: Profile = LLAMA_CPP.named("acme", "Acme's own API");
///
/// fn main() -> ExitCode {
///     let kind = Kind::new("acme", "Acme's own API", json!({}), |section| {
///         let provider = Arc::new(formwork_testkit::Scripted::new(["{}"]));
///         Ok(Made::new(provider, "acme", "a-1"))
///     });
///     let providers = Providers::builtin().with(kind).with_dialect(Arc::new(Native::new(&ACME)));
///     let greet = formwork_cli::clap::Command::new("greet").about("Greets");
///     let greet = formwork_cli::Subcommand::new(greet, |_, _| {
///         println!("Hello.");
///         ExitCode::SUCCESS
///     });
///     formwork_cli::run_with(providers, [greet])
/// }
/// ```
pub fn run_with(providers: Providers, commands: impl IntoIterator<Item = Subcommand>) -> ExitCode {
    formwork::http::keep_secrets();
    #[cfg(feature = "local")]
    formwork_local::settle_threads();
    let lower_help = commands::lower::after_help(providers.dialects());
    let command = Args::command().mut_subcommand("lower", |lower| lower.after_help(lower_help));
    let commands: Vec<Subcommand> = commands.into_iter().collect();
    let command = match subcommand::added(command, &commands) {
        Ok(command) => command,
        Err(message) => return exit::code(Err(Failed::usage(message))),
    };
    let matches = command.get_matches();
    let own = matches
        .subcommand()
        .and_then(|(name, own)| Some((commands.iter().find(|it| it.name() == name)?, own)));
    if let Some((own, arguments)) = own {
        matches.get_one::<Color>("color").copied().unwrap_or_default().choose();
        return own.run(arguments, &providers);
    }
    let Args { color, command } = Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    color.choose();
    let providers = &providers;
    let done = match command {
        Command::Extract(args) => commands::extract::run(&args, providers),
        Command::Batch(command) => commands::batch::run(&command, providers),
        Command::Worker(args) => commands::worker::run(&args, providers),
        Command::Check(args) => commands::check::run(&args, providers),
        Command::Chat(args) => commands::chat::run(&args, providers),
        Command::Shape(command) => commands::shape::run(&command, providers),
        Command::Read(args) => commands::read::run(&args),
        Command::Evidence(args) => commands::evidence::run(&args, providers),
        Command::Eval(args) => commands::eval::run(args, providers),
        Command::Init(args) => commands::init::run(&args, providers),
        Command::Config(command) => commands::config::run(&command, providers),
        Command::Doctor(args) => commands::doctor::run(&args, providers),
        Command::Lower(args) => commands::lower::run(&args, providers),
        Command::Review(args) => commands::review::run(&args, providers),
        Command::Skill(command) => commands::skill::run(&command, providers),
        #[cfg(feature = "local")]
        Command::Models(args) => commands::models::run(&args, providers),
        Command::Oracle(command) => commands::oracle::run(&command, providers),
        Command::Runs(args) => commands::runs::run(&args),
        Command::Store(args) => commands::store::run(&args, providers),
        Command::Keys(args) => commands::keys::run(&args),
        Command::Serve(args) => commands::serve::run(&args, providers),
        Command::View(args) => commands::view::run(&args),
    };
    exit::code(done)
}

/// Runs `shape-runner-cli` with the arguments of the process, and returns its exit code. It is `formwork shape run` with the
/// shape of the ShapeRunner document as its default.
///
/// ```no_run
/// fn main() -> std::process::ExitCode {
///     formwork_cli::run_shapes()
/// }
/// ```
pub fn run_shapes() -> ExitCode {
    formwork::http::keep_secrets();
    #[cfg(feature = "local")]
    formwork_local::settle_threads();
    exit::code(commands::shape::runner(&Providers::builtin()))
}
