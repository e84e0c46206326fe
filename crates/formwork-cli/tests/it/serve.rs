//! `formwork serve`: requests over a socket, records in a ledger, and the end by a signal.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Child;
use std::time::Duration;

use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::{command, folder, formwork, refused, temporary};

/// The service as a process, which ends with the test.
struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    fn start(args: &[&str]) -> Self {
        let mut child = command(&[&["serve", "--listen", "127.0.0.1:0"], args].concat()).spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening at http://").and_then(|rest| rest.split(',').next());
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        // The output is read to its end, so that a full pipe never blocks the service.
        std::thread::spawn(move || errors.read_to_string(&mut String::new()));
        Self { child, address }
    }

    fn post(&self, path: &str, key: &str, body: &Value) -> (u16, String) {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let body = body.to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
             authorization: Bearer {key}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        socket.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A Chat Completions server whose first completion is invalid.
fn upstream() -> Server {
    let reply = |content: &str| {
        let body = json!({"choices": [{
            "index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop",
        }]});
        Reply::json(body.to_string())
    };
    Server::start([reply(r#"{"age": "old"}"#), reply(r#"{"age": 34}"#)]).unwrap()
}

fn config(server: &Server) -> String {
    let text = format!(
        "[providers.primary]\nkind = \"openai\"\nmodel = \"m\"\nstream = false\napi_key_env = \"\"\nbase_url = \"{}\"\n\
         [aliases]\nfast = \"primary\"\n",
        server.url()
    );
    temporary("serve-gateway.toml", text)
}

#[test]
fn answers_to_a_schema_are_valid_and_keys_hold_once_there_are_any() {
    let server = upstream();
    let ledger = folder().join("serve-gateway.db").display().to_string();
    let config = config(&server);
    let serving = Serving::start(&["--config", &config, "--ledger", &ledger]);
    let body = json!({
        "model": "fast", "messages": [{"role": "user", "content": "Maria, 34"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "person", "schema": {
            "type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"],
        }}},
    });
    let (status, answer) = serving.post("/v1/chat/completions", "anything", &body);
    assert_eq!(status, 200, "{answer}");
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], r#"{"age":34}"#);

    let added = formwork(&["keys", "add", "alice", "--ledger", &ledger], "");
    assert_eq!(added.code, 0, "{}", added.stderr);
    let key = added.stdout.split_whitespace().find(|word| word.starts_with("fw_")).unwrap().to_owned();
    assert_eq!(serving.post("/v1/chat/completions", "anything", &body).0, 401);
    assert_eq!(serving.post("/v1/chat/completions", &key, &body).0, 200);
    // Runs are committed in groups, a moment after the response.
    let runs = || formwork(&["runs", "list", "--ledger", &ledger], "").stdout.lines().count();
    while runs() < 2 {}
    assert_eq!(runs(), 2);
}

#[test]
fn what_cannot_be_served_is_said_before_a_model_is_asked() {
    let server = upstream();
    let config = config(&server);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let empty = folder().join("serve-empty.db").display().to_string();
    for (args, says) in [
        (
            vec!["--listen", "0.0.0.0:0", "--config", &config],
            "whoever reaches 0.0.0.0:0 could spend your money",
        ),
        (vec!["--listen", "0.0.0.0:0", "--config", &config, "--ledger", &empty], "could spend your money"),
        (vec!["--listen", &address, "--config", &config], "cannot listen at"),
        (
            vec!["--listen", "127.0.0.1:0", "--config", &config, "--contracts", "no-such-folder"],
            "no-such-folder",
        ),
        (
            vec!["--listen", "127.0.0.1:0", "--config", &config, "--cache", "60"],
            "--cache keeps values in the ledger",
        ),
        (vec!["--listen", "127.0.0.1:0", "--config", "no-such.toml"], "no-such.toml"),
        (
            vec![
                "--listen",
                "127.0.0.1:0",
                "--config",
                &config,
                "--tls-cert",
                "no.pem",
                "--tls-key",
                "no.key",
            ],
            "TLS: no.pem cannot be read",
        ),
        (vec!["--config", &config, "--ledger", "/dev/null/runs.db"], "/dev/null/runs.db"),
    ] {
        refused(&formwork(&[&["serve"], &args[..]].concat(), ""), 2, says);
    }
    assert!(server.received().is_empty());
}
