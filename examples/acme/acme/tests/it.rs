//! The binary `acme`: a provider and a dialect from outside of Formwork's repository work like those within.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use formwork::golden::Folder;
use formwork::providers::Providers;
use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

/// Formwork's folder of examples.
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A row about a model of Acme, as a company writes it for its own models.
const MODELS: &str = r#"
[[model]]
match = "anvil-*"
family = "Anvil"
provider = "acme"
native = "schema"
dialect = "acme"
price = { input = 0.5, output = 1.5 }
source = "https://acme.example/models"
checked = "2026-11-21"
"#;

/// A folder with a `formwork.toml` that asks a server of Acme.
struct Project {
    folder: PathBuf,
    server: Server,
}

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Project {
    /// Starts a server that gives these replies, and writes the configuration with these further lines.
    fn new(name: &str, replies: impl IntoIterator<Item = Reply>, lines: &str) -> Self {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("acme-{name}-{}", std::process::id()));
        let server = Server::start(replies).unwrap();
        let url = server.url();
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("models.toml"), MODELS).unwrap();
        let section =
            format!("[providers.anvil]\nkind = \"acme\"\nmodel = \"anvil-1\"\nbase_url = \"{url}\"");
        fs::write(folder.join("formwork.toml"), format!("registry = \"models.toml\"\n{section}\n{lines}\n"))
            .unwrap();
        Self { folder, server }
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acme"));
        // The test ignores the user's configuration and keys, and has its own cache.
        command.env_clear().env("HOME", &self.folder).env("XDG_CACHE_HOME", self.folder.join("cache"));
        let command = command.env("ACME_KEY", "sk-acme-1").current_dir(&self.folder);
        let output = command.args(["--color", "never"]).args(arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.folder);
    }
}

/// A document that Acme's server answers with.
fn document(text: &str) -> Reply {
    let tokens = json!({"read": 30, "written": 9});
    Reply::json(json!({"reply": text, "stopped": "end", "tokens": tokens, "engine": "anvil-1"}).to_string())
}

/// A stream that Acme's server answers with.
fn stream(pieces: &[&str]) -> Reply {
    let end = json!({"stopped": "end", "tokens": {"read": 30, "written": 9}});
    let lines = pieces.iter().map(|piece| json!({"piece": piece})).chain([end]);
    let lines: Vec<String> = lines.map(|line| format!("{line}\n")).collect();
    Reply::pieces(lines).with_header("content-type", "application/x-ndjson")
}

#[test]
fn it_extracts_from_a_stream_and_from_a_document_in_the_dialect_of_its_own() {
    let schema = format!("{EXAMPLES}/person.schema.json");
    let pieces = ["{\"name\": \"Maria Lindqvist\", ", "\"age\": 34, \"city\": \"Lisbon\"}"];
    for (name, reply) in [("stream", stream(&pieces)), ("document", document(&pieces.concat()))] {
        let lines = "api_key_env = \"ACME_KEY\"\nmodes = [\"acme\", \"prompt\"]";
        let project = Project::new(name, [reply], lines);
        let text = "Maria Lindqvist, 34, moved to Lisbon last spring.";
        let ran = project.run(&["extract", "--schema", &schema, text]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stdout.contains("Maria Lindqvist"), "{}", ran.stdout);
        let received = project.server.received();
        let body: Value = serde_json::from_slice(&received[0].body).unwrap();
        assert_eq!(received[0].header("x-acme-key"), Some("sk-acme-1"));
        assert_eq!(body["shape"]["schema"]["properties"]["name"]["type"], "string", "{body}");
    }
}

#[test]
fn every_command_that_asks_models_asks_acme() {
    let example = |name: &str| format!("{EXAMPLES}/{name}");
    let (schema, wallet) = (example("person.schema.json"), example("wallets/casual.json"));
    let (shape, input) = (example("feature-design.shape"), example("feature-design-input.json"));
    let (rubric, skills) = (example("skills/rubrics/reply.yaml"), example("skills"));
    let commands: [&[&str]; 8] = [
        &["extract", "--schema", &schema, "Maria, 34"],
        &["chat", "What is JSON?"],
        &["shape", "run", "--shape", &shape, "--input", &input],
        &["review", "--rubric", &rubric, &schema],
        &["skill", "run", "contact", "--dir", &skills, "--input", "text=Maria lives in Lisbon."],
        &["skill", "report", "contact", "--dir", &skills],
        &["oracle", "score", &wallet],
        &["doctor"],
    ];
    for command in commands {
        let project = Project::new("commands", [document("{}")], "");
        let ran = project.run(command);
        let received = project.server.received();
        assert!(!received.is_empty(), "{command:?}: {}", ran.stderr);
        assert!(matches!(ran.code, Some(0 | 1 | 3)), "{command:?}: {:?}, {}", ran.code, ran.stderr);
        assert!(received.iter().all(|request| request.path == "/v2/completions"), "{command:?}");
    }
}

#[test]
fn doctor_says_what_acme_enforces() {
    for (word, code, expected) in [
        ("serinus-7431", 0, "enforces schemas while decoding"),
        ("banana", 3, "it ignores the schema that is sent"),
    ] {
        let project = Project::new(word, [document(&json!({"word": word}).to_string())], "");
        let ran = project.run(&["doctor"]);
        assert_eq!(ran.code, Some(code), "{}", ran.stderr);
        assert!(ran.stdout.starts_with("anvil (acme, anvil-1)"), "{}", ran.stdout);
        assert!(
            ran.stdout.contains("output modes, strictest first: acme, json-object, prompt"),
            "{}",
            ran.stdout
        );
        assert!(ran.stdout.contains(expected), "{}", ran.stdout);
    }
}

#[test]
fn the_dialect_lowers_lints_and_is_in_the_help() {
    let project = Project::new("lower", [], "");
    let schema = json!({
        "type": "object",
        "properties": {
            "day": {"type": "string", "format": "date"},
            "time": {"type": "string", "format": "time"},
            "price": {"type": "number", "multipleOf": 0.01},
        },
        "required": ["day", "time", "price"],
    });
    fs::write(project.folder.join("schema.json"), schema.to_string()).unwrap();
    let ran = project.run(&["lower", "--dialect", "acme", "schema.json"]);
    let sent: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(sent["properties"]["day"]["format"], "date");
    assert_eq!(sent["properties"]["price"], json!({"type": "number"}));
    assert_eq!(sent["properties"]["time"].get("format"), None);
    let ran = project.run(&["lower", "--dialect", "acme", "--lint", "schema.json"]);
    let found = "#/properties/time: `format` rejected: `date` is the only format\n\
                 #/properties/price: `multipleOf` ignored: numbers of any step come back\n";
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), found));
    let ran = project.run(&["lower", "--help"]);
    assert!(ran.stdout.contains("  acme            Acme's own API\n"), "{}", ran.stdout);
    let ran = project.run(&["lower", "--dialect", "acne", "schema.json"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("there is no dialect `acne`: did you mean `acme`?"), "{}", ran.stderr);
}

#[test]
fn mistakes_in_its_section_are_shown_with_their_line() {
    for (lines, expected) in [
        ("base_urll = \"x\"", "formwork.toml:6:1: there is no `base_urll` here: did you mean `base_url`?"),
        ("stream = 3", "formwork.toml:6:10: "),
        (
            "modes = [\"acne\"]",
            "formwork.toml:2:1: provider `anvil`: there is no dialect `acne`: did you mean `acme`?",
        ),
        ("api_key_env = \"ACME_NO_KEY\"", "the environment variable `ACME_NO_KEY` is not set"),
    ] {
        let project = Project::new("mistakes", [], lines);
        let ran = project.run(&["chat", "What is JSON?"]);
        assert_eq!(ran.code, Some(2), "{lines}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{lines}: {}", ran.stderr);
    }
}

#[test]
fn the_schema_for_editors_has_the_section() {
    let schema = formwork::config::schema(&acme_provider::add_to(Providers::builtin()));
    let schema = formwork_schema::compile(&schema).unwrap();
    let file = |more: Value| {
        let mut section = json!({"kind": "acme", "model": "anvil-1", "modes": ["acme", "prompt"]});
        section.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"providers": {"anvil": section}})
    };
    assert!(schema.is_valid(&file(json!({"stream": false, "api_key_env": "ACME_KEY"}))));
    assert!(
        !schema.is_valid(&file(json!({"stream": "no"})))
            && !schema.is_valid(&file(json!({"streams": false})))
    );
}

#[test]
fn golden_files_know_dialects_from_outside() {
    let schema = json!({
        "type": "object",
        "properties": {
            "day": {"type": "string", "format": "date"},
            "hour": {"type": "string", "format": "time"},
            "price": {"type": "number", "multipleOf": 0.5},
        },
        "required": ["day", "hour", "price"],
        "additionalProperties": false,
    });
    let folder = || Folder::new("schemas").document("offer", schema.clone());
    let providers = acme_provider::add_to(Providers::builtin());
    let files = folder().with_dialects(providers.dialects().clone()).lowered("acme").files().unwrap();
    assert_eq!(files.keys().collect::<Vec<_>>(), ["offer.acme.json", "offer.json"]);
    for (word, is_kept) in [("\"date\"", true), ("\"time\"", false), ("multipleOf", false)] {
        assert_eq!(files["offer.acme.json"].contains(word), is_kept, "{word}: {}", files["offer.acme.json"]);
        assert!(files["offer.json"].contains(word), "{word}");
    }
    let error = folder().lowered("acme").files().unwrap_err().to_string();
    assert!(error.contains("there is no dialect `acme`"), "{error}");
}

/// A part with its number, whose last digit is its check digit.
fn part_schema() -> Value {
    let rule = json!({"rule": "custom", "name": "check-digit", "target": "$.part"});
    json!({
        "type": "object",
        "properties": {"part": {"type": "string"}},
        "required": ["part"],
        "x-formwork-rules": [rule],
    })
}

#[test]
fn a_rule_of_its_own_judges_answers_and_documents() {
    let wrong = document(r#"{"part": "1234"}"#);
    let project = Project::new("rule", [wrong, document(r#"{"part": "1236"}"#)], "");
    fs::write(project.folder.join("part.json"), part_schema().to_string()).unwrap();
    fs::write(project.folder.join("found.json"), r#"{"part": "1234"}"#).unwrap();
    let ran = project.run(&["extract", "--schema", "part.json", "The part 1236."]);
    assert_eq!((ran.code, ran.stdout.contains("1236")), (Some(0), true), "{} {}", ran.stdout, ran.stderr);
    let received = project.server.received();
    let correction = String::from_utf8_lossy(&received[1].body);
    assert!(correction.contains("expected 1236"), "{correction}");
    let ran = project.run(&["check", "--schema", "part.json", "found.json"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("check-digit") || ran.stdout.contains("check-digit"), "{}", ran.stderr);

    let misspelt = part_schema().to_string().replace("check-digit", "chek-digit");
    fs::write(project.folder.join("part.json"), misspelt).unwrap();
    let ran = project.run(&["check", "--schema", "part.json", "found.json"]);
    let expected =
        "part.json: #/x-formwork-rules/0: there is no rule `chek-digit`: did you mean `check-digit`?";
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
}

#[test]
fn a_retry_policy_of_its_own_is_named_in_the_configuration() {
    let wrong = || document(r#"{"name": 1, "age": "old", "city": 2}"#);
    let schema = format!("{EXAMPLES}/person.schema.json");
    let lines = "[defaults]\nretry_policy = \"twice\"";
    let project = Project::new("policy", [wrong()], lines);
    let ran = project.run(&["extract", "--schema", &schema, "Maria"]);
    assert_eq!((ran.code, project.server.received().len()), (Some(1), 2), "{}", ran.stderr);
    let project = Project::new("policies", [wrong()], &lines.replace("twice", "twise"));
    let ran = project.run(&["extract", "--schema", &schema, "Maria"]);
    let expected = "formwork.toml:7:16: there is no retry policy `twise`: did you mean `twice`?";
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
}

#[test]
fn a_subcommand_of_its_own_is_in_the_help_and_runs() {
    let project = Project::new("part", [], "");
    let ran = project.run(&["--help"]);
    let mut lines = ran.stdout.lines().map(str::trim);
    let is_part =
        |line: &str| line.starts_with("part ") && line.ends_with(" Append the check digit to a part number");
    assert!(lines.any(is_part), "{}", ran.stdout);
    let ran = project.run(&["part", "123"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "1236\n"));
    let ran = project.run(&["part"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("<number>"), "{}", ran.stderr);
}
