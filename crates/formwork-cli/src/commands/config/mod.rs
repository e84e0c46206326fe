//! `formwork config`: what is in force, and which files may run programs.

mod show;
mod trust;

use std::path::PathBuf;

use clap::Subcommand;
use formwork::config::Config;
use formwork::providers::Providers;

use crate::exit::{Failed, Status};

const SHOW: &str = "\
Examples:
  formwork config show
  formwork config show --config production.toml --json

It prints the file that was found, each setting with the line or the environment variable that it comes from, and each provider
as calls would use it. Secrets are hidden. No request is sent.

Precedence, the first one counts:
  1. --provider and --model of a command
  2. FORMWORK__… variables (FORMWORK__PROVIDERS__PRIMARY__MODEL=qwen3:8b) and FORMWORK_MODEL
  3. the file: --config, FORMWORK_CONFIG, formwork.toml here or above up to the repository's folder, the user's own
  4. variables of a provider's own libraries, such as OPENAI_BASE_URL or OLLAMA_HOST
  5. the defaults of the kind; without any configuration the model in this process

Exit codes: 0 the configuration can be used, 2 it cannot.";

const TRUST: &str = "\
Examples:
  formwork config trust
  formwork config trust team/formwork.toml
  formwork config trust --remove

A file that is found in a folder, and not named with --config or FORMWORK_CONFIG, runs no programs until you trust it: its
`api_key_command` is refused. The trust holds for the contents that the file has now; read them first.

Exit codes: 0 done, 1 the file was not trusted (--remove), 2 there is no such file.";

/// Show the configuration that is in force, or let a file run programs
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Print each setting and its source, and the providers as calls would use them
    #[command(after_help = SHOW)]
    Show {
        /// The configuration file [default: formwork.toml here or above]
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Print it as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Let a configuration file that is found, and not named, run the programs that it names
    #[command(after_help = TRUST)]
    Trust {
        /// The file [default: the one that is found]
        file: Option<PathBuf>,
        /// Take the trust back
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

/// Finds and reads the configuration.
fn read(file: Option<&std::path::Path>, providers: &Providers) -> Result<Option<Config>, Failed> {
    Config::find_with(file, providers.dialects()).map_err(Failed::usage)
}
