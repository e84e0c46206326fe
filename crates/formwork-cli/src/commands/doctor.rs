//! `formwork doctor`: whether each provider of the configuration works, and what it enforces.

use std::sync::Arc;
use std::time::Duration;

use formwork::config::Section;
use formwork_core::{
    Call, Capabilities, Enforcement, Fault, FaultKind, LowerRequest, Message, Sampling, SharedProvider,
};
use formwork_extract::CancellationToken;
use serde_json::{Value, json};

use crate::exit::{Done, Failed};
use crate::rows::{DoctorOutput, DoctorState};
use crate::targets::{self, Targets};
use crate::{interrupt, output};

const AFTER_HELP: &str = "\
Examples:
  formwork doctor
  formwork doctor --config production.toml
  formwork doctor --provider backup --json

It reads the configuration, looks for keys, asks each server what it can do, and makes one call of a few tokens whose schema
allows a single answer that no model gives by itself: whoever gives it enforces schemas.

Exit codes:
  0    every provider works
  2    the configuration cannot be used, or a provider is wrongly described
  3    a provider is not reachable, or does not do what it promises
  130  interrupted";

/// How long a server may take for one answer: it may have to load its model first.
const PATIENCE: Duration = Duration::from_secs(120);

/// What no model says unless it must.
const CANARY: &str = "serinus-7431";

/// Try the configuration: keys, servers, and what each provider really enforces
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    targets: Targets,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Done, Failed> {
    interrupt::run(&CancellationToken::new(), examine(args))
}

async fn examine(args: &Args) -> Result<Done, Failed> {
    let chosen = args.targets.choose()?;
    // Which file was read is half of what is to be found out.
    chosen.tell();
    let mut worst = None;
    for section in &chosen.sections {
        let found = examined(section).await;
        if args.json {
            output::row(&found)?;
        } else {
            output::text(&words(&found))?;
        }
        worst = worst.max(Some(found.state));
    }
    match worst {
        None | Some(DoctorState::Works) => Ok(Done::Fine),
        Some(DoctorState::Unavailable) => Err(Failed::unavailable("a provider does not work, see above")),
        Some(DoctorState::Misconfigured) => Err(Failed::usage("a provider is wrongly described, see above")),
    }
}

async fn examined(section: &Section) -> DoctorOutput {
    let mut found = DoctorOutput::new(&section.name, &section.common.kind);
    let made = match targets::make(section).await {
        Ok(made) => made,
        Err(failed) => {
            let state = if failed.is_usage() { DoctorState::Misconfigured } else { DoctorState::Unavailable };
            return found.failed(state, &failed.to_string(), "");
        }
    };
    found.model = made.model.clone();
    let capabilities = match tokio::time::timeout(PATIENCE, made.provider.probe()).await {
        Ok(Ok(capabilities)) => capabilities,
        Ok(Err(fault)) => return failed(found, &fault, &made.model),
        Err(_) => return found.failed(DoctorState::Unavailable, "no answer in two minutes", SLOW),
    };
    found = found.with_capabilities(&capabilities);
    if section.common.cassette.is_some() || capabilities.enforcement < Enforcement::Schema {
        return found;
    }
    match tokio::time::timeout(PATIENCE, sings(&made.provider, &capabilities)).await {
        Ok(Ok(true)) => found.enforced(true),
        Ok(Ok(false)) => {
            let fix = "name weaker dialects for it: rungs = [\"json-object\", \"prompt\"]";
            found.enforced(false).failed(DoctorState::Unavailable, "it ignores the schema that is sent", fix)
        }
        Ok(Err(fault)) => failed(found, &fault, &made.model),
        Err(_) => found.failed(DoctorState::Unavailable, "no answer in two minutes", SLOW),
    }
}

const SLOW: &str = "is the machine busy, or the model too large for it?";

/// Whether the only answer that the schema allows is given to a question that asks for another.
async fn sings(provider: &SharedProvider, capabilities: &Capabilities) -> Result<bool, Fault> {
    let schema = json!({
        "type": "object",
        "properties": {"word": {"type": "string", "enum": [CANARY]}},
        "required": ["word"],
        "additionalProperties": false,
    });
    let refused = |reason: String| Fault::new(FaultKind::SchemaRefused, reason);
    let rungs = formwork_dialect::rungs(capabilities);
    let first = rungs.first().ok_or_else(|| refused("it takes no dialect of JSON Schema".to_owned()))?;
    let lowered = first.lower(&LowerRequest::new(&schema)).map_err(|error| refused(error.to_string()))?;
    let call = Call {
        messages: vec![Message::user("Name a fruit, as JSON.")],
        schema_name: "canary".to_owned(),
        lowered: Arc::new(lowered),
        rules: Vec::new(),
        sampling: Sampling { temperature: capabilities.temperature.then_some(0.0), ..Sampling::default() },
        // Room for a model that thinks a little, too little for one that does not stop.
        max_tokens: Some(256),
        deadline: None,
        tools: Vec::new(),
    };
    let answer = provider.call(&call).await?.collect().await?;
    let value: Option<Value> = serde_json::from_str(&answer.text).ok();
    Ok(value.is_some_and(|value| value["word"] == CANARY))
}

fn failed(found: DoctorOutput, fault: &Fault, model: &str) -> DoctorOutput {
    let fix = match fault.kind {
        FaultKind::Unreachable => "start the server, or correct `base_url`".to_owned(),
        FaultKind::Auth => "put a valid key into the variable that `api_key_env` names".to_owned(),
        FaultKind::NoCredit => "add credit to the account, or name another provider".to_owned(),
        FaultKind::Unsupported if found.kind == "ollama" => format!("ollama pull {model}"),
        FaultKind::Unsupported => "correct `model`, or `base_url`".to_owned(),
        FaultKind::BadWire => "correct `base_url`: what answers there is no such API".to_owned(),
        FaultKind::SchemaRefused => {
            "name weaker dialects for it: rungs = [\"json-object\", \"prompt\"]".to_owned()
        }
        FaultKind::RateLimited | FaultKind::Overloaded | FaultKind::Timeout => "try again later".to_owned(),
        _ => String::new(),
    };
    found.failed(DoctorState::Unavailable, &fault.to_string(), &fix)
}

fn words(found: &DoctorOutput) -> String {
    let DoctorOutput { name, kind, model, state, dialects, enforcement, enforced, error, fix, .. } = found;
    let mut out = format!("{name} ({kind}{}{model})\n", if model.is_empty() { "" } else { ", " });
    let mut line = |mark: &str, words: &str| {
        if !words.is_empty() {
            out.push_str(&format!("  {mark:5} {words}\n"));
        }
    };
    if enforcement.is_some() {
        line("ok", "reachable");
        line("", &format!("takes {}", dialects.join(", ")));
    }
    if *enforced == Some(true) {
        line("ok", "enforces schemas while decoding");
    } else if *state == DoctorState::Works && *enforcement != Some(Enforcement::Schema) {
        line("", "does not enforce schemas; answers are checked, and asked for again");
    }
    line("FAIL", error);
    line("fix", fix);
    out
}
