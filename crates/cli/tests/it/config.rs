use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::{Ran, against_schema, command, example, formwork, refused, run, temporary};

/// An OpenAI-compatible server with these completions.
pub(crate) fn chat(answers: &[&str]) -> Server {
    Server::start(answers.iter().map(|text| of_text(text)).collect::<Vec<_>>()).unwrap()
}

/// A Chat Completions response with this text.
pub(crate) fn of_text(text: &str) -> Reply {
    let message = json!({"role": "assistant", "content": text});
    let usage = json!({"prompt_tokens": 9, "completion_tokens": 5});
    let body = json!({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage});
    Reply::json(body.to_string())
}

fn config(name: &str, text: &str) -> String {
    temporary(name, text)
}

pub(crate) fn of(server: &Server) -> String {
    format!(
        "[providers.primary]\nkind = \"llama-server\"\nmodel = \"m\"\nstream = false\nbase_url = \"{}/v1\"\n",
        server.url()
    )
}

fn extract(config: &str, more: &[&str]) -> Ran {
    let person = example("person.schema.json");
    formwork(&[&["extract", "--config", config, "--schema", &person], more].concat(), "")
}

#[test]
fn the_answer_keeps_to_the_rules_of_the_schema_and_of_a_file() {
    let rule = json!([{"rule": "quoted", "target": "$.name"}]);
    let person = example("person.schema.json");
    let mut own: Value = serde_json::from_str(&std::fs::read_to_string(&person).unwrap()).unwrap();
    own["x-formwork-rules"] = rule.clone();
    let own = temporary("ruled.schema.json", own.to_string());
    let file = temporary("person.rules.json", rule.to_string());
    let eve = r#"{"name": "Eve", "age": 34, "city": "Lisbon"}"#;
    for given in [
        vec!["--schema", &own],
        vec!["--schema", &person, "--rules", &file],
        vec!["--schema", &person, "--grounded"],
        vec!["--schema", &person, "--grounded=$.name"],
    ] {
        let server = chat(&[eve, MARIA]);
        let config = config(&format!("ruled-{}.toml", server.address().port()), &of(&server));
        let text = "Maria Lindqvist, 34, moved to Lisbon.";
        let ran = formwork(&[&["extract", "--config", &config, text], &given[..]].concat(), "");
        assert_eq!((ran.code, server.received().len()), (0, 2), "{}", ran.stderr);
        assert!(ran.stdout.contains("Maria Lindqvist"), "{}", ran.stdout);
        let sent = String::from_utf8(server.received()[0].body.clone()).unwrap();
        assert!(!sent.contains("x-formwork-rules"), "{sent}");
    }
}

const MARIA: &str = r#"{"name": "Maria Lindqvist", "age": 34, "city": "Lisbon"}"#;

#[test]
fn the_configuration_says_which_target_is_called() {
    let server = chat(&[r#"{"name": "Maria Lindqvist", "age": 340, "city": "Lisbon"}"#, MARIA]);
    let config = config("asked.toml", &format!("[defaults]\ntemperature = 0.9\n{}", of(&server)));
    let ran = extract(&config, &["--json", "Maria Lindqvist, 34, moved to Lisbon."]);
    let row: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, against_schema("extract-output.json", &row)), (0, vec![]), "{row}{}", ran.stderr);
    assert_eq!(row["value"]["age"], 34);
    assert_eq!(row["calls"][0]["target"], "primary", "{row}");
    let sent: Vec<Value> =
        server.received().iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect();
    assert_eq!(sent[0]["temperature"], 0.9);
    assert_eq!(sent[0]["response_format"]["type"], "json_schema");
    assert_eq!(server.received()[0].path, "/v1/chat/completions");
}

#[test]
fn the_next_target_is_called_where_the_first_one_fails() {
    let server = chat(&[MARIA]);
    let text = format!(
        "targets = [\"gone\", \"primary\"]\n[providers.gone]\nkind = \"groq\"\nmodel = \"m\"\napi_key_env = \"\"\n\
         base_url = \"{}/nowhere\"\n{}",
        Server::start([Reply::status(401)]).unwrap().url(),
        of(&server)
    );
    let ran = extract(&config("next.toml", &text), &["Maria Lindqvist, 34, moved to Lisbon."]);
    assert_eq!((ran.code, ran.stdout.trim()), (0, MARIA), "{}", ran.stderr);
}

#[test]
fn a_provider_is_chosen_by_its_name_or_its_kind() {
    let (server, other) = (chat(&[MARIA]), chat(&[]));
    let text = format!("{}\n{}", of(&other).replace("primary", "other"), of(&server));
    let file = config("named.toml", &text);
    assert_eq!(extract(&file, &["--provider", "primary", "--model", "n", "x"]).code, 0);
    let sent: Value = serde_json::from_slice(&server.received()[0].body).unwrap();
    assert_eq!(sent["model"], "n");
    assert!(other.received().is_empty());
    refused(&extract(&file, &["--provider", "primry", "x"]), 2, "did you mean `primary`?");
    refused(&extract(&file, &["--model", "n", "x"]), 2, "name it with --provider");
    let ran = formwork(&["extract", "-s", &example("person.schema.json"), "--provider", "olama", "x"], "");
    refused(&ran, 2, "no provider kind `olama`: did you mean `ollama`?");
}

#[test]
fn the_environment_is_part_of_the_configuration() {
    let server = chat(&[MARIA]);
    let file = config("environment.toml", &of(&server));
    let mut ask = command(&["extract", "-s", &example("person.schema.json"), "x"]);
    ask.env("FORMWORK_CONFIG", &file).env("FORMWORK__PROVIDERS__PRIMARY__MODEL", "7b");
    assert_eq!(run(ask, "").code, 0);
    let sent: Value = serde_json::from_slice(&server.received()[0].body).unwrap();
    assert_eq!(sent["model"], "7b");
    let mut wrong = command(&["extract", "-s", &example("person.schema.json"), "x"]);
    wrong.env("FORMWORK_CONFIG", &file).env("FORMWORK__PROVIDERS__PRIMARY__MODLE", "7b");
    refused(&run(wrong, ""), 2, "there is no `modle` here: did you mean `model`?");
    // Variables have no hyphens and no full stops.
    let server = chat(&[MARIA]);
    let file = config("hyphen.toml", &of(&server).replace("primary", "my-p"));
    let hyphen = |file: &str| {
        let mut ask = command(&["extract", "-s", &example("person.schema.json"), "x"]);
        ask.env("FORMWORK_CONFIG", file).env("FORMWORK__PROVIDERS__MY_P__MODEL", "8b");
        run(ask, "")
    };
    assert_eq!(hyphen(&file).code, 0);
    let sent: Value = serde_json::from_slice(&server.received()[0].body).unwrap();
    assert_eq!(sent["model"], "8b");
    let both = of(&server).replace("primary", "my-p") + &of(&server).replace("primary", "\"my.p\"");
    refused(&hyphen(&config("hyphens.toml", &both)), 2, "reaches both `my-p` and `my.p`");
}

#[test]
fn a_server_on_this_machine_that_is_not_running_is_called_once_unless_retries_are_set() {
    // Nothing listens at the port of a listener that is gone.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let section = format!(
        "[providers.a]\nkind = \"llama-server\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\nretry_delays = [0]\n"
    );
    let calls = |text: &str, more: &[&str]| {
        let file = config(&format!("refused-{port}.toml"), text);
        let ran = extract(&file, &[&["-v", "x"], more].concat());
        assert_eq!(ran.code, 3, "{}", ran.stderr);
        ran.stderr.matches("nothing listens at").count()
    };
    let once = calls(&section, &[]);
    assert_eq!(once, calls(&section, &["--retries", "0"]));
    for (text, more) in [
        (section.clone(), vec!["--retries", "2"]),
        (format!("{section}retries = 2\n"), vec![]),
        (format!("[defaults]\nretries = 2\n{section}"), vec![]),
        (format!("{section}{}", section.replace("[providers.a]", "[providers.b]")), vec![]),
    ] {
        assert!(calls(&text, &more) > once, "{text}");
    }
}

#[test]
fn a_bad_configuration_is_one_message_with_its_place() {
    for (text, says) in [
        ("[providers.a\n", "bad.toml:1:13: "),
        (
            "[providers.a]\nkind = \"ollama\"\nmodel = \"m\"\nnum_ctxt = 5\n",
            "bad.toml:4:1: there is no `num_ctxt`",
        ),
        ("", "no provider is configured"),
        (
            "[providers.a]\nkind = \"openai\"\nmodel = \"m\"\napi_key_env = \"FORMWORK_NO_SUCH_KEY\"\n",
            "the environment variable `FORMWORK_NO_SUCH_KEY` is not set",
        ),
    ] {
        refused(&extract(&config("bad.toml", text), &["x"]), 2, says);
    }
    refused(&extract("no-such-file.toml", &["x"]), 2, "no-such-file.toml: ");
}

#[test]
fn a_server_that_is_not_there_is_exit_code_3() {
    let file = config(
        "gone.toml",
        "[providers.a]\nkind = \"ollama\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:9\"\n",
    );
    let ran = extract(&file, &["--timeout", "0.5", "x"]);
    assert!(ran.code == 3 || ran.stderr.contains("deadline"), "{} {}", ran.code, ran.stderr);
    assert!(ran.stderr.contains("127.0.0.1:9"), "{}", ran.stderr);
}

pub(crate) fn answer(text: &str) -> Reply {
    let message = json!({"role": "assistant", "content": text});
    Reply::json(json!({"choices": [{"message": message, "finish_reason": "stop"}]}).to_string())
}

#[test]
fn a_wrong_command_line_is_reported_with_what_to_add() {
    let person = example("person.schema.json");
    let here = super::folder().join("nothing-here");
    std::fs::create_dir_all(here.join(".git")).unwrap();
    let mut cases = vec![
        (
            vec!["extract", "-s", &person, "--provider", "ollama", "x"],
            "--provider ollama needs a model: add --model NAME",
        ),
        (vec!["chat", "--provider", "groq", "x"], "--provider groq needs a model: add --model NAME"),
        (vec!["extract", "-s", "name, age: itn", "x"], "--schema:1:12: there is no type `itn`"),
    ];
    if cfg!(feature = "local") {
        for model in ["qwen3:8b", "qwen2.5:7b"] {
            cases.push((
                vec!["extract", "-s", &person, "--model", model, "x"],
                "a server may have it: -m ollama/qwen",
            ));
        }
    }
    for (args, says) in cases {
        let mut command = command(&args);
        command.current_dir(&here).env("GROQ_API_KEY", "x");
        let ran = run(command, "");
        // A mistake in a shape is shown with its line and a caret.
        let lines = if says.starts_with("--schema") { 4 } else { 1 };
        assert!(ran.stdout.is_empty() && ran.stderr.lines().count() == lines, "{args:?}: {}", ran.stderr);
        assert!(ran.code > 1 && ran.stderr.contains(says), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn a_line_that_is_no_row_is_named_by_its_place_alone() {
    let server = chat(&[MARIA]);
    let config = config("no-row.toml", &of(&server));
    let person = example("person.schema.json");
    for (line, says) in [
        ("Dear all,", "rows.jsonl:2: this line is not a JSON object"),
        ("{\"id\": 1,", "rows.jsonl:2: this line is not a JSON object: it breaks at column 9"),
        ("[1]", "rows.jsonl:2: this line is not a JSON object"),
        ("7", "rows.jsonl:2: this line is not a JSON object"),
        ("{\"id\": 1}", "rows.jsonl:2: missing field `input`"),
    ] {
        let rows = temporary("rows.jsonl", format!("\n{line}\n"));
        let extract: [&str; 7] = ["extract", "-s", &person, "--config", &config, "--jsonl", "--file"];
        for command in [&extract[..], &["read", "--jsonl"]] {
            let ran = formwork(&[command, &[&rows]].concat(), "");
            let row = ran.rows().remove(0);
            let message = row["error"]["message"].as_str().unwrap();
            assert_eq!((ran.code, message.replace(&rows, "rows.jsonl").as_str()), (1, says), "{row}");
        }
    }
}

#[test]
fn a_provider_without_its_key_is_omitted_where_another_one_can_be_called() {
    let keyless = |name: &str| {
        format!(
            "[providers.{name}]\nkind = \"openai\"\nmodel = \"m\"\napi_key_env = \"FORMWORK_NO_SUCH_KEY\"\n"
        )
    };
    for targets in [["primary", "keyless"], ["keyless", "primary"]] {
        for command in super::exits::commands() {
            let server = chat(&[MARIA]);
            let text = format!("targets = {targets:?}\n{}{}", of(&server), keyless("keyless"));
            let file = config(&format!("keyless-{}.toml", server.address().port()), &text);
            let command: Vec<&str> = command.iter().map(String::as_str).collect();
            let ran = formwork(&[&command[..], &["--config", &file, "--timeout", "5"]].concat(), "Maria");
            assert_ne!(ran.code, 2, "{command:?}: {}", ran.stderr);
            assert!(!server.received().is_empty(), "{command:?}: {}", ran.stderr);
            let warnings: Vec<&str> =
                ran.stderr.lines().filter(|line| line.starts_with("warning: ")).collect();
            let [warnings] = warnings[..] else { panic!("{command:?}: {}", ran.stderr) };
            assert!(
                warnings.contains("`keyless`") && warnings.contains("`FORMWORK_NO_SUCH_KEY` is not set"),
                "{warnings}"
            );
        }
    }
    let none = config("all-keyless.toml", &(keyless("a") + &keyless("b")));
    refused(&extract(&none, &["x"]), 2, "`FORMWORK_NO_SUCH_KEY` is not set");
}
