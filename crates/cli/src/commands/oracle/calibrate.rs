//! `formwork oracle calibrate`: measures whether a model's scores are nearer to those of people than counting is.

use std::path::PathBuf;

use formwork::providers::Providers;
use formwork_extract::CancellationToken;
use formwork_oracle::ScoreEvent;
use formwork_oracle::calibration::{self, Calibration, Calibrations, MIN_WALLETS};
use futures_util::{StreamExt as _, stream};

use super::asking::{Asking, Version, failed};
use crate::exit::{Failed, Status};
use crate::stderr::say;
use crate::{files, interrupt, log, output, terminal};

const AFTER_HELP: &str = "\
Examples:
  formwork oracle calibrate examples/wallets/calibration.jsonl -m openai/gpt-4o
  formwork oracle calibrate wallets.jsonl --provider ollama --model qwen3:8b --prompt mine.md --json

FILE has at least 30 lines: {\"wallet\": {\u{2026}}, \"expected\": [low, high]}, where people would give the wallet a score from low
to high. The distance of a score is 0 within this range, else the points to its nearer end. The model is better than counting
(the fallback, which scores without a model) if the paired 95 % interval of the difference of their distances is below 0.

The result is stored for this model and this version of the prompt, and printed. Scores of the model are marked by it from
then on: by --json, in ledgers, and by `oracle serve` in the header x-formwork-calibration. An interrupted calibration stores
nothing.

Exit codes:
  0    measured and stored, whatever the result
  1    the model scored fewer than 30 wallets, so nothing is stored
  2    wrong usage, or an invalid file
  3    no provider answered in time, or the model cannot be opened
  130  interrupted";

/// Measure whether a model scores wallets better than counting does
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// The wallets with expected ranges: JSON Lines; `-` is standard input
    file: PathBuf,
    /// Maximum number of wallets in progress at a time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrency: u16,
    #[command(flatten)]
    version: Version,
    #[command(flatten)]
    asking: Asking,
    /// Print one JSON object for each model, instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, providers: &Providers) -> Result<Status, Failed> {
    let bytes = files::bytes(&args.file)?;
    let wallets = calibration::wallets(&files::name(&args.file), &bytes).map_err(Failed::usage)?;
    let stored = args.asking.calibrations_file().ok_or_else(|| {
        Failed::usage("there is no home folder for calibrations: name a file with --calibrations")
    })?;
    let (checked, prompt) = (args.asking.checked()?, args.version.find()?);
    log::start(args.asking.verbose);
    let cancel = CancellationToken::new();
    interrupt::run(&cancel, async {
        let opened = checked.open(providers).await?;
        let oracle = checked.oracle(&opened, prompt, |builder| builder)?;
        let progress = terminal::count("wallets", u64::try_from(wallets.len()).ok());
        let scores = wallets.iter().map(|wallet| oracle.request(wallet).with_cancel(cancel.clone()).run());
        let mut scores = std::pin::pin!(stream::iter(scores).buffered(usize::from(args.concurrency)));
        let mut events: Vec<ScoreEvent> = Vec::with_capacity(wallets.len());
        while let Some(scored) = scores.next().await {
            events.push(*scored.map_err(|error| failed(&error))?.event);
            progress.iter().for_each(|bar| bar.inc(1));
        }
        drop(progress);
        let mut is_stored = false;
        for (model, measured) in calibration::calibrate(&events) {
            match measured {
                Ok(calibration) => {
                    Calibrations::append(&stored, &calibration).map_err(Failed::usage)?;
                    output::either(args.json, &calibration, || text(&calibration))?;
                    is_stored = true;
                }
                Err(scores) => {
                    say!("{model}: it scored {scores} wallets, and a calibration takes {MIN_WALLETS}")
                }
            }
        }
        if !is_stored {
            let fallbacks = events.iter().filter(|event| event.is_fallback()).count();
            let of = events.len();
            return Err(Failed::no_answer(format!(
                "not calibrated: {fallbacks} of {of} scores are the fallback's; use another model, or more wallets"
            )));
        }
        Ok(Status::Ok)
    })
}

fn text(calibration: &Calibration) -> String {
    let Calibration { model, prompt, n, model_distance, fallback_distance, interval: [low, high] } =
        calibration;
    let model: String = model.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!(
        "{model}, prompt {} ({}), {n} wallets: {}\n\
         mean distance from the expected range: the model {model_distance:.1}, counting {fallback_distance:.1} points\n\
         difference, 95 % interval: {low:+.1} to {high:+.1} points (paired bootstrap)\n",
        prompt.name,
        prompt.hash.get(..12).unwrap_or(&prompt.hash),
        calibration.standing(),
    )
}
