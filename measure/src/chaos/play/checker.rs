//! Compares the results of a batch with the provider's own record.

use std::collections::HashMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::files::{Files, counts_of_rows};
use super::invoice;
use super::record::{InFlight, Record, digest};
use crate::Failure;

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
    /// Rows with their own value, but not all of it as the provider sent it.
    pub(crate) changed: Vec<u64>,
    /// The number of calls that the provider received and the results do not contain: repeated after a kill, or missing.
    pub(crate) repeated: usize,
    /// The maximum number of such calls: those in flight at the kills.
    pub(crate) max_repeated: usize,
    /// Rows with more such calls than are uncertain in the store, or were in flight at the kills.
    pub(crate) forgotten: Vec<u64>,
    /// The calls and interruptions of the first five of these rows.
    pub(crate) histories: Vec<String>,
    /// Rows whose results contain calls that the provider never received.
    pub(crate) invented: Vec<u64>,
    /// Rows with calls of more than one model: they continued at workers of another configuration.
    pub(crate) mixed: Vec<u64>,
    /// The numbers of calls at the kills and at the end: with a known end in the store, received by the provider, uncertain.
    pub(crate) counts: Vec<[usize; 3]>,
    /// The maximum number of calls that began within any second.
    pub(crate) most_per_second: usize,
    /// The number of calls that may have an end although the provider did not receive them.
    pub(crate) unsent: usize,
    /// The calls in flight at the kills.
    pub(crate) in_flight: InFlight,
    /// The number of calls that could be open at all kills.
    pub(crate) most_in_flight: usize,
    /// The maximum time between a response and the kill before which the batch had not stored it.
    pub(crate) oldest: Duration,
    /// SQLite's report on the state of the batch: `ok`. Empty if its files were not examined.
    pub(crate) integrity: String,
}

impl Found {
    /// Compares the results of these rows with the provider's record, and examines the files of the batch.
    pub(crate) fn of(files: &Files, rows: Range<u64>, record: &Record) -> Result<Self, Failure> {
        Ok(Self { integrity: files.integrity()?, ..check(&files.out, rows, record)? })
    }

    /// Returns the errors, among them that of SQLite's check of the files.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (what, rows) in [
            ("lost", &self.lost),
            ("doubled", &self.doubled),
            ("crossed", &self.crossed),
            ("changed", &self.changed),
            ("with calls that were never made", &self.invented),
            ("with calls of several models", &self.mixed),
            ("whose results have fewer calls than the kills explain", &self.forgotten),
        ] {
            if !rows.is_empty() {
                let first: Vec<_> = rows.iter().take(5).collect();
                faults.push(format!("{} rows {what}: {first:?}", rows.len()));
            }
        }
        faults.extend(self.histories.iter().cloned());
        let wrong = |[known, received, uncertain]: &&[usize; 3]| {
            *known > received + self.unsent || *received > known + uncertain
        };
        if let Some([known, received, uncertain]) = self.counts.iter().find(wrong) {
            faults.push(format!(
                "the provider received {received} calls, and the store has {known} with an end and {uncertain} uncertain ones"
            ));
        }
        if self.repeated > self.max_repeated {
            faults.push(format!(
                "{} calls are not in the results, and the kills explain {}",
                self.repeated, self.max_repeated
            ));
        }
        if !matches!(self.integrity.as_str(), "" | "ok") {
            faults.push(format!("integrity_check: {}", self.integrity));
        }
        faults
    }

    /// Compares the value of a row with the provider's document.
    fn value(&mut self, row: u64, value: &Value, record: &Record) {
        let was_sent = record.of(row).iter().any(|call| call.is_right);
        // A value that was made of the parts of several answers was never sent as a whole.
        if value["number"] != row || (!was_sent && *value != invoice::right(row)) {
            self.crossed.push(row);
        } else if *value != invoice::right(row) {
            self.changed.push(row);
        }
    }

    /// Compares the answers of a rejected row, in their order, with those that the provider sent.
    fn calls(&mut self, row: u64, calls: &[Value], record: &Record) {
        let mut sent = record.of(row).iter();
        for call in calls {
            let text = call["text"].as_str().unwrap_or_default();
            if call["verdict"]["failure"].is_null() {
                return self.crossed.push(row);
            }
            if !text.is_empty() && !sent.any(|call| call.text == digest(text)) {
                return self.changed.push(row);
            }
        }
    }

    /// Compares the calls that a row's results do not contain with the uncertain ones of the store and with those that were in flight
    /// at the kills.
    fn repeated(&mut self, row: u64, calls: usize, uncertain: usize) {
        self.repeated += calls;
        let ages = self.in_flight.ages.get(&row).map(Vec::as_slice).unwrap_or_default();
        match ages.get(..calls) {
            Some(ages) => self.oldest = ages.last().copied().unwrap_or_default().max(self.oldest),
            None if calls > uncertain => self.forgotten.push(row),
            // A call that the store has as uncertain is explained, however long its answer had been there: a process that gets no time to run
            // stores nothing. There are never more of them than calls that can be open.
            None => self.max_repeated = (self.max_repeated + calls - ages.len()).min(self.most_in_flight),
        }
    }
}

/// Reads the result files of a folder, and compares these rows with the provider's record.
fn check(folder: &Path, rows: Range<u64>, record: &Record) -> Result<Found, Failure> {
    let record = &record.within(&rows);
    let in_flight = record.in_flight();
    let mut found = Found {
        calls: record.calls(),
        most_per_second: record.most_per_second(),
        max_repeated: in_flight.all,
        most_in_flight: record.most_in_flight(),
        in_flight,
        unsent: rows.clone().map(|row| record.unsent(row)).sum(),
        ..Found::default()
    };
    // The number of results of each row, and of the calls in them.
    let mut seen: HashMap<u64, (usize, usize)> = HashMap::new();
    let entries = fs::read_dir(folder)?;
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
            let calls = if name.starts_with("part-") {
                found.accepted += 1;
                found.value(row, &line["value"], record);
                line["calls"].as_u64().unwrap_or_default() as usize
            } else {
                found.rejected += 1;
                let calls = line["calls"].as_array().map(Vec::as_slice).unwrap_or_default();
                found.calls(row, calls, record);
                calls.len()
            };
            let received = record.of(row).len();
            if calls > received + record.unsent(row) {
                found.invented.push(row);
            }
            let calls = calls.min(received);
            let (times, known) = seen.entry(row).or_default();
            *times += 1;
            *known += calls;
        }
    }
    found.lost = rows.filter(|row| !seen.contains_key(row)).collect();
    found.doubled = seen.iter().filter(|(_, (times, _))| *times > 1).map(|(row, _)| *row).collect();
    found.doubled.sort_unstable();
    let stored = counts_of_rows(folder)?;
    for row in record.rows() {
        let known = seen.get(&row).map_or(0, |(_, known)| *known);
        if record.of(row).windows(2).any(|calls| calls[0].model != calls[1].model) {
            found.mixed.push(row);
        }
        let missing = record.of(row).len().saturating_sub(known);
        if missing > 0 {
            let uncertain = stored.get(&row).map_or(0, |(_, uncertain)| *uncertain);
            found.repeated(row, missing, uncertain);
        }
    }
    found.forgotten.sort_unstable();
    found.histories = found.forgotten.iter().take(5).map(|row| record.history(*row)).collect();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::answers::{Act, Answer};
    use super::super::record::STORED;
    use super::*;

    /// A change of the correct results and rejected rows.
    type Bug = fn(&mut Vec<Value>, &mut Vec<Value>);

    fn played(record: &mut Record, row: u64, act: Act) -> String {
        let nth = record.begin(row, &Value::Null);
        let answer = Answer::of(act, row, nth, &Value::Null);
        record.answered(row, nth, &answer);
        record.end(row, nth);
        answer.text
    }

    fn folder(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("formwork-checker-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    fn checked(name: &str, record: &mut Record, bug: Bug) -> Vec<String> {
        let mut lines = Vec::new();
        for row in 0..14 {
            if row % 3 == 0 {
                played(record, row, Act::Sum);
            }
            played(record, row, Act::Right);
            lines.push(serde_json::json!({
                "id": format!("row-{row}"), "value": invoice::right(row), "calls": if row % 3 == 0 { 2 } else { 1 },
            }));
        }
        let texts = [Act::Missing, Act::Type].map(|act| played(record, 14, act));
        let call = |text| serde_json::json!({"text": text, "verdict": {"failure": {"kind": "invalid"}}});
        let mut rejected = vec![serde_json::json!({"id": "row-14", "calls": texts.map(call)})];
        bug(&mut lines, &mut rejected);
        let folder = folder(name);
        for (file, lines) in [("part-00001.jsonl", lines), ("rejected-00001.jsonl", rejected)] {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            fs::write(folder.join(file), text).expect("a file");
        }
        let found = check(&folder, 0..15, record).expect("results");
        fs::remove_dir_all(&folder).expect("a folder");
        found.faults()
    }

    #[test]
    fn planted_bugs_are_found() {
        let cases: [(&str, Bug, &str); 14] = [
            ("right", |_, _| (), ""),
            ("lost", |lines, _| drop(lines.remove(4)), "1 rows lost: [4]"),
            ("doubled", |lines, _| lines.push(lines[4].clone()), "1 rows doubled: [4]"),
            ("crossed", |lines, _| lines[4]["value"] = lines[5]["value"].clone(), "1 rows crossed: [4]"),
            ("exchanged", |lines, _| lines.swap(1, 2), ""),
            ("skipped", |lines, _| lines[3]["calls"] = 1.into(), "fewer calls than the kills explain: [3]"),
            (
                "invented",
                |lines, _| lines[4]["calls"] = 2.into(),
                "1 rows with calls that were never made: [4]",
            ),
            ("moved", |lines, _| lines[4]["id"] = "row-5".into(), "1 rows lost: [4]"),
            ("amount", |lines, _| lines[5]["value"]["lines"][10]["amount"] = 1.into(), "1 rows changed: [5]"),
            (
                "cut",
                |lines, _| drop(lines[13]["value"]["lines"].as_array_mut().unwrap().pop()),
                "1 rows changed: [13]",
            ),
            (
                "order",
                |lines, _| lines[5]["value"]["lines"].as_array_mut().unwrap().reverse(),
                "1 rows changed: [5]",
            ),
            (
                "no note",
                |lines, _| drop(lines[8]["value"].as_object_mut().unwrap().remove("tags")),
                "1 rows changed: [8]",
            ),
            ("text", |_, rejected| rejected[0]["calls"][0]["text"] = "{}".into(), "1 rows changed: [14]"),
            (
                "turned",
                |_, rejected| rejected[0]["calls"].as_array_mut().unwrap().reverse(),
                "1 rows changed: [14]",
            ),
        ];
        for (name, bug, expected) in cases {
            let faults = checked(name, &mut Record::default(), bug).join("; ");
            assert!(
                faults.contains(expected) && faults.is_empty() == expected.is_empty(),
                "{name}: {faults}"
            );
        }
    }

    #[test]
    fn the_store_has_each_call_with_its_end_or_as_uncertain() {
        for (counts, is_wrong) in
            [([4, 5, 1], false), ([4, 4, 3], false), ([5, 4, 9], true), ([3, 5, 1], true)]
        {
            let found = Found { counts: vec![[0, 0, 0], counts], ..Found::default() };
            assert_eq!(!found.faults().is_empty(), is_wrong, "{counts:?}: {:?}", found.faults());
        }
    }

    #[test]
    fn no_more_calls_are_repeated_than_the_kills_explain() {
        for (repeated, is_wrong) in [(0, false), (2, false), (3, true)] {
            let found = Found { repeated, max_repeated: 2, ..Found::default() };
            assert_eq!(!found.faults().is_empty(), is_wrong, "{repeated}: {:?}", found.faults());
        }
    }

    /// A call without an end in the store explains one that the results do not contain, also where it was answered long before a kill.
    #[test]
    fn an_uncertain_call_of_the_store_explains_a_missing_one_of_its_row() {
        for (name, row, call, ended, is_wrong) in [
            ("open", 3, None, None, false),
            ("of another row", 4, None, None, true),
            ("with an end", 3, Some(0), Some(1), true),
            ("never made", 3, None, Some(1), true),
        ] {
            let folder = folder(name);
            let store = rusqlite::Connection::open(folder.join("store.db")).expect("a file");
            store
                .execute_batch("CREATE TABLE answer (row INTEGER, call INTEGER, ended INTEGER)")
                .expect("a table");
            store.execute("INSERT INTO answer VALUES (?, ?, ?)", (row, call, ended)).expect("a row");
            let skip: Bug = |lines, _| lines[3]["calls"] = 1.into();
            let faults = checked(name, &mut Record::default(), skip).join("");
            assert_eq!(faults.contains("fewer calls"), is_wrong, "{name}: {faults}");
        }
    }

    /// A call that was answered long before a kill, after it, or while nothing was killed, has to be in the results. One that was read
    /// after a kill may be missing if its client was gone.
    #[test]
    fn only_a_call_in_flight_at_a_kill_may_be_missing() {
        let skip: Bug = |lines, _| lines[3]["calls"] = 1.into();
        let mut record = Record::default();
        record.killed("kill", Instant::now(), Instant::now(), 1);
        assert!(checked("early", &mut record, skip).join("").contains("fewer calls"));

        let mut record = Record::default();
        played(&mut record, 3, Act::Prose);
        let from = Instant::now();
        record.killed("kill", from, from, 1);
        assert_eq!(checked("in-flight", &mut record, |_, _| ()), Vec::<String>::new());
        assert!(checked("two", &mut record.clone(), skip).join("").contains("fewer calls"));

        let mut record = Record::default();
        record.killed("kill", Instant::now(), Instant::now(), 1);
        let nth = record.begin(3, &Value::Null);
        record.end(3, nth);
        assert!(checked("unaware", &mut record.clone(), |_, _| ()).join("").contains("fewer calls"));
        record.abandoned(3, nth);
        assert_eq!(checked("abandoned", &mut record, |_, _| ()), Vec::<String>::new());

        // A stopped process counts a call whose time limit passed before it was sent.
        let unsent: Bug = |lines, _| lines[3]["calls"] = 3.into();
        let mut record = Record::default();
        assert!(checked("unsent", &mut record.clone(), unsent).join("").contains("never made"));
        record.stopped(HashMap::from([(3, 1)]));
        assert_eq!(checked("stopped", &mut record, unsent), Vec::<String>::new());

        let mut record = Record::default();
        played(&mut record, 3, Act::Prose);
        let late = Instant::now() + STORED * 2;
        record.killed("kill", late, late, 1);
        assert!(checked("late", &mut record, |_, _| ()).join("").contains("fewer calls"));
    }

    #[test]
    fn an_uncertain_call_is_explained_however_old_its_answer_is() {
        let repeated = |most_in_flight: usize, rows: &[(u64, usize, usize)]| {
            let mut in_flight = super::super::record::InFlight { all: 1, ..Default::default() };
            in_flight.ages.insert(0, vec![Duration::ZERO]);
            let mut found =
                Found { max_repeated: in_flight.all, in_flight, most_in_flight, ..Found::default() };
            rows.iter().for_each(|(row, calls, uncertain)| found.repeated(*row, *calls, *uncertain));
            found.faults().join("; ")
        };
        assert_eq!(repeated(4, &[(0, 1, 1), (1, 1, 1), (2, 2, 2)]), "");
        assert!(repeated(4, &[(1, 1, 0)]).contains("fewer calls"), "not uncertain");
        assert!(
            repeated(2, &[(0, 1, 1), (1, 1, 1), (2, 1, 1)]).contains("explain 2"),
            "more than can be open"
        );
    }
}
