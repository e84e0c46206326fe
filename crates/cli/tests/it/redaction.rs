//! `[redaction]` of the configuration: where the user's patterns hold, and where not.

use std::fs;

use super::config::{chat as server, of};
use super::{command, example, folder, formwork, refused, run, temporary};

const WRONG: &str = r#"{"name": "Maria 555-1234", "age": "old", "city": "Lisbon"}"#;
const RIGHT: &str = r#"{"name": "Maria 555-1234", "age": 34, "city": "Lisbon"}"#;
const RULES: &str = "[redaction]\npatterns = ['\\d{3}-\\d{4}']\n";

#[test]
fn patterns_hold_for_messages_ledgers_and_cassettes_and_not_for_answers() {
    let person = example("person.schema.json");
    for (name, rules, holds) in [("with", RULES, true), ("without", "", false)] {
        let server = server(&[WRONG, RIGHT]);
        let (ledger, tape) =
            (folder().join(format!("redaction-{name}.db")), format!("redaction-{name}.json"));
        for file in [&ledger, &folder().join(&tape)] {
            let _ = fs::remove_file(file);
        }
        let recorded = format!("{}record = {tape:?}\n{rules}", of(&server));
        let config = temporary(&format!("redaction-{name}.toml"), recorded);
        let ledger = ledger.display().to_string();
        let ask = |config: &str, more: &[&str]| {
            let args = ["extract", "--config", config, "--schema", &person, "-v"];
            formwork(&[&args[..], more, &["Maria, 555-1234, moved."]].concat(), "")
        };
        let ran = ask(&config, &["--ledger", &ledger, "--ledger-bodies"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stdout.contains("555-1234"), "{}", ran.stdout);
        // The service is sent the text as it is.
        assert!(String::from_utf8_lossy(&server.received()[0].body).contains("555-1234"));
        let runs = formwork(&["runs", "export", "--ledger", &ledger], "").stdout;
        let cassette = fs::read_to_string(folder().join(&tape)).unwrap();
        for (place, text) in [("-v", &ran.stderr), ("ledger", &runs), ("cassette", &cassette)] {
            assert_eq!(text.contains("555-1234"), !holds, "{place} {name}: {text}");
            assert_eq!(text.contains("[redacted]"), holds, "{place} {name}: {text}");
        }
        let replayed = format!("{}cassette = {tape:?}\n{rules}", of(&server));
        let ran = ask(&temporary(&format!("redaction-{name}-replay.toml"), replayed), &[]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(ran.stdout.contains("[redacted]"), holds, "{}", ran.stdout);
    }
}

#[test]
fn keys_of_the_configuration_are_in_no_message_and_no_ledger_and_the_model_is_sent_them() {
    // Without the prefix of a vendor; the second one is `Basic` with `user:` and the key, in base64.
    const KEY: &str = "8f14e45fceea167a5a36dedd4bea2543";
    const BASIC: &str = "dXNlcjo4ZjE0ZTQ1ZmNlZWExNjdhNWEzNmRlZGQ0YmVhMjU0Mw==";
    let person = example("person.schema.json");
    for (nth, (setting, text)) in [
        ("api_key_env = \"REDACTION_KEY\"", KEY),
        ("api_key_env = \"REDACTION_KEY\"", BASIC),
        ("api_key_command = [\"printenv\", \"REDACTION_KEY\"]", KEY),
        ("secret_headers = { x-team = \"REDACTION_KEY\" }", KEY),
    ]
    .into_iter()
    .enumerate()
    {
        let answer = format!(r#"{{"name": "Maria {text}", "age": 34, "city": "Lisbon"}}"#);
        let server = server(&[&answer]);
        let config = temporary(&format!("redaction-key-{nth}.toml"), format!("{}{setting}\n", of(&server)));
        let ledger = folder().join(format!("redaction-key-{nth}.db"));
        let _ = fs::remove_file(&ledger);
        let ledger = ledger.display().to_string();
        let input = format!("Maria, key {text}.");
        let mut extract = command(&["extract", "--config", &config, "--schema", &person, "-v", &input]);
        extract.args(["--ledger", &ledger, "--ledger-bodies"]).env("REDACTION_KEY", KEY);
        let ran = run(extract, "");
        assert_eq!(ran.code, 0, "{setting}: {}", ran.stderr);
        assert!(ran.stdout.contains(text), "{}", ran.stdout);
        assert!(String::from_utf8_lossy(&server.received()[0].body).contains(text));
        let runs = formwork(&["runs", "export", "--ledger", &ledger], "").stdout;
        let part = &text[8..30];
        // The key of a command is known from the first call on, and the prompt is printed before it.
        let stderr = ran.stderr.rsplit("  answer: ").next().filter(|_| setting.contains("command"));
        for (place, written) in [("-v", stderr.unwrap_or(&ran.stderr)), ("ledger", &runs)] {
            assert!(
                !written.contains(part) && written.contains("[redacted]"),
                "{setting} {place}: {written}"
            );
        }
    }
}

#[test]
fn a_wrong_pattern_is_one_message_with_its_place() {
    let text = "[providers.a]\nkind = \"ollama\"\nmodel = \"m\"\n[redaction]\npatterns = ['ok', '(oops']\n";
    let config = temporary("redaction-wrong.toml", text);
    let ran =
        formwork(&["extract", "--config", &config, "--schema", &example("person.schema.json"), "x"], "");
    refused(&ran, 2, "redaction-wrong.toml:5:12: `(oops` is not a regular expression: unclosed group");
}
