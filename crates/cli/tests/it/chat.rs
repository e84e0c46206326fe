use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::{Ran, against_schema, formwork, refused, temporary};
use crate::config::{chat as server, of, of_text};

fn good() -> Value {
    json!({
        "task": {"type": "qa", "user_intent": "learn what JSON is"},
        "answer": {"text": "A text format for data."},
        "quality": {"confidence": 0.95, "assumptions": [], "risks": []},
        "debug": {"schema_version": "1.0", "model": "m"},
    })
}

/// `formwork chat` with this server.
fn chat(name: &str, server: &Server, args: &[&str], stdin: &str) -> Ran {
    let config = temporary(&format!("chat-{name}.toml"), of(server));
    formwork(&[&["chat", "--config", &config], args].concat(), stdin)
}

fn bodies(server: &Server) -> Vec<Value> {
    server.received().iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
}

#[test]
fn one_question_one_answer() {
    let server = server(&[&good().to_string()]);
    let ran = chat("one", &server, &["--system", "Be brief.", "What is JSON?"], "");
    let printed: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, printed, ran.stderr.as_str()), (0, good(), ""));
    let sent = bodies(&server);
    assert_eq!((sent.len(), &sent[0]["response_format"]), (1, &json!({"type": "json_object"})));
    assert_eq!(server.received()[0].path, "/v1/chat/completions");
    let system = sent[0]["messages"][0]["content"].as_str().unwrap();
    assert!(system.contains(formwork_chat::CONTRACT_1_0) && system.ends_with("Be brief."), "{system}");
    let ran = chat("text", &server, &["--text", "What is JSON?"], "");
    assert_eq!(ran.stdout, "A text format for data.\n");
}

#[test]
fn the_errors_that_are_not_listed_are_counted() {
    let mut wrong = good();
    wrong["quality"]["risks"] = json!(vec![1; 700]);
    let ran = chat("many", &server(&[&wrong.to_string()]), &["What is JSON?"], "");
    assert_eq!((ran.code, ran.stderr.lines().count()), (1, 1 + 512 + 1), "{}", ran.stderr);
    assert!(ran.stderr.ends_with("found number\n  and 188 more\n"), "{}", ran.stderr);
}

#[test]
fn debug_is_on_standard_error_and_changes_nothing() {
    let answer_of = |name: &str, debug: &[&str]| {
        let server = server(&[&format!("```json\n{}\n```", good()), &good().to_string()]);
        let ran = chat(name, &server, &[debug, &["What is JSON?"]].concat(), "");
        let sent: Vec<Vec<u8>> = server.received().into_iter().map(|request| request.body).collect();
        (ran.code, ran.stdout, sent, ran.stderr)
    };
    let (quiet, loud) = (answer_of("quiet", &[]), answer_of("loud", &["--debug"]));
    assert_eq!((quiet.0, &quiet.1, &quiet.2), (loud.0, &loud.1, &loud.2));
    assert_eq!((quiet.0, quiet.2.len(), quiet.3.as_str()), (0, 2, ""));
    for line in [
        "[chat] attempt 1/2: asking primary",
        "[chat] attempt 1/2: INVALID_JSON, 1 error",
        "[chat] converged after 2 attempts",
    ] {
        assert!(loud.3.lines().any(|found| found == line), "{line}: {}", loud.3);
    }
}

#[test]
fn a_failure_is_structured() {
    for (retries, requests) in [(None, 2), (Some("0"), 1), (Some("3"), 4)] {
        let server = server(&["{}"]);
        let mut args = vec!["--json", "What is JSON?"];
        if let Some(retries) = retries {
            args.extend(["--max-retries", retries]);
        }
        let ran = chat(&format!("bad-{requests}"), &server, &args, "");
        assert_eq!((ran.code, server.received().len()), (1, requests), "{}", ran.stderr);
        let row = ran.rows().remove(0);
        assert_eq!(against_schema("chat-result.json", &row), Vec::<String>::new(), "{row}");
        assert_eq!(
            (&row["status"], &row["code"], &row["attempts"]),
            (&json!("failed"), &json!("SCHEMA_VALIDATION_FAILED"), &json!(requests))
        );
        assert!(ran.stderr.starts_with("error: SCHEMA_VALIDATION_FAILED: the last answer has 4 errors\n  Missing required field at path $.task\n"), "{}", ran.stderr);
    }
    let unauthorised = Server::start([Reply::status(401)]).unwrap();
    let ran = chat("401", &unauthorised, &["x"], "");
    assert_eq!((ran.code, ran.stdout.as_str(), unauthorised.received().len()), (3, "", 1));
    let (words, _) = ran.stderr.split_once('\n').unwrap();
    assert!(words.starts_with("error: no provider answered: ") && words.contains("401"), "{words}");
}

#[test]
fn an_answer_with_its_history_is_one_object() {
    let server = server(&[&good().to_string()]);
    let row = chat("json", &server, &["--json", "x"], "").rows().remove(0);
    assert_eq!(against_schema("chat-result.json", &row), Vec::<String>::new(), "{row}");
    assert_eq!((&row["status"], &row["answer"]), (&json!("answered"), &good()));
    assert_eq!(against_schema("structured-answer-lite.v1.json", &row["answer"]), Vec::<String>::new());
}

#[test]
fn without_a_question_it_is_a_conversation() {
    let answer = good().to_string();
    let server = server(&[&answer, "no", "no", &answer, &answer]);
    let ran = chat("talk", &server, &["--text"], "one\n\ntwo\nthree\n/new\nfour\n/quit\nfive\n");
    assert_eq!(
        (ran.code, ran.stdout.lines().count()),
        (1, 3),
        "one of four was not answered: {}",
        ran.stderr
    );
    assert!(ran.stderr.starts_with("error: INVALID_JSON: "), "{}", ran.stderr);
    let sent = bodies(&server);
    let text_of = |body: &Value| {
        let messages = body["messages"].as_array().unwrap().iter().skip(1);
        messages.map(|message| message["content"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(text_of(&sent[3]), ["one", &answer, "three"]);
    assert_eq!(text_of(&sent[4]), ["four"]);
}

#[test]
fn failures_are_reported_in_the_words_of_all_commands_and_have_their_code_as_data() {
    for (reply, timeout, words, code) in [
        (Reply::status(401), "9", "no provider answered: ", "AUTHENTICATION_FAILED"),
        (Reply::status(402), "9", "no provider answered: ", "NO_CREDIT"),
        (Reply::silent(), "1", "out of time: ", "TIMEOUT"),
    ] {
        let server = Server::start([reply]).unwrap();
        let ran = chat(code, &server, &["--timeout", timeout, "--json", "x"], "");
        assert!(ran.stderr.starts_with(&format!("error: {words}")), "{}", ran.stderr);
        let row = ran.rows().remove(0);
        assert_eq!(row["code"], code, "{row}");
    }
}

#[test]
fn an_unknown_command_is_an_error_and_no_question() {
    let answer = good().to_string();
    let server = server(&[&answer]);
    let ran = chat("commands", &server, &["--text"], "/halp\n/exit\n/etc/hosts is a file\n/quit\n");
    assert_eq!((ran.code, server.received().len(), ran.stdout.lines().count()), (1, 1, 1), "{}", ran.stderr);
    let expected =
        |name| format!("error: there is no command `{name}`: /new starts a new conversation, /quit ends\n");
    assert_eq!(ran.stderr, expected("/halp") + &expected("/exit"));
}

#[test]
fn wrong_usage() {
    refused(&formwork(&["chat", " "], ""), 2, "the question is empty");
    refused(&formwork(&["chat", "--provider", "olama", "x"], ""), 2, "did you mean `ollama`?");
}

/// The form is guaranteed. Whether a model of this size answers the question or copies the example depends on the rounding of the
/// processor; a copy is reported and never printed.
#[cfg(feature = "local")]
#[test]
fn the_model_in_this_process_needs_no_setup() {
    let ran = formwork(&["chat", "--debug", "--seed", "1", "--temperature", "0", "What is JSON?"], "");
    let note = "note: smollm2-135m-instruct, the default model, is very small";
    assert_eq!(ran.stderr.lines().filter(|line| line.starts_with(note)).count(), 1, "{}", ran.stderr);
    if ran.code == 1 && ran.stderr.contains("found the example's answer") {
        assert!(ran.stdout.is_empty() && ran.stderr.contains("[chat] did not converge"), "{}", ran.stderr);
        return;
    }
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(against_schema("structured-answer-lite.v1.json", &answer), Vec::<String>::new(), "{answer}");
    assert!(ran.stderr.contains("[chat] converged after "), "{}", ran.stderr);
}

/// A call of the tool `count`.
fn tool_call(arguments: Value) -> String {
    json!({"tool": {"name": "count", "arguments": arguments}}).to_string()
}

/// A file with one tool that runs this script.
fn tool(name: &str, script: &str) -> String {
    let seconds = if name == "slow" { 0.5 } else { 60.0 };
    let parameters =
        json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    let tool = json!({"name": "count", "description": "Counts.", "parameters": parameters, "command": ["sh", "-c", script], "timeout_seconds": seconds});
    temporary(&format!("tools-{name}.yaml"), json!([tool]).to_string())
}

#[cfg(unix)]
#[test]
fn a_tool_gets_arguments_that_were_validated_and_the_model_its_result() {
    // The arguments are passed only on standard input, so shell syntax in them stays text.
    let arguments = json!({"text": "$(touch formwork-was-here); `id`"});
    let answers = [tool_call(json!({"text": 7})), tool_call(arguments), good().to_string()];
    let server = server(&[&answers[0], &answers[1], &answers[2]]);
    let file = tool("right", "cat");
    let ran = chat("tool", &server, &["--tools", &file, "--allow-tools", "--json", "Count."], "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    let uses = result["tools"].as_array().unwrap();
    assert_eq!((uses.len(), &uses[0]["result"]["text"]), (1, &json!("$(touch formwork-was-here); `id`")));
    let sent = bodies(&server);
    assert_eq!(sent.len(), 3);
    assert!(sent[2]["messages"].to_string().contains("formwork-was-here"), "the model reads the result");
}

#[cfg(unix)]
#[test]
fn a_tool_is_offered_by_the_interface_of_the_provider() {
    let function = json!({"name": "count", "arguments": "{\"text\": \"to be\"}"});
    let message =
        json!({"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]});
    let called = json!({"choices": [{"message": message, "finish_reason": "tool_calls"}]});
    let message = json!({"role": "assistant", "content": good().to_string()});
    let answer = json!({"choices": [{"message": message, "finish_reason": "stop"}]});
    let server = Server::start([called, answer].map(|body| Reply::json(body.to_string()))).unwrap();
    let file = tool("native", "cat");
    let ran = chat(
        "native",
        &server,
        &["--tools", &file, "--allow-tools", "--native-tools", "--json", "Count."],
        "",
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(result["tools"][0]["result"]["text"], "to be");
    let sent = bodies(&server);
    assert_eq!(sent[0]["tools"][0]["function"]["name"], "count");
    let result = sent[1]["messages"].as_array().unwrap().last().unwrap();
    assert!(result["role"] == "tool" && result["content"].to_string().contains("to be"), "{result}");
}

#[cfg(unix)]
#[test]
fn tools_in_the_prompt_instead_of_the_interface_are_one_line_on_standard_error() {
    let refusal = json!({"error": {"message": "m does not support tools"}}).to_string();
    let of_text = |text: &str| {
        let message = json!({"role": "assistant", "content": text});
        Reply::json(json!({"choices": [{"message": message, "finish_reason": "stop"}]}).to_string())
    };
    let call = tool_call(json!({"text": "to be"}));
    let refused = Reply::json(refusal).with_status(400);
    let answers = [&call, &good().to_string(), &good().to_string()].map(|text| of_text(text));
    let server = Server::start(std::iter::once(refused).chain(answers)).unwrap();
    let file = tool("refused", "cat");
    // A conversation says it once.
    let ran =
        chat("refused", &server, &["--tools", &file, "--allow-tools", "--native-tools"], "Count.\nAgain.\n");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let lines: Vec<&str> = ran.stderr.lines().filter(|line| line.contains("tools")).collect();
    let [line] = lines.as_slice() else { panic!("{}", ran.stderr) };
    assert!(line.starts_with("warning: ") && line.contains("m does not support tools"), "{line}");
    assert!(line.ends_with("they were offered in the prompt"), "{line}");
}

#[cfg(unix)]
#[test]
fn a_tool_that_fails_or_hangs_or_prints_too_much_is_a_failure_that_says_so() {
    for (name, script, says) in [
        ("fails", "echo no such city >&2; exit 3", "no such city"),
        ("slow", "sleep 60", "did not end within 500ms"),
        ("long", "yes", "printed more than 1048576 bytes"),
    ] {
        let call = tool_call(json!({"text": "x"}));
        let server = server(&[&call, &good().to_string()]);
        let ran =
            chat(name, &server, &["--tools", &tool(name, script), "--allow-tools", "--json", "Count."], "");
        assert!((ran.stdout.clone() + &ran.stderr).contains(says), "{name}: {} {}", ran.stdout, ran.stderr);
    }
}

#[test]
fn tools_are_not_run_unless_that_is_allowed_and_their_file_is_checked() {
    let server = server(&[]);
    let refuse = |file: &str, more: &[&str], says: &str| {
        let ran = chat("tools-refused", &server, &[&["--tools", file], more, &["Count."]].concat(), "");
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
        assert!(ran.stderr.contains(says), "{says}: {}", ran.stderr);
    };
    refuse(&tool("denied", "echo hidden"), &[], "add --allow-tools");
    refuse("no-such-tools.yaml", &["--allow-tools"], "no-such-tools.yaml");
    for (text, says) in [
        (
            "- {name: a, description: b, parameters: {type: object}, command: [x], timeout_second: 3}",
            "timeout_seconds",
        ),
        ("- {name: a}", "required field `description` is missing"),
        ("- {name: a}", "required field `command` is missing\n  |\n1 | - {name: a}\n  |   ^"),
        ("{}", "tools-bad"),
        (
            "- {name: a, description: b, parameters: {type: objekt}, command: [x]}",
            "the parameters of the tool `a`",
        ),
        ("- {name: a b, description: b, parameters: {type: object}, command: [x]}", "a b"),
    ] {
        refuse(&temporary("tools-bad.yaml", text), &["--allow-tools"], says);
    }
    assert!(server.received().is_empty());
}

#[test]
fn a_question_that_only_names_a_source_is_an_error() {
    let letter = temporary("question.txt", "Who is it?");
    for (question, says) in [
        ("-", "write none for a conversation on standard input"),
        (&*letter, "which the model cannot read: write a question and the contents of the file"),
        ("@missing.txt", "the name of the file missing.txt"),
        ("https://example.com", "not downloaded: write a question about https://example.com"),
    ] {
        refused(&formwork(&["chat", question], ""), 2, says);
    }
}

#[test]
fn the_contract_1_1_has_data() {
    let answer = |version: &str| {
        json!({
            "task": {"type": "qa", "user_intent": "primes"}, "answer": {"text": "Two, three.", "data": [2, 3]},
            "quality": {"confidence": 0.9, "assumptions": [], "risks": []},
            "debug": {"schema_version": version, "model": "m"}
        })
    };
    for validate in [&[][..], &["--schema-validation"]] {
        let server =
            Server::start([of_text(&answer("1.0").to_string()), of_text(&answer("1.1").to_string())])
                .unwrap();
        let config = temporary(&format!("chat-data-{}.toml", validate.len()), of(&server));
        let args = [&["chat", "--contract", "1.1", "--config", &config, "Primes?"], validate].concat();
        let ran = formwork(&args, "");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(ran.rows()[0]["answer"]["data"], json!([2, 3]), "{}", ran.stdout);
        assert_eq!(server.received().len(), 2, "version 1.0 is no answer in 1.1");
    }
}
