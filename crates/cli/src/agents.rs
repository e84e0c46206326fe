//! The common part of `review` and `skill`: the arguments of model calls, and the exit codes of errors.

use std::path::Path;
use std::time::Duration;

use formwork_core::{Error, Time};
use formwork_extract::CancellationToken;
use formwork_ledger::{Ledger, Recorder, RunOutcome, RunRecord};
use formwork_review::document::DocumentError;
use formwork_review::{Agent, Gate, ReviewResult};
use formwork_skill::{Skill, SkillError};
use serde_json::Value;

use crate::commands::extract::report;
use crate::exit::Failed;
use crate::files;
use crate::flags::{seconds, set};
use crate::ledger::{Recording, now};
use crate::spinner::Spinner;
use crate::stderr::say;

/// The warning about verdicts of the default model.
pub(crate) const NO_JUDGE: &str = "its verdicts are not meaningful";

// The settings of every call.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Asking {
    /// Sampling seed: the same seed repeats the same answers, if the provider supports it [default: none]
    #[arg(long)]
    seed: Option<u64>,
    /// Time limit in seconds for all calls together [default: 60]
    #[arg(long, value_parser = seconds)]
    timeout: Option<f64>,
    /// Maximum number of tokens of an answer, doubled after one that it cut off [default: that of the configuration or the skill, else the provider's]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: Option<u32>,
    #[command(flatten)]
    recording: Recording,
    /// Print every request, answer, violation and retry on standard error
    #[arg(long, short)]
    verbose: bool,
}

impl Asking {
    /// Opens the ledger, if the command records runs.
    pub(crate) fn ledger(&self) -> Result<Option<Ledger>, Failed> {
        self.recording.open()
    }

    /// Returns an agent with these settings.
    pub(crate) fn apply(
        &self,
        mut agent: Agent,
        cancel: &CancellationToken,
        recorder: Option<&Recorder>,
    ) -> Agent {
        let limit = self.timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        agent = set(agent, recorder.cloned(), Agent::with_observer).with_cancel(cancel.clone());
        agent = set(agent, self.seed, Agent::with_seed);
        agent = set(agent, limit, Agent::with_time_limit);
        agent = set(agent, self.max_tokens, Agent::with_max_tokens);
        if self.verbose { agent.with_observer(report::Report) } else { agent.with_observer(Spinner::new()) }
    }

    /// Returns whether `-v` was given.
    pub(crate) const fn is_verbose(&self) -> bool {
        self.verbose
    }

    /// Returns the same settings with another seed.
    pub(crate) fn with_seed(&self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self.clone() }
    }

    /// Returns the seed, if there is one.
    pub(crate) const fn seed(&self) -> Option<u64> {
        self.seed
    }
}

/// Returns the JSON document of a file, or its text if it is no JSON document.
pub(crate) fn output(path: &Path) -> Result<Value, Failed> {
    let text = files::text(path)?;
    if text.trim().is_empty() {
        return Err(Failed::usage(format!("{}: the file is empty", files::name(path))));
    }
    // A single number or word is valid JSON, but more likely a text.
    let is_document = text.trim_start().starts_with(['{', '[']);
    if is_document { files::json_or_text(&files::name(path), text) } else { Ok(Value::String(text)) }
}

/// Parses a pair `name=value` of the command line.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| "expected NAME=VALUE".to_owned())?;
    if name.is_empty() {
        return Err("expected a name before `=`".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// Returns a value of the command line. `@file` is the text of a file.
pub(crate) fn value(text: &str) -> Result<String, Failed> {
    match text.strip_prefix('@') {
        Some(path) => files::text(Path::new(path)),
        None => Ok(text.to_owned()),
    }
}

/// Returns the failure for an invalid file, with the locations of its errors.
pub(crate) fn document(error: &DocumentError) -> Failed {
    Failed::usage(format!("{error:#}"))
}

/// Returns the failure for the error of a run, with its exit code.
pub(crate) fn run(error: &Error) -> Failed {
    Failed::of(error.kind(), error.is_answered(), format!("{error:#}"))
}

/// Returns the failure of a review that could not be completed; `None` if it was completed.
pub(crate) fn not_carried_out(review: &ReviewResult) -> Option<Failed> {
    let error = review.error.as_ref()?;
    let message = format!("the review could not be carried out: {}", error.message);
    Some(Failed::of(error.kind, error.answered, message))
}

/// Returns the outcome of a review in a word.
pub(crate) const fn gate(review: &ReviewResult) -> &'static str {
    match review.gate {
        Gate::Pass => "pass",
        Gate::Fail => "fail",
        Gate::Undecided => "undecided",
    }
}

/// Records the outcome of a review as a run without calls, with the tag `gate:pass`, `gate:fail` or `gate:undecided`. The runs of
/// the generation and of the judge are recorded before the outcome is known, and a review by rules has none.
pub(crate) fn record(
    ledger: Option<&Ledger>,
    source: &'static str,
    contract: &str,
    started: Time,
    review: &ReviewResult,
) {
    let Some(ledger) = ledger else { return };
    let tags = vec![format!("gate:{}", gate(review))];
    let run = RunRecord::new(source, started).with_contract(Some(contract.to_owned()), None);
    let mut run = run.with_labels(None, tags);
    run.ended = now();
    if let Some(error) = &review.error {
        (run.outcome, run.message) = (RunOutcome::Failed(error.kind), Some(error.message.clone()));
    }
    ledger.record(run);
}

/// Returns skills that were read. Prints a warning for each number of their files that was rounded.
pub(crate) fn loaded<S: AsRef<[Skill]>>(skills: Result<S, SkillError>) -> Result<S, Failed> {
    let skills = skills.map_err(|error| skill(&error))?;
    let warnings = skills.as_ref().iter().flat_map(Skill::warnings);
    warnings.for_each(|warning| say!("warning: {warning}"));
    Ok(skills)
}

/// Returns the failure for the error of a skill, with its exit code.
pub(crate) fn skill(error: &SkillError) -> Failed {
    match error {
        SkillError::Document(error) => document(error),
        SkillError::Review { error: reason, .. } => Failed::of(reason.kind(), reason.is_answered(), error),
        SkillError::Generation { result, .. } => match &result.error {
            Some(reason) => Failed::of(reason.kind, reason.answered, error),
            None => Failed::no_answer(error),
        },
        SkillError::Failed { .. } | SkillError::Late { .. } => Failed::no_answer(error),
        SkillError::Inputs { violations, .. } if violations.iter().any(|it| it.rule == "required") => {
            Failed::usage(format!("{error}; give an input as --input NAME=VALUE or --input NAME=@FILE"))
        }
        _ => Failed::usage(error),
    }
}
