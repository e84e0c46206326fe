//! A process is killed with SIGKILL while it records and spends.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use formwork_ledger::{Ledger, NewKey, RunQuery, Settings};
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
        ledger.record(retried(NOW));
        if nth % 16 == 0 {
            let hold = ledger.reserve_blocking(key.id, 100, None, NOW).unwrap();
            println!("reserved");
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
fn a_killed_process_loses_at_most_its_last_group_and_no_spending() {
    let folder = tempfile::tempdir().unwrap();
    for lines in [1, 2, 3, 10, 57, 200] {
        let path = folder.path().join(format!("{lines}.db"));
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::child", "--nocapture"])
            .env(FILE, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut reserved, mut settled, mut flushed, mut seen) = (0, 0, 0, 0);
        let mut count = |line: &str| {
            // The test harness may have written the name of the test before the first line.
            reserved += u64::from(line.ends_with("reserved"));
            settled += u64::from(line.ends_with("settled"));
            if let Some((_, runs)) = line.split_once("flushed ") {
                flushed = runs.parse().unwrap();
            }
        };
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        while seen < lines {
            let line = output.next().unwrap().unwrap();
            seen += usize::from(
                line.ends_with("reserved") || line.ends_with("settled") || line.contains("flushed "),
            );
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
        let sum = "SELECT coalesce(sum(runs), 0) FROM hours";
        let rolled_up = tool.query_row(sum, [], |row| row.get::<_, i64>(0)).unwrap() as u64;
        assert_eq!(rolled_up, stored, "runs and rollups are committed together");
        let key = &ledger.keys().unwrap()[0];
        // The child prints each line after the commit, so the disk may have one more of each kind than there are lines.
        let settlements = key.spent / 60;
        assert_eq!(key.spent % 60, 0);
        assert!((settled..=settled + 1).contains(&settlements), "{settlements} settled, {settled} said");
        let reservations = settlements + key.held / 100;
        assert!(
            (reserved..=reserved + 1).contains(&reservations),
            "{reservations} reserved, {reserved} said"
        );
        assert!(key.held <= 100, "a call that was under way stays reserved");
    }
}
