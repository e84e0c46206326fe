//! The threads of a model in the process (finding D7).

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;

use crate::command;

/// Starts `formwork read --jsonl` with this variable, waits for its answer to a row, and returns its environment's value of
/// the variable and its arguments.
fn started(threads: Option<&str>) -> (Option<String>, Vec<String>) {
    let mut reader = command(&["read", "--jsonl", "--level", "clean"]);
    reader.arg0("a name").env_remove("CANDLE_NUM_THREADS").envs(threads.map(|it| ("CANDLE_NUM_THREADS", it)));
    let mut reader = reader.spawn().unwrap();
    reader.stdin.as_mut().unwrap().write_all(b"{\"input\": \"[1]\"}\n").unwrap();
    let mut row = String::new();
    BufReader::new(reader.stdout.as_mut().unwrap()).read_line(&mut row).unwrap();
    let of_process = |file: &str| {
        let bytes = fs::read(format!("/proc/{}/{file}", reader.id())).unwrap();
        let parts = bytes.split(|byte| *byte == 0).filter(|part| !part.is_empty());
        parts.map(|part| String::from_utf8_lossy(part).into_owned()).collect::<Vec<_>>()
    };
    let environment = of_process("environ");
    let value = environment.iter().find_map(|line| line.strip_prefix("CANDLE_NUM_THREADS="));
    let found = (value.map(str::to_owned), of_process("cmdline"));
    drop(reader.stdin.take());
    assert!(reader.wait().unwrap().success(), "{row}");
    found
}

#[test]
fn an_installed_program_computes_on_one_thread_unless_it_is_configured_otherwise() {
    for (given, expected) in [(None, "1"), (Some("3"), "3"), (Some("1"), "1")] {
        let (value, arguments) = started(given);
        assert_eq!(value.as_deref(), Some(expected));
        assert_eq!(arguments, ["a name", "read", "--jsonl", "--level", "clean"]);
    }
}
