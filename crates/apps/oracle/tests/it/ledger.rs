//! Ledgers on disk, and recovery after a crash.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use formwork_oracle::ScoreEvent;
use formwork_oracle::ledger::{Damaged, Entries, Ledger, MAX_LINE};

use crate::support::{Events, answer, builder, documents, wallet, with};

/// Creates a folder for one test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("formwork-ledger-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("ledger.jsonl")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

async fn events() -> Vec<ScoreEvent> {
    let events = Events::default();
    for documents_of in [vec![answer(610)], vec![with("/score", 1001), answer(610)], vec![with("/score", -1)]]
    {
        let oracle = builder(&documents(&documents_of)).with_observer(events.clone()).build().unwrap();
        oracle.score(&wallet()).await.unwrap();
    }
    events.of()
}

fn read(file: &Path) -> (Vec<ScoreEvent>, Vec<Damaged>) {
    let (mut events, mut damaged) = (Vec::new(), Vec::new());
    for entry in Entries::open(file).unwrap() {
        match entry.unwrap() {
            Ok(event) => events.push(event),
            Err(line) => damaged.push(line),
        }
    }
    (events, damaged)
}

#[tokio::test]
async fn what_is_appended_is_read_again() {
    let (folder, events) = (Folder::new("again"), events().await);
    Ledger::open(folder.file()).unwrap().append(&events[0]).unwrap();
    let ledger = Ledger::open_synced(folder.file()).unwrap();
    ledger.append(&events[1]).unwrap();
    ledger.append(&events[2]).unwrap();
    assert_eq!(read(&folder.file()), (events, vec![]));
    assert_eq!((ledger.lost(), ledger.path()), (0, folder.file().as_path()));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(folder.file()).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "others may not read it");
    }
}

#[tokio::test]
async fn a_line_that_was_not_finished_costs_only_itself() {
    let (folder, events) = (Folder::new("torn"), events().await);
    let ledger = Ledger::open(folder.file()).unwrap();
    ledger.append(&events[0]).unwrap();
    ledger.append(&events[1]).unwrap();
    // The process died in the middle of its second line.
    let whole = fs::read(folder.file()).unwrap();
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap();
    for cut in [first + 2, first + 200, whole.len() - 1] {
        fs::write(folder.file(), &whole[..cut]).unwrap();
        Ledger::open(folder.file()).unwrap().append(&events[2]).unwrap();
        let (read, damaged) = read(&folder.file());
        if cut == whole.len() - 1 {
            assert_eq!((read.len(), damaged), (3, vec![]), "only the line feed was missing");
            continue;
        }
        assert_eq!(read, [events[0].clone(), events[2].clone()]);
        assert_eq!(damaged.len(), 1);
        assert!(damaged[0].to_string().starts_with("line 2 is skipped: "), "{}", damaged[0]);
    }
}

#[tokio::test]
async fn damaged_lines_are_named_and_the_rest_is_read() {
    let (folder, events) = (Folder::new("damaged"), events().await);
    let line = serde_json::to_string(&events[0]).unwrap();
    let mut file = fs::File::create(folder.file()).unwrap();
    file.write_all(b"\xff\xfe\n{}\n\n  \n").unwrap();
    writeln!(file, "{line}\r").unwrap();
    file.write_all(&vec![b'x'; MAX_LINE + 10]).unwrap();
    writeln!(file, "\n{line}").unwrap();
    write!(file, "{}", &line[..40]).unwrap();
    let (read, damaged) = read(&folder.file());
    assert_eq!(read, [events[0].clone(), events[0].clone()]);
    let lines: Vec<u64> = damaged.iter().map(|line| line.line).collect();
    assert_eq!(lines, [1, 2, 6, 8]);
    assert!(damaged[1].message.contains("missing field"), "{}", damaged[1]);
    assert!(damaged[2].message.contains("more than"), "{}", damaged[2]);
    assert!(damaged[3].message.contains("not finished"), "{}", damaged[3]);
}

#[tokio::test]
async fn many_write_at_once_and_every_line_is_whole() {
    let (folder, events) = (Folder::new("many"), events().await);
    std::thread::scope(|scope| {
        for event in &events {
            let (one, other) = (Ledger::open(folder.file()).unwrap(), Ledger::open(folder.file()).unwrap());
            scope.spawn(move || (0..100).for_each(|_| one.append(event).unwrap()));
            scope.spawn(move || (0..100).for_each(|_| other.append(event).unwrap()));
        }
    });
    let (read, damaged) = read(&folder.file());
    assert_eq!((read.len(), damaged), (600, vec![]));
}

#[tokio::test]
async fn what_cannot_be_written_is_counted_and_the_score_is_there() {
    let folder = Folder::new("full");
    let error = Ledger::open(&folder.0).unwrap_err().to_string();
    assert!(error.starts_with("cannot write the ledger ") && error.contains("ledger-"), "{error}");
    // `/dev/full` is always full.
    #[cfg(target_os = "linux")]
    {
        let ledger = Ledger::open("/dev/full").unwrap();
        let oracle = builder(&documents(&[answer(610)])).with_observer(ledger.clone()).build().unwrap();
        assert_eq!(oracle.score(&wallet()).await.unwrap().answer.score, 610);
        assert_eq!(ledger.lost(), 1);
    }
    let error = Entries::open(&folder.0.join("none.jsonl")).unwrap_err().to_string();
    assert!(error.contains("none.jsonl"), "{error}");
}
