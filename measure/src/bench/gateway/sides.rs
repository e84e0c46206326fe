//! The measurements of the gateway. All sides forward to the same upstream server, which responds at once.

use std::time::Duration;

use serde_json::{Value, json};

use crate::Failure;
use crate::bench::client::{self, Connection, Load, contains, load as send, open_loop};
use crate::bench::measure::Pair;
use crate::bench::process::Server;

/// Returns a request of Chat Completions.
fn post(body: &Value) -> Vec<u8> {
    client::post(
        "/v1/chat/completions",
        "authorization: Bearer any\r\nx-formwork-deadline: 300\r\n",
        &body.to_string(),
    )
}

/// Returns whether a body has the completion of the upstream server.
fn is_right(body: &[u8]) -> bool {
    contains(body, "Lindqvist")
}

/// The body of a request.
fn body(workload: &str) -> Value {
    let text = "Maria Lindqvist, 34, moved to Lisbon last spring and works as a marine biologist. ".repeat(4);
    let mut body = json!({
        "model": "primary", "temperature": 0.2, "max_tokens": 200,
        "messages": [{"role": "system", "content": "Answer briefly."}, {"role": "user", "content": text}],
    });
    if workload == "contract" {
        let format = json!({"name": "person", "strict": true, "schema": person(0)});
        body["response_format"] = json!({"type": "json_schema", "json_schema": format});
    }
    body
}

/// Returns a schema that the upstream's completion satisfies. Each number gives a different schema.
fn person(number: usize) -> Value {
    json!({
        "type": "object",
        "description": format!("Person {number}"),
        "properties": {
            "name": {"type": "string", "minLength": 1},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "city": {"type": "string"},
            "job": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 10},
        },
        "required": ["name", "age", "city", "job", "tags"],
        "additionalProperties": false,
    })
}

/// Sends requests to a running server, for a profiler: instructions per request.
pub(in crate::bench) async fn load(
    address: &str,
    kind: &str,
    connections: usize,
    requests: usize,
) -> Result<Value, Failure> {
    Ok(json!({"errors": send(address, &post(&body(kind)), is_right, connections, requests).await}))
}

/// Compares a server, which is started with the URL of the upstream server, with another side, such as `bare`, for one request (`plain`
/// or `contract`). Returns the CPU time of a request in microseconds, and the number of requests without their answer.
pub(in crate::bench) async fn compare(
    start: impl FnOnce(&str) -> Result<Server, Failure>,
    peer: &str,
    request: &str,
    load: Load,
) -> Result<(Pair, usize), Failure> {
    let upstream = Server::start(&["upstream"])?;
    let ours = start(&upstream.url())?;
    let peer = Server::start(&[peer, &upstream.url()])?;
    client::compare(ours, peer, &post(&body(request)), is_right, load).await
}

/// The latencies of one side in milliseconds.
pub(super) struct Latency {
    pub(super) name: &'static str,
    pub(super) p50: f64,
    pub(super) p99: f64,
}

/// Sends requests at a constant rate to every side in turn, the upstream server first. A late response delays no other request, and
/// its latency counts from the time at which the request was due. Returns the number of requests without their answer, too.
pub(super) async fn latency(rate: u32, seconds: u32) -> Result<([Latency; 4], usize), Failure> {
    let upstream = Server::start(&["upstream"])?;
    let ours = Server::start(&["ours", &upstream.url()])?;
    let bare = Server::start(&["bare", &upstream.url()])?;
    let sides = [
        ("direct", &upstream, "plain"),
        ("the bare proxy", &bare, "plain"),
        ("passed through", &ours, "plain"),
        ("with a contract", &ours, "contract"),
    ];
    let mut took: [Vec<f64>; 4] = Default::default();
    let mut errors = 0;
    // The sides take turns of one second, so that other load on the machine affects all of them.
    for second in 0..=seconds {
        for ((_, server, workload), took) in sides.iter().zip(&mut took) {
            let request = post(&body(workload));
            let (times, failed) =
                open_loop(&server.address, &request, is_right, rate, Duration::from_secs(1)).await?;
            // The first second is not counted, because connections are opened in it.
            if second > 0 {
                took.extend(times);
                errors += failed;
            }
        }
    }
    let names = sides.map(|(name, ..)| name);
    let mut latencies = names.map(|name| Latency { name, p50: f64::NAN, p99: f64::NAN });
    for (latency, took) in latencies.iter_mut().zip(&mut took) {
        took.sort_by(f64::total_cmp);
        let at =
            |share: f64| took.get(((took.len() as f64 - 1.0) * share) as usize).copied().unwrap_or(f64::NAN);
        (latency.p50, latency.p99) = (at(0.5), at(0.99));
    }
    Ok((latencies, errors))
}

/// Holds streams open. Returns the memory of each in KiB, and the number of streams that were cut.
pub(in crate::bench) async fn streams(side: &str, number: usize) -> Result<(f64, usize), Failure> {
    let upstream = Server::start(&["upstream"])?;
    let mut server = Server::start(&[side, &upstream.url()])?;
    let mut held = body("plain");
    (held["stream"], held["user"]) = (true.into(), "hold".into());
    let request = post(&held);
    // One request first, so that one-time initialization is not counted.
    let mut streams = vec![Connection::open(&server.address).await?];
    streams[0].begin(&request, "Maria").await?;
    let before = server.used()?.resident;
    for _ in 0..number {
        let mut connection = Connection::open(&server.address).await?;
        connection.begin(&request, "Maria").await?;
        streams.push(connection);
    }
    let after = server.used()?.resident;
    // Tells the upstream server to end all streams.
    let mut release = body("plain");
    release["user"] = "release".into();
    Connection::open(&upstream.address).await?.ask(&post(&release), is_right).await?;
    let mut cut = 0;
    for connection in &mut streams {
        cut += usize::from(connection.end().await.is_err());
    }
    Ok(((after as f64 - before as f64) / number as f64 / 1024.0, cut))
}

/// Measures the CPU time of requests with new schemas, and of the same requests later, in microseconds.
pub(super) async fn schema() -> Result<(f64, f64), Failure> {
    const SCHEMAS: usize = 200;

    let upstream = Server::start(&["upstream"])?;
    let mut ours = Server::start(&["ours", &upstream.url()])?;
    let mut connection = Connection::open(&ours.address).await?;
    let requests: Vec<Vec<u8>> = (1..=SCHEMAS)
        .map(|number| {
            let mut body = body("contract");
            body["response_format"]["json_schema"]["schema"] = person(number);
            post(&body)
        })
        .collect();
    for _ in 0..50 {
        connection.ask(&post(&body("contract")), is_right).await?;
    }
    let mut turn = async || -> Result<f64, Failure> {
        let before = ours.used()?.cpu;
        for request in &requests {
            connection.ask(request, is_right).await?;
        }
        Ok((ours.used()?.cpu - before) / SCHEMAS as f64)
    };
    let first = turn().await?;
    Ok((first, turn().await?.min(turn().await?)))
}
