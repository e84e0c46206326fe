//! Clients that do not read, and clients that never finish a request, beside others.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::support::{Gate, completion, limits, request, section, targets};

/// The clients that do not read, and the heads without an end.
const SILENT: usize = 24;
const HALF: usize = 200;

fn long() -> Server {
    let event = format!("data: {}\n\n", "x".repeat(1 << 16));
    Server::start([Reply::endless(event).with_header("content-type", "text/event-stream")]).unwrap()
}

fn body(model: &str, stream: bool) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": "Hi."}], "stream": stream})
}

/// Asks for a response that is never read.
fn silent(gate: &Gate) -> TcpStream {
    let mut socket = gate.connect();
    socket
        .write_all(&request("/v1/chat/completions", &[], body("long", true).to_string().as_bytes()))
        .unwrap();
    socket
}

fn wait_until(is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn others_are_served_beside_clients_that_do_not_read_and_heads_without_an_end() {
    let (long, short) = (long(), Server::start([completion("Hello.")]).unwrap());
    let mut few = limits();
    (few.max_concurrent, few.write_timeout) = (4, Duration::from_secs(600));
    let config = [section("long", "openai", &long.url()), section("short", "openai", &short.url())].concat();
    let gate = Gate::start(targets(&config).with_limits(few));
    let silent: Vec<_> = (0..SILENT).map(|_| silent(&gate)).collect();
    let half: Vec<_> = (0..HALF)
        .map(|_| {
            let mut socket = gate.connect();
            socket.write_all(b"POST /v1/chat/completions HTTP/1.1\r\nhost: loc").unwrap();
            socket
        })
        .collect();
    for _ in 0..8 {
        let got = gate.post("/v1/chat/completions", &[], &body("short", false));
        assert_eq!(got.status, 200, "{}", got.text());
    }
    drop((silent, half));
}

#[test]
fn a_head_without_an_end_and_a_client_that_does_not_read_are_closed() {
    let long = long();
    let mut short = limits();
    (short.head_timeout, short.write_timeout) = (Duration::from_millis(300), Duration::from_millis(300));
    let gate = Gate::start(targets(&section("long", "openai", &long.url())).with_limits(short));
    let silent = silent(&gate);
    wait_until(|| long.received().len() == 1);
    wait_until(|| gate.get("/metrics").text().contains("formwork_open_streams 0"));
    let mut half = gate.connect();
    half.write_all(b"POST /v1/chat/completions HTTP/1.1\r\nhost: loc").unwrap();
    let mut rest = Vec::new();
    // Some systems report the end as an error.
    _ = half.read_to_end(&mut rest);
    assert!(!rest.windows(6).any(|part| part == b"200 OK"), "{}", String::from_utf8_lossy(&rest));
    drop(silent);
}
