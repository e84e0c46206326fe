//! Compares the requests of this crate with those of the `ollama-rs` crate.

use formwork_core::{Message, Sampling};
use formwork_ollama::Ollama;
use ollama_rs::generation::chat::ChatMessage;
use ollama_rs::generation::chat::request::ChatMessageRequest;
use ollama_rs::generation::completion::request::GenerationRequest;
use ollama_rs::generation::parameters::{FormatType, JsonStructure, KeepAlive, TimeUnit};
use ollama_rs::models::ModelOptions;
use serde::Serialize;
use serde_json::Value;

use crate::support::{body, person, with_schema};

/// Numbers that 32-bit floats hold exactly, as `ollama-rs` has them.
const TEMPERATURE: f64 = 0.25;

fn ours() -> formwork_core::Call {
    let mut call = with_schema(person());
    call.messages.insert(0, Message::system("Extract.").into());
    call.sampling = Sampling::default().with_temperature(TEMPERATURE).with_top_p(0.5).with_seed(7);
    call.max_tokens = Some(400);
    call
}

fn options() -> ModelOptions {
    ModelOptions::default().temperature(TEMPERATURE as f32).top_p(0.5).seed(7).num_predict(400).num_ctx(4096)
}

fn format() -> FormatType {
    FormatType::StructuredJson(Box::new(JsonStructure::new_for_schema(person().try_into().unwrap())))
}

/// Returns a request of `ollama-rs` as a document, without empty members.
fn document(theirs: &impl Serialize) -> Value {
    let mut document = serde_json::to_value(theirs).unwrap();
    for message in document.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten() {
        message.as_object_mut().unwrap().retain(|key, value| {
            let says_nothing = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
            assert!(!says_nothing || ["thinking", "tool_calls", "images"].contains(&key.as_str()), "{key}");
            !says_nothing
        });
    }
    document
}

/// Returns a request of this crate, without members that `ollama-rs` does not support.
fn ours_comparable(wire: &Ollama) -> Value {
    let mut document = body(wire, &ours());
    for name in ["truncate", "shift"] {
        assert_eq!(document.as_object_mut().unwrap().remove(name), Some(Value::Bool(false)));
    }
    document
}

#[test]
fn a_chat_with_a_schema_means_the_same() {
    let messages = vec![
        ChatMessage::system("Extract.".to_owned()),
        ChatMessage::user("Maria, 34, moved to Lisbon.".to_owned()),
    ];
    let theirs = ChatMessageRequest::new("qwen3:8b".to_owned(), messages)
        .format(format())
        .options(options())
        .keep_alive(KeepAlive::Until { time: 5, unit: TimeUnit::Minutes })
        .think(false);
    let wire = Ollama::new("qwen3:8b").with_stream(false).with_keep_alive("5m").with_think(false);
    assert_eq!(ours_comparable(&wire), document(&theirs));
}

#[test]
fn a_generation_with_a_schema_means_the_same() {
    let theirs = GenerationRequest::new("qwen3:8b".to_owned(), "Maria, 34, moved to Lisbon.")
        .system("Extract.")
        .format(format())
        .options(options())
        .keep_alive(KeepAlive::UnloadOnCompletion);
    let mut ours = ours_comparable(&Ollama::new("qwen3:8b").with_generate().with_keep_alive(0));
    // `ollama-rs` adds the member when it sends the request.
    assert_eq!(ours.as_object_mut().unwrap().remove("stream"), Some(Value::Bool(true)));
    assert_eq!(ours, document(&theirs));
}
