use std::sync::LazyLock;

use candle_core::quantized::gguf_file;
use serde_json::{Value, json};

use crate::config::{chat, of};
use crate::tiny::{self, Tiny};
use crate::{Ran, against_schema, command, example, folder, formwork, refused, run, temporary};

/// A model with random weights, which responds at once. With a schema, that is enough for tests.
pub(crate) static TINY: LazyLock<String> = LazyLock::new(|| {
    let folder = folder().join("tiny");
    std::fs::create_dir_all(&folder).unwrap();
    Tiny::new("llama").write(&folder).display().to_string()
});

/// A schema with a single valid document. The file is written once, because tests run concurrently.
static FLAG: LazyLock<String> = LazyLock::new(|| {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "boolean"}, "b": {"type": "integer", "minimum": 0, "maximum": 9}},
        "required": ["a", "b"],
        "additionalProperties": false,
    });
    temporary("flag.schema.json", schema.to_string())
});

/// A schema that no model satisfies by chance, although a value exists: twenty line breaks.
static BREAKS: LazyLock<String> = LazyLock::new(|| {
    let schema = json!({"type": "string", "minLength": 20, "maxLength": 30, "not": {"pattern": "."}});
    temporary("breaks.schema.json", schema.to_string())
});

/// `formwork extract` with the tiny model.
fn extract(args: &[&str], stdin: impl AsRef<[u8]>) -> Ran {
    formwork(&[&["extract", "--model", &TINY], args].concat(), stdin)
}

#[test]
fn a_sentence_becomes_an_object() {
    let sentence = "Maria Lindqvist, 34, moved to Lisbon last spring.";
    let ran = formwork(&["extract", "--schema", &example("person.schema.json"), sentence], "");
    let printed = "{\"name\": \"Maria Lindqvist\", \"age\": 34, \"city\": \"Lisbon\"}\n";
    assert_eq!((ran.code, ran.stdout.as_str()), (0, printed));
    let note = "note: smollm2-135m-instruct, the default model, is very small: its answers are valid and often wrong.";
    assert!(ran.stderr.starts_with(note) && ran.stderr.lines().count() == 1, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("-m VENDOR/MODEL") && ran.stderr.contains("-m ollama/NAME"),
        "{}",
        ran.stderr
    );
}

#[test]
fn the_text_is_an_argument_a_file_or_standard_input() {
    let schema = example("person.schema.json");
    let text = "Ada, 36, of London";
    let file = temporary("ada.txt", text);
    let command_line = ["--schema", &schema, "--seed", "4", "--temperature", "1", "--max-tokens", "60"];
    let with = |more: &[&str], stdin: &str| {
        let ran = extract(&[&command_line, more].concat(), stdin);
        let is_warned = ran.stderr.lines().all(|line| line.starts_with("warning: restrained"));
        assert!(ran.code == 0 && is_warned, "{more:?}: {}", ran.stderr);
        ran.stdout
    };
    let printed = with(&[text], "");
    assert_eq!(with(&["--file", &file], ""), printed);
    assert_eq!(with(&["--file", "-"], text), printed);
    assert_eq!(with(&[], text), printed);
    assert_eq!(formwork(&["check", "--schema", &schema], &printed).code, 0, "{printed}");
    // The text, the system prompt and the seed reach the model.
    assert_ne!(with(&["Bob, 7"], ""), printed);
    assert_ne!(with(&["--system", "People", text], ""), printed);
    let other = extract(&["-s", &schema, "--seed", "5", "-t", "1", "--max-tokens", "60", text], "");
    assert_ne!(other.stdout, printed);
}

#[test]
fn the_history_is_printed_as_its_schema_says() {
    let ran = extract(&["--schema", &FLAG, "--json", "--seed", "7", "--temperature", "0.5", "x"], "");
    let row = ran.rows().remove(0);
    assert_eq!((ran.code, against_schema("extract-output.json", &row)), (0, vec![]), "{row}");
    assert_eq!((&row["id"], &row["ok"]), (&Value::Null, &json!(true)));
    assert_eq!(row["calls"][0]["sampling"], json!({"temperature": 0.5, "seed": 7}));
    assert_eq!(row["usage"], row["calls"][0]["usage"]);
    assert_eq!(row["cost"], row["calls"][0]["cost"]);

    let ran =
        extract(&["--schema", &BREAKS, "--json", "--max-attempts", "2", "--temperature", "0.5", "x"], "");
    let row = ran.rows().remove(0);
    assert_eq!((ran.code, against_schema("extract-output.json", &row)), (1, vec![]), "{row}");
    assert_eq!((&row["ok"], &row["error"]["class"]), (&json!(false), &json!("rejected")));
    assert_eq!(row["calls"].as_array().unwrap().len(), 2);
    assert_eq!(row["calls"][1]["sampling"]["temperature"], 0.333);
    assert!(ran.stderr.starts_with("error: no valid answer: after 2 attempts"), "{}", ran.stderr);
}

#[test]
fn verbose_says_each_attempt_what_was_wrong_and_what_is_called_next() {
    let ran = extract(&["--schema", &BREAKS, "-v", "--max-attempts", "2", "the text"], "");
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    let mut rest = ran.stderr.as_str();
    for says in [
        "attempt 1: asking local for the whole document, temperature 0.3\n",
        "User: the text\n",
        "  lowered: ",
        "attempt 1: ",
        "  answer: \"",
        "  rejected: ",
        " at $: ",
        "next: attempt 2 asks local for the whole document\n",
        "attempt 2: asking local for the whole document, temperature 0.2\n",
        "What is wrong with it:",
        "  rejected: ",
        "error: no valid answer: after 2 attempts",
    ] {
        let at = rest.find(says).unwrap_or_else(|| panic!("no {says:?} in its place in\n{}", ran.stderr));
        rest = &rest[at + says.len()..];
    }
    let ran = extract(&["--schema", &FLAG, "-v", "x"], "");
    assert!(ran.code == 0 && ran.stderr.contains("  accepted\n"), "{}", ran.stderr);
}

#[test]
fn out_of_time_before_any_answer_is_no_provider() {
    let schema = temporary("long.schema.json", r#"{"type": "string", "minLength": 600}"#);
    let ran = extract(&["-s", &schema, "--max-tokens", "900", "--timeout", "0.001", "--json", "x"], "");
    let row = ran.rows().remove(0);
    assert_eq!((ran.code, &row["error"]["class"]), (3, &json!("deadline")), "{row}");
    assert_eq!(against_schema("extract-output.json", &row), Vec::<String>::new());
    assert!(ran.stderr.starts_with("error: out of time: "), "{}", ran.stderr);
}

#[test]
fn rows_come_back_in_order() {
    let bad_row = 4;
    let mut rows: Vec<String> =
        (0..9).map(|id| json!({"id": id, "input": "x".repeat(1 + 40 * (8 - id))}).to_string()).collect();
    rows[bad_row] = "{\"id\": 4, ".to_owned();
    rows.extend([
        json!({"id": "schema", "input": "x", "schema": {"type": "boolean"}}).to_string(),
        json!({"id": "remote", "input": "x", "schema": {"$ref": "other.json"}}).to_string(),
        json!({"id": "nothing", "input": "x", "schema": {"type": "integer", "minimum": 2, "maximum": 1}})
            .to_string(),
        json!({"id": "empty", "input": " "}).to_string(),
        json!({"id": "long", "input": "x".repeat(2 * tiny::CONTEXT)}).to_string(),
    ]);
    let file = temporary("rows.jsonl", rows.join("\n"));
    let command_line = ["--jsonl", "--schema", &FLAG, "--file", &file, "--max-tokens", "30"];
    let ran = extract(&[&command_line[..], &["--concurrency", "3"]].concat(), "");
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let answers = ran.rows();
    for answer in &answers {
        assert_eq!(against_schema("extract-output.json", answer), Vec::<String>::new(), "{answer}");
    }
    let ids: Vec<_> = answers.iter().map(|answer| answer["id"].clone()).collect();
    let expected = json!([0, 1, 2, 3, 4, 5, 6, 7, 8, "schema", "remote", "nothing", "empty", "long"]);
    assert_eq!(Value::from(ids), expected);
    for (index, answer) in answers.iter().enumerate().take(10) {
        assert_eq!(answer["ok"], json!(index != bad_row), "{answer}");
    }
    assert!(answers[9]["value"].is_boolean(), "{}", answers[9]);
    for (index, class, says) in [
        (bad_row, "config", "rows.jsonl:5: "),
        (10, "schema", "nothing is fetched"),
        (11, "schema", "no value satisfies"),
        (12, "config", "rows.jsonl:13: the text is empty"),
        (13, "config", "shorten it"),
    ] {
        let error = &answers[index]["error"];
        assert_eq!(error["class"], class, "{error}");
        assert!(error["message"].as_str().unwrap().contains(says), "{error}");
    }
    // The completions are the same with one call at a time.
    let values = |ran: &Ran| ran.rows().iter().map(|row| row["value"].clone()).collect::<Vec<_>>();
    assert_eq!(values(&extract(&command_line, "")), values(&ran));
}

#[test]
fn rows_need_a_schema_from_somewhere() {
    let ran = extract(&["--jsonl", "-v"], "\n{\"id\": 1, \"input\": \"x\"}\n\n");
    let answers = ran.rows();
    assert_eq!((ran.code, answers.len()), (1, 1), "{}", ran.stderr);
    assert!(
        answers[0]["error"]["message"].as_str().unwrap().contains("there is no --schema"),
        "{}",
        answers[0]
    );
    let rows = "{\"input\": \"x\", \"schema\": {\"type\": \"null\"}}";
    let ran = extract(&["--jsonl", "-v"], rows);
    assert_eq!((&ran.rows()[0]["ok"], &ran.rows()[0]["value"]), (&json!(true), &Value::Null));
    assert!(ran.stderr.contains("attempt 1: asking local"), "{}", ran.stderr);
}

#[test]
fn schemas_of_any_size_and_shape() {
    let properties: serde_json::Map<String, Value> = (0..8000)
        .map(|n| (format!("property_{n:05}"), json!({"type": "string", "description": "x".repeat(100)})))
        .collect();
    let definitions = json!({"small": {"type": "boolean"}, "large": {"properties": properties}});
    let large = json!({"$ref": "#/$defs/small", "$defs": definitions});
    let large = large.to_string();
    assert!(large.len() > 1_000_000);
    let large = temporary("large.schema.json", large);
    let ran = extract(&["-s", &large, "x"], "");
    assert!(ran.code == 0 && ["true\n", "false\n"].contains(&&*ran.stdout), "{}", ran.stderr);

    let next = json!({"anyOf": [{"$ref": "#"}, {"type": "null"}]});
    let recursive = json!({"type": "object", "properties": {"next": next}, "required": ["next"]});
    let recursive = temporary("recursive.schema.json", recursive.to_string());
    let ran = extract(&["-s", &recursive, "--max-tokens", "100", "x"], "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(formwork(&["check", "-s", &recursive], &ran.stdout).code, 0, "{}", ran.stdout);

    // The whole text exceeds the model's context window, and the error says so.
    let properties: serde_json::Map<_, _> = (0..9000).map(|n| (format!("{n:0100}"), json!({}))).collect();
    let names: Vec<&String> = properties.keys().collect();
    let wide = json!({"type": "object", "required": names, "properties": properties}).to_string();
    let wide = temporary("wide.schema.json", wide);
    let ran = extract(&["-s", &wide, "x"], "");
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("the model's context 1024: shorten it"), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
}

#[test]
fn a_schema_that_cannot_be_used_is_reported_before_a_model_is_opened() {
    let schema = |name: &str, content: &str| temporary(name, content);
    let folder = folder().display().to_string();
    for (schema, says) in [
        ("nowhere.json".to_owned(), "cannot read nowhere.json: No such file"),
        (folder.clone(), &*format!("cannot read {folder}: ")),
        (schema("e-no.json", "{\n \"type\": object\n}"), "e-no.json:2:10: not JSON"),
        (schema("e-empty.json", ""), "e-empty.json:1:1: the text is empty"),
        (schema("e-deep.json", &"[".repeat(10_000_000)), "e-deep.json:1:128: nested deeper than 127 levels"),
        (
            schema("e-kind.json", r#"{"type": "objekt"}"#),
            "#/type: there is no type `objekt`: did you mean `object`? There are array, boolean, integer, null, number, object, string",
        ),
        (
            schema("e-type.json", r#"{"type": ["string", "word"]}"#),
            "#/type: there is no type \"word\"; there are array, ",
        ),
        (
            schema("e-length.json", r#"{"properties": {"a": {"minLength": "x"}}}"#),
            "#/properties/a/minLength: expected integer, found string",
        ),
        (schema("e-list.json", "[]"), "e-list.json: the schema cannot be used: #"),
        (
            schema("e-remote.json", r#"{"$ref": "https://example.com/x"}"#),
            "e-remote.json: the schema cannot be used: #/$ref: ",
        ),
        (schema("e-false.json", "false"), "e-false.json: the schema cannot be used: #: no value satisfies"),
        (
            schema("e-bounds.json", r#"{"type": "integer", "minimum": 3, "maximum": 2}"#),
            "#: no value satisfies `minimum` and `maximum`",
        ),
        (
            schema(
                "e-inside.json",
                r#"{"type": "object", "required": ["a"], "properties": {"a": {"enum": [1], "type": "string"}}}"#,
            ),
            "#: no value satisfies",
        ),
        (
            schema(
                "e-endless.json",
                r##"{"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}}"##,
            ),
            "#: no value satisfies",
        ),
    ] {
        // If the model were opened first, the error would be about the model.
        refused(&formwork(&["extract", "--model", "nowhere.gguf", "--schema", &schema, "x"], ""), 2, says);
        refused(
            &formwork(&["extract", "--model", "nowhere.gguf", "--schema", &schema, "--jsonl"], "{}"),
            2,
            says,
        );
    }
    let bytes = temporary("e-bytes.json", b"{\"a\":\n \"\xFF\"}");
    refused(&extract(&["--schema", &bytes, "x"], ""), 2, "e-bytes.json:2:3: not UTF-8");
}

#[test]
fn a_schema_with_no_end_of_ways_through_it_is_no_obstacle() {
    for size in [40, 120] {
        let variant = |from: usize, to: usize| {
            let next = json!({"$ref": format!("#/$defs/t{}", (from * 7 + to) % size)});
            let kind = json!({"const": to, "description": "x".repeat(60)});
            json!({"properties": {"kind": kind, "next": next}, "required": ["kind"]})
        };
        let union = |from: usize| json!({"oneOf": (0..8).map(|to| variant(from, to)).collect::<Vec<_>>()});
        let unions: serde_json::Map<_, _> = (0..size).map(|from| (format!("t{from}"), union(from))).collect();
        let schema = json!({"$ref": "#/$defs/t0", "$defs": unions}).to_string();
        let schema = temporary(&format!("unions-{size}.schema.json"), schema);
        // The schema was accepted; only the model is missing.
        refused(
            &formwork(&["extract", "--model", "nowhere.gguf", "--schema", &schema, "x"], ""),
            3,
            "nowhere.gguf",
        );
    }
}

#[test]
fn bad_input_is_one_message_and_the_right_exit_code() {
    let person = example("person.schema.json");
    let empty = temporary("empty.txt", "\n");
    let bytes = temporary("bytes.txt", b"ab\ncd\xFF");
    for (args, stdin, code, says) in [
        (vec!["-s", &FLAG, ""], &b""[..], 2, "the text is empty: there is nothing to extract from"),
        (vec!["-s", &FLAG], b" \n", 2, "the text is empty"),
        (vec!["-s", &FLAG, "--file", &empty], b"", 2, "the text is empty"),
        (vec!["-s", &FLAG, "--file", "nowhere.txt"], b"", 2, "cannot read nowhere.txt: "),
        (
            vec!["-s", &FLAG, "--file", &bytes],
            b"",
            2,
            "bytes.txt:2:3: byte 5 is not UTF-8: save the text as UTF-8",
        ),
        (vec!["-s", &FLAG], b"\xFF", 2, "standard input:1:1: byte 0 is not UTF-8"),
        (vec!["-s", "-"], b"{}", 2, "standard input can be used for one input only"),
        (vec!["-s", "-", "--jsonl"], b"{}", 2, "standard input can be used for one input only"),
        (vec!["--jsonl", "--file", "nowhere.jsonl"], b"", 2, "cannot read nowhere.jsonl: "),
        (
            vec!["-s", &person, "--max-tokens", "3", "x"],
            b"",
            2,
            "max_tokens 3 is below the shortest document of this schema (",
        ),
    ] {
        refused(&extract(&args, stdin), code, says);
    }
    let long = "-word".repeat(tiny::CONTEXT);
    refused(&extract(&["-s", &FLAG], long), 2, "tokens and the model's context 1024: shorten it");
    // No vocabulary has so few tokens for this text.
    let says =
        "the input has at least 78125 tokens, and the context of `local` is 1024: shorten or split the input";
    refused(&extract(&["-s", &FLAG], "[".repeat(10_000_000)), 2, says);
}

#[test]
fn an_argument_that_is_not_the_text_is_an_error_with_the_option_to_use() {
    let letter = temporary("letter.txt", "Maria, 34.");
    let pdf = temporary("plain.pdf", "%PDF-1.4\nBT (Ana Sousa, 41) Tj ET\n");
    let at_letter = format!("@{letter}");
    for (args, stdin, says) in [
        (
            vec!["-"],
            "Ada, 36",
            "the argument `-` is not the text: write --file - for standard input, or --text -".to_owned(),
        ),
        (
            vec![&*at_letter],
            "",
            format!("write --file {letter} for the contents of the file, or --text {at_letter} for"),
        ),
        (
            vec![&*letter],
            "",
            format!("write --file {letter} for the contents of the file, or --text {letter} for"),
        ),
        (vec!["@missing.txt"], "", "write --file missing.txt for".to_owned()),
        (
            vec!["https://example.com/a"],
            "",
            "no address is downloaded: write --file - after `curl https://example.com/a |`".to_owned(),
        ),
        (
            vec!["--file", &*pdf],
            "",
            format!("{pdf} is a PDF, not a text: convert it first, for example with `pdftotext {pdf} -`"),
        ),
        (vec![], "%PDF-1.7\nBT (Ana Sousa, 41) Tj ET\n", "standard input is a PDF, not a text".to_owned()),
    ] {
        refused(&extract(&[&["-s", &FLAG], &args[..]].concat(), stdin), 2, &says);
    }
    for text in ["-", &at_letter, &letter, "https://example.com/a", "- a list", "--json"] {
        let ran = extract(&["-s", &FLAG, "--max-tokens", "30", "--text", text], "");
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{text}");
    }
    let ran = extract(&["-s", &FLAG, "--text", "a", "b"], "");
    assert!(ran.code == 2 && ran.stderr.contains("cannot be used with"), "{}", ran.stderr);
}

#[test]
fn a_schema_that_says_nothing_is_refused_and_a_wrapped_one_unwrapped() {
    let nothing = temporary("nothing.schema.json", "{}");
    let anything = temporary("anything.schema.json", "true");
    let title = temporary("title.schema.json", r#"{"title": "x"}"#);
    let cycle = temporary(
        "cycle.schema.json",
        r##"{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}}"##,
    );
    for schema in [&nothing, &anything, &title] {
        refused(&extract(&["-s", schema, "x"], ""), 2, "for an object, or add --any to accept any value");
        let ran = extract(&["-s", schema, "--any", "--max-tokens", "60", "--seed", "1", "x"], "");
        assert!(ran.code != 2, "{}", ran.stderr);
    }
    for args in [vec!["-s", &*cycle, "x"], vec!["-s", &*cycle, "--any", "x"]] {
        refused(
            &extract(&args, ""),
            2,
            "#/$defs/a: every value satisfies this schema, because its references lead",
        );
    }
    let ran = extract(&["--jsonl"], r#"{"id": 1, "input": "x", "schema": {"totally": 1}}"#);
    let error = ran.rows()[0]["error"].clone();
    assert_eq!((ran.code, &error["class"]), (1, &json!("schema")), "{error}");

    let flag: Value = serde_json::from_slice(&std::fs::read(&*FLAG).unwrap()).unwrap();
    let tool = temporary("tool.schema.json", json!({"name": "save", "input_schema": flag}).to_string());
    for given in ["--schema", "--contract"] {
        let ran = extract(&[given, &tool, "--max-tokens", "30", "--json", "x"], "");
        let row = ran.rows().remove(0);
        assert_eq!((ran.code, &row["warnings"][0]["kind"]), (0, &json!("unwrapped")), "{row}");
        assert_eq!(against_schema("extract-output.json", &row), Vec::<String>::new());
        assert!(
            ran.stderr.contains("warning: unwrapped: the schema is the member #/input_schema of"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn a_flag_that_makes_no_sense_is_usage() {
    for (args, says) in [
        (&["--temperature", "nan"][..], "expected a number from 0 to 2"),
        (&["--temperature", "2.1"], "expected a number from 0 to 2"),
        (&["--temperature=-1"], "expected a number from 0 to 2"),
        (&["--timeout", "0"], "expected seconds"),
        (&["--timeout", "inf"], "expected seconds"),
        (&["--max-attempts", "0"], "0 is not in 1..=100"),
        (&["--max-tokens", "0"], "0 is not in 1.."),
        (&["--seed=-1"], "'-1' for '--seed <SEED>'"),
        (&["--model", ""], "--model"),
        (&["--concurrency", "0", "--jsonl"], "0 is not in 1..=1024"),
        (&["--concurrency", "2"], "--jsonl"),
        (&["--concurrency", "2", "x"], "--concurrency"),
        (&["--json", "--jsonl"], "cannot be used with '--jsonl'"),
        (&["--jsonl", "x"], "cannot be used with '[TEXT]'"),
        (&["--file", "a.txt", "x"], "cannot be used with"),
        (&["--tempersture", "1"], "'--temperature'"),
    ] {
        let ran = formwork(&[&["extract", "--schema", &FLAG], args].concat(), "{}");
        assert!(ran.code == 2 && ran.stderr.contains(says), "{args:?}: {} {}", ran.code, ran.stderr);
        assert!(ran.stderr.starts_with("error: ") && ran.stdout.is_empty(), "{args:?}: {}", ran.stderr);
    }
    let ran = formwork(&["extract", "x"], "");
    assert!(ran.code == 2 && ran.stderr.contains("--schema <SCHEMA>"), "{}", ran.stderr);
}

#[test]
fn a_contract_is_a_schema_with_rules_instructions_and_examples() {
    let contract = temporary(
        "letter.yaml",
        "schema:\n  type: object\n  properties: {name: {type: string}}\n  required: [name]\n  additionalProperties: false\nrules:\n  \
         - {rule: quoted, target: $.name}\ninstructions: Read the letter.\nexamples:\n  - {input: Eve wrote, output: {name: Eve}}\n",
    );
    let server = chat(&[r#"{"name": "Bob"}"#, r#"{"name": "Ada"}"#]);
    let config = temporary("letter.toml", of(&server));
    let args =
        ["extract", "--config", &config, "--contract", &contract, "--system", "Be exact.", "Ada counts."];
    let ran = formwork(&args, "");
    assert_eq!((ran.code, ran.stdout.trim()), (0, r#"{"name": "Ada"}"#), "{}", ran.stderr);
    let sent: Value = serde_json::from_slice(&server.received()[0].body).unwrap();
    let messages = sent["messages"].to_string();
    for part in ["Read the letter.\\n\\nBe exact.", "Eve wrote", "Ada counts."] {
        assert!(messages.contains(part), "{part}: {messages}");
    }
    assert_eq!(server.received().len(), 2, "the rule was broken once");
    for (args, says) in [
        (["--contract", "none.yaml"], "none.yaml: there is no such file"),
        (["--contract", &temporary("odd.yaml", "schema: {type: objekt}")], "odd.yaml: "),
    ] {
        refused(&formwork(&[&["extract", "x"][..], &args].concat(), ""), 2, says);
    }
    let both = formwork(&["extract", "--contract", &contract, "--schema", &FLAG, "x"], "");
    assert!(both.code == 2 && both.stderr.contains("cannot be used with"), "{}", both.stderr);
}

#[test]
fn a_model_that_is_none_is_named() {
    let with = |model: &str, says: &str| {
        refused(&formwork(&["extract", "--schema", &FLAG, "--model", model, "x"], ""), 3, says);
    };
    with("smollm2", "there is no model `smollm2`: did you mean `smollm2-135m-instruct`?");
    with("SmolLM-135M", "did you mean `smollm2-135m-instruct`?");
    with("defualt", "did you mean `default`?");
    with(
        "best",
        "there is no model `best`: give the path of a .gguf file, one of a hub (hf:OWNER/REPOSITORY/FILE.gguf), or a name: \
         default, smollm2-135m-instruct",
    );
    // The names of models on servers.
    for (model, says) in [
        ("gpt-4o", "-m openai/gpt-4o"),
        ("claude-sonnet-4-6", "-m anthropic/claude-sonnet-4-6"),
        ("gemini-2.5-flash", "-m gemini/gemini-2.5-flash"),
        ("llama3.2", "-m ollama/llama3.2"),
        ("qwen3:8b", "-m ollama/qwen3:8b"),
    ] {
        with(model, &format!("there is no local model `{model}`; a server may have it: {says}"));
    }
    with("hf:owner/model", "hf:OWNER/REPOSITORY[@REVISION]/FILE.gguf");
    with("nowhere.gguf", "nowhere.gguf");
    let whole = std::fs::read(&*TINY).unwrap();
    with(&temporary("cut.gguf", &whole[..whole.len() / 2]), "cut.gguf: ");
    with(&temporary("empty.gguf", ""), "empty.gguf: the file is empty");
    with(&temporary("wheel.gguf", "PK\x03\x04"), "unzip");
    with(&temporary("text.gguf", "GGML"), "text.gguf: not a GGUF file");
    let foreign = folder().join("foreign");
    std::fs::create_dir_all(&foreign).unwrap();
    let mamba = gguf_file::Value::String("mamba".to_owned());
    let mamba = Tiny::new("llama").with("general.architecture", mamba).write(&foreign);
    with(&mamba.display().to_string(), "architecture `mamba` is not supported");
}

/// Common mistakes of new users: other texts in place of a schema, and the name of a file in place of its text.
#[test]
fn a_schema_is_taken_as_people_write_it() {
    let yaml =
        temporary("flag.yaml", "type: object\nproperties:\n  ok:\n    type: boolean\nrequired: [ok]\n");
    let shape = temporary("flag.shape", "{\"ok\": boolean}");
    let other = temporary("flag.txt", "{ok: boolean // a comment\n}");
    let inline = r#"{"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}"#;
    for schema in [&*yaml, &shape, &other, inline, "{ok: boolean}", "ok: bool", "ok: boolean,"] {
        let ran = extract(&["-s", schema, "--max-tokens", "30", "x"], "");
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{schema}");
        assert!(ran.rows()[0]["ok"].is_boolean(), "{}", ran.stdout);
        let ran = extract(&["--jsonl", "-s", schema, "--max-tokens", "30"], "{\"id\": 1, \"input\": \"x\"}");
        assert!(ran.rows()[0]["value"]["ok"].is_boolean(), "{}", ran.stdout);
    }
    for (schema, words) in [
        ("nowhere.json", "cannot read nowhere.json"),
        (r#"{"name": "string"}"#, "this has no keyword of JSON Schema"),
        ("{name: strin}", "did you mean `string`?"),
        ("name: nonsense, age", "there is no type `nonsense`"),
    ] {
        let ran = extract(&["-s", schema, "x"], "");
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{schema}");
        assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains(words), "{schema}: {}", ran.stderr);
    }
    // The input is valid, but most likely a mistake.
    let ran = extract(&["-s", "{ok: \"boolean\"}", "--max-tokens", "30", "x"], "");
    assert!(
        ran.code == 0 && ran.stderr.contains("the value is the text \"boolean\" itself"),
        "{}",
        ran.stderr
    );

    let letter = temporary("letter.txt", "Maria, 34.");
    let ran = extract(&["-s", &FLAG, "--max-tokens", "30", "--file", &letter], "");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
}

#[test]
fn no_weights_is_no_provider() {
    let ran = |cache: &str, offline: &str| {
        let mut command = command(&["extract", "--schema", &FLAG, "x"]);
        command.env("FORMWORK_CACHE", cache).env("FORMWORK_OFFLINE", offline);
        run(command, "")
    };
    let empty = folder().join("no-weights").display().to_string();
    refused(&ran(&empty, "1"), 3, "is not there, and offline: unset FORMWORK_OFFLINE, or run `");
    // A file in place of a folder makes writing fail for everybody, even for root.
    let file = temporary("cache", "");
    let says = format!("the folder for weights, {file}, cannot be used: ");
    refused(&ran(&file, "0"), 3, &says);
    // A model given by its path does not need the folder.
    let mut command = command(&["extract", "--schema", &FLAG, "x"]);
    command.env("FORMWORK_CACHE", &file).env("FORMWORK_MODEL", &*TINY);
    assert_eq!(run(command, "").code, 0);
}

#[test]
fn help_has_examples_and_exit_codes() {
    for (args, says) in [
        (&["--help"][..], "Exit codes:\n  0    done\n  1    no valid answer"),
        (&["extract", "--help"], "Exit codes:\n  0    the value is printed"),
        (&["models", "--help"], "Exit codes: 0 done, 1 the model is not here"),
    ] {
        let ran = formwork(args, "");
        assert!(ran.code == 0 && ran.stdout.contains("Examples:\n  formwork "), "{}", ran.stdout);
        assert!(ran.stdout.contains(says), "{}", ran.stdout);
    }
}
