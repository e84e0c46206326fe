//! The scenes of the chat document, over HTTP.

use std::sync::{Arc, Mutex};

use formwork_chat::{CONTRACT_1_0, ChatCode, ChatResult, JsonModeChatClient, StructuredAnswer};
use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use crate::support::{bodies, client_of, good, model, server};

#[test]
fn one_request_in_json_mode_with_the_contracts_bytes() {
    let server = server(&[&good().to_string()]);
    let client = client_of(&server).with_system("Answer in Portuguese.").build().unwrap();
    let reply = client.ask_blocking("What is JSON?").into_result().unwrap();
    assert_eq!((reply.answer.answer.text.as_str(), reply.attempts), ("A text format for data.", 1));
    assert_eq!(reply.usage.output_tokens, 5);
    assert_eq!(server.received().len(), 1);
    assert_eq!(server.received()[0].path, "/v1/chat/completions");
    let body = bodies(&server).remove(0);
    assert_eq!(body["response_format"], json!({"type": "json_object"}));
    assert!(body.get("temperature").is_none() && body.get("tools").is_none(), "{body}");
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 2);
    assert_eq!(
        (&messages[0]["role"], &messages[1]),
        (&json!("system"), &json!({"role": "user", "content": "What is JSON?"}))
    );
    let system = messages[0]["content"].as_str().unwrap();
    assert!(system.contains(CONTRACT_1_0) && system.ends_with("\n\nAnswer in Portuguese."), "{system}");
    assert!(
        !system.contains("$schema") && !system.contains("additionalProperties"),
        "only the contract is shown: {system}"
    );
}

#[test]
fn the_number_of_errors_is_that_of_all() {
    let mut wrong = good();
    wrong["quality"]["risks"] = json!(vec![1; 600]);
    let server = server(&[&wrong.to_string()]);
    let lines = Arc::new(Mutex::new(Vec::<String>::new()));
    let sink = Arc::clone(&lines);
    let client = client_of(&server).with_debug_log(move |line| sink.lock().unwrap().push(line.to_owned()));
    let failure = client.build().unwrap().ask_blocking("What?").into_result().unwrap_err();
    assert_eq!((failure.message.as_str(), failure.left_out()), ("the last answer has 600 errors", 88));
    let correction =
        bodies(&server)[1]["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    assert!(
        correction.contains("$.quality.risks[0-511]: ") && correction.contains("(and 88 more)"),
        "{correction}"
    );
    let lines = lines.lock().unwrap();
    assert_eq!(lines[1], "[chat] attempt 1/2: SCHEMA_VALIDATION_FAILED, 600 errors");
    assert!(lines.iter().any(|line| line == "[chat]   and 88 more"), "{lines:#?}");

    // The schema of the data has a validator of its own.
    let mut wrong = good();
    wrong["answer"]["data"] = json!(vec!["x"; 600]);
    wrong["debug"]["schema_version"] = json!("1.1");
    let model = model([wrong.to_string().as_str()]);
    let client = JsonModeChatClient::<StructuredAnswer<Vec<u8>>>::typed().with_target(model);
    let failure = client.build().unwrap().ask_blocking("What?").into_result().unwrap_err();
    assert_eq!((failure.message.as_str(), failure.left_out()), ("the last answer has 600 errors", 88));
}

#[test]
fn a_forced_tool_takes_the_place_of_json_mode_and_is_corrected_like_it() {
    let replies = ["{}".to_owned(), good().to_string()].map(|arguments| {
        let function = json!({"name": "StructuredAnswerLite", "arguments": arguments});
        let call = json!({"id": "c", "type": "function", "function": function});
        let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
        Reply::json(json!({"choices": [{"message": message, "finish_reason": "tool_calls"}]}).to_string())
    });
    let server = Server::start(replies).unwrap();
    let client = client_of(&server).with_forced_tool().build().unwrap();
    let reply = client.ask_blocking("What is JSON?").into_result().unwrap();
    assert_eq!((reply.answer.answer.text.as_str(), reply.attempts), ("A text format for data.", 2));
    let schema = include_str!("../../../../../schemas/structured-answer-lite.v1.json");
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    for body in bodies(&server) {
        let function = &body["tools"][0]["function"];
        assert_eq!(function["parameters"]["description"], schema["description"]);
        assert!(!body.to_string().contains("use formwork_chat"), "models do not see examples in Rust");
        assert_eq!(body["tool_choice"]["function"]["name"], function["name"]);
        assert!(function["parameters"]["properties"]["quality"].is_object(), "{body}");
        assert!(body.get("response_format").is_none() && body["tools"].as_array().unwrap().len() == 1);
    }
}

#[test]
fn fenced_json_is_corrected_by_a_system_message() {
    let fenced = format!("```json\n{}\n```", good());
    let server = server(&[&fenced, &good().to_string()]);
    let reply = client_of(&server).build().unwrap().ask_blocking("What is JSON?").into_result().unwrap();
    assert_eq!(reply.attempts, 2);
    let sent = bodies(&server);
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[1]["response_format"], json!({"type": "json_object"}));
    let messages = sent[1]["messages"].as_array().unwrap();
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "system"]);
    assert_eq!(messages[0], sent[0]["messages"][0], "the governing message stays");
    assert_eq!(messages[2]["content"], fenced.as_str());
    let correction = messages[3]["content"].as_str().unwrap();
    assert!(
        correction.starts_with("INVALID_JSON: ")
            && correction.ends_with("Return only a corrected JSON object."),
        "{correction}"
    );
}

#[test]
fn four_errors_at_once() {
    let mut wrong = good();
    wrong["extra"] = json!(1);
    wrong["task"]["type"] = json!("chat");
    wrong["quality"]["confidence"] = json!(1.2);
    wrong["debug"]["schema_version"] = json!("1.1");
    let server = server(&[&wrong.to_string()]);
    let result = client_of(&server).build().unwrap().ask_blocking("What is JSON?");
    let failure = result.failure().unwrap();
    assert_eq!(
        (failure.code, failure.errors.len(), failure.attempts),
        (ChatCode::SchemaValidationFailed, 4, 2)
    );
    let correction = bodies(&server)[1]["messages"][3]["content"].as_str().unwrap().to_owned();
    assert!(correction.starts_with("SCHEMA_VALIDATION_FAILED: "), "{correction}");
    for line in [
        "- Unexpected field at path $.extra",
        "- Value not allowed at $.task.type: expected \"qa\", \"extraction\", \"classification\", \"summarization\" or \
         \"other\", found \"chat\"",
        "- Number out of range at $.quality.confidence: expected at most 1.0, found 1.2",
        "- Value not allowed at $.debug.schema_version: expected \"1.0\", found \"1.1\"",
    ] {
        assert!(correction.lines().any(|found| found == line), "{line}: {correction}");
    }
}

#[test]
fn always_bad_is_a_structured_result() {
    for (retries, requests) in [(None, 2), (Some(0), 1), (Some(3), 4)] {
        let server = server(&["[1]"]);
        let mut builder = client_of(&server);
        if let Some(retries) = retries {
            builder = builder.with_max_retries(retries);
        }
        let result = builder.build().unwrap().ask_blocking("What is JSON?");
        assert_eq!(server.received().len(), requests, "{retries:?}");
        let ChatResult::Failed(failure) = &result else { panic!("{result:?}") };
        assert_eq!((failure.code, failure.attempts as usize), (ChatCode::InvalidJson, requests));
        let written: Value = serde_json::to_value(&result).unwrap();
        assert_eq!((&written["status"], &written["code"]), (&json!("failed"), &json!("INVALID_JSON")));
        assert_eq!(written["errors"][0]["message"], "Not JSON at $: expected one JSON object, found array");
        assert_eq!(
            serde_json::from_value::<ChatResult<formwork_chat::StructuredAnswerLite>>(written).unwrap(),
            result
        );
    }
}

#[test]
fn debug_observes_and_changes_nothing() {
    let answered = |debug: bool| {
        let server = server(&["no JSON", &good().to_string()]);
        let lines = Arc::new(Mutex::new(Vec::<String>::new()));
        let mut builder = client_of(&server);
        if debug {
            let lines = Arc::clone(&lines);
            builder = builder.with_debug_log(move |line| lines.lock().unwrap().push(line.to_owned()));
        }
        let result = builder.build().unwrap().ask_blocking("What is JSON?");
        let sent: Vec<Vec<u8>> = server.received().into_iter().map(|request| request.body).collect();
        let lines = lines.lock().unwrap().clone();
        (sent, result.answer().cloned(), lines)
    };
    let ((quiet, answer, none), (loud, same, lines)) = (answered(false), answered(true));
    assert_eq!(quiet, loud, "the same bytes");
    assert_eq!((answer.is_some(), &answer, none.len()), (true, &same, 0));
    assert_eq!(lines.len(), 7, "{lines:#?}");
    assert!(lines[1].starts_with("[chat] attempt 1/2: INVALID_JSON, 1 error"), "{lines:#?}");
    assert!(lines[2].starts_with("[chat]   Not JSON at $"), "{lines:#?}");
    assert_eq!(lines[5..], ["[chat] attempt 2/2: valid", "[chat] converged after 2 attempts"]);
}

#[test]
fn strict_reading() {
    let text = good().to_string();
    let trailing = text.replace("]}", ",]}");
    for bad in [
        format!("Sure: {text}"),
        format!("{text}\nAnything else?"),
        trailing,
        format!("[{text}]"),
        "\"x\"".into(),
    ] {
        let server = server(&[&bad, &format!("\n {text}\n")]);
        let reply = client_of(&server).build().unwrap().ask_blocking("x").into_result().unwrap();
        assert_eq!(reply.attempts, 2, "{bad}");
        let correction = bodies(&server)[1]["messages"][3]["content"].as_str().unwrap().to_owned();
        assert!(correction.starts_with("INVALID_JSON: "), "{bad}: {correction}");
    }
}

#[test]
fn a_client_without_a_target_is_refused() {
    assert!(JsonModeChatClient::builder().build().is_err());
}
