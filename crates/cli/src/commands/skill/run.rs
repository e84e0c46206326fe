use std::path::PathBuf;

use formwork::config::Defaults;
use formwork::providers::Providers;
use formwork_core::spaced;
use formwork_extract::CancellationToken;
use formwork_ledger::Recorder;
use formwork_review::{Gate, ReviewRubric};
use formwork_skill::{
    NamedBackends, PolicySpec, Skill, SkillError, SkillOutcome, SkillRunnerService, TemplateType,
};
use serde_json::{Map, Value};

use super::Folder;
use crate::agents::{self, Asking};
use crate::commands::review::words;
use crate::exit::{Failed, Status};
use crate::ledger::now;
use crate::rows::SkillRunOutput;
use crate::stderr::say;
use crate::targets::{Opened, Targets};
use crate::{files, interrupt, output, stderr};

const AFTER_HELP: &str = "\
Examples:
  formwork skill run headline --dir examples/skills --input text=\"Maria, 34, moved to Lisbon.\"
  formwork skill run examples/skills/ticket.yaml --input title=\"Charged twice\" --json
  formwork skill run contact --dir examples/skills --input text=@examples/letter.txt
  formwork skill run reply --dir examples/skills -i message=\"Where is it?\" --provider ollama --model qwen3:8b

Exit codes:
  0    the output is printed, and no criterion of its review, if any, failed; criteria that could not be evaluated
       are on standard error (--fail-on-indeterminate: exit code 1)
  1    no valid answer, or a review that failed or could not be completed
  2    wrong usage, invalid inputs or an invalid file
  3    no provider answered in time, or the model cannot be opened
  130  interrupted";

/// Run a skill
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The name or the file of the skill
    skill: String,
    /// An input: plain text for a string, JSON for other types; `NAME=@FILE` is the text of a file
    #[arg(long = "input", short, value_name = "NAME=VALUE", value_parser = agents::pair)]
    input: Vec<(String, String)>,
    /// File with all inputs as one JSON object; `-` is standard input
    #[arg(long, value_name = "FILE")]
    inputs: Option<PathBuf>,
    #[command(flatten)]
    folder: Folder,
    #[command(flatten)]
    targets: Targets,
    #[command(flatten)]
    asking: Asking,
    /// Exit with 1 also if the review has an indeterminate criterion
    #[arg(long)]
    fail_on_indeterminate: bool,
    /// Print the output with all calls as one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, providers: &Providers) -> Result<Status, Failed> {
    let skill = args.folder.one(&args.skill)?;
    let inputs = inputs(args, &skill)?;
    let cancel = CancellationToken::new();
    interrupt::run(&cancel, async {
        // Errors in the inputs are reported before a model is opened.
        skill.complete(inputs.clone()).map_err(|error| agents::skill(&error))?;
        let (ledger, started) = (args.asking.ledger()?, now());
        let opened = opened(&skill, &args.targets, providers, args.asking.is_verbose()).await?;
        let recorder = opened.recorder(ledger.clone(), "skill run");
        let runner = runner(&skill, &opened, &args.asking, &cancel, recorder);
        let result = runner.execute(skill.name(), inputs).await;
        if let Some(review) = result.as_ref().ok().and_then(|outcome| outcome.review.as_ref()) {
            agents::record(ledger.as_ref(), "skill run", skill.name(), started, review);
        }
        let ended = end(&result, args.fail_on_indeterminate);
        if args.json {
            let ok = matches!(ended, Ok(Status::Ok));
            output::row(&SkillRunOutput::new(skill.name(), &result, ok))?;
        } else if let Ok(outcome) = &result {
            print(outcome, &ended)?;
        }
        ended
    })
}

/// Returns the status of the command: whether there is an output, and whether it passed its review.
fn end(result: &Result<SkillOutcome, SkillError>, strict: bool) -> Result<Status, Failed> {
    let outcome = result.as_ref().map_err(agents::skill)?;
    match outcome.review.as_ref().and_then(agents::not_carried_out) {
        None => Ok(Status::of(outcome.passes(strict))),
        // The review is the only result, or the user cancelled it.
        Some(failed) if is_review(outcome) || failed.is_interrupted() => Err(failed),
        // There is an output, but its review failed.
        Some(failed) => Err(Failed::no_answer(failed)),
    }
}

fn is_review(outcome: &SkillOutcome) -> bool {
    outcome.template_type == Some(TemplateType::LlmReview)
}

/// Prints an outcome for people: the output, and a failed review on standard error.
fn print(outcome: &SkillOutcome, ended: &Result<Status, Failed>) -> Result<(), Failed> {
    match &outcome.review {
        Some(review) if is_review(outcome) => return output::text(&words(review)),
        _ => output::line(spaced(&outcome.output))?,
    }
    if let Some(error) = outcome.generation.as_ref().and_then(|generation| generation.error.as_ref()) {
        say!("the output could not be improved, and is the first one: {}", error.message);
    }
    let Some(review) = &outcome.review else { return Ok(()) };
    match ended {
        Ok(_) if review.gate == Gate::Undecided => {
            stderr::error_text(&format!("the review is undecided:\n{}", words(review)));
        }
        Ok(Status::Negative) => stderr::error_text(&format!("the review failed:\n{}", words(review))),
        Err(failed) if !failed.is_interrupted() => stderr::error_text(&words(review)),
        _ => {}
    }
    Ok(())
}

/// Returns the models that the skill or the command line names.
pub(super) async fn opened(
    skill: &Skill,
    targets: &Targets,
    providers: &Providers,
    verbose: bool,
) -> Result<Opened, Failed> {
    let provider = skill.descriptor().provider.as_deref();
    let opened = targets.or_provider(provider).open(providers, verbose).await;
    let opened = opened.map_err(|failed| match provider {
        Some(_) if failed.is_usage() => agents::skill(&skill.at("provider", failed.to_string())),
        _ => failed,
    })?;
    if skill.rubric().is_some_and(ReviewRubric::asks_a_model) {
        opened.say_what_the_default_model_is(agents::NO_JUDGE);
    } else {
        opened.say_how_small_the_default_model_is();
    }
    Ok(opened)
}

/// Returns a runner of this skill with these models, under the name that the skill uses for them.
pub(super) fn runner(
    skill: &Skill,
    opened: &Opened,
    asking: &Asking,
    cancel: &CancellationToken,
    recorder: Option<Recorder>,
) -> SkillRunnerService {
    let mut backends = NamedBackends::new(opened.backends.clone());
    if let Some(name) = &skill.descriptor().provider {
        backends = backends.with(name, opened.backends.clone());
    }
    let Defaults { max_attempts, attempts_per_target, temperature, max_tokens, timeout_seconds, .. } =
        opened.defaults;
    let defaults = PolicySpec {
        attempts: max_attempts,
        attempts_per_target,
        temperature,
        max_tokens,
        timeout_seconds,
        ..PolicySpec::default()
    };
    let (asking, cancel) = (asking.clone(), cancel.clone());
    SkillRunnerService::new(backends)
        .with_skill(skill.clone())
        .with_defaults(defaults)
        .with_agent(move |agent| asking.apply(agent, &cancel, recorder.as_ref()))
}

fn inputs(args: &Args, skill: &Skill) -> Result<Value, Failed> {
    let mut inputs = match &args.inputs {
        None => Map::new(),
        Some(path) => match files::json(path)? {
            Value::Object(inputs) => inputs,
            _ => {
                return Err(Failed::usage(format!(
                    "{}: expected one JSON object with all inputs",
                    files::name(path)
                )));
            }
        },
    };
    for (n, (name, text)) in args.input.iter().enumerate() {
        if args.input.iter().take(n).any(|(other, _)| other == name) {
            return Err(Failed::usage(format!("--input {name} is given twice: give each input once")));
        }
        let value = skill.parse_input(name, &agents::value(text)?).map_err(Failed::usage)?;
        inputs.insert(name.clone(), value);
    }
    Ok(Value::Object(inputs))
}
