//! `extract --ensemble`: the choice between disputed values, the calls of targets without an answer, and names.

use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use crate::config::chat;
use crate::evidence::config;
use crate::{Ran, folder, formwork, temporary};

const SCHEMA: &str = r#"{"type": "object", "properties": {"age": {"type": "integer"}, "note": {"type": "string"}},
    "required": ["age"], "additionalProperties": false}"#;

const TEXT: &str = "Maria is 34. In 43 days: hi.";

fn ask(servers: &[(&str, &Server)], more: &[&str]) -> Ran {
    let config = config(servers);
    let names: Vec<&str> = servers.iter().map(|(name, _)| *name).collect();
    let names = names.join(",");
    let args = [
        "extract",
        "--schema",
        SCHEMA,
        "--config",
        &config,
        "--ensemble",
        &names,
        "--json",
        "--retries",
        "0",
    ];
    formwork(&[&args[..], more, &[TEXT]].concat(), "")
}

#[test]
fn the_choice_of_no_value_leaves_an_optional_member_out() {
    for (choice, expected) in [
        (r#"{"age": "34", "note": "null"}"#, json!({"age": 34})),
        (r#"{"age": "34", "note": "hi"}"#, json!({"age": 34, "note": "hi"})),
    ] {
        let (a, b) = (chat(&[r#"{"age": 43}"#, choice]), chat(&[r#"{"age": 34, "note": "hi"}"#]));
        let ran = ask(&[("a", &a), ("b", &b)], &[]);
        let row = ran.rows().remove(0);
        assert_eq!((&row["value"], ran.stderr.contains("violates")), (&expected, false), "{}", ran.stderr);
        assert_eq!((&row["disputed"], &row["origin"]["target"]), (&Value::Null, &json!("a, b")));
    }
}

#[test]
fn the_first_target_that_has_an_answer_chooses() {
    let gone = Server::start([Reply::status(404)]).unwrap();
    let b = chat(&[r#"{"age": 43}"#, r#"{"age": "34"}"#]);
    let c = chat(&[r#"{"age": 34}"#]);
    let ran = ask(&[("a", &gone), ("b", &b), ("c", &c)], &[]);
    assert_eq!(ran.rows()[0]["value"], json!({"age": 34}), "{}", ran.stderr);
    assert_eq!((gone.received().len(), b.received().len(), c.received().len()), (1, 2, 1));
}

#[test]
fn every_call_is_counted_and_recorded() {
    let ledger = folder().join("choices.db");
    _ = std::fs::remove_file(&ledger);
    let ledger = ledger.to_str().unwrap();
    let (a, b) =
        (chat(&[r#"{"age": 43}"#, r#"{"age": "seven"}"#, r#"{"age": "seven"}"#]), chat(&[r#"{"age": 34}"#]));
    let broken = Server::start([Reply::status(400)]).unwrap();
    let ran = ask(&[("a", &a), ("b", &b), ("c", &broken)], &["--ledger", ledger]);
    let sent = a.received().len() + b.received().len() + broken.received().len();
    let row = ran.rows().remove(0);
    assert_eq!((row["calls"].as_array().unwrap().len(), sent), (5, 5), "{}", ran.stderr);
    assert_eq!(row["disputed"].as_array().unwrap().len(), 1);
    let runs = formwork(&["runs", "list", "--json", "--ledger", ledger], "").rows();
    let calls: u64 = runs.iter().map(|run| run["calls"].as_u64().unwrap()).sum();
    assert_eq!((runs.len(), calls), (4, 5), "{runs:?}");
}

#[test]
fn an_ensemble_without_an_answer_reports_all_targets_and_their_calls() {
    let gone = Server::start([Reply::status(404)]).unwrap();
    let b = chat(&[r#"{"age": "x"}"#; 3]);
    let ran = ask(&[("a", &gone), ("b", &b)], &[]);
    let row = ran.rows().remove(0);
    assert_eq!((ran.code, row["ok"].as_bool()), (1, Some(false)), "{}", ran.stderr);
    assert_eq!(row["calls"].as_array().unwrap().len(), gone.received().len() + b.received().len(), "{row}");
    assert_eq!(row["usage"]["input_tokens"], 27, "{row}");
    let words = row["error"]["message"].as_str().unwrap();
    assert!(words.contains("404") && ran.stderr.contains("404"), "{words}");
}

#[test]
fn the_disputes_of_a_merge_that_is_rejected_are_those_of_the_answer_that_is_returned() {
    let schema = r#"{"type": "object", "required": ["age", "of"], "additionalProperties": false, "not": {"const": {"age": 1, "of": 2}},
        "properties": {"age": {"type": "integer"}, "of": {"type": "integer"}}}"#;
    // The text has 1 and 2, and the choice is the same.
    let a = chat(&[r#"{"age": 1, "of": 3}"#, r#"{"age": "1", "of": "2"}"#]);
    let b = chat(&[r#"{"age": 7, "of": 2}"#]);
    let config = config(&[("a", &a), ("b", &b)]);
    let args = ["extract", "--schema", schema, "--config", &config, "--ensemble", "a,b", "--json"];
    let ran = formwork(&[&args[..], &["Age 1 of 2."]].concat(), "");
    let row = ran.rows().remove(0);
    assert_eq!((ran.code, &row["value"]), (0, &json!({"age": 1, "of": 3})), "{}", ran.stderr);
    let disputed: Vec<Value> =
        row["disputed"].as_array().unwrap().iter().map(|it| json!([it["path"], it["candidates"]])).collect();
    assert_eq!(disputed, [json!(["$.age", [1, 7]]), json!(["$.of", [3, 2]])]);
    let warnings = row["warnings"].to_string();
    assert!(warnings.contains("the merged answer violates the contract"), "{warnings}");
}

/// The tests run in the folder of the crate, which has a folder `src`.
#[test]
fn a_folder_with_the_name_of_a_provider_is_no_model() {
    let (src, tests) = (chat(&[r#"{"age": 34}"#]), chat(&[r#"{"age": 34}"#]));
    let ran = ask(&[("src", &src), ("tests", &tests)], &[]);
    assert_eq!(ran.rows()[0]["value"], json!({"age": 34}), "{}", ran.stderr);
    let body: Value = serde_json::from_slice(&src.received()[0].body).unwrap();
    assert_eq!(body["model"], "model-src");
}

#[test]
fn the_calibration_of_another_number_of_answers_is_refused() {
    let one = |configuration: &str, others: usize| {
        json!({"configuration": configuration, "others": others, "evidence": true, "documents": 9, "leaves": 99, "error": 0.01,
            "points": [[0.0, 0.25], [1.0, 0.75]]})
    };
    let fitted = json!({"calibrations": [one("a", 2), one("b", 2), one("merged", 3)]});
    let file = temporary("calibration-of-three.json", fitted.to_string());
    let answer = r#"{"age": 34}"#;
    let (a, b, c) = (chat(&[answer]), chat(&[answer]), chat(&[answer]));
    let ran = ask(&[("a", &a), ("b", &b)], &["--calibration", &file]);
    assert!(
        ran.code == 2 && ran.stderr.contains("no calibration with evidence for merged beside 2"),
        "{}",
        ran.stderr
    );
    assert!(a.received().is_empty());
    let ran = ask(&[("a", &a), ("b", &b), ("c", &c)], &["--calibration", &file]);
    assert_eq!(ran.rows()[0]["confidence"][0]["probability"], json!(0.75), "{}", ran.stderr);
}

#[test]
fn the_first_target_that_has_an_answer_is_asked_for_quotes_in_the_rest_of_the_time() {
    let answers = [r#"{"age": 57}"#, r#"{"age": null}"#];
    let gone = Server::start([Reply::status(404)]).unwrap();
    let (b, c) = (chat(&answers), chat(&answers[..1]));
    let ran = ask(&[("a", &gone), ("b", &b), ("c", &c)], &["--evidence=quote"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!((gone.received().len(), b.received().len(), c.received().len()), (1, 2, 1));
    assert!(ran.rows()[0]["warnings"].to_string().contains("a has no answer"), "{}", ran.stdout);

    // Both calls together have two seconds.
    let slow = |text: &str| {
        let body = json!({"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]});
        Reply::slow(body.to_string(), std::time::Duration::from_millis(14))
    };
    let (a, b) = (Server::start([slow(answers[0]), Reply::silent()]).unwrap(), chat(&answers[..1]));
    let started = std::time::Instant::now();
    let ran = ask(&[("a", &a), ("b", &b)], &["--evidence=quote", "--timeout", "3"]);
    assert!(ran.code == 0 && ran.stderr.contains("there are no quotes"), "{}", ran.stderr);
    let seconds = started.elapsed().as_secs_f64();
    assert!(a.received().len() == 2 && seconds < 5.0, "{seconds}");
}

#[test]
fn a_mistake_is_an_error_before_a_call() {
    let a = chat(&[r#"{"age": 34}"#]);
    let ran = ask(&[("a", &a), ("", &a)], &[]);
    crate::refused(&ran, 2, "--ensemble: the name of a target is empty");
    let ran = ask(&[("a", &a), ("b", &a)], &["--html", "/no/such/folder/a.html"]);
    crate::refused(&ran, 2, "cannot write /no/such/folder/a.html: there is no folder /no/such/folder");
    assert_eq!(a.received().len(), 0);
}
