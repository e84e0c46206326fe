//! The service over sockets, byte by byte if that matters.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use formwork_core::{Answer, Call, Capabilities, ErrorKind, Fault, FaultKind, Provider, SharedProvider};
use formwork_oracle::Oracle;
use formwork_oracle::metrics::Metrics;
use formwork_oracle::service::{ApiKey, Limits, Service};
use formwork_testkit::{Reply, Scripted};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::support::{Events, answer};

const WALLET: &str = r#"{"as_of": "2026-11-01", "summary": {"transactions": 40, "failed": 2, "first": "2025-11-01",
    "last": "2026-10-22", "active_days": 20, "counterparties": 9}}"#;

/// A running service, and the handle that ends it.
struct Running {
    address: String,
    end: Option<oneshot::Sender<()>>,
    task: JoinHandle<std::io::Result<()>>,
    events: Events,
}

impl Running {
    fn new(model: SharedProvider, change: impl FnOnce(Service) -> Service) -> Self {
        let (metrics, events) = (Metrics::new(), Events::default());
        let oracle =
            Oracle::builder().with_target(model).with_observer(metrics.clone()).with_observer(events.clone());
        Self::of(oracle.build().unwrap(), metrics, events, change)
    }

    fn of(oracle: Oracle, metrics: Metrics, events: Events, change: impl FnOnce(Service) -> Service) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (end, ended) = oneshot::channel::<()>();
        let service = change(Service::new(oracle, metrics));
        let task = tokio::spawn(service.serve(listener, async { _ = ended.await }));
        Self { address, end: Some(end), task, events }
    }

    fn good() -> Self {
        Self::new(good(), |service| service)
    }

    async fn send(&self, request: impl AsRef<[u8]>) -> Response {
        let mut socket = TcpStream::connect(&self.address).await.unwrap();
        socket.write_all(request.as_ref()).await.unwrap();
        Response::read(&mut socket).await
    }

    async fn post(&self, headers: &str, body: impl AsRef<[u8]>) -> Response {
        self.send(posted(headers, body.as_ref())).await
    }

    async fn score(&self, body: impl AsRef<[u8]>) -> Response {
        self.post("content-type: application/json\r\n", body).await
    }

    async fn get(&self, path: &str, headers: &str) -> Response {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{headers}\r\n")).await
    }
}

fn good() -> SharedProvider {
    Arc::new(Scripted::new([Reply::text(answer(610).to_string())]))
}

fn posted(headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST /v1/score HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n"
    );
    [head.as_bytes(), body].concat()
}

#[derive(Debug)]
struct Response {
    status: u16,
    head: String,
    body: String,
}

impl Response {
    /// Reads one whole response; the connection may stay open.
    async fn read(socket: &mut TcpStream) -> Self {
        let mut bytes = Vec::new();
        loop {
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_ascii_lowercase();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                let whole = end + 4 + length.map_or(0, |length| length.parse().unwrap());
                if bytes.len() >= whole {
                    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
                    let body = String::from_utf8(bytes[end + 4..whole].to_vec()).unwrap();
                    return Self { status, head, body };
                }
            }
            assert!(
                socket.read_buf(&mut bytes).await.unwrap() > 0,
                "it ended: {}",
                String::from_utf8_lossy(&bytes)
            );
        }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// Asserts that a response is a problem of RFC 9457 of this kind.
    fn problem(&self) -> (u16, String) {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status, "{self:?}");
        assert_eq!(
            problem["request_id"].as_str().map(str::to_lowercase).as_deref(),
            self.header("x-request-id")
        );
        assert!(problem["title"].is_string() && !problem["detail"].as_str().unwrap().is_empty(), "{self:?}");
        let kind = problem["type"].as_str().unwrap().strip_prefix("urn:formwork:problem:").unwrap();
        (self.status, kind.to_owned())
    }
}

/// Waits for a condition that is met soon.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), what).await.unwrap()
}

/// A model that never answers.
#[derive(Debug)]
struct Silent(Capabilities);

impl Silent {
    fn shared() -> SharedProvider {
        Arc::new(Self(Capabilities::default()))
    }
}

#[async_trait]
impl Provider for Silent {
    fn name(&self) -> &str {
        "silent"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.0
    }

    async fn call(&self, _: &Call) -> Result<Answer, Fault> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn the_answer_has_the_same_fields_whoever_gave_it() {
    let ai = Running::good().score(WALLET).await;
    let prose: SharedProvider = Arc::new(Scripted::new([Reply::text("I think this wallet is fine.")]));
    let fallback = Running::new(prose, |service| service).score(WALLET).await;
    let down: SharedProvider = Arc::new(Scripted::new([Reply::from(FaultKind::Auth)]));
    let down = Running::new(down, |service| service).score(WALLET).await;
    let keys = |response: &Response| -> Vec<String> {
        assert_eq!(response.status, 200, "{response:?}");
        assert_eq!(response.header("content-type"), Some("application/json"));
        assert_eq!(response.header("cache-control"), Some("no-store"));
        response.json().as_object().unwrap().keys().cloned().collect()
    };
    // The calibration of the score is outside of the response object.
    let evidence = ai.header("x-formwork-calibration").unwrap();
    assert!(evidence.starts_with("not calibrated; fallback="), "{evidence}");
    assert_eq!(fallback.header("x-formwork-calibration"), Some("fallback"));
    assert_eq!(keys(&ai), keys(&fallback));
    assert_eq!(keys(&ai), keys(&down));
    assert_eq!(ai.json()["source"], "ai");
    assert_eq!(ai.json()["score"], 610);
    assert_eq!(
        (&fallback.json()["source"], &down.json()["source"]),
        (&json!("fallback"), &json!("fallback"))
    );
    assert_eq!(fallback.json()["score"], down.json()["score"], "counted, not asked");
}

#[tokio::test]
async fn a_list_of_transactions_is_a_wallet_too() {
    let running = Running::good();
    let csv = "time,category\n2024-01-01,swap\n2024-01-02,nft\n";
    let response = running.post("Content-Type: Text/CSV; charset=utf-8\r\n", csv).await;
    assert_eq!((response.status, running.events.of().len()), (200, 1));
    let rows: Vec<Value> = (0..8_000).map(|day| json!({"time": 1_600_000_000 + day * 60})).collect();
    let long = json!({"transactions": rows}).to_string();
    assert!(long.len() > 150_000);
    assert_eq!(running.score(long).await.status, 200);
}

#[tokio::test]
async fn each_bad_request_is_reported_with_what_would_be_right() {
    let running = Running::good();
    for (headers, body, status, kind, words) in [
        ("content-type: application/json\r\n", "{", 400, "invalid-json", "no JSON"),
        ("content-type: application/json\r\n", "", 400, "invalid-json", "no JSON"),
        ("content-type: application/json\r\n", "{\"transactions\": NaN}", 400, "invalid-json", "NaN"),
        ("content-type: application/json\r\n", "{}", 422, "invalid-wallet", "there is no history"),
        ("content-type: application/vnd.a+json\r\n", "[]", 422, "invalid-wallet", "missing"),
        ("content-type: text/csv\r\n", "time\nsoon\n", 422, "invalid-wallet", "no moment"),
        ("content-type: text/plain\r\n", WALLET, 415, "unsupported-media-type", "application/json"),
        ("content-type: \r\n", WALLET, 415, "unsupported-media-type", "application/json"),
        ("", WALLET, 415, "unsupported-media-type", "no Content-Type"),
        (
            "content-type: application/json\r\ncontent-encoding: gzip\r\n",
            WALLET,
            415,
            "unsupported-media-type",
            "compressed",
        ),
    ] {
        let response = running.post(headers, body).await;
        assert_eq!(response.problem(), (status, kind.to_owned()), "{body}");
        let detail = response.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(words) || kind == "invalid-wallet" && body == "[]", "{body}: {detail}");
    }
    let response = running.score("{\n\"summary\": {\"transactions\": -5}}").await;
    let problem = response.json();
    assert_eq!((&problem["path"], &problem["line"]), (&json!("$.summary.transactions"), &json!(2)));
    let response = running.post("content-type: text/csv\r\n", "time\n2024-01-02\n2024-01-01\n").await;
    assert_eq!(response.json()["line"], 3);

    assert_eq!(running.get("/v2", "").await.problem(), (404, "not-found".to_owned()));
    let response = running.get("/v1/score", "").await;
    assert_eq!(response.problem(), (405, "method-not-allowed".to_owned()));
    assert_eq!(response.header("allow"), Some("post"));
    assert!(running.events.of().is_empty(), "none of them reached the model");
    let mut socket = TcpStream::connect(&running.address).await.unwrap();
    socket.write_all(b"nonsense\r\n\r\n").await.unwrap();
    assert_eq!(Response::read(&mut socket).await.status, 400);
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_however_it_comes() {
    let mut limits = Limits::default();
    limits.max_body = 2_000;
    let running = Running::new(good(), |service| service.with_limits(limits));
    let space = |length: usize| format!("{WALLET}{}", " ".repeat(length - WALLET.len()));
    assert_eq!(running.score(space(2_000)).await.status, 200);
    let response = running.score(space(2_001)).await;
    assert_eq!(response.problem(), (413, "body-too-long".to_owned()));
    assert!(response.json()["detail"].as_str().unwrap().contains("at most 2000 bytes"));
    // The body has no `Content-Length`, and does not end.
    let chunked = "POST /v1/score HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = format!("400\r\n{}\r\n", " ".repeat(1_024));
    let response = running.send(format!("{chunked}{}", chunk.repeat(2))).await;
    assert_eq!(response.problem(), (413, "body-too-long".to_owned()));
    // The `Content-Length` exceeds the limit: rejected before the first byte of the body.
    let head = "POST /v1/score HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 99999999999\r\n\r\n";
    assert_eq!(running.send(head).await.problem(), (413, "body-too-long".to_owned()));
}

#[tokio::test]
async fn slow_clients_do_not_hold_the_service() {
    let mut limits = Limits::default();
    limits.read_timeout = Duration::from_millis(200);
    let running = Running::new(good(), |service| service.with_limits(limits));
    let whole = posted("content-type: application/json\r\n", WALLET.as_bytes());
    let response = soon(running.send(&whole[..whole.len() - 1])).await;
    assert_eq!(response.problem(), (408, "read-timeout".to_owned()));
    assert_eq!(response.header("connection"), Some("close"));
    // The connection is closed if the head of a request does not end.
    let mut socket = TcpStream::connect(&running.address).await.unwrap();
    socket.write_all(b"POST /v1/score HTTP/1.1\r\nhost:").await.unwrap();
    let mut rest = Vec::new();
    soon(socket.read_to_end(&mut rest)).await.unwrap();
    assert!(!String::from_utf8_lossy(&rest).contains("200 OK"));
}

#[tokio::test]
async fn names_of_requests_are_kept_or_made() {
    let running = Running::good();
    let response = running.post("content-type: application/json\r\nx-request-id: order-7\r\n", WALLET).await;
    assert_eq!((response.header("x-request-id"), response.status), (Some("order-7"), 200));
    assert_eq!(running.events.of()[0].request_id, "order-7");
    let long = "x".repeat(200);
    let response = running.get("/health", &format!("x-request-id: {long}\r\n")).await;
    assert!(response.header("x-request-id").unwrap().starts_with("req-"));
    let (one, other) = (running.get("/nowhere", "").await, running.get("/nowhere", "").await);
    assert_ne!(one.header("x-request-id"), other.header("x-request-id"));
}

#[tokio::test]
async fn a_key_is_requested_where_there_is_one() {
    let key = ApiKey::new("correct-horse-battery").unwrap();
    let running = Running::new(good(), |service| service.with_api_key(key));
    let refused = running.score(WALLET).await;
    assert_eq!(refused.problem(), (401, "unauthorized".to_owned()));
    assert_eq!(refused.header("www-authenticate"), Some("bearer"));
    let json = "content-type: application/json\r\n";
    assert_eq!(
        running.post(&format!("{json}authorization: Bearer wrong-horse-battery\r\n"), WALLET).await.status,
        401
    );
    let right = "authorization: Bearer correct-horse-battery\r\n";
    assert_eq!(running.post(&format!("{json}{right}"), WALLET).await.status, 200);
    assert_eq!(
        running.post(&format!("{json}x-api-key: correct-horse-battery\r\n"), WALLET).await.status,
        200
    );
    assert_eq!(running.get("/metrics", "").await.status, 401);
    assert_eq!(running.get("/metrics", right).await.status, 200);
    assert_eq!(running.get("/health", "").await.status, 200);
}

#[tokio::test]
async fn health_and_metrics_tell_what_there_is() {
    let running = Running::good();
    let health = running.get("/health", "").await;
    assert_eq!((health.status, &health.json()["status"]), (200, &json!("ok")));
    assert_eq!(health.json()["prompt"]["hash"].as_str().map(str::len), Some(64));
    running.score(WALLET).await;
    running.score("{").await;
    running.get("/etc/passwd", "").await;
    let metrics = running.get("/metrics", "").await;
    assert!(
        metrics.header("content-type").unwrap().starts_with("application/openmetrics-text; version=1.0.0")
    );
    for line in [
        "formwork_oracle_scores_total{source=\"ai\"} 1",
        "http_server_request_duration_seconds_count{http_request_method=\"POST\",http_route=\"/v1/score\",http_response_status_code=\"200\"} 1",
        "http_server_request_duration_seconds_count{http_request_method=\"POST\",http_route=\"/v1/score\",http_response_status_code=\"400\"} 1",
        "http_server_request_duration_seconds_count{http_request_method=\"GET\",http_route=\"other\",http_response_status_code=\"404\"} 1",
    ] {
        assert!(metrics.body.lines().any(|other| other == line), "{line} is not in\n{}", metrics.body);
    }
    assert!(!metrics.body.contains("passwd"));
    let mut socket = TcpStream::connect(&running.address).await.unwrap();
    socket.write_all(b"HEAD /health HTTP/1.0\r\n\r\n").await.unwrap();
    let mut head = String::new();
    soon(socket.read_to_string(&mut head)).await.unwrap();
    assert!(head.starts_with("HTTP/1.0 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
}

#[tokio::test]
async fn a_model_that_never_answers_is_broken_off_and_counted() {
    let mut limits = Limits::default();
    limits.timeout = Duration::from_millis(150);
    let running = Running::new(Silent::shared(), |service| service.with_limits(limits));
    let response = soon(running.score(WALLET)).await;
    assert_eq!(response.problem(), (504, "timeout".to_owned()));
    let cancelled = || async {
        loop {
            if let [event] = running.events.of().as_slice() {
                return event.clone();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let event = soon(cancelled()).await;
    assert_eq!(event.error.map(|error| error.class), Some(ErrorKind::Cancelled));
    assert_eq!(event.calls.len(), 1, "what it has cost is known");
}

#[tokio::test]
async fn a_deadline_of_the_oracle_comes_first_and_gives_the_fallback() {
    let (metrics, events) = (Metrics::new(), Events::default());
    let oracle = Oracle::builder().with_target(Silent::shared()).with_deadline(Duration::from_millis(100));
    let running = Running::of(oracle.build().unwrap(), metrics, events, |service| service);
    let response = soon(running.score(WALLET)).await;
    assert_eq!((response.status, &response.json()["source"]), (200, &json!("fallback")));
}

#[tokio::test]
async fn without_a_fallback_a_score_that_is_not_there_is_a_problem() {
    let model: SharedProvider = Arc::new(Scripted::new([Reply::text("secret words of the model")]));
    let oracle = Oracle::builder().with_target(model).without_fallback().build().unwrap();
    let running = Running::of(oracle, Metrics::new(), Events::default(), |service| service);
    let response = running.score(WALLET).await;
    assert_eq!(response.problem(), (502, "no-score".to_owned()));
    assert!(!response.body.contains("secret"), "{response:?}");
}

#[tokio::test]
async fn a_client_that_leaves_is_in_the_ledger() {
    let running = Running::new(Silent::shared(), |service| service);
    let mut socket = TcpStream::connect(&running.address).await.unwrap();
    socket.write_all(&posted("content-type: application/json\r\n", WALLET.as_bytes())).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(running.events.of().is_empty());
    drop(socket);
    soon(async {
        while running.events.of().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn requests_beyond_the_queue_get_retry_after() {
    let mut limits = Limits::default();
    (limits.max_concurrent, limits.max_waiting) = (1, 1);
    limits.timeout = Duration::from_millis(400);
    let running = Running::new(Silent::shared(), |service| service.with_limits(limits));
    let (one, two) = (running.score(WALLET), running.score(WALLET));
    let late = async {
        tokio::time::sleep(Duration::from_millis(150)).await;
        running.score(WALLET).await
    };
    let (one, two, late) = soon(async { tokio::join!(one, two, late) }).await;
    assert_eq!(late.problem(), (503, "busy".to_owned()));
    assert_eq!(late.header("retry-after"), Some("1"));
    assert_eq!((one.status, two.status), (504, 504));
    assert_eq!(soon(running.score(WALLET)).await.status, 504, "there is room again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_all_get_their_answer() {
    let running = Arc::new(Running::good());
    let tasks: Vec<_> = (0..256)
        .map(|number| {
            let running = Arc::clone(&running);
            tokio::spawn(async move {
                let headers = format!("content-type: application/json\r\nx-request-id: r{number}\r\n");
                let response = running.post(&headers, WALLET).await;
                assert_eq!(response.header("x-request-id"), Some(format!("r{number}").as_str()));
                response.status
            })
        })
        .collect();
    for task in tasks {
        assert_eq!(soon(task).await.unwrap(), 200);
    }
    assert_eq!(running.events.of().len(), 256);
}

#[tokio::test]
async fn one_connection_serves_many_requests() {
    let running = Running::good();
    let mut socket = TcpStream::connect(&running.address).await.unwrap();
    let length = WALLET.len();
    let request = format!(
        "POST /v1/score HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{WALLET}"
    );
    for _ in 0..3 {
        socket.write_all(request.as_bytes()).await.unwrap();
        assert_eq!(Response::read(&mut socket).await.status, 200);
    }
}

#[tokio::test]
async fn ending_waits_for_open_requests_and_takes_no_new_ones() {
    // Its third call of three is held back until the deadline, then the fallback answers.
    let oracle = Oracle::builder().with_target(Silent::shared()).with_deadline(Duration::from_millis(500));
    let mut running =
        Running::of(oracle.build().unwrap(), Metrics::new(), Events::default(), |service| service);
    let mut idle = TcpStream::connect(&running.address).await.unwrap();
    let address = running.address.clone();
    let open = tokio::spawn(async move {
        let mut socket = TcpStream::connect(&address).await.unwrap();
        socket.write_all(&posted("content-type: application/json\r\n", WALLET.as_bytes())).await.unwrap();
        Response::read(&mut socket).await
    });
    tokio::time::sleep(Duration::from_millis(150)).await;
    drop(running.end.take());
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(TcpStream::connect(&running.address).await.is_err(), "nobody listens any more");
    let mut rest = Vec::new();
    soon(idle.read_to_end(&mut rest)).await.unwrap();
    assert!(rest.is_empty(), "a connection without a request is closed");
    let response = soon(open).await.unwrap();
    assert_eq!((response.status, &response.json()["source"]), (200, &json!("fallback")));
    soon(&mut running.task).await.unwrap().unwrap();
}

#[tokio::test]
async fn what_does_not_end_in_time_is_broken_off() {
    let mut limits = Limits::default();
    limits.drain = Duration::from_millis(100);
    let mut running = Running::new(Silent::shared(), |service| service.with_limits(limits));
    let mut socket = TcpStream::connect(&running.address).await.unwrap();
    socket.write_all(&posted("content-type: application/json\r\n", WALLET.as_bytes())).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(running.end.take());
    soon(&mut running.task).await.unwrap().unwrap();
    let mut rest = Vec::new();
    let _ = soon(socket.read_to_end(&mut rest)).await;
    assert!(rest.is_empty());
}
