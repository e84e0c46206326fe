//! `POST /v1/extract` and named contracts.

use std::fs;
use std::path::PathBuf;

use formwork_ledger::{Ledger, RunQuery, Settings};
use formwork_testkit::server::Server;
use serde_json::{Value, json};

use super::support::{Gate, completion, limits, openai, request, schema, targets, ways};

/// A folder that is removed at the end.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("formwork-gateway-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const YAML: &str = "
schema:
  type: object
  properties:
    age: {type: integer}
    name: {type: string}
  required: [age, name]
rules:
  - rule: quoted
    target: $.name
instructions: Extract the person that the text is about.
examples:
  - input: Ada, 36, counts.
    output: {age: 36, name: Ada}
";

#[test]
fn a_value_comes_with_its_history_or_step_by_step() {
    let server = Server::start([completion(r#"{"age": 340}"#), completion(r#"{"age": 34}"#)]).unwrap();
    let gate = Gate::new(&openai(&server.url()));
    let body = json!({"schema": schema(), "input": "Maria, 34", "instructions": "Extract the person."});
    let got = gate.post("/v1/extract", &[], &body);
    let outcome = got.json();
    assert_eq!((got.status, &outcome["value"]), (200, &json!({"age": 34})), "{outcome}");
    assert_eq!((outcome["calls"].as_array().unwrap().len(), got.header("x-formwork-calls")), (2, Some("2")));
    assert_eq!(outcome["run"].as_str(), got.header("x-formwork-run"));
    let first: Value = serde_json::from_slice(&server.received()[0].body).unwrap();
    assert!(first["messages"][0]["content"].as_str().unwrap().contains("Extract the person."));

    let server = Server::start([completion(r#"{"age": 340}"#), completion(r#"{"age": 34}"#)]).unwrap();
    let gate = Gate::new(&openai(&server.url()));
    let mut body = body;
    body["stream"] = true.into();
    let got = gate.post("/v1/extract", &[], &body).text();
    let events: Vec<&str> = got.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!((events.first(), events.last()), (Some(&"started"), Some(&"done")), "{got}");
    assert_eq!(events.iter().filter(|event| **event == "finished").count(), 2, "{got}");
}

/// The fraction of a request or of a named contract is rounded with a warning in the outcome; an integer that would change is refused.
#[test]
fn numbers_of_requests_and_named_contracts_are_kept_named_or_refused() {
    let folder = Folder::new("numbers");
    let (long, integer) = ("150.12345678901234567891", "123456789012345678901");
    for (name, maximum) in [("fraction", long), ("integer", integer), ("plain", "150.5")] {
        let schema = format!(
            r#"{{"type": "object", "properties": {{"age": {{"type": "number", "maximum": {maximum}}}}}, "required": ["age"]}}"#
        );
        folder.write(&format!("{name}-json.json"), &schema);
        folder.write(&format!("{name}-yaml.yaml"), &format!("schema: {schema}\n"));
    }
    let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
    let gate = Gate::start(targets(&openai(&server.url())).with_limits(limits()).with_contracts(&folder.0));
    for (ending, path) in [("json", "$.properties.age.maximum"), ("yaml", "$.schema.properties.age.maximum")]
    {
        let ask = |name: &str, stream: bool| {
            let name = format!("{name}-{ending}");
            gate.post("/v1/extract", &[], &json!({"contract": name, "input": "Maria, 34", "stream": stream}))
        };
        let got = ask("fraction", false);
        let warning = &got.json()["warnings"][0];
        assert_eq!((got.status, &warning["kind"], &warning["path"]), (200, &json!("rounded"), &json!(path)));
        assert!(warning["message"].as_str().unwrap().contains(long), "{warning}");
        assert_eq!(got.header("x-formwork-warnings"), Some(format!("rounded at {path}").as_str()));
        assert!(ask("fraction", true).text().contains(long));
        assert_eq!(ask("plain", false).json()["warnings"], json!([]));
        let got = ask("integer", false);
        assert_eq!(got.status, 500, "{}", got.text());
        assert!(got.text().contains(integer), "{}", got.text());
    }
    for (maximum, status, count) in [(long, 200, 1), (integer, 400, 0), ("150.5", 200, 0)] {
        let body = json!({"schema": schema(), "input": "Maria, 34"}).to_string();
        let body = body
            .replace("\"type\":\"integer\"", &format!("\"type\":\"integer\",\"exclusiveMaximum\":{maximum}"));
        let got = gate.send(&request("/v1/extract", &[], body.as_bytes()));
        let counted = got.json()["warnings"].as_array().map_or(0, Vec::len);
        assert_eq!((got.status, counted), (status, count), "{}", got.text());
    }
}

/// Integers of answers are in the response and in the ledger digit by digit, or refused with their path.
#[test]
fn integers_of_answers_are_kept_digit_by_digit_or_refused() {
    let forty = "1234567890123456789012345678901234567890";
    for length in [1, 15, 16, 17, 18, 19, 20, 21, 30, 40] {
        let number = &forty[..length];
        let answer = format!(r#"{{"n": {number}}}"#);
        let server = Server::start([completion(&answer)]).unwrap();
        let settings = Settings { bodies: true, ..Settings::default() };
        let ledger = Ledger::in_memory(settings).unwrap();
        let gate =
            Gate::start(targets(&openai(&server.url())).with_limits(limits()).with_ledger(ledger.clone()));
        let own = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let chat = json!({
            "model": "primary", "messages": [{"role": "user", "content": "a number"}],
            "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": own}},
        });
        for (path, body) in
            [("/v1/extract", json!({"schema": own, "input": "a number"})), ("/v1/chat/completions", chat)]
        {
            let got = gate.post(path, &[], &body);
            let fits = number.parse::<u64>().is_ok();
            assert_eq!(got.status, if fits { 200 } else { 422 }, "{number}: {}", got.text());
            let text = got.text();
            let says = if fits { number } else { "$.n" };
            assert!(text.contains(says) && !text.contains("e+"), "{number}: {text}");
        }
        ledger.flush_blocking().unwrap();
        let mut stored = Vec::new();
        ledger.export(&RunQuery::default(), &mut stored).unwrap();
        let stored = String::from_utf8(stored).unwrap();
        assert!(stored.contains(number) && !stored.contains("e+"), "{stored}");
    }
}

#[test]
fn rules_in_the_schema_of_a_request_hold_in_every_protocol() {
    let own = json!({
        "type": "object", "properties": {"age": {"type": "integer"}, "name": {"type": "string"}},
        "required": ["age", "name"], "x-formwork-rules": [{"rule": "grounded", "target": "$.name"}],
    });
    let replies =
        || [completion(r#"{"age": 40, "name": "Ada"}"#), completion(r#"{"age": 40, "name": "Bob"}"#)];
    let format = json!({"type": "json_schema", "json_schema": {"name": "p", "schema": own}});
    let message = json!([{"role": "user", "content": "Bob, 40"}]);
    let tools = json!([{"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}]);
    for (path, body) in [
        ("/v1/extract", json!({"schema": own, "input": "Bob, 40"})),
        ("/v1/chat/completions", json!({"model": "primary", "messages": message, "response_format": format})),
        // Judged in its own protocol.
        (
            "/v1/chat/completions",
            json!({"model": "primary", "messages": message, "response_format": format, "tools": tools}),
        ),
    ] {
        let server = Server::start(replies()).unwrap();
        let got = Gate::new(&openai(&server.url())).post(path, &[], &body);
        assert_eq!((got.status, server.received().len()), (200, 2), "{path}: {}", got.text());
        assert!(got.text().contains("Bob"), "{}", got.text());
        let sent = String::from_utf8_lossy(&server.received()[0].body).into_owned();
        assert!(!sent.contains("x-formwork-rules"), "{path}: a vendor may refuse it: {sent}");
    }
    let mut wrong = own.clone();
    wrong["x-formwork-rules"][0]["rule"] = "grouned".into();
    let server = Server::start(replies()).unwrap();
    let got =
        Gate::new(&openai(&server.url())).post("/v1/extract", &[], &json!({"schema": wrong, "input": "x"}));
    assert_eq!((got.status, got.text().contains("x-formwork-rules")), (400, true), "{}", got.text());
}

#[test]
fn bad_requests_and_failures_are_said() {
    let server = Server::start([completion(r#"{"age": "old"}"#)]).unwrap();
    let gate = Gate::new(&openai(&server.url()));
    for (status, body) in [
        (422, json!({"schema": schema(), "input": "Maria"})),
        (400, json!({"input": "Maria"})),
        (400, json!({"schema": schema()})),
        (400, json!({"schema": schema(), "contract": "person", "input": "x"})),
        (400, json!({"schema": schema(), "input": "x", "unheard_of": 1})),
        (400, json!({"schema": {"type": "objct"}, "input": "x"})),
        (400, json!({"schema": schema(), "input": "x", "budget": -1})),
        (400, json!({"schema": schema(), "input": "x", "rules": [{"rule": "quoted", "target": "$.nam"}]})),
        (404, json!({"schema": schema(), "input": "x", "targets": ["other"]})),
    ] {
        let got = gate.post("/v1/extract", &[], &body);
        assert_eq!(got.status, status, "{body}: {}", got.text());
        assert!(got.json()["error"]["message"].is_string());
    }
}

#[test]
fn named_contracts_are_files_that_are_read_again_and_stay_in_their_folder() {
    let folder = Folder::new("named");
    fs::write(std::env::temp_dir().join(format!("outside-{}.json", std::process::id())), "{}").unwrap();
    folder.write("person.yaml", YAML);
    folder.write("plain.json", &schema().to_string());
    folder.write("short.shape", "{age: int}");
    folder.write("broken.json", "{");
    let server = Server::start([completion(r#"{"age": 34, "name": "Maria"}"#)]).unwrap();
    let gate = Gate::start(targets(&openai(&server.url())).with_limits(limits()).with_contracts(&folder.0));
    let ask = |name: &str| gate.post("/v1/extract", &[], &json!({"contract": name, "input": "Maria, 34"}));
    let got = ask("person");
    assert_eq!((got.status, &got.json()["value"]["name"]), (200, &json!("Maria")), "{}", got.text());
    let prompt: Value = serde_json::from_slice(&server.received()[0].body).unwrap();
    let prompt = prompt["messages"].to_string();
    assert!(prompt.contains("Extract the person") && prompt.contains("Ada, 36, counts."), "{prompt}");

    for name in
        ["../outside", "..", "/etc/passwd", "a/b", ".hidden", "", "none", "per%73on", "person.yaml\u{0}"]
    {
        let got = ask(name);
        assert_eq!(got.status, 404, "{name}: {}", got.text());
        assert!(got.text().contains("broken, person, plain, short"), "{}", got.text());
    }
    #[cfg(unix)]
    {
        let outside = std::env::temp_dir().join(format!("outside-{}.json", std::process::id()));
        std::os::unix::fs::symlink(&outside, folder.0.join("link.json")).unwrap();
        assert_eq!(ask("link").status, 404);
    }
    assert_eq!(ask("broken").status, 500);
    folder.write("broken.json", &json!({"type": "object", "required": ["age"]}).to_string());
    assert_eq!(ask("broken").status, 200);

    for way in ways() {
        let mut body = way.body("primary", false);
        for name in ["response_format", "tools", "tool_choice", "text", "output_config", "format"] {
            body.as_object_mut().unwrap().remove(name);
        }
        let got = gate.post(way.path, &[("x-formwork-contract", "person")], &body);
        assert_eq!(got.status, 200, "{}: {}", way.name, got.text());
        assert!(got.text().contains("Maria"), "{}: {}", way.name, got.text());
    }
}
