//! The files of a play, and the command that works on them.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::invoice;
use crate::Failure;

/// The input, the contract, the configuration and the folder of a batch.
#[derive(Debug)]
pub(crate) struct Files {
    folder: PathBuf,
    pub(crate) rows: PathBuf,
    pub(crate) contract: PathBuf,
    pub(crate) config: PathBuf,
    pub(crate) out: PathBuf,
}

impl Files {
    /// Writes the files of a batch with these rows, whose only provider has this section.
    pub(crate) fn write(
        folder: &Path,
        rows: Range<u64>,
        contract: &Value,
        provider: &str,
    ) -> Result<Self, Failure> {
        fs::create_dir_all(folder)?;
        let at = |name: &str| folder.join(name);
        let files = Self {
            folder: folder.to_owned(),
            rows: at("rows.jsonl"),
            contract: at("invoice.json"),
            config: at("play.toml"),
            out: at("out"),
        };
        let mut lines = BufWriter::new(File::create(&files.rows)?);
        for row in rows {
            let line = json!({"id": format!("row-{row}"), "input": invoice::input(row)});
            writeln!(lines, "{line}")?;
        }
        lines.flush()?;
        fs::write(&files.contract, contract.to_string())?;
        fs::write(&files.config, format!("[providers.played]\n{provider}"))?;
        Ok(files)
    }

    /// Returns the command that starts or continues the batch, with a clock that is right or an hour slow. Its standard error
    /// is to be read.
    pub(crate) fn command(&self, formwork: &Path, is_first: bool, is_slow: bool) -> Command {
        let mut command = Command::new(formwork);
        if let Some(library) = is_slow.then(faketime).flatten() {
            // A clock that is set back does not affect the monotonic clock of timers.
            command.envs([
                ("LD_PRELOAD", library.as_str()),
                ("FAKETIME", "-1h"),
                ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
            ]);
        }
        command.args(["batch", if is_first { "run" } else { "resume" }]);
        if is_first {
            command.arg(&self.rows).arg("--contract").arg(&self.contract);
            command.arg("--store").arg(self.out.join("store.db")).arg("--out");
        }
        command.arg(&self.out).arg("--config").arg(&self.config).arg("--json");
        command.env_remove("FORMWORK_MODEL").env_remove("FORMWORK_CONFIG");
        // A separate cache keeps observations of other tests away.
        command.env("FORMWORK_CACHE", self.folder.join("cache"));
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// Returns the numbers of calls in the store while no process works on the batch: those with a known end, and the uncertain ones.
    pub(crate) fn counted(&self) -> Result<(usize, usize), Failure> {
        let counts = counts_of_rows(&self.out)?;
        Ok(counts.values().fold((0, 0), |(known, uncertain), row| (known + row.0, uncertain + row.1)))
    }

    /// Returns SQLite's report on the state of the batch: `ok`.
    pub(super) fn integrity(&self) -> Result<String, Failure> {
        let of = |name: &str| {
            let file = rusqlite::Connection::open(self.out.join(name))?;
            file.query_row("PRAGMA integrity_check", [], |row| row.get(0))
        };
        let store: String = of("store.db")?;
        Ok(if store == "ok" { of("ledger.db")? } else { store })
    }
}

/// Returns the numbers of calls of each row in the store of a folder: those with a known end, and the uncertain ones.
pub(crate) fn counts_of_rows(folder: &Path) -> Result<HashMap<u64, (usize, usize)>, Failure> {
    let store = folder.join("store.db");
    if !store.exists() {
        return Ok(HashMap::new());
    }
    let file = rusqlite::Connection::open(store)?;
    // A process that was killed early leaves a file without tables.
    let has_table = "SELECT 1 FROM sqlite_schema WHERE name = 'answer'";
    if !file.prepare(has_table).and_then(|mut select| select.exists([]))? {
        return Ok(HashMap::new());
    }
    let mut select = file
        .prepare("SELECT row, count(call), count(*) FILTER (WHERE ended IS NULL) FROM answer GROUP BY row")?;
    let number = |row: &rusqlite::Row<'_>, at| row.get::<_, i64>(at).map(i64::unsigned_abs);
    let rows = select
        .query_map([], |row| Ok((number(row, 0)?, (number(row, 1)? as usize, number(row, 2)? as usize))));
    Ok(rows?.collect::<Result<_, _>>()?)
}

/// Returns the library of the command `faketime`, if it is installed. The command itself would be killed in the place of the process.
pub(super) fn faketime() -> Option<String> {
    let output = Command::new("faketime").args(["-f", "-1h", "printenv", "LD_PRELOAD"]).output().ok()?;
    let library = String::from_utf8(output.stdout).ok()?;
    Some(library.trim().to_owned()).filter(|library| !library.is_empty())
}
