//! The ledger file of a command, and the text form of times, durations and amounts of money.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use formwork_core::Time;
use formwork_ledger::{Error, Ledger, Redaction, Settings, format_usd};
use time::UtcDateTime;

use crate::exit::Failed;
use crate::redaction;

/// The environment variable with the file of the ledger.
const LEDGER: &str = "FORMWORK_LEDGER";

/// The name of the ledger file in the cache folder.
const NAME: &str = "ledger.db";

// The recording of runs: whether, and in which file.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Recording {
    /// Record the runs in this SQLite file, for `formwork runs` [default: FORMWORK_LEDGER, else no recording]
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Record also the texts of prompts and answers, without API keys
    #[arg(long)]
    ledger_bodies: bool,
}

impl Recording {
    /// Returns a recording in this file, without texts.
    pub(crate) fn at(path: &Path) -> Self {
        Self { ledger: Some(path.to_owned()), ledger_bodies: false }
    }

    /// Returns whether texts are recorded.
    pub(crate) const fn keeps_bodies(&self) -> bool {
        self.ledger_bodies
    }

    /// Opens the ledger, if runs are recorded.
    pub(crate) fn open(&self) -> Result<Option<Ledger>, Failed> {
        let path = self.ledger.clone().or_else(of_environment);
        let redaction = Redaction::default().with_function(redaction::redacted);
        let settings = Settings { bodies: self.ledger_bodies, redaction, ..Settings::default() };
        path.map(|path| Ledger::open(path, settings)).transpose().map_err(Failed::usage)
    }
}

// The ledger that a command reads or changes.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Place {
    /// The ledger file [default: FORMWORK_LEDGER, else ledger.db in the cache folder of formwork]
    #[arg(long, value_name = "FILE", global = true)]
    ledger: Option<PathBuf>,
}

impl Place {
    fn path(&self) -> Result<PathBuf, Failed> {
        let own = || formwork::cache_folder().map(|folder| folder.join(NAME));
        let path = self.ledger.clone().or_else(of_environment).or_else(own);
        path.ok_or_else(|| Failed::usage("there is no home folder for a ledger: name a file with --ledger"))
    }

    /// Opens an existing ledger, also one that cannot be written.
    pub(crate) fn read(&self) -> Result<Ledger, Failed> {
        read(&self.existing()?).map_err(Failed::usage)
    }

    /// Opens an existing ledger.
    pub(crate) fn open(&self) -> Result<Ledger, Failed> {
        Ledger::open(self.existing()?, Settings::default()).map_err(Failed::usage)
    }

    fn existing(&self) -> Result<PathBuf, Failed> {
        let path = self.path()?;
        if !path.exists() {
            return Err(Failed::usage(format!(
                "there is no ledger {}: `formwork extract --ledger FILE` and `formwork keys add` write one",
                path.display()
            )));
        }
        Ok(path)
    }

    /// Opens a ledger, or creates it.
    pub(crate) fn make(&self) -> Result<Ledger, Failed> {
        let path = self.path()?;
        if self.ledger.is_none()
            && let Some(folder) = path.parent()
        {
            // Opening the file reports errors of the folder.
            let _ = std::fs::create_dir_all(folder);
        }
        Ledger::open(path, Settings::default()).map_err(Failed::usage)
    }
}

/// Opens a ledger to read it, as it is if it cannot be written.
pub(crate) fn read(path: &Path) -> Result<Ledger, Error> {
    Ledger::open(path, Settings::default()).or_else(|error| match error {
        Error::File { .. } => Ledger::view(path),
        error => Err(error),
    })
}

fn of_environment() -> Option<PathBuf> {
    std::env::var_os(LEDGER).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Returns whether a file is an SQLite database according to its first bytes, or becomes one according to its name.
pub(crate) fn is_database(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(16).read_to_end(&mut head));
    match read {
        Ok(bytes) if bytes > 0 => head == b"SQLite format 3\0",
        _ => path
            .extension()
            .is_some_and(|ending| ["db", "sqlite", "sqlite3"].iter().any(|known| ending == *known)),
    }
}

/// Returns the failure for an error of the ledger.
pub(crate) fn failed(error: Error) -> Failed {
    match error {
        Error::NoSuchRun(_) | Error::NoSuchKey { .. } => Failed::no_answer(error),
        error => Failed::usage(error),
    }
}

/// Returns the time of the system clock.
pub(crate) fn now() -> Time {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}

/// Parses an amount of the command line. Returns it in millionths of a US dollar.
pub(crate) fn usd(text: &str) -> Result<u64, String> {
    formwork_ledger::parse_usd(text).map_err(|error| error.to_string())
}

/// Formats an amount for people.
pub(crate) fn dollars(micro: Option<u64>) -> String {
    micro.map_or_else(|| "-".to_owned(), |micro| format!("${}", format_usd(micro)))
}

/// Parses a duration of the command line (`30m`, `12h`, `90d`). Returns it in milliseconds.
pub(crate) fn duration(text: &str) -> Result<u64, String> {
    const UNITS: [(char, u64); 5] = [('s', 1), ('m', 60), ('h', 3600), ('d', 86_400), ('w', 7 * 86_400)];
    /// 100 years in milliseconds.
    const MAX: u64 = 100 * 365 * 86_400 * 1000;
    let wrong = || {
        "expected a duration such as 30m, 12h or 90d: a whole number from 1 with s, m, h, d or w".to_owned()
    };
    let (seconds, number) = UNITS
        .iter()
        .find_map(|(unit, seconds)| Some((*seconds, text.strip_suffix(*unit)?)))
        .ok_or_else(wrong)?;
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let millis = number.parse::<u64>().ok().and_then(|number| number.checked_mul(seconds * 1000));
    match millis {
        Some(0) | None => Err(wrong()),
        Some(millis) if millis > MAX => Err("expected a duration of at most 100 years".to_owned()),
        Some(millis) => Ok(millis),
    }
}

/// Formats a time for people, in UTC: `2026-11-22 16:25:03`.
pub(crate) fn moment(time: Time) -> String {
    let seconds = i64::try_from(time.0 / 1000).unwrap_or(i64::MAX);
    let moment = UtcDateTime::from_unix_timestamp(seconds).unwrap_or(UtcDateTime::MAX);
    let (hour, minute, second) = moment.as_hms();
    format!("{} {hour:02}:{minute:02}:{second:02}", moment.date())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_whole_numbers_with_a_unit() {
        for (text, seconds) in
            [("1s", 1), ("30m", 1800), ("12h", 43_200), ("90d", 7_776_000), ("2w", 1_209_600)]
        {
            assert_eq!(duration(text), Ok(seconds * 1000), "{text}");
        }
        for text in
            ["", "d", "90", "0d", "-1d", "+1d", "1.5h", "1 d", "1y", "90D", "99999999999999999999d", "40000d"]
        {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn moments_are_dates_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_399, "2000-02-28 23:59:59"),
            (951_782_400, "2000-02-29 00:00:00"),
            (1_709_251_199, "2024-02-29 23:59:59"),
            (1_767_225_599, "2025-12-31 23:59:59"),
            (1_795_364_703, "2026-11-22 16:25:03"),
            (4_107_542_400, "2100-03-01 00:00:00"),
        ] {
            assert_eq!(moment(Time(seconds * 1000)), text);
        }
    }
}
