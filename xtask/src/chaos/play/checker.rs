//! Compares the results of a batch with the provider's own record.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::provider::{Act, Record};

/// The result of a check.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) accepted: usize,
    pub(crate) rejected: usize,
    /// The number of calls that the provider received.
    pub(crate) calls: usize,
    /// Rows without a result.
    pub(crate) lost: Vec<u64>,
    /// Rows with more than one result.
    pub(crate) doubled: Vec<u64>,
    /// Rows with the value of another row, or a value that the provider never sent.
    pub(crate) crossed: Vec<u64>,
    /// The number of calls that the provider received and the results do not contain: repeated after a kill, or missing.
    pub(crate) unknown: usize,
    /// Rows whose results contain calls that the provider never received.
    pub(crate) invented: Vec<u64>,
}

impl Found {
    /// Returns the errors. Up to `in_flight` calls may be missing from the results, because a kill interrupted them.
    pub(crate) fn faults(&self, in_flight: usize) -> Vec<String> {
        let mut faults = Vec::new();
        for (what, rows) in [
            ("lost", &self.lost),
            ("doubled", &self.doubled),
            ("crossed", &self.crossed),
            ("with calls that were never made", &self.invented),
        ] {
            if !rows.is_empty() {
                let first: Vec<_> = rows.iter().take(5).collect();
                faults.push(format!("{} rows {what}: {first:?}", rows.len()));
            }
        }
        if self.unknown > in_flight {
            faults.push(format!(
                "{} calls are not in the results, and {in_flight} were in flight at kills",
                self.unknown
            ));
        }
        faults
    }
}

/// Reads the result files of a folder, and compares the rows from 0 to `rows` with the provider's record.
pub(crate) fn check(folder: &Path, rows: u64, record: &Record) -> Result<Found, String> {
    let mut found = Found { calls: record.values().map(Vec::len).sum(), ..Found::default() };
    let mut seen: HashMap<u64, usize> = HashMap::new();
    let mut known = 0;
    let entries = fs::read_dir(folder).map_err(|error| error.to_string())?;
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    names.sort();
    for path in names.iter().filter(|path| path.extension().is_some_and(|ending| ending == "jsonl")) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        let text = fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).map_err(|error| format!("{name}: {error}"))?;
            let id =
                line["id"].as_str().and_then(|id| id.strip_prefix("row-")).and_then(|id| id.parse().ok());
            let row: u64 = id.ok_or_else(|| format!("{name}: an id that was never given: {}", line["id"]))?;
            *seen.entry(row).or_default() += 1;
            let played = record.get(&row).map(Vec::as_slice).unwrap_or_default();
            let calls = if name.starts_with("part-") {
                found.accepted += 1;
                let is_right = line["value"]["number"] == row && line["value"]["check"] == row * 7 % 1009;
                if !is_right || !played.contains(&Act::Right) {
                    found.crossed.push(row);
                }
                line["attempts"].as_u64().unwrap_or_default() as usize
            } else {
                found.rejected += 1;
                let attempts = line["attempts"].as_array().map(Vec::as_slice).unwrap_or_default();
                if attempts.iter().any(|attempt| attempt["verdict"]["failure"].is_null()) {
                    found.crossed.push(row);
                }
                attempts.len()
            };
            if calls > played.len() {
                found.invented.push(row);
            }
            known += calls;
        }
    }
    found.lost = (0..rows).filter(|row| !seen.contains_key(row)).collect();
    found.doubled = seen.iter().filter(|(_, times)| **times > 1).map(|(row, _)| *row).collect();
    found.doubled.sort_unstable();
    found.unknown = found.calls.saturating_sub(known);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change of one line of the correct results.
    type Bug = fn(&mut Vec<Value>);

    fn checked(name: &str, bug: Bug) -> Vec<String> {
        let record: Record = (0..10)
            .map(|row| (row, if row % 3 == 0 { vec![Act::Wrong, Act::Right] } else { vec![Act::Right] }))
            .collect();
        let mut lines: Vec<Value> = (0..10_u64)
            .map(|row| {
                serde_json::json!({
                    "id": format!("row-{row}"), "value": {"number": row, "check": row * 7 % 1009},
                    "attempts": if row % 3 == 0 { 2 } else { 1 },
                })
            })
            .collect();
        bug(&mut lines);
        let folder = std::env::temp_dir().join(format!("formwork-checker-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(folder.join("part-00001.jsonl"), text).expect("a file");
        let found = check(&folder, 10, &record).expect("results");
        fs::remove_dir_all(&folder).expect("a folder");
        found.faults(0)
    }

    #[test]
    fn planted_bugs_are_found() {
        let cases: [(&str, Bug, &str); 8] = [
            ("right", |_| (), ""),
            ("lost", |lines| drop(lines.remove(4)), "1 rows lost: [4]"),
            ("doubled", |lines| lines.push(lines[4].clone()), "1 rows doubled: [4]"),
            ("crossed", |lines| lines[4]["value"] = lines[5]["value"].clone(), "1 rows crossed: [4]"),
            ("exchanged", |lines| lines.swap(1, 2), ""),
            ("skipped", |lines| lines[3]["attempts"] = 1.into(), "1 calls are not in the results"),
            (
                "invented",
                |lines| lines[4]["attempts"] = 2.into(),
                "1 rows with calls that were never made: [4]",
            ),
            ("moved", |lines| lines[4]["id"] = "row-5".into(), "1 rows lost: [4]"),
        ];
        for (name, bug, expected) in cases {
            let faults = checked(name, bug).join("; ");
            assert!(
                faults.contains(expected) && faults.is_empty() == expected.is_empty(),
                "{name}: {faults}"
            );
        }
    }
}
