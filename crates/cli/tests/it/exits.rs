//! The exit codes that `--help` promises, the same in all commands.

use std::sync::LazyLock;

use formwork_testkit::server::{End, Reply, Server};

use super::config::{of, of_text};
use super::{example, formwork, temporary};

/// The commands that call a model, with their arguments besides a configuration. Their files are written once, because tests run
/// concurrently.
pub(crate) fn commands() -> &'static [Vec<String>] {
    static COMMANDS: LazyLock<Vec<Vec<String>>> = LazyLock::new(written);
    &COMMANDS
}

fn written() -> Vec<Vec<String>> {
    let person = example("person.schema.json");
    let skills = example("skills");
    let rubric = temporary("exits.yaml", "name: r\ncriteria: [{id: a, description: It is short.}]\n");
    let shape = temporary("exits.shape", "{\"name\": string}");
    let skill = temporary(
        "exits-skill.yaml",
        "name: exits-skill\ndescription: x\ntemplate_type: LLM_REVIEW\nprompt: x\nsubject: reply\n\
         inputs: {reply: {type: string}}\nrubric: {name: r, criteria: [{id: a, description: It is short.}]}\n",
    );
    let of = |args: &[&str]| args.iter().map(|arg| (*arg).to_owned()).collect();
    vec![
        of(&["extract", "--schema", &person]),
        of(&["chat", "How are you?"]),
        of(&["shape", "run", "--shape", &shape, "--input", "-"]),
        of(&["review", "--rubric", &rubric]),
        of(&["skill", "run", "ticket", "--dir", &skills, "--input", "title=Charged twice"]),
        of(&["skill", "run", &skill, "--input", "reply=No."]),
    ]
}

/// Runs a command against a server with these replies, with a time limit.
fn code(command: &[String], replies: Vec<Reply>, stream: bool, seconds: &str) -> (i32, String) {
    let server = Server::start(replies).unwrap();
    let config = of(&server).replace("stream = false", &format!("stream = {stream}"));
    let config = temporary(&format!("exits-{}.toml", server.address().port()), config);
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let ran = formwork(&[&command[..], &["--config", &config, "--timeout", seconds]].concat(), "Maria, 34");
    (ran.code, ran.stderr)
}

#[test]
fn a_deadline_before_any_answer_is_a_provider_that_did_not_answer() {
    let event = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"{ \"}}]}\n\n";
    let begins = || Reply::pieces([event, event]).cut_at(event.len(), End::Stall);
    for command in commands() {
        for seconds in ["0.05", "0.3"] {
            let (silent, why) = code(command, vec![Reply::silent()], false, seconds);
            assert_eq!(silent, 3, "{command:?}: {why}");
            // Whether the first token arrives in time is random, and the test does not depend on it.
            let (begun, why) = code(command, vec![begins()], true, seconds);
            assert_eq!(begun, 3, "{command:?}: {why}");
        }
    }
}

#[test]
fn a_deadline_after_an_answer_is_no_valid_answer() {
    for command in commands() {
        let (code, why) = code(command, vec![of_text("no JSON"), Reply::silent()], false, "0.5");
        assert_eq!(code, 1, "{command:?}: {why}");
    }
}

#[test]
fn a_request_that_the_server_refuses_and_a_wrong_key_have_one_code_in_all_commands() {
    for command in commands() {
        for (status, expected) in [(401, 3), (400, 2)] {
            let (code, why) = code(command, vec![Reply::status(status)], false, "5");
            assert_eq!(code, expected, "{command:?}: {why}");
        }
    }
}
