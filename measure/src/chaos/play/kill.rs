//! Runs a batch whose process is killed and terminated repeatedly.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::answers::Faults;
use super::checker::Found;
use super::files::{Files, faketime};
use super::invoice;
use super::process::{errors, killed, signal, spawned};
use super::provider::Provider;
use crate::Failure;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Play {
    /// The number of rows of the batch
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) rows: u64,
    /// The number of kills of the process
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub(crate) kills: u32,
    /// The number of times that the process gets SIGTERM
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub(crate) terms: u32,
    /// The maximum number of concurrent rows
    #[arg(long, default_value_t = 64)]
    pub(crate) concurrency: u32,
    /// The latency of a completion in milliseconds
    #[arg(long, default_value_t = 20)]
    pub(crate) latency: u64,
    /// Fill the disk once (on machines that can mount a tmpfs)
    #[arg(long)]
    pub(crate) full_disk: bool,
    /// Set the clock back by an hour for every second process, with the command `faketime` (Debian package `faketime`)
    #[arg(long)]
    pub(crate) clock_back: bool,
    /// The faults of the provider
    #[arg(skip = Faults::USUAL)]
    pub(crate) faults: Faults,
}

/// The outcome of a chaos test.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) found: Found,
    pub(crate) kills: u32,
    pub(crate) terms: u32,
    pub(crate) seconds: f64,
    pub(crate) max_open: usize,
    /// The number of times that the disk was full.
    pub(crate) full: u32,
}

impl Seen {
    /// Returns the errors.
    pub(crate) fn faults(&self) -> Vec<String> {
        self.found.faults()
    }
}

/// The time limit of a test.
const PATIENCE: Duration = Duration::from_secs(1800);

/// Runs a chaos test of the program `formwork`, with its files in a folder that must not exist.
pub(crate) fn play(play: &Play, folder: &Path, formwork: &Path) -> Result<Seen, Failure> {
    fs::create_dir_all(folder)?;
    if play.clock_back && faketime().is_none() {
        return Err("the command `faketime` is missing: install it (Debian package `faketime`), or leave --clock-back out".into());
    }
    let provider = Provider::start(play.faults, Duration::from_millis(play.latency))?;
    let files = Files::write(folder, 0..play.rows, &invoice::contract(), &provider.section("m"))?;
    if play.full_disk {
        fs::create_dir_all(&files.out)?;
        let size = format!("size={}k", 600 + play.rows / 2);
        mount(&["-t", "tmpfs", "-o", &size, "tmpfs"], &files.out)?;
    }
    let started = Instant::now();
    let played = kill_and_resume(play, formwork, &provider, &files, started);
    let seconds = started.elapsed().as_secs_f64();
    let seen = played.and_then(|Counts { kills, terms, full, counts }| {
        let found = Found { counts, ..Found::of(&files, 0..play.rows, &provider.record())? };
        Ok(Seen { found, kills, terms, seconds, max_open: provider.max_open(), full })
    });
    if play.full_disk {
        _ = Command::new("umount").arg(&files.out).status();
    }
    seen
}

fn mount(arguments: &[&str], at: &Path) -> Result<(), Failure> {
    let done = Command::new("mount").args(arguments).arg(at).stderr(Stdio::null()).status();
    match done {
        Ok(status) if status.success() => Ok(()),
        _ => Err("this machine mounts no file system in memory: leave --full-disk out".into()),
    }
}

/// Checks that a process that ended itself left no call without an end, from the numbers of calls at each interruption up to its end.
fn drained(counts: &[[usize; 3]]) -> Result<(), Failure> {
    let before = counts.iter().nth_back(1).map_or(0, |[.., uncertain]| *uncertain);
    match counts.last() {
        Some([.., after]) if *after > before => {
            Err(format!("SIGTERM left {} uncertain calls", after - before).into())
        }
        _ => Ok(()),
    }
}

/// The numbers of interruptions by kind, and the numbers of calls at each of them and at the end.
#[derive(Debug, Default)]
struct Counts {
    kills: u32,
    terms: u32,
    full: u32,
    counts: Vec<[usize; 3]>,
}

fn kill_and_resume(
    play: &Play,
    formwork: &Path,
    provider: &Provider,
    files: &Files,
    started: Instant,
) -> Result<Counts, Failure> {
    let mut seen = Counts::default();
    let count = || files.counted().map(|(known, uncertain)| [known, provider.calls(), uncertain]);
    // A quarter more rows may wait for their results to be stored.
    let open = play.concurrency as usize * 5 / 4;
    loop {
        let done = seen.kills + seen.terms;
        let is_first = done == 0 && seen.full == 0;
        let mut command = files.command(formwork, is_first, play.clock_back && done % 2 == 1);
        let mut child = spawned(command.args(["--concurrency", &play.concurrency.to_string()]))?;
        // The interruptions are spread over the expected number of calls, at moments independent of the batch, the signals over the
        // kills.
        let all = play.kills + play.terms;
        let step = play.rows as usize * 14 / 10 / (all as usize + 1);
        let at = step * (done as usize + 1) + (done as usize * 37) % 50;
        let is_term = u64::from(seen.terms) * u64::from(all) < u64::from(play.terms) * u64::from(done + 1);
        let mut is_draining = false;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break Some(status);
            }
            if is_term && done < all && !is_draining && provider.calls() >= at {
                signal("TERM", &child)?;
                is_draining = true;
            }
            if !is_term && done < all && provider.calls() >= at {
                provider.kill("kill -9", open, || Ok(killed(&mut child)?))?;
                seen.kills += 1;
                break None;
            }
            if started.elapsed() > PATIENCE {
                _ = child.kill();
                return Err("the play takes too long".into());
            }
            thread::sleep(Duration::from_millis(1));
        };
        if status.is_none() || !play.full_disk || seen.full > 0 {
            seen.counts.push(count()?);
        }
        let Some(status) = status else { continue };
        let line = errors(&mut child);
        match status.code() {
            Some(0 | 1) => return Ok(seen),
            Some(130) if is_draining => {
                seen.terms += 1;
                drained(&seen.counts)?;
            }
            Some(2) if play.full_disk && line.contains("full") && seen.full == 0 => {
                seen.full += 1;
                // The calls whose answers found no space on the disk are repeated.
                provider.kill("full disk", open, || Ok(()))?;
                mount(&["-o", "remount,size=2g"], &files.out)?;
            }
            code => return Err(format!("the batch ended with {code:?}: {line}").into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::drained;

    #[test]
    fn calls_that_a_terminated_process_leaves_without_an_end_are_found() {
        for (counts, is_drained) in [
            (&[[9, 9, 0]][..], true),
            (&[[8, 9, 1]], false),
            (&[[5, 8, 3], [20, 23, 3]], true),
            (&[[5, 8, 3], [19, 23, 4]], false),
            (&[[2, 2, 0], [5, 8, 3], [19, 23, 4]], false),
        ] {
            assert_eq!(drained(counts).is_ok(), is_drained, "{counts:?}");
        }
    }
}
