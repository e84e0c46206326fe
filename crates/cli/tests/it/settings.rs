//! Lists, aliases, commands for keys, and the commands that write, show and trust configurations.

use std::process::Command;

use serde_json::{Value, json};

use super::config::{chat, of};
use super::{Ran, against_schema, command, example, folder, refused, run, temporary};

const MARIA: &str = r#"{"name": "Maria Lindqvist", "age": 34, "city": "Lisbon"}"#;

/// A command in its own folder and with its own home folder. `name` is different for each test.
fn at_home(name: &str, args: &[&str]) -> Command {
    let home = folder().join(format!("home-{name}"));
    std::fs::create_dir_all(home.join("work/.git")).unwrap();
    let mut command = command(args);
    command.current_dir(home.join("work")).env("HOME", &home).env_remove("XDG_CONFIG_HOME");
    command
}

/// Writes `formwork.toml` into the folder of a test.
fn in_work(name: &str, text: &str) {
    let folder = folder().join(format!("home-{name}/work"));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("formwork.toml"), text).unwrap();
}

/// Two providers, a list of both that takes turns, and aliases.
fn two(a: &str, b: &str) -> String {
    let section = |name, url| {
        format!(
            "[providers.{name}]\nkind = \"llama-server\"\nmodel = \"m\"\nstream = false\nbase_url = \"{url}/v1\"\n"
        )
    };
    format!(
        "targets = [\"a\"]\n{}{}[lists.turns]\ntargets = [\"a\", \"b\"]\norder = \"round-robin\"\n[lists.backup]\ntargets = [\"b\"]\n\
         [aliases]\nfast = \"b\"\nboth = \"turns\"\nsmollm2-135m = \"b\"\n",
        section("a", a),
        section("b", b)
    )
}

#[test]
fn a_list_an_alias_and_the_default_say_which_target_is_called() {
    let rows = "{\"input\": \"Maria\"}\n".repeat(4);
    for (name, args, requests) in [
        ("default", vec![], [4, 0]),
        ("provider", vec!["--provider", "b"], [0, 4]),
        ("list", vec!["--provider", "turns"], [2, 2]),
        ("list of one", vec!["--provider", "backup"], [0, 4]),
        ("alias of a provider", vec!["--provider", "fast"], [0, 4]),
        ("alias as a model", vec!["-m", "fast"], [0, 4]),
        ("alias of a list", vec!["-m", "both"], [2, 2]),
        ("alias with the name of a local model", vec!["-m", "smollm2-135m"], [0, 4]),
    ] {
        let servers = [chat(&[MARIA; 4]), chat(&[MARIA; 4])];
        let file = temporary(
            &format!("lists-{}.toml", servers[0].address().port()),
            two(&servers[0].url(), &servers[1].url()),
        );
        let person = example("person.schema.json");
        let fixed = ["extract", "--config", &file, "--schema", &person, "--jsonl", "--concurrency", "1"];
        let ran = super::formwork(&[&fixed[..], &args].concat(), &rows);
        assert_eq!((ran.code, ran.rows().len()), (0, 4), "{name}: {}", ran.stderr);
        assert_eq!(servers.map(|server| server.received().len()), requests, "{name}");
    }
    let file = temporary("lists-none.toml", two("http://localhost:1", "http://localhost:1"));
    let person = example("person.schema.json");
    let ask = |more: &[&str]| {
        super::formwork(&[&["extract", "--config", &file, "--schema", &person, "x"], more].concat(), "")
    };
    refused(&ask(&["--provider", "turn"]), 2, "did you mean `turns`?");
    refused(&ask(&["--provider", "turns", "--model", "m"]), 2, "--model needs one provider");
}

#[cfg(unix)]
#[test]
fn a_file_that_was_found_runs_no_program_until_it_is_trusted() {
    let name = "trust";
    let extract = |server: &formwork_testkit::server::Server| -> Ran {
        let text = of(server) + "api_key_command = [\"echo\", \"printed-key\"]\n";
        in_work(name, &text);
        run(at_home(name, &["extract", "--schema", &example("person.schema.json"), "Maria"]), "")
    };
    let config = |args: &[&str]| run(at_home(name, &[&["config"], args].concat()), "");
    let server = chat(&[MARIA, MARIA]);
    let ran = extract(&server);
    refused(&ran, 2, "`api_key_command` runs a program");
    assert!(ran.stderr.contains("formwork config trust") && server.received().is_empty(), "{}", ran.stderr);
    let output = config(&["show"]);
    assert!(output.code == 2 && output.stdout.contains("it may run no programs"), "{}", output.stdout);
    assert_eq!(config(&["trust"]).code, 0);
    assert_eq!(extract(&server).code, 0, "trusted");
    assert_eq!(server.received()[0].header("authorization"), Some("Bearer printed-key"));
    // A changed text counts as a different file.
    let path = folder().join(format!("home-{name}/work/formwork.toml"));
    std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + "# more\n").unwrap();
    assert_eq!(config(&["show"]).code, 2);
    let person = example("person.schema.json");
    let named = at_home(name, &["extract", "--config", "formwork.toml", "--schema", &person, "Maria"]);
    assert_eq!(run(named, "").code, 0, "a file that is named is trusted");
    assert_eq!([config(&["trust"]).code, config(&["show"]).code], [0, 0]);
    let removed = [config(&["trust", "--remove"]).code, config(&["trust", "--remove"]).code];
    assert_eq!(removed, [0, 1]);
    refused(&config(&["trust", "none.toml"]), 2, "none.toml");
}

/// A command in the folder of a test, with secrets in its environment.
fn with_secrets(name: &str, args: &[&str]) -> Command {
    let mut command = at_home(name, args);
    command
        .env("TEAM_SECRET", "team-secret-0123")
        .env("OPENAI_API_KEY", "openai-key-0123")
        .env_remove("OPENAI_BASE_URL");
    command
}

#[test]
fn a_file_that_was_found_sends_secrets_to_vendors_and_this_machine_alone_until_it_is_trusted() {
    let name = "secrets";
    let show = |section: &str, more: &[&str]| {
        in_work(name, &format!("[providers.a]\nmodel = \"m\"\n{section}\n"));
        run(with_secrets(name, &[&["config", "show"], more].concat()), "")
    };
    for (section, refused) in [
        ("kind = \"openai\"", None),
        ("kind = \"openai\"\nbase_url = \"https://api.openai.com/v1/\"", None),
        ("kind = \"openai\"\nbase_url = \"http://127.0.0.1:1/v1\"\napi_key_env = \"TEAM_SECRET\"", None),
        ("kind = \"openai\"\nbase_url = \"https://foreign.example/v1\"\napi_key_env = \"\"", None),
        ("kind = \"ollama\"\nbase_url = \"http://foreign.example\"", None),
        (
            "kind = \"openai\"\nbase_url = \"https://foreign.example/v1\"",
            Some(
                "it sends the secret in `OPENAI_API_KEY` to https://foreign.example/v1, or set `api_key_env",
            ),
        ),
        (
            "kind = \"openai\"\nbase_url = \"http://api.openai.com/v1\"",
            Some("it sends the secret in `OPENAI_API_KEY` to http://api.openai.com/v1"),
        ),
        (
            "kind = \"ollama\"\nbase_url = \"http://f%6Freign.example\"\nsecret_headers = { x-a = \"TEAM_SECRET\" }",
            Some("it sends the secret in `TEAM_SECRET` to http://f%6Freign.example"),
        ),
        (
            "kind = \"openai\"\nproxy = \"http://me:pass-word@foreign.example:8080\"",
            Some("`OPENAI_API_KEY` through the proxy http://[hidden]@foreign.example:8080"),
        ),
    ] {
        let ran = show(section, &[]);
        let printed = ran.stdout + &ran.stderr;
        match refused {
            None => assert!(!printed.contains("config trust`"), "{section}: {printed}"),
            Some(says) => {
                assert!(
                    printed.contains(says) && printed.contains("formwork config trust"),
                    "{section}: {printed}"
                );
                assert_eq!(show(section, &["--config", "formwork.toml"]).code, 0, "{section}: named");
                let trust = run(with_secrets(name, &["config", "trust"]), "");
                assert!(
                    trust.code == 0 && trust.stdout.contains(says.split(", or").next().unwrap()),
                    "{}",
                    trust.stdout
                );
                assert_eq!(run(with_secrets(name, &["config", "show"]), "").code, 0, "{section}: trusted");
                assert_eq!(run(with_secrets(name, &["config", "trust", "--remove"]), "").code, 0);
            }
        }
        assert!(!printed.contains("secret-0123") && !printed.contains("key-0123"), "{printed}");
        assert!(!printed.contains("pass-word"), "{printed}");
    }
    // The address of the user's own environment is not the file's.
    in_work(name, "[providers.a]\nkind = \"openai\"\nmodel = \"m\"\n");
    let mut own = with_secrets(name, &["config", "show"]);
    own.env("OPENAI_BASE_URL", "https://gateway.example/v1");
    assert_eq!(run(own, "").code, 0);
}

#[test]
fn a_key_in_the_place_of_its_variable_is_never_printed() {
    let key = "sk-proj-0123456789abcdef";
    for section in [
        format!("api_key_env = \"{key}\""),
        format!("api_key_env = \"\"\nsecret_headers = {{ x-team = \"{key}\" }}"),
        format!("secret_headers = \"{key}\""),
        format!("api_key_env = \"\"\nheaders = {{ authorization = \"{key}\\u0007\" }}"),
        format!("api_key = \"{key}\""),
    ] {
        let text = format!(
            "[providers.a]\nkind = \"openai\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:1\"\n{section}\n"
        );
        let file = temporary("typed-key.toml", text);
        for args in
            [vec!["config", "show"], vec!["doctor"], vec!["config", "trust"], vec!["extract", "-s", "a", "x"]]
        {
            let mut args = args;
            if args[1..] != ["trust"] {
                args.extend(["--config", &file]);
            } else {
                args.push(&file);
            }
            let ran = run(at_home("typed", &args), "");
            assert!(
                !(ran.stdout.clone() + &ran.stderr).contains("0123456789abcdef"),
                "{args:?}: {}{}",
                ran.stdout,
                ran.stderr
            );
            assert!(ran.code == 2 || args.contains(&"trust"), "{args:?}: {}", ran.stderr);
        }
    }
    let ran = run(at_home("typed", &["init", "openai/m", "--key-env", key, "--file", "typed.toml"]), "");
    refused(&ran, 2, "--key-env takes the name of an environment variable");
    assert!(!ran.stderr.contains(key), "{}", ran.stderr);
}

#[test]
fn show_prints_each_setting_with_its_source_and_no_secret() {
    let text = "targets = [\"b\"]\n\n[defaults]\ntemperature = 0.2\n\n[providers.a]\nkind = \"openai\"\nmodel = \"gpt-4o-mini\"\n\
                api_key_env = \"FORMWORK_NO_SUCH_KEY\"\n\n[providers.b]\nkind = \"ollama\"\nmodel = \"qwen3:8b\"\n\
                base_url = \"http://user:pass-word@h:11434\"\nprobe = false\nproxy = \"http://me:proxy-secret@p\"\n\
                headers = { x-api-key = \"header-secret\", x-team = \"forms\" }\n";
    let file = temporary("show.toml", text);
    let show = |more: &[&str]| {
        let mut command = command(&[&["config", "show", "--config", &file], more].concat());
        command.env("FORMWORK__PROVIDERS__A__MODEL", "gpt-4o").env_remove("OPENAI_BASE_URL");
        run(command, "")
    };
    let ran = show(&[]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    for line in [
        "defaults.temperature = 0.2",
        "# line 4",
        "providers.a.model = \"gpt-4o\"",
        "# the environment variable FORMWORK__PROVIDERS__A__MODEL",
        "base_url = \"http://[hidden]@h:11434\"",
        "providers.b.headers.x-team = \"forms\"",
        "cannot be used: ",
        "`FORMWORK_NO_SUCH_KEY` is not set",
    ] {
        assert!(ran.stdout.contains(line), "{line}\n{}", ran.stdout);
    }
    // The sources of what no setting decides.
    let usable = temporary(
        "show-modes.toml",
        "[providers.b]\nkind = \"ollama\"\nmodel = \"qwen3:8b\"\nprobe = false\n",
    );
    let modes = super::formwork(&["config", "show", "--config", &usable], "").stdout;
    assert!(modes.contains("json-object, prompt (the registry's row `Ollama, GGUF`, checked on "), "{modes}");
    for secret in ["pass-word", "proxy-secret", "header-secret"] {
        assert!(!(ran.stdout.clone() + &ran.stderr).contains(secret), "{}", ran.stdout);
    }
    let row: Value = serde_json::from_str(&show(&["--json"]).stdout).unwrap();
    assert_eq!(against_schema("config-output.json", &row), [""; 0]);
    assert_eq!((&row["providers"][0]["name"], &row["trusted"]), (&json!("b"), &json!(true)));
    let none = run(at_home("none", &["config", "show"]), "");
    assert_eq!(none.code, 0, "{}", none.stderr);
    assert!(
        none.stdout.contains("none was found") && none.stdout.contains("local: local"),
        "{}",
        none.stdout
    );
}

#[test]
fn init_writes_a_file_that_works_and_replaces_none() {
    for (at, (args, settings)) in [
        (vec!["local"], vec!["targets = [\"local\"]", "kind = \"local\""]),
        (vec!["openai/gpt-4o-mini"], vec!["kind = \"openai\"", "model = \"gpt-4o-mini\""]),
        (
            vec![
                "ollama/qwen3:8b",
                "ollama/llama3:8b",
                "local",
                "--base-url",
                "http://h:1",
                "--key-env",
                "K",
            ],
            vec![
                "targets = [\"ollama\", \"ollama-2\", \"local\"]",
                "base_url = \"http://h:1\"",
                "api_key_env = \"K\"",
            ],
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("init-{at}");
        let file = folder().join(format!("home-{name}/work/formwork.toml"));
        _ = std::fs::remove_file(&file);
        let ran = run(at_home(&name, &[&["init"], &args[..]].concat()), "");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stdout.contains("wrote formwork.toml") && ran.stderr.contains("formwork doctor"));
        let text = std::fs::read_to_string(&file).unwrap();
        for setting in settings {
            assert!(text.contains(setting), "{setting}\n{text}");
        }
        refused(&run(at_home(&name, &["init", "local"]), ""), 2, "exists: add --force");
        assert_eq!(run(at_home(&name, &["init", "local", "--force"]), "").code, 0);
        assert!(std::fs::read_to_string(&file).unwrap().contains("[providers.local]"));
    }
    let init = |args: &[&str]| run(at_home("init-bad", &[&["init"], args].concat()), "");
    refused(&init(&[]), 2, "the command asks questions only on a terminal");
    refused(&init(&["opnai/x"]), 2, "did you mean `openai`?");
    refused(&init(&["gpt-4o"]), 2, "names no kind and model");
    assert!(!folder().join("home-init-bad/work/formwork.toml").exists(), "nothing is written");
}
