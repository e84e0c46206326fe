//! A batch in files of a provider's batch API, whose process is killed while it submits, waits and collects.

use std::path::Path;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use super::answers::Faults;
use super::batches::{Batches, Moment, replies};
use super::checker::Found;
use super::files::Files;
use super::invoice;
use super::process::{errors, killed, signal, spawned};
use crate::Failure;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Play {
    /// Number of rows of the batch
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) rows: u64,
    /// Maximum number of rows per file of calls
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) file_rows: u64,
    /// Number of times that the process is killed; every second time after an answer it gets SIGTERM
    #[arg(long, default_value_t = 30)]
    pub(crate) kills: usize,
    /// The faults of the provider
    #[arg(skip = Faults::USUAL)]
    pub(crate) faults: Faults,
    /// The time between two questions to the provider, in seconds
    #[arg(skip = 0.5)]
    pub(crate) poll: f64,
}

/// The result of a chaos test.
#[derive(Debug)]
pub(crate) struct Submitted {
    pub(crate) found: Found,
    /// The kills before a request was carried out, after that, and after its answer.
    pub(crate) kills: [usize; 3],
    /// The number of times that the process got SIGTERM instead, after an answer.
    pub(crate) terms: usize,
    /// The files of calls that the provider accepted.
    pub(crate) accepted: usize,
    /// The calls that were submitted although an earlier one of their row was with the provider.
    pub(crate) twice: usize,
    pub(crate) seconds: f64,
}

impl Submitted {
    /// Returns the errors. No call may be repeated: its file stays at the provider after every crash.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = self.found.faults();
        if self.twice > 0 {
            faults.push(format!("{} calls were submitted twice", self.twice));
        }
        faults
    }
}

/// The longest time of a play.
const PATIENCE: Duration = Duration::from_secs(1800);

/// Plays it.
pub(crate) fn play(play: &Play, folder: &Path, formwork: &Path) -> Result<Submitted, Failure> {
    let files = play.rows.div_ceil(play.file_rows) as usize;
    // A file takes six requests, and about two fifths of the rows take a second one.
    let step = files * 8 / (play.kills + 1);
    let deaths = (1..=play.kills).map(|nth| step.max(1) * nth + nth % 5).collect();
    let provider = Batches::start(replies(play.faults), deaths)?;
    let config = format!(
        "kind = \"openai\"\nmodel = \"m\"\napi_key_env = \"\"\nbase_url = \"http://{}/v1\"\n\
         price = {{ input = 1.0, output = 1.0 }}\n",
        provider.address()
    );
    let files = Files::write(folder, 0..play.rows, &invoice::contract(), &config)?;
    let started = Instant::now();
    let (mut kills, mut terms, mut is_first, mut counts) = ([0; 3], 0, true, Vec::new());
    loop {
        let mut command = files.command(formwork, is_first, false);
        command.args(["--mode", "provider-batch", "--file-rows", &play.file_rows.to_string()]);
        let mut child = spawned(command.args(["--poll", &play.poll.to_string()]))?;
        // A process that died before it created a batch left nothing to resume.
        is_first = false;
        // SIGTERM and kill -9 alternate.
        let is_term = kills[Moment::Answered as usize] >= terms;
        let died = until_dead(&mut child, &provider, started, is_term)?;
        let (known, uncertain) = files.counted()?;
        counts.push([known, provider.record().calls(), uncertain]);
        match died {
            Some(Moment::Answered) if is_term => terms += 1,
            Some(moment) => kills[moment as usize] += 1,
            None => break,
        }
        is_first |= !files.out.join("ledger.db").exists();
    }
    let found = Found { counts, ..Found::of(&files, 0..play.rows, &provider.record())? };
    Ok(Submitted {
        found,
        kills,
        terms,
        accepted: provider.accepted(),
        twice: provider.twice(),
        seconds: started.elapsed().as_secs_f64(),
    })
}

/// Kills the process when the server says so, or sends SIGTERM after an answer; `None` if it ended by itself.
fn until_dead(
    child: &mut Child,
    provider: &Batches,
    started: Instant,
    is_term: bool,
) -> Result<Option<Moment>, Failure> {
    let mut terminated = None;
    loop {
        if let Some(moment) = provider.death() {
            if is_term && moment == Moment::Answered && terminated.is_none() {
                signal("TERM", child)?;
                terminated = Some(moment);
                continue;
            }
            killed(child)?;
            return Ok(Some(moment));
        }
        if let Some(status) = child.try_wait()? {
            if matches!(status.code(), Some(0 | 1)) {
                return Ok(None);
            }
            if status.code() == Some(130) && terminated.is_some() {
                return Ok(terminated);
            }
            return Err(format!("the batch ended with {:?}: {}", status.code(), errors(child)).into());
        }
        if started.elapsed() > PATIENCE {
            _ = child.kill();
            return Err("the play takes too long".into());
        }
        thread::sleep(Duration::from_millis(1));
    }
}
