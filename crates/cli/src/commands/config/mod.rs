//! `formwork config`: prints the effective configuration, and manages trusted files.

mod show;
mod trust;

use std::path::PathBuf;

use clap::Subcommand;
use formwork::providers::Providers;

use crate::exit::{Failed, Status};

const SHOW: &str = "\
Examples:
  formwork config show
  formwork config show --config production.toml --json

It prints the configuration file, each setting with its line or environment variable, and each provider with its effective
settings. Secrets are hidden. No request is sent.

Precedence, the first source wins:
  1. --provider and --model of a command
  2. FORMWORK__… variables (FORMWORK__PROVIDERS__PRIMARY__MODEL=qwen3:8b) and FORMWORK_MODEL
  3. the file: --config, FORMWORK_CONFIG, formwork.toml in this folder or a parent up to the repository, that of the user
  4. variables of the vendors' own libraries, such as OPENAI_BASE_URL or OLLAMA_HOST
  5. the defaults of the kind; without any configuration the local model

Exit codes: 0 the configuration is valid, 2 it is invalid.";

const TRUST: &str = "\
Examples:
  formwork config trust
  formwork config trust team/formwork.toml
  formwork config trust --remove

A configuration file may run programs (`api_key_command`) and send secrets to any address if you name it with --config or
FORMWORK_CONFIG. A file that is only found in a folder runs no program, and sends secrets only to the vendors' own addresses
and to this machine, until you trust it. The command prints every program, and every secret with its address. The trust ends
when the contents of the file change.

Exit codes: 0 done, 1 the file was not trusted (--remove), 2 there is no such file.";

/// Print the effective configuration, or trust a file
#[derive(Subcommand)]
#[command(after_help = "Examples:\n  formwork config show\n  formwork config trust team/formwork.toml")]
pub(crate) enum Command {
    /// Print each setting with its source, and the providers with their effective settings
    #[command(after_help = SHOW)]
    Show {
        /// Configuration file [default: formwork.toml in this folder or a parent folder]
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Allow a configuration file to run programs, and to send secrets to the addresses that it names
    #[command(after_help = TRUST)]
    Trust {
        /// The file [default: the file that is found]
        file: Option<PathBuf>,
        /// Remove the file from the trusted files
        #[arg(long)]
        remove: bool,
    },
}

pub(crate) fn run(command: &Command, providers: &Providers) -> Result<Status, Failed> {
    match command {
        Command::Show { config, json } => show::run(config.as_deref(), *json, providers),
        Command::Trust { file, remove } => trust::run(file.as_deref(), *remove, providers),
    }
}
