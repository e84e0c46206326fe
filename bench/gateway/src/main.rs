//! Measurements of the gateway for `cargo xtask bench gateway`. Each command prints one line of JSON. All sides forward to the
//! same upstream server, which responds at once.
//!
//! - `gateway-side compare SIDE REQUEST CONNECTIONS REQUESTS ROUNDS` alternates with a bare axum proxy: CPU time per request.
//!   `SIDE` is `ours`, `ledger`, `bodies` or `by-hand`; `REQUEST` is `plain` or `contract`.
//! - `gateway-side litellm PYTHON SCRIPT REQUEST CONNECTIONS REQUESTS ROUNDS` does the same with LiteLLM's proxy (`litellm_proxy.py`).
//! - `gateway-side load ADDRESS REQUEST CONNECTIONS REQUESTS` sends requests to a running server, for a profiler: instructions per
//!   request.
//! - `gateway-side latency RATE SECONDS` sends requests at a constant rate to every side in turn: latency.
//! - `gateway-side streams NUMBER` holds NUMBER streams open: memory per stream, and the number of streams that end correctly.
//! - `gateway-side schema` sends requests with known and with new schemas: CPU time per request.
//! - `gateway-side soak MINUTES RATE` sends requests that provoke stalls, cut streams, failures and clients that disconnect.
//! - `gateway-side plants` makes mistakes on purpose, and fails if the bench or the soak does not notice them.
//! - `gateway-side serve (upstream | bare URL | by-hand URL | ours URL | ledger URL | bodies URL)` runs one of the servers as a process.

mod bare;
mod by_hand;
mod client;
mod ours;
mod plant;
mod played;
#[path = "../../service/src/process.rs"]
mod process;
mod soak;
mod upstream;

use std::error::Error;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Connection, request};
use crate::process::Server;

/// An error, which ends the program.
type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let line = match arguments.as_slice() {
        ["serve", "upstream"] => return upstream::serve().await,
        ["serve", "bare", url] => return bare::serve(url).await,
        ["serve", "by-hand", url] => return by_hand::serve(url).await,
        ["serve", "played"] => return played::serve().await,
        ["serve", "soak", urls, file] => return soak::serve(urls, file).await,
        ["serve", side, url] => return ours::serve(side, url).await,
        ["compare", side, workload, connections, requests, rounds] => {
            let start = |url: &str| Server::start(&["serve", side, url]);
            compare(start, workload, connections.parse()?, requests.parse()?, rounds.parse()?).await?
        }
        ["litellm", python, script, workload, connections, requests, rounds] => {
            let start = |url: &str| Server::of(Command::new(*python).args([*script, url]));
            compare(start, workload, connections.parse()?, requests.parse()?, rounds.parse()?).await?
        }
        ["load", address, kind, connections, requests] => {
            let request = request(&body(kind));
            let errors = client::load(address, &request, connections.parse()?, requests.parse()?).await?;
            json!({"errors": errors})
        }
        ["latency", rate, seconds] => latency(rate.parse()?, seconds.parse()?).await?,
        ["streams", number] => streams(number.parse()?).await?,
        ["schema"] => schema().await?,
        ["plants"] => plant::all().await?,
        ["planted", noticed] => plant::one(noticed).await?,
        ["soak", minutes, rate] => soak::soak(minutes.parse()?, rate.parse()?).await?,
        _ => return Err("see the first lines of bench/gateway/src/main.rs".into()),
    };
    println!("{line}");
    Ok(())
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

async fn compare(
    start: impl FnOnce(&str) -> Result<Server, Failure>,
    workload: &str,
    connections: usize,
    requests: usize,
    rounds: usize,
) -> Result<Value, Failure> {
    let upstream = Server::start(&["serve", "upstream"])?;
    let url = format!("http://{}", upstream.address);
    let mut ours = start(&url)?;
    let mut bare = Server::start(&["serve", "bare", &url])?;
    let request = request(&body(workload));
    let mut errors = 0;
    let mut turn = async |server: &mut Server, requests: usize| -> Result<f64, Failure> {
        let before = server.used()?.cpu;
        errors += client::load(&server.address, &request, connections, requests).await?;
        Ok((server.used()?.cpu - before) / requests as f64)
    };
    turn(&mut ours, requests / 4).await?;
    turn(&mut bare, requests / 4).await?;
    let mut turns = Vec::with_capacity(rounds);
    for round in 0..rounds {
        // The sides swap the order every round, because the second one finds warm caches.
        turns.push(if round % 2 == 0 {
            let ours = turn(&mut ours, requests).await?;
            (ours, turn(&mut bare, requests).await?)
        } else {
            let bare = turn(&mut bare, requests).await?;
            (turn(&mut ours, requests).await?, bare)
        });
    }
    Ok(json!({
        "ours": median(turns.iter().map(|(ours, _)| *ours)),
        "peer": median(turns.iter().map(|(_, bare)| *bare)),
        "ratio": median(turns.iter().map(|(ours, bare)| ours / bare)),
        "errors": errors,
    }))
}

/// Sends requests at a constant rate. A late response delays no other request, and its latency counts from the time at which the
/// request was due.
async fn latency(rate: u32, seconds: u32) -> Result<Value, Failure> {
    let upstream = Server::start(&["serve", "upstream"])?;
    let url = format!("http://{}", upstream.address);
    let ours = Server::start(&["serve", "ours", &url])?;
    let bare = Server::start(&["serve", "bare", &url])?;
    let sides = [
        ("direct", &upstream, "plain"),
        ("bare", &bare, "plain"),
        ("ours", &ours, "plain"),
        ("contract", &ours, "contract"),
    ];
    let mut took: Vec<Vec<f64>> = vec![Vec::new(); sides.len()];
    let mut errors = 0;
    // The sides take turns of one second, so that other load on the machine affects all of them.
    for second in 0..=seconds {
        for ((_, server, workload), took) in sides.iter().zip(&mut took) {
            let (times, failed) =
                client::open_loop(&server.address, &request(&body(workload)), rate, Duration::from_secs(1))
                    .await?;
            // The first second is not counted, because connections are opened in it.
            if second > 0 {
                took.extend(times);
                errors += failed;
            }
        }
    }
    let mut line = json!({"errors": errors});
    for ((name, ..), took) in sides.iter().zip(&mut took) {
        took.sort_by(f64::total_cmp);
        let at =
            |share: f64| took.get(((took.len() as f64 - 1.0) * share) as usize).copied().unwrap_or(f64::NAN);
        line[*name] = json!({"p50": at(0.5), "p99": at(0.99), "requests": took.len()});
    }
    Ok(line)
}

async fn streams(number: usize) -> Result<Value, Failure> {
    let upstream = Server::start(&["serve", "upstream"])?;
    let url = format!("http://{}", upstream.address);
    let mut lines = serde_json::Map::new();
    for side in ["bare", "ours"] {
        let mut server = Server::start(&["serve", side, &url])?;
        let mut request_body = body("plain");
        request_body["stream"] = true.into();
        request_body["user"] = "hold".into();
        let request_body = request(&request_body);
        // One request first, so that one-time initialization is not counted.
        let mut first = Connection::open(&server.address).await?;
        first.begin(&request_body).await?;
        let before = server.used()?.resident;
        let start = Instant::now();
        let mut held = Vec::with_capacity(number);
        for _ in 0..number {
            let mut connection = Connection::open(&server.address).await?;
            connection.begin(&request_body).await?;
            held.push(connection);
        }
        let opened = start.elapsed().as_secs_f64();
        let after = server.used()?.resident;
        // Tells the upstream server to end all streams.
        let mut release = body("plain");
        release["user"] = "release".into();
        Connection::open(&upstream.address).await?.ask(&request(&release)).await?;
        let mut cut = 0;
        for connection in held.iter_mut().chain([&mut first]) {
            cut += usize::from(connection.end().await.is_err());
        }
        let each = (after as f64 - before as f64) / number as f64 / 1024.0;
        lines.insert(side.to_owned(), json!({"each": each, "cut": cut, "seconds": opened}));
    }
    Ok(Value::Object(lines))
}

/// Measures the CPU time of requests with new schemas, compared with requests that always have the same schema.
async fn schema() -> Result<Value, Failure> {
    const SCHEMAS: usize = 200;

    let upstream = Server::start(&["serve", "upstream"])?;
    let mut ours = Server::start(&["serve", "ours", &format!("http://{}", upstream.address)])?;
    let mut connection = Connection::open(&ours.address).await?;
    let requests: Vec<Vec<u8>> = (1..=SCHEMAS)
        .map(|number| {
            let mut body = body("contract");
            body["response_format"]["json_schema"]["schema"] = person(number);
            request(&body)
        })
        .collect();
    for _ in 0..50 {
        connection.ask(&request(&body("contract"))).await?;
    }
    let mut turn = async || -> Result<f64, Failure> {
        let before = ours.used()?.cpu;
        for request in &requests {
            connection.ask(request).await?;
        }
        Ok((ours.used()?.cpu - before) / SCHEMAS as f64)
    };
    let first = turn().await?;
    let later = turn().await?.min(turn().await?);
    Ok(json!({"first": first, "later": later}))
}

fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}
