//! Compares the requests of this crate with those of the `ollama-rs` crate.

use formwork_core::{Enforcement, Message, ModelSettings, Part, Role, Sampling, Tool};
use formwork_ollama::{Ollama, Think};
use ollama_rs::generation::chat::ChatMessage;
use ollama_rs::generation::chat::request::ChatMessageRequest;
use ollama_rs::generation::completion::request::GenerationRequest;
use ollama_rs::generation::images::Image;
use ollama_rs::generation::parameters::{FormatType, JsonStructure, KeepAlive, ThinkType, TimeUnit};
use ollama_rs::generation::tools::{ToolCall, ToolCallFunction, ToolFunctionInfo, ToolInfo, ToolType};
use ollama_rs::models::ModelOptions;
use serde::Serialize;
use serde_json::{Value, json};

use crate::support::{body, enforcing, person, with_schema};

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

/// Returns the request of this crate for a chat, and that of `ollama-rs`, without members that the other does not support: the
/// size of the context and the name of a tool's result.
fn both(wire: &Ollama, call: &formwork_core::Call, theirs: &ChatMessageRequest) -> [Value; 2] {
    let mut ours = body(wire, call);
    let members = ours.as_object_mut().unwrap();
    for name in ["truncate", "shift"] {
        members.remove(name);
    }
    let options = members["options"].as_object_mut().unwrap();
    options.remove("num_ctx");
    if options.is_empty() {
        members.remove("options");
    }
    for message in members["messages"].as_array_mut().unwrap() {
        message.as_object_mut().unwrap().remove("tool_name");
    }
    [ours, document(theirs)]
}

/// Each feature of a chat that both have: plain JSON, levels of reasoning, images, tools with their calls and results, the further
/// options, and log probabilities.
#[test]
fn each_feature_of_a_chat_means_the_same() {
    let base = Ollama::new("m").with_stream(false);
    let theirs = |messages| ChatMessageRequest::new("m".to_owned(), messages);
    let hi = || vec![ChatMessage::user("hi".to_owned())];
    let settings: ModelSettings =
        serde_json::from_value(json!({"stop": ["END"], "top_k": 40, "top_logprobs": 3})).unwrap();
    let options = ModelOptions::default().stop(vec!["END".to_owned()]).top_k(40);
    let of_text = enforcing(Enforcement::None);

    let mut seen = enforcing(Enforcement::None);
    let image = Part::Image { media_type: "image/png".to_owned(), data: "aGk=".to_owned() };
    let mut user = Message::user("hi");
    user.parts.push(image);
    seen.messages = vec![user.into()];
    let with_image = ChatMessage::user("hi".to_owned()).with_images(vec![Image::from_base64("aGk=")]);

    let mut used = enforcing(Enforcement::None);
    used.tools = vec![Tool {
        name: "find".to_owned(),
        description: "Finds a person.".to_owned(),
        parameters: person(),
    }];
    let arguments = json!({"name": "Maria"});
    let call = Part::ToolCall { id: "1".to_owned(), name: "find".to_owned(), arguments: arguments.clone() };
    let result = Part::ToolResult { id: "1".to_owned(), text: "found".to_owned() };
    for (role, part) in [(Role::Assistant, call), (Role::Tool, result)] {
        let mut message = Message::new(role, "");
        message.parts = vec![part];
        used.messages.push(message.into());
    }
    let tool = ToolInfo {
        tool_type: ToolType::Function,
        function: ToolFunctionInfo {
            name: "find".to_owned(),
            description: "Finds a person.".to_owned(),
            parameters: person().try_into().unwrap(),
        },
    };
    let mut calling = ChatMessage::assistant(String::new());
    calling.tool_calls = vec![ToolCall { function: ToolCallFunction { name: "find".to_owned(), arguments } }];
    let mut dialogue = hi();
    dialogue.extend([calling, ChatMessage::tool("found".to_owned())]);

    let level = Think::Level("low".to_owned());
    for (name, [ours, theirs]) in [
        ("json", both(&base, &enforcing(Enforcement::JsonObject), &theirs(hi()).format(FormatType::Json))),
        ("level", both(&base.clone().with_think(level), &of_text, &theirs(hi()).think(ThinkType::Low))),
        (
            "options",
            both(
                &base.clone().with_settings(&settings),
                &of_text,
                &theirs(hi()).options(options).logprobs(true).top_logprobs(3),
            ),
        ),
        ("image", both(&base, &seen, &theirs(vec![with_image]))),
        ("tools", both(&base, &used, &theirs(dialogue).tools(vec![tool]))),
    ] {
        assert_eq!(ours, theirs, "{name}");
    }
}
