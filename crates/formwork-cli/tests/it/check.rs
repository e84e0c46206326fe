use serde_json::{Value, json};

use crate::{against_schema, example, formwork, temporary};

fn score() -> Value {
    json!({
        "score": 640,
        "scoreBreakdown": {"activity": 80, "maturity": 70, "diversity": 60, "riskBehavior": 51, "surveyMatch": 60},
        "reasoning": "A long history with steady use.",
        "risk_factors": ["one mixer hop"],
        "strengths": [],
    })
}

fn check_score(document: &Value) -> Vec<(String, String)> {
    let ran = formwork(
        &["check", "--json", "--schema", &example("ai-score.schema.json"), "-"],
        document.to_string(),
    );
    let row = ran.rows().remove(0);
    assert_eq!(ran.code, i32::from(row["valid"] != true));
    let violations = row["violations"].as_array().unwrap();
    violations
        .iter()
        .map(|v| (v["path"].as_str().unwrap().to_owned(), v["rule"].as_str().unwrap().to_owned()))
        .collect()
}

#[test]
fn each_missing_key_is_one_violation_at_its_path() {
    assert_eq!(check_score(&score()), []);
    for key in ["score", "scoreBreakdown", "reasoning", "risk_factors", "strengths"] {
        let mut document = score();
        document.as_object_mut().unwrap().remove(key);
        assert_eq!(check_score(&document), [(format!("$.{key}"), "required".to_owned())]);
    }
    for key in ["activity", "maturity", "diversity", "riskBehavior", "surveyMatch"] {
        let mut document = score();
        document["scoreBreakdown"].as_object_mut().unwrap().remove(key);
        assert_eq!(check_score(&document), [(format!("$.scoreBreakdown.{key}"), "required".to_owned())]);
    }
}

#[test]
fn the_bounds_of_the_score_are_kept() {
    let with = |path: &str, value: Value| {
        let mut document = score();
        *document.pointer_mut(path).unwrap() = value;
        check_score(&document)
    };
    for (path, value, rule) in [
        ("/score", json!(-1), "minimum"),
        ("/score", json!(1001), "maximum"),
        ("/score", json!(12.5), "type"),
        ("/scoreBreakdown/activity", json!(101), "maximum"),
        ("/reasoning", json!("x".repeat(9)), "minLength"),
        ("/reasoning", json!("x".repeat(501)), "maxLength"),
    ] {
        assert_eq!(with(path, value), [(format!("${}", path.replace('/', ".")), rule.to_owned())]);
    }
    for (path, value) in [
        ("/score", json!(0)),
        ("/score", json!(1000)),
        ("/score", json!(612.0)),
        ("/reasoning", json!("🙂".repeat(10))),
    ] {
        assert_eq!(with(path, value), []);
    }
}

#[test]
fn violations_point_into_the_source() {
    let document =
        temporary("person.json", "{\n  \"name\": \"Ada\",\n  \"age\": \"34\",\n  \"town\": \"London\"\n}\n");
    let ran = formwork(&["check", "--schema", &example("person.schema.json"), &document], "");
    assert_eq!(ran.code, 1);
    assert!(
        ran.stdout.contains("error: Type mismatch at $.age: expected integer, found string"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains(
            "person.json:3:10\n  |\n3 |   \"age\": \"34\",\n  |          ^^^^ expected integer, found string"
        ),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("4 |   \"town\": \"London\"\n  |   ^^^^^^ field is not allowed"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("1 | {\n  | ^ this object has no `city`"), "{}", ran.stdout);
    assert!(ran.stdout.ends_with("person.json: 3 violations\n"), "{}", ran.stdout);
}

#[test]
fn a_megabyte_in_one_line_is_shown_in_part() {
    let line = format!(
        "{{\"name\": \"{}\", \"age\": -1, \"city\": \"{}\"}}",
        "ä".repeat(300_000),
        "x".repeat(500_000)
    );
    let ran = formwork(&["check", "--schema", &example("person.schema.json"), "-"], line);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stdout.len() < 2000 && ran.stdout.contains("-1") && ran.stdout.contains("(line 1, column 300"),
        "{}",
        ran.stdout
    );
}

#[test]
fn rows_are_answered_one_by_one() {
    let rows = [
        json!({"id": "a", "schema": {"type": "string"}, "data": "x"}).to_string(),
        json!({"id": 2, "schema": {"type": "string"}, "data": 5}).to_string(),
        json!({"id": [3], "schema": {"$ref": "other.json"}, "data": 5}).to_string(),
        "{\"id\": 4}".to_owned(),
        String::new(),
        "not json".to_owned(),
    ];
    let ran = formwork(&["check", "--jsonl"], rows.join("\n"));
    let answers = ran.rows();
    assert_eq!((ran.code, answers.len()), (1, 5), "{}", ran.stderr);
    for answer in &answers {
        assert_eq!(against_schema("check-output.json", answer), Vec::<String>::new(), "{answer}");
    }
    assert_eq!(answers[0], json!({"id": "a", "valid": true, "violations": []}));
    assert_eq!((&answers[1]["valid"], &answers[1]["violations"][0]["pointer"]), (&json!(false), &json!("")));
    assert_eq!(answers[2]["error"]["class"], "schema");
    assert!(answers[3]["error"]["message"].as_str().unwrap().contains("missing field `data`"));
    assert!(answers[4]["error"]["message"].as_str().unwrap().starts_with("standard input:6: "));
}

#[test]
fn bad_input_is_one_message_and_the_right_exit_code() {
    let person = example("person.schema.json");
    let bad_schema = temporary("bad.schema.json", r#"{"type": "objekt"}"#);
    let no_json = temporary("no.schema.json", "{\n \"type\": object\n}");
    let remote = temporary("remote.schema.json", r#"{"$ref": "https://example.com/x"}"#);
    for (args, stdin, code, says) in [
        (vec!["check", "--schema", "nowhere.json"], "", 2, "error: cannot read nowhere.json: "),
        (vec!["check", "--schema", &person, "nowhere.json"], "", 2, "error: cannot read nowhere.json: "),
        (
            vec!["check", "--schema", &bad_schema],
            "{}",
            2,
            "bad.schema.json: the schema cannot be used: #/type",
        ),
        (vec!["check", "--schema", &no_json], "{}", 2, "no.schema.json:2:10: not JSON"),
        (vec!["check", "--schema", &remote], "{}", 2, "nothing is fetched"),
        (vec!["check"], "", 2, "--schema"),
        (vec!["check", "--schema", "-"], "{}", 2, "standard input can be only one of the inputs"),
        (vec!["check", "--schema", &person], "", 1, "error: standard input: the text is empty\n"),
        (vec!["check", "--schema", &person], "{\"a\" 1}", 1, "standard input:1:6"),
        (vec!["check", "--schema", &person], "{} {}", 1, "trailing characters"),
    ] {
        let ran = formwork(&args, stdin);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(ran.code == code && said.contains(says), "{args:?}: {} {said}", ran.code);
    }
    let ran = formwork(&["check", "--schema", &person], b"\xFF\xFE");
    assert!(ran.code == 1 && ran.stdout.contains("not UTF-8 at byte 0"), "{}", ran.stdout);
    let ran = formwork(&["check", "--schema", &person], "[".repeat(10_000_000));
    assert!(
        ran.code == 1
            && ran.stdout.contains("nested deeper than 127 levels at byte 127")
            && ran.stdout.len() < 2000,
        "{}",
        ran.stdout.len()
    );
}

#[test]
fn the_schema_may_be_standard_input() {
    let document = temporary("seven.json", "7");
    let ran = formwork(&["check", "--schema", "-", &document], r#"{"type": "integer"}"#);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
}

#[test]
fn a_suspicious_schema_is_warned_about() {
    let schema = temporary(
        "odd.schema.json",
        r#"{"requird": ["a"], "properties": {"a": {"type": "integer", "minimum": 2, "maximum": 1}}}"#,
    );
    let ran = formwork(&["check", "--schema", &schema], "{}");
    assert_eq!(ran.code, 0);
    assert!(
        ran.stderr.contains("warning: #/requird: unknown keyword: did you mean `required`?"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("warning: #/properties/a: no value satisfies"), "{}", ran.stderr);
}
