use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::config::{chat, of, of_text};
use super::{Ran, against_schema, example, folder, formwork, temporary};

fn dir() -> String {
    example("skills")
}

fn config(server: &Server) -> String {
    temporary(&format!("skill-{}.toml", server.address().port()), of(server))
}

fn skill(more: &[&str]) -> Ran {
    formwork(&[&["skill"], more].concat(), "")
}

#[test]
fn a_skill_runs_on_a_server_by_configuration_alone() {
    let server = chat(&["Sure!", r#"{"category": "billing", "urgent": false}"#]);
    let config = config(&server);
    let command_line =
        ["run", "ticket", "--dir", &dir(), "--config", &config, "--input", "title=Charged twice"];
    let ran = skill(&[&command_line[..], &["--json"]].concat());
    let printed: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, against_schema("skill-run-output.json", &printed)), (0, vec![]), "{printed}");
    assert_eq!(printed["outcome"]["output"], json!({"category": "billing", "urgent": false}));
    let sent: Vec<Value> =
        server.received().iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect();
    assert_eq!((&sent[0]["temperature"], &sent[1]["temperature"]), (&json!(0.7), &json!(0.2)));
    assert_eq!(sent[0]["response_format"]["json_schema"]["name"], "output_schema");

    let ran = skill(&command_line);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "{\"category\": \"billing\", \"urgent\": false}\n"),
        "{}",
        ran.stderr
    );
}

#[test]
fn what_comes_of_nothing_is_reported() {
    let server = chat(&["Sure!"]);
    let config = config(&server);
    let ran = skill(&["run", "ticket", "--dir", &dir(), "--config", &config, "-i", "title=x", "--json"]);
    let printed: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, against_schema("skill-run-output.json", &printed)), (1, vec![]), "{printed}");
    assert_eq!((&printed["ok"], &printed["error"]["class"]), (&json!(false), &json!("rejected")));
    assert_eq!(printed["error"]["generation"]["calls"].as_array().unwrap().len(), 2);
    assert!(ran.stderr.contains("\nerror: skill `ticket`: no valid answer"), "{}", ran.stderr);
}

#[test]
fn a_review_that_fails_is_exit_code_1() {
    let bad = r#"{"answer": "Dear [Name], you get a refund."}"#;
    let server = chat(&[bad]);
    let config = config(&server);
    let ran = skill(&["run", "reply", "--dir", &dir(), "--config", &config, "-i", "message=Where is it?"]);
    assert_eq!((ran.code, server.received().len()), (1, 2), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("FAIL  no-placeholders") && ran.stderr.contains("FAIL  no-promises"),
        "{}",
        ran.stderr
    );
    let sent: Value = serde_json::from_slice(&server.received()[1].body).unwrap();
    let last = sent["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
    assert!(last.contains("Issues:") && last.contains("Say that a colleague looks into it."), "{last}");
}

#[test]
fn a_judge_that_cannot_be_reached_keeps_the_gate_closed() {
    let file = temporary(
        "judged.yaml",
        "name: judged\ndescription: x\ntemplate_type: LLM_JSON_GENERATION\nprompt: x\n\
         output: {shape: '{\"a\": string}'}\nrubric:\n  name: r\n  criteria:\n\
         \x20   - {id: kind, description: It is kind.}\n\
         \x20   - {id: empty, description: It is empty., pattern: {path: $.a, matches: '^$'}}\n",
    );
    for (judge, why) in [
        (Reply::status(401), "no provider answered"),
        (Reply::silent(), "out of time"),
        (of_text("I like it."), "no usable answer about `kind`"),
    ] {
        let server = Server::start([of_text(r#"{"a": "x"}"#), judge]).unwrap();
        let config = config(&server);
        let command_line = ["run", &file, "--config", &config, "--timeout", "2"];
        let ran = skill(&command_line);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, "{\"a\": \"x\"}\n"), "{}", ran.stderr);
        let says = ran.stderr.contains("the review could not be carried out") && ran.stderr.contains(why);
        assert!(says && ran.stderr.contains("FAIL  empty"), "{why}: {}", ran.stderr);
    }
    let server = Server::start([of_text(r#"{"a": "x"}"#), Reply::status(401)]).unwrap();
    let ran = skill(&["run", &file, "--config", &config(&server), "--json"]);
    let printed: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, against_schema("skill-run-output.json", &printed)), (1, vec![]), "{printed}");
    let review = &printed["outcome"]["review"];
    assert_eq!((&review["pass"], &review["error"]["kind"]), (&json!(false), &json!("unavailable")));
    assert!(ran.stderr.contains("the review could not be carried out"), "{}", ran.stderr);
}

#[test]
fn the_errors_that_are_not_listed_are_counted() {
    let file = temporary(
        "many.yaml",
        "name: many\ndescription: x\ntemplate_type: LLM_JSON_GENERATION\nprompt: x\noutput: {shape: '{\"xs\": [int]}'}\n",
    );
    let server = chat(&[&json!({"xs": vec!["x"; 700]}).to_string()]);
    let ran = skill(&["run", &file, "--config", &config(&server), "-v"]);
    assert!(ran.code == 1 && ran.stderr.contains("\n    and 188 more\n"), "{}", ran.stderr);
    assert!(ran.stderr.ends_with("expected integer (and 699 more)\n"), "{}", ran.stderr);
    let sent: Value = serde_json::from_slice(&server.received()[1].body).unwrap();
    let correction =
        sent["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
    let listed = correction.lines().filter(|line| line.starts_with("- $.xs[")).count();
    assert!(correction.contains(&format!("\n(and {} more)", 700 - listed)), "{correction}");
}

#[test]
fn a_gate_has_three_outcomes() {
    let file = temporary(
        "gate.yaml",
        "name: gate\ndescription: x\ntemplate_type: LLM_JSON_GENERATION\nprompt: x\n\
         output: {shape: '{\"a\": string}'}\nrubric: {name: r, criteria: [{id: kind, description: It is kind.}]}\n",
    );
    let judged = |verdict: &str, confidence: u8| {
        format!(r#"{{"reasoning": "So it is.", "verdict": "{verdict}", "confidence": {confidence}}}"#)
    };
    for (verdict, confidence, gate, codes, says) in [
        ("pass", 90, "pass", (0, 0), None),
        ("fail", 90, "fail", (1, 1), Some("the review failed:\nFAIL  kind")),
        ("fail", 49, "undecided", (0, 1), Some("the review is undecided:\n?     kind")),
        ("pass", 49, "undecided", (0, 1), Some("undecided, 1 of 1 undecided")),
    ] {
        let run = |more: &[&str]| {
            let server = chat(&[r#"{"a": "x"}"#, &judged(verdict, confidence)]);
            skill(&[&["run", &file, "--config", &config(&server)], more].concat())
        };
        let ran = run(&[]);
        assert_eq!((ran.code, ran.stdout.as_str()), (codes.0, "{\"a\": \"x\"}\n"), "{}", ran.stderr);
        assert_eq!(ran.stderr.is_empty(), says.is_none(), "{}", ran.stderr);
        assert!(ran.stderr.contains(says.unwrap_or_default()), "{}", ran.stderr);
        let ran = run(&["--fail-on-indeterminate", "--json"]);
        let printed: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(against_schema("skill-run-output.json", &printed), Vec::<String>::new());
        assert_eq!((ran.code, &printed["gate"]), (codes.1, &json!(gate)), "{printed}");
        assert_eq!(printed["outcome"]["review"]["gate"], gate);
    }
}

#[test]
fn mistakes_are_reported_before_a_model_is_opened() {
    let handled = temporary("handled.yaml", "name: handled\ndescription: x\n");
    let unknown = temporary(
        "unknown.yaml",
        "name: unknown\ndescription: x\ntemplate_type: LLM_JSON_GENERATION\nprompt: x\noutput: {shape: '{\"a\": string}'}\nprovider: olama\n",
    );
    let broken = temporary("broken.yaml", "name: broken\ndescription: x\ntemplate_type: LLM_JSN\n");
    let model = ["--model", "no-such-file.gguf"];
    for (args, code, says) in [
        (vec!["run", "tiket", "--dir", &dir()], 2, "there is no skill `tiket` in"),
        (vec!["run", "tiket", "--dir", &dir()], 2, "did you mean `ticket`?"),
        (vec!["run", "ticket", "--dir", &dir()], 2, "is missing; give an input as --input NAME=VALUE"),
        (
            vec!["run", "ticket", "--dir", &dir(), "-i", "titel=x"],
            2,
            "there is no input `titel`: did you mean `title`?",
        ),
        (vec!["run", "steps", "--dir", &dir(), "-i", "task=x", "-i", "tone=loud"], 2, "$.tone"),
        (
            vec!["run", "ticket", "--dir", &dir(), "-i", "title=a", "-i", "title=b"],
            2,
            "--input title is given twice",
        ),
        (vec!["run", &broken], 2, "broken.yaml:3:16: "),
        (
            vec!["run", "x", "--dir", "no-such-folder"],
            2,
            "there is no folder `no-such-folder`: name the folder of the skills with --dir",
        ),
        (vec!["run", "x"], 2, "there is no folder `skills`: name the folder of the skills with --dir"),
        (vec!["check", &broken], 2, "3 | template_type: LLM_JSN"),
    ] {
        let ran = skill(&if args[0] == "run" { [&args[..], &model].concat() } else { args.clone() });
        assert!(
            ran.code == code && ran.stdout.is_empty() && ran.stderr.contains(says),
            "{args:?}: {} {}",
            ran.code,
            ran.stderr
        );
    }
    let ran = skill(&["run", &unknown]);
    assert!(
        ran.code == 2
            && ran.stderr.contains("unknown.yaml:6:11: ")
            && ran.stderr.contains("did you mean `ollama`?"),
        "{}",
        ran.stderr
    );
    let server = chat(&["{}"]);
    let ran = skill(&["run", &handled, "--config", &config(&server)]);
    assert!(ran.code == 2 && ran.stderr.contains("no handler `handled` is registered"), "{}", ran.stderr);
}

#[test]
fn a_skill_names_its_provider_and_the_registry_says_how_it_is_called() {
    let file = temporary(
        "named-provider.yaml",
        "name: named\ndescription: x\ntemplate_type: LLM_JSON_GENERATION\nprompt: x\n\
         output: {shape: '{\"a\": string}'}\nprovider: mine\n",
    );
    let other = chat(&[]);
    for (model, strict) in [("gpt-4o", json!(true)), ("gemini/gemini-1.5-pro", Value::Null)] {
        let server = chat(&[r#"{"a": "x"}"#]);
        let text = format!(
            "targets = [\"primary\"]\n{}[providers.mine]\nkind = \"litellm\"\nmodel = \"{model}\"\nstream = false\n\
             api_key_env = \"\"\nbase_url = \"{}/v1\"\n",
            of(&other),
            server.url()
        );
        let config = temporary(&format!("named-{}.toml", server.address().port()), text);
        let ran = skill(&["run", &file, "--config", &config]);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "{\"a\": \"x\"}\n"), "{}", ran.stderr);
        let sent: Value = serde_json::from_slice(&server.received()[0].body).unwrap();
        assert_eq!(sent["response_format"]["json_schema"]["strict"], strict, "{model}: {sent}");
        assert_eq!(sent.get("response_format").is_none(), strict.is_null(), "{model}");
    }
    assert!(other.received().is_empty());
}

/// The first output is printed with its review, and the reason why there is no better one.
#[test]
fn a_regeneration_without_an_answer_is_said() {
    let server =
        Server::start([of_text(r#"{"answer": "Dear [Name], you get a refund."}"#), Reply::status(401)])
            .unwrap();
    let config = config(&server);
    let ran = skill(&["run", "reply", "--dir", &dir(), "--config", &config, "-i", "message=Where is it?"]);
    assert!(ran.code == 1 && ran.stdout.contains("Dear [Name]"), "{}", ran.stdout);
    assert!(ran.stderr.contains("could not be improved") && ran.stderr.contains("401"), "{}", ran.stderr);
    assert!(ran.stderr.contains("FAIL  no-placeholders"), "{}", ran.stderr);
    assert!(ran.stderr.contains("\nthe review failed:\n"), "{}", ran.stderr);
}

#[test]
fn every_file_of_a_checked_folder_is_reported() {
    let mixed = folder().join("mixed-skills");
    std::fs::create_dir_all(&mixed).unwrap();
    for (name, text) in [
        ("a.yaml", "name: a\n"),
        ("b.yaml", "name: b\ndescription: x\noutput: {schema: {type: string, maxLenght: 4}}\n"),
        ("c.yaml", "name: [\n"),
        ("d.yaml", "name: b\ndescription: x\n"),
        ("e.yaml", "name: e\ndescription: x\n"),
    ] {
        std::fs::write(mixed.join(name), text).unwrap();
    }
    let ran = skill(&["check", mixed.to_str().unwrap()]);
    let listed: Vec<_> = ran.stdout.lines().filter_map(|line| line.rsplit('/').next()).collect();
    assert_eq!((ran.code, listed), (2, vec!["b.yaml: b (handler b)", "e.yaml: e (handler e)"]));
    for says in [
        "a.yaml:1:1: required field `description` is missing",
        "b.yaml:3:33: unknown keyword: did you mean `maxLength`?",
        "c.yaml:",
        "d.yaml:1:7: the skill `b` is in",
    ] {
        assert!(ran.stderr.contains(says), "{says}: {}", ran.stderr);
    }
}

#[test]
fn skills_are_listed_checked_and_begun() {
    let ran = skill(&["list", "--dir", &dir()]);
    assert!(ran.code == 0 && ran.stdout.contains("ticket (LLM_JSON_GENERATION)\n"), "{}", ran.stdout);
    let ran = skill(&["list", "--dir", &dir(), "--json"]);
    let rows = ran.rows();
    assert!(rows.len() >= 6);
    for row in &rows {
        assert_eq!(against_schema("skill-row.json", row), Vec::<String>::new(), "{row}");
    }
    assert_eq!(skill(&["check", &dir()]).code, 0);

    let mine = folder().join("mine").display().to_string();
    for kind in ["LLM_JSON_GENERATION", "LLM_REVIEW", "handler"] {
        let name = format!("new-{}", kind.to_lowercase().replace('_', "-"));
        let ran = skill(&["new", &name, "--type", kind, "--dir", &mine]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(skill(&["check", ran.stdout.trim()]).stdout.contains(&name));
        let again = skill(&["new", &name, "--dir", &mine]);
        assert!(again.code == 2 && again.stderr.contains(&name), "{}", again.stderr);
    }
    assert_eq!(skill(&["new", "../x", "--dir", &mine]).code, 2);
    let empty = folder().join("no-skills");
    std::fs::create_dir_all(&empty).unwrap();
    let ran = skill(&["check", empty.to_str().unwrap()]);
    assert!(ran.code == 2 && ran.stderr.contains("there are no skills in this folder"), "{}", ran.stderr);
    assert_eq!(skill(&["check", &mine]).stdout.lines().count(), 3);
}

#[test]
fn the_history_of_the_outputs_is_that_of_their_leaves() {
    for (answer, history) in [
        (r#"{"category": "billing", "urgent": false}"#, "4 leaves, 4 written freely"),
        (r#"{"category": "billing", "urgent": false,}"#, "4 leaves, 0 written freely, 4 repaired"),
    ] {
        let server = chat(&[answer]);
        let config = config(&server);
        let ran = skill(&["report", "ticket", "--dir", &dir(), "--config", &config, "--runs", "1"]);
        let line = ran.stdout.lines().find_map(|line| line.strip_prefix("history of the outputs: "));
        assert_eq!(line, Some(history), "{answer}: {}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn the_targets_are_printed() {
    let server = chat(&[r#"{"category": "billing", "urgent": false}"#]);
    let config = config(&server);
    let command_line = ["report", "ticket", "--dir", &dir(), "--config", &config, "--runs", "3"];
    let ran = skill(&command_line);
    assert_eq!((ran.code, server.received().len()), (0, 6), "{}", ran.stderr);
    let lines: Vec<_> = ran.stdout.lines().collect();
    assert!(
        lines[1].starts_with("Schema compliance          >98%     100.0 %     6      met"),
        "{}",
        ran.stdout
    );
    assert!(
        lines[2].starts_with("Retry frequency            <5%      0.0 %       6      met"),
        "{}",
        ran.stdout
    );
    assert!(lines[3].starts_with("Review consistency         >95%     -           0"), "{}", ran.stdout);
    assert_eq!(lines.len(), 9, "{}", ran.stdout);
    assert!(lines[6].starts_with("Outputs that pass          >95%     -           0"), "{}", ran.stdout);
    assert!(lines[7].starts_with("model: ") && lines[7].contains("; skills: ticket "), "{}", ran.stdout);
    assert_eq!(lines[8], "history of the outputs: 12 leaves, 12 written freely");
    let ran = skill(&[&command_line[..], &["--json"]].concat());
    let printed: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(against_schema("skill-report.json", &printed), Vec::<String>::new());
    assert_eq!(printed["targets"].as_array().unwrap().len(), 6);
}

/// A skill that generates and is judged, one that is not judged, and one that judges.
fn three_skills() -> [String; 3] {
    let generates = "description: x\ntemplate_type: LLM_JSON_GENERATION\nprompt: x\n\
                     output: {shape: '{\"a\": string}'}\nexamples: [{}]\n";
    let rubric = "rubric: {name: r, criteria: [{id: kind, description: It is kind.}]}\n";
    let judges = "description: x\ntemplate_type: LLM_REVIEW\ninputs: {text: {type: string}}\nsubject: text\n\
                  prompt: x\nexamples: [{text: x}]\n";
    let skill = |name: &str, text: &str| temporary(&format!("{name}.yaml"), format!("name: {name}\n{text}"));
    [
        skill("gated", &format!("{generates}{rubric}")),
        skill("plain", generates),
        skill("judges", &format!("{judges}{rubric}")),
    ]
}

#[test]
fn ok_says_what_the_exit_code_says_and_the_report_counts_the_same_runs_as_unanswered() {
    let vote = |verdict: &str| {
        of_text(&json!({"reasoning": "So.", "verdict": verdict, "confidence": 90}).to_string())
    };
    let output = || of_text(r#"{"a": "x"}"#);
    let [gated, plain, judges] = three_skills();
    for (name, file, input, replies, expected) in [
        ("passes", &gated, &[][..], vec![output(), vote("pass")], Some(0)),
        ("fails", &gated, &[], vec![output(), vote("fail")], Some(1)),
        ("not judged", &gated, &[], vec![output(), Reply::status(401)], Some(1)),
        ("no generation", &gated, &[], vec![Reply::status(401)], Some(3)),
        ("plain", &plain, &[], vec![output()], Some(0)),
        ("invalid", &plain, &[], vec![of_text("no")], Some(1)),
        ("silent", &plain, &[], vec![Reply::silent()], Some(3)),
        ("judged", &judges, &["-i", "text=x"], vec![vote("pass")], Some(0)),
        ("judged bad", &judges, &["-i", "text=x"], vec![vote("fail")], Some(1)),
        ("no judge", &judges, &["-i", "text=x"], vec![Reply::status(401)], Some(3)),
        ("silent judge", &judges, &["-i", "text=x"], vec![Reply::silent()], Some(3)),
    ] {
        let server = Server::start(replies.clone()).unwrap();
        let config = config(&server);
        let command_line = ["run", file, "--config", &config, "--timeout", "1", "--json"];
        let ran = skill(&[&command_line[..], input].concat());
        let printed: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(against_schema("skill-run-output.json", &printed), Vec::<String>::new(), "{name}");
        assert_eq!(Some(ran.code), expected, "{name}: {}", ran.stderr);
        assert_eq!(printed["ok"], json!(ran.code == 0), "{name}: {printed}");

        let server = Server::start(replies).unwrap();
        let config = self::config(&server);
        let command_line = ["report", file, "--config", &config, "--timeout", "1", "--runs", "1", "--json"];
        let report = skill(&command_line);
        let printed: Value = serde_json::from_str(&report.stdout).unwrap();
        assert_eq!(printed["unavailable"] == json!(1), ran.code == 3, "{name}: {printed}");
        assert_eq!(report.code == 3, ran.code == 3, "{name}: {}", report.stderr);
    }
}

#[cfg(feature = "local")]
#[test]
fn the_examples_run_on_a_model_that_knows_nothing() {
    // With random weights, only the schemas make the completions valid.
    let names = ["contact", "headline", "sentiment", "steps", "ticket"];
    let ran = skill(
        &[
            &["report"],
            &names[..],
            &["--dir", &dir(), "--model", &super::extract::TINY, "--runs", "2", "--json"],
        ]
        .concat(),
    );
    let printed: Value = serde_json::from_str(&ran.stdout).unwrap();
    // The token limit may cut a first completion off, but every run ends with a valid answer.
    assert_eq!((&printed["runs"], &printed["failed"]), (&json!(18), &json!(0)), "{printed} {}", ran.stderr);
}

#[cfg(feature = "local")]
#[test]
fn a_skill_and_a_review_run_without_any_setup() {
    let ran = skill(&[
        "run",
        "contact",
        "--dir",
        &dir(),
        "-i",
        "text=Maria Lindqvist, 34, moved to Lisbon last spring.",
        "--seed",
        "1",
    ]);
    let printed: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, &printed["city"]), (0, &json!("Lisbon")), "{}", ran.stderr);
    let note = "note: smollm2-135m-instruct, the default model, is very small";
    assert_eq!(ran.stderr.lines().filter(|line| line.starts_with(note)).count(), 1, "{}", ran.stderr);
    let rubric =
        temporary("live.yaml", "name: r\ncriteria: [{id: polite, description: The reply is polite.}]\n");
    let ran = formwork(&["review", "--rubric", &rubric, "--seed", "1", "--json"], "Thank you very much!");
    let printed: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(against_schema("review-result.json", &printed), Vec::<String>::new());
    assert_eq!(printed["price"]["calls"], 1);
}
