//! `formwork eval` that asks models: several targets, gold in every format, and a continuation after an end at any place.

use std::fs;

use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::config::of_text;
use super::{against_schema, command, folder, formwork, refused, run};

const SCHEMA: &str = r#"{"type": "object", "properties": {"total": {"type": "number"}, "by": {"type": ["string", "null"]}}, "required": ["total"]}"#;
const CSV: &str = "id,input,expected.total,expected.by\n1,\"Total 12, by Ada\",12,Ada\n2,Total 7,7,\n3,Total 9 by 34,9,34\n";

/// Writes a file into a folder for this test, and returns its name.
fn write(test: &str, name: &str, text: &str) -> String {
    let folder = folder().join(test);
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join(name);
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Writes a configuration with a provider for each server.
fn config(test: &str, servers: &[(&str, &Server)], more: &str) -> String {
    let section = |(name, server): &(&str, &Server)| {
        format!(
            "[providers.{name}]\nkind = \"llama-server\"\nmodel = \"m\"\nstream = false\nretry_delays = [0]\nbase_url = \"{}/v1\"\n{more}\n",
            server.url()
        )
    };
    write(test, "formwork.toml", &servers.iter().map(section).collect::<String>())
}

fn server(answers: &[&str]) -> Server {
    Server::start(answers.iter().map(|text| of_text(text)).collect::<Vec<_>>()).unwrap()
}

/// Returns the number of questions, without requests about the server itself.
fn questions(server: &Server) -> usize {
    server.received().iter().filter(|request| request.path.ends_with("/chat/completions")).count()
}

#[test]
fn two_targets_are_asked_once_for_each_row_and_compared_in_pairs() {
    let right = [
        "{\"total\": 12, \"by\": \"Ada\"}",
        "{\"total\": 7, \"by\": null}",
        "{\"total\": 9, \"by\": \"34\"}",
    ];
    let (one, other) = (server(&right), server(&["{\"total\": 12}", "{\"total\": 8}", "{\"total\": 9}"]));
    let test = "live-two";
    let (gold, schema) = (write(test, "gold.csv", CSV), write(test, "s.json", SCHEMA));
    let config = config(test, &[("one", &one), ("other", &other)], "");
    let saved = folder().join(test).join("gold.answers.jsonl");
    let _ = fs::remove_file(&saved);
    let page = folder().join(test).join("page.html");
    let args =
        ["eval", &gold, "--schema", &schema, "--config", &config, "--provider", "one", "--provider", "other"];
    let run = |more: &[&str]| formwork(&[&args[..], more].concat(), "");
    let ran = run(&["--json", "--merge", "--html", page.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let result = ran.rows().remove(0);
    let against = against_schema("eval-comparison.json", &result);
    assert!(against.is_empty(), "{against:?}");
    let scores: Vec<&Value> =
        result["configurations"].as_array().unwrap().iter().map(|it| &it["score"]).collect();
    assert_eq!((scores[0], scores.len()), (&json!(1.0), 3));
    assert!((scores[1].as_f64().unwrap() - 1.0 / 3.0).abs() < 1e-9, "{scores:?}");
    let pair = &result["pairs"][0];
    assert_eq!(
        (&pair["one"], &pair["other"], &pair["comparison"]["worse"]),
        (&json!("one"), &json!("other"), &json!(3))
    );
    assert_eq!(result["configurations"][0]["spent"]["calls"], 3);
    assert_eq!((questions(&one), questions(&other)), (3, 3));
    assert!(fs::read_to_string(page).unwrap().contains("other beside one"));

    // The answers are kept: without --resume they are not overwritten, and with it no model is asked.
    refused(&run(&[]), 2, "continue it with --resume");
    let again = run(&["--json", "--resume"]);
    assert_eq!((again.code, questions(&one) + questions(&other)), (0, 6), "{}", again.stderr);
    assert_eq!(again.rows()[0]["configurations"][0]["score"], 1.0);

    // Read as recorded answers, the file has both configurations as well.
    let saved = saved.to_str().unwrap();
    let recorded = |more: &[&str], input: &str| {
        formwork(&[&["eval", &*gold, "--schema", &*schema, "--json"], more].concat(), input)
    };
    for (more, names) in [
        (&["--answers", saved][..], vec!["one", "other"]),
        (&["--answers", saved, "--answers", saved], {
            let [one, other] = [", one", ", other"];
            vec![one, other, one, other]
        }),
    ] {
        let ran = recorded(more, "");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let result = ran.rows().remove(0);
        let all = result["configurations"].as_array().unwrap();
        let given = all.iter().map(|it| it["name"].as_str().unwrap().trim_start_matches(saved));
        assert_eq!(given.collect::<Vec<_>>(), names);
        assert_eq!(all[0]["score"], 1.0);
        assert!((all[1]["score"].as_f64().unwrap() - 1.0 / 3.0).abs() < 1e-9, "{all:?}");
    }
    // Standard input and a baseline are read once, for one configuration.
    let text = fs::read_to_string(saved).unwrap();
    refused(&recorded(&["--answers", "-"], &text), 2, "name a file for each configuration");
    let lines = text.lines().filter(|line| line.contains("\"configuration\":\"one\""));
    let of_one = lines.collect::<Vec<_>>().join("\n");
    let ran = recorded(&["--answers", "-", "--baseline", saved], &of_one);
    refused(&ran, 2, "name a file for each configuration");
}

/// A gate whose path the schema does not have is refused before any call.
#[test]
fn a_gate_that_no_answer_can_pass_costs_nothing() {
    let test = "live-gate";
    let (gold, schema) = (write(test, "gold.csv", CSV), write(test, "s.json", SCHEMA));
    let server = server(&[]);
    let config = config(test, &[("one", &server)], "");
    for path in ["$.nope", "$.total.nope"] {
        let gate = format!("{path} >= 0.5");
        let ran = formwork(&["eval", &gold, "--schema", &schema, "--config", &config, "--min", &gate], "");
        refused(&ran, 2, &format!("s.json: the gate `{gate}`: the schema has no `{path}`"));
    }
    assert_eq!(questions(&server), 0);
}

#[test]
fn an_evaluation_that_ended_at_any_place_goes_on_there() {
    let test = "live-resume";
    let answers = ["{\"total\": 12, \"by\": \"Ada\"}", "{\"total\": 7}", "{\"total\": 9, \"by\": \"34\"}"];
    let (gold, schema) = (write(test, "gold.csv", CSV), write(test, "s.json", SCHEMA));
    // One server, because the address belongs to the question: the whole run, what each cut leaves, and a changed input.
    let kept_of_each = [0, 0, 1, 1, 2, 3, 3];
    let script: Vec<&str> = kept_of_each.iter().flat_map(|kept| &answers[*kept..]).copied().collect();
    let server = server(&[&answers[..], &script, &answers[..1]].concat());
    let of = config(test, &[("primary", &server)], "");
    let run = |gold: &str, saved: &str| {
        let before = questions(&server);
        let ran = formwork(
            &["eval", gold, "--schema", &schema, "--config", &of, "--save", saved, "--resume", "--json"],
            "",
        );
        (questions(&server) - before, ran)
    };
    let whole = write(test, "whole.jsonl", "");
    let (_, ran) = run(&gold, &whole);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let text = fs::read_to_string(&whole).unwrap();
    let lines: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
    let cuts = [0, 10, lines[0], lines[0] + 20, lines[1], text.len() - 1, text.len()];
    for (cut, kept) in cuts.into_iter().zip(kept_of_each) {
        let saved = write(test, "cut.jsonl", &text[..cut]);
        let (asked, ran) = run(&gold, &saved);
        assert_eq!((ran.code, asked), (0, 3 - kept), "{cut}: {}", ran.stderr);
        assert_eq!(ran.rows()[0]["score"], 1.0, "{cut}");
    }
    // A changed input is another question.
    let changed = write(test, "changed.csv", &CSV.replace("Total 12, by", "Total 12.00, by"));
    let saved = write(test, "cut.jsonl", &text);
    let (asked, ran) = run(&changed, &saved);
    assert_eq!((asked, ran.code), (1, 0), "{}", ran.stderr);
}

/// The answers of another question stay in the file, and neither count nor are they paid for again.
#[test]
fn another_question_has_answers_of_its_own_in_the_same_file() {
    let test = "live-questions";
    let right = ["{\"total\": 12, \"by\": \"Ada\"}", "{\"total\": 7}", "{\"total\": 9, \"by\": \"34\"}"];
    let wrong = ["{\"total\": 1}"; 3];
    let server = server(&[&wrong[..], &right, &wrong, &right, &wrong].concat());
    let (gold, schema) = (write(test, "gold.csv", CSV), write(test, "s.json", SCHEMA));
    let saved = write(test, "saved.jsonl", "");
    let contract = |version: u32| {
        let text = format!("schema: {}\ninstructions: Version {version}.\n", SCHEMA.replace('\n', " "));
        write(test, &format!("k{version}.yaml"), &text)
    };
    let (first, second) = (contract(1), contract(2));
    let run = |more: &[&str], lines: &str| {
        let before = questions(&server);
        let of = config(test, &[("primary", &server)], lines);
        let args = ["eval", &gold, "--config", &of, "--save", &saved, "--resume", "--json"];
        let ran = formwork(&[&args[..], more].concat(), "");
        assert_eq!(ran.rows().len(), 1, "{more:?}: {}", ran.stderr);
        let row = ran.rows().remove(0);
        (
            questions(&server) - before,
            row["score"].as_f64().unwrap() > 0.5,
            row["spent"]["calls"].clone(),
            ran.stderr,
        )
    };
    let plain = ["--schema", schema.as_str()];
    let warm = ["--schema", schema.as_str(), "--temperature", "0.9"];
    let (of_first, of_second) = (["--contract", first.as_str()], ["--contract", second.as_str()]);
    let more = "settings = { effort = \"low\" }\n";
    for (args, lines, expected) in [
        (&plain[..], "", (3, false)),
        (&warm, "", (3, true)),
        (&plain, more, (3, false)),
        (&of_first, "", (3, true)),
        (&of_second, "", (3, false)),
        (&warm, "", (0, true)),
        (&plain, "", (0, false)),
        (&of_first, "", (0, true)),
    ] {
        let (asked, is_right, calls, stderr) = run(args, lines);
        assert_eq!((asked, is_right), expected, "{args:?} {lines}: {stderr}");
        // What other questions have cost is not this one's.
        assert_eq!(calls, 3, "{args:?} {lines}: {stderr}");
        assert!(!stderr.contains("earlier row"), "{stderr}");
    }
    // Without a schema nothing is asked, and nothing is written.
    let before = fs::read_to_string(&saved).unwrap();
    let of = config(test, &[("primary", &server)], "");
    let ran = formwork(&["eval", &gold, "--config", &of, "--save", &saved, "--resume"], "");
    assert!(ran.code == 2 && ran.stderr.contains("there is no --schema and no --contract"), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(&saved).unwrap(), before);
}

#[test]
fn rows_beyond_the_budget_are_not_asked_and_not_scored() {
    let test = "live-budget";
    let (gold, schema) = (write(test, "gold.csv", CSV), write(test, "s.json", SCHEMA));
    let server = server(&["{\"total\": 12, \"by\": \"Ada\"}"; 3]);
    let of = config(test, &[("primary", &server)], "price = { input = 1.0, output = 1.0 }");
    let saved = write(test, "saved.jsonl", "");
    let ran = formwork(
        &[
            "eval",
            &gold,
            "--schema",
            &schema,
            "--config",
            &of,
            "--save",
            &saved,
            "--json",
            "--max-cost",
            "0.0000001",
        ],
        "",
    );
    assert_eq!((ran.code, questions(&server)), (2, 0), "{}", ran.stderr);
    assert!(ran.stderr.contains("--resume continues"), "{}", ran.stderr);
}

/// The answers of the first evaluation are paid for, whatever the second one may cost.
#[test]
fn rows_that_were_answered_before_the_budget_ended_are_scored() {
    let test = "live-answered";
    let (gold, schema) = (write(test, "gold.csv", CSV), write(test, "s.json", SCHEMA));
    let one =
        server(&["{\"total\": 12, \"by\": \"Ada\"}", "{\"total\": 7}", "{\"total\": 9, \"by\": \"34\"}"]);
    let other = server(&["{\"total\": 12}"; 3]);
    let of = config(test, &[("one", &one), ("other", &other)], "price = { input = 1.0, output = 1.0 }");
    let saved = write(test, "saved.jsonl", "");
    let args = ["eval", &gold, "--schema", &schema, "--config", &of, "--save", &saved, "--json", "--resume"];
    let run = |more: &[&str]| formwork(&[&args[..], &["--provider", "one"], more].concat(), "");
    assert_eq!(run(&[]).code, 0);
    let ran = run(&["--provider", "other", "--max-cost", "0.0000001"]);
    assert_eq!((ran.code, questions(&one), questions(&other)), (1, 3, 0), "{}", ran.stderr);
    assert!(ran.stderr.contains("3 rows have no answer of other and are not scored"), "{}", ran.stderr);
    let first = &ran.rows()[0]["configurations"][0];
    assert_eq!((&first["score"], first["rows"].as_array().unwrap().len()), (&json!(1.0), 3), "{first}");
}

#[test]
fn earlier_answers_are_reported_although_the_other_rows_cannot_be_asked() {
    let test = "live-earlier";
    let (gold, schema) = (write(test, "gold.csv", CSV), write(test, "s.json", SCHEMA));
    let answers = ["{\"total\": 12, \"by\": \"Ada\"}", "{\"total\": 7}"].map(of_text);
    let server = Server::start(answers.into_iter().chain([503; 20].map(Reply::status))).unwrap();
    let of = config(test, &[("primary", &server)], "");
    let saved = write(test, "saved.jsonl", "");
    let run = |gold: &str, schema: &[&str]| {
        let args = ["eval", gold, "--config", &of, "--save", &saved, "--json", "--resume", "--retries", "0"];
        let ran = formwork(&[&args[..], schema].concat(), "");
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        assert_eq!(ran.rows()[0]["rows"].as_array().unwrap().len(), 2, "{}", ran.stderr);
        ran.stderr
    };
    let with_schema = ["--schema", schema.as_str()];
    run(&gold, &with_schema);
    let stderr = run(&gold, &with_schema);
    assert!(stderr.contains("--resume continues with them"), "{stderr}");
    // The schema of the third row cannot be used.
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let row = |id: &str, input: &str, schema: &Value, expected: Value| {
        format!("{}\n", json!({"id": id, "input": input, "schema": schema, "expected": expected}))
    };
    let rows = row("1", "Total 12, by Ada", &schema, json!({"total": 12, "by": "Ada"}))
        + &row("2", "Total 7", &schema, json!({"total": 7}))
        + &row("3", "Total 9", &json!({"type": "nonsense"}), json!({"total": 9}));
    let asked = questions(&server);
    let stderr = run(&write(test, "gold.jsonl", &rows), &[]);
    assert!(stderr.contains("the row \"3\" is not asked"), "{stderr}");
    assert_eq!(questions(&server), asked);
}

#[test]
fn rows_that_cannot_be_scored_are_not_asked() {
    let test = "live-unscored";
    let gold = "id,input,expected\n1,Total 12,\"{\"\"total\"\": 12}\"\n2,Total 7,\n1,Total 9,\"{\"\"total\"\": 9}\"\n";
    let (gold, schema) = (write(test, "gold.csv", gold), write(test, "s.json", SCHEMA));
    let server = server(&["{\"total\": 12}"; 3]);
    let of = config(test, &[("primary", &server)], "");
    let saved = write(test, "saved.jsonl", "");
    let ran =
        formwork(&["eval", &gold, "--schema", &schema, "--config", &of, "--save", &saved, "--json"], "");
    assert_eq!(
        (ran.code, questions(&server), &ran.rows()[0]["score"]),
        (1, 1, &json!(1.0)),
        "{}",
        ran.stderr
    );
    let notes = ran.rows()[0]["notes"].as_array().unwrap().clone();
    let says = [
        "gold.csv:3: the row has no `expected`: it is not scored",
        "gold.csv:4: the id \"1\" is that of an earlier row: it is not scored",
    ];
    assert!(notes.iter().zip(says).all(|(note, says)| note.as_str().unwrap().ends_with(says)), "{notes:?}");
    assert_eq!(notes.len(), 2, "{notes:?}");
}

/// Only the scores depend on a comparison.
#[test]
fn a_mistake_in_a_comparison_is_named_before_a_question_and_a_change_asks_nothing_again() {
    let test = "live-compare";
    let gold = write(test, "gold.csv", CSV);
    let server =
        server(&["{\"total\": 12.4, \"by\": \"Ada\"}", "{\"total\": 7}", "{\"total\": 9, \"by\": \"34\"}"]);
    let of = config(test, &[("primary", &server)], "");
    let saved = write(test, "saved.jsonl", "");
    let run = |how: Value| {
        let mut schema: Value = serde_json::from_str(SCHEMA).unwrap();
        schema["properties"]["total"]["x-formwork-compare"] = how;
        let schema = write(test, "s.json", &schema.to_string());
        let args =
            ["eval", &gold, "--schema", &schema, "--config", &of, "--save", &saved, "--json", "--resume"];
        (formwork(&args, ""), questions(&server))
    };
    let (ran, asked) = run(json!("nmber"));
    refused(&ran, 2, "s.json: #/properties/total/x-formwork-compare: `x-formwork-compare` is \"nmber\"");
    assert_eq!(asked, 0);
    let contract = json!({"schema": {"properties": {"total": {"x-formwork-compare": "nmber"}}}}).to_string();
    let contract = write(test, "contract.yaml", &contract);
    let ran = formwork(&["eval", &gold, "--contract", &contract, "--config", &of, "--save", &saved], "");
    assert!(ran.code == 2 && ran.stderr.contains("contract.yaml: #/properties/total/"), "{}", ran.stderr);
    for (how, is_right) in [(json!("number"), false), (json!({"as": "number", "tolerance": 0.5}), true)] {
        let (ran, asked) = run(how);
        assert_eq!((ran.code, asked, ran.rows()[0]["score"] == 1.0), (0, 3, is_right), "{}", ran.stderr);
    }
}

/// The names `.` and `..` are those of other folders.
#[test]
fn the_answers_to_a_folder_stand_beside_it_however_it_is_named() {
    let test = "live-dot";
    let rows = json!({"id": 1, "input": "Total 12", "expected": {"total": 12}}).to_string();
    let (gold, schema) = (write(test, "gold.jsonl", &rows), write(test, "s.json", SCHEMA));
    let server = server(&["{\"total\": 12}"]);
    let of = config(test, &[("primary", &server)], "");
    let here = folder().join(test);
    let saved = folder().join("live-dot.answers.jsonl");
    let _ = fs::remove_file(&saved);
    fs::create_dir_all(here.join("inner")).unwrap();
    for (place, name) in [(here.clone(), "."), (here.join("inner"), ".."), (here.clone(), "../live-dot/")] {
        let mut command = command(&["eval", name, "--schema", &schema, "--config", &of, "--resume"]);
        command.current_dir(place);
        let ran = run(command, "");
        assert_eq!((ran.code, questions(&server)), (0, 1), "{name}: {}", ran.stderr);
        assert_eq!(fs::read_to_string(&saved).unwrap().lines().count(), 1, "{name}");
    }
    let inner = here.join("inner");
    let args = ["eval", &gold, "--schema", &schema, "--config", &of, "--resume", "--save"];
    let ran = formwork(&[&args[..], &[inner.to_str().unwrap()]].concat(), "");
    refused(&ran, 2, "cannot read");
}

#[test]
fn a_server_that_is_down_is_no_provider_and_costs_no_answer() {
    let test = "live-down";
    let (gold, schema) = (write(test, "gold.csv", CSV), write(test, "s.json", SCHEMA));
    let server = Server::start([503; 40].map(Reply::status)).unwrap();
    let of = config(test, &[("primary", &server)], "");
    let saved = write(test, "saved.jsonl", "");
    let args = ["eval", &gold, "--schema", &schema, "--config", &of, "--save", &saved, "--retries", "0"];
    let ran = formwork(&args, "");
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert_eq!(fs::read_to_string(&saved).unwrap(), "");
}

#[test]
fn gold_is_a_folder_or_csv_and_what_is_wrong_with_it_is_named() {
    let test = "gold-folder";
    for (name, text) in [
        ("a.txt", "Total 12"),
        ("a.json", "{\"total\": 12}"),
        ("b.md", "Total 7"),
        ("c.json", "{\"total\": 1}"),
        ("d.txt", " "),
        ("d.json", "{\"total\": 2}"),
    ] {
        write(&format!("{test}/docs"), name, text);
    }
    let answers = "{\"id\": \"a\", \"value\": {\"total\": 12}}\n{\"id\": \"c\", \"value\": {\"total\": 2}}\n{\"id\": \"d\", \"value\": null}\n";
    let answers = write(test, "answers.jsonl", answers);
    let docs = folder().join(test).join("docs");
    let ran = formwork(&["eval", docs.to_str().unwrap(), "--answers", &answers, "--json"], "");
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.contains("there is no b.json with its value") && ran.stderr.contains("d.txt has no text"),
        "{}",
        ran.stderr
    );
    let scores: Vec<Value> =
        ran.rows()[0]["rows"].as_array().unwrap().iter().map(|row| row["score"].clone()).collect();
    assert_eq!(scores, [1.0, 0.0, 0.0]);

    for (text, code, says) in [
        ("id,total\n1,2\n", 2, "the header needs the columns `id` and `expected`"),
        ("id,expected\n1,{\"total\": 2\n", 2, "the cell of `expected` is no JSON"),
        ("id,expected.total\n1,2,3\n", 2, "found record with 3 fields"),
        ("id,expected.total\na,12\nb,7,1\n", 1, "gold.csv:3"),
    ] {
        let gold = write(test, "gold.csv", text);
        let ran = formwork(&["eval", &gold, "--answers", &answers], "");
        assert!(ran.code == code && ran.stderr.contains(says), "{text}: {} {}", ran.code, ran.stderr);
    }
    // The schema tells the text "34" from the number.
    let (gold, schema) =
        (write(test, "typed.csv", "id,expected.by,expected.total\na,34,34\n"), write(test, "s.json", SCHEMA));
    let answer = write(test, "one.jsonl", "{\"id\": \"a\", \"value\": {\"by\": \"34\", \"total\": 34}}\n");
    let ran = formwork(&["eval", &gold, "--schema", &schema, "--answers", &answer], "");
    assert!(ran.code == 0 && !ran.stderr.contains("violates"), "{}", ran.stderr);
}

#[test]
fn a_calibration_is_fitted_on_several_files_of_answers_and_a_file_that_cannot_be_fitted_is_named() {
    let test = "calibrate";
    let (mut gold, mut one, mut other) = (String::new(), String::new(), String::new());
    for id in 0..200 {
        let (right, wrong) = (json!({"a": id, "b": id + 100}), json!({"a": id, "b": id + 1000}));
        gold +=
            &format!("{}\n", json!({"id": id, "expected": right, "input": format!("{id} and {}", id + 100)}));
        let is_wrong = id % 4 == 0;
        one += &format!("{}\n", json!({"id": id, "value": if is_wrong { &wrong } else { &right }}));
        other += &format!("{}\n", json!({"id": id, "value": right}));
    }
    let (gold, one, other) = (
        write(test, "gold.jsonl", &gold),
        write(test, "one.jsonl", &one),
        write(test, "other.jsonl", &other),
    );
    let file = write(test, "calibration.json", "");
    let ran = formwork(&["eval", &gold, "--answers", &one, "--calibrate", &file, "--json"], "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let written: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let calibration = &written["calibrations"][0];
    assert_eq!(
        (&calibration["documents"], &calibration["leaves"], &calibration["evidence"]),
        (&json!(200), &json!(400), &json!(true))
    );
    assert!(calibration["error"].as_f64().unwrap() <= 0.05, "{calibration}");
    // A configuration without a wrong value has nothing to fit, which loses no other calibration.
    let ran = formwork(&["eval", &gold, "--answers", &one, "--answers", &other, "--calibrate", &file], "");
    let none_wrong = &*format!("none of the 400 values of {other} is wrong, so it cannot be calibrated");
    assert!(ran.code == 0 && ran.stderr.contains(&format!("warning: {none_wrong}")), "{}", ran.stderr);
    let written: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let fitted = written["calibrations"].as_array().unwrap();
    assert_eq!((fitted.len(), &fitted[0]["configuration"]), (1, &json!(one)));
    let ran = formwork(&["eval", &gold, "--answers", &other, "--calibrate", &file], "");
    assert!(ran.code == 2 && ran.stderr.contains(none_wrong), "{}", ran.stderr);
    let few = write(
        test,
        "few.jsonl",
        &fs::read_to_string(&gold).unwrap().lines().take(3).collect::<Vec<_>>().join("\n"),
    );
    let ran = formwork(&["eval", &few, "--answers", &one, "--calibrate", &file], "");
    let says = "6 values of 3 documents are too few to calibrate ";
    assert!(ran.code == 2 && ran.stderr.contains(says), "{}", ran.stderr);
}

#[test]
fn rows_without_a_text_are_left_out_of_a_calibration_unless_no_row_has_one() {
    let test = "calibrate-texts";
    let (mut gold, mut without, mut answers) = (String::new(), String::new(), String::new());
    for id in 0..201 {
        let mut row = json!({"id": id, "expected": {"a": id}});
        without += &format!("{row}\n");
        if id > 0 {
            row["input"] = json!(format!("It is {id}."));
        }
        gold += &format!("{row}\n");
        answers +=
            &format!("{}\n", json!({"id": id, "value": {"a": if id % 4 == 0 { id + 1000 } else { id }}}));
    }
    let answers = write(test, "answers.jsonl", &answers);
    let file = write(test, "calibration.json", "");
    for (gold, evidence, documents, says) in [
        (&gold, true, 200, "1 rows without a text are left out of the calibration"),
        (&without, false, 201, "the calibration is without evidence: `formwork extract` cannot use it"),
    ] {
        let gold = write(test, "gold.jsonl", gold);
        let ran = formwork(&["eval", &gold, "--answers", &answers, "--calibrate", &file, "--json"], "");
        assert!(ran.code == 0 && ran.stderr.contains(says), "{}", ran.stderr);
        let written: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        let fitted = &written["calibrations"][0];
        assert_eq!((&fitted["evidence"], &fitted["documents"]), (&json!(evidence), &json!(documents)));
    }
}

/// A converted value has half of its score in `extract`: a calibration is fitted on the same scores.
#[test]
fn a_calibration_is_fitted_on_the_scores_that_extract_has() {
    let test = "live-factors";
    let (schema, gold) = (write(test, "s.json", SCHEMA), write(test, "gold.csv", CSV));
    let one = server(&["{\"total\": \"12\"}", "{\"total\": 7}", "{\"total\": 9}"]);
    let config = config(test, &[("one", &one)], "");
    let saved = folder().join(test).join("answers.jsonl");
    let _ = fs::remove_file(&saved);
    let saved = saved.to_str().unwrap();
    let args =
        ["eval", &gold, "--schema", &schema, "--config", &config, "--provider", "one", "--concurrency", "1"];
    let ran = formwork(&[&args[..], &["--save", saved]].concat(), "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let rows = fs::read_to_string(saved).unwrap();
    assert_eq!(rows.matches(r#""factors":{"$.total":0.5}"#).count(), 1, "{rows}");

    // Every fourth answer is wrong, and was converted. All values stand in their texts.
    let of = |has_factors: bool| {
        let (mut gold, mut answers) = (String::new(), String::new());
        for nth in 0..400 {
            let is_wrong = nth % 4 == 0;
            let given = if is_wrong { nth + 1000 } else { nth };
            let factors = if is_wrong && has_factors { json!({"$.total": 0.5}) } else { json!({}) };
            let input = format!("Totals {nth} and {}", nth + 1000);
            gold += &format!("{}\n", json!({"id": nth, "input": input, "expected": {"total": nth}}));
            answers += &format!("{}\n", json!({"id": nth, "value": {"total": given}, "factors": factors}));
        }
        let (gold, answers) = (write(test, "many.jsonl", &gold), write(test, "given.jsonl", &answers));
        let file = write(test, "fitted.json", "");
        let ran =
            formwork(&["eval", &gold, "--schema", &schema, "--answers", &answers, "--calibrate", &file], "");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let fitted: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        let points = fitted["calibrations"][0]["points"].as_array().unwrap().clone();
        points.iter().map(|point| point[1].as_f64().unwrap()).collect::<Vec<_>>()
    };
    let [with, without] = [of(true), of(false)];
    assert!(with[0] < 0.1 && *with.last().unwrap() > 0.9, "{with:?}");
    assert!(without.iter().all(|one| (0.7..0.8).contains(one)), "{without:?}");
}
