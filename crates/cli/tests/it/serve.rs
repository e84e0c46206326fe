//! `formwork serve`: requests over a socket, records in a ledger, and the end by a signal.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use formwork_testkit::server::{End, Reply, Server};
use serde_json::{Value, json};

use super::{command, folder, formwork, refused, temporary};

/// The service as a process, which ends with the test.
pub(crate) struct Serving {
    pub(crate) child: Child,
    pub(crate) address: String,
    /// The rest of its standard error.
    errors: Option<JoinHandle<String>>,
}

impl Serving {
    fn start(args: &[&str]) -> Self {
        Self::of(&mut command(&[&["serve", "--listen", "127.0.0.1:0"], args].concat()))
    }

    pub(crate) fn of(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening at http://").and_then(|rest| rest.split(',').next());
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        // The output is read to its end, so that a full pipe never blocks the service.
        let errors = std::thread::spawn(move || {
            let mut rest = Vec::new();
            _ = errors.read_to_end(&mut rest);
            String::from_utf8_lossy(&rest).into_owned()
        });
        Self { child, address, errors: Some(errors) }
    }

    /// Ends it with a signal; returns its standard error.
    fn ended(&mut self) -> String {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.errors.take().unwrap().join().unwrap()
    }

    fn post(&self, path: &str, key: &str, body: &Value) -> (u16, String) {
        post(&self.address, path, key, "", body).unwrap()
    }
}

/// Sends a request with more lines of headers. Returns the status and the body of the response; `None` if the service is gone.
fn post(address: &str, path: &str, key: &str, headers: &str, body: &Value) -> Option<(u16, String)> {
    let body = body.to_string();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         authorization: Bearer {key}\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    send(address, &request)
}

/// Sends a request as it is. Returns the status and the body of the response; `None` if the service is gone.
pub(crate) fn send(address: &str, request: &str) -> Option<(u16, String)> {
    let mut socket = TcpStream::connect(address).ok()?;
    socket.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
    socket.write_all(request.as_bytes()).ok()?;
    let mut text = String::new();
    socket.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
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
    // Tests run beside each other, each with its own server.
    temporary(&format!("serve-{}.toml", server.address().port()), text)
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
    // The service notices a key of another process within a second; until then, this request is merely invalid.
    while serving.post("/v1/chat/completions", "anything", &json!({})).0 == 400 {}
    assert_eq!(serving.post("/v1/chat/completions", "anything", &body).0, 401);
    assert_eq!(serving.post("/v1/chat/completions", &key, &body).0, 200);
    // Runs are committed in groups, a moment after the response.
    let runs = || formwork(&["runs", "list", "--ledger", &ledger], "").stdout.lines().count();
    while runs() < 2 {}
    assert_eq!(runs(), 2);
}

#[test]
fn each_request_is_one_line_of_json_in_the_log() {
    let server = upstream();
    let ledger = folder().join("serve-log.db").display().to_string();
    let added = formwork(&["keys", "add", "alice", "--ledger", &ledger], "");
    let key = added.stdout.split_whitespace().find(|word| word.starts_with("fw_")).unwrap().to_owned();
    let config = config(&server);
    let mut serving = Serving::start(&["--config", &config, "--ledger", &ledger, "--verbose"]);
    let body = json!({
        "model": "fast", "messages": [{"role": "user", "content": "Maria, 34"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "person", "schema": {
            "type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"],
        }}},
    });
    let headers = "x-request-id: order-7\r\n";
    for (key, status) in [(key.as_str(), 200), ("wrong", 401)] {
        assert_eq!(post(&serving.address, "/v1/chat/completions", key, headers, &body).unwrap().0, status);
    }
    let log = serving.ended();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let lines: Vec<Value> = lines.filter(|line| line["request_id"].is_string()).collect();
    let [answered, refused] = &lines[..] else { panic!("{log}") };
    for (member, value) in [
        ("level", json!("INFO")),
        ("message", json!("answered")),
        ("request_id", json!("order-7")),
        ("key", json!("alice")),
        ("contract", json!("person")),
        ("asked", json!("fast")),
        ("model", json!("m")),
        ("status", json!(200)),
        ("outcome", json!("ok")),
        ("calls", json!(2)),
    ] {
        assert_eq!(answered[member], value, "{member}: {answered}");
    }
    assert!(answered["run"].as_str().unwrap().starts_with("run_"), "{answered}");
    assert!(answered["took_ms"].as_f64() >= answered["head_ms"].as_f64(), "{answered}");
    assert!(["timestamp", "input_tokens", "output_tokens"].iter().all(|member| !answered[member].is_null()));
    assert_eq!(
        (&refused["level"], &refused["status"], &refused["calls"]),
        (&json!("WARN"), &json!(401), &Value::Null)
    );
    assert!(refused["problem"].as_str().unwrap().starts_with("invalid_api_key"), "{refused}");
    assert!(!log.contains("Maria") && !log.contains(&key), "{log}");
}

#[test]
fn a_view_shows_a_ledger_without_changing_it_and_serves_nothing_else() {
    let ledger = folder().join("view.db").display().to_string();
    let answer = formwork(&["keys", "add", "alice", "--ledger", &ledger], "");
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let before = std::fs::read(&ledger).unwrap();
    let serving = Serving::of(&mut command(&["view", &ledger, "--listen", "127.0.0.1:0"]));
    let address = serving.address.trim();
    let page = |path: &str| {
        let mut socket = TcpStream::connect(address).unwrap();
        write!(
            socket,
            "GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: text/html\r\nconnection: close\r\n\r\n"
        )
        .unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).unwrap();
        text
    };
    for path in ["/", "/runs", "/contracts", "/runs.jsonl"] {
        assert!(page(path).starts_with("HTTP/1.1 200 "), "{path}");
    }
    let keys = page("/keys");
    assert!(keys.contains("alice") && !keys.contains("<form"), "{keys}");
    assert!(page("/v1/models").starts_with("HTTP/1.1 404 "));
    let chat = post(address, "/v1/chat/completions", "any", "", &json!({"model": "default", "messages": []}));
    assert_eq!(chat.unwrap().0, 404);
    drop(serving);
    assert_eq!(std::fs::read(&ledger).unwrap(), before);
    let text = temporary("no-ledger.db", "text");
    for args in
        [["view", text.as_str(), "--listen", "127.0.0.1:0"], ["view", &ledger, "--listen", "0.0.0.0:0"]]
    {
        assert_eq!(formwork(&args, "").code, 2, "{args:?}");
    }
}

/// A configuration with a name for its target.
#[cfg(unix)]
fn named(server: &Server, alias: &str) -> String {
    format!(
        "[providers.primary]\nkind = \"openai\"\nmodel = \"m\"\nstream = false\napi_key_env = \"\"\nbase_url = \"{}\"\n\
         [aliases]\n{alias} = \"primary\"\n",
        server.url()
    )
}

#[test]
#[cfg(unix)]
fn a_hangup_reads_the_configuration_again_and_no_request_is_lost() {
    let server = upstream();
    let path = temporary("serve-reload.toml", named(&server, "before"));
    let mut serving = Serving::start(&["--config", &path]);
    let hangup = || {
        let id = serving.child.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &id]).status().unwrap().success());
    };
    let asked = |model: &str| {
        let body = json!({"model": model, "messages": [{"role": "user", "content": "Hello"}]});
        post(&serving.address, "/v1/chat/completions", "any", "", &body).unwrap().0
    };
    assert_eq!((asked("before"), asked("after")), (200, 404));
    // Requests without end run while the configuration is read: none of them fails.
    let is_done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let requests = scope.spawn(|| {
            let mut count = 0;
            while is_done.load(Ordering::Relaxed) == 0 {
                assert_eq!(asked("primary"), 200);
                count += 1;
            }
            count
        });
        std::fs::write(&path, named(&server, "after")).unwrap();
        hangup();
        while asked("after") != 200 {}
        assert_eq!(asked("before"), 404);
        is_done.store(1, Ordering::Relaxed);
        assert!(requests.join().unwrap() > 0);
    });
    std::fs::write(&path, "[providers.primary]\nkind = \"nothing\"\n").unwrap();
    hangup();
    assert_eq!(asked("after"), 200);
    let log = serving.ended();
    assert!(log.contains("read the configuration again"), "{log}");
    assert!(log.contains("the configuration is not read again: ") && log.contains("nothing"), "{log}");
}

#[test]
#[cfg(unix)]
fn a_broken_file_of_a_contract_leaves_its_last_version_in_use_and_is_reported() {
    let server = upstream();
    let contracts = folder().join("contracts");
    std::fs::create_dir_all(&contracts).unwrap();
    let file = contracts.join("person.json");
    let schema = json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]});
    std::fs::write(&file, schema.to_string()).unwrap();
    let path = temporary("serve-contracts.toml", named(&server, "before"));
    let mut serving = Serving::start(&["--config", &path, "--contracts", &contracts.display().to_string()]);
    let asked = |target: &str| {
        let body = json!({"contract": "person", "input": "Maria, 34", "targets": [target]});
        post(&serving.address, "/v1/extract", "any", "", &body).unwrap()
    };
    let (status, answer) = asked("before");
    assert!(status == 200 && !answer.contains("its last version is used"), "{status} {answer}");
    let with_rule = |rule: Value| {
        let mut schema = schema.clone();
        schema["x-formwork-rules"] = json!([rule]);
        schema.to_string()
    };
    let wrong = [
        json!({"type": "objekt"}).to_string(),
        json!({}).to_string(),
        with_rule(json!({"rule": "atMost", "target": "$.nope", "limit": "$.age"})),
        with_rule(json!({"rule": "groundedd", "target": "$.age"})),
        schema.to_string()[..30].to_owned(),
    ];
    for wrong in &wrong {
        // The time and the length of a file distinguish its versions.
        std::fs::write(&file, wrong).unwrap();
        let (status, answer) = asked("before");
        assert!(status == 200 && answer.contains("its last version is used"), "{wrong}: {status} {answer}");
    }
    std::fs::write(&file, &wrong[0]).unwrap();
    std::fs::write(&path, named(&server, "after")).unwrap();
    let id = serving.child.id().to_string();
    assert!(Command::new("kill").args(["-HUP", &id]).status().unwrap().success());
    while asked("after").0 != 200 {}
    assert!(asked("after").1.contains("its last version is used"));
    let log = serving.ended();
    assert!(log.contains("the contract person stays as it was: ") && log.contains("person.json"), "{log}");
    // At the start there is no earlier version.
    for wrong in wrong {
        std::fs::write(&file, &wrong).unwrap();
        let mut serving =
            Serving::start(&["--config", &path, "--contracts", &contracts.display().to_string()]);
        let alive = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        assert_eq!(send(&serving.address, alive).unwrap().0, 200);
        let log = serving.ended();
        assert!(log.contains("the contract person cannot be used: person.json:"), "{wrong}: {log}");
        let is_json = serde_json::from_str::<Value>(&wrong).is_ok();
        assert_eq!(log.contains("person.json:1:"), !is_json, "{wrong}: {log}");
    }
}

#[test]
fn a_schema_that_says_nothing_is_refused_by_the_service_unless_any_value_is_wanted() {
    let server = upstream();
    let config = config(&server);
    let of = |schema: Value| {
        json!({
            "model": "fast", "messages": [{"role": "user", "content": "Maria, 34"}],
            "response_format": {"type": "json_schema", "json_schema": {"name": "person", "schema": schema}},
        })
    };
    let wrapped = of(
        json!({"name": "save", "input_schema": {"type": "object", "properties": {"age": {"type": "integer"}}}}),
    );
    for (flags, body, expected, says) in [
        (&[][..], of(json!({})), 400, "every value satisfies the schema"),
        (&["--any"], of(json!({})), 200, "choices"),
        (&[], wrapped, 200, "choices"),
    ] {
        let serving = Serving::start(&[&["--config", &*config], flags].concat());
        let (status, answer) = serving.post("/v1/chat/completions", "anything", &body);
        assert!(status == expected && answer.contains(says), "{flags:?}: {status} {answer}");
    }
}

#[test]
fn what_cannot_be_served_is_said_before_a_model_is_called() {
    let server = upstream();
    let config = config(&server);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let empty = folder().join("serve-empty.db").display().to_string();
    let text = std::fs::read_to_string(&config).unwrap();
    let collected =
        temporary("serve-collected.toml", format!("{text}[telemetry]\nendpoint = \"localhost:4318\"\n"));
    let kept = temporary("serve-kept.toml", format!("{text}[serve]\ncache = 60\n"));
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
        (vec!["--listen", "127.0.0.1:0", "--config", &kept], "[serve]: `cache` keeps values in the ledger"),
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
        (
            vec!["--listen", "127.0.0.1:0", "--config", &collected],
            "serve-collected.toml:10:12: [telemetry]: \"localhost:4318/v1/traces\" is no base URL",
        ),
    ] {
        refused(&formwork(&[&["serve"], &args[..]].concat(), ""), 2, says);
    }
    assert!(server.received().is_empty());
}

#[test]
fn runs_are_exported_to_the_collector_of_the_configuration_unless_the_environment_names_another() {
    for in_environment in [false, true] {
        let server = upstream();
        let [named, other] = [(), ()].map(|()| Server::start([Reply::status(200)]).unwrap());
        let text = std::fs::read_to_string(config(&server)).unwrap();
        let file = temporary(
            &format!("serve-telemetry-{in_environment}.toml"),
            format!(
                "{text}[telemetry]\nendpoint = \"{}\"\ninterval_seconds = 0.01\nsecret_headers = {{ authorization = \"COLLECTOR\" }}\n",
                named.url()
            ),
        );
        let mut command = command(&["serve", "--listen", "127.0.0.1:0", "--config", &file]);
        command.env("COLLECTOR", "Basic hunter22");
        if in_environment {
            let variables =
                [("ENDPOINT", other.url()), ("HEADERS", "authorization=Bearer%20hunter23".to_owned())];
            command.envs(variables.map(|(name, value)| (format!("OTEL_EXPORTER_OTLP_{name}"), value)));
        }
        let serving = Serving::of(&mut command);
        let body = json!({"model": "fast", "messages": [{"role": "user", "content": "Maria, 34"}]});
        assert_eq!(serving.post("/v1/chat/completions", "anything", &body).0, 200);
        let (collector, header) =
            if in_environment { (&other, "Bearer hunter23") } else { (&named, "Basic hunter22") };
        for path in ["/v1/traces", "/v1/metrics"] {
            let is_there = || {
                let received = collector.received();
                received
                    .iter()
                    .any(|request| request.path == path && request.header("authorization") == Some(header))
            };
            let started = Instant::now();
            while !is_there() {
                assert!(started.elapsed() < Duration::from_secs(30), "{path} {in_environment}");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        assert!(!in_environment || named.received().is_empty());
    }
}

/// The configuration of a server whose calls cost 10 + 2 x 50 millionths of a US dollar.
fn priced(url: &str, name: &str) -> String {
    let text = format!(
        "[providers.primary]\nkind = \"openai\"\nmodel = \"m\"\nstream = false\napi_key_env = \"\"\nbase_url = \"{url}\"\n\
         price = {{ input = 1.0, output = 2.0 }}\n"
    );
    temporary(name, text)
}

/// The cost of a call of [`priced`].
const COST: u64 = 110;

#[test]
fn a_service_that_is_killed_under_load_leaves_a_whole_ledger_with_everything_that_was_billed() {
    // Fewer tokens than what is sent has at most: a reservation covers what a server can bill for it.
    let content = json!({"choices": [{
        "index": 0, "message": {"role": "assistant", "content": "{\"age\": 34}"}, "finish_reason": "stop",
    }], "usage": {"prompt_tokens": 10, "completion_tokens": 50, "total_tokens": 60}});
    let server = Server::start([Reply::json(content.to_string())]).unwrap();
    let config = priced(&server.url(), "serve-killed.toml");
    let ledger = folder().join("serve-killed.db").display().to_string();
    let added = formwork(&["keys", "add", "load", "--budget", "5.00", "--ledger", &ledger], "");
    let key = added.stdout.split_whitespace().find(|word| word.starts_with("fw_")).unwrap().to_owned();
    let messages = json!([{"role": "user", "content": "Maria, 34"}]);
    let plain = json!({"model": "primary", "max_tokens": 60, "messages": messages});
    let schema = json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]});
    let mut contract = plain.clone();
    contract["response_format"] =
        json!({"type": "json_schema", "json_schema": {"name": "person", "schema": schema}});
    let runs =
        || formwork(&["runs", "list", "--limit", "1000", "--ledger", &ledger], "").stdout.lines().count();
    let mut flushed = 0;
    // The second round shows that the service starts again on the file that the first one left.
    for round in 1..=2 {
        let mut serving = Serving::start(&["--config", &config, "--ledger", &ledger]);
        for body in [&plain, &contract] {
            assert_eq!(serving.post("/v1/chat/completions", &key, body).0, 200);
        }
        flushed += 2;
        // Runs are committed in groups, a moment after the response.
        while runs() < flushed {}
        let answered = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for nth in 0..4 {
                let (address, key, answered) = (&serving.address, &key, &answered);
                let body = if nth % 2 == 0 { &plain } else { &contract };
                scope.spawn(move || {
                    while let Some((200, _)) = post(address, "/v1/chat/completions", key, "", body) {
                        answered.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
            while answered.load(Ordering::SeqCst) < 20 * round {
                std::thread::yield_now();
            }
            serving.child.kill().unwrap();
            serving.child.wait().unwrap();
        });
        let tool = rusqlite::Connection::open(&ledger).unwrap();
        let is_whole: String = tool.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(is_whole, "ok");
        let count =
            |sql: &str| -> u64 { tool.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap() as u64 };
        let billed = server.received().len() as u64;
        let (spent, held) = {
            let listed = formwork(&["keys", "list", "--json", "--ledger", &ledger], "");
            let key: Value = serde_json::from_str(listed.stdout.trim()).unwrap();
            (key["spent"].as_u64().unwrap(), key["held"].as_u64().unwrap())
        };
        // A call in flight stays reserved, with at least its cost, until the next service releases it and says what it may have cost.
        let released = count("SELECT COALESCE(sum(reserved), 0) FROM spending WHERE actual = 0");
        assert!(
            spent + held + released >= COST * billed,
            "{spent} spent, {held} held, {released} released, {billed} calls"
        );
        assert!(spent <= COST * billed, "{spent} spent, {billed} calls");
        // Costs are settled after the response.
        let stored = runs();
        assert!(stored >= flushed, "{stored} runs, {flushed} before the load");
        assert!(stored as u64 <= billed, "{stored} runs, {billed} calls");
        assert!(count("SELECT coalesce(sum(micro_usd), 0) FROM run") <= spent + held + released);
        flushed = stored;
    }
}

#[test]
fn tags_of_a_request_are_found_again_in_the_list_of_runs() {
    let server = upstream();
    let config = config(&server);
    let ledger = folder().join("serve-tags.db").display().to_string();
    let serving = Serving::start(&["--config", &config, "--ledger", &ledger]);
    let body = json!({"model": "primary", "messages": [{"role": "user", "content": "Maria, 34"}]});
    for headers in
        ["x-formwork-tags: nightly, eu-west\r\nx-formwork-user: alice\r\n", "x-formwork-tags: eu\r\n", ""]
    {
        let answer = post(&serving.address, "/v1/chat/completions", "any", headers, &body).unwrap();
        assert_eq!(answer.0, 200, "{}", answer.1);
    }
    let list = |more: &[&str]| formwork(&[&["runs", "list", "--ledger", &ledger], more].concat(), "").stdout;
    while list(&[]).lines().count() < 3 {}
    for (tag, runs) in [("nightly", 1), ("eu-west", 1), ("eu", 1), ("west", 0), ("alice", 0)] {
        assert_eq!(list(&["--tag", tag]).lines().count(), runs, "{tag}");
    }
    let output = list(&["--tag", "nightly"]);
    assert!(["nightly", "eu-west", "alice"].iter().all(|label| output.contains(label)), "{output}");
}

#[test]
fn the_order_and_the_weights_of_the_configurations_targets_hold_for_the_model_default() {
    for (order, shares) in [
        ("", [8, 0]),
        ("order = \"round-robin\"\n", [4, 4]),
        ("weights = [1, 3]\n", [2, 6]),
        ("weights = [0, 1]\n", [0, 8]),
    ] {
        let servers = [upstream(), upstream()];
        let mut text = format!("targets = [\"b\", \"a\"]\n{order}");
        // The order of `targets` counts, not that of the providers.
        for (name, server) in [("a", &servers[1]), ("b", &servers[0])] {
            text += &format!(
                "[providers.{name}]\nkind = \"openai\"\nmodel = \"m\"\nstream = false\napi_key_env = \"\"\nbase_url = \"{}\"\n",
                server.url()
            );
        }
        let serving = Serving::start(&["--config", &temporary("serve-order.toml", text)]);
        let body = json!({"model": "default", "messages": [{"role": "user", "content": "Maria, 34"}]});
        for _ in 0..8 {
            assert_eq!(serving.post("/v1/chat/completions", "", &body).0, 200);
        }
        assert_eq!(servers.each_ref().map(|server| server.received().len()), shares, "{order}");
    }
}

/// A priced service with the key of a client, and the ledger of both.
fn with_key(server: &Server, name: &str) -> (Serving, String, String) {
    let config = priced(&server.url(), &format!("{name}.toml"));
    let ledger = folder().join(format!("{name}.db")).display().to_string();
    let added = formwork(&["keys", "add", "alice", "--ledger", &ledger], "");
    let key = added.stdout.split_whitespace().find(|word| word.starts_with("fw_")).unwrap().to_owned();
    (Serving::start(&["--config", &config, "--ledger", &ledger]), key, ledger)
}

/// A server that bills [`COST`] for each call.
fn billing() -> Server {
    let body = json!({"choices": [{
        "index": 0, "message": {"role": "assistant", "content": "34"}, "finish_reason": "stop",
    }], "usage": {"prompt_tokens": 10, "completion_tokens": 50, "total_tokens": 60}});
    Server::start([Reply::json(body.to_string())]).unwrap()
}

fn hello() -> Value {
    json!({"model": "primary", "max_tokens": 60, "messages": [{"role": "user", "content": "Maria, 34"}]})
}

#[test]
fn the_keys_of_a_ledger_that_was_deleted_or_replaced_end_and_the_service_says_why() {
    let server = billing();
    let (mut serving, key, ledger) = with_key(&server, "serve-replaced");
    assert_eq!(serving.post("/v1/chat/completions", &key, &hello()).0, 200);
    for kind in ["", "-wal", "-shm"] {
        std::fs::remove_file(format!("{ledger}{kind}")).unwrap();
    }
    // The service reads keys once a second.
    let refused = loop {
        let (status, body) = serving.post("/v1/chat/completions", &key, &hello());
        if status != 200 {
            break (status, body);
        }
    };
    assert!(refused.0 == 503 && refused.1.contains("deleted or replaced"), "{refused:?}");
    // Another ledger has not the keys of the one that was opened.
    assert_eq!(formwork(&["keys", "add", "bob", "--ledger", &ledger], "").code, 0);
    assert_eq!(serving.post("/v1/chat/completions", &key, &hello()).0, 503);
    let request = "GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let (status, body) = send(&serving.address, request).unwrap();
    assert!(status == 503 && body.contains("deleted or replaced"), "{body}");
    assert!(!body.contains(&ledger), "{body}");
    let errors = serving.ended();
    let says = format!("{ledger} was deleted or replaced: start the service again");
    assert_eq!(errors.matches(&says).count(), 1, "{errors}");
}

#[test]
fn a_service_ends_while_another_process_locks_the_ledger_and_says_what_is_lost() {
    let server = billing();
    let (mut serving, key, ledger) = with_key(&server, "serve-locked");
    assert_eq!(serving.post("/v1/chat/completions", &key, &hello()).0, 200);
    let other = rusqlite::Connection::open(&ledger).unwrap();
    other.busy_timeout(Duration::from_secs(300)).unwrap();
    let count = |sql: &str| other.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    while count("SELECT count(*) FROM run") < 1 {}
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    assert_eq!(serving.post("/v1/chat/completions", &key, &hello()).0, 200);
    let errors = serving.ended();
    assert!(errors.contains("waits for the ledger"), "{errors}");
    let says = "records 1 runs, and these are lost: runs: 0, costs of calls: at most 1 (0.00011 US dollars)";
    assert!(errors.contains(says), "{errors}");
    drop(other);
    assert_eq!(formwork(&["runs", "list", "--json", "--ledger", &ledger], "").rows().len(), 2);
}

#[test]
fn the_log_has_the_beginning_and_the_end_of_a_time_in_which_the_ledger_cannot_be_written() {
    let server = billing();
    let (mut serving, key, ledger) = with_key(&server, "serve-unwritten");
    let other = rusqlite::Connection::open(&ledger).unwrap();
    other.busy_timeout(Duration::from_secs(300)).unwrap();
    let broken = "CREATE TRIGGER broken BEFORE INSERT ON run BEGIN SELECT RAISE(ABORT, 'broken'); END";
    other.execute_batch(broken).unwrap();
    assert_eq!(serving.post("/v1/chat/completions", &key, &hello()).0, 200);
    let request = "GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    while !send(&serving.address, request).unwrap().1.contains("cannot be written") {}
    other.execute_batch("DROP TRIGGER broken").unwrap();
    while other.query_row("SELECT count(*) FROM run", [], |row| row.get::<_, i64>(0)).unwrap() < 1 {}
    let errors = serving.ended();
    let said =
        |what: &str| errors.lines().filter(|line| line.contains(what) && line.contains(&ledger)).count();
    assert_eq!(said("up to 16384 runs are kept in memory until it can"), 1, "{errors}");
    assert_eq!(said("runs that were written late: 1, runs that were lost: 0"), 1, "{errors}");
}

#[test]
#[cfg(unix)]
fn a_hangup_changes_the_limits_of_later_connections_and_says_that_telemetry_needs_a_new_start() {
    let server = upstream();
    let text = |timeout: f64, telemetry: &str| {
        format!("{}[serve]\nhead_timeout_seconds = {timeout}\n{telemetry}", named(&server, "before"))
    };
    let path = temporary("serve-limits.toml", text(600.0, ""));
    let mut serving = Serving::start(&["--config", &path]);
    std::fs::write(&path, text(0.05, "[telemetry]\nservice = \"other\"\n")).unwrap();
    let id = serving.child.id().to_string();
    assert!(Command::new("kill").args(["-HUP", &id]).status().unwrap().success());
    let start = Instant::now();
    // A connection that sends nothing is closed by the new limit; one from before the reload is open for ten minutes.
    loop {
        let mut socket = TcpStream::connect(&serving.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        if socket.read_to_end(&mut Vec::new()).is_ok() {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(300));
    }
    let log = serving.ended();
    assert_eq!(log.matches("[telemetry] has changed, which needs a new start").count(), 1, "{log}");
    assert!(log.contains("read the configuration again"), "{log}");
}

#[test]
fn the_log_warns_of_a_stream_that_failed_and_of_a_client_that_left() {
    let delta = json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": "thirty"}}]});
    let piece = format!("data: {delta}\n\n");
    let cut = Reply::pieces([piece.clone()]).with_header("content-type", "text/event-stream");
    let endless = Reply::endless(piece.clone()).with_header("content-type", "text/event-stream");
    let server = Server::start([cut.cut_at(piece.len(), End::Close), endless]).unwrap();
    let config = config(&server);
    let text = std::fs::read_to_string(&config).unwrap().replace("stream = false\n", "");
    std::fs::write(&config, text).unwrap();
    let mut serving = Serving::start(&["--config", &config, "--verbose"]);
    let mut body = hello();
    body["stream"] = json!(true);
    assert_eq!(serving.post("/v1/chat/completions", "any", &body).0, 200);
    let body = body.to_string();
    let mut socket = TcpStream::connect(&serving.address).unwrap();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    socket.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()).unwrap();
    socket.read_exact(&mut [0; 200]).unwrap();
    drop(socket);
    let log = serving.ended();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let lines: Vec<Value> = lines.filter(|line| line["request_id"].is_string()).collect();
    let [failed, left] = &lines[..] else { panic!("{log}") };
    let head = |line: &Value| (line["level"].clone(), line["message"].clone(), line["status"].clone());
    assert_eq!(head(failed), (json!("WARN"), json!("failed"), json!(200)), "{log}");
    assert!(failed["outcome"] == "unavailable" && failed["problem"].is_string(), "{failed}");
    assert_eq!(head(left), (json!("WARN"), json!("the client disconnected"), json!(200)), "{log}");
    assert_eq!(left["problem"], "the client left", "{left}");
}
