//! `formwork oracle calibrate`: measures whether a model's scores are nearer to those of people than counting is.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use formwork::providers::Providers;
use formwork_oracle::ScoreEvent;
use formwork_oracle::calibration::{self, Calibration, Calibrations, MIN_WALLETS};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use sha2::{Digest as _, Sha256};

use super::asking::{Scoring, failed};
use crate::exit::{Failed, Status};
use crate::stderr::say;
use crate::{files, output, terminal};

const AFTER_HELP: &str = "\
Examples:
  formwork oracle calibrate examples/wallets/calibration.jsonl -m openai/gpt-5.4
  formwork oracle calibrate wallets.jsonl --provider ollama --model qwen3:8b --prompt mine.md --json

FILE has at least 30 different wallets, one per line: {\"wallet\": {\u{2026}}, \"expected\": [low, high]}, where people would give
the wallet a score from low to high. A wallet that is given again counts once. The distance of a score is 0 within this range,
else the points to its nearer end. The model is better than counting (the fallback, which scores without a model) if the paired
95 % interval of the difference of their distances is below 0.

The result is stored for this model and this version of the prompt, and printed. Scores of the model are marked by it from
then on: by --json, in ledgers, and by `oracle serve` in the header x-formwork-calibration.

Each score is kept beside the file of calibrations until a model has answered about all wallets. A calibration that was
interrupted continues with the wallets that are left, if file, prompt, models and settings are the same.

Exit codes:
  0    measured and stored, whatever the result
  1    the model scored fewer than 30 wallets, so nothing is stored
  2    wrong usage, or an invalid file
  3    no provider answered in time, or the model cannot be opened
  130  interrupted";

/// Measure whether a model scores wallets better than counting does
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The wallets with expected ranges: JSON Lines; `-` is standard input
    file: PathBuf,
    /// Maximum number of wallets in progress at a time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrency: u16,
    /// Score all wallets again, also those that an interrupted calibration has scored
    #[arg(long)]
    restart: bool,
    #[command(flatten)]
    scoring: Scoring,
    /// Print one JSON object for each model, instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, providers: &Providers) -> Result<Status, Failed> {
    let bytes = files::bytes(&args.file)?;
    let wallets = calibration::wallets(&files::name(&args.file), &bytes).map_err(Failed::usage)?;
    let stored = args.scoring.asking.calibrations_file().ok_or_else(|| {
        Failed::usage("there is no home folder for calibrations: name a file with --calibrations")
    })?;
    args.scoring.run(providers, async |oracle, opened, cancel| {
        let key = [
            String::from_utf8_lossy(&bytes).into_owned(),
            oracle.prompt().hash.clone(),
            format!("{:?}", opened.models().into_iter().collect::<BTreeMap<_, _>>()),
            args.scoring.asking.settings(opened),
        ];
        let unfinished = Unfinished::beside(&stored, &key);
        if args.restart {
            unfinished.remove();
        }
        let (mut events, of) = (unfinished.read()?, wallets.len());
        let mut done = events.len();
        if done > 0 {
            say!("note: {done} of {of} wallets were scored by an earlier calibration that did not end");
        }
        let open: Vec<usize> = (0..wallets.len()).filter(|nth| !events.contains_key(nth)).collect();
        let progress = terminal::count("wallets", u64::try_from(open.len()).ok());
        let scores = open.into_iter().map(|nth| {
            let request = oracle.request(&wallets[nth]).with_cancel(cancel.clone());
            request.run().map(move |scored| (nth, scored))
        });
        let mut scores = std::pin::pin!(stream::iter(scores).buffer_unordered(usize::from(args.concurrency)));
        while let Some((nth, scored)) = scores.next().await {
            let event = *scored.map_err(|error| failed(&error))?.event;
            // Without an answer of a model, as when no server is reachable, the wallet stays open.
            if event.answers().next().is_some() {
                unfinished.append(nth, &event)?;
                done += 1;
            }
            events.insert(nth, event);
            progress.iter().for_each(|bar| bar.inc(1));
        }
        drop(progress);
        if done == of {
            unfinished.remove();
        }
        let mut is_stored = false;
        for (model, measured) in calibration::calibrate(events.values()) {
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
            let faults = events.values().flat_map(ScoreEvent::faults);
            if let Some((_, fault)) = faults.last().filter(|_| done < of) {
                let open = of - done;
                return Err(Failed::unavailable(format!(
                    "not calibrated: no model answered for {open} of {of} wallets ({fault}); the same command continues with them"
                )));
            }
            let fallbacks = events.values().filter(|event| event.is_fallback()).count();
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

/// The scores of a calibration that has no result yet: a file beside the calibrations, each line a wallet's position with its score.
struct Unfinished(PathBuf);

impl Unfinished {
    /// Returns the file for what the key identifies: the wallets, the prompt, the models and the settings.
    fn beside(stored: &Path, key: &[String]) -> Self {
        let mut hash = Sha256::new();
        for part in key {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let hash = format!("{:x}", hash.finalize());
        let hash = hash.get(..12).unwrap_or(&hash);
        Self(stored.with_extension(format!("{hash}.unfinished.jsonl")))
    }

    /// Reads the scores. A line that is cut, as by the end of a process that was killed, is no score.
    fn read(&self) -> Result<BTreeMap<usize, ScoreEvent>, Failed> {
        match std::fs::read(&self.0) {
            Ok(bytes) => Ok(bytes
                .split(|byte| *byte == b'\n')
                .filter_map(|line| serde_json::from_slice(line).ok())
                .collect()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Appends the score of a wallet.
    fn append(&self, nth: usize, event: &ScoreEvent) -> Result<(), Failed> {
        // Only a resumed calibration reads the line, and it needs no calls.
        let event = ScoreEvent { calls: Vec::new(), ..event.clone() };
        // A line break before the line ends one that was cut.
        let line = serde_json::to_string(&(nth, event)).map(|line| format!("\n{line}\n"));
        if let Some(folder) = self.0.parent() {
            // Opening the file reports errors of the folder.
            _ = std::fs::create_dir_all(folder);
        }
        let opened = std::fs::OpenOptions::new().append(true).create(true).open(&self.0);
        let written = opened.and_then(|mut file| file.write_all(line?.as_bytes()));
        written.map_err(|error| self.failed(&error))
    }

    fn remove(&self) {
        // A file that remains is only read by the same calibration.
        _ = std::fs::remove_file(&self.0);
    }

    fn failed(&self, error: &std::io::Error) -> Failed {
        Failed::usage(format!("{}: {error}", self.0.display()))
    }
}
