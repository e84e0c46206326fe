//! Use by programs: results row by row, readers that close the pipe early, and colours (finding D8).

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Command;

use formwork_testkit::server::Server;
use serde_json::{Value, json};

use super::config::{chat, of};
use super::{against_schema, command, example, folder, formwork, run, temporary};

const MARIA: &str = r#"{"name": "Maria Lindqvist", "age": 34, "city": "Lisbon"}"#;

/// A configuration for a server that sends this response forever.
fn config(server: &Server) -> String {
    temporary(&format!("rows-{}.toml", server.address().port()), of(server))
}

fn summary(n: u64) -> Value {
    json!({"summary": {"transactions": n, "active_days": 1, "first": "2025-11-01", "last": "2025-11-01"}, "as_of": "2026-01-01"})
}

#[test]
fn each_row_is_answered_before_the_next_one_is_requested() {
    let server = chat(&[MARIA]);
    let (file, person) = (config(&server), example("person.schema.json"));
    type Row = fn(u64) -> Value;
    let commands: [(&[&str], Row); 5] = [
        (&["read", "--jsonl"], |n| json!({"id": n, "input": "[1]"})),
        (
            &["check", "--jsonl", "--schema", &person],
            |n| json!({"id": n, "data": {"name": "A", "age": 3, "city": "Lisbon"}}),
        ),
        (&["lower", "--dialect", "openai", "--jsonl"], |n| json!({"id": n, "schema": {"type": "object"}})),
        (
            &["extract", "--jsonl", "-s", &person, "--config", &file, "--concurrency", "3"],
            |n| json!({"id": n, "input": "Maria"}),
        ),
        (&["oracle", "batch", "-", "--config", &file, "--concurrency", "3"], summary),
    ];
    for (args, row) in commands {
        let mut child = command(args).spawn().unwrap();
        let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut output = BufReader::new(output);
        for n in 1..=3 {
            writeln!(input, "{}", row(n)).unwrap();
            let mut answer = String::new();
            // If the command waited for more rows, the test would not reach this line.
            output.read_line(&mut answer).unwrap();
            let answer: Value = serde_json::from_str(&answer).unwrap();
            let id = if args[0] == "oracle" { json!(format!("standard input:{n}")) } else { json!(n) };
            assert_eq!(answer["id"], id, "{args:?}: {answer}");
        }
        drop(input);
        assert!(child.wait().unwrap().success(), "{args:?}");
    }
}

#[test]
fn a_row_keeps_its_id_and_the_command_fails_if_one_did_unless_failures_are_allowed() {
    let server = chat(&[MARIA]);
    let (file, person) = (config(&server), example("person.schema.json"));
    let ill = json!({"type": "nothing"});
    // The command, a valid row, and rows that fail after they were read.
    let commands: [(&[&str], &str, Value, Vec<Value>); 4] = [
        (
            &["read"],
            "read-output.json",
            json!({"input": "[1]"}),
            vec![
                json!({"input": "no JSON"}),
                json!({"input": "[1]", "schema": ill}),
                json!({"input": 5}),
                json!({}),
            ],
        ),
        (
            &["check"],
            "check-output.json",
            json!({"schema": {}, "data": 1}),
            vec![
                json!({"schema": {"type": "string"}, "data": 1}),
                json!({"schema": ill, "data": 1}),
                json!({"data": 1}),
                json!({"schema": {}}),
            ],
        ),
        (
            &["lower", "-d", "openai"],
            "lower-output.json",
            json!({"schema": {"type": "object"}}),
            vec![json!({"schema": ill}), json!({"schema": 5}), json!({})],
        ),
        (
            &["extract", "--config", &file],
            "extract-output.json",
            json!({"input": "x", "schema": serde_json::from_slice::<Value>(&std::fs::read(&person).unwrap()).unwrap()}),
            vec![
                json!({"input": "x"}),
                json!({"input": " ", "schema": {}}),
                json!({"input": "x", "schema": ill}),
                json!({"input": 5}),
                json!({}),
            ],
        ),
    ];
    for (args, schema, fine, failing) in commands {
        let with_id = |row: &Value, id: Value| {
            let mut row = row.clone();
            row["id"] = id;
            row
        };
        let ids = || [json!("a"), json!(7), json!({"of": "mine"}), json!(null)].into_iter().cycle();
        let mut lines = vec![with_id(&fine, json!("fine"))];
        lines.extend(failing.iter().zip(ids()).map(|(row, id)| with_id(row, id)));
        let expected: Vec<Value> = lines.iter().map(|line| line["id"].clone()).collect();
        let text = |lines: &[Value]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        for (more, code) in [(None, 1), (Some("--allow-failures"), 0)] {
            let ran = formwork(&[args, &["--jsonl"], more.as_slice()].concat(), text(&lines));
            let found: Vec<Value> = ran.rows().iter().map(|row| row["id"].clone()).collect();
            assert_eq!((ran.code, &found), (code, &expected), "{args:?} {}", ran.stderr);
            for row in ran.rows() {
                assert_eq!(against_schema(schema, &row), Vec::<String>::new(), "{row}");
            }
        }
        let ran = formwork(&[args, &["--jsonl"]].concat(), text(&lines[..1]));
        assert_eq!(ran.code, 0, "{args:?} {}", ran.stdout);
        // The result of a line that is not JSON has the id if it is readable.
        let broken =
            [r#"{"id": 9, "input": "x", "data": 1, "schema": {"#, r#"{"id": 9,, }"#, "no row at all"];
        let ran = formwork(&[args, &["--jsonl"]].concat(), broken.join("\n"));
        let found: Vec<Value> = ran.rows().iter().map(|row| row["id"].clone()).collect();
        assert_eq!((ran.code, found[0].clone(), found.len()), (1, json!(9), 3), "{args:?} {}", ran.stdout);
    }
}

#[test]
fn a_schema_for_all_rows_gives_way_to_a_rows_own() {
    let common = temporary("common.json", r#"{"type": "object", "required": ["a"]}"#);
    let own = json!({"type": "array"});
    for (args, row) in [
        ("check", (|schema| json!({"data": [1], "schema": schema})) as fn(&Value) -> Value),
        ("read", |schema| json!({"input": "[1]", "schema": schema})),
    ] {
        let mut without = row(&own);
        without.as_object_mut().unwrap().remove("schema");
        let ran = formwork(&[args, "--jsonl", "--schema", &common], format!("{}\n{without}\n", row(&own)));
        let fine: Vec<bool> =
            ran.rows().iter().map(|row| row["ok"] == true || row["valid"] == true).collect();
        assert_eq!((ran.code, fine), (1, vec![true, false]), "{args}: {}", ran.stdout);
    }
}

/// Calls of every command with output, in the order of `--help`.
fn calls(file: &str) -> Vec<(Vec<String>, String)> {
    let (person, shape) = (example("person.schema.json"), example("feature-design.shape"));
    let invalid = temporary("closed-invalid.json", r#"{"name": 5}"#);
    let rubric =
        temporary("closed-rubric.yaml", "name: r\ncriteria:\n  - {id: a, description: It is kind.}\n");
    let skill = "name: closed\ndescription: d\ntemplate_type: LLM_JSON_GENERATION\nprompt: x\noutput: {shape: '{\"a\": string}'}\nexamples: [{}]\n";
    let skill = temporary("closed-skill.yaml", skill);
    let wallet = example("wallets/whale.json");
    let ledger = folder().join(format!("closed-{}.jsonl", file.len())).display().to_string();
    let skills = folder().join("closed-new").display().to_string();
    let _ = std::fs::remove_dir_all(&skills);
    let rows = r#"{"id": 1, "input": "[1]", "data": 1, "schema": {"type": "object"}}"#;
    let rows = format!("{rows}\n").repeat(3);
    let mut calls: Vec<(Vec<&str>, &str)> = vec![
        (vec!["extract", "-v", "-s", &person, "--config", file, "x"], ""),
        (vec!["extract", "-s", &person, "--config", file, "--json", "x"], ""),
        (vec!["extract", "--jsonl", "-v", "--config", file], &rows),
        (vec!["check", "-s", &person, &invalid], ""),
        (vec!["check", "-s", &person, "--json", &invalid], ""),
        (vec!["check", "--jsonl"], &rows),
        (vec!["chat", "--debug", "--config", file, "What is JSON?"], ""),
        (vec!["chat", "--json", "--config", file], "What is JSON?\nAnd YAML?\n"),
        (vec!["shape", "run", "-v", "-s", &shape, "-i", "-", "--config", file], "x"),
        (vec!["shape", "check", &shape, "--document", &invalid], ""),
        (vec!["shape", "to-schema", &shape], ""),
        (vec!["shape", "from-schema", &person], ""),
        (vec!["read", "-v"], "Sure: [1,]"),
        (vec!["read", "--json"], "Sure: [1,]"),
        (vec!["read", "--jsonl"], &rows),
        (vec!["doctor", "--config", file], ""),
        (vec!["doctor", "--config", file, "--json"], ""),
        (vec!["lower", "-d", "openai", "--explain", &person], ""),
        (vec!["lower", "-d", "openai", "--lint", &person], ""),
        (vec!["lower", "-d", "openai", "--jsonl"], &rows),
        (vec!["review", "--rubric", &rubric, "-v", "--config", file], "Dear all"),
        (vec!["review", "--rubric", &rubric, "--check"], ""),
        (vec!["review", "--against", &invalid, "--config", file], "Dear all"),
        (vec!["skill", "run", "-v", &skill, "--config", file], ""),
        (vec!["skill", "run", "--json", &skill, "--config", file], ""),
        (vec!["skill", "check", &skill], ""),
        (vec!["skill", "report", &skill, "--runs", "1", "--config", file], ""),
        (vec!["skill", "new", "closed", "--dir", &skills], ""),
        (vec!["skill", "list", "--dir", &skills], ""),
        (vec!["oracle", "score", "-v", &wallet, "--config", file, "--ledger", &ledger], ""),
        (vec!["oracle", "batch", "-v", &wallet, "--config", file], ""),
        (vec!["oracle", "compare", "v1", "v2", &wallet, "--config", file], ""),
        (vec!["oracle", "report", &ledger], ""),
        (vec!["oracle", "report", &ledger, "--json"], ""),
        (vec!["--help"], ""),
        (vec!["extract", "--help"], ""),
        (vec!["--version"], ""),
        (vec!["no-such-command"], ""),
        (vec!["extract"], ""),
    ];
    if cfg!(feature = "local") {
        calls.extend([
            (vec!["models"], ""),
            (vec!["models", "--json"], ""),
            (vec!["models", "show"], ""),
            (vec!["models", "--matrix"], ""),
            (vec!["models", "--matrix", "--json"], ""),
        ]);
    }
    let owned = |args: Vec<&str>| args.into_iter().map(str::to_owned).collect();
    calls.into_iter().map(|(args, input)| (owned(args), input.to_owned())).collect()
}

#[test]
fn a_reader_that_leaves_early_ends_no_command_in_a_panic() {
    /// A pipe whose reader is closed.
    fn closed() -> std::io::PipeWriter {
        std::io::pipe().unwrap().1
    }

    let server = chat(&[MARIA]);
    let calls = calls(&config(&server));
    for (args, input) in &calls {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let usual = run(command(&args), input);
        let of = |change: fn(&mut Command)| {
            let mut command = command(&args);
            change(&mut command);
            run(command, input)
        };
        let no_output = of(|command| _ = command.stdout(closed()));
        assert!(!no_output.stderr.contains("panicked"), "{args:?}: {}", no_output.stderr);
        // The second call fails because the skill exists already.
        let is_new = args.contains(&"new");
        assert!(
            is_new || no_output.code == 0 || no_output.code == usual.code,
            "{args:?}: {}",
            no_output.stderr
        );
        let no_errors = of(|command| _ = command.stderr(closed()));
        // Results of runs contain ids and times, which differ between two calls.
        let same =
            no_errors.stdout == usual.stdout || ["skill", "oracle", "extract", "chat"].contains(&args[0]);
        assert!(same && (no_errors.code == usual.code || is_new), "{args:?}: {}", no_errors.code);
        assert_ne!(no_errors.code, 101, "{args:?}");
        let neither = of(|command| _ = command.stdout(closed()).stderr(closed()));
        assert_ne!(neither.code, 101, "{args:?}");
    }
}

#[test]
fn diagnostics_are_coloured_as_the_option_and_the_environment_say() {
    let person = example("person.schema.json");
    let invalid = temporary("colour.json", r#"{"name": 5}"#);
    for (color, variable, coloured) in [
        (None, None, false),
        (Some("auto"), None, false),
        (Some("always"), None, true),
        (Some("always"), Some("1"), true),
        (Some("never"), None, false),
    ] {
        let mut check = command(&["check", "-s", &person, &invalid]);
        check.args(color.map(|color| format!("--color={color}")));
        variable.map(|value| check.env("NO_COLOR", value));
        let ran = run(check, "");
        assert_eq!(ran.stdout.contains('\u{1b}'), coloured, "{color:?} {variable:?}: {}", ran.stdout);
    }
    assert_eq!(formwork(&["check", "--color", "sometimes"], "").code, 2);
}

#[test]
fn rows_after_one_that_could_not_reach_its_only_provider_fail_without_a_call() {
    let file = temporary(
        "rows-gone.toml",
        "[providers.gone]\nkind = \"llama-server\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:9/v1\"\n",
    );
    let person = example("person.schema.json");
    let rows: String = (0..50).map(|n| format!("{}\n", json!({"id": n, "input": "Maria"}))).collect();
    // The wait of 2 s after the first call would be longer than the time limit.
    let args = ["extract", "--jsonl", "-s", &person, "--config", &file, "--timeout", "1.5"];
    let ran = formwork(&args, rows);
    let rows = ran.rows();
    assert_eq!((ran.code, rows.len()), (1, 50), "{}", ran.stderr);
    let calls = |row: &Value| row["calls"].as_array().map_or(0, Vec::len);
    assert_eq!(rows.iter().map(calls).collect::<Vec<_>>(), [[1].as_slice(), &[0; 49]].concat());
    assert!(rows.iter().all(|row| row["error"]["class"] == "unavailable"), "{}", ran.stdout);
    assert_eq!(ran.stderr.matches("`gone` could not be reached").count(), 1, "{}", ran.stderr);
}
