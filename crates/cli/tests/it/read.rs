use serde_json::json;

use crate::{against_schema, example, formwork, refused, temporary};

#[test]
fn the_document_is_printed_and_the_edits_on_request() {
    let text = "Sure:\n```json\n{\"age\": 34,}\n```\n";
    let ran = formwork(&["read"], text);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "{\n  \"age\": 34\n}\n", ""));
    let ran = formwork(&["read", "-v"], text);
    assert!(ran.stderr.contains("standard input: trailing comma at bytes 24..25"), "{}", ran.stderr);
    let ran = formwork(&["read", "--json"], text);
    let row = ran.rows().remove(0);
    assert_eq!((&row["ok"], &row["value"]), (&json!(true), &json!({"age": 34})));
    assert_eq!(
        row["edits"][2],
        json!({"kind": "trailing_comma", "span": {"start": 24, "end": 25}, "with": ""})
    );
}

#[test]
fn the_level_decides() {
    for (level, code) in [("strict", 1), ("clean", 1), ("lenient", 0)] {
        let ran = formwork(&["read", "--level", level], "{'age': 34}");
        assert_eq!(ran.code, code, "{}", ran.stderr);
    }
    let ran = formwork(&["read", "--level", "clean"], "{'age': 34}");
    assert!(
        ran.stderr.starts_with(
            "error: standard input:1:2: not JSON at byte 1: other quotes around a string (read at level lenient)"
        ),
        "{}",
        ran.stderr
    );
}

#[test]
fn the_schema_chooses_among_candidates() {
    let schema = example("person.schema.json");
    let text = r#"Draft: {"name": "A", "age": 1, "note": "much longer"}. Final: {"name": "B", "age": 2, "city": "C"}."#;
    let ran = formwork(&["read", "--json", "--schema", &schema], text);
    assert_eq!(ran.rows()[0]["value"]["name"], "B");
    let ran = formwork(&["read", "--schema", &schema], r#"{"name": "B"}"#);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.contains("Missing required field at path $.age") && ran.stdout.is_empty(),
        "{}",
        ran.stderr
    );
}

/// The text that a document was made of is not known here.
#[test]
fn rules_of_a_schema_reject_no_document() {
    let rules = r#""x-formwork-rules": [{"rule": "grounded", "target": "$.name"}]"#;
    for more in ["", r#", "x-formwork-coerce": {"$": "fix"}"#] {
        let text =
            format!(r#"{{"type": "object", "properties": {{"name": {{"type": "string"}}}}, {rules}{more}}}"#);
        let schema = temporary("ruled.schema.json", text);
        let ran = formwork(&["read", "--schema", &schema], r#"{"name": "B"}"#);
        assert_eq!((ran.code, ran.stdout.contains("B")), (0, true), "{}", ran.stderr);
    }
}

/// The total counts each violation, also those beyond the 512 that are listed.
#[test]
fn the_number_of_all_violations_is_true() {
    let schema = temporary("texts.schema.json", r#"{"items": {"type": "string"}}"#);
    let loose = temporary(
        "loose.schema.json",
        r#"{"items": {"type": "string"}, "x-formwork-coerce": {"$": "strict"}}"#,
    );
    let open = temporary("open.schema.json", r#"{"type": "array"}"#);
    let unkept = |count: usize| format!("[{}]", vec!["123456789012345678901"; count].join(","));
    for (schema, text, total) in [
        (&schema, json!([1]).to_string(), 1),
        (&schema, json!(vec![1; 512]).to_string(), 512),
        (&schema, json!(vec![1; 2_000]).to_string(), 2_000),
        (&loose, json!(vec![1; 2_000]).to_string(), 2_000),
        (&open, unkept(700), 700),
        (&schema, unkept(300), 600),
    ] {
        let ran = formwork(&["read", "--json", "--schema", schema], &text);
        let row = ran.rows().remove(0);
        assert_eq!(against_schema("read-output.json", &row), Vec::<String>::new());
        let (error, listed) = (&row["error"], total.min(512));
        assert_eq!((&error["total"], error["violations"].as_array().unwrap().len()), (&json!(total), listed));
        let more = format!("(and {} more)", total - 1);
        assert_eq!(error["message"].as_str().unwrap().ends_with(&more), total > 1, "{}", error["message"]);
        let ran = formwork(&["read", "--schema", schema], &text);
        let rest = format!("error: standard input: and {} more\n", total - listed);
        assert_eq!(ran.stderr.ends_with(&rest), total > listed, "{text:.60}");
        let checked = formwork(&["check", "--json", "--schema", schema, "-"], &text).rows().remove(0);
        let shown = checked["violations"].as_array().unwrap().len() as u64;
        assert_eq!(checked["total"], json!(total));
        assert_eq!(checked["not_shown"].as_u64().unwrap_or(0) + shown, total as u64);
    }
}

#[test]
fn other_documents_are_named_and_printed_on_request() {
    let schema = example("person.schema.json");
    let one = r#"{"name": "A", "age": 1, "city": "C"}"#;
    let two = r#"{"name": "B", "age": 2, "city": "C"}"#;
    for (text, args, value, others) in [
        (format!("As in [1]: {one}"), &[][..], one, vec!["[1]"]),
        (format!("{one} or {two}."), &["--schema", &schema][..], two, vec![one]),
        (format!("{two} or {one}."), &["--schema", &schema][..], one, vec![two]),
        (
            format!("[1] {{\"name\": 5}} {one} [2] {{}}"),
            &["--schema", &schema][..],
            one,
            vec!["[1]", r#"{"name": 5}"#, "[2]", "{}"],
        ),
        (format!("{one}\n{two}\n"), &["--schema", &schema][..], two, vec![one]),
        (one.to_string(), &[][..], one, vec![]),
    ] {
        let (value, others): (serde_json::Value, Vec<serde_json::Value>) = (
            serde_json::from_str(value).unwrap(),
            others.iter().map(|text| serde_json::from_str(text).unwrap()).collect(),
        );
        let ran = formwork(&[&["read"], args].concat(), &text);
        assert_eq!((ran.code, serde_json::from_str(&ran.stdout).ok()), (0, Some(value.clone())), "{text}");
        let warning =
            ran.stderr.contains(&format!("{} other document", others.len())) && ran.stderr.contains("--all");
        assert_eq!(
            (warning, ran.stderr.is_empty()),
            (!others.is_empty(), others.is_empty()),
            "{}",
            ran.stderr
        );

        let ran = formwork(&[&["read", "-v"], args].concat(), &text);
        assert_eq!(ran.stderr.matches("another document at bytes").count(), others.len(), "{}", ran.stderr);

        let mut row = serde_json::json!({"id": 1, "input": text});
        if !args.is_empty() {
            row["schema"] = serde_json::from_str(&std::fs::read_to_string(&schema).unwrap()).unwrap();
        }
        let rows = formwork(&["read", "--jsonl", "--all"], row.to_string()).rows();
        let json = formwork(&[&["read", "--json"], args].concat(), &text).rows();
        for output in [&rows[0], &json[0]] {
            assert_eq!(against_schema("read-output.json", output), Vec::<String>::new(), "{output}");
            assert_eq!(output["value"], value);
            assert_eq!(
                output.get("others").and_then(|others| others.as_array()).cloned().unwrap_or_default(),
                others
            );
            let edits = output["edits"].as_array().unwrap().iter();
            let spans = edits.filter(|edit| edit["kind"] == "other_document").map(|edit| &edit["span"]);
            let named = spans.map(|span| {
                let at = |side: &str| usize::try_from(span[side].as_u64().unwrap()).unwrap();
                serde_json::from_str(&text[at("start")..at("end")]).unwrap()
            });
            assert_eq!(named.collect::<Vec<serde_json::Value>>(), others);
        }

        let ran = formwork(&[&["read", "--all"], args].concat(), &text);
        let mut all = ran.rows();
        assert_eq!((ran.code, all.len(), ran.stderr.as_str()), (0, others.len() + 1, ""));
        let at = all.iter().position(|document| *document == value).unwrap();
        all.remove(at);
        assert_eq!(all, others);
    }
    let ran = formwork(&["read"], format!("{one}\n{two}\n"));
    assert!(ran.stdout.starts_with('[') && ran.stderr.is_empty(), "JSON Lines are one array: {}", ran.stdout);
    let ran = formwork(&["read", "--all"], format!("{one}\n{two}\n"));
    assert_eq!(ran.rows().len(), 2);
    let ran = formwork(&["read", "--all", "--schema", &schema], "[1] {}");
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
}

#[test]
fn the_type_that_the_schema_means_chooses_before_anything_else() {
    let wrong = json!({"a": 5, "b": "x"});
    let right = json!({"a": "x", "b": 1});
    let variants = json!([
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b"]},
        {"type": "object", "properties": {"c": {"type": "string"}}, "required": ["c"]},
    ]);
    let members =
        json!({"properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a", "b"]});
    for schema in [
        json!({"type": "object", "properties": members["properties"], "required": ["a", "b"]}),
        // The schema accepts arrays, although its author surely meant objects.
        members.clone(),
        json!({"$ref": "#/$defs/m", "$defs": {"m": members}}),
        json!({"anyOf": variants}),
    ] {
        for (document, ok) in [(&wrong, false), (&right, true)] {
            for text in [
                format!("As in [1]: {document}"),
                format!("{document} (see [1], [2])"),
                format!("```\n[1]\n```\n{document}"),
            ] {
                let row = json!({"id": 1, "input": text, "schema": schema});
                let output = formwork(&["read", "--jsonl"], row.to_string()).rows().remove(0);
                assert_eq!((&output["value"], &output["ok"]), (document, &json!(ok)), "{schema}: {text}");
            }
        }
    }
}

#[test]
fn rows_are_answered_one_by_one() {
    let rows = [
        json!({"id": 1, "input": "{\"a\": 1}"}).to_string(),
        json!({"id": 2, "input": "I'm sorry."}).to_string(),
        json!({"id": 3, "input": "[1] or [\"x\"]", "schema": {"items": {"type": "string"}}}).to_string(),
        json!({"id": 4, "input": "[1]", "schema": {"items": {"type": "string"}}}).to_string(),
        json!({"id": 5, "input": "[1]", "schema": 7}).to_string(),
    ];
    let ran = formwork(&["read", "--jsonl"], rows.join("\n"));
    let answers = ran.rows();
    assert_eq!((ran.code, answers.len()), (1, 5));
    for answer in &answers {
        assert_eq!(against_schema("read-output.json", answer), Vec::<String>::new(), "{answer}");
    }
    assert_eq!(answers[0], json!({"id": 1, "ok": true, "value": {"a": 1}, "edits": []}));
    assert_eq!(
        answers[1],
        json!({"id": 2, "ok": false, "error": {
            "class": "unreadable", "message": "no JSON object or array in the text", "reason": {"kind": "not_found"},
        }})
    );
    assert_eq!((&answers[2]["ok"], &answers[2]["value"]), (&json!(true), &json!(["x"])));
    assert_eq!((&answers[3]["ok"], &answers[3]["error"]["class"]), (&json!(false), &json!("invalid")));
    assert_eq!(answers[4]["error"]["class"], "schema");
}

#[test]
fn bad_input_is_one_message_and_the_right_exit_code() {
    for (stdin, says) in [
        (b"".to_vec(), "the text is empty"),
        (b"hello".to_vec(), "no JSON object or array in the text"),
        (b"{\n\"a\": \"\xFF\"}".to_vec(), "standard input:2:7: not UTF-8 at byte 8: save the text as UTF-8"),
        ("[".repeat(10_000_000).into_bytes(), "nested deeper than 127 levels"),
        (b"<think>{}".to_vec(), "ends inside its reasoning"),
    ] {
        let ran = formwork(&["read"], stdin);
        assert!(
            ran.code == 1 && ran.stderr.contains(says) && ran.stderr.lines().count() == 1,
            "{says}: {} {}",
            ran.code,
            ran.stderr
        );
    }
    let ran = formwork(&["read", "--level", "strict"], "{\n\"a\" 1}");
    assert!(ran.stderr.starts_with("error: standard input:2:5: not JSON at byte 6"), "{}", ran.stderr);
    let ran = formwork(&["read", "--level", "loose"], "{}");
    assert_eq!(ran.code, 2);
    refused(&formwork(&["read", "--schema", "-"], "{}"), 2, "standard input can be used for one input only");
    let ran = formwork(&["read", "nowhere.txt"], "");
    assert_eq!((ran.code, ran.stderr.starts_with("error: cannot read nowhere.txt: ")), (2, true));
}

#[test]
fn the_progress_of_a_row_names_the_bytes_that_decide() {
    let person = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "nick": {"type": "string"}},
        "required": ["name", "age"],
    });
    let row = |text: &str, schema: &serde_json::Value| json!({"id": 1, "text": text, "schema": schema});
    for (text, schema, complete_at, impossible_at, valid_prefix) in [
        (r#"{"name": "Ada", "age": 36}"#, &person, Some(25), None, 26),
        (r#"Sure: {"name": "Ada", "age": 36}."#, &person, Some(31), None, 32),
        (r#"{"name": "Ada", "age": "36"}"#, &person, None, Some(27), 14),
        (r#"{"name": "Ada"}"#, &person, None, Some(14), 14),
        (r#"{"name": "Ada", "age": 3"#, &person, None, None, 14),
        (r#"{"name": "Ada", "nick": null, "age": 36}"#, &person, Some(39), None, 40),
        ("Sorry.", &person, None, None, 0),
        ("34", &json!({"type": "integer"}), Some(2), None, 2),
        ("34\n", &json!({"type": "integer"}), Some(2), None, 2),
        ("3.4", &json!({"type": "integer"}), None, Some(3), 0),
        ("\"abc\"", &json!({"maxLength": 2}), None, Some(4), 0),
        ("[1, 1", &json!({"uniqueItems": true}), None, None, 2),
        ("[1, 1]", &json!({"uniqueItems": true}), None, Some(5), 5),
    ] {
        let ran = formwork(&["read", "--progress", "--jsonl"], row(text, schema).to_string());
        let expected = json!({
            "id": 1, "complete_at": complete_at, "impossible_at": impossible_at, "valid_prefix": valid_prefix,
        });
        assert_eq!((ran.code, ran.rows()), (0, vec![expected]), "{text}");
    }
    let ran =
        formwork(&["read", "--progress", "--jsonl"], r#"{"id": 2, "input": "[]", "schema": {"type": "x"}}"#);
    assert_eq!((ran.code, &ran.rows()[0]["error"]["class"]), (1, &json!("schema")));
    let levels = [("strict", json!(1)), ("clean", json!(1)), ("lenient", json!(null))];
    for (level, at) in levels {
        let args = ["read", "--progress", "--jsonl", "--level", level];
        assert_eq!(formwork(&args, row("{'a': 1}", &json!(true)).to_string()).rows()[0]["impossible_at"], at);
    }
}
