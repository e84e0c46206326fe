//! Limits, lists, probes, metrics, and the end of the service.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use formwork_core::Time;
use formwork_ledger::{Ledger, NewKey, RunQuery, RunRecord, Settings};
use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::support::{
    Gate, Received, completion, limits, now, openai, request, schema, section, targets, wait_until, ways,
};

#[test]
fn each_protocol_lists_the_names() {
    let config = format!("{}[aliases]\nfast = \"primary\"\n", openai("http://127.0.0.1:1"));
    let gate = Gate::new(&config);
    let list = gate.get("/v1/models").json();
    let ids: Vec<_> =
        list["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["primary", "default", "fast"]);
    let tags = gate.get("/api/tags").json();
    assert_eq!(tags["models"][2]["name"], "fast");
    let list = gate.send(
        b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\nanthropic-version: x\r\nconnection: close\r\n\r\n",
    );
    assert_eq!((&list.json()["data"][0]["type"], &list.json()["has_more"]), (&json!("model"), &json!(false)));
    assert_eq!(gate.get("/v1/models/fast").json()["id"], "fast");
    assert_eq!(gate.get("/v1/models/slow").status, 404);
    assert_eq!(gate.post("/api/show", &[], &json!({"model": "fast"})).status, 200);
    assert_eq!(gate.post("/api/show", &[], &json!({"model": "slow"})).status, 404);
    assert!(gate.get("/api/version").json()["version"].is_string());
    assert_eq!((gate.get("/healthz").status, gate.get("/readyz").status), (200, 200));
    assert_eq!((gate.get("/v1/nothing").status, gate.get("/v1/chat/completions").status), (404, 405));
}

#[test]
fn every_response_names_its_run_and_its_request() {
    let gate = Gate::new(&openai("http://127.0.0.1:9"));
    let mut runs = std::collections::BTreeSet::new();
    let paths = ["/healthz", "/metrics", "/v1/models", "/v1/nothing", "/v1/chat/completions", "/v1/runs/x"];
    for path in paths {
        let got = gate.get(path);
        assert!(got.header("x-request-id").unwrap().starts_with("req-"), "{path}");
        assert!(runs.insert(got.header("x-formwork-run").unwrap().to_owned()), "{path}");
    }
    for (id, is_echoed) in [("order-7", true), ("a b", false), (&*"x".repeat(129), false)] {
        for (path, body, status) in [
            ("/v1/chat/completions", json!({}), 400),
            ("/v1/extract", json!({}), 400),
            ("/v1/embeddings", json!({"model": "none"}), 404),
            ("/v1/chat/completions", json!({"model": "primary", "messages": []}), 503),
        ] {
            let got = gate.post(path, &[("x-request-id", id)], &body);
            assert_eq!(got.status, status, "{path}");
            assert_eq!(got.header("x-request-id") == Some(id), is_echoed, "{path} {id}");
            assert!(runs.insert(got.header("x-formwork-run").unwrap().to_owned()), "{path} {id}");
        }
    }
}

#[test]
fn clients_of_anthropic_find_the_identifier_of_the_request_in_their_own_header() {
    let origin = "https://app.example.org";
    let answer =
        json!({"type": "message", "content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn"});
    let server = Server::start([Reply::json(answer.to_string())]).unwrap();
    let config = section("primary", "anthropic", &server.url());
    let gate = Gate::start(targets(&config).with_limits(limits()).with_origins(vec![origin.to_owned()]));
    let good =
        json!({"model": "primary", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]});
    for (path, body, status, has) in [
        ("/v1/messages", good, 200, true),
        ("/v1/messages", json!({}), 400, true),
        ("/v1/messages/batches", json!({}), 404, true),
        ("/v1/chat/completions", json!({}), 400, false),
    ] {
        let got = gate.post(path, &[("x-request-id", "order-7"), ("origin", origin)], &body);
        assert_eq!((got.status, got.header("x-request-id")), (status, Some("order-7")), "{path}");
        assert_eq!(got.header("request-id"), has.then_some("order-7"), "{path}: {}", got.text());
        let exposed = got.header("access-control-expose-headers").unwrap();
        assert!(exposed.split(", ").any(|name| name == "request-id"), "{exposed}");
    }
}

#[test]
fn a_repeated_request_with_an_idempotency_key_gets_the_first_response_and_no_second_call() {
    let server = Server::start([completion(r#"{"age": 34}"#), completion(r#"{"age": 35}"#)]).unwrap();
    let gate = Gate::new(&openai(&server.url()));
    for way in ways() {
        let before = server.received().len();
        for is_stream in [false, true] {
            let key = format!("{} {is_stream}", way.name);
            let headers = [("idempotency-key", key.as_str())];
            let body = way.body("primary", is_stream);
            let [first, second] = [(); 2].map(|()| gate.post(way.path, &headers, &body));
            assert_eq!((first.status, first.text()), (second.status, second.text()), "{key}");
            assert_eq!(first.header("x-formwork-run"), second.header("x-formwork-run"));
            assert_ne!(first.header("x-request-id"), second.header("x-request-id"));
            assert_eq!(
                (first.header("idempotent-replayed"), second.header("idempotent-replayed")),
                (None, Some("true"))
            );
            let other = gate.post(way.path, &headers, &way.body("default", is_stream));
            assert_eq!(other.status, 400, "{}", other.text());
            for more in [("x-formwork-deadline", "9"), ("anthropic-beta", "b")] {
                let other = gate.post(way.path, &[headers[0], more], &body);
                assert_eq!(other.status, 400, "a header may change the answer: {}", other.text());
            }
        }
        assert_eq!(server.received().len(), before + 2, "{}", way.name);
    }
    for key in ["", &"x".repeat(256)] {
        let got = gate.post("/v1/chat/completions", &[("idempotency-key", key)], &json!({}));
        assert_eq!(got.status, 400);
    }
}

#[test]
fn a_client_that_disconnects_and_repeats_its_request_with_the_key_gets_the_response_of_the_first_call() {
    let server =
        Server::start([completion(r#"{"age": 34}"#).with_pause(std::time::Duration::from_millis(300))])
            .unwrap();
    let gate = Gate::new(&openai(&server.url()));
    let way = ways()[0];
    let headers = [("idempotency-key", "order-7")];
    let body = way.body("primary", false);
    let mut socket = gate.connect();
    socket.write_all(&request(way.path, &headers, body.to_string().as_bytes())).unwrap();
    while server.received().is_empty() {
        std::thread::yield_now();
    }
    drop(socket);
    let got = gate.post(way.path, &headers, &body);
    assert_eq!((got.status, got.header("idempotent-replayed")), (200, Some("true")), "{}", got.text());
    assert_eq!(server.received().len(), 1);
}

#[test]
fn a_ledger_that_cannot_be_written_is_named_and_targets_that_are_down_make_a_service_unready() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let ledger = Ledger::open(&path, Settings::default()).unwrap();
    let gate = Gate::start(targets(&openai("http://127.0.0.1:9")).with_limits(limits()).with_ledger(ledger));
    let lock = rusqlite::Connection::open(&path).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    // A check holds for two seconds.
    let ready = |expected: Value| {
        wait_until(|| {
            let got = gate.get("/readyz");
            (got.status, got.json())
                == (if expected["status"] == "ready" { 200 } else { 503 }, expected.clone())
        });
    };
    ready(
        json!({"status": "ready", "ledger": "degraded", "reasons": ["the ledger is locked by another process"]}),
    );
    lock.execute_batch("COMMIT").unwrap();
    ready(json!({"status": "ready", "ledger": "ok"}));
    let body = json!({"model": "primary", "messages": [{"role": "user", "content": "Hello"}], "response_format": {"type": "json_object"}});
    while gate.post("/v1/chat/completions", &[], &body).status == 503 && gate.get("/readyz").status == 200 {}
    let reasons = ["none of 1 targets answered its last calls"];
    ready(json!({"status": "not ready", "ledger": "ok", "reasons": reasons}));
}

/// The file can be written, and the table of runs cannot, as with a damaged page.
#[test]
fn a_ledger_that_takes_no_runs_is_degraded_until_it_takes_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let ledger = Ledger::open(&path, Settings::default()).unwrap();
    let server = Server::start([completion("Hello.")]).unwrap();
    let gate = Gate::start(targets(&openai(&server.url())).with_limits(limits()).with_ledger(ledger));
    let execute = |sql: &str| rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    execute("CREATE TRIGGER broken BEFORE INSERT ON run BEGIN SELECT RAISE(FAIL, 'broken'); END");
    let body = json!({"model": "primary", "messages": [{"role": "user", "content": "Hello"}]});
    for (sql, state) in [("SELECT 1", "degraded"), ("DROP TRIGGER broken", "ok")] {
        execute(sql);
        wait_until(|| {
            assert_eq!(gate.post("/v1/chat/completions", &[], &body).status, 200);
            let ready = gate.get("/readyz");
            assert_eq!(ready.status, 200);
            ready.json()["ledger"] == state
        });
    }
}

#[test]
fn runs_and_texts_are_deleted_at_the_age_that_the_limits_state() {
    const DAY: u64 = 86_400_000;

    let ledger = Ledger::in_memory(Settings { bodies: true, ..Settings::default() }).unwrap();
    for age in [9, 3, 0] {
        let then = Time(now().0 - age * DAY);
        ledger.record(RunRecord::new("extract", then).with_request(Some(format!("{age} days"))));
    }
    ledger.flush_blocking().unwrap();
    let mut limits = limits();
    let days = |days: u64| Some(Duration::from_millis(days * DAY));
    (limits.keep_runs, limits.keep_bodies) = (days(7), days(2));
    let _gate =
        Gate::start(targets(&openai("http://127.0.0.1:9")).with_limits(limits).with_ledger(ledger.clone()));
    let kept = || {
        let runs = ledger.runs(&RunQuery::default()).unwrap().runs;
        runs.iter().filter_map(|run| ledger.run(run.id).unwrap()).map(|run| run.request).collect::<Vec<_>>()
    };
    wait_until(|| kept() == [Some("0 days".to_owned()), None]);
}

/// Requests with and without a schema say alike whether the targets answer, and an answer to either ends an outage.
#[test]
fn readiness_follows_requests_of_every_kind() {
    let plain = json!({"model": "primary", "messages": [{"role": "user", "content": "Hello"}]});
    let mut format = plain.clone();
    format["response_format"] = json!({"type": "json_object"});
    for down in [&plain, &format] {
        let failures = std::iter::repeat_n(Reply::status(500), 60);
        let server = Server::start(failures.chain([completion("{}")])).unwrap();
        let gate = Gate::new(&openai(&server.url()));
        while gate.get("/readyz").status == 200 {
            assert_ne!(gate.post("/v1/chat/completions", &[], down).status, 200, "{down}");
        }
        while gate.post("/v1/chat/completions", &[], &plain).status != 200 {}
        assert_eq!(gate.get("/readyz").status, 200, "{down}");
    }
}

#[test]
fn a_service_is_ready_until_the_spending_of_keys_cannot_be_counted_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let ledger = Ledger::open(&path, Settings::default()).unwrap();
    let (key, secret) = ledger.add_key(NewKey::new("alice"), now()).unwrap();
    let server = Server::start([completion("Hello.")]).unwrap();
    let gate = Gate::start(targets(&openai(&server.url())).with_limits(limits()).with_ledger(ledger.clone()));
    // Another program makes every write of spending fail, and of nothing else.
    let broken = "CREATE TRIGGER broken BEFORE UPDATE ON key BEGIN SELECT RAISE(FAIL, 'broken'); END";
    rusqlite::Connection::open(&path).unwrap().execute_batch(broken).unwrap();
    let ask = || {
        let body = json!({"model": "primary", "messages": [{"role": "user", "content": "Hello"}]});
        gate.post("/v1/chat/completions", &[("x-api-key", secret.reveal())], &body).status
    };
    // Nothing is known of a key before its first request.
    assert_eq!((gate.get("/readyz").status, ask(), gate.get("/readyz").status), (200, 200, 200));
    let mut held = Vec::new();
    while let Ok(hold) = ledger.reserve_blocking(key.id, 0, None, now()) {
        held.push(hold);
    }
    let got = gate.get("/readyz");
    let reason = "the spending of keys cannot be counted any more: the memory for it is full";
    assert_eq!(
        (got.status, &got.json()["ledger"], &got.json()["reasons"]),
        (503, &json!("degraded"), &json!([reason]))
    );
    assert_eq!(ask(), 503);
    // Nothing of the rest is written.
    std::mem::forget(held);
}

#[test]
fn metrics_cover_requests_that_are_passed_on() {
    let usage =
        json!({"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}});
    let body = json!({"model": "m-1-2026", "choices": [{"finish_reason": "stop"}], "usage": usage});
    let server = Server::start([Reply::json(body.to_string())]).unwrap();
    let gate = Gate::new(&openai(&server.url()));
    let body = json!({"model": "primary", "messages": [{"role": "user", "content": "Hello"}]});
    assert_eq!(gate.post("/v1/chat/completions", &[], &body).status, 200);
    let counted = "formwork_calls_total{target=\"primary\",result=\"accepted\"} 1";
    // The call is recorded a moment after its response.
    let mut page = gate.get("/metrics").text();
    while !page.contains(counted) {
        page = gate.get("/metrics").text();
    }
    for line in [
        "formwork_tokens_total{target=\"primary\",kind=\"input\"} 12",
        "formwork_tokens_total{target=\"primary\",kind=\"cached\"} 4",
        "formwork_first_part_seconds_count{protocol=\"openai\"}",
        "formwork_request_seconds_count{protocol=\"openai\"}",
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
}

/// The head of a stream, its first events and those that keep a connection alive come before the answer.
#[test]
fn the_time_until_the_first_part_is_that_of_the_answer() {
    let pause = Duration::from_millis(4);
    let answer =
        json!({"choices": [{"index": 0, "message": {"content": "{\"age\": 34}"}, "finish_reason": "stop"}]});
    let mut plain = ways()[4].body("primary", true);
    plain.as_object_mut().unwrap().remove("output_config");
    for (protocol, path, body) in [
        ("openai", ways()[0].path, ways()[0].body("primary", true)),
        ("responses", ways()[2].path, ways()[2].body("primary", true)),
        ("anthropic", ways()[4].path, ways()[4].body("primary", true)),
        ("anthropic", ways()[4].path, plain),
        ("ollama", ways()[6].path, ways()[6].body("primary", true)),
        ("openai", "/v1/extract", json!({"input": "Maria, 34", "schema": schema(), "stream": true})),
    ] {
        let server = Server::start([Reply::slow(answer.to_string(), pause)]).unwrap();
        let mut quick = limits();
        quick.keep_alive = std::time::Duration::from_millis(20);
        let gate = Gate::start(targets(&openai(&server.url())).with_limits(quick));
        let got = gate.post(path, &[], &body);
        assert!(got.status == 200 && got.text().contains("34"), "{path}: {}", got.text());
        let value = |name: &str| {
            let name = format!("formwork_{name}_seconds_sum{{protocol=\"{protocol}\"}} ");
            let page = gate.get("/metrics").text();
            let line = page.lines().find_map(|line| line.strip_prefix(&name)).unwrap_or_default().to_owned();
            line.parse::<f64>().unwrap_or_default()
        };
        wait_until(|| value("request") > 0.0);
        let (first, least) =
            (value("first_part"), pause.as_secs_f64() * answer.to_string().len() as f64 * 0.9);
        assert!(first >= least, "{protocol}, {path}: {first}, {least}");
    }
}

#[test]
fn a_contract_is_compiled_once_and_counted() {
    let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
    let gate = Gate::new(&openai(&server.url()));
    for way in ways().into_iter().take(2) {
        // The limits of a request are no part of its contract.
        for deadline in ["60", "61", "62.5"] {
            let headers = [("x-formwork-deadline", deadline)];
            assert_eq!(gate.post(way.path, &headers, &way.body("primary", false)).status, 200);
        }
    }
    let page = gate.get("/metrics").text();
    for line in [
        "formwork_contracts_total{result=\"hit\"} 4",
        "formwork_contracts_total{result=\"miss\"} 2",
        "formwork_calls_total{target=\"primary\",result=\"accepted\"} 6",
        "formwork_requests_total{protocol=\"openai\",method=\"POST\",status=\"200\"} 6",
        "formwork_tokens_total{target=\"primary\",kind=\"input\"} 60",
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
}

#[test]
fn a_schema_is_the_same_in_each_spelling_and_another_one_is_never_mistaken_for_it() {
    let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
    for way in ways() {
        let gate = Gate::new(&openai(&server.url()));
        let known = way.body("primary", false).to_string();
        let spaced = known.replace(':', ": ").replace(",\"", " ,\n\"");
        let escaped = known.replace("maximum", "ma\\u0078imum");
        // Of the same length, and 34 is too much.
        let other = known.replace("150", " 20");
        // The last one of two members counts.
        let twice = known.replace("\"maximum\":150", "\"maximum\":20,\"maximum\":150");
        assert!(known != spaced && known != escaped && known != other && known != twice, "{}", way.name);
        for (body, status) in [
            (&known, 200),
            (&spaced, 200),
            (&escaped, 200),
            (&known, 200),
            (&other, 422),
            (&known, 200),
            (&twice, 200),
            (&other, 422),
        ] {
            let received = gate.send(&request(way.path, &[], body.as_bytes()));
            assert_eq!(received.status, status, "{}: {body}\n{}", way.name, received.text());
        }
        let page = gate.get("/metrics").text();
        for line in ["{result=\"hit\"} 6", "{result=\"miss\"} 2"] {
            assert!(
                page.contains(&format!("formwork_contracts_total{line}")),
                "{}: {line}\n{page}",
                way.name
            );
        }
    }
}

#[test]
fn what_is_more_than_can_wait_is_refused_and_the_rest_is_answered() {
    let server = Server::start([Reply::silent()]).unwrap();
    let mut few = limits();
    (few.max_concurrent, few.max_waiting) = (1, 1);
    let mut gate = Gate::start(targets(&openai(&server.url())).with_limits(few));
    let way = ways()[0];
    let open = || {
        let mut socket = gate.connect();
        socket.write_all(&request(way.path, &[], way.body("primary", false).to_string().as_bytes())).unwrap();
        socket
    };
    let _working = (open(), open());
    // Both requests are accepted before another one is refused.
    let refused = loop {
        let page = gate.get("/metrics").text();
        if page.contains("in_progress 1") && page.contains("waiting 1") {
            break gate.post(way.path, &[], &way.body("primary", false));
        }
    };
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{}", refused.text());
    gate.stop();
}

#[test]
fn streams_of_a_key_are_limited() {
    let server = Server::start([Reply::silent()]).unwrap();
    let mut few = limits();
    few.max_streams = 1;
    let gate = Gate::start(targets(&openai(&server.url())).with_limits(few));
    let way = ways()[0];
    let mut socket = gate.connect();
    socket.write_all(&request(way.path, &[], way.body("primary", true).to_string().as_bytes())).unwrap();
    let mut first = [0; 64];
    socket.read_exact(&mut first).unwrap();
    assert_eq!(gate.post(way.path, &[], &way.body("primary", true)).status, 429);
    drop(socket);
    while gate.get("/metrics").text().contains("formwork_open_streams 1") {}
}

#[test]
fn streams_that_are_passed_through_are_limited_too() {
    let messages = json!([{"role": "user", "content": "Hello"}]);
    for (kind, path, body) in [
        ("openai", "/v1/chat/completions", json!({"messages": messages, "stream": true})),
        ("anthropic", "/v1/messages", json!({"messages": messages, "max_tokens": 9, "stream": true})),
        // Ollama's requests stream unless they say otherwise.
        ("ollama", "/api/chat", json!({"messages": messages})),
        ("ollama", "/api/generate", json!({"prompt": "Hello"})),
    ] {
        let endless = Reply::endless("data: {}\n\n").with_pause(std::time::Duration::from_millis(20));
        let server = Server::start([endless, Reply::json("{}")]).unwrap();
        let mut few = limits();
        few.max_streams = 1;
        let gate = Gate::start(targets(&section("primary", kind, &server.url())).with_limits(few));
        let mut body = body;
        body["model"] = "primary".into();
        let mut socket = gate.connect();
        socket.write_all(&request(path, &[], body.to_string().as_bytes())).unwrap();
        let mut first = [0; 64];
        socket.read_exact(&mut first).unwrap();
        assert_eq!(gate.post(path, &[], &body).status, 429, "{path}");
        body["stream"] = false.into();
        assert_eq!(gate.post(path, &[], &body).status, 200, "{path}: only streams count");
        drop(socket);
        while !gate.get("/metrics").text().contains("formwork_open_streams 0") {}
    }
}

#[test]
fn a_stream_sends_its_head_at_once_and_comments_while_it_waits() {
    let server = Server::start([Reply::silent()]).unwrap();
    let mut quick = limits();
    quick.keep_alive = std::time::Duration::from_millis(20);
    let gate = Gate::start(targets(&openai(&server.url())).with_limits(quick));
    for (way, comment) in [
        (ways()[0], ": keep-alive"),
        (ways()[2], ": keep-alive"),
        (ways()[4], "\"ping\""),
        (ways()[6], "\"content\":\"\""),
    ] {
        let mut socket = gate.connect();
        socket.write_all(&request(way.path, &[], way.body("primary", true).to_string().as_bytes())).unwrap();
        let mut text = Vec::new();
        let mut piece = [0; 1_024];
        while String::from_utf8_lossy(&text).matches(comment).count() < 3 {
            let read = socket.read(&mut piece).unwrap();
            assert!(read > 0, "{}", way.name);
            text.extend_from_slice(&piece[..read]);
        }
        assert!(text.starts_with(b"HTTP/1.1 200 OK"), "{}", way.name);
    }
}

#[test]
fn the_end_waits_for_streams_and_refuses_new_requests() {
    // Even on a busy machine a request is refused within this time; the service ends with the stream.
    let pause = std::time::Duration::from_secs(3);
    let server = Server::start([completion(r#"{"age": 34}"#).with_pause(pause)]).unwrap();
    let mut limits = super::support::limits();
    limits.keep_alive = std::time::Duration::from_millis(1);
    let mut gate = Gate::start(targets(&openai(&server.url())).with_limits(limits));
    let way = ways()[0];
    let mut socket = gate.connect();
    socket.write_all(&request(way.path, &[], way.body("primary", true).to_string().as_bytes())).unwrap();
    let mut bytes = vec![0; 64];
    socket.read_exact(&mut bytes).unwrap();
    gate.stop();
    let refused = loop {
        match gate.get_if_open("/v1/models") {
            Some(got) if got.status != 200 => break got,
            _ => {}
        }
    };
    assert_eq!((refused.status, refused.header("connection")), (503, Some("close")));
    socket.read_to_end(&mut bytes).unwrap();
    assert_eq!(way.streamed(&Received::parse(&bytes).documents()), r#"{"age":34}"#);
    gate.join();
}

/// A request that has no response when the time for open requests is over is refused, so that its client may send it again.
#[test]
fn a_request_that_the_end_of_the_service_meets_is_refused() {
    let server = Server::start([Reply::silent()]).unwrap();
    let ledger = Ledger::in_memory(Settings::default()).unwrap();
    let mut limits = limits();
    limits.drain = std::time::Duration::from_millis(1);
    for (way, has_schema) in [(ways()[0], true), (ways()[0], false)] {
        let builder = targets(&openai(&server.url())).with_limits(limits.clone()).with_ledger(ledger.clone());
        let mut gate = Gate::start(builder);
        let mut socket = gate.connect();
        let mut body = way.body("primary", false);
        if !has_schema {
            body.as_object_mut().unwrap().remove("response_format");
        }
        let before = server.received().len();
        socket.write_all(&request(way.path, &[], body.to_string().as_bytes())).unwrap();
        wait_until(|| server.received().len() > before);
        gate.stop();
        let mut bytes = Vec::new();
        socket.read_to_end(&mut bytes).unwrap();
        let got = Received::parse(&bytes);
        assert_eq!((got.status, got.header("x-should-retry")), (503, Some("true")), "{}", got.text());
        assert!(got.text().contains("the service stopped"), "{}", got.text());
        gate.join();
        // The record is written before the service ends.
        let run = ledger.runs(&RunQuery::default()).unwrap().runs.remove(0);
        assert_eq!(
            (run.outcome.as_str(), run.message.as_deref()),
            ("cancelled", Some("the service stopped"))
        );
        let calls = ledger.run(run.id).unwrap().unwrap().calls;
        assert_eq!((calls.len(), calls[0].class.as_ref(), calls[0].usage.estimated), (1, "cancelled", true));
    }
}

#[test]
fn every_resource_of_the_openapi_document_exists() {
    let gate = Gate::new(&openai("http://127.0.0.1:1"));
    let document = gate.get("/openapi.json").json();
    assert_eq!(document, formwork_gateway::openapi());
    for (path, methods) in document["paths"].as_object().unwrap() {
        let address = path.replace("{name}", "primary").replace("{id}", "1");
        for method in methods.as_object().unwrap().keys() {
            let got = match method.as_str() {
                "get" => gate.get(&address),
                _ => gate.post(&address, &[], &serde_json::json!({})),
            };
            assert_ne!(got.status, 405, "{method} {path}");
            assert!(!got.text().contains("no such resource"), "{method} {path}: {}", got.text());
        }
    }
}

#[test]
fn references_of_the_openapi_document_lead_somewhere() {
    fn walk(document: &serde_json::Value, part: &serde_json::Value) {
        if let Some(reference) = part.get("$ref").and_then(serde_json::Value::as_str) {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
        let members = part.as_object().into_iter().flat_map(|members| members.values());
        members.chain(part.as_array().into_iter().flatten()).for_each(|part| walk(document, part));
    }
    let document = formwork_gateway::openapi();
    walk(&document, &document);
}
