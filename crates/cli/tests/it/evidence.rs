//! `formwork evidence`: rows, one document, and errors.

use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use crate::config::chat;
use crate::{against_schema, example, folder, formwork, refused, temporary};

#[test]
fn each_row_has_the_place_of_each_leaf() {
    let rows = "{\"id\": 7, \"input\": \"Größe: 5\\u000cTotal: 5\", \"value\": {\"total\": 5, \"by\": null}}\nno row\n";
    let ran = formwork(&["evidence", "--jsonl"], rows);
    assert_eq!(ran.code, 1);
    let against = against_schema("evidence-output.json", &ran.rows()[0]);
    assert!(against.is_empty(), "{against:?}");
    let found = json!({"path": "$.total", "status": "exact", "spans": [{"start": 16, "end": 17, "page": 2}, {"start": 7, "end": 8, "page": 1}]});
    let none = json!({"path": "$.by", "status": "not_found", "spans": []});
    assert_eq!(ran.rows()[0], json!({"id": 7, "evidence": [found, none]}));
    assert_eq!(ran.rows()[1]["error"]["class"], "row");
}

#[test]
fn a_schema_that_cannot_be_read_is_named() {
    let row = |schema: &Value| {
        format!("{}\n", json!({"id": 1, "input": "a 5", "value": {"a": 5}, "schema": schema}))
    };
    for (schema, class, words) in [
        (json!({"x-formwork-rules": [{"rule": "nosuch"}]}), "row", "#/x-formwork-rules/0"),
        (json!({"x-formwork-rules": {}}), "row", "#/x-formwork-rules"),
        (json!({"properties": {"a": {"type": "obj"}}}), "schema", "/properties/a/type"),
    ] {
        let ran = formwork(&["evidence", "--jsonl"], row(&schema));
        let error = &ran.rows()[0]["error"];
        assert!(ran.code == 1 && error["class"] == class && ran.rows()[0]["id"] == 1, "{}", ran.stdout);
        assert!(error["message"].as_str().unwrap().contains(words), "{error}");
        let file = &temporary("evidence.schema.json", schema.to_string());
        let ran = formwork(&["evidence", "--jsonl", "--schema", file], "");
        assert!(ran.code == 2 && ran.stderr.contains(words), "{}", ran.stderr);
    }
    assert_eq!(formwork(&["evidence", "--jsonl"], row(&json!({"type": "object"}))).code, 0);
}

#[test]
fn a_document_has_a_table_or_json() {
    let (letter, schema) = (example("letter.txt"), example("person.schema.json"));
    let value = r#"{"name": "Maria Lindqvist", "age": 34, "city": "Oslo"}"#;
    let ran = formwork(&["evidence", "--input", &letter, "--schema", &schema, "-"], value);
    assert!(ran.code == 0 && ran.stdout.contains("line 3: Maria Lindqvist"), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("not_found"), "{}", ran.stdout);
    let ran = formwork(&["evidence", "--input", &letter, "--json"], value);
    assert_eq!(ran.rows()[0]["evidence"][1]["path"], "$.age");
    assert_eq!(formwork(&["evidence", "--input", "missing.txt", "-"], value).code, 2);

    // No control character of the input or of the value reaches the terminal.
    let input = temporary("controls.txt", "Name: Maria\u{1b}]0;owned\u{7}\u{9b}31m Lindqvist");
    let value = "{\"name\": \"Maria\\u001b]0;owned\\u0007\u{9b}31m Lindqvist\"}";
    let ran = formwork(&["evidence", "--input", &input, "-"], value);
    assert!(!ran.stdout.contains(|c: char| c.is_control() && c != '\n'), "{:?}", ran.stdout);
    assert_eq!(ran.stdout.matches("Maria\\u001b]0;owned\\u0007\\u009b31m").count(), 2, "{}", ran.stdout);
}

#[test]
fn a_page_marks_the_chosen_place_and_escapes_the_text() {
    let text = &temporary("page.txt", "Subtotal 12.00 <script>alert(1)</script>\nTotal 12.00\n");
    let page = &temporary("page.html", "");
    let ran = formwork(&["evidence", "--input", text, "--html", page, "-"], r#"{"total": 12, "by": "<b>"}"#);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let written = std::fs::read_to_string(page).unwrap();
    let mark = "\nTotal <mark id=\"v0\" class=\"normalised\" title=\"$.total\">12.00</mark>";
    assert!(written.contains(mark) && written.contains("12.00 &lt;script&gt;"), "{written}");
    assert!(
        written.contains("&lt;b&gt;") && !written.contains("<script") && !written.contains("<b>"),
        "{written}"
    );
    let ran = formwork(&["evidence", "--input", text, "--html", "/no/such/folder/a.html", "-"], "{}");
    assert!(ran.code == 2 && ran.stderr.contains("cannot write /no/such/folder/a.html"), "{}", ran.stderr);
}

/// A configuration with a provider for each server, each with a model of its name.
pub(crate) fn config(servers: &[(&str, &Server)]) -> String {
    let section = |(name, server): &(&str, &Server)| {
        format!(
            "[providers.{name}]\nkind = \"llama-server\"\nmodel = \"model-{name}\"\nstream = false\nbase_url = \"{}/v1\"\n",
            server.url()
        )
    };
    let text: String = servers.iter().map(section).collect();
    temporary(&format!("ensemble-{}.toml", servers[0].1.address().port()), text)
}

/// The choice between the candidates of disputed values, by the first target. The other targets are not asked for it.
const CHOICE: &str = r#"{"age": "34", "city": "none of these"}"#;

#[test]
fn several_targets_are_merged_and_values_on_which_they_differ_are_doubtful() {
    let servers = [
        r#"{"name": "Maria Lindqvist", "age": 43, "city": "Lisbon"}"#,
        r#"{"name": "maria lindqvist", "age": 34, "city": "Lisbon"}"#,
        r#"{"name": "Maria Lindqvist", "age": 34, "city": "Oslo"}"#,
    ]
    .map(|text| chat(&[text, CHOICE, text, CHOICE, text]));
    let [a, b, c] = &servers;
    let config = config(&[("a", a), ("b", b), ("c", c)]);
    let (schema, text) = (example("person.schema.json"), "Maria Lindqvist, 34, moved to Lisbon last spring.");
    let args = [
        "extract",
        "--schema",
        &schema,
        "--config",
        &config,
        "--ensemble",
        "a,b,c",
        "--flag-below",
        "0.8",
        text,
    ];
    let ran = formwork(&[&args[..], &["--json"]].concat(), "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let row = ran.rows().remove(0);
    let against = against_schema("extract-output.json", &row);
    assert!(against.is_empty(), "{against:?}");
    assert_eq!(row["value"], json!({"name": "Maria Lindqvist", "age": 34, "city": "Lisbon"}));
    assert_eq!((&row["origin"]["target"], row["calls"].as_array().unwrap().len()), (&json!("a, b, c"), 4));
    let disputed: Vec<&str> =
        row["disputed"].as_array().unwrap().iter().map(|it| it["path"].as_str().unwrap()).collect();
    assert_eq!(disputed, ["$.city"]);
    let asked: Value = serde_json::from_slice(&a.received()[1].body).unwrap();
    let shown = asked.to_string();
    assert!(
        shown.contains(r#"["34","43","none of these"]"#) && !shown.contains("Lindqvist\",\"maria"),
        "{shown}"
    );
    let doubtful: Vec<&Value> =
        row["confidence"].as_array().unwrap().iter().map(|it| &it["doubtful"]).collect();
    assert_eq!(doubtful, [&Value::Null, &json!(true), &json!(true)]);
    let ran = formwork(&args, "");
    assert!(ran.stderr.contains("doubtful: $.age 34 (score 0."), "{}", ran.stderr);

    // A target without an answer is a warning, and without any answer the command fails as for one target.
    let down = Server::start([503; 20].map(Reply::status)).unwrap();
    let config = self::config(&[("a", a), ("gone", &down), ("away", &down)]);
    let run = |names: &str| {
        formwork(
            &[
                "extract",
                "--schema",
                &schema,
                "--config",
                &config,
                "--retries",
                "0",
                "--ensemble",
                names,
                text,
            ],
            "",
        )
    };
    let ran = run("a,gone");
    assert!(ran.code == 0 && ran.stderr.contains("warning: gone has no answer"), "{}", ran.stderr);
    assert_eq!(run("gone,away").code, 3);
}

#[test]
fn a_calibration_makes_probabilities_for_the_configuration_that_it_was_fitted_on() {
    let fitted = json!({"calibrations": [{"configuration": "a", "others": 0, "evidence": true, "documents": 9, "leaves": 99, "error": 0.01,
        "points": [[0.0, 0.25], [1.0, 0.75]]}]});
    let file = temporary("calibration-a.json", fitted.to_string());
    let text = r#"{"name": "Maria Lindqvist", "age": 34, "city": "Oslo"}"#;
    let server = chat(&[text; 3]);
    let config = config(&[("a", &server), ("b", &server)]);
    let schema = example("person.schema.json");
    let run = |provider: &str, file: &str| {
        let args = [
            "extract",
            "--schema",
            &schema,
            "--config",
            &config,
            "--provider",
            provider,
            "--calibration",
            file,
            "--flag-below",
            "0.5",
        ];
        formwork(&[&args[..], &["Maria Lindqvist, 34, moved to Lisbon last spring."]].concat(), "")
    };
    let ran = run("a", &file);
    assert!(
        ran.code == 0 && ran.stderr.contains("doubtful: $.city \"Oslo\" (probability 0.25)"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("$.age"), "{}", ran.stderr);
    refused(
        &run("b", &file),
        2,
        "has no calibration with evidence for b beside 0 others; it has a beside 0 others",
    );
    refused(&run("a", &schema), 2, "is no file of `formwork eval --calibrate`");
    // The target has the same name, and another model.
    let of = |model: &str| {
        let mut fitted = fitted.clone();
        fitted["calibrations"][0]["models"] = json!([model]);
        temporary(&format!("calibration-{model}.json"), fitted.to_string())
    };
    let refusal = "no calibration with evidence for a beside 0 others; it has a (model-b) beside 0 others";
    refused(&run("a", &of("model-b")), 2, refusal);
    assert!(run("a", &of("model-a")).stderr.contains("(probability 0.25)"));
}

/// A configured calibration counts for each row; for other targets it is a warning, and the confidence is a score.
#[test]
fn rows_have_their_confidence_by_the_calibration_of_the_configuration() {
    let fitted = json!({"calibrations": [{"configuration": "a", "others": 0, "evidence": true, "documents": 9, "leaves": 99, "error": 0.01,
        "points": [[0.0, 0.25], [1.0, 0.75]]}]});
    temporary("configured-calibration.json", fitted.to_string());
    let answer = r#"{"name": "Maria Lindqvist", "age": 34, "city": "Oslo"}"#;
    let server = chat(&[answer; 6]);
    let sections = std::fs::read_to_string(config(&[("a", &server), ("b", &server)])).unwrap();
    let text = format!("[defaults]\ncalibration = \"configured-calibration.json\"\n{sections}");
    let config = &temporary("configured-calibration.toml", text);
    let schema = &example("person.schema.json");
    let rows =
        format!("{}\n", json!({"id": 1, "input": "Maria Lindqvist, 34, moved to Lisbon last spring."}));
    let run = |provider: &str, more: &[&str]| {
        let args = ["extract", "--schema", schema, "--jsonl", "--config", config, "--provider", provider];
        formwork(&[&args[..], more].concat(), &rows)
    };
    let ran = run("a", &["--flag-below", "0.5"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let row = ran.rows().remove(0);
    let against = against_schema("extract-output.json", &row);
    assert!(against.is_empty(), "{against:?}");
    let city = &row["confidence"][2];
    assert_eq!((&city["probability"], &city["doubtful"]), (&json!(0.25), &json!(true)), "{row}");
    assert_eq!(row["confidence"][0].get("doubtful"), None, "{row}");
    let ran = run("b", &[]);
    assert!(ran.stderr.contains("warning: ") && ran.stderr.contains("has no calibration"), "{}", ran.stderr);
    assert_eq!(ran.rows()[0].get("confidence"), None, "{}", ran.stdout);
    let ran = run("b", &["--flag-below", "0.5"]);
    assert_eq!(ran.rows()[0]["confidence"][2].get("probability"), None, "{}", ran.stdout);
    // The target that answers has one, although the command names none.
    let args = ["extract", "--schema", schema, "--jsonl", "--config", config];
    let ran = formwork(&args, &rows);
    assert_eq!(ran.rows()[0]["confidence"][2]["probability"], json!(0.25), "{}{}", ran.stdout, ran.stderr);
    // A batch has the most doubtful value with its probability.
    let rows = temporary("configured-calibration.jsonl", rows.clone());
    for (provider, sample, probability) in [("a", "0", json!(0.25)), ("b", "1", Value::Null)] {
        let out = crate::batch::out(&format!("calibrated-{provider}"));
        let args =
            ["batch", "run", &rows, "--contract", schema, "--out", &out, "--config", config, "--provider"];
        let written = formwork(&[&args[..], &[provider, "--sample", sample]].concat(), "");
        assert_eq!(written.code, 0, "{}", written.stderr);
        let ran = formwork(&["batch", "export", &out], "");
        let confidence = &ran.rows()[0]["confidence"];
        assert_eq!(
            (&confidence["path"], &confidence["probability"]),
            (&json!("$.city"), &probability),
            "{} {}",
            ran.stdout,
            written.stderr
        );
    }
}

#[test]
fn a_second_opinion_is_asked_for_only_below_a_confidence() {
    let right = r#"{"name": "Maria Lindqvist", "age": 34, "city": "Lisbon"}"#;
    let wrong = r#"{"name": "Maria Lindqvist", "age": 34, "city": "Oslo"}"#;
    for (first, calls) in [(right, 1), (wrong, 3)] {
        let (a, b) = (chat(&[first, r#"{"city": "Lisbon"}"#]), chat(&[right]));
        let config = config(&[("a", &a), ("b", &b)]);
        let schema = example("person.schema.json");
        let args = ["extract", "--schema", &schema, "--config", &config, "--ensemble", "a,b", "--json"];
        let more = ["--second-opinion-below", "0.5", "Maria Lindqvist, 34, moved to Lisbon last spring."];
        let ran = formwork(&[&args[..], &more].concat(), "");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let row = ran.rows().remove(0);
        assert_eq!(
            (&row["value"]["city"], row["calls"].as_array().unwrap().len()),
            (&json!("Lisbon"), calls)
        );
        assert_eq!(b.received().len(), usize::from(calls > 1));
    }
}

/// The answer of one target alone agrees with itself only: its values are as doubtful as without the others.
#[test]
fn a_target_without_an_answer_makes_no_value_surer() {
    let answer = r#"{"name": "Maria Lindqvist", "age": 34, "city": "Oslo"}"#;
    let (a, b) = (chat(&[answer, answer]), Server::start([Reply::status(400)]).unwrap());
    let (config, schema) = (config(&[("a", &a), ("b", &b)]), example("person.schema.json"));
    let run = |more: &[&str]| {
        let args = ["extract", "--schema", &schema, "--config", &config, "--flag-below", "0.6", "--json"];
        formwork(&[&args[..], more, &["Maria Lindqvist, 34, moved to Lisbon last spring."]].concat(), "")
    };
    let (alone, beside) = (run(&["--provider", "a"]), run(&["--ensemble", "a,b"]));
    let confidence = alone.rows()[0]["confidence"].clone();
    assert_eq!(beside.rows()[0]["confidence"], confidence, "{}", beside.stderr);
    assert_eq!(confidence[2]["doubtful"], true, "{confidence}");
    let ran = run(&["--ensemble", "a"]);
    assert!(ran.code == 2 && ran.stderr.contains("name at least two targets"), "{}", ran.stderr);
}

/// `-v` prints every call of every target, and the source of the configuration once.
#[test]
fn verbose_shows_the_calls_of_all_targets_and_further_calls() {
    let answers = ["Lisbon", "Oslo"]
        .map(|city| format!(r#"{{"name": "Maria Lindqvist", "age": 34, "city": "{city}"}}"#));
    let [a, b] = answers.map(|answer| chat(&["no", &answer, r#"{"city": "Lisbon"}"#]));
    let (config, schema) = (config(&[("a", &a), ("b", &b)]), example("person.schema.json"));
    let args = ["extract", "-v", "--schema", &schema, "--config", &config, "--ensemble", "a,b"];
    let ran = formwork(&[&args[..], &["Maria Lindqvist, 34, moved to Lisbon last spring."]].concat(), "");
    for (text, times) in [
        ("configuration: ", 1),
        ("attempt 1: asking a for", 2),
        ("attempt 1: asking b for", 1),
        ("attempt 2: asking a for", 1),
        ("attempt 1: b, ", 1),
        ("  accepted", 3),
    ] {
        assert_eq!(ran.stderr.matches(text).count(), times, "{text}: {}", ran.stderr);
    }
}

/// A target that is named several times gives several samples, each with its own seed, and they agree or differ as targets do.
#[test]
fn a_repeated_target_is_asked_for_several_samples() {
    let right = r#"{"name": "Maria Lindqvist", "age": 34, "city": "Lisbon"}"#;
    let wrong = r#"{"name": "Maria Lindqvist", "age": 34, "city": "Oslo"}"#;
    let schema = example("person.schema.json");
    for (more, seeds) in
        [(&[][..], [json!(null), json!(1), json!(2)]), (&["--seed", "7"], [7, 8, 9].map(|seed| json!(seed)))]
    {
        let a = chat(&[wrong, right, right, r#"{"city": "Lisbon"}"#]);
        let config = config(&[("a", &a)]);
        let args = ["extract", "--schema", &schema, "--config", &config, "--ensemble", "a,a,a", "--json"];
        let ran =
            formwork(&[&args[..], more, &["Maria Lindqvist, 34, moved to Lisbon last spring."]].concat(), "");
        let row = ran.rows().remove(0);
        assert_eq!(
            (&row["value"]["city"], row["calls"].as_array().unwrap().len()),
            (&json!("Lisbon"), 4),
            "{}",
            ran.stderr
        );
        let mut sent: Vec<_> = a
            .received()
            .iter()
            .take(3)
            .map(|request| serde_json::from_slice::<Value>(&request.body).unwrap()["seed"].clone())
            .collect();
        sent.sort_by_key(|seed| seed.as_u64());
        assert_eq!(sent, seeds, "{}", ran.stderr);
        assert!(!ran.stderr.contains("temperature 0"), "{}", ran.stderr);
    }
    let a = chat(&[right, right]);
    let config = config(&[("a", &a)]);
    let args =
        ["extract", "--schema", &schema, "--config", &config, "--ensemble", "a,a", "--temperature", "0"];
    let ran = formwork(&[&args[..], &["Maria Lindqvist, 34, moved to Lisbon last spring."]].concat(), "");
    assert!(
        ran.code == 0 && ran.stderr.contains("at temperature 0, the samples of `a` are the same answer"),
        "{}",
        ran.stderr
    );
}

#[test]
fn values_that_were_not_found_are_asked_for_their_quotes_in_one_call() {
    let answer = r#"{"name": "Maria Lindqvist", "age": 34, "city": "Lissabon"}"#;
    let text = "Maria Lindqvist is trente-quatre and moved to the capital of Portugal.";
    let schema = example("person.schema.json");
    for (quotes, statuses) in [
        (r#"{"age": "trente-quatre", "city": "capital of Portugal"}"#, ["exact", "quoted", "quoted"]),
        (r#"{"age": "trente-cinq", "city": null}"#, ["exact", "not_found", "not_found"]),
    ] {
        let server = chat(&[answer, quotes]);
        let config = config(&[("a", &server)]);
        let args = ["extract", "--schema", &schema, "--config", &config, "--evidence=quote"];
        let ran = formwork(&[&args[..], &["--json", text]].concat(), "");
        assert_eq!((ran.code, server.received().len()), (0, 2), "{}", ran.stderr);
        let row = ran.rows().remove(0);
        let against = against_schema("extract-output.json", &row);
        assert!(against.is_empty(), "{against:?}");
        let found: Vec<&str> =
            row["evidence"].as_array().unwrap().iter().map(|it| it["status"].as_str().unwrap()).collect();
        assert_eq!(found, statuses, "{row}");
        assert_eq!(row["usage"]["input_tokens"], 18, "{row}");
        // The question is about the two values alone.
        let asked: Value = serde_json::from_slice(&server.received()[1].body).unwrap();
        assert_eq!(
            asked.pointer("/response_format/json_schema/schema/required"),
            Some(&json!(["age", "city"])),
            "{asked}"
        );
    }
    // Without a value that was not found, nothing is asked.
    let server = chat(&[answer]);
    let config = config(&[("a", &server)]);
    let args = [
        "extract",
        "--schema",
        &schema,
        "--config",
        &config,
        "--evidence=quote",
        "Maria Lindqvist, 34, Lissabon",
    ];
    assert_eq!((formwork(&args, "").code, server.received().len()), (0, 1));
}

#[test]
fn quotes_are_stored_and_not_asked_for_again() {
    let store = folder().join("quotes.db");
    _ = std::fs::remove_file(&store);
    let server = chat(&[r#"{"age": 34}"#, r#"{"age": "trente-quatre"}"#]);
    let config = config(&[("a", &server)]);
    let row = json!({"id": 1, "input": "She is trente-quatre."}).to_string();
    for (more, input) in [("--json", ""), ("--json", ""), ("--jsonl", row.as_str())] {
        let mut args = vec!["extract", "-s", "age: int", "--config", &config, "--evidence=quote", more];
        args.extend(["--store", store.to_str().unwrap()]);
        args.extend(input.is_empty().then_some("She is trente-quatre."));
        let ran = formwork(&args, input);
        assert_eq!((ran.code, server.received().len()), (0, 2), "{}", ran.stderr);
        assert_eq!(ran.rows()[0]["evidence"][0]["status"], "quoted", "{}", ran.stdout);
    }
}

#[test]
fn the_configuration_and_the_contract_ask_for_quotes_and_the_flag_has_precedence() {
    let text = "She is trente-quatre.";
    let setting = |name: &str, of: &str| match of {
        "" => String::new(),
        of => format!("[defaults]\n{name} = \"{of}\"\n"),
    };
    for (of_config, of_contract, flag, calls, has_evidence) in [
        ("", "", "", 1, false),
        ("find", "", "", 1, true),
        ("quote", "", "", 2, true),
        ("", "quote", "", 2, true),
        ("quote", "find", "", 1, true),
        ("quote", "quote", "--evidence", 1, true),
        ("find", "", "--evidence=quote", 2, true),
    ] {
        let case = format!("{of_config} {of_contract} {flag}");
        let own = if of_contract.is_empty() { String::new() } else { format!("evidence: {of_contract}\n") };
        let contract = temporary("quotes.yaml", format!("schema: '{{age: int}}'\n{own}"));
        let answers = [r#"{"age": 34}"#, r#"{"age": "trente-quatre"}"#];
        let row = json!({"id": 1, "input": text}).to_string();
        for (more, input) in [(text, ""), ("--jsonl", row.as_str())] {
            let server = chat(&answers);
            let file = config(&[("a", &server)]);
            let written = std::fs::read_to_string(&file).unwrap() + &setting("evidence", of_config);
            std::fs::write(&file, written).unwrap();
            let mut args = vec!["extract", "--contract", &contract, "--config", &file, more];
            args.extend((!flag.is_empty()).then_some(flag));
            let ran = formwork(&args, input);
            assert_eq!((ran.code, server.received().len()), (0, calls), "{case} {more}: {}", ran.stderr);
            let shown = if input.is_empty() { &ran.stderr } else { &ran.stdout };
            assert_eq!(shown.contains("$.age"), has_evidence, "{case} {more}: {shown}");
            assert_eq!(shown.contains("quoted"), calls == 2, "{case} {more}: {shown}");
        }
    }
    let bad = setting("evidence", "quotes") + "[providers.a]\nkind = \"ollama\"\nmodel = \"m\"\n";
    let bad = temporary("quotes.toml", bad);
    let ran = formwork(&["extract", "-s", "age: int", "--config", &bad, text], "");
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("quotes.toml:2:"), "{}", ran.stderr);
    assert!(ran.stderr.contains("did you mean `quote`?"), "{}", ran.stderr);
}

#[test]
fn an_inline_field_with_a_mark_stands_in_the_text() {
    for (fields, calls) in [("name", 1), ("name~", 2), ("name~?: str, age: int", 2), ("{name~: str}", 2)] {
        let server = chat(&[r#"{"name": "Mario", "age": 34}"#, r#"{"name": "Maria", "age": 34}"#]);
        let config = config(&[("a", &server)]);
        let args = ["extract", "-s", fields, "--config", &config, "Maria is 34"];
        let ran = formwork(&args, "");
        assert_eq!((ran.code, server.received().len()), (0, calls), "{fields}: {}", ran.stderr);
    }
}
