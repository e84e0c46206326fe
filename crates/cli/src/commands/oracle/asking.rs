//! The common arguments of the commands of the oracle: models and settings.

use std::path::PathBuf;
use std::time::Duration;

use formwork::config::Defaults;
use formwork::providers::Providers;
use formwork_core::{Error, ErrorKind};
use formwork_extract::CancellationToken;
use formwork_ledger::{RunOutcome, RunRecord, StoredCall};
use formwork_oracle::calibration::Calibrations;
use formwork_oracle::ledger::Ledger;
use formwork_oracle::{
    CrossCheck, Examples, Formula, Oracle, OracleBuilder, Prompt, ScoreEvent, ScoreSource,
};

use crate::exit::{Failed, Status};
use crate::flags::{one_of, seconds, set};
use crate::ledger::{Recording, is_database};
use crate::targets::{Opened, Targets};
use crate::{interrupt, log};

/// The models and settings for scores.
#[derive(clap::Args)]
pub(super) struct Asking {
    #[command(flatten)]
    targets: Targets,
    /// File with examples for the prompt: a JSON array of {"wallet", "answer"}
    #[arg(long, value_name = "FILE")]
    examples: Option<PathBuf>,
    /// The formula of the score: consistent with its scale of 1000, or literally as in the specification (divided by 10)
    #[arg(long, default_value = "consistent", value_parser = one_of::<Formula, 2>(["consistent", "literal"]))]
    formula: Formula,
    /// Maximum number of patches in each attempt: requests for only the invalid values
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=10))]
    patches: u32,
    /// Maximum number of tokens of an answer, doubled after one that it cut off [default: 512]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: Option<u32>,
    /// Time limit in seconds for each wallet, all attempts together [default: 120]
    #[arg(long, value_parser = seconds)]
    timeout: Option<f64>,
    /// Reject answers with texts without a letter, and with texts that are copied from an example or from the prompt [default: for
    /// very small models only]
    #[arg(long)]
    check_texts: bool,
    /// Fail if no model gives a score, instead of computing a score from the transactions
    #[arg(long)]
    no_fallback: bool,
    /// Append every score with its calls to this file, for `formwork oracle report`; a file that ends in .db or .sqlite
    /// records runs instead, for `formwork runs`
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// The file with the results of `formwork oracle calibrate` [default: oracle-calibrations.jsonl in the cache folder of formwork]
    #[arg(long, value_name = "FILE")]
    calibrations: Option<PathBuf>,
    /// Log every call, not only warnings
    #[arg(long, short)]
    pub(super) verbose: bool,
}

/// The prompt, the models and the settings for scores.
#[derive(clap::Args)]
pub(super) struct Scoring {
    /// The prompt: `v1`, `v2`, `v3` (for very small models), or a text file
    #[arg(long, value_name = "NAME|FILE", default_value = Prompt::BUILTIN[0])]
    prompt: String,
    #[command(flatten)]
    pub(super) asking: Asking,
}

impl Scoring {
    /// Checks all arguments before a model is opened, and returns the prompt, too.
    pub(super) fn checked(&self) -> Result<(Checked<'_>, Prompt), Failed> {
        Ok((self.asking.checked()?, Prompt::find(&self.prompt).map_err(Failed::usage)?))
    }

    /// Opens the models, and runs a command with their oracle until it ends or is interrupted.
    pub(super) fn run(
        &self,
        providers: &Providers,
        command: impl AsyncFnOnce(&Oracle, &Opened, &CancellationToken) -> Result<Status, Failed>,
    ) -> Result<Status, Failed> {
        let (checked, prompt) = self.checked()?;
        log::start(self.asking.verbose);
        let cancel = CancellationToken::new();
        interrupt::run(&cancel, async {
            let opened = checked.open(providers).await?;
            let oracle = checked.oracle(&opened, prompt, |builder| builder)?;
            command(&oracle, &opened, &cancel).await
        })
    }
}

impl Asking {
    /// Returns the file of calibrations; `None` without a home folder.
    pub(super) fn calibrations_file(&self) -> Option<PathBuf> {
        let own = || Some(formwork::cache_folder()?.join("oracle-calibrations.jsonl"));
        self.calibrations.clone().or_else(own)
    }

    /// Returns the settings that scores depend on, to compare them with those of another run.
    pub(super) fn settings(&self, opened: &Opened) -> String {
        let Self { formula, patches, max_tokens, check_texts, .. } = self;
        format!("{:?}", (formula, patches, max_tokens, check_texts, &opened.defaults))
    }

    /// Checks all arguments before a model is opened.
    pub(super) fn checked(&self) -> Result<Checked<'_>, Failed> {
        let check = CrossCheck { formula: self.formula, ..CrossCheck::default() };
        let examples = match &self.examples {
            Some(path) => Examples::read(path, &check).map_err(Failed::usage)?,
            None => Examples::none(),
        };
        let known = self.calibrations_file().map(|file| Calibrations::read(&file)).transpose();
        let calibrations = known.map_err(Failed::usage)?.unwrap_or_default();
        let (scores, runs) = match &self.ledger {
            Some(path) if is_database(path) => (None, Recording::at(path).open()?),
            path => {
                let scores = path.as_ref().map(Ledger::open).transpose().map_err(Failed::usage)?;
                (scores, Recording::default().open()?)
            }
        };
        Ok(Checked { asking: self, check, examples, calibrations, scores, runs })
    }
}

/// The checked arguments.
pub(super) struct Checked<'a> {
    asking: &'a Asking,
    check: CrossCheck,
    examples: Examples,
    calibrations: Calibrations,
    /// The JSON Lines file for scores.
    scores: Option<Ledger>,
    /// The ledger for runs.
    runs: Option<formwork_ledger::Ledger>,
}

impl Checked<'_> {
    /// Opens the models. Ollama is called over its generate API, unless the configuration sets another one.
    pub(super) async fn open(&self, providers: &Providers) -> Result<Opened, Failed> {
        let opened = self.asking.targets.open_as(providers, self.asking.verbose, |section| {
            match section.common.kind.as_str() {
                "ollama" => section.with_default("api", "generate"),
                _ => section,
            }
        });
        let opened = opened.await?;
        opened.say_what_the_default_model_is("its scores are not meaningful");
        Ok(opened)
    }

    /// Returns an oracle with these models and this prompt.
    pub(super) fn oracle(
        &self,
        opened: &Opened,
        prompt: Prompt,
        more: impl FnOnce(OracleBuilder) -> OracleBuilder,
    ) -> Result<Oracle, Failed> {
        let Asking { patches, max_tokens, timeout, check_texts, no_fallback, .. } = self.asking;
        let flags = Defaults { max_tokens: *max_tokens, timeout_seconds: *timeout, ..Defaults::default() };
        let settings = flags.or(opened.defaults.clone());
        let mut builder = Oracle::builder()
            .with_prompt(prompt)
            .with_examples(self.examples.clone())
            .with_calibrations(self.calibrations.clone())
            .with_cross_check(self.check)
            .with_policy(settings.limit(formwork_oracle::policy()))
            .with_patches(*patches);
        builder = set(builder, settings.max_tokens, OracleBuilder::with_max_tokens);
        builder = set(builder, settings.timeout(), OracleBuilder::with_deadline);
        builder = set(builder, settings.temperature, OracleBuilder::with_temperature);
        if opened.is_tiny || *check_texts {
            builder = builder.with_texts_checked();
        }
        if *no_fallback {
            builder = builder.without_fallback();
        }
        builder = set(builder, self.scores.clone(), OracleBuilder::with_observer);
        builder = opened
            .models()
            .into_iter()
            .fold(builder, |builder, (target, model)| builder.with_model(target, model));
        if let Some(runs) = self.runs.clone() {
            let models = opened.models();
            let of = move |target: &str| models.get(target).cloned();
            builder =
                builder.with_observer(move |event: &ScoreEvent| runs.record(record(event).with_models(&of)));
        }
        let builder = opened.backends.iter().cloned().fold(builder, OracleBuilder::with_target);
        more(builder).build().map_err(|error| failed(&error))
    }
}

/// Converts a score to a run.
fn record(event: &ScoreEvent) -> RunRecord {
    let mut run = RunRecord::new("oracle", event.started);
    run.ended = event.started.after(Duration::from_millis(event.latency_ms));
    // A score of the fallback has an error, too: the reason why no model gave it.
    run.outcome = match (event.source, &event.error) {
        (Some(ScoreSource::Fallback), _) => RunOutcome::Fallback,
        (_, Some(error)) => RunOutcome::Failed(error.class),
        (_, None) => RunOutcome::Ok,
    };
    run.message = event.error.as_ref().map(|error| error.message.clone());
    run.contract = Some("score".to_owned());
    run.tags = vec![format!("prompt:{}", event.prompt.name), format!("calibration:{}", event.calibration)];
    run.calls = event.calls.iter().map(StoredCall::from).collect();
    run.target = run.calls.last().map_or_else(String::new, |last| last.target.clone());
    run.model.clone_from(&event.model);
    run.trust.clone_from(&event.trust);
    (run.usage, run.micro_usd) = (event.usage, event.cost.micro_usd);
    run
}

/// Returns an error with the exit code of its kind. `{:#}` lists the calls.
pub(super) fn failed(error: &Error) -> Failed {
    match error.kind() {
        ErrorKind::Schema | ErrorKind::Config => Failed::usage(error),
        kind => Failed::of(kind, error.is_answered(), format!("{error:#}")),
    }
}
