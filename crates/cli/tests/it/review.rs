use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::config::{chat, of};
use super::{Ran, against_schema, example, formwork, temporary};

const RUBRIC: &str = "
name: scene
criteria:
  - {id: names, description: It names the cause.}
  - {id: short, description: It is short., fix: Cut it.}
  - {id: kind, description: It is kind.}
  - {id: prices, description: The prices are right., needs: [price_list]}
";

fn verdict(verdict: &str, confidence: u8) -> String {
    json!({"reasoning": "So it is.", "verdict": verdict, "confidence": confidence}).to_string()
}

fn review(server: &Server, rubric: &str, more: &[&str]) -> Ran {
    let rubric = temporary(&format!("scene-{}.yaml", server.address().port()), rubric);
    let config = temporary(&format!("review-{}.toml", server.address().port()), of(server));
    let command_line = ["review", "--rubric", &rubric, "--config", &config, "--concurrency", "1"];
    formwork(&[&command_line, more].concat(), "The pump broke.")
}

#[test]
fn a_review_is_printed_with_its_price() {
    let answers = [verdict("pass", 90), verdict("fail", 80), verdict("pass", 40)];
    let answers: Vec<&str> = answers.iter().map(String::as_str).collect();
    let ran = review(&chat(&answers), RUBRIC, &["--json"]);
    let printed: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, against_schema("review-result.json", &printed)), (1, vec![]), "{printed}");
    assert_eq!(printed["pass"], false);
    assert_eq!(printed["issues"].as_array().unwrap().len(), 1);
    assert_eq!(printed["suggested_fixes"], json!(["Cut it."]));
    assert_eq!(printed["indeterminate"].as_array().unwrap().len(), 2);
    assert_eq!(printed["price"]["calls"], 3);

    let ran = review(&chat(&answers), RUBRIC, &[]);
    let expected = "\
pass  names: So it is. (confidence 90)
FAIL  short: So it is. (confidence 80)
?     kind: So it is. (confidence 40)
?     prices: not given: price_list
issues:
  - short: It is short. (So it is.)
suggested fixes:
  - Cut it.
indeterminate:
  - kind: It is kind. (the judge is not sure)
  - prices: The prices are right. (data that it needs is missing)
fail, 2 of 4 undecided (3 calls, 27 tokens in, 15 out)
";
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (1, expected, ""));
}

#[test]
fn a_review_says_which_verdicts_the_judge_did_not_write_freely() {
    // The text ends with a comma that JSON does not have, so that it is repaired.
    let broken = r#"{"reasoning": "So it is.", "verdict": "pass", "confidence": 90,}"#;
    let good = verdict("pass", 90);
    let rubric = "name: r\ncriteria: [{id: a, description: x}, {id: b, description: y}]\n";
    let history = |answers: &[&str]| {
        let ran = review(&chat(answers), rubric, &[]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout
            .lines()
            .find_map(|line| line.strip_prefix("history of the judge's answers: ").map(str::to_owned))
    };
    assert_eq!(history(&[&good, &good]), None);
    let found = history(&[broken, &good]);
    assert_eq!(found.as_deref(), Some("6 leaves, 3 written freely, 3 repaired"));
    let printed: Value = serde_json::from_str(&review(&chat(&[broken]), rubric, &["--json"]).stdout).unwrap();
    assert_eq!(printed["criteria_results"][0]["trust"]["other"]["repaired"]["count"], 3);
}

#[test]
fn a_verdict_says_how_many_criteria_are_undecided() {
    let short = "  - {id: short, description: x, schema: {maxLength: 400}}\n";
    let long = "  - {id: long, description: x, schema: {minLength: 400}}\n";
    let human = |id: &str| format!("  - {{id: {id}, description: x, human: true}}\n");
    for (criteria, verdict) in [
        (short.to_owned(), "pass ("),
        (long.to_owned(), "fail ("),
        (format!("{short}{}", human("a")), "undecided, 1 of 2 undecided ("),
        (format!("{short}{}{}", human("a"), human("b")), "undecided, 2 of 3 undecided ("),
        (format!("{long}{}", human("a")), "fail, 1 of 2 undecided ("),
        (human("a"), "undecided, 1 of 1 undecided ("),
    ] {
        let rubric = temporary("undecided.yaml", format!("name: r\ncriteria:\n{criteria}"));
        let ran = formwork(&["review", "--rubric", &rubric], "The pump broke.");
        assert!(ran.stdout.lines().last().unwrap().starts_with(verdict), "{verdict}: {}", ran.stdout);
    }
}

#[test]
fn a_path_that_the_outputs_schema_does_not_have_is_an_error() {
    let rubric = temporary(
        "typo.yaml",
        "name: r\ncriteria: [{id: a, description: b, pattern: {path: $.anwser, matches: x}}]\n",
    );
    let answer = "{\"answer\": \"x\"}";
    let ran = formwork(&["review", "--rubric", &rubric, "--schema", "answer: string"], answer);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(
        ran.stderr.contains("typo.yaml:2:45: the schema has no `$.anwser`: did you mean `$.answer`?"),
        "{}",
        ran.stderr
    );
    // Without the schema the criterion is undecided, which is printed.
    let ran = formwork(&["review", "--rubric", &rubric], answer);
    let says = "?     a: the output has no `$.anwser`: did you mean `$.answer`?";
    assert!(ran.code == 0 && ran.stdout.contains(says), "{}", ran.stdout);
    let ran = formwork(&["review", "--rubric", &rubric, "--fail-on-indeterminate"], answer);
    assert_eq!(ran.code, 1);
}

/// The note is the same as that of `oracle`.
#[cfg(feature = "local")]
#[test]
fn the_default_model_is_said_not_to_judge() {
    let note =
        "note: smollm2-135m-instruct, the default model, gives valid answers but cannot judge: its verdicts";
    let rubric = temporary("noted.yaml", "name: r\ncriteria: [{id: a, description: A.}]\n");
    let ruled = temporary("ruled.yaml", "name: r\ncriteria: [{id: a, description: A., schema: {}}]\n");
    let (reply, skills) = (example("reply.txt"), example("skills"));
    for (args, is_noted) in [
        (vec!["review", "--rubric", &rubric, &reply], true),
        (vec!["review", "--against", &reply, &reply], true),
        (vec!["review", "--rubric", &ruled, &reply], false),
        (vec!["skill", "run", "review-reply", "--dir", &skills, "-i", "reply=No.", "-i", "message=x"], true),
        (vec!["skill", "run", "contact", "--dir", &skills, "-i", "text=No."], false),
    ] {
        // The note is printed before the completion arrives.
        let ran = formwork(&[&args[..], &["--timeout", "0.001"]].concat(), "");
        assert_eq!(ran.stderr.contains(note), is_noted, "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn indeterminate_alone_passes_and_data_is_given_by_name() {
    let rubric = RUBRIC.replace("  - {id: short, description: It is short., fix: Cut it.}\n", "");
    let answers = [verdict("pass", 90), verdict("pass", 40), verdict("pass", 80)];
    let answers: Vec<&str> = answers.iter().map(String::as_str).collect();
    let server = chat(&answers);
    let prices = temporary("prices.json", "[3, 4]");
    let prices_input = format!("price_list=@{prices}");
    let ran = review(
        &server,
        &rubric,
        &["--data", &prices_input, "--task", "Say why.", "--temperature", "0.7", "--seed", "3"],
    );
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let sent: Vec<Value> =
        server.received().iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect();
    assert_eq!((sent.len(), &sent[0]["temperature"], &sent[0]["seed"]), (3, &json!(0.7), &json!(3)));
    let last = |body: &Value| {
        body["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned()
    };
    assert!(last(&sent[2]).contains("[3, 4]") && !last(&sent[1]).contains("[3, 4]"));
    assert!(last(&sent[0]).contains("Say why.") && last(&sent[0]).contains("The pump broke."));
}

#[test]
fn what_is_indeterminate_fails_if_that_is_configured() {
    let one = "name: r\ncriteria: [{id: a, description: It is short.}]\n";
    for (outcome, sure, code, strict) in
        [("pass", 90, 0, 0), ("pass", 40, 0, 1), ("fail", 90, 1, 1), ("fail", 40, 0, 1)]
    {
        let answer = verdict(outcome, sure);
        assert_eq!(review(&chat(&[&answer]), one, &[]).code, code);
        assert_eq!(review(&chat(&[&answer]), one, &["--fail-on-indeterminate"]).code, strict);
    }
}

#[test]
fn rules_alone_need_no_model() {
    let rubric = temporary(
        "rules.toml",
        "name = \"r\"\n[[criteria]]\nid = \"a\"\ndescription = \"It has a title.\"\nschema = {required = [\"title\"]}\n",
    );
    // A missing model would be an error.
    let command_line = ["review", "--rubric", &rubric, "--model", "no-such-file.gguf"];
    let ran = formwork(&command_line, r#"{"title": "x"}"#);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "pass  a: the rule holds\npass (0 calls, 0 tokens in, 0 out)\n")
    );
    let ran = formwork(&command_line, "{}");
    assert!(
        ran.code == 1 && ran.stdout.starts_with("FAIL  a: Missing required field at path $.title\n"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_rubric_that_cannot_be_used_is_shown_with_its_place() {
    let rubric = temporary("bad-rubric.yaml", "name: r\ncriteria:\n  - id: a\n    descripton: b\n");
    let ran = formwork(&["review", "--rubric", &rubric, "--check"], "");
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    let expected = format!(
        "error: {rubric}:3:5: required field `description` is missing\n  |\n3 |   - id: a\n  |     ^^\n\
         {rubric}:4:5: there is no `descripton` here: did you mean `description`?\n  |\n4 |     descripton: b\n  |     ^^^^^^^^^^\n"
    );
    assert_eq!(ran.stderr, expected);
    let good = example("skills/rubrics/reply.yaml");
    let ran = formwork(&["review", "--rubric", &good, "--check"], "");
    assert_eq!((ran.code, ran.stdout.ends_with("reply.yaml: 5 criteria\n")), (0, true));
    assert_eq!(ran.stderr, "");
    let misspelled = "name: r\ncriteria: [{id: a, description: A., schema: {maxLenght: 4}}]\n";
    let rubric = temporary("misspelled-rubric.yaml", misspelled);
    for more in [vec!["--check"], vec!["--json"], vec![]] {
        let ran = formwork(&[&["review", "--rubric", &rubric], &more[..]].concat(), "\"x\"");
        let expected = format!("warning: {rubric}:2:46: unknown keyword: did you mean `maxLength`?\n");
        assert_eq!((ran.code, ran.stderr), (0, expected), "{more:?}");
    }
}

#[test]
fn two_outputs_are_compared_in_both_orders() {
    let says =
        |better: &str| json!({"reasoning": "It answers.", "better": better, "confidence": 90}).to_string();
    let (one, other) = (temporary("one.txt", "Red."), temporary("other.txt", "Lovely weather."));
    let compare = |answers: &[&str]| {
        let server = chat(answers);
        let config = temporary(&format!("compare-{}.toml", server.address().port()), of(&server));
        formwork(
            &["review", "--against", &other, "--config", &config, "--task", "A colour?", "--json", &one],
            "",
        )
    };
    let ran = compare(&[&says("first"), &says("second")]);
    let printed: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, against_schema("comparison.json", &printed)), (0, vec![]));
    assert_eq!((&printed["preferred"], &printed["consistent"]), (&json!("a"), &json!(true)));
    let ran = compare(&[&says("first"), &says("first")]);
    let printed: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, &printed["preferred"]), (1, &json!("indeterminate")));
}

#[test]
fn a_wrong_key_and_a_server_that_stays_busy_are_exit_code_3() {
    let server = Server::start([Reply::status(401)]).unwrap();
    let ran = review(&server, RUBRIC, &[]);
    assert_eq!((ran.code, server.received().len()), (3, 1), "{}", ran.stderr);

    // The delays in real time would be 2, 4 and 8 seconds.
    let server = Server::start([Reply::status(503)]).unwrap();
    let began = std::time::Instant::now();
    let one = "name: r\ncriteria: [{id: a, description: It is short.}]\n";
    let ran = review(&server, one, &[]);
    let seconds = began.elapsed().as_secs();
    assert_eq!((ran.code, server.received().len()), (3, 4), "{}", ran.stderr);
    assert!((14..40).contains(&seconds), "{seconds}");
}

#[test]
fn wrong_usage_is_one_message() {
    let rubric = temporary("usage.yaml", RUBRIC);
    for (args, says) in [
        (vec!["review"], "--rubric"),
        (vec!["review", "--rubric", &rubric, "--data", "x"], "expected NAME=VALUE"),
        (vec!["review", "--rubric", "none.yaml"], "cannot read none.yaml"),
        (vec!["review", "--rubric", &rubric, "--temperature", "3"], "from 0 to 2"),
        (vec!["review", "--rubric", &rubric, "-"], "the file is empty"),
    ] {
        let ran = formwork(&args, "");
        assert!(ran.code == 2 && ran.stderr.contains(says), "{args:?}: {} {}", ran.code, ran.stderr);
    }
}
