//! Bad input: the protocol's own error, and the service goes on.

use std::time::Duration;

use formwork_ledger::{Ledger, Settings};
use formwork_testkit::server::Server;
use serde_json::{Value, json};

use super::support::{Gate, completion, limits, openai, request, schema, section, targets, ways};

#[test]
fn bad_requests_are_refused_in_their_protocol_and_the_service_goes_on() {
    let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
    let mut small = limits();
    small.max_body = 100_000;
    small.max_schema = 10_000;
    let gate = Gate::start(targets(&openai(&server.url())).with_limits(small));
    for way in ways() {
        let good = way.body("primary", false);
        let bytes = good.to_string().into_bytes();
        let with = |change: &dyn Fn(&mut Value)| {
            let mut body = good.clone();
            change(&mut body);
            body.to_string().into_bytes()
        };
        let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
        let long: String = "x".repeat(200_000);
        let bad: Vec<(&str, u16, Vec<u8>)> = vec![
            ("no JSON", 400, request(way.path, &[], b"{\"model\": ")),
            ("nothing", 400, request(way.path, &[], b"")),
            ("a list", 400, request(way.path, &[], b"[]")),
            ("not UTF-8", 400, request(way.path, &[], b"{\"model\": \"\xff\"}")),
            ("too deep", 400, request(way.path, &[], deep.as_bytes())),
            ("an unknown field", 400, request(way.path, &[], &with(&|body| body["temprature"] = 1.into()))),
            (
                "no model",
                400,
                request(way.path, &[], &with(&|body| _ = body.as_object_mut().unwrap().remove("model"))),
            ),
            ("a model that is no text", 400, request(way.path, &[], &with(&|body| body["model"] = 5.into()))),
            ("too long", 413, request(way.path, &[], format!("{{\"model\": \"{long}\"}}").as_bytes())),
            ("no media type", 415, request(way.path, &[("content-type", "text/plain")], &bytes)),
            // Compressed bodies are not decompressed, so a small body cannot become a large one.
            ("compressed, as a zip bomb is", 415, request(way.path, &[("content-encoding", "gzip")], &bytes)),
            ("a foreign host", 403, request(way.path, &[("host", "evil.example")], &bytes)),
            ("a foreign origin", 403, request(way.path, &[("origin", "https://evil.example")], &bytes)),
            ("a bad header", 400, request(way.path, &[("x-formwork-deadline", "soon")], &bytes)),
            ("two contracts", 400, request(way.path, &[("x-formwork-contract", "person")], &bytes)),
        ];
        for (case, status, bytes) in bad {
            let got = gate.send(&bytes);
            assert_eq!(got.status, status, "{}, {case}: {}", way.name, got.text());
            assert!(!way.message(&got.json()).is_empty(), "{}, {case}: {}", way.name, got.text());
            assert_eq!(got.header("x-should-retry"), Some("false"), "{}, {case}", way.name);
        }
        assert_eq!(gate.post(way.path, &[], &good).status, 200, "{}", way.name);
    }
}

#[test]
fn a_missing_host_and_a_folder_without_contracts_are_named() {
    let server = Server::start([completion("{}")]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let gate =
        Gate::start(targets(&openai(&server.url())).with_limits(limits()).with_contracts(folder.path()));
    let got = gate.send(b"GET /v1/models HTTP/1.0\r\n\r\n");
    assert!(got.status == 403 && got.text().contains("the header `Host` is missing"), "{}", got.text());
    let body = json!({"model": "primary", "messages": [{"role": "user", "content": "Hello"}]});
    let got = gate.post("/v1/chat/completions", &[("x-formwork-contract", "person")], &body);
    let says = "there is no contract `person`: the folder of contracts has none";
    assert!(got.status == 404 && got.text().contains(says), "{}", got.text());
}

/// The cost of a request is reserved by them, and nobody knows what a server makes of `"100"`.
#[test]
fn a_limit_that_is_no_number_is_refused_before_any_call() {
    let responses = |url: &str| section("primary", "openai", url) + "api = \"responses\"\n";
    let dialogue = json!([{"role": "user", "content": "Hi"}]);
    let chat = "/v1/chat/completions";
    for (config, path, places) in [
        (
            &openai as &dyn Fn(&str) -> String,
            chat,
            &["n", "best_of", "max_tokens", "max_completion_tokens"][..],
        ),
        (&responses, "/v1/responses", &["max_output_tokens"]),
        (&|url| section("primary", "anthropic", url), "/v1/messages", &["max_tokens"]),
        (&|url| section("primary", "ollama", url), "/api/chat", &["options.num_predict"]),
        (&|url| section("primary", "ollama", url), "/api/generate", &["options.num_predict"]),
    ] {
        let server = Server::start([completion("Hello.")]).unwrap();
        let gate = Gate::new(&config(&server.url()));
        for place in places {
            for (value, is_refused) in [
                (json!("100"), true),
                (json!(true), true),
                (json!([100]), true),
                (json!({"max": 100}), true),
                (json!(null), false),
                (json!(100), false),
                (json!(1e2), false),
            ] {
                let mut body = json!({"model": "primary", "max_tokens": 9, "messages": dialogue});
                match path {
                    "/v1/responses" => body = json!({"model": "primary", "input": "Hi"}),
                    "/api/generate" => body = json!({"model": "primary", "prompt": "Hi"}),
                    _ => {}
                }
                match place.split_once('.') {
                    Some((options, name)) => body[options][name] = value.clone(),
                    None => body[*place] = value.clone(),
                }
                let calls = server.received().len();
                let got = gate.post(path, &[], &body);
                let at = format!("{path} {place} {value}: {}", got.text());
                assert_eq!(
                    (got.status == 400, server.received().len() == calls),
                    (is_refused, is_refused),
                    "{at}"
                );
                if is_refused {
                    assert!(got.text().contains(&format!("`{place}`: expected a number, found")), "{at}");
                    let param = &got.json()["error"]["param"];
                    assert!(!path.contains("comp") || *param == **place, "{at}");
                }
            }
        }
    }
}

/// The answers that a server writes to choose from cost as much as others, and the reservation of a contract or of tools counts `n`.
#[test]
fn more_answers_than_the_client_gets_are_refused_beside_tools_and_formats() {
    let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
    let gate = Gate::new(&openai(&server.url()));
    let way = ways()[0];
    for name in ["response_format", "tools"] {
        for (best, is_refused) in [(json!(3), true), (json!(2), false), (json!(null), false)] {
            let mut body = way.body("primary", false);
            if name == "tools" {
                body.as_object_mut().unwrap().remove("response_format");
                body["tools"] =
                    json!([{"type": "function", "function": {"name": "look", "parameters": schema()}}]);
            }
            body["n"] = 2.into();
            body["best_of"] = best.clone();
            let calls = server.received().len();
            let got = gate.post(way.path, &[], &body);
            let is_asked = server.received().len() > calls;
            assert_eq!(
                (got.status == 400, !is_asked),
                (is_refused, is_refused),
                "{name} {best}: {}",
                got.text()
            );
        }
    }
}

/// Servers in Go match names without case, and the last member counts.
#[test]
fn a_member_that_differs_from_one_of_the_protocol_by_case_alone_is_refused() {
    let dialogue = json!([{"role": "user", "content": "Hi"}]);
    let chat = json!({"messages": dialogue, "options": {"num_predict": 5}});
    let generate = json!({"prompt": "Hi", "options": {"num_predict": 5}});
    let with = |body: &Value, place: &str| {
        let mut body = body.clone();
        body["model"] = "primary".into();
        match place.split_once('.') {
            Some((options, name)) => body[options][name] = 900.into(),
            None => body[place] = "big-model:cloud".into(),
        }
        body
    };
    for (kind, path, body, places) in [
        (
            "ollama",
            "/api/chat",
            &chat,
            &["Model", "MODEL", "Options", "option\u{17f}", "options.Num_Predict"][..],
        ),
        ("ollama", "/api/generate", &generate, &["mODEL", "Options", "options.NUM_PREDICT"]),
        ("ollama", "/api/embed", &json!({"input": "Hi"}), &["Model"]),
        ("ollama", "/api/embeddings", &json!({"prompt": "Hi"}), &["Model"]),
        ("openai", "/v1/embeddings", &json!({"input": "Hi"}), &["Model"]),
        ("openai", "/v1/chat/completions", &json!({"messages": dialogue}), &["Model", "N", "Max_Tokens"]),
        ("openai", "/v1/chat/completions", &ways()[0].body("primary", false), &["MODEL", "N"]),
        (
            "anthropic",
            "/v1/messages",
            &json!({"messages": dialogue, "max_tokens": 9}),
            &["Model", "MAX_TOKENS"],
        ),
    ] {
        let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
        let gate = Gate::new(&section("primary", kind, &server.url()));
        for place in places {
            let got = gate.post(path, &[], &with(body, place));
            assert_eq!(got.status, 400, "{path} {place}: {}", got.text());
            let meant = place.replace('\u{17f}', "s").to_lowercase();
            let message = format!("unknown field `{place}`: did you mean `{meant}`?");
            assert!(got.text().contains(&message), "{path}: {}", got.text());
        }
        assert_eq!(server.received().len(), 0, "{path}");
    }
}

/// A value takes many times the memory of its text.
#[test]
fn bodies_of_too_many_values_are_refused_and_long_texts_are_not() {
    let server = Server::start([completion("Hello.")]).unwrap();
    let gate = Gate::start(targets(&openai(&server.url())).with_limits(limits()));
    let zeros = "0,".repeat(1_000_000);
    for (path, body) in [
        ("/v1/embeddings", format!("{{\"model\":\"primary\",\"input\":[{zeros}0]}}")),
        ("/v1/extract", format!("{{\"input\":\"Maria\",\"schema\":{{\"enum\":[{zeros}0]}}}}")),
        ("/v1/chat/completions", format!("{{\"model\":\"primary\",\"messages\":{}", "[".repeat(1_000_001))),
    ] {
        let got = gate.send(&request(path, &[], body.as_bytes()));
        assert_eq!(got.status, 413, "{path}: {}", got.text());
        assert!(got.text().contains("at most 1000000 values"), "{path}: {}", got.text());
    }
    let text = "a,[{\"\\".repeat(500_000);
    let body = json!({"model": "primary", "messages": [{"role": "user", "content": text}]});
    assert_eq!(gate.post("/v1/chat/completions", &[], &body).status, 200);
}

/// A body that is not passed on as it is has no integer that would change.
#[test]
fn integers_that_would_change_are_refused_with_their_path() {
    let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
    let gate = Gate::start(targets(&openai(&server.url())));
    let digits = "1234567890123456789012345678901234567890";
    for way in ways() {
        let body = way.body("primary", false).to_string();
        // The schema of the person, with a bound of forty digits.
        let body = body.replacen(
            r#""type":"integer""#,
            &format!(r#""type":"integer","exclusiveMaximum":{digits}"#),
            1,
        );
        assert!(body.contains(digits), "{body}");
        let got = gate.send(&request(way.path, &[], body.as_bytes()));
        assert_eq!(got.status, 400, "{}: {}", way.name, got.text());
        let message = way.message(&got.json());
        assert!(message.contains("exclusiveMaximum: the integer 1234567"), "{}: {message}", way.name);
    }
    assert_eq!(server.received().len(), 0);
}

/// A fraction of a body that is written anew is rounded, which the response says.
#[test]
fn rounded_fractions_of_requests_are_warnings_with_their_path() {
    let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
    let gate = Gate::start(targets(&openai(&server.url())));
    for way in ways() {
        for (stream, digits) in
            [(false, "150.12345678901234567891"), (true, "150.12345678901234567891"), (false, "150.5")]
        {
            let body = way.body("primary", stream).to_string();
            let body = body.replacen(
                r#""type":"integer""#,
                &format!(r#""type":"integer","exclusiveMaximum":{digits}"#),
                1,
            );
            let got = gate.send(&request(way.path, &[], body.as_bytes()));
            assert_eq!(got.status, 200, "{}: {}", way.name, got.text());
            let warnings = got.header("x-formwork-warnings").unwrap_or_default();
            let is_named =
                warnings.starts_with("rounded at $.") && warnings.ends_with("age.exclusiveMaximum");
            assert_eq!(is_named, digits.len() > 9, "{} {stream} {digits}: {warnings}", way.name);
        }
    }
}

#[test]
fn unusable_schemas_are_refused_before_any_call() {
    let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
    let mut small = limits();
    small.max_schema = 10_000;
    let gate = Gate::start(targets(&openai(&server.url())).with_limits(small));
    let many: Vec<String> = (0..5_000).map(|nth| format!("value {nth}")).collect();
    for document in [
        json!({"type": "objct"}),
        json!({"$ref": "https://example.org/schema.json"}),
        json!({"$ref": "#/$defs/missing"}),
        json!({"type": "string", "pattern": "("}),
        json!({"enum": many}),
        json!(5),
        json!({}),
        json!(true),
        json!({"title": "x"}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}}),
    ] {
        let body = json!({
            "model": "primary", "messages": [{"role": "user", "content": "Maria, 34"}],
            "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": document}},
        });
        let got = gate.post("/v1/chat/completions", &[], &body);
        assert_eq!(got.status, 400, "{}", got.text());
    }
    assert!(server.received().is_empty());
}

#[test]
fn contradicting_formats_are_refused() {
    let gate = Gate::new(&openai("http://127.0.0.1:1"));
    let tool = json!([{"type": "function", "function": {"name": "person", "parameters": schema()}}]);
    let format = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema()}});
    let messages = json!([{"role": "user", "content": "Maria, 34"}]);
    for body in [
        json!({"tools": tool, "tool_choice": {"type": "function", "function": {"name": "other"}}}),
        json!({"tool_choice": "required", "response_format": format}),
    ] {
        let mut body = body;
        body["model"] = "primary".into();
        body["messages"] = messages.clone();
        let got = gate.post("/v1/chat/completions", &[], &body);
        assert_eq!(got.status, 400, "{}", got.text());
    }
}

#[test]
fn a_client_that_stops_in_the_middle_of_its_request_is_told_so() {
    let mut short = limits();
    short.read_timeout = Duration::from_millis(300);
    let gate = Gate::start(targets(&openai("http://127.0.0.1:1")).with_limits(short));
    for way in ways() {
        let mut bytes = request(way.path, &[], way.body("primary", false).to_string().as_bytes());
        // The rest never comes, however long the service waits.
        bytes.truncate(bytes.len() - 10);
        let got = gate.send(&bytes);
        assert_eq!((got.status, got.header("connection")), (408, Some("close")), "{}", way.name);
        assert!(!way.message(&got.json()).is_empty(), "{}", way.name);
    }
}

#[test]
fn answers_go_on_when_the_ledger_has_no_room() {
    // A file that cannot grow simulates a full disk.
    let full = Settings { bodies: true, max_bytes: Some(1), ..Settings::default() };
    let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(folder.path().join("runs.db"), full).unwrap();
    let gate = Gate::start(
        targets(&openai(&server.url())).with_limits(limits()).with_ledger(ledger.clone()).with_bodies(),
    );
    for way in ways() {
        for _ in 0..20 {
            let body = way.body("primary", false);
            // The body is longer than the free space in the existing pages.
            let long = body.to_string().replacen("Maria, 34", &"Maria, 34. ".repeat(2_000), 1);
            let got = gate.post(way.path, &[], &serde_json::from_str(&long).unwrap());
            assert_eq!(got.status, 200, "{}", way.name);
        }
        ledger.flush_blocking().unwrap();
    }
    let metrics = gate.get("/metrics").text();
    let counted = |name: &str| -> u64 {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{metrics}")).trim().parse().unwrap()
    };
    assert!(counted("formwork_ledger_shed_bodies_total ") > 0, "{metrics}");
}
