//! Calibrations of the oracle.

use formwork_testkit::server::{Reply, Server};
use serde_json::json;

use super::oracle::{answer, config, ollama, printed, wallet};
use super::{against_schema, formwork, refused};

#[test]
fn a_calibration_marks_the_scores_of_its_model_and_prompt_beside_the_response_object() {
    let (server, folder) = (ollama([answer(610)]), super::folder());
    let config = config("calibrate.toml", &server);
    let file = folder.join("calibrations.jsonl").display().to_string();
    _ = std::fs::remove_file(&file);
    let one = wallet("calibrate.json", 40);
    let with = |args: &[&str], stdin: &str| {
        formwork(&[args, &["--config", &config, "--calibrations", &file]].concat(), stdin)
    };
    let marked = || {
        let event = printed(&with(&["oracle", "score", "--json", &one], ""));
        let row = with(&["oracle", "batch", &one], "").rows().remove(0);
        assert_eq!((&row["calibration"], &row["counted"]), (&event["calibration"], &event["counted"]));
        assert_eq!(against_schema("oracle-output.json", &row), [""; 0], "{row}");
        let plain = with(&["oracle", "score", &one], "");
        assert!(printed(&plain).get("calibration").is_none(), "{}", plain.stdout);
        let note = plain.stderr.lines().find(|line| line.starts_with("note: ")).unwrap().to_owned();
        assert!(note.ends_with(&format!("; counting gives {}", event["counted"])), "{note}");
        (event["calibration"].as_str().unwrap().to_owned(), note)
    };
    let row = |nth: usize, expected: &str| {
        format!(r#"{{"wallet": {{"address": "0x{nth:040x}", "transactions": []}}, "expected": {expected}}}"#)
    };
    let rows = |expected: &str, count: usize| {
        (0..count).map(|nth| row(nth, expected)).collect::<Vec<_>>().join("\n")
    };
    let (standing, note) = marked();
    assert!(standing == "not_calibrated" && note.starts_with("note: not calibrated;"), "{standing} {note}");

    let same = format!("{}\n{}", rows("[600, 620]", 29), row(0, "[600, 620]"));
    let few = with(&["oracle", "calibrate", "-"], &same);
    refused(&few, 2, "standard input: 29 different wallets: a calibration takes at least 30");
    let wrong = with(&["oracle", "calibrate", "-"], &format!("{}\n{{}}", rows("[600, 620]", 30)));
    refused(&wrong, 2, "standard input:31:2: $: missing field `wallet`");
    assert_eq!(marked().0, "not_calibrated");

    let ran = with(&["oracle", "calibrate", "--json", "-"], &rows("[600, 620]", 30));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let found = printed(&ran);
    assert_eq!((&found["n"], &found["model_distance"]), (&json!(30), &json!(0.0)), "{found}");
    assert_eq!(marked().0, "better");

    // Counting gives 0 for a wallet without a history, which is right here.
    let ran = with(&["oracle", "calibrate", "-"], &rows("[0, 10]", 30));
    assert!(ran.code == 0 && ran.stdout.contains("30 wallets: not better than counting"), "{}", ran.stdout);
    assert_eq!(marked().0, "not_better");
    let other = printed(&with(&["oracle", "score", "--json", "--prompt", "v2", &one], ""));
    assert_eq!(other["calibration"], "not_calibrated", "another prompt is not calibrated");
}

/// A server that names no model answers for the configured one, so that another model of this provider is not calibrated by it.
#[test]
fn a_calibration_of_a_server_that_names_no_model_is_of_the_configured_one() {
    let body = json!({"response": answer(610), "done": true, "prompt_eval_count": 700, "eval_count": 120});
    let server = Server::start([Reply::json(body.to_string())]).unwrap();
    let folder = super::folder().join("calibrate-unnamed");
    _ = std::fs::remove_dir_all(&folder);
    let calibrations = folder.join("calibrations.jsonl").display().to_string();
    let run = |model: &str, args: &[&str], stdin: &str| {
        let text = std::fs::read_to_string(config("calibrate-unnamed.toml", &server)).unwrap();
        let text = text.replace(r#"model = "m""#, &format!("model = {model:?}"));
        let config = super::temporary(&format!("calibrate-unnamed-{model}.toml"), text);
        formwork(&[args, &["--config", &config, "--calibrations", &calibrations]].concat(), stdin)
    };
    let row = |nth: usize| {
        format!(r#"{{"wallet": {{"address": "0x{nth:040x}", "transactions": []}}, "expected": [600, 620]}}"#)
    };
    let rows = (0..30).map(row).collect::<Vec<_>>().join("\n");
    let ran = run("small", &["oracle", "calibrate", "--json", "-"], &rows);
    assert_eq!((ran.code, &printed(&ran)["model"]), (0, &json!("small")), "{}", ran.stderr);
    let one = wallet("calibrate-unnamed.json", 40);
    let ledger = folder.join("scores.jsonl").display().to_string();
    for (model, calibration) in [("small", "better"), ("large", "not_calibrated")] {
        let score = ["oracle", "score", "--json", "--ledger", &ledger, &one];
        assert_eq!(printed(&run(model, &score, ""))["calibration"], calibration, "{model}");
    }
    let report = formwork(&["oracle", "report", "--json", "--allow-missed", &ledger], "");
    let report: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
    assert_eq!(report["models"], json!({"small": 1, "large": 1}));
}

#[test]
fn a_model_without_scores_is_not_calibrated() {
    let server = ollama(["prose".to_owned()]);
    let config = config("calibrate-prose.toml", &server);
    let file = super::folder().join("no-calibrations.jsonl");
    let path = file.display().to_string();
    let row = |nth: usize| {
        format!(r#"{{"wallet": {{"address": "0x{nth:040x}", "transactions": []}}, "expected": [0, 10]}}"#)
    };
    let ran = formwork(
        &["oracle", "calibrate", "--config", &config, "--calibrations", &path, "-"],
        (0..30).map(row).collect::<Vec<_>>().join("\n"),
    );
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("error: not calibrated: 30 of 30 scores are the fallback's"),
        "{}",
        ran.stderr
    );
    assert!(!file.exists());
}

#[test]
fn an_interrupted_calibration_does_not_ask_again_for_what_it_has() {
    let folder = super::folder().join("calibrate-resume");
    _ = std::fs::remove_dir_all(&folder);
    let file = folder.join("calibrations.jsonl");
    let row = |nth: usize| {
        let wallet = json!({"address": format!("0x{nth:040x}"), "transactions": []});
        json!({"wallet": wallet, "expected": [600, 620]}).to_string()
    };
    let rows = (0..30).map(row).collect::<Vec<_>>().join("\n");
    let unfinished = || {
        let files = std::fs::read_dir(&folder).into_iter().flatten().map(|file| file.unwrap().path());
        files.filter(|path| path.to_string_lossy().ends_with(".unfinished.jsonl")).collect::<Vec<_>>()
    };
    // The server answers 12 times, then it rejects the key, so that the fallback scores the rest without an answer of a model.
    let answers = || std::iter::repeat_n(super::oracle::generated(&answer(610)), 12);
    let calibrate = |server: &Server, more: &[&str]| {
        let config = config("calibrate-resume.toml", server);
        let file = file.display().to_string();
        let line = ["oracle", "calibrate", "--config", &config, "--calibrations", &file, "--retries", "0"];
        formwork(&[&line[..], more, &["-"]].concat(), rows.clone())
    };
    let server = Server::start(answers().chain([Reply::status(401)])).unwrap();
    let ran = calibrate(&server, &[]);
    assert!(ran.code == 3 && ran.stderr.contains("it scored 12 wallets"), "{}", ran.stderr);
    let says = "no model answered for 18 of 30 wallets (not authorised: 401";
    assert!(ran.stderr.contains(says) && ran.stderr.contains("continues with them"), "{}", ran.stderr);
    assert_eq!(unfinished().len(), 1, "too few scores are kept for a later run");
    // The end of a process can cut the last line.
    let path = unfinished().remove(0);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &text[..text.len() - 40]).unwrap();

    // Another prompt is another calibration.
    let server = ollama([answer(610)]);
    let ran = calibrate(&server, &["--prompt", "v2"]);
    assert_eq!((ran.code, server.received().len()), (0, 30), "{}", ran.stderr);
    let ran = calibrate(&server, &[]);
    assert_eq!((ran.code, server.received().len()), (0, 30 + 19), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("note: 11 of 30 wallets were scored by an earlier calibration"),
        "{}",
        ran.stderr
    );
    assert!(ran.stdout.contains("30 wallets: better than counting"), "{}", ran.stdout);
    assert!(unfinished().is_empty(), "a stored result needs no scores");

    let server = Server::start(answers().chain([Reply::status(401)])).unwrap();
    calibrate(&server, &[]);
    let server = ollama([answer(610)]);
    let ran = calibrate(&server, &["--restart"]);
    assert_eq!((ran.code, server.received().len()), (0, 30), "{}", ran.stderr);
}
