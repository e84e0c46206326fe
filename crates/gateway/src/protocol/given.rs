//! Requests that are passed on as they are.

use serde_json::{Value, json};

use super::turn::items;

/// Returns the part of a request that says what has to be checked: its tools with schemas, its format and its limits. Members that the
/// service cannot act on, such as documents, are left out; targets of the same protocol take them.
pub(crate) fn reduced(body: &Value) -> Value {
    const KEPT: [&str; 14] = [
        "format",
        "max_completion_tokens",
        "max_output_tokens",
        "max_tokens",
        "model",
        "n",
        "options",
        "output_config",
        "output_format",
        "response_format",
        "stream",
        "stream_options",
        "text",
        "tool_choice",
    ];

    let mut kept: serde_json::Map<String, Value> =
        KEPT.iter().filter_map(|name| Some(((*name).to_owned(), body.get(*name)?.clone()))).collect();
    let has_schema = |tool: &&Value| {
        matches!(tool["type"].as_str(), None | Some("function" | "custom"))
            && (tool["function"].is_object()
                || tool["parameters"].is_object()
                || tool["input_schema"].is_object())
    };
    let tools: Vec<Value> = items(&body["tools"]).filter(has_schema).cloned().collect();
    if tools.len() < items(&body["tools"]).count() {
        kept.remove("tool_choice");
    }
    kept.insert("tools".to_owned(), tools.into());
    for name in ["messages", "input", "prompt"] {
        let Some(dialogue) = body.get(name) else { continue };
        // The text is what rules and evidence are about.
        let text = dialogue.as_array().and_then(|all| all.last()).unwrap_or(dialogue);
        let text = Some(texts(text)).filter(|text| !text.is_empty()).unwrap_or_else(|| ".".to_owned());
        let is_list = name == "messages";
        let text = if is_list { json!([{"role": "user", "content": text}]) } else { text.into() };
        kept.insert(name.to_owned(), text);
    }
    kept.into()
}

/// Returns the texts of a message, or of a prompt.
fn texts(message: &Value) -> String {
    let content = message.get("content").unwrap_or(message);
    let parts = items(content).filter_map(|part| part["text"].as_str());
    content.as_str().into_iter().chain(parts).collect::<Vec<_>>().join("\n\n")
}

/// Returns the names of all tools of a request.
pub(crate) fn tool_names(body: &Value) -> impl Iterator<Item = &str> {
    items(&body["tools"]).filter_map(|tool| tool["name"].as_str().or(tool["function"]["name"].as_str()))
}
