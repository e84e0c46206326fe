//! The real default model. It is fetched if it is missing; if that fails, the error has the command that helps.

use std::sync::LazyLock;

use formwork_core::{Finish, Message};
use formwork_local::{Local, LocalOptions};
use serde_json::{Value, json};

use crate::calls::{answer, call, drawn, person};

/// One model for all tests, which take turns on its thread.
static MODEL: LazyLock<Local> =
    LazyLock::new(|| Local::open(LocalOptions::new()).unwrap_or_else(|error| panic!("{error}")));

const SYSTEM: &str = "You answer with one JSON object only, no prose, no markdown. It must have this shape:\n\
    {\"name\": string, \"age\": integer, \"city\": string}";

fn maria() -> formwork_core::Call {
    let mut request = call(Some(person()), "Maria Lindqvist, 34, moved to Lisbon last spring.");
    request.messages.insert(0, Message::system(SYSTEM).into());
    request.max_tokens = Some(100);
    request
}

#[tokio::test]
async fn a_sentence_becomes_an_object() {
    let answer = answer(&MODEL, &maria()).await.unwrap();
    let value: Value = serde_json::from_str(&answer.text).unwrap();
    assert_eq!(value, json!({"name": "Maria Lindqvist", "age": 34, "city": "Lisbon"}));
    assert!(answer.text.contains("\", \"age\": 34, \""), "{}", answer.text);
    assert_eq!((answer.finish, answer.closed_at), (Finish::Stop, None));
    assert!(answer.model.unwrap().to_lowercase().contains("smollm2"));
}

#[tokio::test]
async fn the_prefix_is_read_once_and_changes_nothing() {
    let mut other = maria();
    other.messages[1] = Message::user("Jo, 5, lives in Rome.").into();
    let request = drawn(maria(), 11, 60);
    let first = answer(&MODEL, &request).await.unwrap();
    answer(&MODEL, &other).await.unwrap();
    let second = answer(&MODEL, &request).await.unwrap();
    assert!(second.usage.cached_tokens >= 32, "{:?}", second.usage);
    assert_eq!(first.text, second.text);
}

#[tokio::test]
async fn a_string_that_goes_round_in_circles_is_ended_by_the_model() {
    let schema = json!({
        "type": "object",
        "properties": {"text": {"type": "string"}, "done": {"type": "boolean"}},
        "required": ["text", "done"],
        "additionalProperties": false,
    });
    let mut request =
        call(Some(schema), "Repeat the word banana without end: banana banana banana banana banana");
    request.max_tokens = Some(250);
    let answer = answer(&MODEL, &request).await.unwrap();
    assert_eq!((answer.finish, answer.closed_at), (Finish::Stop, None), "{}", answer.text);
    assert!(serde_json::from_str::<Value>(&answer.text).is_ok());
}
