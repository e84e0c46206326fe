//! Models that continue the opening of the document.

use formwork::config::Config;
use formwork::providers::Providers;
use formwork::{Error, Setup};
use formwork_core::Outcome;
use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use crate::swap::Person;

const WHOLE: &str = r#"{"name": "Maria", "age": 34}"#;

fn message(text: &str, is_stream: bool) -> Reply {
    ended(text, is_stream, "end_turn")
}

/// Returns an answer that ended for this reason.
fn ended(text: &str, is_stream: bool, reason: &str) -> Reply {
    let usage = json!({"input_tokens": 1, "output_tokens": 1});
    if !is_stream {
        let content = json!([{"type": "text", "text": text}]);
        return Reply::json(
            json!({"type": "message", "content": content, "stop_reason": reason, "usage": usage}).to_string(),
        );
    }
    let block = json!({"type": "text", "text": ""});
    let mut events = vec![
        json!({"type": "message_start", "message": {"usage": usage}}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
    ];
    let letters: Vec<char> = text.chars().collect();
    events.extend(letters.chunks(3).map(|piece| {
        let delta = json!({"type": "text_delta", "text": piece.iter().collect::<String>()});
        json!({"type": "content_block_delta", "index": 0, "delta": delta})
    }));
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}));
    events.push(json!({"type": "message_stop"}));
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    Reply::pieces([body]).with_header("content-type", "text/event-stream")
}

/// Extracts a person by a model with these settings.
async fn extract(server: &Server, model: &str, settings: &str) -> Result<Outcome<Person>, Error> {
    let text = format!(
        "[providers.a]\nkind = \"anthropic\"\nmodel = {model:?}\nbase_url = {:?}\napi_key_env = \"\"\n{settings}",
        server.url()
    );
    let config = Config::from_toml(&text).unwrap();
    let setup = Setup::open(&config, &Providers::builtin()).await?;
    setup.extractor::<Person>().build()?.extract("Maria, 34.").await
}

/// Returns the role and the content of the last message of each request.
fn last_messages(server: &Server) -> Vec<(String, Value)> {
    let last = |body: Value| {
        let last = body["messages"].as_array().unwrap().last().unwrap().clone();
        (last["role"].as_str().unwrap().to_owned(), last["content"].clone())
    };
    server.received().iter().map(|request| last(serde_json::from_slice(&request.body).unwrap())).collect()
}

const PROMPT: &str = "modes = [\"prompt\"]\n";

#[tokio::test]
async fn the_opening_is_sent_and_the_answer_is_whole_streamed_and_in_one_piece() {
    for text in [
        &WHOLE[1..],
        WHOLE,
        "\n\"name\": \"Maria\", \"age\": 34}",
        "```json\n{\"name\": \"Maria\", \"age\": 34}\n```",
    ] {
        for is_stream in [true, false] {
            let server = Server::start([message(text, is_stream)]).unwrap();
            let settings = format!("{PROMPT}stream = {is_stream}\n");
            let outcome = extract(&server, "claude-haiku-4-5", &settings).await.unwrap();
            assert_eq!((outcome.value.name.as_str(), outcome.value.age), ("Maria", 34), "{text}");
            let [call] = outcome.calls.as_slice() else { panic!("{:?}", outcome.calls) };
            assert!(call.text.contains('{') && call.text.contains('}'), "{}", call.text);
            assert_eq!(call.text.matches('{').count(), 1, "{}", call.text);
            let opening = ("assistant".to_owned(), json!([{"type": "text", "text": "{"}]));
            assert_eq!(last_messages(&server), [opening]);
        }
    }
}

#[tokio::test]
async fn no_opening_is_sent_where_the_model_the_mode_or_the_configuration_rules_it_out() {
    for (model, settings) in [
        ("claude-haiku-4-5", ""),
        ("claude-haiku-4-5", "mode = \"tool\"\n"),
        ("claude-haiku-4-5", "modes = [\"prompt\"]\nprefill = false\n"),
        ("claude-haiku-4-5", "modes = [\"prompt\"]\nthinking = { budget_tokens = 1024 }\n"),
        ("claude-opus-4-8", PROMPT),
        ("claude-sonnet-5", PROMPT),
        ("no-such-model", PROMPT),
    ] {
        let server = Server::start([message(WHOLE, false)]).unwrap();
        let settings = format!("stream = false\n{settings}");
        let outcome = extract(&server, model, &settings).await.unwrap();
        assert_eq!(outcome.value.age, 34);
        assert!(last_messages(&server).iter().all(|(role, _)| role == "user"), "{model} {settings}");
    }
    let server = Server::start([message(&WHOLE[1..], false)]).unwrap();
    let settings = format!("{PROMPT}stream = false\nprefill = true\n");
    assert_eq!(extract(&server, "no-such-model", &settings).await.unwrap().value.age, 34);
    let error = extract(&server, "claude-opus-4-8", &settings).await.unwrap_err();
    let expected = "`claude-opus-4-8` refuses a last message of the assistant: leave out `prefill = true`";
    assert!(error.to_string().contains(expected), "{error}");
}

#[tokio::test]
async fn a_model_that_refuses_the_opening_is_called_without_it_and_the_outcome_says_so() {
    let message_of = "This model does not support assistant message prefill.";
    let refusal = json!({"type": "error", "error": {"type": "invalid_request_error", "message": message_of}});
    let refused = Reply::json(refusal.to_string()).with_status(400);
    let wrong = message("{\"name\": \"Maria\"}", false);
    let server = Server::start([refused, wrong, message(WHOLE, false)]).unwrap();
    let settings = format!("{PROMPT}stream = false\nprefill = true\n");
    let outcome = extract(&server, "no-such-model", &settings).await.unwrap();
    let roles: Vec<String> = last_messages(&server).into_iter().map(|(role, _)| role).collect();
    assert_eq!(roles[..2], ["assistant", "user"], "the second call has no opening");
    assert!(roles[2..].iter().all(|role| role == "user"), "and neither has any later call");
    let notes: Vec<&String> = outcome.calls.iter().flat_map(|call| &call.notes).collect();
    let [note] = notes.as_slice() else { panic!("{notes:?}") };
    assert!(
        note.starts_with("the model does not continue the opening") && note.contains(message_of),
        "{note}"
    );
}

/// The text of the first answer ends at each byte; the second call brings the values that had ended as the last message, and the
/// answer to it is their continuation, or a whole answer of a model that begins anew.
#[tokio::test]
async fn an_answer_that_was_cut_off_is_continued_after_its_last_value() {
    let continuation = ", \"age\": 34}";
    for (cut, next, kept) in [
        ("\"name\": \"Maria\", \"ag", continuation, true),
        ("\"name\": \"Maria\"", continuation, true),
        ("\"name\": \"Maria\", \"age\": 3", continuation, true),
        ("\"name\": \"Maria\", \"age\": 3", WHOLE, true),
        ("\"name\": \"Mar", &WHOLE[1..], false),
    ] {
        for is_stream in [true, false] {
            let server =
                Server::start([ended(cut, is_stream, "max_tokens"), message(next, is_stream)]).unwrap();
            let settings = format!("{PROMPT}stream = {is_stream}\n");
            let outcome = extract(&server, "claude-haiku-4-5", &settings).await.unwrap();
            assert_eq!((outcome.value.name.as_str(), outcome.value.age), ("Maria", 34), "{cut}");
            let text = if kept { "{\"name\": \"Maria\"" } else { "{" };
            let last = ("assistant".to_owned(), json!([{"type": "text", "text": text}]));
            assert_eq!(last_messages(&server)[1], last, "{cut}");
            let notes = &outcome.calls[1].notes;
            let note = "the model was given the first 16 bytes of the answer before";
            assert_eq!(notes.iter().any(|found| found == note), kept, "{notes:?}");
        }
    }
}

#[tokio::test]
async fn a_server_of_chat_completions_continues_where_the_configuration_says_so() {
    let reply = |text: &str, finish: &str| {
        let message = json!({"role": "assistant", "content": text});
        let choices = json!([{"index": 0, "message": message, "finish_reason": finish}]);
        Reply::json(json!({"object": "chat.completion", "choices": choices}).to_string())
    };
    for (promise, role) in [("capabilities = { prefill = true }\n", "assistant"), ("", "user")] {
        let server = Server::start([
            reply("{\"name\": \"Maria\", \"a", "length"),
            reply(if promise.is_empty() { "{\"age\": 34}" } else { ", \"age\": 34}" }, "stop"),
        ])
        .unwrap();
        let text = format!(
            "[providers.a]\nkind = \"vllm\"\nmodel = \"m\"\nbase_url = {:?}\napi_key_env = \"\"\n{PROMPT}stream = false\n{promise}",
            server.url()
        );
        let setup = Setup::open(&Config::from_toml(&text).unwrap(), &Providers::builtin()).await.unwrap();
        let outcome = setup.extractor::<Person>().build().unwrap().extract("Maria, 34.").await.unwrap();
        assert_eq!((outcome.value.name.as_str(), outcome.value.age), ("Maria", 34));
        assert_eq!(last_messages(&server)[1].0, role);
        assert_eq!(outcome.calls[1].patched.is_empty(), role == "assistant");
    }
}
