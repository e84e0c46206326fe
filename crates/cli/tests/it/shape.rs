#[cfg(feature = "local")]
use std::process::{Command, Stdio};

use formwork_testkit::server::Server;
use serde_json::{Value, json};

#[cfg(feature = "local")]
use super::run;
use super::{Ran, against_schema, example, formwork, refused, temporary};
use crate::config::{chat as server, of};

const FIRST: &str =
    r##"{"rationale": "# Summary", "components": [{"id": "a", "responsibility": "b", "api": "c"}]}"##;
const SECOND: &str = r##"{"name": "MyApp", "rationale": "# Summary", "components": [], "risks": [123]}"##;
const THIRD: &str =
    r##"{"name": "MyApp", "rationale": "# Summary", "components": [], "risks": ["Risk 1", "Risk 2"]}"##;

/// `formwork shape run` with this server, the example's shape and its input.
fn shape_run(name: &str, server: &Server, args: &[&str]) -> Ran {
    let config = temporary(&format!("shape-{name}.toml"), of(server));
    let (shape, input) = (example("feature-design.shape"), example("feature-design-input.json"));
    let common = ["shape", "run", "--config", &config, "--shape", &shape, "--input", &input];
    formwork(&[&common, args].concat(), "")
}

/// The prompt of each request.
fn prompts(server: &Server) -> Vec<String> {
    let body = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
    let bodies = server.received().into_iter().map(|request| body(&request.body));
    bodies
        .map(|body| {
            let messages = body["messages"].as_array().unwrap();
            assert_eq!((messages.len(), &messages[0]["role"]), (1, &json!("user")), "{body}");
            messages[0]["content"].as_str().unwrap().to_owned()
        })
        .collect()
}

/// The errors that a prompt lists.
fn errors(prompt: &str) -> Vec<&str> {
    prompt.lines().filter_map(|line| line.strip_prefix("- ")).collect()
}

#[test]
fn the_documents_three_answers() {
    let server = server(&[FIRST, SECOND, THIRD]);
    let ran = shape_run("three", &server, &[]);
    assert_eq!((ran.code, ran.stdout.trim()), (0, THIRD), "{}", ran.stderr);
    let prompts = prompts(&server);
    assert_eq!(prompts.len(), 3);
    assert!(errors(&prompts[0]).is_empty(), "{}", prompts[0]);
    assert_eq!(
        errors(&prompts[1]),
        ["Missing required field at path $.name", "Missing required field at path $.risks"]
    );
    assert_eq!(errors(&prompts[2]), ["Type mismatch at $.risks[0]: expected string, found number"]);
    let log = "attempt 1/3: asking primary\nattempt 1/3: 2 errors\n  Missing required field at path $.name\n  \
               Missing required field at path $.risks\ntarget `primary` ignored the schema (dialect `llama-cpp`): the answer breaks \
               `required` at $.name; enough of these lead to a weaker output mode\nattempt 2/3: asking primary\nattempt 2/3: 1 error\n  Type mismatch at \
               $.risks[0]: expected string, found number\nattempt 3/3: asking primary\nattempt 3/3: all validation passes\n";
    assert_eq!(ran.stderr, log, "retries are logged without -v");
}

#[test]
fn a_list_of_fields_means_the_same_as_text_as_a_file_and_on_standard_input() {
    let fields = "# an invoice\nvendor # who sells\nitems: [{name, qty: int, due: date}]\npaid?: bool";
    let bracketed = "{\n# an invoice\nvendor: string, # who sells\nitems: [{name: string, qty: integer, due: date}], paid?: boolean}";
    let schema = |argument: &str, stdin: &str| {
        let ran = formwork(&["shape", "to-schema", argument], stdin);
        assert_eq!(ran.code, 0, "{argument}: {}", ran.stderr);
        serde_json::from_str::<Value>(&ran.stdout).unwrap()
    };
    let expected = schema("-", bracketed);
    assert_eq!(expected["properties"]["items"]["items"]["properties"]["due"]["format"], "date");
    assert_eq!(expected["properties"]["vendor"]["description"], "an invoice who sells");
    let file = temporary("fields.shape", fields);
    for (argument, stdin) in [(fields, ""), (bracketed, ""), (&file, ""), ("-", fields)] {
        assert_eq!(schema(argument, stdin), expected, "{argument}");
    }
    // A file may have a type without brackets; the text of an argument is a field.
    assert_eq!(schema("-", "string # a title")["type"], "string");
    assert_eq!(schema("string", "")["type"], "object");

    let wrong = temporary("wrong-fields.shape", "vendor\nitems: [{name, qty: nit}]");
    for argument in [&wrong, "vendor\nitems: [{name, qty: nit}]"] {
        for command in ["to-schema", "check"] {
            let ran = formwork(&["shape", command, argument], "");
            assert!(ran.code == 2 && ran.stderr.contains(":2:21: there is no type `nit`"), "{}", ran.stderr);
        }
    }
    let document = temporary("fields.json", r#"{"age": "x"}"#);
    let ran = formwork(&["shape", "check", "age: int", "--document", &document], "");
    assert!(ran.code == 1 && ran.stdout.contains("expected integer"), "{} {}", ran.stdout, ran.stderr);
}

#[test]
fn the_number_of_errors_of_an_attempt_is_that_of_all() {
    let server = server(&[&json!({"xs": vec!["x"; 600]}).to_string()]);
    let config = temporary("shape-many.toml", of(&server));
    let line = ["shape", "run", "--config", &config, "--max-retries", "0", "-s", "xs: [int]", "-i", "-"];
    let ran = formwork(&line, "x");
    assert!(
        ran.stderr.contains("attempt 1/1: 600 errors\n") && ran.stderr.contains("\n  and 88 more\n"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.ends_with("$.xs[0]: expected integer (and 599 more)\n"), "{}", ran.stderr);
}

#[test]
fn three_bad_answers_are_exit_code_1() {
    let server = server(&[FIRST, "no JSON", SECOND]);
    let ran = shape_run("bad", &server, &["--json"]);
    assert_eq!((ran.code, server.received().len()), (1, 3), "{}", ran.stderr);
    for line in [
        "$.name",
        "$.risks",
        "Not JSON at $",
        "$.risks[0]: expected string, found number",
        "error: no valid answer: ",
    ] {
        assert!(ran.stderr.contains(line), "{line}: {}", ran.stderr);
    }
    let row = ran.rows().remove(0);
    assert_eq!(against_schema("extract-output.json", &row), Vec::<String>::new(), "{row}");
    assert_eq!((&row["ok"], row["calls"].as_array().unwrap().len()), (&json!(false), 3));
}

#[test]
fn fences_prose_and_control_characters_are_read_through() {
    let text = format!("Here it is:\n```json\n{}\n```\nDone.", THIRD.replace("Risk 1", "Risk\n1"));
    let server = server(&[&text]);
    let ran = shape_run("fence", &server, &["-v"]);
    assert_eq!((ran.code, server.received().len()), (0, 1), "{}", ran.stderr);
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(value["risks"][0], "Risk\n1");
    assert!(ran.stderr.matches("  edit: ").count() >= 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("attempt 1/3: all validation passes"), "{}", ran.stderr);
}

#[test]
fn a_document_is_checked_with_all_of_its_errors() {
    let document = json!({
        "name": "MyApp", "rationale": "#", "risks": "x",
        "components": [{"id": 5, "responsibility": "r", "api": "a"}, {"id": "b", "responsibility": "r"}],
    });
    let file = temporary("design.json", format!("{document:#}"));
    let shape = example("feature-design.shape");
    let ran = formwork(&["shape", "check", &shape, "--document", &file], "");
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""));
    for says in [
        "Missing required field at path $.components[1].api",
        "Type mismatch at $.components[0].id: expected string, found number",
        "Type mismatch at $.risks: expected array, found string",
    ] {
        assert!(ran.stdout.contains(says), "{says}: {}", ran.stdout);
    }
    assert_eq!(ran.stdout.matches("error: ").count(), 3, "{}", ran.stdout);
    assert_eq!(formwork(&["shape", "check", &shape, "-d", &temporary("third.json", THIRD)], "").code, 0);
}

#[test]
fn a_mistake_in_a_shape_is_shown_with_its_line() {
    let bad = temporary("bad.shape", "{\n  \"name\": strng,\n  \"risks\": [string]\n}\n");
    let other = temporary("other.shape", "{\"a\" string}");
    let ran = formwork(&["shape", "check", &bad], "");
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    let expected = format!(
        "error: {bad}:2:11: there is no type `strng`: did you mean `string`?\n  |\n2 |   \"name\": strng,\n  |           ^^^^^\n"
    );
    assert_eq!(ran.stderr, expected);
    let ran = formwork(&["shape", "check", &example("feature-design.shape"), &bad, &other], "");
    assert!(
        ran.code == 2 && ran.stderr.contains("bad.shape:2:11: ") && ran.stderr.contains("other.shape:1:6: "),
        "{}",
        ran.stderr
    );
    // The error occurs before any model is opened.
    let input = example("feature-design-input.json");
    let ran = formwork(&["shape", "run", "--model", "nowhere.gguf", "--shape", &bad, "--input", &input], "");
    assert_eq!(ran.stderr, expected);
}

#[test]
fn wrong_usage() {
    let (shape, input) = (example("feature-design.shape"), example("feature-design-input.json"));
    refused(&formwork(&["shape", "run", "--input", &input], ""), 2, "--shape is missing");
    refused(
        &formwork(&["shape", "run", "--shape", &shape, "--input", "nowhere.json"], ""),
        2,
        "cannot read nowhere.json",
    );
    refused(&formwork(&["shape", "run", "--shape", &shape, "--input", "-"], " "), 2, "the input is empty");
    let broken = temporary("broken.json", "{");
    refused(&formwork(&["shape", "run", "--shape", &shape, "--input", &broken], ""), 2, "broken.json:1:1: ");
    refused(&formwork(&["shape", "check", &shape, &shape, "-d", &input], ""), 2, "checked against one shape");
}

#[test]
fn to_a_schema_and_back() {
    let ran = formwork(&["shape", "to-schema", &example("feature-design.shape")], "");
    let schema: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, &schema["properties"]["risks"]["items"]), (0, &json!({"type": "string"})));
    assert_eq!(formwork(&["check", "-s", &temporary("shape.schema.json", &ran.stdout), "-"], THIRD).code, 0);
    let back = formwork(&["shape", "from-schema"], &ran.stdout);
    assert_eq!((back.code, back.stderr.as_str()), (0, ""));
    assert_eq!(formwork(&["shape", "to-schema"], &back.stdout).stdout, ran.stdout);
    let person = formwork(&["shape", "from-schema", &example("ai-score.schema.json")], "");
    assert!(person.code == 0 && person.stdout.contains("\"score\": "), "{}", person.stdout);
    assert!(
        person.stderr.contains(
            "ai-score.schema.json: #/properties/score: a shape cannot say `maximum`: it is left out"
        ),
        "{}",
        person.stderr
    );
}

#[test]
fn a_text_is_an_input_too() {
    let server = server(&[THIRD]);
    let config = temporary("shape-text.toml", of(&server));
    let shape = example("feature-design.shape");
    let args = ["shape", "run", "--config", &config, "-s", &shape, "-i", "-", "--task", "Design this."];
    assert_eq!(formwork(&args, "A web app.").code, 0);
    assert!(
        prompts(&server)[0].starts_with("Design this.\n\nInput:\nA web app.\n\n"),
        "{:?}",
        prompts(&server)
    );
}

/// The command of the documentation (except the build), with the in-process model.
#[cfg(feature = "local")]
#[test]
fn the_documents_own_command() {
    let root: std::path::PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", ".."].iter().collect();
    let mut runner = Command::new(env!("CARGO_BIN_EXE_shape-runner-cli"));
    runner.args(["--input", "examples/feature-design-input.json"]).current_dir(root);
    runner.env_remove("FORMWORK_MODEL").env_remove("FORMWORK_CONFIG").env("CANDLE_NUM_THREADS", "1");
    runner.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ran = run(runner, "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let design = temporary("designed.json", &ran.stdout);
    assert_eq!(
        formwork(&["shape", "check", &example("feature-design.shape"), "-d", &design], "").code,
        0,
        "{}",
        ran.stdout
    );
    let note = "note: smollm2-135m-instruct, the default model, is very small";
    assert!(ran.stderr.starts_with(note), "{}", ran.stderr);
    assert!(ran.stderr.contains("\nattempt 1/3: asking local\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains(": all validation passes\n"), "{}", ran.stderr);
}

#[test]
fn a_shape_is_a_text_and_the_number_of_retries_an_option() {
    let server = super::config::chat(&["no", "no", "no", "no", "no"]);
    let config = temporary("shape-option.toml", super::config::of(&server));
    let input = temporary("shape-option.txt", "Ada, 36");
    for (retries, calls) in [("0", 1), ("1", 2)] {
        let before = server.received().len();
        let shape = "name  # full name\nborn: date\nage: int";
        let args = ["shape", "run", "-s", shape, "-i", &input, "--max-retries", retries, "--config", &config];
        let ran = formwork(&args, "");
        assert_eq!((ran.code, server.received().len() - before), (1, calls), "{}", ran.stderr);
    }
    let body = String::from_utf8_lossy(&server.received()[0].body).into_owned();
    assert!(body.contains("full name") && body.contains("date"), "{body}");
    let ran = formwork(&["shape", "run", "-s", "name, age: integr", "-i", &input], "");
    assert!(
        ran.code == 2 && ran.stderr.contains("--shape:1:12: there is no type `integr`"),
        "{}",
        ran.stderr
    );
}
