//! A batch whose process is killed again and again.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::checker::{self, Found};
use super::provider::{Faults, Provider};

/// What is played.
#[derive(Debug, Clone)]
pub(crate) struct Play {
    /// The command `formwork`.
    pub(crate) formwork: PathBuf,
    /// A folder for the files of the play; it must not exist.
    pub(crate) folder: PathBuf,
    pub(crate) rows: u64,
    pub(crate) kills: u32,
    pub(crate) concurrency: u32,
    pub(crate) faults: Faults,
    /// Set the size of the file system of the batch back to the first number when it is full; see [`Disk`].
    pub(crate) disk: Option<Disk>,
}

/// A small file system in memory, which the batch fills.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    pub(crate) small: String,
    pub(crate) large: String,
}

/// What was seen.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) found: Found,
    pub(crate) kills: u32,
    /// The calls that had no answer at the moments of the kills, by the provider's count.
    pub(crate) open_at_kills: usize,
    pub(crate) seconds: f64,
    pub(crate) max_open: usize,
    pub(crate) integrity: String,
    /// How often the disk was full.
    pub(crate) full: u32,
}

/// The longest time of a play.
const PATIENCE: Duration = Duration::from_secs(1800);

/// Plays it.
pub(crate) fn play(play: &Play) -> Result<Seen, String> {
    let text = |error: std::io::Error| error.to_string();
    fs::create_dir_all(&play.folder).map_err(text)?;
    let provider = Provider::start(play.faults)?;
    let files = Files::write(&play.folder, play.rows, &provider)?;
    if let Some(disk) = &play.disk {
        fs::create_dir_all(&files.out).map_err(text)?;
        mount(&["-t", "tmpfs", "-o", &format!("size={}", disk.small), "tmpfs"], &files.out)?;
    }
    let started = Instant::now();
    let played = kill_and_resume(play, &provider, &files, started);
    let seconds = started.elapsed().as_secs_f64();
    let seen = played.and_then(|(kills, open_at_kills, full)| {
        let found = checker::check(&files.out, play.rows, &provider.record())?;
        let integrity = integrity(&files.out.join("ledger.db"))?;
        Ok(Seen { found, kills, open_at_kills, seconds, max_open: provider.max_open(), integrity, full })
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

/// The files of a play.
pub(crate) struct Files {
    pub(crate) rows: PathBuf,
    pub(crate) contract: PathBuf,
    pub(crate) config: PathBuf,
    pub(crate) out: PathBuf,
}

impl Files {
    /// Writes the rows, the contract and the configuration into a folder.
    pub(crate) fn write(folder: &Path, count: u64, provider: &Provider) -> Result<Self, String> {
        let text = |error: std::io::Error| error.to_string();
        let at = |name: &str| folder.join(name);
        let files = Self {
            rows: at("rows.jsonl"),
            contract: at("number.json"),
            config: at("play.toml"),
            out: at("out"),
        };
        let mut rows = BufWriter::new(File::create(&files.rows).map_err(text)?);
        for row in 0..count {
            writeln!(rows, "{{\"id\":\"row-{row}\",\"input\":\"This is document {row} of the archive.\"}}")
                .map_err(text)?;
        }
        rows.flush().map_err(text)?;
        let contract = r#"{"type":"object","properties":{"number":{"type":"integer"},"check":{"type":"integer"}},"required":["number","check"],"additionalProperties":false}"#;
        fs::write(&files.contract, contract).map_err(text)?;
        let config = format!(
            "[providers.played]\nkind = \"llama-server\"\nmodel = \"m\"\nstream = false\nbase_url = \"http://{}/v1\"\n\
             first_timeout_seconds = 1.0\ntimeout_seconds = 1.5\nprice = {{ input = 1.0, output = 1.0 }}\n",
            provider.address()
        );
        fs::write(&files.config, config).map_err(text)?;
        Ok(files)
    }
}

fn start(play: &Play, files: &Files, is_first: bool) -> Result<Child, String> {
    let mut command = Command::new(&play.formwork);
    command.args(["batch", if is_first { "run" } else { "resume" }]);
    if is_first {
        command.arg(&files.rows).arg("--contract").arg(&files.contract).arg("--out");
    }
    command.arg(&files.out).arg("--config").arg(&files.config);
    command.args(["--concurrency", &play.concurrency.to_string(), "--json"]);
    command.env_remove("FORMWORK_MODEL").env_remove("FORMWORK_CONFIG");
    // No file of this play is another one's, what was learnt of the provider included.
    command.env("FORMWORK_CACHE", play.folder.join("cache"));
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().map_err(|error| format!("{}: {error}", play.formwork.display()))
}

/// Returns the kills, the calls that were open then, and how often the disk was full.
fn kill_and_resume(
    play: &Play,
    provider: &Provider,
    files: &Files,
    started: Instant,
) -> Result<(u32, usize, u32), String> {
    let (mut kills, mut open, mut full) = (0, 0, 0);
    loop {
        let mut child = start(play, files, kills == 0 && full == 0)?;
        // The kills are spread over the calls that are expected, at moments that have nothing to do with the batch.
        let step = play.rows as usize * 14 / 10 / (play.kills as usize + 1);
        let at = step * (kills as usize + 1) + (kills as usize * 37) % 50;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
                break Some(status);
            }
            if kills < play.kills && provider.calls() >= at {
                open += provider.open();
                child.kill().map_err(|error| error.to_string())?;
                child.wait().map_err(|error| error.to_string())?;
                kills += 1;
                break None;
            }
            if started.elapsed() > PATIENCE {
                _ = child.kill();
                return Err("the play takes too long".to_owned());
            }
            thread::sleep(Duration::from_millis(1));
        };
        let Some(status) = status else { continue };
        let mut said = String::new();
        if let Some(mut stderr) = child.stderr.take() {
            _ = std::io::Read::read_to_string(&mut stderr, &mut said);
        }
        match (status.code(), &play.disk) {
            (Some(0 | 1), _) => return Ok((kills, open, full)),
            (Some(2), Some(disk)) if said.contains("full") && full == 0 => {
                full += 1;
                mount(&["-o", &format!("remount,size={}", disk.large)], &files.out)?;
            }
            (code, _) => return Err(format!("the batch ended with {code:?}: {said}")),
        }
    }
}

/// Returns what SQLite says of the file: `ok`.
pub(crate) fn integrity(path: &Path) -> Result<String, String> {
    let text = |error: rusqlite::Error| error.to_string();
    let file = rusqlite::Connection::open(path).map_err(text)?;
    file.query_row("PRAGMA integrity_check", [], |row| row.get(0)).map_err(text)
}
