//! `formwork oracle compare`: scores the same wallets with two versions of the prompt.

use std::path::PathBuf;

use formwork::providers::Providers;
use formwork_extract::CancellationToken;
use formwork_oracle::wallet::{Band, Wallet};
use formwork_oracle::{Oracle, Prompt, ScoreSource, Scored};
use futures_util::{StreamExt as _, stream};

use super::asking::{Asking, failed};
use super::wallets::{self, Named};
use crate::exit::{Failed, Status};
use crate::log;
use crate::rows::{OracleCompareOutput, OracleCompared, OracleVersion, OracleVersionScore};
use crate::{interrupt, output, terminal};

const AFTER_HELP: &str = "\
Examples:
  formwork oracle compare v1 v2 wallets/
  formwork oracle compare v1 mine.md wallets/ --json > compared.json

Each wallet is scored with both versions. `in band` counts scores within `expected` of the wallet.

Exit codes:
  0    every wallet was scored with both versions
  1    with --no-fallback: no model gave a valid score
  2    wrong usage, or an invalid file
  3    no provider answered in time, or the model cannot be opened
  130  interrupted";

/// Score the same wallets with two versions of the prompt
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The first version: `v1`, `v2`, `v3`, or a text file
    first: String,
    /// The second version
    second: String,
    /// Folders, .json, .csv and .jsonl files; `-` is standard input with one wallet per line
    #[arg(required = true)]
    wallets: Vec<PathBuf>,
    #[command(flatten)]
    asking: Asking,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, providers: &Providers) -> Result<Status, Failed> {
    let checked = args.asking.checked()?;
    let find = |name: &str| Prompt::find(name).map_err(Failed::usage);
    let prompts = [find(&args.first)?, find(&args.second)?];
    let (mut incoming, total) = wallets::incoming(&args.wallets)?;
    log::start(args.asking.verbose);
    let cancel = CancellationToken::new();
    interrupt::run(&cancel, async {
        let opened = checked.open(providers).await?;
        let [first, second] = prompts;
        let first = checked.oracle(&opened, first, |builder| builder)?;
        let second = checked.oracle(&opened, second, |builder| builder)?;
        if first.prompt().hash == second.prompt().hash {
            return Err(Failed::usage("the two prompts have the same text: there is nothing to compare"));
        }
        let mut rows = Vec::new();
        let mut versions = [&first, &second].map(|oracle| Tally::new(oracle.prompt().clone()));
        let progress = terminal::count("wallets", total);
        let mut wallets = stream::poll_fn(|cx| incoming.poll_recv(cx));
        while let Some(Named { id, wallet }) = wallets.next().await {
            let wallet = wallet.map_err(Failed::usage)?;
            let mut scores = Vec::new();
            for (oracle, tally) in [&first, &second].into_iter().zip(&mut versions) {
                let scored = score(oracle, &wallet, &cancel).await?;
                tally.add(&scored, wallet.expected.as_ref());
                scores.push(OracleVersionScore { score: scored.answer.score, source: scored.source });
            }
            if let [one, other] = *scores.as_slice() {
                rows.push(OracleCompared { id, expected: wallet.expected, first: one, second: other });
            }
            progress.iter().for_each(|bar| bar.inc(1));
        }
        drop(progress);
        let differences = rows.iter().map(|row| f64::from(row.first.score.abs_diff(row.second.score)));
        let mean_difference = mean(differences.sum(), rows.len());
        let [one, other] = versions.map(Tally::done);
        let compared = OracleCompareOutput { first: one, second: other, mean_difference, wallets: rows };
        output::either(args.json, &compared, || table(&compared))?;
        Ok(Status::Ok)
    })
}

async fn score(oracle: &Oracle, wallet: &Wallet, cancel: &CancellationToken) -> Result<Scored, Failed> {
    let scored = oracle.request(wallet).with_cancel(cancel.clone()).run().await;
    scored.map_err(|error| failed(&error))
}

/// The results of one version so far.
struct Tally {
    version: OracleVersion,
    scores: u64,
    latency_ms: u64,
    output_tokens: u64,
}

impl Tally {
    fn new(prompt: formwork_oracle::PromptId) -> Self {
        let version = OracleVersion { prompt, ..OracleVersion::default() };
        Self { version, scores: 0, latency_ms: 0, output_tokens: 0 }
    }

    fn add(&mut self, scored: &Scored, expected: Option<&Band>) {
        let event = &scored.event;
        let version = &mut self.version;
        version.scored += 1;
        version.compliant += u64::from(event.is_compliant());
        version.retried += u64::from(event.is_retried());
        version.fallbacks += u64::from(event.is_fallback());
        version.with_band += u64::from(expected.is_some());
        version.in_band += u64::from(expected.is_some_and(|band| band.contains(scored.answer.score)));
        self.scores += u64::from(scored.answer.score);
        self.latency_ms += event.latency_ms;
        self.output_tokens += scored.usage.output_tokens;
    }

    fn done(self) -> OracleVersion {
        let of = |sum: u64| mean(sum as f64, self.version.scored as usize);
        OracleVersion {
            mean_score: of(self.scores),
            mean_latency_ms: of(self.latency_ms),
            mean_output_tokens: of(self.output_tokens),
            ..self.version
        }
    }
}

/// Returns the mean, rounded to a tenth; 0 without values.
fn mean(sum: f64, count: usize) -> f64 {
    if count == 0 { 0.0 } else { (sum / count as f64 * 10.0).round() / 10.0 }
}

/// Returns the table for people: one line per wallet, then the totals of both versions.
fn table(compared: &OracleCompareOutput) -> String {
    let OracleCompareOutput { first, second, mean_difference, wallets } = compared;
    let short = |version: &OracleVersion| {
        let hash = version.prompt.hash.get(..8).unwrap_or_default();
        format!("{} {hash}", version.prompt.name)
    };
    let display = |one: &OracleVersionScore| match one.source {
        ScoreSource::Ai => one.score.to_string(),
        ScoreSource::Fallback => format!("{} (counted)", one.score),
    };
    let mut rows = vec![["wallet".to_owned(), short(first), short(second), "difference".to_owned()]];
    rows.extend(wallets.iter().map(|row| {
        let difference = i32::from(row.second.score) - i32::from(row.first.score);
        [row.id.clone(), display(&row.first), display(&row.second), format!("{difference:+}")]
    }));
    let mut total = |name: &str, of: fn(&OracleVersion) -> String| {
        rows.push([name.to_owned(), of(first), of(second), String::new()]);
    };
    total("valid at first try", |version| format!("{}/{}", version.compliant, version.scored));
    total("retried", |version| version.retried.to_string());
    total("counted", |version| version.fallbacks.to_string());
    if first.with_band > 0 {
        total("in band", |version| format!("{}/{}", version.in_band, version.with_band));
    }
    total("mean score", |version| version.mean_score.to_string());
    total("mean ms", |version| version.mean_latency_ms.to_string());
    total("mean tokens", |version| version.mean_output_tokens.to_string());
    if let Some([.., last]) = rows.iter_mut().find(|row| row[0] == "mean score") {
        *last = format!("{mean_difference} apart");
    }
    output::table(&rows, |column| column > 0)
}
