//! The batches of a folder, for the page of admins. They are only read.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use formwork_batch::{BatchError, Control, Progress, Stop, View};

use super::table::{Cell, Table, sum};

/// The maximum number of batches on the page: the last ones by name.
const MAX: usize = 100;

/// A folder that is a batch, or contains folders of batches.
#[derive(Debug)]
pub(crate) struct Batches {
    folder: PathBuf,
    /// The time at which each batch was displayed last, and the number of its rows with a result at that time.
    progress: Mutex<HashMap<PathBuf, (Instant, u64)>>,
}

impl Batches {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, progress: Mutex::default() }
    }

    /// Returns a table of the batches, and one of the reasons for rows without a value if there are any.
    pub(super) fn tables(&self) -> Vec<Table> {
        let (mut rows, mut reasons) = (Vec::new(), Vec::new());
        for folder in self.folders() {
            let name = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned();
            let view = match View::open(&folder) {
                Ok(view) => view,
                Err(BatchError::NoBatch(_)) => continue,
                // The file was written by another version, or is not a batch's.
                Err(error) => {
                    rows.push(unreadable(&name, &error));
                    continue;
                }
            };
            match view.progress().and_then(|progress| Ok((state(&view, &progress)?, progress))) {
                Ok((state, progress)) => {
                    let rate = self.rate(&folder, progress.finished());
                    rows.push(vec![
                        name.as_str().into(),
                        view.spec().source.as_str().into(),
                        state.into(),
                        progress.rows.into(),
                        progress.accepted.into(),
                        progress.rejected.into(),
                        progress.calls.into(),
                        rate.map_or("-".to_owned(), |rate| format!("{rate:.0}")).into(),
                        sum(progress.micro_usd, progress.unpriced, "calls").into(),
                    ]);
                    let reason = |(reason, rows): (&String, &u64)| {
                        vec![name.as_str().into(), reason.into(), rows.into()]
                    };
                    reasons.extend(progress.reasons.iter().map(reason));
                }
                Err(error) => rows.push(unreadable(&name, &error)),
            }
        }
        let head = "batch | from | state | rows | accepted | rejected | calls | rows a minute | US dollars";
        let mut tables = vec![Table { title: "Batches", head, rows }];
        if !reasons.is_empty() {
            let head = "batch | reason | rows";
            tables.push(Table { title: "Rejected rows of batches", head, rows: reasons });
        }
        tables
    }

    fn folders(&self) -> Vec<PathBuf> {
        if is_batch(&self.folder) {
            return vec![self.folder.clone()];
        }
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut folders: Vec<_> = entries.map(|entry| entry.path()).filter(|path| is_batch(path)).collect();
        folders.sort();
        folders.split_off(folders.len().saturating_sub(MAX))
    }

    /// Returns how many rows a minute got a result since the page was shown before.
    fn rate(&self, folder: &Path, finished: u64) -> Option<f64> {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, rows) = progress.insert(folder.to_owned(), (Instant::now(), finished))?;
        let minutes = before.elapsed().as_secs_f64() / 60.0;
        (minutes > 0.0).then(|| finished.saturating_sub(rows) as f64 / minutes)
    }
}

fn unreadable(name: &str, error: &BatchError) -> Vec<Cell> {
    vec![name.into(), "".into(), error.into()]
}

fn is_batch(folder: &Path) -> bool {
    folder.join("ledger.db").is_file()
}

fn state(view: &View, progress: &Progress) -> Result<&'static str, BatchError> {
    if progress.open() == 0 {
        return Ok("done");
    }
    Ok(match (view.process(), view.control()?) {
        (Some(_), Control::Run) => "running",
        (Some(_), _) => "stopping",
        (None, Control::Stop(Stop::Paused)) => "paused",
        (None, Control::Stop(Stop::Cancelled)) => "cancelled",
        (None, _) => "interrupted",
    })
}

#[cfg(test)]
mod tests {
    use formwork_batch::{Batch, Row, Spec};
    use serde_json::json;

    use super::*;

    fn shown(batches: &Batches) -> String {
        batches.tables().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn batches_of_a_folder_are_shown_with_their_numbers_and_nothing_of_them_is_markup() {
        let folder = tempfile::tempdir().unwrap();
        let rows = (0..3).map(|nth| Ok(Row::new(nth, format!("row {nth}"))));
        let spec = Spec::new(json!({}), "<script>alert(1)</script>.jsonl");
        drop(Batch::create(folder.path().join("b<i>"), &spec, rows).unwrap());
        fs::create_dir(folder.path().join("other")).unwrap();
        fs::create_dir(folder.path().join("broken")).unwrap();
        fs::write(folder.path().join("broken").join("ledger.db"), "no database").unwrap();
        for root in [folder.path().to_owned(), folder.path().join("b<i>")] {
            let batches = Batches::new(root.clone());
            let out = shown(&batches);
            let expected = "<td>&#60;script&#62;alert(1)&#60;/script&#62;.jsonl</td>";
            assert!(out.contains("<td>b&#60;i&#62;</td>") && out.contains(expected), "{out}");
            let cells = ["interrupted", "3", "0", "0", "0", "-", ""];
            assert!(out.contains(&cells.map(|cell| format!("<td>{cell}")).join("</td>")), "{out}");
            assert!(!out.contains("<script>") && !out.contains("<td>other"), "{out}");
            assert_eq!(out.contains("<td>broken"), root == folder.path(), "{out}");
            let out = shown(&batches);
            assert!(out.contains(&["<td>0</td>"; 4].concat()), "{out}");
        }
    }
}
