//! Runs the command like people and scripts.

#![expect(clippy::unwrap_used, reason = "a test may simply fail")]

mod absence;
mod batch;
mod batch_api;
mod batch_ends;
mod batch_store;
mod batch_tables;
mod calibrate;
#[path = "../../../../measure/src/chaos/play/mod.rs"]
mod chaos;
mod chat;
mod check;
mod coercion;
mod config;
mod doctor;
mod ensemble;
mod eval;
mod eval_live;
mod evidence;
mod exits;
#[cfg(feature = "local")]
mod extract;
mod finding;
mod help;
#[cfg(all(feature = "local", unix))]
mod interrupt;
mod ledger;
mod lower;
#[path = "../../../../measure/src/mixed.rs"]
mod mixed;
#[cfg(feature = "local")]
mod models;
mod money;
mod oracle;
mod oracle_serve;
mod precision;
mod protocols;
mod read;
#[cfg(unix)]
mod readme;
mod redaction;
mod requirements;
mod review;
mod rows;
mod serve;
mod settings;
mod shape;
mod skill;
mod stream;
#[cfg(target_os = "linux")]
mod terminal;
#[cfg(all(feature = "local", target_os = "linux"))]
mod threads;
#[cfg(feature = "local")]
#[path = "../../../providers/local/tests/it/tiny.rs"]
mod tiny;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The error of a part of a chaos test.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The result of a run of the command.
struct Ran {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Ran {
    /// The rows on standard output.
    fn rows(&self) -> Vec<serde_json::Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Runs `formwork` with these arguments and this standard input.
fn formwork(args: &[&str], stdin: impl AsRef<[u8]>) -> Ran {
    run(command(args), stdin)
}

/// `formwork` with these arguments, piped standard streams, and no configuration from the environment of the caller.
fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_formwork"));
    command.args(args).env_remove("FORMWORK_MODEL").env_remove("FORMWORK_CONFIG");
    // Tests run concurrently, and the threads of several models would only wait for each other.
    command.env("CANDLE_NUM_THREADS", "1");
    // The evidence of one test about a target must not count in another test, nor in the user's own commands.
    let test = std::thread::current().name().unwrap_or("thread").replace("::", "-");
    command.env("FORMWORK_OBSERVATIONS", folder().join(format!("observations-{test}.jsonl")));
    command.env("FORMWORK_STORE", folder().join(format!("store-{test}.db")));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a command with this standard input.
fn run(mut command: Command, stdin: impl AsRef<[u8]>) -> Ran {
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let bytes = stdin.as_ref().to_vec();
    // A command with invalid arguments does not read its input, so the write may fail.
    let feed = std::thread::spawn(move || drop(input.write_all(&bytes)));
    let output = child.wait_with_output().unwrap();
    feed.join().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// A file in the repository's `examples/`.
fn example(name: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "examples", name].iter().collect();
    path.display().to_string()
}

/// Asserts that the run printed one line with this text on standard error, and nothing on standard output.
fn refused(ran: &Ran, code: i32, says: &str) {
    assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{says}: {}", ran.stderr);
    assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains(says), "{says}: {}", ran.stderr);
    assert!(ran.stderr.lines().count() == 1 && ran.stderr.len() < 1000, "{}", ran.stderr);
}

/// Returns the violations of the output by its published schema.
fn against_schema(name: &str, printed: &serde_json::Value) -> Vec<String> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "schemas", name].iter().collect();
    let schema = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let compiled = formwork_schema::compile(&schema).unwrap();
    let mut report = formwork_core::Report::default();
    formwork_core::Validator::validate(&*compiled, printed, &formwork_core::Context::EMPTY, &mut report);
    report.violations().iter().map(ToString::to_string).collect()
}

/// A folder for the files of this test run.
fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A file with this content that is deleted with the test.
fn temporary(name: &str, content: impl AsRef<[u8]>) -> String {
    static WRITTEN: AtomicUsize = AtomicUsize::new(0);

    let path = folder().join(name);
    // The file is written atomically, because concurrent tests write the same file and others read it.
    let part = folder().join(format!("{name}.{}", WRITTEN.fetch_add(1, Ordering::SeqCst)));
    std::fs::write(&part, content).unwrap();
    std::fs::rename(part, &path).unwrap();
    path.display().to_string()
}
