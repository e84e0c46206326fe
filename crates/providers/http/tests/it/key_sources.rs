//! Keys that a command prints or a file contains.

#![cfg(unix)]

use std::time::Duration;

use formwork_core::FaultKind::Auth as NotAuthorised;
use formwork_http::{ConfigError, KeySource};
use formwork_testkit::server::Reply;
use formwork_wire::{Auth, Transport};

use crate::support::{ask, assert_fault, server, transport};

/// A command that prints `1-printed-key`, then `2-printed-key` and so on.
struct Counting(tempfile::TempDir);

impl Counting {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn command(&self) -> KeySource {
        let script = "printf x >> \"$0\"; echo \"$(wc -c < \"$0\" | tr -d ' ')-printed-key\"";
        let file = self.0.path().join("count").display().to_string();
        KeySource::command(["sh", "-c", script, &file]).unwrap()
    }
}

fn answers(statuses: &[u16]) -> Vec<Reply> {
    statuses.iter().map(|status| Reply::status(*status).with_body("one\n.\n")).collect()
}

/// Returns the keys that reach a server that answers with these statuses, in the order of its requests.
async fn sent(command: KeySource, statuses: &[u16], calls: usize) -> Vec<String> {
    let server = server(answers(statuses));
    let transport = transport(&server).with_credentials(command);
    for _ in 0..calls {
        _ = ask(transport.clone()).await;
    }
    let keys = server.received();
    keys.iter().map(|request| request.header("authorization").unwrap_or("none").to_owned()).collect()
}

#[tokio::test]
async fn a_key_is_used_until_it_is_too_old_or_refused() {
    let (one, two, three) = ("Bearer 1-printed-key", "Bearer 2-printed-key", "Bearer 3-printed-key");
    assert_eq!(sent(Counting::new().command(), &[200, 200, 200], 3).await, [one, one, one]);
    let short = Counting::new();
    let command = short.command().with_lifetime(Duration::ZERO);
    assert_eq!(sent(command, &[200, 200, 200], 3).await, [one, two, three]);
    // The refused request is sent once more with a new key, which the next request has as well.
    assert_eq!(sent(Counting::new().command(), &[401, 200, 200], 2).await, [one, two, two]);
    // A second refusal is the answer.
    assert_eq!(sent(Counting::new().command(), &[401, 401], 1).await, [one, two]);
}

#[tokio::test]
async fn no_printed_key_is_in_a_message_and_a_command_that_fails_says_why() {
    let rejected = |key: &str| Reply::status(401).with_body(format!("wrong key {key}"));
    let server = server([rejected("1-printed-key"), rejected("1-printed-key then 2-printed-key")]);
    let command = Counting::new();
    let transport = transport(&server).with_credentials(command.command());
    assert!(!format!("{transport:?}").contains("printed"));
    let fault = ask(transport.clone()).await.unwrap_err();
    assert_fault(&fault, NotAuthorised, &["401"]);
    assert!(!fault.message.contains("printed-key"), "{fault}");
    assert_eq!(transport.redact("1-printed-key and 2-printed-key"), "[redacted] and [redacted]");
}

#[tokio::test]
async fn a_command_that_fails_is_a_fault_that_says_why() {
    for (command, words) in [
        (vec!["formwork-no-such-program"], "could not be started"),
        (vec!["sh", "-c", "echo vault is sealed >&2; exit 7"], "exit status: 7: vault is sealed"),
        (vec!["sh", "-c", "printf 'two words'"], "white space"),
        (vec!["true"], "is empty"),
    ] {
        let server = server(answers(&[200]));
        let command = KeySource::command(command.clone()).unwrap();
        let transport = transport(&server).with_credentials(command);
        let fault = ask(transport).await.unwrap_err();
        assert_fault(&fault, NotAuthorised, &["gave no API key", words]);
        assert_eq!(server.received().len(), 0, "nothing is sent without a key");
    }
    assert_eq!(KeySource::command([""; 0]).unwrap_err(), ConfigError::NoCommand);
}

#[tokio::test]
async fn a_file_is_read_again_when_its_key_is_refused_and_any_header_carries_a_key() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "first-key-of-the-file\n").unwrap();
    let server = server(answers(&[200, 401, 200, 200]));
    let source = KeySource::file(file.path());
    let source = source.with_header(Auth { header: "x-api-key", prefix: "Token " }).unwrap();
    let transport = transport(&server).with_credentials(source);
    ask(transport.clone()).await.unwrap();
    std::fs::write(file.path(), "second-key-of-the-file").unwrap();
    ask(transport.clone()).await.unwrap();
    ask(transport.clone()).await.unwrap();
    let keys: Vec<String> =
        server.received().iter().map(|request| request.header("x-api-key").unwrap().to_owned()).collect();
    let [first, second] = ["Token first-key-of-the-file", "Token second-key-of-the-file"];
    assert_eq!(keys, [first, first, second, second]);
    assert_eq!(transport.redact(first), "Token [redacted]");
    drop(file);
    let gone = KeySource::file("/no/such/key").with_header_name("x-key").unwrap();
    let fault = ask(transport.with_credentials(gone)).await.unwrap_err();
    assert_fault(&fault, NotAuthorised, &["the file /no/such/key gave no API key"]);
    assert!(matches!(KeySource::file("k").with_header_name("a b"), Err(ConfigError::Header { .. })));
}
