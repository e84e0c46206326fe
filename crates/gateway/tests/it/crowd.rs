//! Clients that do not read, and clients that never finish a request, beside others.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::support::{Gate, completion, limits, request, section, targets, wait_until};

/// The clients that do not read, as many as the requests that are worked on at once by default, and the heads without an end.
const SILENT: usize = 256;
const HALF: usize = 200;

/// Returns how many of a number of connections fit into the files that this process may open beside those of other tests. Each is a socket
/// of its client and one of the service, and the service may have another one of its target.
fn fitting(wanted: usize) -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let files: Option<usize> = files.and_then(|files| files.split_whitespace().next()?.parse().ok());
    wanted.min(files.unwrap_or(256) / 16)
}

fn long() -> Server {
    let event = json!({"choices": [{"index": 0, "delta": {"content": "x".repeat(1 << 14)}}]});
    let event = format!("data: {event}\n\n");
    Server::start([Reply::endless(event).with_header("content-type", "text/event-stream")]).unwrap()
}

fn body(model: &str, stream: bool) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": "Hi."}], "stream": stream})
}

/// Asks for a response that is never read, with a buffer of the least size: systems keep megabytes for a client otherwise.
fn silent(gate: &Gate) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut socket = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        socket.connect(gate.address).await.unwrap().into_std().unwrap()
    });
    socket.set_nonblocking(false).unwrap();
    let body = body("long", true).to_string();
    socket.write_all(&request("/v1/chat/completions", &[], body.as_bytes())).unwrap();
    socket
}

#[test]
fn others_are_served_beside_clients_that_do_not_read_and_heads_without_an_end() {
    let (long, short) = (long(), Server::start([completion("Hello.")]).unwrap());
    let mut patient = limits();
    patient.write_timeout = Duration::from_secs(600);
    let silent_clients = fitting(SILENT);
    patient.max_concurrent = patient.max_concurrent.min(silent_clients);
    let config = [section("long", "openai", &long.url()), section("short", "openai", &short.url())].concat();
    let gate = Gate::start(targets(&config).with_limits(patient));
    let silent: Vec<_> = (0..silent_clients).map(|_| silent(&gate)).collect();
    wait_until(|| long.received().len() == silent_clients);
    let half: Vec<_> = (0..fitting(HALF))
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
