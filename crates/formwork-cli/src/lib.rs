//! The `formwork` command: typed, schema-valid JSON out of any language model, and tools to check and read JSON.
//!
//! It is a library so that its tests and the schemas of its output need no process. What other programs read is in
//! [`rows`]; the rest is for people.

// What these macros write to may be closed, and then they panic: `output` does not.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod agents;
mod color;
mod commands;
mod exit;
mod files;
#[cfg(feature = "local")]
mod hub;
mod interrupt;
mod jsonl;
mod model;
mod output;
#[cfg(feature = "local")]
mod progress;
pub mod rows;
mod rules;
mod snippet;
mod targets;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::color::Color;

const AFTER_HELP: &str = "\
Examples:
  formwork extract --schema person.schema.json \"Maria Lindqvist, 34, moved to Lisbon last spring.\"
  formwork check --schema person.schema.json people/*.json
  formwork chat \"What is JSON?\"
  formwork shape run --shape feature-design.shape --input feature-design-input.json
  formwork read answer.txt
  formwork review --rubric rubric.yaml answer.json
  formwork skill run headline --dir examples/skills --input text=\"Maria moved to Lisbon.\"
  formwork doctor
  formwork oracle score wallet.json
  echo 'Sure: {\"age\": 34,}' | formwork read --json

Exit codes:
  0    done
  1    no valid answer, an invalid document, or text that cannot be read
  2    wrong usage, configuration, or a schema that cannot be used
  3    no provider answered
  130  interrupted";

#[derive(Parser)]
#[command(name = "formwork", version, about, after_help = AFTER_HELP)]
struct Args {
    /// When diagnostics are coloured; `auto` is on a terminal, unless NO_COLOR is set
    #[arg(long, value_name = "WHEN", global = true, value_enum, default_value_t)]
    color: Color,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Extract(commands::extract::Args),
    Check(commands::check::Args),
    Chat(commands::chat::Args),
    #[command(subcommand)]
    Shape(commands::shape::Command),
    Read(commands::read::Args),
    Doctor(commands::doctor::Args),
    Lower(commands::lower::Args),
    Review(commands::review::Args),
    Skill(commands::skill::Args),
    #[cfg(feature = "local")]
    Models(commands::models::Args),
    Oracle(commands::oracle::Args),
}

/// Runs the command that the process was called with.
pub fn run() -> ExitCode {
    #[cfg(feature = "local")]
    formwork_local::settle_threads();
    let Args { color, command } = Args::parse();
    color.choose();
    let done = match command {
        Command::Extract(args) => commands::extract::run(&args),
        Command::Check(args) => commands::check::run(&args),
        Command::Chat(args) => commands::chat::run(&args),
        Command::Shape(command) => commands::shape::run(&command),
        Command::Read(args) => commands::read::run(&args),
        Command::Doctor(args) => commands::doctor::run(&args),
        Command::Lower(args) => commands::lower::run(&args),
        Command::Review(args) => commands::review::run(&args),
        Command::Skill(args) => commands::skill::run(&args),
        #[cfg(feature = "local")]
        Command::Models(args) => commands::models::run(&args),
        Command::Oracle(args) => commands::oracle::run(&args),
    };
    exit::code(done)
}

/// Runs `shape-runner-cli`, which is `formwork shape run` with the shape of the ShapeRunner document as its default.
pub fn run_shapes() -> ExitCode {
    #[cfg(feature = "local")]
    formwork_local::settle_threads();
    exit::code(commands::shape::runner())
}
