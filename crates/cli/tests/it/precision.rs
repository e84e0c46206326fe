//! Every command keeps an integer digit by digit or refuses it, and warns of a fraction that it rounds.

use serde_json::{Value, json};

use super::batch::{batch, lines, out};
use super::config::{chat, of};
use super::{Ran, formwork, refused, temporary};

const FORTY: &str = "1234567890123456789012345678901234567890";

/// The first digits of a number of forty digits, of different lengths around the limits of integers and doubles.
fn integers() -> impl Iterator<Item = &'static str> {
    [1, 15, 16, 17, 18, 19, 20, 21, 30, 40].into_iter().map(|length| &FORTY[..length])
}

/// Documents with a number at `#`, and the path of the number.
const DOCUMENTS: [(&str, &str); 4] = [
    ("#", "$"),
    (r#"{"a": #}"#, "$.a"),
    (r#"[0.5, [#]]"#, "$[1][0]"),
    (r#"{"m": {"x y": #}}"#, "$.m['x y']"),
];

/// Checks that the number was printed with its digits, or that the command failed and named its path.
#[track_caller]
fn kept_or_refused(ran: &Ran, number: &str, path: &str) {
    let fits = number.parse::<u64>().is_ok();
    assert_eq!(ran.code != 0, !fits, "{number}: {} {}", ran.stdout, ran.stderr);
    let printed = format!("{}{}", ran.stdout, ran.stderr);
    let says = if fits { number } else { path };
    assert!(printed.contains(says), "{number}: {printed}");
    assert!(!ran.stdout.contains("e+"), "{number}: {printed}");
}

#[test]
fn integers_of_documents_are_printed_digit_by_digit_or_named() {
    let any = temporary("precision-any.schema.json", r#"{"type": ["object", "array", "number"]}"#);
    for number in integers() {
        for (document, path) in DOCUMENTS {
            let document = document.replace('#', number);
            kept_or_refused(&formwork(&["read"], &document), number, path);
            kept_or_refused(&formwork(&["read"], format!("```json\n{document}\n```")), number, path);
            let checked = formwork(&["check", "--schema", &any, "--json"], &document);
            let row = &checked.rows()[0];
            let fits = number.parse::<u64>().is_ok();
            assert_eq!((checked.code == 0, row["valid"] == true), (fits, fits), "{row}");
            if !fits {
                let violation = &row["violations"][0];
                assert_eq!(
                    (&violation["rule"], &violation["path"], &violation["found"]),
                    (&json!("precision"), &json!(path), &json!(number))
                );
            }
        }
    }
    let ran = formwork(&["check", "--schema", &any], format!("{{\n  \"a\": {FORTY}\n}}"));
    assert_eq!(ran.code, 1);
    for says in [
        "Number not exact at $.a: expected an integer from -9223372036854775808 to 18446744073709551615, without fraction and exponent",
        ":2:8",
        "1 violation",
    ] {
        assert!(ran.stdout.contains(says), "{}", ran.stdout);
    }
}

#[test]
fn integers_of_answers_are_printed_digit_by_digit_or_named() {
    let schema = temporary(
        "precision-answer.schema.json",
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}).to_string(),
    );
    for number in integers() {
        let server = chat(&[&format!("{{\"n\": {number}}}")]);
        let config = temporary(&format!("precision-{number}.toml"), of(&server));
        let args = ["extract", "--config", &config, "--schema", &schema, "--max-attempts", "1", "a number"];
        kept_or_refused(&formwork(&args, ""), number, "$.n");
    }
}

#[test]
fn integers_of_schemas_and_rows_are_kept_or_named() {
    for number in integers() {
        let schema = format!(
            r#"{{"type": "object", "properties": {{"n": {{"const": {number}}}}}, "required": ["n"]}}"#
        );
        let file = temporary(&format!("precision-{number}.schema.json"), &schema);
        let place = "$.properties.n.const";
        kept_or_refused(&formwork(&["lower", "--dialect", "json-object", &file], ""), number, place);
        let row = |more: &str| format!("{{\"id\": {number}, {more}}}\n");
        let rows = [
            (&["read", "--jsonl"][..], row(r#""input": "{}""#), "$.id"),
            (&["check", "--jsonl"], row(r#""data": {}, "schema": {"type": "object"}"#), "$.id"),
            (&["lower", "--jsonl", "--dialect", "openai"], row(r#""schema": {"type": "object"}"#), "$.id"),
        ];
        for (command, rows, path) in rows {
            let ran = formwork(command, &rows);
            kept_or_refused(&ran, number, path);
            let id = serde_json::from_str::<Value>(number).unwrap();
            let expected = if number.parse::<u64>().is_ok() { id } else { Value::Null };
            assert_eq!(ran.rows()[0]["id"], expected, "{}", ran.stdout);
        }
    }
    let inline = format!(r#"{{"const": {FORTY}}}"#);
    refused(
        &formwork(&["extract", "--schema", &inline, "x"], ""),
        2,
        "--schema:1:11: $.const: the integer 1234567",
    );
    let file = temporary("precision-bound.schema.json", format!("{{\n\"maximum\": {FORTY}}}"));
    for command in [&["read", "--schema"][..], &["check", "--schema"], &["extract", "x", "--schema"]] {
        let ran = formwork(&[command, &[&file]].concat(), "1");
        refused(&ran, 2, "precision-bound.schema.json:2:12: $.maximum: the integer 1234567");
    }
}

#[test]
fn a_rounded_fraction_is_a_warning_with_its_path_and_both_numbers() {
    let (long, kept) = ("0.1234567890123456789", "0.12345678901234568");
    let document = format!("{{\"a\": {long}, \"b\": 12.50}}");
    let warning = format!("rounded at $.a: the number {long} was rounded to {kept}");
    let ran = formwork(&["read"], &document);
    assert_eq!((ran.code, ran.stderr), (0, format!("warning: standard input: {warning}\n")));
    assert_eq!(ran.stdout, format!("{{\n  \"a\": {kept},\n  \"b\": 12.5\n}}\n"));
    let any = temporary("precision-fraction.schema.json", r#"{"type": "object"}"#);
    let ran = formwork(&["check", "--schema", &any], &document);
    assert_eq!((ran.code, ran.stderr), (0, format!("warning: standard input: {warning}\n")));
    for command in [&["read", "--json"][..], &["check", "--json", "--schema", &any]] {
        let ran = formwork(command, &document);
        assert_eq!(ran.rows()[0]["warnings"][0]["kind"], "rounded", "{}", ran.stdout);
    }
    let rows = format!("{{\"id\": 1, \"data\": {document}, \"schema\": {{\"type\": \"object\"}}}}\n");
    let ran = formwork(&["check", "--jsonl"], rows);
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.contains("standard input:1: rounded at $.data.a: "), "{}", ran.stderr);
    let server = chat(&[&document]);
    let config = temporary("precision-fraction.toml", of(&server));
    let ran = formwork(&["extract", "--config", &config, "--schema", &any, "a text"], "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains(kept) && ran.stderr.contains(&warning), "{}", ran.stderr);
}

#[test]
fn another_document_with_such_an_integer_is_left_out_with_a_warning() {
    let text = format!("```json\n{{\"a\": 1}}\n```\nand [{FORTY}] and [3]");
    let ran = formwork(&["read", "--json"], &text);
    let row = &ran.rows()[0];
    assert_eq!((ran.code, &row["value"], &row["others"]), (0, &json!({"a": 1}), &json!([[3]])));
    assert!(
        row["warnings"][0]["message"]
            .as_str()
            .unwrap()
            .contains("another document was left out: $[0]: the integer")
    );
    let ran = formwork(&["read", "--all"], &text);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "{\"a\":1}\n[3]\n"));
    assert!(ran.stderr.contains("another document was left out"), "{}", ran.stderr);
}

#[test]
fn a_number_beyond_the_range_is_refused_at_once() {
    for number in ["1e400", "1e999999999", "-1e99999999999999999999"] {
        let document = format!("{{\"a\": {number}}}");
        for (text, path) in [(document.as_str(), "$.a"), (number, "$")] {
            let ran = formwork(&["read"], text);
            assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
            let says =
                format!("Number not exact at {path}: expected a number of at most 1.7976931348623157e308");
            assert!(ran.stderr.contains(&says), "{}", ran.stderr);
        }
        let ran = formwork(&["lower", "--dialect", "openai"], &document);
        refused(&ran, 2, "number out of range");
    }
}

#[test]
fn a_batch_refuses_the_ids_and_answers_that_would_change() {
    let server = chat(&["{\"n\": 9007199254740993}", &format!("{{\"n\": {FORTY}}}")]);
    let schema = temporary(
        "precision-batch.schema.json",
        r#"{"type": "object", "properties": {"n": {"type": "integer"}}}"#,
    );
    let rows: String = ["9007199254740993", FORTY, "2"]
        .iter()
        .map(|id| format!("{{\"id\": {id}, \"input\": \"n {id}\"}}\n"))
        .collect();
    let (rows, out) = (temporary("precision-rows.jsonl", rows), out("precision"));
    let config = temporary("precision-batch.toml", of(&server));
    let more = ["--concurrency", "1", "--config", &config];
    let ran = batch(&[&["run", &rows, "--contract", &schema, "--out", &out][..], &more].concat());
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let results = lines(&out, "part-");
    let failures = lines(&out, "rejected-");
    assert_eq!(results.len(), 1, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(
        (&results[0]["id"], results[0]["value"].to_string().as_str()),
        (&json!(9_007_199_254_740_993_u64), "{\"n\":9007199254740993}")
    );
    let failures = Value::from(failures).to_string();
    assert!(
        failures.contains("$.id: the integer 1234567") && failures.contains("Number not exact at $.n"),
        "{failures}"
    );
}

/// The files that people write beside contracts: the configuration, skills, rubrics and schemas in YAML.
#[test]
fn a_fraction_of_a_yaml_or_toml_file_that_is_rounded_is_a_warning_and_an_integer_an_error() {
    let server = chat(&["[0.1]"]);
    let toml = format!("[defaults]\ntemperature = NUMBER\n{}", of(&server));
    let skill = "name: dice\ndescription: A number.\ntemplate_type: LLM_JSON_GENERATION\nprompt: Roll.\n\
                 output:\n  schema: {type: number, maximum: NUMBER}\n";
    let rubric = "name: r\ncriteria:\n  - {id: kind, description: Kind., schema: {maximum: NUMBER}}\n";
    let long = "0.12345678901234567891";
    for (number, is_long, is_refused) in [
        (long, true, false),
        ("0.5", false, false),
        ("0.7_5", false, false),
        ("123456789012345678901.0", false, true),
    ] {
        let file = |name: &str, text: &str| {
            let name = format!("precision-files-{}.{name}", number.len());
            temporary(&name, text.replace("NUMBER", number))
        };
        let (config, skill, rubric) =
            (file("toml", &toml), file("skill.yaml", skill), file("rubric.yaml", rubric));
        let schema = file("schema.yaml", "type: array\nitems: {type: number, maximum: NUMBER}\n");
        let plain = temporary("precision-files-plain.toml", of(&server));
        let commands = [
            (vec!["extract", "x", "-s", "[number]", "--config", &config], format!("{config}:2:15: ")),
            (vec!["extract", "x", "--config", &plain, "--schema", &schema], schema.clone()),
            (vec!["skill", "check", &skill], skill.clone()),
            (vec!["review", "--rubric", &rubric], rubric.clone()),
        ];
        for (command, place) in commands {
            // Only TOML has `_` in numbers.
            if number.contains('_') && !place.contains("toml") {
                continue;
            }
            let ran = formwork(&command, "0.1");
            let says = ran.stderr.contains("was rounded to") && ran.stderr.contains(long);
            assert_eq!((ran.code, says), (2 * i32::from(is_refused), is_long), "{command:?}: {}", ran.stderr);
            assert!(!(is_long || is_refused) || ran.stderr.contains(&place), "{command:?}: {}", ran.stderr);
        }
    }
}

/// The files of a command, the command with their names, and the place that it names for a number that it refuses.
type Reading<'t> = (&'t [(&'t str, &'t str)], &'t str, &'t str);

/// Every other command that reads JSON: a table of its input with a number at `#`, and the place that it names if it refuses it.
#[test]
fn integers_of_every_command_that_reads_json_are_kept_or_named() {
    let server = chat(&["{}"]);
    let plain = temporary("precision-every.toml", of(&server));
    let rubric = "name: r\ncriteria:\n  - {id: kind, description: Kind., schema: {maximum: #}}\n";
    let skill = "name: dice\ndescription: A number.\ntemplate_type: LLM_JSON_GENERATION\nprompt: Roll.\n\
                 output:\n  schema: {type: number, maximum: #}\n";
    let tools = r#"[{"name": "x", "description": "d", "parameters": {"maximum": #}, "command": ["true"]}]"#;
    let bound = r#"{"type": "object", "properties": {"n": {"maximum": #}}}"#;
    let (answer, of_id) = (r#"{"id": "a", "value": {"n": 0}}"#, r#"{"id": #, "value": {"n": 0}}"#);
    let table: [Reading; 17] = [
        (&[("a.json", r#"{"n": #}"#), ("a.txt", "n: #")], "evidence --input a.txt a.json", "$.n"),
        (
            &[("b.json", bound), ("b.txt", "n")],
            "evidence --input b.txt --schema b.json -",
            "$.properties.n.maximum",
        ),
        (&[("c.jsonl", r#"{"id": #, "input": "x", "value": {}}"#)], "evidence --jsonl c.jsonl", "$.id"),
        (
            &[("d.jsonl", r#"{"id": 1, "input": "n #", "value": {"n": #}}"#)],
            "evidence --jsonl d.jsonl",
            "$.value.n",
        ),
        (
            &[("e.jsonl", r#"{"id": "a", "expected": {"n": #}}"#), ("ea.jsonl", answer)],
            "eval e.jsonl --json --answers ea.jsonl",
            "$.expected.n",
        ),
        (
            &[("f.jsonl", r#"{"id": #, "expected": {"n": 1}}"#), ("fa.jsonl", of_id)],
            "eval f.jsonl --json --answers fa.jsonl",
            "$.id",
        ),
        (
            &[("g.csv", "id,expected.n\na,#"), ("ga.jsonl", answer)],
            "eval g.csv --json --answers ga.jsonl",
            "`expected.n`",
        ),
        (
            &[("h.csv", "id,expected\na,[#]"), ("ha.jsonl", answer)],
            "eval h.csv --json --answers ha.jsonl",
            "$[0]",
        ),
        (
            &[("i.jsonl", r#"{"id": 1, "expected": 1}"#), ("ia.jsonl", r#"{"id": 1, "value": [#]}"#)],
            "eval i.jsonl --json --answers ia.jsonl",
            "$.value[0]",
        ),
        (&[("j.json", bound)], "shape from-schema j.json", "$.properties.n.maximum"),
        (
            &[("k.shape", r#"{"n": int}"#), ("k.json", r#"{"n": #}"#)],
            "shape check k.shape --document k.json",
            "$.n",
        ),
        (&[("l.yaml", rubric)], "review --rubric l.yaml", "l.yaml:3:"),
        (
            &[
                ("m.yaml", "name: r\ncriteria:\n  - {id: kind, description: Kind., schema: {}}\n"),
                ("m.json", "[#]"),
            ],
            "review --rubric m.yaml m.json",
            "$[0]",
        ),
        (&[("n.yaml", skill)], "skill check n.yaml", "n.yaml:"),
        (&[("o.json", tools)], "chat --allow-tools --tools o.json --config CONFIG hi", "o.json:1:"),
        (
            &[("p.toml", "[providers.a]\nkind = \"ollama\"\nmodel = \"m\"\nextra.n = #\n")],
            "config show --config p.toml",
            "p.toml:4:",
        ),
        (&[("q.json", r#"{"wallets": #}"#)], "oracle score q.json --config CONFIG", "q.json:1:"),
    ];
    for number in integers() {
        for (files, command, place) in table {
            let folder = super::folder().join(format!("precision-every-{}", number.len()));
            std::fs::create_dir_all(&folder).unwrap();
            for (name, text) in files {
                std::fs::write(folder.join(name), text.replace('#', number)).unwrap();
            }
            let command: Vec<String> = command
                .split(' ')
                .map(|word| match word {
                    "CONFIG" => plain.clone(),
                    word if files.iter().any(|(name, _)| *name == word) => {
                        folder.join(word).display().to_string()
                    }
                    word => word.to_owned(),
                })
                .collect();
            let ran = formwork(&command.iter().map(String::as_str).collect::<Vec<_>>(), "{}");
            let fits = number.parse::<u64>().is_ok();
            let printed = format!("{}{}", ran.stdout, ran.stderr);
            assert!(
                fits || ran.code != 0 && printed.contains(place),
                "{command:?} {number}: {} {printed}",
                ran.code
            );
            assert!(!ran.stdout.contains("e+"), "{command:?} {number}: {printed}");
            let is_about = |ran: &Ran| {
                ran.stderr.contains("cannot be kept exactly") || ran.stderr.contains("out of range")
            };
            assert!(!fits || !is_about(&ran), "{command:?} {number}: {printed}");
        }
    }
}

/// Integers that differ in the last digit are different values, in both profiles and as text.
#[test]
fn an_evaluation_tells_long_integers_apart() {
    for (expected, answer, score) in [
        ("1234567890123456789", "1234567890123456789", 1.0),
        ("1234567890123456789", "1234567890123456788", 0.0),
        ("12345678901234567890", "12345678901234567891", 0.0),
        ("\"1234567890123456789\"", "1234567890123456788", 0.0),
        ("9007199254740993", "9007199254740992", 0.0),
    ] {
        for profile in ["default", "docubench"] {
            let gold = temporary(
                "precision-apart.jsonl",
                format!("{{\"id\": 1, \"expected\": {{\"n\": {expected}}}}}"),
            );
            let answers = temporary(
                "precision-apart-a.jsonl",
                format!("{{\"id\": 1, \"value\": {{\"n\": {answer}}}}}"),
            );
            let schema = r#"{"properties": {"n": {"x-formwork-compare": "number"}}}"#;
            let schema = temporary("precision-apart.schema.json", schema);
            for more in [&[][..], &["--schema", &schema]] {
                let ran = formwork(
                    &[&["eval", &gold, "--answers", &answers, "--json", "--profile", profile][..], more]
                        .concat(),
                    "",
                );
                assert_eq!(ran.rows()[0]["score"], score, "{expected} {answer} {profile}: {}", ran.stdout);
            }
        }
    }
}

/// The ledger keeps the text of an answer, and what it says of an answer that was refused names the number.
#[test]
fn the_ledger_keeps_integers_digit_by_digit() {
    for number in integers() {
        let server = chat(&[&format!("{{\"n\": {number}}}")]);
        let config = temporary(&format!("precision-ledger-{number}.toml"), of(&server));
        let ledger = super::folder().join(format!("precision-{number}.db"));
        let _ = std::fs::remove_file(&ledger);
        let ledger = ledger.to_str().unwrap();
        let args = ["extract", "--config", &config, "-s", "{\"n\": int}", "--max-attempts", "1", "a number"];
        let ran = formwork(&[&args[..], &["--ledger", ledger, "--ledger-bodies"]].concat(), "");
        kept_or_refused(&ran, number, "$.n");
        for command in [&["export"][..], &["show", "--json"], &["show"]] {
            let listed = formwork(&["runs", "list", "--json", "--ledger", ledger], "");
            let id = listed.rows()[0]["id"].as_str().unwrap().to_owned();
            let id = if command[0] == "show" { vec![id.as_str()] } else { Vec::new() };
            let ran = formwork(&[&["runs"], command, &id, &["--ledger", ledger]].concat(), "");
            assert!(
                ran.code == 0 && ran.stdout.contains(number),
                "{command:?} {number}: {}{}",
                ran.stdout,
                ran.stderr
            );
            assert!(!ran.stdout.contains("e+"), "{command:?} {number}: {}", ran.stdout);
        }
    }
}

#[test]
fn a_fraction_of_a_contract_that_is_rounded_is_a_warning_and_an_integer_an_error() {
    let rows = temporary("precision-contract.jsonl", "");
    let json = r#"{"type": "number", "maximum": NUMBER}"#;
    let yaml = "schema:\n  type: number\n  maximum: NUMBER\n";
    for (name, text, path) in [("json", json, "$.maximum"), ("yaml", yaml, "$.schema.maximum")] {
        for (number, code, says) in [
            (
                "0.12345678901234567891",
                0,
                format!("{path}: the number 0.12345678901234567891 was rounded to"),
            ),
            ("0.5", 0, String::new()),
            ("123456789012345678901", 2, "123456789012345678901".to_owned()),
        ] {
            let contract = temporary(&format!("precision-contract.{name}"), text.replace("NUMBER", number));
            let out = out(&format!("precision-{name}-{code}-{}", says.len()));
            let ran = batch(&["run", &rows, "--contract", &contract, "--out", &out]);
            assert_eq!(ran.code, code, "{name} {number}: {}", ran.stderr);
            assert!(ran.stderr.contains(&says), "{name} {number}: {}", ran.stderr);
            assert_eq!(ran.stderr.contains("was rounded"), says.contains("was rounded"), "{}", ran.stderr);
        }
    }
}
