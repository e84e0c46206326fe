//! `extract --stream`.

use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::config::{of, of_text};
use super::{formwork, temporary};

const SCHEMA: &str = r#"{"type": "object", "properties": {"customer": {"type": "string"}, "sizes": {"type": "array", "items": {"type": "integer", "maximum": 60}}}, "required": ["customer", "sizes"]}"#;

/// A completion that arrives in these pieces.
fn events(pieces: &[&str]) -> Reply {
    let chunk = |delta: Value, finish: Value| {
        let body = json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
        format!("data: {body}\n\n")
    };
    let texts = pieces.iter().map(|piece| chunk(json!({"content": piece}), Value::Null));
    let end = [chunk(json!({}), json!("stop")), "data: [DONE]\n\n".to_owned()];
    Reply::pieces(texts.chain(end)).with_header("content-type", "text/event-stream")
}

#[test]
fn every_event_is_one_line_and_the_last_has_the_value() {
    // A wrong value in the first 256 bytes would stop the answer.
    let name = "Ada ".repeat(80);
    let begin = format!(r#"{{"customer": "{name}"#);
    let first = events(&[&begin, r#"King", "sizes": [40, 4"#, "10, 4", "2]}"]);
    let server = Server::start([first, events(&[r#"{"sizes[1]": 41}"#])]).unwrap();
    let config = of(&server).replace("stream = false", "stream = true");
    let config = temporary(&format!("stream-{}.toml", server.address().port()), config);
    let ran = formwork(&["extract", "-s", SCHEMA, "--stream", "--config", &config, "Ada: 40, 41, 42"], "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let lines: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_kind = |kind: &str| -> Vec<&Value> { lines.iter().filter(|line| line["event"] == kind).collect() };
    assert_eq!(of_kind("started").len(), 2, "{}", ran.stdout);
    assert_eq!(of_kind("partial")[0]["value"], json!({"customer": name}), "{}", ran.stdout);
    let items: Vec<_> =
        of_kind("item").iter().map(|line| (line["path"].clone(), line["value"].clone())).collect();
    let expected = [("$.sizes[0]", 40), ("$.sizes[2]", 42), ("$.sizes[1]", 41)]
        .map(|(path, value)| (json!(path), json!(value)));
    assert_eq!(items, expected, "{}", ran.stdout);
    let wrong = of_kind("partial").into_iter().find(|line| line["violation"].is_object());
    assert_eq!(wrong.map(|line| &line["violation"]["path"]), Some(&json!("$.sizes[1]")), "{}", ran.stdout);
    let last = lines.last().unwrap();
    assert_eq!((&last["event"], &last["value"]["sizes"]), (&json!("done"), &json!([40, 41, 42])));
}

#[test]
fn a_partial_document_is_printed_once() {
    let pieces = [r#"{"customer": "Ada","#, "          ", "\n\n\n\n\n\n\n\n\n\n", r#" "sizes": "#, "[40]}"];
    let server = Server::start([events(&pieces)]).unwrap();
    let config = of(&server).replace("stream = false", "stream = true");
    let config = temporary(&format!("stream-{}.toml", server.address().port()), config);
    let ran = formwork(&["extract", "-s", SCHEMA, "--stream", "--config", &config, "Ada: 40"], "");
    let lines = ran.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let values: Vec<Value> =
        lines.filter(|line| line["event"] == "partial").map(|line| line["value"].clone()).collect();
    let repeated = values.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert_eq!((repeated, values.first()), (0, Some(&json!({"customer": "Ada"}))), "{}", ran.stdout);
}

#[test]
fn the_last_line_of_a_failure_is_the_error() {
    let server = Server::start([of_text("no"), of_text("no"), of_text("no")]).unwrap();
    let config = temporary(&format!("stream-{}.toml", server.address().port()), of(&server));
    let ran = formwork(&["extract", "-s", SCHEMA, "--stream", "--config", &config, "Ada"], "");
    let last: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(
        (ran.code, &last["event"], &last["ok"]),
        (1, &json!("error"), &json!(false)),
        "{}",
        ran.stdout
    );
}
