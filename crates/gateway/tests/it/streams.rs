//! Streams: the same results as whole responses, no invalid text, and a client that disconnects ends the call.

use std::io::{Read as _, Write as _};

use formwork_ledger::{Ledger, RunQuery, Settings};
use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::support::{Gate, completion, finished, limits, openai, request, targets, ways};

#[test]
fn a_stream_comes_to_the_same_as_a_whole_answer_and_shows_nothing_wrong() {
    let cases = [
        vec![completion(r#"{"age": 34}"#)],
        vec![completion(r#"{"age": "not-an-age"}"#), completion(r#"{"age": 34}"#)],
        vec![completion("no JSON, zebra-stripes"), completion(r#"{"age": 34}"#)],
    ];
    for way in ways() {
        for replies in &cases {
            let server = Server::start(replies.clone()).unwrap();
            let gate = Gate::new(&openai(&server.url()));
            let got = gate.post(way.path, &[], &way.body("primary", true));
            let text = got.text();
            assert_eq!(got.status, 200, "{}: {text}", way.name);
            assert!(!text.contains("not-an-age") && !text.contains("zebra-stripes"), "{}: {text}", way.name);
            let documents = got.documents();
            if way.name != "ollama chat" && way.name != "ollama generate" {
                assert_eq!(got.header("content-type"), Some("text/event-stream"), "{}", way.name);
            }
            let value: Value = serde_json::from_str(&way.streamed(&documents))
                .unwrap_or_else(|_| panic!("{}: {text}", way.name));
            assert_eq!(value, json!({"age": 34}), "{}", way.name);
        }
    }
}

#[test]
fn a_stream_that_fails_ends_with_the_error_of_its_protocol() {
    for way in ways() {
        let server = Server::start([completion(r#"{"age": "old"}"#)]).unwrap();
        let gate = Gate::new(&openai(&server.url()));
        let got = gate.post(way.path, &[], &way.body("primary", true));
        let last = got.documents().pop().unwrap();
        let words = last.to_string();
        assert!(words.contains("$.age") && words.contains("violations"), "{}: {}", way.name, got.text());
        assert!(!got.text().contains("[DONE]"), "{}", way.name);
    }
}

#[test]
fn refusals_and_truncations_end_streams_in_the_words_of_their_protocol() {
    let refusal = finished(&json!({"role": "assistant", "content": null, "refusal": "I will not."}), "stop");
    let cut = finished(&json!({"role": "assistant", "content": "{\"ag"}), "length");
    for way in ways() {
        for (reply, words) in [(&refusal, "I will not."), (&cut, way.length)] {
            let server = Server::start([reply.clone()]).unwrap();
            let gate = Gate::new(&openai(&server.url()));
            let got = gate.post(way.path, &[], &way.body("primary", true)).text();
            assert!(got.contains(words), "{}: {got}", way.name);
        }
    }
}

/// The events of a server that streams this text.
fn events(pieces: &[&str]) -> Vec<u8> {
    let mut out = String::new();
    let chunk = |delta: &Value, finish: &Value| {
        let chunk = json!({
            "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m-1-2026",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        });
        format!("data: {chunk}\n\n")
    };
    for piece in pieces {
        out.push_str(&chunk(&json!({"content": piece}), &Value::Null));
    }
    out.push_str(&chunk(&json!({}), &json!("stop")));
    out.push_str("data: [DONE]\n\n");
    out.into_bytes()
}

fn streaming(url: &str) -> String {
    openai(url).replace("stream = false", "stream = true")
}

fn sent(bytes: &[u8], size: usize) -> Reply {
    Reply::pieces(bytes.chunks(size)).with_header("content-type", "text/event-stream")
}

#[test]
fn an_eager_stream_shows_the_first_attempt_in_any_chunking_and_says_if_it_does_not_hold() {
    for size in [1, 7, 10_000] {
        for way in ways().into_iter().filter(|way| !way.name.starts_with("ollama")) {
            for (pieces, holds) in [(["{\"age\"", ": 34", "}"], true), (["{\"age\"", ": 340", "}"], false)] {
                let server = Server::start([sent(&events(&pieces), size)]).unwrap();
                let gate = Gate::new(&streaming(&server.url()));
                let got = gate.post(way.path, &[("x-formwork-stream", "eager")], &way.body("primary", true));
                assert_eq!(
                    way.streamed(&got.documents()),
                    pieces.concat(),
                    "{} {size}: {}",
                    way.name,
                    got.text()
                );
                assert_eq!(got.text().contains("violations"), !holds, "{} {size}: {}", way.name, got.text());
                assert_eq!(server.received().len(), 1);
            }
        }
    }
}

/// The record says what the client got: an error, although the value holds after a conversion.
#[test]
fn an_eager_stream_that_is_taken_back_is_recorded_as_rejected() {
    let server = Server::start([sent(&events(&["{\"age\"", ": \"34\"", "}"]), 7)]).unwrap();
    let ledger = Ledger::in_memory(Settings::default()).unwrap();
    let builder = targets(&streaming(&server.url())).with_limits(limits()).with_ledger(ledger.clone());
    let (gate, way) = (Gate::start(builder), ways()[0]);
    let got = gate.post(way.path, &[("x-formwork-stream", "eager")], &way.body("primary", true));
    assert!(got.text().contains("is not the one that holds"), "{}", got.text());
    ledger.flush_blocking().unwrap();
    let run = ledger.runs(&RunQuery::default()).unwrap().runs.remove(0);
    assert_eq!(run.outcome, "rejected", "{run:?}");
}

#[test]
fn a_client_that_leaves_ends_the_call_upstream() {
    for stream in [true, false] {
        for path in ["contract", "plain"] {
            let server = Watched::start();
            let mut gate = Gate::new(&streaming(&server.url()));
            let way = ways()[0];
            let mut body = way.body("primary", stream);
            if path == "plain" {
                body.as_object_mut().unwrap().remove("response_format");
            }
            let mut socket = gate.connect();
            socket.write_all(&request(way.path, &[], body.to_string().as_bytes())).unwrap();
            if stream {
                let mut first = [0; 16];
                socket.read_exact(&mut first).unwrap();
            }
            // The head of a stream is sent before the call upstream is made.
            server.wait_for_request();
            drop(socket);
            server.wait_for_end();
            gate.stop();
        }
    }
}

/// A server with one connection that reports when the client has closed it.
struct Watched {
    address: std::net::SocketAddr,
    requested: std::sync::mpsc::Receiver<()>,
    ended: std::sync::mpsc::Receiver<()>,
}

impl Watched {
    fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (ask, requested) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut head = [0; 64 << 10];
            let _ = socket.read(&mut head);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            let _ = socket.write_all(head.as_bytes());
            let _ =
                socket.write_all(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"{\"}}]}\n\n");
            let _ = ask.send(());
            // The gateway closes the connection.
            let mut rest = Vec::new();
            let _ = socket.read_to_end(&mut rest);
            let _ = end.send(());
        });
        Self { address, requested, ended }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn wait_for_request(&self) {
        self.requested.recv_timeout(std::time::Duration::from_secs(30)).unwrap();
    }

    fn wait_for_end(&self) {
        assert!(
            self.ended.recv_timeout(std::time::Duration::from_secs(30)).is_ok(),
            "the call upstream was not ended"
        );
    }
}
