//! `formwork eval`: scores, gates, baselines, and what is wrong with the files.

use std::fs;

use serde_json::json;

use crate::{against_schema, example, folder, formwork, refused};

/// Writes two files into a folder of their own, and returns their names.
fn files(name: &str, gold: &str, answers: &str) -> [String; 2] {
    let folder = folder().join(name);
    fs::create_dir_all(&folder).unwrap();
    [("gold.jsonl", gold), ("answers.jsonl", answers)].map(|(name, text)| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    })
}

#[test]
fn the_result_has_the_score_the_rows_and_the_paths() {
    let gold =
        "{\"id\": \"a\", \"expected\": {\"x\": 1, \"y\": null}}\n{\"id\": 2, \"expected\": {\"x\": 2}}\n";
    let answers = "{\"id\": 2, \"value\": null}\n{\"id\": \"a\", \"value\": {\"x\": 1, \"y\": 3}}\n";
    let [gold, answers] = files("eval-scores", gold, answers);
    for profile in ["default", "docubench"] {
        let ran = formwork(&["eval", &gold, "--answers", &answers, "--profile", profile, "--json"], "");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let against = against_schema("eval-output.json", &ran.rows()[0]);
        assert!(against.is_empty(), "{against:?}");
        let row = ran.rows().remove(0);
        assert_eq!((&row["score"], &row["profile"]), (&json!(0.25), &json!(profile)));
        assert_eq!(row["rows"], json!([{"id": "a", "score": 0.5}, {"id": 2, "score": 0.0}]));
        let path = &row["paths"][0];
        assert_eq!((&path["path"], &path["right"], &path["missing"]), (&json!("$.x"), &json!(1), &json!(1)));
        assert_eq!(row["paths"][1]["invented"], 1);
    }
}

#[test]
fn one_file_of_answers_has_a_name_beside_the_merged_answer() {
    let [gold, answers] =
        files("eval-one", "{\"id\": 1, \"expected\": {\"x\": 1}}\n", "{\"id\": 1, \"value\": {\"x\": 1}}\n");
    let run = |more: &[&str]| formwork(&[&["eval", &gold, "--answers", &answers][..], more].concat(), "");
    let names: Vec<_> = run(&["--merge", "--json"]).rows()[0]["configurations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|report| report["name"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert!(names[0].ends_with("answers.jsonl") && names[1] == "merged", "{names:?}");
    for more in [&[][..], &["--merge"]] {
        let ran = run(more);
        assert!(ran.stdout.contains("1 document\n") && !ran.stdout.contains("1 documents"), "{}", ran.stdout);
    }
}

#[test]
fn gates_and_baselines_decide_the_exit_code() {
    let (gold, answers) = (example("gold/gold.jsonl"), example("gold/answers.jsonl"));
    let run = |args: &[&str]| formwork(&[&["eval", &gold, "--answers", &answers][..], args].concat(), "");
    for (gate, code) in [("$.total >= 1", 0), ("$.date >= 0.9", 1), ("$.nothing >= 0.9", 2), ("date", 2)] {
        assert_eq!(run(&["--min", gate]).code, code, "{gate}");
    }
    let page = folder().join("page.html");
    let ran = run(&["--baseline", &answers, "--html", page.to_str().unwrap()]);
    assert!(ran.code == 0 && ran.stdout.contains("difference +0.00 points"), "{}{}", ran.stdout, ran.stderr);
    assert!(fs::read_to_string(page).unwrap().starts_with("<!doctype html>"));
    // What cannot be checked or calibrated takes no result away.
    for args in
        [&["--min", "$.nothing >= 0.9"][..], &["--calibrate", folder().join("few.json").to_str().unwrap()]]
    {
        let ran = run(&[args, &["--json"]].concat());
        assert!(
            ran.code == 2 && ran.rows()[0]["score"].is_number(),
            "{args:?}: {}{}",
            ran.stdout,
            ran.stderr
        );
    }
    // A baseline that says nothing about the gold is an error, and no baseline of 0 %.
    let result = |more: &[&str]| run(&[&["--json"], more].concat()).stdout;
    let of_two =
        formwork(&["eval", &gold, "--answers", &answers, "--answers", &answers, "--json"], "").stdout;
    for (name, text, says) in [
        ("empty", String::new(), "the baseline has no answer to a row of the gold"),
        ("gold", fs::read_to_string(&gold).unwrap(), "the baseline has no answer to a row of the gold"),
        ("two", of_two, "the result of 2 configurations: name a result of one"),
        ("docubench", result(&["--profile", "docubench"]), "scored by the profile \"docubench\""),
    ] {
        let file = folder().join(format!("baseline-{name}.json"));
        fs::write(&file, text).unwrap();
        let ran = run(&["--baseline", file.to_str().unwrap()]);
        assert!(ran.code == 2 && ran.stderr.contains(says), "{name}: {}", ran.stderr);
    }
    // Rows that a baseline lacks are not compared.
    let file = folder().join("baseline-part.jsonl");
    let part: String =
        fs::read_to_string(&answers).unwrap().lines().take(2).map(|line| format!("{line}\n")).collect();
    fs::write(&file, part).unwrap();
    let ran = run(&["--baseline", file.to_str().unwrap(), "--json"]);
    let baseline = &ran.rows()[0]["baseline"];
    assert_eq!(baseline["better"].as_u64().unwrap() + baseline["equal"].as_u64().unwrap(), 2, "{baseline}");
    assert_eq!(baseline["difference"], 0.0, "{baseline}");
}

/// A line that is no object is no row, and what is wrong with the file is said.
#[test]
fn lists_encodings_and_columns_are_read_as_what_they_are() {
    let [gold, answers] = files(
        "eval-lists",
        "[1, 2]\n{\"id\": 2, \"expected\": 1}\n",
        "{\"id\": 1, \"value\": 2}\n{\"id\": 2, \"value\": 1}\n",
    );
    let ran = formwork(&["eval", &gold, "--answers", &answers, "--json"], "");
    assert!(ran.stderr.contains("gold.jsonl:1: this line is not a JSON object"), "{}", ran.stderr);
    assert_eq!(ran.rows()[0]["rows"], json!([{"id": 2, "score": 1.0}]));
    fs::write(&gold, b"\xef\xbb\xbf{\"id\": 1, \"expected\": 2}\n{\"id\": 2, \"expected\": \"M\xfcller\"}\n")
        .unwrap();
    let ran = formwork(&["eval", &gold, "--answers", &answers, "--json"], "");
    assert!(ran.stderr.contains("gold.jsonl:2: byte 25 of this line is not UTF-8"), "{}", ran.stderr);
    assert_eq!(ran.rows()[0]["rows"], json!([{"id": 1, "score": 1.0}]));

    let csv = folder().join("eval-columns.csv");
    let file = csv.to_str().unwrap();
    let value = json!({"lines": [{"text": "a"}, {"text": "b"}], "n": 1});
    fs::write(&answers, format!("{}\n", json!({"id": "x", "value": value}))).unwrap();
    fs::write(&csv, "id,expected.lines[0].text,expected.lines[1].text,expected.n\nx,a,b,1\n").unwrap();
    let ran = formwork(&["eval", file, "--answers", &answers, "--json"], "");
    assert_eq!((ran.code, &ran.rows()[0]["score"]), (0, &json!(1.0)), "{}", ran.stderr);
    // An id of CSV is a text, and that of JSON may be a number.
    fs::write(&answers, "{\"id\": 2, \"value\": {\"n\": 1}}\n").unwrap();
    fs::write(&csv, "id,expected.n\n2,1\n").unwrap();
    let ran = formwork(&["eval", file, "--answers", &answers, "--json"], "");
    assert_eq!((ran.code, &ran.rows()[0]["score"]), (0, &json!(1.0)), "{}", ran.stderr);
    // A folder with gold.jsonl.
    let ran =
        formwork(&["eval", &example("gold"), "--answers", &example("gold/answers.jsonl"), "--json"], "");
    assert_eq!(ran.rows()[0]["rows"].as_array().unwrap().len(), 3, "{}", ran.stderr);
    for (header, says) in [
        ("id,expected.n,expected.n.m", "are about the same value"),
        ("id,expected.n,expected.n", "are about the same value"),
        ("id,expected,expected.n", "use one of them"),
        ("id,expected.a[", "write a path such as"),
        ("id,expected.a[1000000000]", "at most 10000 items"),
    ] {
        fs::write(&csv, format!("{header}\nx,1,1\n")).unwrap();
        refused(&formwork(&["eval", file, "--answers", &answers], ""), 2, says);
    }
    let schema = folder().join("eval-nonsense.json");
    fs::write(&schema, r#"{"type": "nonsense"}"#).unwrap();
    let ran = formwork(&["eval", &gold, "--answers", &answers, "--schema", schema.to_str().unwrap()], "");
    refused(&ran, 2, "eval-nonsense.json");
}

#[test]
fn every_defect_of_the_files_is_named_with_its_line_and_the_rest_is_scored() {
    let gold = "{\"id\": 1, \"expected\": {\"x\": \"a\"}, \"schema\": {\"properties\": {\"x\": {\"type\": \"number\"}}}}\n\
                {\"id\": 2}\n{\"id\": 1, \"expected\": {}}\nnot a row\n{\"id\": 5, \"expected\": {\"x\": 1}, \"input\": \" \"}\n";
    let answers = "{\"id\": 1, \"value\": {\"x\": \"a\"}}\n{\"id\": 9, \"value\": {}}\n{\"id\": 1, \"value\": 0}\n{\"id\": 7}\n{\"id\": 2, \"value\": {}}\n";
    let [gold, answers] = files("eval-defects", gold, answers);
    let ran = formwork(&["eval", &gold, "--answers", &answers, "--json"], "");
    assert_eq!(ran.code, 1);
    for message in [
        "gold.jsonl:1: the expected value violates its schema",
        "answers.jsonl:1: the answer violates its schema",
        "gold.jsonl:2: the row has no `expected`",
        "gold.jsonl:3: the id 1 is that of an earlier row",
        "gold.jsonl:4: this line is not a JSON object",
        "gold.jsonl:5: the input has no text",
        "has no answer with the id 5",
        "answers.jsonl:3: the id 1 is that of",
        "answers.jsonl:4: the row has no `value`",
        "answers.jsonl:2: no gold row has the id of this answer (1 such answers)",
    ] {
        assert!(ran.stderr.contains(message), "{message}: {}", ran.stderr);
    }
    let row = ran.rows().remove(0);
    assert_eq!(row["rows"], json!([{"id": 1, "score": 1.0}, {"id": 5, "score": 0.0}]));
    assert_eq!(row["notes"].as_array().unwrap().len(), 10);
    assert_eq!(formwork(&["eval", &gold, "--answers", &answers, "--allow-failures"], "").code, 0);
}

/// An answer to the first row alone has the member with the mistake.
#[test]
fn a_row_with_a_mistake_in_its_comparison_is_scored_for_no_answers() {
    let schema = json!({"properties": {"b": {"properties": {"c": {"x-formwork-compare": "txt"}}}}});
    let gold = json!({"id": 1, "schema": schema, "expected": {"a": 1}}).to_string()
        + "\n{\"id\": 2, \"expected\": {\"a\": 1}}\n";
    let other = "{\"id\": 1, \"value\": {\"a\": 1}}\n{\"id\": 2, \"value\": {\"a\": 1}}\n";
    let [gold, answers] =
        files("eval-compare", &gold, &other.replacen("1}}", "1, \"b\": {\"c\": \"x\"}}}", 1));
    let first = folder().join("eval-compare-first.jsonl");
    fs::write(&first, other).unwrap();
    let first = first.to_str().unwrap();
    let ran = formwork(&["eval", &gold, "--answers", first, "--answers", &answers, "--json"], "");
    let says =
        "gold.jsonl:1: #/properties/b/properties/c/x-formwork-compare: `x-formwork-compare` is \"txt\"";
    assert!(ran.code == 1 && ran.stderr.contains(says), "{}", ran.stderr);
    for set in ran.rows()[0]["configurations"].as_array().unwrap() {
        assert_eq!(set["rows"], json!([{"id": 2, "score": 1.0}]), "{set}");
    }
}

#[test]
fn the_only_schema_of_a_folder_is_that_of_its_rows() {
    let row = |member: &str, value: u32| json!({"id": "a", member: {"x": value}}).to_string();
    let [gold, answers] = files("eval-schema", &row("expected", 10), &row("value", 11));
    let gold = std::path::Path::new(&gold).parent().unwrap();
    let near = json!({"properties": {"x": {"x-formwork-compare": {"as": "number", "tolerance": 1}}}});
    fs::write(gold.join("a.schema.json"), near.to_string()).unwrap();
    fs::write(gold.join("b.txt"), "ten").unwrap();
    fs::write(gold.join("b.json"), "{\"x\": 10}").unwrap();
    let score = || {
        let ran = formwork(&["eval", gold.to_str().unwrap(), "--answers", &answers, "--json"], "");
        (ran.code, ran.rows()[0]["score"].clone(), ran.stderr.contains("the schema of the rows is"))
    };
    assert_eq!(score(), (0, json!(1.0), true));
    // Which of two schemas is meant is unknown.
    fs::write(gold.join("c.schema.json"), "{}").unwrap();
    assert_eq!(score(), (0, json!(0.0), false));
    fs::remove_file(gold.join("c.schema.json")).unwrap();
    // A schema is no row of a folder whose files are rows.
    fs::remove_file(gold.join("gold.jsonl")).unwrap();
    let answers = json!({"id": "b", "value": {"x": 9}}).to_string();
    fs::write(gold.join("answers.jsonl"), answers).unwrap();
    let ran = formwork(
        &[
            "eval",
            gold.to_str().unwrap(),
            "--answers",
            gold.join("answers.jsonl").to_str().unwrap(),
            "--json",
        ],
        "",
    );
    assert_eq!(ran.rows()[0]["rows"], json!([{"id": "b", "score": 1.0}]), "{}", ran.stdout);
}
