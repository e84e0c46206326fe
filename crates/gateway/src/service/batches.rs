//! The batches of a folder, for the page of admins. They are only read.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use formwork_batch::{BatchError, Control, Progress, Stop, View};
use formwork_ledger::format_usd;

use super::html::row;

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

    /// Writes a table of the batches, and the reasons for rows without a value.
    pub(super) fn write(&self, out: &mut String) {
        out.push_str(
            "<h2>Batches</h2><table><tr><th>batch<th>from<th>state<th>rows<th>accepted<th>rejected<th>calls<th>rows a minute\
             <th>US dollars</tr>",
        );
        let mut reasons = String::new();
        for folder in self.folders() {
            let name = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned();
            let view = match View::open(&folder) {
                Ok(view) => view,
                Err(BatchError::NoBatch(_)) => continue,
                // The file was written by another version, or is not a batch's.
                Err(error) => {
                    row(out, &[&name, "", &error.to_string()]);
                    continue;
                }
            };
            match view.progress().and_then(|progress| Ok((state(&view, &progress)?, progress))) {
                Ok((state, progress)) => {
                    let rate = self.rate(&folder, progress.finished());
                    let numbers = [progress.rows, progress.accepted, progress.rejected, progress.calls];
                    let [rows, accepted, rejected, calls] = numbers.map(|number| number.to_string());
                    let source = &view.spec().source;
                    let rate = rate.map_or("-".to_owned(), |rate| format!("{rate:.0}"));
                    row(
                        out,
                        &[&name, source, state, &rows, &accepted, &rejected, &calls, &rate, &cost(&progress)],
                    );
                    for (reason, rows) in &progress.reasons {
                        row(&mut reasons, &[&name, reason, &rows.to_string()]);
                    }
                }
                Err(error) => row(out, &[&name, "", &error.to_string()]),
            }
        }
        out.push_str("</table>");
        if !reasons.is_empty() {
            _ = write!(
                out,
                "<h2>Rejected rows of batches</h2><table><tr><th>batch<th>reason<th>rows</tr>{reasons}</table>"
            );
        }
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

fn cost(progress: &Progress) -> String {
    let known = format_usd(progress.micro_usd);
    if progress.unpriced == 0 {
        known
    } else {
        format!("{known}, and {} calls without a price", progress.unpriced)
    }
}

#[cfg(test)]
mod tests {
    use formwork_batch::{Batch, Row, Spec};
    use serde_json::json;

    use super::super::html::escaped;
    use super::*;

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
            let mut out = String::new();
            batches.write(&mut out);
            let expected = format!("<td>{}", escaped("<script>alert(1)</script>.jsonl"));
            assert!(out.contains("<td>b&lt;i&gt;") && out.contains(&expected), "{out}");
            assert!(out.contains("<td>interrupted<td>3<td>0<td>0<td>0<td>-<td>"), "{out}");
            assert!(!out.contains("<script>") && !out.contains("<td>other"), "{out}");
            assert_eq!(out.contains("<td>broken"), root == folder.path(), "{out}");
            let mut out = String::new();
            batches.write(&mut out);
            assert!(out.contains("<td>0<td>0<td>0<td>0<td>"), "{out}");
        }
    }
}
