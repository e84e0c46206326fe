//! `formwork doctor`: tests whether each provider of the configuration works, and whether it enforces schemas.

use std::time::Duration;

use formwork::config::Section;
use formwork::providers::{Providers, observations};
use formwork_core::{
    Call, Enforcement, Fault, FaultKind, Lower, LowerRequest, Message, Restriction, Sampling,
};
use formwork_extract::{Backend, CancellationToken};
use serde_json::{Value, json};

use crate::exit::{Failed, Status};
use crate::rows::{DoctorOutput, DoctorState};
use crate::targets::{self, Named};
use crate::{health, interrupt, output};

const AFTER_HELP: &str = "\
Examples:
  formwork doctor
  formwork doctor --config production.toml
  formwork doctor --provider backup --json
  formwork doctor --forget

It reads the configuration, checks the API keys, and makes one call of a few tokens to every provider of the file, with the
settings of the file. The schema of the call allows only one answer, which no model gives without enforcement. So the
answer shows whether the server enforces schemas. With `probe = true`, the server is probed again first.

It also lists what earlier calls showed about each provider and changes later calls: a schema that is sent without enforcement or
with bounds, since when, and on which evidence. `--forget` removes this, for example after a change of a server, and makes no call. It is kept in observations.jsonl in the cache
folder (FORMWORK_CACHE); FORMWORK_OBSERVATIONS names another file, and an empty value means none.

Exit codes:
  0    every provider works
  2    the configuration is invalid
  3    a provider is not reachable, or does not enforce schemas as configured
  130  interrupted";

/// The time limit of one answer. The server may have to load its model first.
const PATIENCE: Duration = Duration::from_secs(120);

/// The only answer that the schema of the test call allows.
const CANARY: &str = "serinus-7431";

/// Test the configuration: API keys, servers, and whether each provider enforces schemas
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    targets: Named,
    /// Remove what earlier calls showed about these providers, and make no call
    #[arg(long)]
    forget: bool,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, providers: &Providers) -> Result<Status, Failed> {
    interrupt::run(&CancellationToken::new(), examine(args, providers))
}

async fn examine(args: &Args, providers: &Providers) -> Result<Status, Failed> {
    let chosen = args.targets.choose_all(providers)?;
    // The file is printed first, because reading an unexpected file is a common mistake.
    chosen.tell();
    let mut worst = None;
    for section in &chosen.sections {
        let found = if args.forget {
            forgotten(section, providers).await
        } else {
            examined(section, providers).await
        };
        output::either(args.json, &found, || words(&found))?;
        worst = worst.max(Some(found.state));
    }
    match worst {
        None | Some(DoctorState::Untested | DoctorState::Works) => Ok(Status::Ok),
        Some(DoctorState::Unavailable) => Err(Failed::unavailable("a provider does not work, see above")),
        Some(DoctorState::Misconfigured) => Err(Failed::usage("a provider is wrongly described, see above")),
    }
}

/// Removes the observations about a provider. Without its API key, which only a call needs, they are found by its name.
async fn forgotten(section: &Section, providers: &Providers) -> DoctorOutput {
    let mut found = DoctorOutput::new(&section.name, &section.common.kind);
    let backend = match targets::make(section, providers).await {
        Ok(made) => {
            found.model = made.model.clone();
            providers.backend_of(made, section).map_err(Failed::usage)
        }
        Err(failed) => Err(failed),
    };
    let identity = match &backend {
        Ok(backend) => backend.identity(),
        Err(failed) if failed.lacks_key() => None,
        Err(failed) => return found.failed(DoctorState::Misconfigured, &failed.to_string(), ""),
    };
    let store = observations();
    let is_about = |one: &Restriction| match identity {
        Some(identity) => one.target == identity,
        None => one.name == section.name,
    };
    let in_force: Vec<_> = store.in_force().into_iter().filter(is_about).collect();
    let count = in_force.len();
    in_force.iter().map(|one| one.target.as_str()).chain(identity).for_each(|one| store.forget(Some(one)));
    found.state = DoctorState::Untested;
    found.note = match count {
        0 => "nothing was in force".to_owned(),
        1 => "1 observation was removed".to_owned(),
        count => format!("{count} observations were removed"),
    };
    found
}

/// Tests a provider with the layers of its section and in its first output mode.
async fn examined(section: &Section, providers: &Providers) -> DoctorOutput {
    let mut found = DoctorOutput::new(&section.name, &section.common.kind);
    let mut made = match targets::make(section, providers).await {
        Ok(made) => made,
        Err(failed) => {
            let state = if failed.is_usage() { DoctorState::Misconfigured } else { DoctorState::Unavailable };
            return found.failed(state, &failed.to_string(), "");
        }
    };
    found.model = made.model.clone();
    match tokio::time::timeout(PATIENCE, made.ask_server(true)).await {
        Ok(Ok(weaker)) => found.note = weaker.unwrap_or_default(),
        Ok(Err(fault)) => return failed(found, section, &fault),
        Err(_) => return found.failed(DoctorState::Unavailable, "no answer in two minutes", SLOW),
    }
    let backend = match providers.backend_of(made, section) {
        Ok(backend) => backend,
        Err(error) => return found.failed(DoctorState::Misconfigured, &error.to_string(), ""),
    };
    let modes = backend.modes();
    let Some(mode) = modes.first() else {
        return found.failed(DoctorState::Misconfigured, "it has no output mode", "");
    };
    found = found.with_backend(&backend);
    if section.common.cassette.is_some() {
        found.note = "answers come from a cassette: no call is made".to_owned();
        return found;
    }
    let result = match tokio::time::timeout(PATIENCE, called(&backend, mode.as_ref())).await {
        Ok(Ok(result)) => result,
        Ok(Err(fault)) => return failed(found, section, &fault),
        Err(_) => return found.failed(DoctorState::Unavailable, "no answer in two minutes", SLOW),
    };
    let value: Option<Value> = serde_json::from_str(&result).ok();
    let weaker = |error: &str, modes: &str| (error.to_owned(), weaker(section, modes));
    let (error, fix) = match mode.enforcement() {
        _ if result.trim().is_empty() => {
            let fix = if found.kind == "ollama" {
                format!("add to [providers.{}]: think = false", section.name)
            } else {
                format!("set another `model` in [providers.{}]", section.name)
            };
            (format!("its answer was empty after {MAX_TOKENS} tokens"), fix)
        }
        Enforcement::Schema | Enforcement::Tool
            if value.as_ref().is_some_and(|value| value["word"] == CANARY) =>
        {
            return found.enforced(true);
        }
        Enforcement::Schema | Enforcement::Tool => {
            found = found.enforced(false);
            weaker("it ignores the schema that is sent", WEAKER)
        }
        Enforcement::JsonObject if value.as_ref().is_none_or(|value| !value.is_object()) => {
            weaker("its answer is not a JSON object", "[\"prompt\"]")
        }
        _ => return found,
    };
    found.failed(DoctorState::Unavailable, &error, &fix)
}

const SLOW: &str = "try again when the server is less busy, or use a smaller model";

/// The token limit of the answer: enough for a short reasoning, and a limit for models that do not stop.
const MAX_TOKENS: u32 = 256;

/// Returns the answer of a provider to a question whose schema allows only one answer, which does not fit the question.
async fn called(backend: &Backend, mode: &dyn Lower) -> Result<String, Fault> {
    let schema = json!({
        "type": "object",
        "properties": {"word": {"type": "string", "enum": [CANARY]}},
        "required": ["word"],
        "additionalProperties": false,
    });
    let refused = |error: formwork_core::Refused| Fault::new(FaultKind::SchemaRefused, error.to_string());
    let lowered = mode.lower(&LowerRequest::new(&schema)).map_err(refused)?;
    let mut sampling = Sampling::default();
    sampling.temperature = backend.capabilities().temperature.then_some(0.0);
    let call = Call::new(vec![Message::user("Name a fruit, as JSON.")], lowered)
        .with_schema_name("canary")
        .with_sampling(sampling)
        .with_max_tokens(MAX_TOKENS);
    Ok(backend.provider().call(&call).await?.collect().await?.text)
}

/// The value of `modes` for a server that accepts no schema.
const WEAKER: &str = "[\"json-object\", \"prompt\"]";

/// Returns the advice to set `modes` in the section of a provider.
fn weaker(section: &Section, modes: &str) -> String {
    let act = if section.common.modes.is_some() { "change in" } else { "add to" };
    format!("{act} [providers.{}]: modes = {modes}", section.name)
}

/// Returns the environment variable of the API key of a provider, if it is known.
fn key_variable(section: &Section) -> Option<String> {
    let settings: Value = section.read().ok()?;
    let of_preset = || {
        let preset = settings["preset"].as_str().unwrap_or(&section.common.kind);
        Some(formwork::openai::preset(preset)?.api_key_env.clone())
    };
    let variable = settings["api_key_env"].as_str().map(str::to_owned).or_else(of_preset);
    variable.filter(|variable| !variable.is_empty())
}

fn failed(found: DoctorOutput, section: &Section, fault: &Fault) -> DoctorOutput {
    let name = &section.name;
    let fix = match fault.kind {
        FaultKind::Unreachable => format!("start the server, or correct `base_url` in [providers.{name}]"),
        FaultKind::Auth => match key_variable(section) {
            Some(variable) => format!("put a valid key into the environment variable {variable}"),
            None => format!(
                "put a valid key into an environment variable, and add its name to [providers.{name}]: \
                 api_key_env = \"NAME\""
            ),
        },
        FaultKind::NoCredit => "add credit to the account, or use another provider".to_owned(),
        FaultKind::Unsupported if found.kind == "ollama" => format!("ollama pull {}", found.model),
        FaultKind::Unsupported => format!("correct `model`, or `base_url`, in [providers.{name}]"),
        FaultKind::BadWire => {
            format!("correct `base_url` in [providers.{name}]: the server there has another API")
        }
        FaultKind::SchemaRefused => weaker(section, WEAKER),
        FaultKind::Timeout => {
            format!(
                "raise `timeout_seconds` and `first_timeout_seconds` in [providers.{name}], or try again later"
            )
        }
        FaultKind::RateLimited | FaultKind::Overloaded => "try again later".to_owned(),
        _ => String::new(),
    };
    found.failed(DoctorState::Unavailable, &fault.to_string(), &fix)
}

fn words(found: &DoctorOutput) -> String {
    let DoctorOutput { name, kind, model, state, dialects, enforcement, enforced, note, error, fix, .. } =
        found;
    let mut out = format!("{name} ({kind}{}{model})\n", if model.is_empty() { "" } else { ", " });
    let mut line = |mark: &str, words: &str| {
        if !words.is_empty() {
            out.push_str(&format!("  {mark:5} {words}\n"));
        }
    };
    if enforcement.is_some() {
        if *state == DoctorState::Works {
            line("ok", "answers");
        }
        line("", &format!("output modes, strictest first: {}", dialects.join(", ")));
    }
    for restriction in &found.in_force {
        line("note", &health::line(restriction));
    }
    line("", note);
    if *enforced == Some(true) {
        line("ok", "enforces schemas while decoding");
    } else if *state == DoctorState::Works && *enforcement != Some(Enforcement::Schema) {
        line("", "does not enforce schemas; formwork validates answers and retries");
    }
    line("FAIL", error);
    line("fix", fix);
    out
}
