//! The file that keeps observations between processes: the targets that run away, with the schemas.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// The lifetime of an entry. Entries expire because vendors replace the model behind a name.
const LASTS: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The maximum number of lines before outdated lines are removed.
const MAX_LINES: usize = 1_000;

/// A file with one JSON object per line. The last line for a target and schema applies, so that several processes can
/// append to the file at once.
#[derive(Debug)]
pub(super) struct File(PathBuf);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Line {
    /// The identity of the target: its address and model.
    pub(super) target: String,
    /// The digest of the schema.
    pub(super) schema: String,
    /// Whether the target ran away; `false` if it completed a document later.
    pub(super) ran_away: bool,
    /// Seconds since 1970.
    at: u64,
}

impl File {
    /// Opens a file, which does not have to exist, and returns the entries that apply. Invalid lines are ignored, because a
    /// lost observation costs only one call.
    pub(super) fn open(path: PathBuf) -> (Self, Vec<Line>) {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let mut known: Vec<Line> = Vec::new();
        let oldest = now().saturating_sub(LASTS.as_secs());
        for line in text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok()) {
            known.retain(|old| (&old.target, &old.schema) != (&line.target, &line.schema));
            if line.ran_away && line.at >= oldest {
                known.push(line);
            }
        }
        if text.lines().count() > MAX_LINES {
            let whole: String = known.iter().map(to_line).collect();
            if let Err(error) = replace(&path, &whole) {
                tracing::warn!(target: "formwork", "{}: {error}", path.display());
            }
        }
        (Self(path), known)
    }

    /// Appends an entry. A failure is only logged as a warning, because the next process can repeat the observation.
    pub(super) fn note(&self, target: &str, schema: &str, ran_away: bool) {
        let line = Line { target: target.to_owned(), schema: schema.to_owned(), ran_away, at: now() };
        if let Err(error) = append(&self.0, &to_line(&line)) {
            tracing::warn!(target: "formwork", "{}: {error}", self.0.display());
        }
    }
}

fn to_line(line: &Line) -> String {
    serde_json::to_string(line).unwrap_or_default() + "\n"
}

fn append(path: &Path, line: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    // A single write of a short line does not interleave with writes of other processes.
    OpenOptions::new().create(true).append(true).open(path)?.write_all(line.as_bytes())
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let beside = path.with_extension(format!("{}.tmp", std::process::id()));
    fs::write(&beside, text)?;
    fs::rename(beside, path)
}

fn now() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_applies_and_outdated_or_invalid_lines_do_not() {
        let folder = std::env::temp_dir().join(format!("formwork-observations-{}", std::process::id()));
        let path = folder.join("deep/observations.jsonl");
        let (file, known) = File::open(path.clone());
        assert_eq!(known, []);
        for (target, schema, ran_away) in
            [("a", "1", true), ("b", "1", true), ("a", "2", true), ("a", "1", false), ("b", "1", true)]
        {
            file.note(target, schema, ran_away);
        }
        append(&path, "no JSON\n{\"target\": \"c\", \"schema\": \"1\", \"ran_away\": true, \"at\": 1}\n")
            .unwrap();
        let found = |known: Vec<Line>| -> Vec<(String, String)> {
            known.into_iter().map(|line| (line.target, line.schema)).collect()
        };
        let expected = [("a".to_owned(), "2".to_owned()), ("b".to_owned(), "1".to_owned())];
        assert_eq!(found(File::open(path.clone()).1), expected);
        // A long file is reduced to the entries that apply.
        (0..MAX_LINES).for_each(|_| append(&path, "\n").unwrap());
        assert_eq!(found(File::open(path.clone()).1), expected);
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
        assert_eq!(found(File::open(path).1), expected);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_written_is_no_error() {
        let folder = std::env::temp_dir();
        let (file, known) = File::open(folder.clone());
        file.note("a", "1", true);
        assert_eq!((known, folder.is_dir()), (vec![], true));
    }
}
