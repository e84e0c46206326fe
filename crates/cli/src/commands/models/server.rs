//! Lists, shows and downloads the models of an Ollama server.

use std::path::Path;

use formwork::ollama::{Admin, Model, ModelDetails, PullProgress};
use formwork::providers::{Providers, ollama_admin};
use formwork_core::{Fault, FaultKind};
use formwork_extract::CancellationToken;
use formwork_local::Progress as _;

use super::{Action, Args};
use crate::exit::{Failed, Status};
use crate::progress::Bytes;
use crate::targets::Named;
use crate::{interrupt, output};

pub(super) fn run(
    config: Option<&Path>,
    provider: &str,
    args: &Args,
    providers: &Providers,
) -> Result<Status, Failed> {
    let admin = admin(config, provider, providers)?;
    let failed = |fault: Fault| match fault.kind {
        FaultKind::Unsupported => Failed::no_answer(format!("{provider}: {}", fault.message)),
        _ => Failed::unavailable(format!("{provider}: {}", fault.message)),
    };
    interrupt::run(&CancellationToken::new(), async {
        match &args.action {
            None | Some(Action::List { .. }) => {
                let json = args.json || matches!(args.action, Some(Action::List { json: true }));
                for model in &admin.models().await.map_err(failed)? {
                    output::either(json, model, || line(model))?;
                }
            }
            Some(Action::Show { model, json }) => {
                let details = admin.show(model).await.map_err(failed)?;
                output::either(args.json || *json, &details, || words(&details))?;
            }
            Some(Action::Fetch { model }) => {
                let bar = Bytes::default();
                admin.pull(model, |progress| show_progress(&bar, progress)).await.map_err(failed)?;
                output::line(model)?;
            }
            Some(Action::Path { .. } | Action::Remove { .. }) => {
                let message = "the files of a server cannot be removed or located from here: use the `ollama` command on its machine";
                return Err(Failed::usage(message));
            }
        }
        Ok(Status::Ok)
    })
}

/// Returns the administration client for the server of a provider.
fn admin(config: Option<&Path>, provider: &str, providers: &Providers) -> Result<Admin, Failed> {
    let chosen = Named::of(config, provider).choose(providers)?;
    let Some(section) = chosen.sections.first() else {
        return Err(Failed::usage("there is no such provider"));
    };
    if section.common.kind != "ollama" {
        let message = format!(
            "{provider} is of the kind `{}`: only the models of an Ollama server can be administered",
            section.common.kind
        );
        return Err(Failed::usage(message));
    }
    ollama_admin(section).map_err(Failed::usage)
}

fn line(model: &Model) -> String {
    format!("{}  {} MB, {}\n", model.name, model.size / 1_000_000, model.modified_at)
}

fn words(details: &ModelDetails) -> String {
    let ModelDetails { architecture, context_tokens, capabilities, parameters, licence, .. } = details;
    let context = context_tokens.map_or_else(|| "-".to_owned(), |tokens| tokens.to_string());
    let mut lines = vec![
        format!("architecture  {}", architecture.as_deref().unwrap_or("-")),
        format!("context       {context} tokens"),
        format!("capabilities  {}", capabilities.join(", ")),
    ];
    lines.extend(parameters.lines().map(|line| format!("parameter     {line}")));
    lines.extend(
        licence
            .lines()
            .find(|line| !line.trim().is_empty())
            .map(|line| format!("licence       {}", line.trim())),
    );
    lines.join("\n") + "\n"
}

/// Shows the progress of a download. A model has several layers, and each layer has its own bar.
fn show_progress(bar: &Bytes, progress: &PullProgress) {
    if let (Some(done), Some(total)) = (progress.completed, progress.total) {
        bar.report(&progress.status, done, total);
    }
}
