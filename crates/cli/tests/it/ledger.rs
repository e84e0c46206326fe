//! `formwork runs`, `formwork keys`, and `--ledger` of the commands that call models.

use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::config::{chat as server, of};
use super::{Ran, example, folder, formwork, refused, temporary};

const WRONG: &str = r#"{"name": "Maria Lindqvist", "age": "old", "city": "Lisbon"}"#;
const RIGHT: &str = r#"{"name": "Maria Lindqvist", "age": 34, "city": "Lisbon"}"#;

/// A path without a file.
fn fresh(name: &str) -> String {
    let path = folder().join(name);
    for ending in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{ending}", path.display()));
    }
    path.display().to_string()
}

fn runs(ledger: &str, args: &[&str]) -> Ran {
    formwork(&[&["runs"], args, &["--ledger", ledger]].concat(), "")
}

fn keys(ledger: &str, args: &[&str]) -> Ran {
    formwork(&[&["keys"], args, &["--ledger", ledger]].concat(), "")
}

/// As on a read-only file system, and on a full disk.
#[test]
fn a_ledger_that_cannot_be_written_is_read() {
    let server = server(&[r#"{"name": "Maria"}"#]);
    let (config, ledger) = (temporary("ledger-read.toml", of(&server)), fresh("read.db"));
    let args = ["extract", "-s", "name", "Maria", "--config", &config, "--ledger", &ledger];
    assert_eq!(formwork(&args, "").code, 0);
    assert_eq!(keys(&ledger, &["add", "alice"]).code, 0);
    let beside = std::path::PathBuf::from(format!("{ledger}-shm"));
    let _ = std::fs::remove_dir(&beside);
    std::fs::create_dir(&beside).unwrap();
    let run = runs(&ledger, &["list", "--json"]).rows()[0]["id"].as_str().unwrap().to_owned();
    let before = std::fs::read(&ledger).unwrap();
    for (args, code) in [
        (&["runs", "list", "--ledger"][..], 0),
        (&["runs", "show", &run, "--ledger"], 0),
        (&["runs", "export", "--ledger"], 0),
        (&["keys", "list", "--ledger"], 0),
        (&["store", "show", "--store"], 0),
        (&["store", "prune", "--older-than", "1d", "--dry-run", "--store"], 0),
        (&["runs", "prune", "--older-than", "1d", "--ledger"], 2),
        (&["keys", "revoke", "alice", "--ledger"], 2),
    ] {
        let ran = formwork(&[args, &[&ledger]].concat(), "");
        assert_eq!((ran.code, ran.stdout.is_empty()), (code, code > 0), "{args:?}: {}", ran.stderr);
    }
    assert!(std::fs::read(&ledger).unwrap() == before, "the file is as it was");
    std::fs::remove_dir(&beside).unwrap();
}

/// A run counts as unsure by a value that its text does not state, and `show` counts the values by their support.
#[test]
fn unsure_runs_are_those_with_values_that_were_not_found() {
    let person = example("person.schema.json");
    let ledger = fresh("unsure.db");
    for (nth, text) in ["Maria Lindqvist, 34, Lisbon", "Maria Lindqvist, 43, Lisbon"].iter().enumerate() {
        let server = server(&[RIGHT]);
        let config = temporary(&format!("unsure-{nth}.toml"), of(&server));
        let args = ["extract", "--schema", &person, "--config", &config, "--ledger", &ledger, text];
        let ran = formwork(&args, "");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    assert_eq!(runs(&ledger, &["list", "--json"]).rows().len(), 2);
    let unsure = runs(&ledger, &["list", "--unsure", "--json"]).rows();
    assert_eq!(unsure.len(), 1, "{unsure:?}");
    assert_eq!(
        (&unsure[0]["evidence"]["exact"], &unsure[0]["evidence"]["not_found"]),
        (&json!(2), &json!(1))
    );
    let shown = runs(&ledger, &["show", unsure[0]["id"].as_str().unwrap()]);
    assert!(shown.stdout.contains("evidence: 2 exact, 1 not found"), "{}", shown.stdout);
}

/// `runs list` says what is in force about targets, on which evidence, since when and until when.
#[test]
fn the_list_of_runs_says_what_is_in_force() {
    let server = Server::start([Reply::json("{}").with_status(503)]).unwrap();
    let (config, ledger) = (temporary("ledger-in-force.toml", of(&server)), fresh("in-force.db"));
    let args = ["extract", "-s", "name", "Maria", "--config", &config, "--ledger", &ledger];
    let ran = formwork(&[&args[..], &["--retries", "3", "--retry-delays", "0"]].concat(), "");
    assert_eq!((ran.code, server.received().len()), (3, 4), "{}", ran.stderr);
    for more in [&[][..], &["--json"]] {
        let listed = runs(&ledger, &[&["list"], more].concat());
        let line = listed.stderr.lines().find_map(|line| line.strip_prefix("in force: ")).unwrap_or_default();
        let effect = "it is skipped if there is another target, because of ";
        assert!(line.contains(effect) && line.contains(" calls: "), "{}", listed.stderr);
        let (evidence, times) = line.split_once(" (since ").unwrap_or_else(|| panic!("{line}"));
        assert!(evidence.contains("503"), "{line}");
        let year = times.split('-').next().unwrap();
        assert!(year.starts_with("20") && times.ends_with(" UTC at the latest)"), "{line}");
        assert!(times.contains("; until 20"), "{line}");
        assert_eq!(listed.stdout.lines().count(), 1, "{}", listed.stdout);
    }
}

#[test]
fn every_command_that_calls_a_model_records_its_runs() {
    let person = example("person.schema.json");
    let (shape, input) = (example("feature-design.shape"), example("feature-design-input.json"));
    let rubric =
        temporary("ledger-rubric.yaml", "name: r\ncriteria:\n  - {id: kind, description: It is kind.}\n");
    let output = temporary("ledger-output.txt", "The pump broke.");
    let skills = example("skills");
    let rows = temporary("ledger-rows.jsonl", format!("{}\n", json!({"id": 1, "input": "Maria"})));
    let wallet = json!({
        "address": "0xabc", "as_of": "2026-11-01", "survey": {"experience": "regular"},
        "summary": {"transactions": 50, "failed": 2, "first": "2025-11-01", "last": "2026-10-22", "active_days": 20,
            "counterparties": 9},
    });
    let wallet = temporary("ledger-wallet.json", wallet.to_string());
    let cases: [(&str, Vec<&str>); 7] = [
        ("extract", vec!["extract", "--schema", &person, "Maria"]),
        ("extract", vec!["extract", "--schema", &person, "--jsonl", "--file", &rows]),
        ("chat", vec!["chat", "What is JSON?"]),
        ("shape run", vec!["shape", "run", "--shape", &shape, "--input", &input]),
        ("review", vec!["review", "--rubric", &rubric, &output]),
        ("skill run", vec!["skill", "run", "ticket", "--dir", &skills, "--input", "title=x"]),
        ("oracle", vec!["oracle", "score", &wallet]),
    ];
    for (nth, (source, args)) in cases.into_iter().enumerate() {
        // No command accepts this completion, so each of them retries or fails.
        let server = server(&["no JSON"]);
        let config = temporary(&format!("ledger-{nth}.toml"), of(&server));
        let ledger = fresh(&format!("every-{nth}.db"));
        let ran = formwork(&[&args[..], &["--config", &config, "--ledger", &ledger]].concat(), "");
        let listed = runs(&ledger, &["list", "--json"]);
        assert_eq!(listed.code, 0, "{args:?}: {} {}", ran.stderr, listed.stderr);
        let listed = listed.rows();
        assert!(!listed.is_empty(), "{args:?}: {}", ran.stderr);
        let calls: u64 = listed.iter().map(|run| run["calls"].as_u64().unwrap()).sum();
        assert_eq!(calls, server.received().len() as u64, "{args:?}");
        for run in &listed {
            assert_eq!(run["source"], source, "{run}");
            assert!(run["model"] == "m" || run["calls"] == 0, "{run}");
            assert!(run["contract"].is_string(), "{run}");
        }
    }
}

/// The outcome of a review is a run of its own, because a review by rules has no calls.
#[test]
fn the_gate_of_a_review_is_found_by_its_tag() {
    let output = temporary("gate-output.txt", "The pump broke.");
    let judged = "criteria: [{id: kind, description: It is kind.}]";
    let by_rule = "criteria: [{id: short, description: It is short., schema: {maxLength: 5}}]";
    let skill = format!(
        "name: gated\ndescription: x\ntemplate_type: LLM_JSON_GENERATION\nprompt: x\noutput: {{shape: '{{\"a\": string}}'}}\n\
         examples: [{{}}]\nrubric: {{name: r, {}}}\n",
        judged
    );
    let skill = temporary("gated.yaml", skill);
    let vote = |verdict: &str, confidence: u8| {
        json!({"reasoning": "So.", "verdict": verdict, "confidence": confidence}).to_string()
    };
    let a = r#"{"a": "b"}"#.to_owned();
    let (ledger, mut calls) = (fresh("gates.db"), 0);
    for (source, rubric, answers, gate) in [
        ("review", judged, vec![vote("pass", 90)], "gate:pass"),
        ("review", judged, vec![vote("pass", 40)], "gate:undecided"),
        ("review", judged, vec!["no JSON".to_owned()], "gate:fail"),
        ("review", by_rule, vec![String::new()], "gate:fail"),
        ("skill run", judged, vec![a.clone(), vote("pass", 40)], "gate:undecided"),
        ("skill run", judged, vec![a.clone(), vote("fail", 90)], "gate:fail"),
        ("skill report", judged, vec![a.clone(), vote("pass", 90)], "gate:pass"),
        ("skill report", judged, vec![a, vote("pass", 40)], "gate:undecided"),
    ] {
        let answers: Vec<&str> = answers.iter().map(String::as_str).collect();
        let server = server(&answers);
        let config = temporary("gates.toml", of(&server));
        let rubric = temporary("gates.yaml", format!("name: r\n{rubric}\n"));
        let line = match source {
            "review" => vec!["review", "--rubric", &rubric, &output],
            "skill report" => vec!["skill", "report", &skill, "--runs", "1", "--allow-missed"],
            _ => vec!["skill", "run", &skill],
        };
        let ran = formwork(&[&line[..], &["--config", &config, "--ledger", &ledger]].concat(), "");
        let found = runs(&ledger, &["list", "--json", "--limit", "1", "--source", source, "--tag", gate]);
        let run = &found.rows()[0];
        let contract = if source == "review" { "r" } else { "gated" };
        assert_eq!((&run["contract"], &run["calls"]), (&json!(contract), &json!(0)), "{}", ran.stderr);
        let is_carried_out = answers != ["no JSON"];
        assert_eq!(run["outcome"] == "ok", is_carried_out, "{run}");
        calls += server.received().len();
    }
    let listed = |tag: &str| runs(&ledger, &["list", "--json", "--tag", tag]).rows().len();
    assert_eq!(["gate:pass", "gate:undecided", "gate:fail"].map(listed), [2, 3, 3]);
    let all = runs(&ledger, &["list", "--json"]).rows();
    assert_eq!(all.iter().map(|run| run["calls"].as_u64().unwrap()).sum::<u64>(), calls as u64);
}

#[test]
fn a_run_can_be_listed_shown_exported_praised_and_pruned() {
    let server = server(&[WRONG, RIGHT]);
    let config = temporary("ledger-life.toml", of(&server));
    let (ledger, person) = (fresh("life.db"), example("person.schema.json"));
    let text = "Maria moved. Her key is sk-abcdefghijklmnopqrstuvwxyz.";
    let command_line =
        ["extract", "--config", &config, "--schema", &person, "--ledger", &ledger, "--ledger-bodies", text];
    let ran = formwork(&command_line, "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);

    let listed = runs(&ledger, &["list"]);
    assert!(listed.stdout.contains("ok  extract  m  2 calls"), "{}", listed.stdout);
    let run = runs(&ledger, &["list", "--json", "--retried", "--class", "type", "--path", "$.age"])
        .rows()
        .remove(0);
    let id = run["id"].as_str().unwrap();
    assert_eq!(runs(&ledger, &["list", "--outcome", "rejected", "--json"]).stdout, "");
    assert!(run["digest"].as_str().unwrap().len() >= 32, "{run}");

    let output = runs(&ledger, &["show", id]);
    for says in [
        "attempt 1: invalid",
        "attempt 2: accepted",
        "Type mismatch at $.age",
        r#""age": "old""#,
        "[redacted]",
    ] {
        assert!(output.stdout.contains(says), "{says}: {}", output.stdout);
    }
    assert!(!output.stdout.contains("sk-abc"), "{}", output.stdout);
    let exported = runs(&ledger, &["export"]);
    assert_eq!(exported.rows(), runs(&ledger, &["show", id, "--json"]).rows());
    assert_eq!(exported.rows()[0]["calls"].as_array().unwrap().len(), 2);

    assert_eq!(runs(&ledger, &["feedback", id, "bad"]).code, 0);
    assert_eq!(runs(&ledger, &["list", "--feedback", "bad", "--json"]).rows().len(), 1);
    assert_eq!(runs(&ledger, &["list", "--feedback", "good", "--json"]).rows().len(), 0);

    assert_eq!(runs(&ledger, &["prune", "--older-than", "1h"]).stdout, "deleted 0 runs and 0 hourly sums\n");
    assert_eq!(runs(&ledger, &["list", "--since", "1h", "--json"]).rows().len(), 1);
    refused(&runs(&ledger, &["show", "run_0000000000000"]), 1, "the ledger has no run run_0000000000000");
    refused(&runs(&ledger, &["feedback", "run_0000000000000", "good"]), 1, "the ledger has no run");
    refused(
        &runs(&ledger, &["list", "--key", "bob"]),
        1,
        "the ledger has no key named `bob`: it has no keys yet",
    );
}

#[test]
fn texts_are_recorded_only_where_that_is_requested() {
    for (bodies, kept) in [(&[][..], false), (&["--ledger-bodies"][..], true)] {
        let server = server(&[RIGHT]);
        let config = temporary(&format!("ledger-bodies-{kept}.toml"), of(&server));
        let (ledger, person) = (fresh(&format!("bodies-{kept}.db")), example("person.schema.json"));
        let command_line =
            ["extract", "--config", &config, "--schema", &person, "--ledger", &ledger, "Maria moved."];
        assert_eq!(formwork(&[&command_line[..], bodies].concat(), "").code, 0);
        let run = runs(&ledger, &["export"]).rows().remove(0);
        assert_eq!(
            (run["request"].is_string(), run["calls"][0]["answer"].is_string()),
            (kept, kept),
            "{run}"
        );
    }
}

#[test]
fn what_is_printed_for_people_cannot_drive_their_terminal() {
    let server = server(&["\u{1b}[31mred\u{7} no JSON"]);
    let config = temporary("ledger-escape.toml", of(&server));
    let (ledger, person) = (fresh("escape.db"), example("person.schema.json"));
    let command_line =
        ["extract", "--config", &config, "--schema", &person, "--ledger", &ledger, "--ledger-bodies", "x"];
    assert_eq!(formwork(&command_line, "").code, 1);
    let id = runs(&ledger, &["list", "--json"]).rows()[0]["id"].as_str().unwrap().to_owned();
    let output = runs(&ledger, &["show", &id]).stdout;
    assert!(output.contains("red") && !output.contains(['\u{1b}', '\u{7}']), "{output:?}");
}

#[test]
fn a_key_is_printed_alone_and_once() {
    let ledger = fresh("keys.db");
    let add = ["add", "alice", "--budget", "5.00", "--rpm", "60", "--models", "a,b", "--expires", "90d"];
    let added = keys(&ledger, &add);
    assert_eq!(added.code, 0, "{}", added.stderr);
    let secret = added.stdout.trim_end();
    assert!(secret.starts_with("fw_") && secret.len() == 67, "{}", added.stdout);
    assert!(added.stderr.contains("only time that the key is shown"), "{}", added.stderr);
    let listed = keys(&ledger, &["list"]).stdout;
    assert!(!listed.contains(secret) && listed.contains(&secret[..11]), "{listed}");
    for says in ["alice", "$0.00 of $5.00 spent", "60 requests a minute", "models a, b", "until 20"] {
        assert!(listed.contains(says), "{says}: {listed}");
    }
    let key = keys(&ledger, &["list", "--json"]).rows().remove(0);
    assert_eq!(
        (&key["budget"], &key["models"], &key["role"]),
        (&json!(5_000_000), &json!(["a", "b"]), &json!("client"))
    );

    let rotated = keys(&ledger, &["rotate", "alice", "--json"]).rows().remove(0);
    assert_ne!(rotated["secret"].as_str(), Some(secret));
    assert_eq!(rotated["key"]["name"], "alice");
    assert_eq!(keys(&ledger, &["add", "ops", "--role", "admin", "--json"]).rows()[0]["key"]["role"], "admin");
    assert_eq!(keys(&ledger, &["revoke", "alice"]).code, 0);
    assert!(keys(&ledger, &["list"]).stdout.contains("revoked 20"));
    refused(&keys(&ledger, &["rotate", "alice"]), 2, "has been revoked");
    refused(&keys(&ledger, &["add", "alice"]), 2, "has a key named `alice` already");
    for gone in ["revoke", "rotate"] {
        refused(&keys(&ledger, &[gone, "bob"]), 1, "no key named `bob`; its keys are `alice`, `ops`");
    }
}

#[test]
fn bad_input_is_one_clear_message() {
    let ledger = fresh("bad.db");
    assert_eq!(keys(&ledger, &["add", "k"]).code, 0);
    for (args, says) in [
        (&["keys", "add", "x", "--budget", "five"][..], "`five` is no amount of US dollars"),
        (&["keys", "add", "x", "--budget", "-1"], "-1"),
        (&["keys", "add", "x", "--budget", "1e3"], "`1e3` is no amount"),
        (&["keys", "add", "x", "--budget", "1.2345678"], "at most six decimals"),
        (&["keys", "add", "x", "--budget", "10000000"], "at most 1000000.00 US dollars"),
        (&["keys", "add", "x", "--expires", "90"], "expected a duration such as 30m, 12h or 90d"),
        (&["keys", "add", "x", "--expires", "0d"], "expected a duration"),
        (&["keys", "add", "x", "--rpm", "0"], "--rpm"),
        (&["keys", "add", "x", "--models", "a,,b"], "the name of a model is empty"),
        (&["keys", "add", " "], "a key's name has 1 to 64 characters"),
        (&["runs", "prune", "--older-than", "soon"], "expected a duration"),
        (&["runs", "prune"], "--older-than"),
        (&["runs", "show", "7"], "`7` is not the id of a run"),
        (&["runs", "list", "--outcome", "fine"], "expected one of ok, fallback"),
        (&["runs", "feedback", "run_0000000000000", "meh"], "good, bad"),
    ] {
        let ran = formwork(&[args, &["--ledger", &ledger]].concat(), "");
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{args:?}: {}", ran.stderr);
    }
    assert_eq!(keys(&ledger, &["list", "--json"]).rows().len(), 1, "nothing was added");
}

#[test]
fn files_that_are_no_ledger_are_refused_by_every_command() {
    let text = temporary("not-a-ledger.db", "hello");
    let lines = temporary("scores.jsonl", "{\"score\": 1}\n");
    let missing = fresh("missing.db");
    let person = example("person.schema.json");
    let server = server(&[RIGHT]);
    let config = temporary("ledger-refused.toml", of(&server));
    for (path, says) in [
        (&text, "is not a ledger of formwork"),
        (&lines, "it looks like JSON Lines, which `formwork oracle` writes"),
        (&folder().display().to_string(), ""),
    ] {
        refused(&runs(path, &["list"]), 2, says);
        refused(&keys(path, &["add", "x"]), 2, says);
        let command_line = ["extract", "--config", &config, "--schema", &person, "--ledger", path, "x"];
        refused(&formwork(&command_line, ""), 2, says);
    }
    assert_eq!(server.received().len(), 0, "no model is asked");
    refused(&runs(&missing, &["list"]), 2, "there is no ledger");
    refused(&keys(&missing, &["list"]), 2, "there is no ledger");
    assert!(!std::path::Path::new(&missing).exists(), "looking does not make a file");
    assert_eq!(std::fs::read_to_string(&text).unwrap(), "hello");
}

#[test]
fn the_environment_and_the_cache_folder_name_the_ledger() {
    let ledger = fresh("of-environment.db");
    let mut add = super::command(&["keys", "add", "one"]);
    add.env("FORMWORK_LEDGER", &ledger);
    assert_eq!(super::run(add, "").code, 0);
    assert_eq!(keys(&ledger, &["list", "--json"]).rows().len(), 1);

    let cache = folder().join("ledger-cache");
    let _ = std::fs::remove_dir_all(&cache);
    for (args, count) in [(["keys", "add", "two"], 0), (["keys", "list", "--json"], 1)] {
        let mut command = super::command(&args);
        command.env("FORMWORK_CACHE", &cache).env_remove("FORMWORK_LEDGER");
        let ran = super::run(command, "");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let names = || ran.rows().iter().filter(|row: &&Value| row["name"] == "two").count();
        assert!(count == 0 || names() == count);
    }
    assert!(cache.join("ledger.db").exists());
}
