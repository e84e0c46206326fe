//! Runs a batch whose process is killed and terminated repeatedly.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::answers::Faults;
use super::checker::{self, Found, faults};
use super::files::{Files, faketime};
use super::invoice;
use super::provider::Provider;

/// The settings of a chaos test.
#[derive(Debug, Clone)]
pub(crate) struct Play {
    /// The program `formwork`.
    pub(crate) formwork: PathBuf,
    /// The folder for the files of the test, which must not exist.
    pub(crate) folder: PathBuf,
    pub(crate) rows: u64,
    pub(crate) kills: u32,
    /// The number of times that the process gets SIGTERM.
    pub(crate) terms: u32,
    pub(crate) concurrency: u32,
    pub(crate) faults: Faults,
    /// Set the clock back by an hour for every second process, with the command `faketime`.
    pub(crate) clock_back: bool,
    /// The small file system that the batch fills, or `None` to use the normal one.
    pub(crate) disk: Option<Disk>,
}

/// A tmpfs that has the size `small` until it is full, and `large` afterwards.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    pub(crate) small: String,
    pub(crate) large: String,
}

/// The outcome of a chaos test.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) found: Found,
    pub(crate) kills: u32,
    pub(crate) terms: u32,
    pub(crate) seconds: f64,
    pub(crate) max_open: usize,
    pub(crate) integrity: String,
    /// The number of times that the disk was full.
    pub(crate) full: u32,
}

impl Seen {
    /// Returns the errors.
    pub(crate) fn faults(&self) -> Vec<String> {
        faults(&self.found, &self.integrity)
    }
}

/// The time limit of a test.
const PATIENCE: Duration = Duration::from_secs(1800);

/// Runs a chaos test.
pub(crate) fn play(play: &Play) -> Result<Seen, String> {
    let text = |error: std::io::Error| error.to_string();
    fs::create_dir_all(&play.folder).map_err(text)?;
    if play.clock_back && faketime().is_none() {
        return Err("the command `faketime` is missing: install it (Debian package `faketime`), or leave --clock-back out".to_owned());
    }
    let provider = Provider::start(play.faults)?;
    let files = Files::write(&play.folder, 0..play.rows, &invoice::contract(), &provider.section("m"))?;
    if let Some(disk) = &play.disk {
        fs::create_dir_all(&files.out).map_err(text)?;
        mount(&["-t", "tmpfs", "-o", &format!("size={}", disk.small), "tmpfs"], &files.out)?;
    }
    let started = Instant::now();
    let played = kill_and_resume(play, &provider, &files, started);
    let seconds = started.elapsed().as_secs_f64();
    let seen = played.and_then(|Counts { kills, terms, full, counts }| {
        let found = Found { counts, ..checker::check(&files.out, 0..play.rows, &provider.record())? };
        let integrity = files.integrity()?;
        Ok(Seen { found, kills, terms, seconds, max_open: provider.max_open(), integrity, full })
    });
    if play.disk.is_some() {
        _ = Command::new("umount").arg(&files.out).status();
    }
    seen
}

fn mount(arguments: &[&str], at: &Path) -> Result<(), String> {
    let done = Command::new("mount").args(arguments).arg(at).stderr(Stdio::null()).status();
    match done {
        Ok(status) if status.success() => Ok(()),
        _ => Err("this machine mounts no file system in memory: leave --full-disk out".to_owned()),
    }
}

/// Checks that a process that ended itself left no call without an end, from the numbers of calls at each interruption up to its end.
fn drained(counts: &[[usize; 3]]) -> Result<(), String> {
    let before = counts.iter().nth_back(1).map_or(0, |[.., uncertain]| *uncertain);
    match counts.last() {
        Some([.., after]) if *after > before => {
            Err(format!("SIGTERM left {} uncertain calls", after - before))
        }
        _ => Ok(()),
    }
}

/// Sends a signal to a process.
pub(crate) fn signal(name: &str, process: &Child) -> Result<(), String> {
    let mut kill = Command::new("sh");
    kill.args(["-c", "kill -s \"$0\" \"$1\"", name, &process.id().to_string()]);
    kill.status().map(drop).map_err(|error| error.to_string())
}

fn start(play: &Play, files: &Files, is_first: bool, kills: u32) -> Result<Child, String> {
    let mut command = files.command(&play.formwork, is_first, play.clock_back && kills % 2 == 1);
    command.args(["--concurrency", &play.concurrency.to_string()]);
    command.spawn().map_err(|error| format!("{}: {error}", play.formwork.display()))
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
    provider: &Provider,
    files: &Files,
    started: Instant,
) -> Result<Counts, String> {
    let mut seen = Counts::default();
    let count = || files.counted().map(|(known, uncertain)| [known, provider.calls(), uncertain]);
    // A quarter more rows may wait for their results to be stored.
    let open = play.concurrency as usize * 5 / 4;
    loop {
        let done = seen.kills + seen.terms;
        let mut child = start(play, files, done == 0 && seen.full == 0, done)?;
        // The interruptions are spread over the expected number of calls, at moments independent of the batch, the signals over the
        // kills.
        let all = play.kills + play.terms;
        let step = play.rows as usize * 14 / 10 / (all as usize + 1);
        let at = step * (done as usize + 1) + (done as usize * 37) % 50;
        let is_term = u64::from(seen.terms) * u64::from(all) < u64::from(play.terms) * u64::from(done + 1);
        let mut is_draining = false;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
                break Some(status);
            }
            if is_term && done < all && !is_draining && provider.calls() >= at {
                signal("TERM", &child)?;
                is_draining = true;
            }
            if !is_term && done < all && provider.calls() >= at {
                provider.kill("kill -9", open, || {
                    child.kill().and_then(|()| child.wait()).map(drop).map_err(|error| error.to_string())
                })?;
                seen.kills += 1;
                break None;
            }
            if started.elapsed() > PATIENCE {
                _ = child.kill();
                return Err("the play takes too long".to_owned());
            }
            thread::sleep(Duration::from_millis(1));
        };
        if status.is_none() || play.disk.is_none() || seen.full > 0 {
            seen.counts.push(count()?);
        }
        let Some(status) = status else { continue };
        let mut line = String::new();
        if let Some(mut stderr) = child.stderr.take() {
            _ = std::io::Read::read_to_string(&mut stderr, &mut line);
        }
        match (status.code(), &play.disk) {
            (Some(0 | 1), _) => return Ok(seen),
            (Some(130), _) if is_draining => {
                seen.terms += 1;
                drained(&seen.counts)?;
            }
            (Some(2), Some(disk)) if line.contains("full") && seen.full == 0 => {
                seen.full += 1;
                // The calls whose answers found no space on the disk are repeated.
                provider.kill("full disk", open, || Ok(()))?;
                mount(&["-o", &format!("remount,size={}", disk.large)], &files.out)?;
            }
            (code, _) => return Err(format!("the batch ended with {code:?}: {line}")),
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
