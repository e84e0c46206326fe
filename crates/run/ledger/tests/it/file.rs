use std::fs;
use std::path::Path;

use formwork_core::evidence::{Index, Summary};
use formwork_core::{Time, Trust, Warning, WarningKind};
use formwork_ledger::{Error, Ledger, NewKey, Prune, RunQuery, Settings, StoredRun};
use rusqlite::Connection;

use crate::given::{NOW, retried};

fn open(path: &Path) -> Result<Ledger, Error> {
    Ledger::open(path, Settings::default())
}

#[cfg(unix)]
#[test]
fn the_owner_alone_reads_the_file_and_its_journal_whatever_their_mode_was() {
    use std::os::unix::fs::PermissionsExt as _;
    for before in [None, Some(0o644), Some(0o666), Some(0o600), Some(0o640)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        if let Some(mode) = before {
            drop(open(&path).unwrap());
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let ledger = open(&path).unwrap();
        ledger.record(retried(NOW));
        ledger.flush_blocking().unwrap();
        let files: Vec<_> = fs::read_dir(folder.path()).unwrap().map(Result::unwrap).collect();
        assert!(files.len() > 1, "the journal is there");
        for file in files {
            assert_eq!(
                file.metadata().unwrap().permissions().mode() & 0o777,
                0o600,
                "{:?} {before:?}",
                file.path()
            );
        }
    }
}

#[test]
fn other_files_are_refused_and_left_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("other.db");
    Connection::open(&database).unwrap().execute_batch("CREATE TABLE mine (x)").unwrap();
    let lines = folder.path().join("scores.jsonl");
    fs::write(&lines, "{\"score\": 1}\n").unwrap();
    let text = folder.path().join("notes.txt");
    fs::write(&text, "hi").unwrap();
    for (path, says) in [
        (&database, "other.db is not a ledger of formwork: it is another program's database"),
        (&lines, "scores.jsonl is not a ledger of formwork: it looks like JSON Lines"),
        (&text, "notes.txt is not a ledger of formwork"),
    ] {
        let before = fs::read(path).unwrap();
        let error = open(path).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
        assert_eq!(fs::read(path).unwrap(), before);
    }
    let error = open(&folder.path().join("no/such/folder.db")).unwrap_err();
    assert!(matches!(&error, Error::File { .. }) && error.to_string().contains("folder.db"), "{error}");
    assert!(matches!(open(folder.path()).unwrap_err(), Error::File { .. }));
}

#[test]
fn an_empty_file_becomes_a_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    fs::write(&path, "").unwrap();
    open(&path).unwrap();
    open(&path).unwrap();
}

#[test]
fn a_newer_file_is_one_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    drop(open(&path).unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let error = open(&path).unwrap_err();
    assert!(matches!(error, Error::Newer { found: 99, .. }));
    assert!(error.to_string().contains("use a newer version of formwork"), "{error}");
}

#[test]
fn a_file_without_warnings_is_brought_up_to_date_and_keeps_its_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let ledger = open(&path).unwrap();
    ledger.record(retried(NOW));
    ledger.close();
    drop(ledger);
    let file = Connection::open(&path).unwrap();
    file.execute_batch("DROP VIEW spend; CREATE VIEW spend AS SELECT name FROM key").unwrap();
    for (table, column) in [
        ("key", "period"),
        ("key", "period_start"),
        ("key", "spent_before"),
        ("key", "tpm"),
        ("key", "max_open"),
        ("spending", "process"),
        ("attempt", "finish"),
        ("attempt", "answered"),
    ] {
        file.execute_batch(&format!("ALTER TABLE {table} DROP COLUMN {column}")).unwrap();
    }
    file.execute_batch("DROP TABLE daily_reason; DROP TABLE daily_run; DROP VIEW answers; DROP TABLE answer; DROP TABLE spent; DROP VIEW runs; ALTER TABLE run DROP COLUMN evidence; ALTER TABLE run DROP COLUMN trust; ALTER TABLE run DROP COLUMN not_stated; ALTER TABLE run DROP COLUMN warnings; CREATE VIEW runs AS SELECT id FROM run; PRAGMA user_version = 3")
        .unwrap();
    drop(file);
    let ledger = open(&path).unwrap();
    let mut warned = retried(NOW);
    let warning =
        Warning::new(WarningKind::DuplicateKey, "the name occurs twice").at("$.name".parse().unwrap());
    warned.warnings.push(warning.clone());
    warned.not_stated.push("$.birth".parse().unwrap());
    let trust = Trust::of(&serde_json::json!({"birth": null, "age": 3}), &[], &[], &warned.not_stated, &[]);
    warned.trust = Some(trust.clone());
    let evidence = Index::new("aged 3").evidence(&serde_json::json!({"age": 3}), None);
    let evidence = Summary::of(&evidence, &serde_json::json!({"age": 3}));
    warned.evidence = Some(evidence);
    let id = warned.id;
    ledger.record(warned);
    ledger.flush_blocking().unwrap();
    let runs = ledger.runs(&RunQuery::default()).unwrap().runs;
    let expected = |run: &StoredRun| if run.id == id { vec![warning.clone()] } else { Vec::new() };
    let histories = |run: &StoredRun| {
        run.trust == (run.id == id).then(|| trust.clone())
            && run.evidence == (run.id == id).then_some(evidence)
    };
    assert!(runs.iter().all(histories), "{runs:?}");
    let not_stated = |run: &StoredRun| run.not_stated.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert!(runs.iter().all(|run| not_stated(run).len() == usize::from(run.id == id)), "{runs:?}");
    // Runs of older files are in the sums of their days.
    assert_eq!(ledger.overview(Time(0)).unwrap().all.runs, 2);
    assert!(runs.len() == 2 && runs.iter().all(|run| run.warnings == expected(run)), "{runs:?}");
}

#[test]
fn two_ledgers_on_one_file_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let writers: Vec<_> = (0..2)
        .map(|_| {
            let ledger = open(&path).unwrap();
            std::thread::spawn(move || {
                for nth in 0..400 {
                    ledger.record(retried(NOW));
                    if nth % 40 == 0 {
                        ledger.flush_blocking().unwrap();
                    }
                }
                ledger.close();
                ledger.health()
            })
        })
        .collect();
    for writer in writers {
        let health = writer.join().unwrap();
        assert_eq!((health.recorded, health.shed_runs, health.errors), (400, 0, 0));
    }
    let ledger = open(&path).unwrap();
    assert_eq!(ledger.runs(&RunQuery { limit: 1000, ..RunQuery::default() }).unwrap().runs.len(), 800);
    let tool = Connection::open(&path).unwrap();
    let runs: u32 = tool.query_row("SELECT runs FROM hours", [], |row| row.get(0)).unwrap();
    assert_eq!(runs, 800);
}

#[test]
fn the_documented_views_can_be_read_by_any_tool() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let ledger = open(&path).unwrap();
    let (key, _) = ledger.add_key(NewKey { budget: Some(2_500_000), ..NewKey::new("k") }, NOW).unwrap();
    ledger.record(retried(NOW).with_key(Some(key.id)));
    ledger.close();
    let tool = Connection::open(&path).unwrap();
    let readme = include_str!("../../README.md");
    for view in ["runs", "attempts", "violations", "reasons", "hours", "spend"] {
        let rows = tool.prepare(&format!("SELECT * FROM {view}")).unwrap();
        let columns: Vec<_> = rows.column_names().map(|name| format!("`{name}`")).collect();
        let line = readme.lines().find(|line| line.starts_with(&format!("| `{view}` |"))).unwrap_or_default();
        let documented: Vec<_> = line
            .split('|')
            .nth(3)
            .unwrap_or_default()
            .split(',')
            .map(|name| name.trim().to_owned())
            .collect();
        assert_eq!(documented, columns, "README has the columns of `{view}`");
        let count: i64 =
            tool.query_row(&format!("SELECT count(*) FROM {view}"), [], |row| row.get(0)).unwrap();
        assert!(count > 0, "{view}");
    }
}

#[test]
fn pruning_gives_the_space_back_to_the_file_system() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let size = || {
        let ledger = Ledger::open(&path, Settings { bodies: true, ..Settings::default() }).unwrap();
        (ledger, fs::metadata(&path).unwrap().len())
    };
    let (ledger, _) = size();
    for _ in 0..1500 {
        let mut run = retried(NOW);
        run.request = Some("x".repeat(2000));
        ledger.record(run);
    }
    drop(ledger);
    let (ledger, full) = size();
    let all = Prune { runs: Some(formwork_core::Time(u64::MAX)), ..Prune::default() };
    assert_eq!(ledger.prune(all).unwrap().runs, 1500);
    drop(ledger);
    let (_, pruned) = size();
    assert!(pruned < full / 10, "{pruned} of {full}");
}

#[test]
fn a_pruned_text_is_in_no_file_of_the_ledger() {
    const SECRET: &str = "Maria Lindqvist";
    let all = Some(Time(u64::MAX));
    for (prune, deletes_runs) in
        [(Prune { runs: all, ..Prune::default() }, true), (Prune { bodies: all, ..Prune::default() }, false)]
    {
        for (runs, length) in [(1, 1), (40, 1), (3, 900), (30, 40_000)] {
            let folder = tempfile::tempdir().unwrap();
            let settings = Settings { bodies: true, ..Settings::default() };
            let ledger = Ledger::open(folder.path().join("ledger.db"), settings).unwrap();
            for _ in 0..runs {
                let mut run = retried(NOW);
                run.message = deletes_runs.then(|| SECRET.to_owned());
                run.request = Some(SECRET.repeat(length));
                run.calls[1].answer = Some(format!("{} {SECRET}", "x".repeat(length)));
                ledger.record(run);
            }
            ledger.flush_blocking().unwrap();
            let files = || {
                let files = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
                let has = |path: &std::path::PathBuf| {
                    fs::read(path).unwrap().windows(SECRET.len()).any(|text| text == SECRET.as_bytes())
                };
                files.filter(has).collect::<Vec<_>>()
            };
            assert!(!files().is_empty());
            ledger.prune(prune).unwrap();
            assert_eq!(files(), [""; 0].map(std::path::PathBuf::from), "{runs} runs, {length} times");
        }
    }
}

#[test]
fn a_ledger_is_read_where_sqlite_can_make_no_files_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let ledger = open(&path).unwrap();
    ledger.record(retried(NOW));
    drop(ledger);
    // As on a read-only file system, and on a full disk.
    fs::create_dir(folder.path().join("ledger.db-shm")).unwrap();
    assert!(matches!(open(&path), Err(Error::File { .. })));
    let state = || (fs::read(&path).unwrap(), fs::read_dir(folder.path()).unwrap().count());
    let before = state();
    let ledger = Ledger::view(&path).unwrap();
    assert_eq!(ledger.runs(&RunQuery::default()).unwrap().runs.len(), 1);
    ledger.record(retried(NOW));
    drop(ledger);
    assert!(before == state(), "the folder is as it was");
}

#[test]
fn an_error_of_a_file_that_cannot_be_opened_says_what_helps() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let error = || Ledger::open(&path, Settings::default()).unwrap_err().to_string();
    std::fs::write(&path, [b"SQLite format 3\0".as_slice(), &[7; 8192]].concat()).unwrap();
    let damaged = error();
    assert!(damaged.contains("restore a backup of it, or move it away together with its files"), "{damaged}");
    std::fs::remove_file(&path).unwrap();
    drop(Ledger::open(&path, Settings::default()).unwrap());
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let locked = error();
    assert!(locked.ends_with("locked: another process holds it; try again when that has ended"), "{locked}");
    let missing = folder.path().join("nothing");
    let error = Ledger::open(missing.join("x.db"), Settings::default()).unwrap_err().to_string();
    assert!(error.ends_with(&format!("x.db: the folder {} does not exist", missing.display())), "{error}");
}
