//! `formwork init`: writes a configuration file.

use std::fs::OpenOptions;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::PathBuf;

use formwork::config::Config;
use formwork::providers::Providers;
use formwork_core::looks_like_key;

use crate::exit::{Failed, Status};
use crate::output;
use crate::stderr::say;

const AFTER_HELP: &str = "\
Examples:
  formwork init
  formwork init openai/gpt-5.4-mini
  formwork init anthropic/claude-sonnet-4-6 openai/gpt-5.4-mini --file team.toml
  formwork init openai/qwen3 --base-url http://localhost:8000/v1 --key-env TEAM_KEY
  formwork init local

Each MODEL is KIND/MODEL, or `local` for the local model. The first one is used first, the others are its backups. On a
terminal, the command asks for missing arguments. The file names the environment variable of an API key, and never
contains the key.

Exit codes: 0 the file is written, 2 wrong usage, or the file exists (--force replaces it).";

/// Write a configuration file, from arguments or from answers to questions
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The models in order, each with its kind: openai/gpt-5.4-mini
    #[arg(value_name = "MODEL")]
    models: Vec<String>,
    /// The file to write
    #[arg(long, value_name = "FILE", default_value = "formwork.toml")]
    file: PathBuf,
    /// The server address of the first model [default: that of its kind]
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// The environment variable with the API key of the first model [default: that of its kind]
    #[arg(long, value_name = "VARIABLE")]
    key_env: Option<String>,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

/// The contents of a file.
struct Answers {
    models: Vec<String>,
    base_url: Option<String>,
    key_env: Option<String>,
}

pub(crate) fn run(args: &Args, providers: &Providers) -> Result<Status, Failed> {
    if args.file.exists() && !args.force {
        let message = format!(
            "{} exists: add --force to replace it, or --file to name another file",
            args.file.display()
        );
        return Err(Failed::usage(message));
    }
    let answers = match args.models.is_empty() {
        false => Answers {
            models: args.models.clone(),
            base_url: args.base_url.clone(),
            key_env: args.key_env.clone(),
        },
        true => questions(args, providers)?,
    };
    if answers.key_env.as_deref().is_some_and(looks_like_key) {
        return Err(Failed::usage(
            "--key-env takes the name of an environment variable, and this looks like a key (it is not shown here): put it \
             into a variable such as OPENAI_API_KEY",
        ));
    }
    let text = text(&answers, providers)?;
    let config = Config::from_toml(&text).map_err(Failed::usage)?;
    write(args, &text)?;
    output::line(format!("wrote {}", args.file.display()))?;
    for section in config.sections().iter().filter(|section| section.common.kind != "local") {
        // A missing key is common at this point, and setting it is the next step.
        if let Err(error) = providers.make(section) {
            say!("next: {}", error.message);
        }
    }
    say!("next: `formwork doctor` makes one small call to each provider");
    Ok(Status::Ok)
}

fn write(args: &Args, text: &str) -> Result<(), Failed> {
    let mut options = OpenOptions::new();
    // Without --force, a file that was created in the meantime is kept.
    options.write(true).truncate(true).create(args.force).create_new(!args.force);
    let written = options.open(&args.file).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| Failed::usage(format!("{}: {error}", args.file.display())))
}

/// Asks for missing arguments.
fn questions(args: &Args, providers: &Providers) -> Result<Answers, Failed> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let message = "name a model, such as openai/gpt-5.4-mini or local: the command asks questions only on a terminal";
        return Err(Failed::usage(message));
    }
    let kinds: Vec<&str> = providers.kinds().map(|kind| kind.name()).collect();
    say!("Kinds of providers: {}", kinds.join(", "));
    let mut models = Vec::new();
    let first = loop {
        let kind = answer("Which kind is used first?", "local")?;
        match providers.kind(&kind) {
            Ok(_) => break kind,
            Err(message) => say!("{message}"),
        }
    };
    if first == "local" {
        models.push(first);
        return Ok(Answers { models, base_url: None, key_env: None });
    }
    let model = loop {
        let model = answer("Which model?", "")?;
        if !model.is_empty() {
            break model;
        }
    };
    models.push(format!("{first}/{model}"));
    let optional = |argument: &Option<String>, question: &str| match argument {
        Some(argument) => Ok(Some(argument.clone())),
        None => answer(question, "").map(|answer| Some(answer).filter(|answer| !answer.is_empty())),
    };
    let base_url = optional(&args.base_url, "Address of its server (empty: the usual one of its kind)?")?;
    let key_env = optional(&args.key_env, "Variable that holds its key (empty: the usual one of its kind)?")?;
    let backup = answer("Backup, as KIND/MODEL (empty: none)?", "")?;
    models.extend(Some(backup).filter(|backup| !backup.is_empty()));
    Ok(Answers { models, base_url, key_env })
}

fn answer(question: &str, default: &str) -> Result<String, Failed> {
    let hint = if default.is_empty() { String::new() } else { format!(" [{default}]") };
    let mut stderr = io::stderr().lock();
    write!(stderr, "{question}{hint} ").and_then(|()| stderr.flush()).map_err(Failed::from)?;
    let mut line = String::new();
    if io::stdin().lock().read_line(&mut line).map_err(Failed::from)? == 0 {
        return Err(Failed::usage("the questions were not answered: nothing was written"));
    }
    let line = line.trim();
    Ok(if line.is_empty() { default.to_owned() } else { line.to_owned() })
}

/// Returns the contents of the file for these models.
fn text(answers: &Answers, providers: &Providers) -> Result<String, Failed> {
    let mut sections = String::new();
    let mut names: Vec<String> = Vec::new();
    for (at, model) in answers.models.iter().enumerate() {
        let (kind, model) = match model.split_once('/') {
            Some((kind, model)) if !model.is_empty() => (kind, Some(model)),
            None if model == "local" => ("local", None),
            _ => {
                let message =
                    format!("`{model}` names no kind and model: write KIND/MODEL, as in openai/gpt-5.4-mini");
                return Err(Failed::usage(message));
            }
        };
        providers.kind(kind).map_err(Failed::usage)?;
        let taken =
            names.iter().filter(|name| *name == kind || name.starts_with(&format!("{kind}-"))).count();
        let name = if taken == 0 { kind.to_owned() } else { format!("{kind}-{}", taken + 1) };
        sections.push_str(&format!("\n[providers.{name}]\nkind = {kind:?}\n"));
        let first = |value: &Option<String>| value.clone().filter(|_| at == 0);
        let lines = [
            ("model", model.map(ToOwned::to_owned)),
            ("base_url", first(&answers.base_url)),
            ("api_key_env", first(&answers.key_env)),
        ];
        for (setting, value) in lines {
            if let Some(value) = value {
                sections.push_str(&format!("{setting} = {}\n", serde_json::Value::from(value)));
            }
        }
        names.push(name);
    }
    let targets = serde_json::json!(names).to_string().replace("\",\"", "\", \"");
    Ok(format!(
        "# The models that Formwork uses. `formwork config show` prints the effective settings, `formwork doctor` tests them.\n\
         # The first target is used first, the next one if it fails.\ntargets = {targets}\n{sections}"
    ))
}
