//! Keys, budgets, records and the cache, in front of scripted servers.

use std::time::Duration;

use formwork_ledger::{KeyRole, Ledger, NewKey, RunOutcome, RunQuery, Settings};
use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::extract::Folder;
use super::support::{Gate, completion, limits, now, openai, schema, targets, ways};

fn ledger() -> Ledger {
    Ledger::in_memory(Settings { bodies: true, ..Settings::default() }).unwrap()
}

/// A target with a price of one dollar per thousand tokens: 10 tokens of prompt and 5 of the completion cost 0.015 dollars.
fn priced(url: &str) -> String {
    let known = "price = { input = 1000, output = 1000 }\ncapabilities = { output_tokens = 4096 }\n";
    format!("{}\n{known}", openai(url).trim_end())
}

fn gate(url: &str, ledger: &Ledger) -> Gate {
    Gate::start(targets(&priced(url)).with_limits(limits()).with_ledger(ledger.clone()).with_bodies())
}

fn add(ledger: &Ledger, key: NewKey) -> String {
    let (_, secret) = ledger.add_key(key, now()).unwrap();
    secret.reveal().to_owned()
}

#[test]
fn keys_are_asked_for_once_there_are_any() {
    let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
    let ledger = ledger();
    let gate = gate(&server.url(), &ledger);
    for way in ways() {
        let body = way.body("primary", false);
        let mine = format!("Bearer {}", "anything");
        assert_eq!(gate.post(way.path, &[("authorization", &mine)], &body).status, 200, "{}", way.name);
    }
    let secret = add(&ledger, NewKey { models: vec!["primary".to_owned()], ..NewKey::new("alice") });
    for way in ways() {
        let body = way.body("primary", false);
        let bearer = format!("Bearer {secret}");
        assert_eq!(gate.post(way.path, &[("authorization", &bearer)], &body).status, 200, "{}", way.name);
        assert_eq!(gate.post(way.path, &[("x-api-key", &secret)], &body).status, 200, "{}", way.name);
        for headers in [vec![], vec![("x-api-key", "fw_wrong")], vec![("authorization", "Basic x")]] {
            let got = gate.post(way.path, &headers, &body);
            assert_eq!((got.status, got.header("x-should-retry")), (401, Some("false")), "{}", way.name);
            assert!(!way.message(&got.json()).is_empty());
        }
    }
    for path in ["/v1/models", "/v1/models/primary", "/api/tags", "/metrics", "/", "/v1/runs/x"] {
        assert_eq!(gate.get(path).status, 401, "{path}");
    }
    assert_eq!((gate.get("/healthz").status, gate.get("/readyz").status), (200, 200));
    ledger.revoke_key("alice", now()).unwrap();
    let way = ways()[0];
    assert_eq!(gate.post(way.path, &[("x-api-key", &secret)], &way.body("primary", false)).status, 401);
}

#[test]
fn a_key_sees_and_uses_exactly_its_models_by_every_name_they_have() {
    let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
    let ledger = ledger();
    let secret =
        add(&ledger, NewKey { models: vec!["a".to_owned(), "both".to_owned()], ..NewKey::new("alice") });
    let config: String = ["a", "b", "c"].map(|name| openai(&server.url()).replace("primary", name)).concat();
    let builder = targets(&config)
        .with_alias("just-a", &["a".to_owned()])
        .with_alias("both", &["a".to_owned(), "b".to_owned()])
        .with_alias("a-or-c", &["a".to_owned(), "c".to_owned()])
        .with_alias("nothing", &[]);
    let gate = Gate::start(builder.with_limits(limits()).with_ledger(ledger.clone()));
    let seen = ["a", "both", "just-a"];
    for (name, allowed) in [
        ("a", true),
        ("a:latest", true),
        ("just-a", true),
        ("just-a:latest", true),
        ("both", true),
        ("both:latest", true),
        ("a, both", true),
        ("b", false),
        ("c", false),
        ("a-or-c", false),
        ("default", false),
        ("nothing", false),
        ("a,b", false),
    ] {
        for way in ways() {
            let got = gate.post(way.path, &[("x-api-key", &secret)], &way.body(name, false));
            assert_eq!(got.status, if allowed { 200 } else { 403 }, "{} {name}: {}", way.name, got.text());
        }
        let count =
            gate.post("/v1/messages/count_tokens", &[("x-api-key", &secret)], &json!({"model": name}));
        assert_eq!(count.status, if allowed { 200 } else { 403 }, "{name}");
        let show = gate.post("/api/show", &[("x-api-key", &secret)], &json!({"model": name}));
        assert_eq!(show.status == 200, allowed, "{name}");
    }
    let get = |path: &str, more: &str| {
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {secret}\r\nconnection: close\r\n{more}\r\n"
        );
        gate.send(head.as_bytes())
    };
    for (path, more, list, name) in [
        ("/v1/models", "", "data", "id"),
        ("/v1/models", "anthropic-version: 2023-06-01\r\n", "data", "id"),
        ("/api/tags", "", "models", "name"),
        ("/api/ps", "", "models", "name"),
    ] {
        let body = get(path, more).json();
        let mut names: Vec<_> =
            body[list].as_array().unwrap().iter().map(|model| model[name].as_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, seen, "{path}");
    }
    for (name, status) in [("a", 200), ("just-a:latest", 200), ("b", 404), ("default", 404)] {
        let got = get(&format!("/v1/models/{name}"), "");
        assert_eq!(got.status, status, "{name}");
        assert!(!got.text().contains("a-or-c"), "{}", got.text());
    }
}

#[test]
fn a_rate_is_kept_and_says_when_to_come_back() {
    let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
    let ledger = ledger();
    let secret = add(&ledger, NewKey { rpm: Some(2), ..NewKey::new("alice") });
    let gate = gate(&server.url(), &ledger);
    let way = ways()[0];
    let ask = || gate.post(way.path, &[("x-api-key", &secret)], &way.body("primary", false));
    assert_eq!((ask().status, ask().status), (200, 200));
    let got = ask();
    assert_eq!((got.status, got.header("x-should-retry")), (429, Some("true")));
    let wait: u64 = got.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=30).contains(&wait), "{wait}");
}

#[test]
fn a_key_has_so_many_tokens_a_minute_and_requests_at_once() {
    let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
    let ledger = ledger();
    // A request uses 15 tokens, and the limit is found out at the end of the request that reaches it.
    let tokens = add(&ledger, NewKey { tpm: Some(20), ..NewKey::new("tokens") });
    let gate = gate(&server.url(), &ledger);
    let way = ways()[0];
    let ask = |key: &str| gate.post(way.path, &[("x-api-key", key)], &way.body("primary", false));
    assert_eq!((ask(&tokens).status, ask(&tokens).status), (200, 200));
    let got = ask(&tokens);
    assert_eq!((got.status, got.header("x-should-retry")), (429, Some("true")), "{}", got.text());
    let wait: u64 = got.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=30).contains(&wait), "{wait}");

    let silent = Server::start([Reply::silent()]).unwrap();
    let one = add(&ledger, NewKey { max_open: Some(1), ..NewKey::new("one") });
    let gate = super::keys::gate(&silent.url(), &ledger);
    for path in [way.path, "/v1/embeddings", "/v1/extract"] {
        let body = match path {
            "/v1/extract" => json!({"input": "x", "schema": super::support::schema()}),
            _ => way.body("primary", false),
        };
        let before = silent.received().len();
        let mut socket = gate.connect();
        let bytes = super::support::request(path, &[("x-api-key", &one)], body.to_string().as_bytes());
        std::io::Write::write_all(&mut socket, &bytes).unwrap();
        while silent.received().len() == before {
            std::thread::sleep(Duration::from_millis(2));
        }
        let got = gate.post(path, &[("x-api-key", &one)], &body);
        assert_eq!((got.status, silent.received().len()), (429, before + 1), "{path}: {}", got.text());
        drop(socket);
        // The request ends with its client.
        loop {
            let got = gate.post(
                way.path,
                &[("x-api-key", &one), ("x-formwork-deadline", "0.05")],
                &way.body("primary", false),
            );
            if got.status == 504 {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// A client that has read a response to its end may ask again at once, whatever its requests are.
#[test]
fn a_key_with_one_open_request_may_ask_again_after_each_response() {
    let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
    let ledger = ledger();
    let one = add(&ledger, NewKey { max_open: Some(1), budget: Some(10_000_000_000), ..NewKey::new("one") });
    let gate = gate(&server.url(), &ledger);
    for (way, stream) in ways().into_iter().flat_map(|way| [(way, false), (way, true)]) {
        for nth in 0..40 {
            let mut body = way.body("primary", stream);
            if nth % 2 == 0 {
                for name in ["response_format", "tools", "tool_choice", "text", "output_config", "format"] {
                    body.as_object_mut().unwrap().remove(name);
                }
            }
            let got = gate.post(way.path, &[("x-api-key", &one)], &body);
            assert_eq!(got.status, 200, "{}, stream: {stream}, {nth}: {}", way.name, got.text());
        }
    }
}

#[test]
fn what_is_spent_is_what_the_server_was_asked_for_and_a_budget_is_never_exceeded() {
    for stream in [false, true] {
        let server = Server::start([completion(r#"{"age": 340}"#), completion(r#"{"age": 34}"#)]).unwrap();
        let ledger = ledger();
        let secret = add(&ledger, NewKey { budget: Some(40_000_000), ..NewKey::new("alice") });
        let gate = gate(&server.url(), &ledger);
        let mut seen = Vec::new();
        for way in ways() {
            let mut body = way.body("primary", stream);
            for name in ["max_tokens", "max_completion_tokens", "max_output_tokens"] {
                if way.name.starts_with("chat") && name == "max_completion_tokens"
                    || way.name.starts_with("messages") && name == "max_tokens"
                    || way.name.starts_with("responses") && name == "max_output_tokens"
                {
                    body[name] = 50.into();
                }
            }
            if way.name.starts_with("ollama") {
                body["options"] = json!({"num_predict": 50});
            }
            seen.push(gate.post(way.path, &[("x-api-key", &secret)], &body).status);
        }
        assert!(seen.iter().all(|status| *status == 200), "{seen:?}");
        gate.join();
        let key = &ledger.keys().unwrap()[0];
        let calls = server.received().len() as u64;
        assert_eq!((key.spent, key.held), (calls * 15_000, 0), "{stream}");
        let page = ledger.runs(&RunQuery::default()).unwrap();
        assert_eq!(page.runs.len(), ways().len());
        assert_eq!(page.runs.iter().filter_map(|run| run.micro_usd).sum::<u64>(), key.spent);
    }
}

#[test]
fn a_budget_that_is_used_up_refuses_before_any_call() {
    let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
    let ledger = ledger();
    let secret = add(&ledger, NewKey { budget: Some(10), ..NewKey::new("alice") });
    let gate = gate(&server.url(), &ledger);
    for way in ways() {
        for plain in [false, true] {
            let mut body = way.body("primary", false);
            if plain {
                for name in ["response_format", "tools", "tool_choice", "text", "output_config", "format"] {
                    body.as_object_mut().unwrap().remove(name);
                }
            }
            let got = gate.post(way.path, &[("x-api-key", &secret)], &body);
            assert_eq!(
                (got.status, got.header("x-should-retry")),
                (429, Some("false")),
                "{}: {}",
                way.name,
                got.text()
            );
        }
    }
    assert!(server.received().is_empty());
    assert_eq!((ledger.keys().unwrap()[0].spent, ledger.keys().unwrap()[0].held), (0, 0));
}

#[test]
fn a_limit_of_tokens_beyond_every_reservation_is_a_mistake_of_the_request() {
    let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
    for budget in [None, Some(5_000_000)] {
        let ledger = ledger();
        let secret = add(&ledger, NewKey { budget, ..NewKey::new("alice") });
        let gate = gate(&server.url(), &ledger);
        for way in ways() {
            for plain in [false, true] {
                let mut body = way.body("primary", false);
                if plain {
                    for name in ["response_format", "tools", "tool_choice", "text", "output_config", "format"]
                    {
                        body.as_object_mut().unwrap().remove(name);
                    }
                }
                match way.path {
                    "/v1/responses" => body["max_output_tokens"] = 4_000_000_000_u32.into(),
                    path if path.starts_with("/api") => {
                        body["options"] = json!({"num_predict": 4_000_000_000_u32});
                    }
                    _ => body["max_tokens"] = 4_000_000_000_u32.into(),
                }
                let got = gate.post(way.path, &[("x-api-key", &secret)], &body);
                let at = format!("{} {budget:?} {plain}: {}", way.name, got.text());
                // A run keeps its calls within the budget.
                let status = if budget.is_some() && !plain { 200 } else { 400 };
                assert_eq!(got.status, status, "{at}");
                if status == 400 {
                    assert_eq!(got.header("x-should-retry"), Some("false"), "{at}");
                    assert!(got.text().contains("at most 1000000.00 US dollars"), "{at}");
                }
                if status == 400 && way.path == "/v1/chat/completions" {
                    assert_eq!(got.json()["error"]["param"], "max_tokens", "{at}");
                }
            }
        }
    }
}

#[test]
fn the_reservation_of_a_run_covers_its_corrections() {
    // The prompt is shorter than the list of what is wrong with the answer.
    let server = Server::start([
        completion(r#"{"age": "old", "a": 1, "b": 2}"#),
        completion(r#"{"age": "older", "c": 3, "d": 4}"#),
        completion(r#"{"age": 34}"#),
    ])
    .unwrap();
    let ledger = ledger();
    let secret = add(&ledger, NewKey { budget: Some(90_000_000), ..NewKey::new("alice") });
    let gate = gate(&server.url(), &ledger);
    let mut body = ways()[0].body("primary", false);
    body["max_tokens"] = 9.into();
    let got = gate.post(ways()[0].path, &[("x-api-key", &secret)], &body);
    assert_eq!((got.status, server.received().len()), (200, 3), "{}", got.text());
}

#[test]
fn the_reservation_of_a_run_covers_the_instructions_and_examples_of_its_contract() {
    let folder = Folder::new("long");
    let long = "Count in years. ".repeat(1_500);
    let contract = |member: &str, value: Value| {
        let mut contract = json!({"schema": schema()});
        contract[member] = value;
        contract.to_string()
    };
    folder.write("instructed.yaml", &contract("instructions", json!(long)));
    folder.write("shown.yaml", &contract("examples", json!([{"input": long, "output": {"age": 36}}])));
    let mut limits = limits();
    limits.max_attempts = 1;
    folder.write("short.yaml", &contract("examples", json!([])));
    for (name, prompt_only) in
        [("instructed", false), ("shown", false), ("instructed", true), ("short", true)]
    {
        let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
        let ledger = ledger();
        let secret = add(&ledger, NewKey { budget: Some(90_000_000), ..NewKey::new("alice") });
        let config = format!("{}prompt_only = {prompt_only}\n", priced(&server.url()));
        let builder = targets(&config).with_limits(limits.clone()).with_ledger(ledger.clone());
        let gate = Gate::start(builder.with_contracts(&folder.0));
        let chat = json!({"model": "primary", "messages": [{"role": "user", "content": "Maria, 34"}], "max_tokens": 9});
        let extract = json!({"contract": name, "input": "Maria, 34", "max_tokens": 9});
        for (path, contract, body) in
            [("/v1/chat/completions", Some(name), chat), ("/v1/extract", None, extract)]
        {
            let headers: Vec<_> = [("x-api-key", secret.as_str())]
                .into_iter()
                .chain(contract.map(|name| ("x-formwork-contract", name)))
                .collect();
            let got = gate.post(path, &headers, &body);
            assert_eq!(got.status, 200, "{path} {name} {prompt_only}: {}", got.text());
        }
    }
}

#[test]
fn a_budget_of_a_header_ends_a_run_in_the_middle() {
    // One call costs 0.015 dollars, and reserves 0.05 dollars for its completion alone.
    let server = Server::start([
        completion(r#"{"age": "old"}"#),
        completion(r#"{"age": "older"}"#),
        completion(r#"{"age": 34}"#),
    ])
    .unwrap();
    let gate = Gate::new(&priced(&server.url()));
    let way = ways()[0];
    let mut body = way.body("primary", false);
    body["max_tokens"] = 50.into();
    let got = gate.post(way.path, &[("x-formwork-budget", "0.0001")], &body);
    assert_eq!(
        (got.status, got.json()["error"]["code"].as_str()),
        (429, Some("insufficient_quota")),
        "{}",
        got.text()
    );
}

#[test]
fn runs_are_recorded_and_belong_to_their_key() {
    let server = Server::start([completion(r#"{"age": 340}"#), completion(r#"{"age": 34}"#)]).unwrap();
    let ledger = ledger();
    let alice = add(&ledger, NewKey::new("alice"));
    let bob = add(&ledger, NewKey::new("bob"));
    let admin = add(&ledger, NewKey { role: KeyRole::Admin, ..NewKey::new("root") });
    let gate = gate(&server.url(), &ledger);
    let way = ways()[0];
    let headers = [
        ("x-api-key", alice.as_str()),
        ("x-formwork-tags", "a, <b>"),
        ("x-formwork-user", "u-1"),
        ("x-request-id", "order-7"),
    ];
    let got = gate.post(way.path, &headers, &way.body("primary", false));
    let run = got.header("x-formwork-run").unwrap().to_owned();
    let body = got.json();
    assert_eq!(
        (&body["usage"]["formwork"]["run"], &body["usage"]["formwork"]["cost_usd"]),
        (&json!(run), &json!(0.03))
    );
    let get = |path: &str, key: &str| {
        gate.send(
            format!(
                "GET {path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\nconnection: close\r\n\r\n"
            )
            .as_bytes(),
        )
    };
    let path = format!("/v1/runs/{run}");
    let detail = get(&path, &alice).json();
    assert_eq!(
        (&detail["user"], &detail["tags"], &detail["model"]),
        (&json!("u-1"), &json!(["a", "<b>", "request:order-7"]), &json!("m-1"))
    );
    assert_eq!(detail["calls"].as_array().unwrap().len(), 2);
    assert!(detail["request"].as_str().unwrap().contains("Maria, 34"));
    assert_eq!((get(&path, &bob).status, get(&path, &admin).status, get(&path, "x").status), (404, 200, 401));
    for page in ["/", "/metrics"] {
        assert_eq!((get(page, &alice).status, get(page, &admin).status), (403, 200), "{page}");
    }
    let page = get("/", &admin);
    assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
    assert!(page.text().contains("maximum"), "{}", page.text());
    assert!(get("/runs", &admin).text().contains(&run));
    let one = get(&format!("/runs/{run}"), &admin).text();
    assert!(one.contains("a, &#60;b&#62;") && one.contains("Attempt") && !one.contains("<b>"), "{one}");
}

#[test]
fn streams_text_and_clients_that_leave_are_recorded() {
    let server = Server::start([Reply::silent()]).unwrap();
    let ledger = ledger();
    let gate = gate(&server.url(), &ledger);
    let way = ways()[0];
    let mut socket = gate.connect();
    let bytes = super::support::request(way.path, &[], way.body("primary", false).to_string().as_bytes());
    std::io::Write::write_all(&mut socket, &bytes).unwrap();
    while server.received().is_empty() {
        std::thread::yield_now();
    }
    drop(socket);
    let recorded = loop {
        ledger.flush_blocking().unwrap();
        if let Some(run) = ledger.runs(&RunQuery::default()).unwrap().runs.pop() {
            break run;
        }
    };
    assert_eq!(
        RunOutcome::from_name(&recorded.outcome),
        Some(RunOutcome::Failed(formwork_core::ErrorKind::Cancelled))
    );
}

#[test]
fn a_value_that_held_is_answered_from_the_cache_for_the_same_key_alone() {
    for way in ways() {
        // The same question in another protocol would be answered from the cache, too.
        let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
        let ledger = ledger();
        let alice = add(&ledger, NewKey::new("alice"));
        let bob = add(&ledger, NewKey::new("bob"));
        let builder = targets(&openai(&server.url())).with_limits(limits()).with_ledger(ledger.clone());
        let gate = Gate::start(builder.with_cache(Duration::from_secs(60)));
        let before = server.received().len();
        let body = way.body("primary", false);
        let ask = |key: &str, body| gate.post(way.path, &[("x-api-key", key)], body);
        let first = ask(&alice, &body);
        // The value may not be in the file yet.
        let second = ask(&alice, &body);
        assert_eq!(way.text(&first.json()), way.text(&second.json()), "{}", way.name);
        assert_eq!(second.header("x-formwork-calls"), Some("0"), "{}: {}", way.name, second.text());
        assert!(second.text().contains("\"cached\":true"), "{}", way.name);
        let headers = [("x-api-key", alice.as_str()), ("x-formwork-evidence", "on")];
        let third = gate.post(way.path, &headers, &body).text();
        assert!(third.contains("\"evidence\":[{\"path\":\"$.age\","), "{}: {third}", way.name);
        assert!(third.contains("\"cached\":true") && !third.contains("confidence"), "{}: {third}", way.name);
        let streamed = gate.post(way.path, &[("x-api-key", &alice)], &way.body("primary", true));
        assert!(!way.streamed(&streamed.documents()).is_empty() || way.name.contains("tool"), "{}", way.name);
        assert_eq!(server.received().len(), before + 1, "{}", way.name);
        assert_eq!(ask(&bob, &body).header("x-formwork-calls"), Some("1"));
        assert_eq!(server.received().len(), before + 2, "{}", way.name);
    }
}

#[test]
fn a_changed_contract_judges_the_cached_value_before_a_call_is_made() {
    let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
    let ledger = ledger();
    let [alice, bob] = ["alice", "bob"].map(|name| add(&ledger, NewKey::new(name)));
    let builder = targets(&priced(&server.url())).with_limits(limits()).with_ledger(ledger.clone());
    let kept = Gate::start(builder.with_cache(Duration::from_secs(3600)));
    let never = gate(&server.url(), &ledger);
    let body = |text: &str, age: serde_json::Value| {
        json!({
            "model": "primary", "messages": [{"role": "user", "content": text}],
            "response_format": {"type": "json_schema", "json_schema": {"name": "p", "schema": {
                "type": "object", "properties": {"age": age}, "required": ["age"], "additionalProperties": false,
            }}},
        })
    };
    let integer = json!({"type": "integer"});
    let spent = |name| ledger.key(name).unwrap().spent;
    let (same, fits, other) = (
        integer.clone(),
        json!({"type": "integer", "maximum": 99}),
        json!({"type": "integer", "maximum": 33}),
    );
    let no_cache = ("cache-control", "max-age=0, No-Cache");
    for (gate, key, text, age, header, result, calls) in [
        (&kept, &alice, "Maria, 34", &same, None, Some("miss"), 1),
        (&kept, &alice, "Maria, 34", &same, None, Some("hit"), 0),
        // A contract that the stored value satisfies makes no call.
        (&kept, &alice, "Maria, 34", &fits, None, Some("hit"), 0),
        (&kept, &alice, "Maria, 34", &same, Some(no_cache), Some("miss"), 1),
        (&kept, &alice, "Bruno, 34", &same, None, Some("miss"), 1),
        (&kept, &bob, "Maria, 34", &same, None, Some("miss"), 1),
        (&kept, &bob, "Maria, 34", &fits, None, Some("hit"), 0),
        (&never, &alice, "Maria, 34", &same, None, None, 1),
    ] {
        let before = (server.received().len(), spent("alice") + spent("bob"));
        let headers = [Some(("x-api-key", key.as_str())), header];
        let headers: Vec<_> = headers.into_iter().flatten().collect();
        let answer = gate.post("/v1/chat/completions", &headers, &body(text, age.clone()));
        ledger.flush_blocking().unwrap();
        assert_eq!(answer.status, 200, "{text} {age}: {}", answer.text());
        assert_eq!(answer.header("x-formwork-cache"), result, "{text} {age}");
        assert_eq!(server.received().len() - before.0, calls, "{text} {age}");
        assert_eq!(spent("alice") + spent("bob") > before.1, calls > 0, "{text} {age}");
        let run = ledger.runs(&RunQuery::default()).unwrap().runs.remove(0);
        assert_eq!((run.cached, run.micro_usd == Some(0)), (calls == 0, calls == 0), "{text} {age}");
    }
    // The model gives the same value, which the last contract refuses: it was judged, and the model was asked.
    let before = server.received().len();
    let refused = kept.post("/v1/chat/completions", &[("x-api-key", &alice)], &body("Maria, 34", other));
    assert_ne!(refused.status, 200);
    assert!(server.received().len() > before);
}

#[test]
fn a_ledger_that_cannot_be_used_refuses_nobody_whose_spending_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let ledger = Ledger::open(&path, Settings::default()).unwrap();
    // A request costs 0.015 dollars and may cost 0.09.
    let secret = add(&ledger, NewKey { budget: Some(160_000), ..NewKey::new("alice") });
    let server = Server::start([completion("Hello.")]).unwrap();
    let gate = gate(&server.url(), &ledger);
    let body =
        json!({"model": "primary", "messages": [{"role": "user", "content": "Hi."}], "max_tokens": 80});
    let ask = || gate.post("/v1/chat/completions", &[("x-api-key", &secret)], &body);
    assert_eq!(ask().status, 200);
    let other = rusqlite::Connection::open(&path).unwrap();
    let trigger = |table: &str, what: &str| {
        format!(
            "CREATE TRIGGER {table}_{what} BEFORE {what} ON {table} BEGIN SELECT RAISE(FAIL, 'disk I/O error'); END;"
        )
    };
    let broken = [trigger("key", "UPDATE"), trigger("spending", "INSERT"), trigger("run", "INSERT")].concat();
    other.execute_batch(&broken).unwrap();
    let statuses: Vec<u16> = (0..8).map(|_| ask().status).collect();
    // The budget holds: after four more, the next may cost more than is left.
    assert_eq!(statuses, [200, 200, 200, 200, 429, 429, 429, 429]);
    other
        .execute_batch("DROP TRIGGER key_UPDATE; DROP TRIGGER spending_INSERT; DROP TRIGGER run_INSERT")
        .unwrap();
    drop(ledger.reserve_blocking(ledger.key("alice").unwrap().id, 0, None, now()).unwrap());
    ledger.flush_blocking().unwrap();
    let runs = ledger.runs(&RunQuery::default()).unwrap().runs.len();
    assert_eq!((ledger.key("alice").unwrap().spent, ledger.health().shed_runs), (5 * 15_000, 0));
    assert_eq!(runs, 9, "those that were refused have a record, too");
}

/// The addresses of targets are for admins, also in the history of a client's own run.
#[test]
fn a_client_reads_its_run_without_the_address_of_a_target() {
    let ledger = Ledger::in_memory(Settings::default()).unwrap();
    let add = |new| ledger.add_key(new, now()).unwrap().1.reveal().to_owned();
    let (client, admin) =
        (add(NewKey::new("alice")), add(NewKey { role: KeyRole::Admin, ..NewKey::new("root") }));
    let builder = targets(&openai("http://127.0.0.1:9")).with_limits(limits()).with_ledger(ledger.clone());
    let gate = Gate::start(builder);
    let body = json!({"model": "primary", "messages": [{"role": "user", "content": "Hi."}]});
    let got = gate.post("/v1/chat/completions", &[("x-api-key", &client)], &body);
    let id = got.header("x-formwork-run").unwrap();
    for (key, has_address) in [(client, false), (admin, true)] {
        let head = format!(
            "GET /v1/runs/{id} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\nconnection: close\r\n\r\n"
        );
        let got = gate.send(head.as_bytes());
        assert_eq!(
            (got.status, got.json()["calls"][0]["class"].as_str()),
            (200, Some("unreachable")),
            "{}",
            got.text()
        );
        assert_eq!(got.text().contains("127.0.0.1"), has_address, "{}", got.text());
    }
}
