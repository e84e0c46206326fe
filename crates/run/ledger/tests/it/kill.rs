//! A process is killed with SIGKILL while it records and spends.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use formwork_core::{ErrorKind, History, Leaves, Trust, Warning, WarningKind};
use formwork_ledger::{Ledger, NewKey, RecordId, RunOutcome, RunQuery, RunRecord, Settings};
use rusqlite::Connection;

use crate::given::{NOW, retried};

/// The environment variable with the file for the child process. Without it the child's test does nothing.
const FILE: &str = "FORMWORK_LEDGER_KILLED";

/// The number of runs per commit group in the child.
const GROUP: usize = 64;

#[test]
fn child() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let settings = Settings { bodies: true, group_size: GROUP, ..Settings::default() };
    let ledger = Ledger::open(path, settings).unwrap();
    let (key, _) =
        ledger.add_key(NewKey { budget: Some(u64::from(u32::MAX)), ..NewKey::new("k") }, NOW).unwrap();
    for nth in 0_u64.. {
        let run = RunRecord { micro_usd: Some(60), ..retried(NOW) };
        let hold = (nth % 16 == 0).then(|| ledger.reserve_blocking(key.id, 100, Some(run.id), NOW).unwrap());
        if hold.is_some() {
            println!("reserved");
        }
        ledger.record(run);
        println!("recorded");
        if let Some(hold) = hold {
            hold.settle_blocking(60).unwrap();
            println!("settled");
        }
        if nth % GROUP as u64 == 0 {
            ledger.flush_blocking().unwrap();
            println!("flushed {}", nth + 1);
        }
    }
}

#[test]
fn a_killed_process_loses_no_run_and_no_spending() {
    let folder = tempfile::tempdir().unwrap();
    for lines in [1, 2, 3, 4, 10, 57, 200, 1000] {
        let path = folder.path().join(format!("{lines}.db"));
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::child", "--nocapture"])
            .env(FILE, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut reserved, mut recorded, mut settled, mut flushed, mut seen) = (0, 0, 0, 0, 0);
        let mut count = |line: &str| {
            // The test harness may have written the name of the test before the first line.
            reserved += u64::from(line.ends_with("reserved"));
            recorded += u64::from(line.ends_with("recorded"));
            settled += u64::from(line.ends_with("settled"));
            if let Some((_, runs)) = line.split_once("flushed ") {
                flushed = runs.parse().unwrap();
            }
        };
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        while seen < lines {
            let line = output.next().unwrap().unwrap();
            let marks = ["reserved", "recorded", "settled"];
            seen += usize::from(marks.iter().any(|mark| line.ends_with(mark)) || line.contains("flushed "));
            count(&line);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        output.map_while(Result::ok).for_each(|line| count(&line));

        let tool = Connection::open(&path).unwrap();
        let is_whole: String = tool.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(is_whole, "ok");
        let ledger = Ledger::open(&path, Settings::default()).unwrap();
        let stored = ledger.export(&RunQuery::default(), std::io::sink()).unwrap();
        assert!(stored >= flushed, "{stored} runs are there, {flushed} were flushed");
        assert!(
            (recorded..=recorded + 1).contains(&stored),
            "{stored} runs are there, {recorded} were recorded"
        );
        let sum = "SELECT coalesce(sum(runs), 0) FROM hours";
        let rolled_up = tool.query_row(sum, [], |row| row.get::<_, i64>(0)).unwrap() as u64;
        assert_eq!(rolled_up, stored, "runs and rollups are committed together");
        let key = &ledger.keys().unwrap()[0];
        // The child prints each line after the commit, so the disk may have one more of each kind than there are lines.
        let settlements = key.spent / 60;
        assert_eq!(key.spent % 60, 0);
        assert!((settled..=settled + 1).contains(&settlements), "{settlements} settled, {settled} said");
        // The run of a settlement that the process did not reach has its cost.
        assert_eq!(settlements, stored.div_ceil(16), "{stored} runs");
        let reservations = settlements + key.held / 100;
        assert!(
            (reserved..=reserved + 1).contains(&reservations),
            "{reservations} reserved, {reserved} said"
        );
        assert!(key.held <= 100, "a call that was under way stays reserved");
    }
}

#[test]
fn the_next_process_records_what_a_killed_one_left_with_its_cost_and_without_texts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let later = Settings { bodies: true, group_delay: Duration::from_secs(600), ..Settings::default() };
    let killed = Ledger::open(&path, later).unwrap();
    let (key, _) = killed.add_key(NewKey::new("k"), NOW).unwrap();
    let mut run = RunRecord { micro_usd: Some(60), key: Some(key.id), ..retried(NOW) };
    run.tags = vec!["sk-0123456789abcdef0123".to_owned()];
    run.request = Some("a private request".to_owned());
    run.warnings = vec![Warning::new(WarningKind::Rounded, "0.1 was rounded").at("$.price".parse().unwrap())];
    run.not_stated = vec!["$.city".parse().unwrap()];
    let counted = Leaves { count: 2, paths: vec!["$.a".parse().unwrap()] };
    let trust = Trust { leaves: 3, free: 1, other: [(History::Coerced, counted)].into() };
    run.trust = Some(trust.clone());
    let doubted = run.clone();
    std::mem::forget(killed.reserve_blocking(key.id, 100, Some(run.id), NOW).unwrap());
    let mut runs = vec![run.clone(); 101];
    runs[..100].iter_mut().for_each(|run| run.id = RecordId::next());
    let ids: Vec<_> = runs.iter().map(|run| run.id).collect();
    runs.into_iter().for_each(|run| killed.record(run));
    let mark = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_string_lossy().contains("-process-"))
        .unwrap();
    let mut text = std::fs::read_to_string(&mark).unwrap();
    assert_eq!(text.lines().count(), 102);
    assert!(!text.contains("private") && !text.contains("sk-0123"), "{text}");
    // A process that runs keeps its runs; the end of one takes its lock away, and may leave a part of a line.
    assert_eq!(Ledger::open(&path, Settings::default()).unwrap().run(ids[0]).unwrap(), None);
    text.insert_str(text.find('\n').unwrap() + 1, "42]}\n");
    text.push_str("{\"id\": \"run_");
    let unlocked = folder.path().join("copy");
    std::fs::write(&unlocked, text).unwrap();
    std::fs::rename(&unlocked, &mark).unwrap();
    for _ in 0..2 {
        let next = Ledger::open(&path, Settings::default()).unwrap();
        assert_eq!(next.export(&RunQuery::default(), std::io::sink()).unwrap(), 101);
        let found = next.run(ids[100]).unwrap().unwrap();
        assert_eq!((found.request, found.run.tags), (None, vec!["[redacted]".to_owned()]));
        // What the run was doubted for is there, as in a run that was written in time.
        assert_eq!((&found.run.warnings, &found.run.not_stated), (&doubted.warnings, &doubted.not_stated));
        assert_eq!(found.run.trust.unwrap().to_string(), trust.to_string());
        let key = next.key("k").unwrap();
        assert_eq!((key.spent, key.held), (60, 0));
        assert!(!mark.exists());
    }
}

#[test]
fn the_lines_of_runs_are_those_that_are_not_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let ledger = Ledger::open(&path, Settings::default()).unwrap();
    let marks = || {
        let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.to_string_lossy().contains("-process-")).collect::<Vec<_>>()
    };
    let length = || std::fs::read_to_string(&marks()[0]).unwrap().lines().count() - 1;
    assert!(marks().is_empty(), "a process that records nothing has no file");
    for _ in 0..50 {
        for _ in 0..40 {
            ledger.record(retried(NOW));
        }
        ledger.flush_blocking().unwrap();
        assert_eq!(length(), 0);
    }
    // Runs that cannot be written keep their lines, also when the ledger is closed, and the next process has them.
    let other = Connection::open(&path).unwrap();
    other
        .execute_batch("CREATE TRIGGER broken BEFORE INSERT ON run BEGIN SELECT RAISE(ABORT, 'broken'); END")
        .unwrap();
    (0..7).for_each(|_| ledger.record(retried(NOW)));
    ledger.flush_blocking().unwrap();
    assert_eq!(length(), 7);
    let left = ledger.close_within(Duration::from_secs(300));
    assert_eq!((left.waiting, left.runs), (7, 0));
    drop(ledger);
    assert_eq!(length(), 7);
    let next = Ledger::open(&path, Settings::default()).unwrap();
    next.release_ended().unwrap();
    drop(next);
    assert_eq!(length(), 7, "what cannot be recorded waits");
    other.execute_batch("DROP TRIGGER broken").unwrap();
    let ledger = Ledger::open(&path, Settings::default()).unwrap();
    assert_eq!(ledger.export(&RunQuery::default(), std::io::sink()).unwrap(), 2007);
    assert!(marks().is_empty());
}

#[test]
fn a_run_is_read_as_it_was_written() {
    let full = RunRecord {
        micro_usd: None,
        user: Some("Ada \"A\"\n".to_owned()),
        tags: vec!["x".to_owned()],
        cached: true,
        ..retried(NOW)
    };
    let failed =
        RunRecord { outcome: RunOutcome::Failed(ErrorKind::Budget), ..RunRecord::new("extract", NOW) };
    for run in [retried(NOW), full, failed] {
        let line = serde_json::to_string(&run).unwrap();
        assert_eq!(serde_json::from_str::<RunRecord>(&line).unwrap(), run, "{line}");
    }
}
