use serde_json::{Value, json};

use crate::{against_schema, example, formwork, refused, temporary};

fn schema() -> String {
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 80}, "nick": {"type": "string"}},
        "required": ["name"],
        "additionalProperties": false,
    });
    temporary("lower.schema.json", schema.to_string())
}

#[test]
fn what_is_sent_is_printed() {
    let ran = formwork(&["lower", "--dialect", "openai", &schema()], "");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let sent: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(sent["required"], json!(["name", "nick"]));
    let ran = formwork(&["lower", "--dialect", "prompt-outline"], r#"{"type": "integer", "minimum": 1}"#);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "integer >= 1\n"));
}

#[test]
fn what_gets_lost_is_explained() {
    let ran = formwork(&["lower", "--dialect", "openai", "--explain", &schema()], "");
    assert_eq!(ran.code, 0);
    assert_eq!(
        ran.stderr,
        "lost: #/properties/name: `maxLength` is not enforced, only checked\n\
         mapped back: #: where one of these is null it is absent: `nick`\n\
         shown to the model: nothing, the provider does that\n"
    );
    let ran = formwork(&["lower", "--dialect", "llama-cpp", "--json", &schema()], "");
    let row = ran.rows().remove(0);
    assert_eq!((ran.code, &row["ok"], &row["enforcement"]), (0, &json!(true), &json!("schema")));
    assert_eq!(row["shown"], json!({"as": "outline", "text": "{\"name\": string, \"nick\"?: string}"}));
    assert_eq!((&row["lift"], &row["losses"]), (&json!([]), &json!([])));
}

#[test]
fn the_schema_is_linted_as_it_stands() {
    let ran = formwork(&["lower", "--dialect", "openai", "--lint", &schema()], "");
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (
            1,
            "#: `required` rejected: every property has to be required: make optional ones nullable\n\
             #/properties/name: `maxLength` rejected: not supported\n"
        )
    );
    let ran = formwork(&["lower", "--dialect", "llguidance", "--lint", &schema()], "");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
}

#[test]
fn rows_are_answered_one_by_one() {
    let rows = [
        json!({"id": 1, "schema": {"type": "array", "items": {"type": "integer"}, "maxItems": 3}})
            .to_string(),
        json!({"id": 2, "schema": {"type": "objekt"}}).to_string(),
        json!({"id": 3, "schema": {"allOf": [{"type": "string"}, {"type": "null"}]}}).to_string(),
        json!({"id": 4}).to_string(),
    ];
    let ran = formwork(&["lower", "--dialect", "ollama", "--jsonl"], rows.join("\n"));
    let answers = ran.rows();
    assert_eq!((ran.code, answers.len()), (1, 4), "{}", ran.stderr);
    assert_eq!(
        answers[0],
        json!({"id": 1, "ok": true, "schema": {"type": "array", "items": {"type": "integer"}, "maxItems": 3}, "losses": []})
    );
    assert_eq!((&answers[1]["ok"], &answers[1]["error"]["class"]), (&json!(false), &json!("schema")));
    assert_eq!(
        answers[2],
        json!({"id": 3, "ok": false, "error": {
            "class": "refused", "pointer": "",
            "message": "the schema cannot be used with ollama: #: no value satisfies it",
        }})
    );
    assert_eq!(answers[3]["error"]["class"], "row");
    let ran = formwork(&["lower", "--dialect", "ollama", "--jsonl", "--explain"], &rows[0]);
    assert_eq!(ran.rows()[0]["shown"]["text"], "[integer, ...]");
    let ran = formwork(&["lower", "--dialect", "openai", "--jsonl", "--lint"], &rows[0]);
    assert_eq!(ran.rows()[0]["findings"][0]["verdict"], "rejected");
}

#[test]
fn an_unknown_dialect_is_answered_with_the_nearest_name_or_all_names() {
    for (name, expected) in [
        ("opnai", "there is no dialect `opnai`: did you mean `openai`?"),
        (
            "esperanto",
            "there are openai, anthropic, gemini, gemini-openapi, azure, mistral, groq, xai, cohere, xgrammar, llama-cpp, ollama, llguidance, json-object, prompt, prompt-outline",
        ),
    ] {
        let ran = formwork(&["lower", "--dialect", name, &schema()], "");
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
}

#[test]
fn a_schema_that_cannot_be_lowered_is_one_message() {
    refused(
        &formwork(&["lower", "--dialect", "openai"], "false"),
        2,
        "standard input: the schema cannot be used with openai",
    );
    refused(&formwork(&["lower", "--dialect", "openai"], "{\"type\": 5}"), 2, "#/type");
    refused(&formwork(&["lower", "--dialect", "openai", "nowhere.json"], ""), 2, "cannot read nowhere.json");
    // With --json, every error is also a result.
    let person = example("person.schema.json");
    for (args, stdin, says) in [
        (vec!["lower", "-d", "openai", "-"], "false", "cannot be used with openai"),
        (vec!["lower", "-d", "openai", "-"], "{", "standard input:1:1: not JSON"),
        (vec!["lower", "-d", "openai", "nowhere.json"], "", "cannot read nowhere.json"),
        (vec!["check", "-s", &person, "nowhere.json"], "", "cannot read nowhere.json"),
    ] {
        let ran = formwork(&[&args[..], &["--json"]].concat(), stdin);
        let row = ran.rows().remove(0);
        let schema = format!("{}-output.json", args[0]);
        assert_eq!(against_schema(&schema, &row), Vec::<String>::new(), "{row}");
        assert_eq!((ran.code, row["error"]["message"].as_str().unwrap().contains(says)), (2, true), "{row}");
        assert!(ran.stderr.contains(says), "{}", ran.stderr);
    }
}

#[test]
fn the_examples_can_be_lowered_for_everybody() {
    for name in ["person.schema.json", "ai-score.schema.json", "structured-answer-lite.schema.json"] {
        for dialect in formwork_dialect::Dialects::builtin().iter() {
            let dialect = dialect.name();
            let ran = formwork(&["lower", "--dialect", dialect, &example(name)], "");
            assert!(ran.code == 0 && ran.stdout.len() > 40, "{dialect} {name}: {}", ran.stderr);
        }
    }
}

#[test]
fn a_schema_that_says_nothing_is_refused_and_a_wrapped_one_unwrapped() {
    for schema in ["{}", "true", r#"{"title": "x"}"#] {
        let ran = formwork(&["lower", "--dialect", "ollama"], schema);
        refused(&ran, 2, "#: every value satisfies the schema");
        assert!(ran.stderr.contains("--any"), "{}", ran.stderr);
        assert_eq!(formwork(&["lower", "--dialect", "ollama", "--any"], schema).code, 0);
        let row = format!(r#"{{"id": 1, "schema": {schema}}}"#);
        let ran = formwork(&["lower", "--dialect", "ollama", "--jsonl"], row);
        assert_eq!((ran.code, &ran.rows()[0]["error"]["class"]), (1, &json!("schema")), "{}", ran.stdout);
    }
    let inner = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
    let tool = json!({"type": "function", "function": {"name": "save", "parameters": inner}});
    let lowered =
        |schema: &serde_json::Value| formwork(&["lower", "--dialect", "openai"], schema.to_string());
    let (plain, wrapped) = (lowered(&inner), lowered(&tool));
    assert_eq!((wrapped.code, wrapped.stdout), (0, plain.stdout));
    assert!(
        wrapped.stderr.contains("unwrapped: the schema is the member #/function/parameters of"),
        "{}",
        wrapped.stderr
    );
}
