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
    let place = "--> standard input:1:300021\n";
    let places = ran.stdout.matches("standard input").count();
    assert!(ran.stdout.len() < 2000 && ran.stdout.contains("-1"), "{}", ran.stdout);
    assert!(ran.stdout.contains(place) && places == 2, "one place, and the result: {}", ran.stdout);
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
    assert_eq!(answers[0], json!({"id": "a", "valid": true, "violations": [], "total": 0}));
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
        (vec!["check", "--schema", "-"], "{}", 2, "standard input can be used for one input only"),
        (vec!["check", "--schema", &person], "", 1, "error: standard input: the text is empty\n"),
        (vec!["check", "--schema", &person], "{\"a\" 1}", 1, "standard input:1:6"),
        (vec!["check", "--schema", &person], "{} {}", 1, "trailing characters"),
    ] {
        let ran = formwork(&args, stdin);
        let printed = format!("{}{}", ran.stdout, ran.stderr);
        assert!(ran.code == code && printed.contains(says), "{args:?}: {} {printed}", ran.code);
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

/// A byte order mark at the start of a file is no part of its text, for every command and option that names a file.
#[test]
fn a_byte_order_mark_is_no_part_of_a_file() {
    let marked = |name: &str, text: &str| temporary(name, format!("\u{feff}{text}"));
    let schema =
        marked("marked.schema.json", &std::fs::read_to_string(example("person.schema.json")).unwrap());
    let answer = r#"{"name": "Maria", "age": 34, "city": "Oslo"}"#;
    let (document, letter) = (marked("marked.json", answer), marked("marked.txt", "Maria, 34, in Oslo"));
    let rules = marked("marked.rules.json", r#"[{"rule": "grounded", "target": "$.name"}]"#);
    let server = super::config::chat(&[answer; 2]);
    let config = marked("marked.toml", &super::config::of(&server));
    for args in [
        vec!["check", "-s", &schema, &document],
        vec!["check", "-s", &schema, "--rules", &rules, "--source", &letter, &document],
        vec!["lower", "-d", "openai", &schema],
        vec!["read", "--level", "strict", "-s", &schema, &document],
        vec!["evidence", "--json", "--schema", &schema, "--input", &letter, &document],
        vec!["extract", "--json", "--config", &config, "-s", &schema, "--file", &letter],
        vec!["extract", "--json", "--config", &config, "--contract", &schema, "--file", &letter],
    ] {
        let ran = formwork(&args, "");
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}: {}", ran.stdout);
        if args.contains(&"--json") {
            assert_eq!(ran.rows()[0]["evidence"][0]["spans"][0]["start"], 0, "{args:?}: {}", ran.stdout);
        }
    }
    for request in server.received() {
        let body = String::from_utf8(request.body).unwrap();
        assert!(!body.contains('\u{feff}') && !body.contains("\\ufeff"), "{body}");
    }
}

/// Of a repeated name, the last value counts, and a warning says so, wherever a file or a row is read.
#[test]
fn a_repeated_name_is_a_warning() {
    let document = temporary("repeated.json", "{\"name\": \"A\",\n \"na\\u001bme\": 1, \"na\\u001bme\": 2}");
    let schema = temporary("repeated.schema.json", r#"{"type": "object", "type": "object"}"#);
    let says = r#"the name "na\u001bme" in line 2, column 19 is repeated: the last one counts"#;
    let any = temporary("any.schema.json", r#"{"type": "object"}"#);
    let ran = formwork(&["check", "--json", "-s", &any, &document], "");
    assert_eq!(
        ran.rows()[0]["warnings"],
        json!([{"kind": "duplicate_key", "message": says}]),
        "{}",
        ran.stdout
    );
    let of_row = r#"the name "a" in line 1, column"#;
    for (args, stdin, says) in [
        (vec!["check", "-s", &any, &document], "", says),
        (
            vec!["check", "-s", &schema, "-"],
            "{}",
            r#"repeated.schema.json: duplicate_key: the name "type" in line 1"#,
        ),
        (vec!["check", "-s", &any, "--jsonl"], r#"{"data": {"a": 1, "a": 2}}"#, of_row),
        (vec!["evidence", "--input", &document, "-"], r#"{"a": 1, "a": 2}"#, of_row),
        (vec!["eval", "--answers", &document, "-"], r#"{"id": 1, "expected": {"a": 1, "a": 2}}"#, of_row),
    ] {
        let ran = formwork(&args, stdin);
        assert_eq!(ran.stderr.matches(says).count(), 1, "{args:?}: {}", ran.stderr);
    }
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

#[test]
fn the_number_of_violations_is_that_of_all() {
    let schema = temporary("numbers.schema.json", r#"{"items": {"type": "integer"}}"#);
    for wrong in [0_usize, 1, 511, 512, 513, 600, 5_000] {
        let document = json!(vec!["x"; wrong]).to_string();
        let check = |more: &[&str]| formwork(&[&["check", "--schema", &schema], more].concat(), &document);
        let row = |more: &[&str]| check(&[more, &["--json"]].concat()).rows().remove(0);
        let (some, all) = (row(&[]), row(&["--all"]));
        let count = |row: &Value| row["violations"].as_array().unwrap().len();
        assert_eq!((count(&some), count(&all)), (wrong.min(512), wrong));
        assert_eq!((&some["total"], &all["total"]), (&json!(wrong), &json!(wrong)));
        let hidden = wrong.saturating_sub(512);
        assert_eq!(some.get("not_shown"), (hidden > 0).then(|| json!(hidden)).as_ref());
        assert!(all.get("not_shown").is_none());
        for row in [&some, &all] {
            assert_eq!(against_schema("check-output.json", row), Vec::<String>::new());
        }
        let last = check(&[]).stdout.lines().last().unwrap().to_owned();
        let says = format!("{wrong} violations ({hidden} not shown: --all shows all)");
        assert_eq!(last.ends_with(&says), hidden > 0, "{last}");
        assert!(!check(&["--all"]).stdout.contains("not shown"));
        let jsonl = json!({"data": vec!["x"; wrong]}).to_string();
        let ran = formwork(&["check", "--schema", &schema, "--jsonl"], jsonl);
        assert_eq!(ran.rows()[0]["total"], json!(wrong));
    }
}

const INVOICE: &str = r##"{
  "type": "object",
  "properties": {
    "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
    "total": {"type": "number"},
    "note": {"type": "string"}
  },
  "required": ["lines", "total"],
  "$defs": {"line": {"type": "object", "properties": {"net": {"type": "number"}, "total": {"type": "number"}}}}
}"##;

fn invoice(rules: &Value) -> String {
    let mut schema: Value = serde_json::from_str(INVOICE).unwrap();
    schema["x-formwork-rules"] = rules.clone();
    schema.to_string()
}

#[test]
fn rules_of_a_schema_and_of_a_file_are_checked_alike() {
    let sum = json!([{
        "rule": "weightedSum", "target": "$.total", "terms": [{"path": "$.lines[*].total", "weight": 1}], "tolerance": 0
    }]);
    let each = json!([{"rule": "atMost", "target": "$.lines[*].net", "limit": "$.lines[*].total"}]);
    let plain = temporary("plain-invoice.json", INVOICE);
    for (name, rules) in [("sum", &sum), ("each", &each)] {
        assert_eq!(against_schema("rules.json", rules), Vec::<String>::new());
        let own = temporary(&format!("own-{name}.json"), invoice(rules));
        let file = temporary(&format!("rules-{name}.json"), rules.to_string());
        for (document, wrong) in [
            (json!({"lines": [{"net": 1, "total": 2}, {"net": 2, "total": 3}], "total": 5}), vec![]),
            (
                json!({"lines": [{"net": 1, "total": 2}, {"net": 4, "total": 3}], "total": 5}),
                vec!["$.lines[1].net"],
            ),
            (json!({"lines": [{"net": 1, "total": 2}], "total": 5}), vec!["$.total"]),
        ] {
            let wrong: Vec<_> =
                wrong.into_iter().filter(|path| (name == "sum") == (*path == "$.total")).collect();
            let document = document.to_string();
            let sources: [&[&str]; 2] = [&["--schema", &own], &["--schema", &plain, "--rules", &file]];
            for given in sources {
                let ran = formwork(&[&["check", "--json"], given].concat(), &document);
                let row = ran.rows().remove(0);
                let found: Vec<_> = row["violations"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|v| v["path"].as_str().unwrap().to_owned())
                    .collect();
                assert_eq!(
                    (ran.code, found),
                    (i32::from(!wrong.is_empty()), wrong.clone().into_iter().map(str::to_owned).collect()),
                    "{given:?} {document}"
                );
            }
            let row = json!({"schema": serde_json::from_str::<Value>(&invoice(rules)).unwrap(), "data": serde_json::from_str::<Value>(&document).unwrap()});
            let ran = formwork(&["check", "--jsonl"], row.to_string());
            assert_eq!(ran.rows()[0]["valid"], json!(wrong.is_empty()));
        }
    }
}

#[test]
fn a_rule_that_can_never_run_is_an_error_that_names_the_nearest_path() {
    for (path, near) in [
        ("$.totl", "did you mean `$.total`?"),
        ("$.lines[*].totl", "did you mean `$.lines[*].total`?"),
        ("$.lines.total", "did you mean `$.lines[*].total`?"),
        ("$.net", "did you mean `$.lines[*].net`?"),
        ("$.quantity", "there are `$.lines`, `$.total`, `$.note`"),
        ("$.total.net", "did you mean `$.lines[*].net`?"),
    ] {
        let rules = json!([{"rule": "atMost", "target": "$.total", "limit": path}]);
        let says = format!("the rule `atMost` can never run: the schema has no `{path}`");
        let schema = temporary("never.json", invoice(&rules));
        for command in [vec!["check", "--schema", &schema], vec!["extract", "--schema", &schema, "a text"]] {
            let ran = formwork(&command, "{}");
            assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
            assert!(ran.stderr.contains(&says) && ran.stderr.contains(near), "{}", ran.stderr);
        }
        let row = json!({"schema": serde_json::from_str::<Value>(&invoice(&rules)).unwrap(), "data": {}});
        let ran = formwork(&["check", "--jsonl"], row.to_string());
        assert!(ran.code == 1 && ran.stdout.contains(near), "{}", ran.stdout);
    }
    for (rules, says) in [
        (
            json!([{"rule": "atMots", "target": "$.total", "limit": "$.note"}]),
            "#/x-formwork-rules/0: unknown variant",
        ),
        (
            json!([{"rule": "atMost", "target": "total", "limit": "$.note"}]),
            "#/x-formwork-rules/0: not a JSON path",
        ),
        (json!({}), "#/x-formwork-rules: expected an array of rules"),
    ] {
        let schema = temporary("unread.json", invoice(&rules));
        let ran = formwork(&["check", "--schema", &schema], "{}");
        assert!(ran.code == 2 && ran.stderr.contains(says), "{}", ran.stderr);
    }
}

#[test]
fn errors_about_rules_name_the_file_with_the_rule_and_its_place() {
    let good = json!({"rule": "atMost", "target": "$.total", "limit": "$.total"});
    let plain = temporary("placed-plain.json", invoice(&json!([])));
    for (bad, says) in [
        (
            json!({"rule": "atMost", "target": "$.total", "limit": "$.totl"}),
            "the rule `atMost` can never run",
        ),
        (json!({"rule": "atMots", "target": "$.total", "limit": "$.note"}), "unknown variant"),
        (json!({"rule": "quoted", "target": "$.note"}), "the rule `grounded` needs the source text"),
    ] {
        let rules = json!([good, bad]);
        let file = temporary("placed.rules.json", rules.to_string());
        let own = temporary("placed-own.json", invoice(&rules));
        for command in [&["check"][..], &["extract", "a text"]] {
            if bad["rule"] == "quoted" && command[0] == "extract" {
                continue; // the text is there
            }
            let ran = formwork(&[command, &["--schema", &plain, "--rules", &file]].concat(), "{}");
            let starts = format!("error: {file}: #/1: {says}");
            assert!(ran.code == 2 && ran.stderr.starts_with(&starts), "{starts}\n{}", ran.stderr);
            let ran = formwork(&[command, &["--schema", &own]].concat(), "{}");
            let has = format!("#/x-formwork-rules/1: {says}");
            let is_named = ran.stderr.starts_with(&format!("error: {own}: ")) && ran.stderr.contains(&has);
            assert!(ran.code == 2 && is_named, "{has}\n{}", ran.stderr);
        }
    }
}

#[test]
fn quoted_rules_need_the_text() {
    let schema = temporary("quoted.json", invoice(&json!([{"rule": "quoted", "target": "$.note"}])));
    let document = r#"{"lines": [], "total": 0, "note": "paid"}"#;
    let ran = formwork(&["check", "--schema", &schema], document);
    assert!(ran.code == 2 && ran.stderr.contains("--source"), "{}", ran.stderr);
    for (text, code) in [("It was PAID.", 0), ("It was not.", 1)] {
        let source = temporary("quoted.txt", text);
        assert_eq!(formwork(&["check", "--schema", &schema, "--source", &source], document).code, code);
    }
}

#[test]
fn a_schema_that_says_nothing_is_a_warning_and_a_wrapped_one_is_unwrapped() {
    for (name, schema) in [
        ("nothing", json!({})),
        ("anything", json!(true)),
        ("title", json!({"title": "x"})),
        ("cycle", json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}})),
    ] {
        let schema = temporary(&format!("{name}.says.json"), schema.to_string());
        let ran = formwork(&["check", "--schema", &schema], "{}");
        assert!(ran.code == 0 && ran.stderr.contains("warning: #"), "{}", ran.stderr);
        assert!(ran.stderr.contains(": every value satisfies th"), "{}", ran.stderr);
    }
    let inner = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
    let tool = json!({"name": "save", "description": "Saves.", "parameters": inner});
    let schema = temporary("tool.says.json", tool.to_string());
    let ran = formwork(&["check", "--schema", &schema], r#"{"totally": "wrong"}"#);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stderr.contains("unwrapped: the schema is the member #/parameters of"), "{}", ran.stderr);
    let row = json!({"id": 7, "schema": tool, "data": {"totally": "wrong"}}).to_string();
    let ran = formwork(&["check", "--jsonl"], row);
    assert_eq!((ran.code, &ran.rows()[0]["valid"]), (1, &json!(false)));
    assert!(ran.stderr.contains("warning: row 7: unwrapped: "), "{}", ran.stderr);
}
