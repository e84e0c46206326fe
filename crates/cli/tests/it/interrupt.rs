//! Ctrl-C. Each run would take far longer than the test, and is interrupted after its first output.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Output};
use std::sync::LazyLock;

use candle_core::quantized::gguf_file;
use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use crate::tiny::Tiny;
use crate::{against_schema, command, folder, temporary};

/// A tiny model with a context window large enough for many retries.
static ROOMY: LazyLock<String> = LazyLock::new(|| {
    let folder = folder().join("roomy");
    std::fs::create_dir_all(&folder).unwrap();
    let tokens = gguf_file::Value::U32(8192);
    Tiny::new("llama").with("llama.context_length", tokens).write(&folder).display().to_string()
});

/// A schema with one long valid value that no model writes by chance: four hundred line breaks.
static ENDLESS: LazyLock<String> = LazyLock::new(|| {
    temporary("endless.schema.json", r#"{"type": "string", "minLength": 400, "not": {"pattern": "."}}"#)
});

fn extract(args: &[&str]) -> Child {
    command(&[&["extract", "--model", &ROOMY, "--max-tokens", "500"], args].concat()).spawn().unwrap()
}

fn interrupt(child: &Child) {
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
}

/// Returns the first line that the command writes. It has not ended then.
fn first_line(from: &mut impl BufRead) -> String {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    line
}

fn rows(text: &str) -> Vec<Value> {
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for row in &rows {
        assert_eq!(against_schema("extract-output.json", row), Vec::<String>::new(), "{row}");
    }
    rows
}

#[test]
fn the_history_so_far_is_printed() {
    let mut child = extract(&["--schema", &ENDLESS, "--json", "-v", "--max-attempts", "100", "x"]);
    drop(child.stdin.take());
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let configuration = first_line(&mut errors);
    assert!(configuration.starts_with("configuration: none"), "{configuration}");
    let asking = first_line(&mut errors);
    assert!(asking.starts_with("attempt 1: asking"), "{asking}");
    interrupt(&child);
    let mut message = String::new();
    errors.read_to_string(&mut message).unwrap();
    let Output { status, stdout, .. } = child.wait_with_output().unwrap();
    assert_eq!(status.code(), Some(130), "{message}");
    assert!(message.ends_with("error: interrupted\n"), "{message}");
    let rows = rows(&String::from_utf8(stdout).unwrap());
    assert_eq!(
        (rows.len(), &rows[0]["ok"], &rows[0]["error"]["class"]),
        (1, &json!(false), &json!("cancelled"))
    );
    let last = rows[0]["calls"].as_array().unwrap().last().unwrap();
    assert_eq!(last["verdict"]["result"], "cancelled", "{last}");
}

#[test]
fn a_further_call_that_is_interrupted_leaves_the_value() {
    let server = Server::start([crate::config::of_text(r#"{"age": 34}"#), Reply::silent()]).unwrap();
    let config = crate::evidence::config(&[("a", &server)]);
    let args =
        ["extract", "-s", "age: int", "--config", &config, "--evidence=quote", "She is trente-quatre."];
    let child = command(&args).spawn().unwrap();
    while server.received().len() < 2 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    interrupt(&child);
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    assert_eq!(status.code(), Some(130), "{}", String::from_utf8_lossy(&stderr));
    assert_eq!(String::from_utf8_lossy(&stdout).trim(), r#"{"age": 34}"#);
}

#[test]
fn rows_that_are_done_or_open_are_answered_and_no_more() {
    const ROWS: usize = 300;
    let input: Vec<String> = (0..ROWS).map(|id| json!({"id": id, "input": "x"}).to_string()).collect();
    let input = temporary("interrupted.jsonl", input.join("\n"));
    let mut child = extract(&[
        "--schema",
        &ENDLESS,
        "--jsonl",
        "--concurrency",
        "3",
        "--max-attempts",
        "1",
        "--file",
        &input,
    ]);
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut printed = first_line(&mut output);
    interrupt(&child);
    output.read_to_string(&mut printed).unwrap();
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    assert_eq!((status.code(), &*stderr), (Some(130), &b"error: interrupted\n"[..]));
    let rows = rows(&printed);
    assert!(rows.len() > 1 && rows.len() < ROWS, "{}", rows.len());
    for (index, row) in rows.iter().enumerate() {
        assert_eq!(row["id"], index);
        assert!(row["error"]["class"] == "rejected" || row["error"]["class"] == "cancelled", "{row}");
    }
    assert_eq!(rows.last().unwrap()["error"]["class"], "cancelled");
}

#[test]
fn waiting_for_the_next_row_can_be_interrupted() {
    let mut child = extract(&["--jsonl", "--concurrency", "3"]);
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    // The first row gets a result although the second row never arrives.
    input.write_all(b"{\"id\": 1, \"input\": \"x\", \"schema\": {\"type\": \"null\"}}\n").unwrap();
    let row: Value = serde_json::from_str(&first_line(&mut output)).unwrap();
    assert_eq!((&row["id"], &row["ok"]), (&json!(1), &json!(true)), "{row}");
    interrupt(&child);
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    assert_eq!((status.code(), &*stderr), (Some(130), &b"error: interrupted\n"[..]));
    drop(input);
}
