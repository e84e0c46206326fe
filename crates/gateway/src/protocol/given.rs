//! Requests that are passed on as they are.

use serde_json::{Value, json};

use super::turn::items;

/// Returns the part of a request that says what has to be checked: its tools with schemas, its format and its limits. Members that the
/// service cannot act on, such as documents, are left out; targets of the same protocol take them. `fields` are those of the protocol.
pub(crate) fn reduced(body: &Value, fields: &[&str]) -> Value {
    #[rustfmt::skip]
    const KEPT: [&str; 20] = [
        "format", "frequency_penalty", "instructions", "max_completion_tokens", "max_output_tokens", "max_tokens",
        "model", "n", "options", "output_config", "output_format", "response_format", "seed", "stream",
        "stream_options", "system", "temperature", "text", "tool_choice", "top_p",
    ];

    let mut kept: serde_json::Map<String, Value> = KEPT
        .iter()
        .filter(|name| fields.contains(name))
        .filter_map(|name| Some(((*name).to_owned(), body.get(*name)?.clone())))
        .collect();
    let has_schema = |tool: &&Value| {
        matches!(tool["type"].as_str(), None | Some("function" | "custom"))
            && (tool["function"].is_object()
                || tool["parameters"].is_object()
                || tool["input_schema"].is_object())
    };
    let tools: Vec<Value> = items(&body["tools"]).filter(has_schema).cloned().collect();
    let is_whole = tools.len() == items(&body["tools"]).count();
    let choice = kept.remove("tool_choice").filter(|_| is_whole);
    let choice = choice.and_then(|choice| match choice["type"].as_str() {
        None | Some("function" | "auto" | "any" | "none" | "tool") => Some(choice),
        // The choice from some of the tools: calls of all of them are judged.
        _ if choice["mode"] == "required" || choice["allowed_tools"]["mode"] == "required" => {
            Some("required".into())
        }
        _ => None,
    });
    kept.extend(choice.map(|choice| ("tool_choice".to_owned(), choice)));
    kept.insert("tools".to_owned(), tools.into());
    for name in ["messages", "input"] {
        let Some(dialogue) = body.get(name) else { continue };
        // The texts are what limits, rules and evidence are about. A part without text is a placeholder.
        let messages = items(dialogue).map(|message| {
            let text = Some(texts(message)).filter(|text| !text.is_empty()).unwrap_or_else(|| ".".to_owned());
            let kind = message["type"].as_str().unwrap_or_default();
            let role = match message["role"].as_str() {
                Some("system" | "developer") if !fields.contains(&"system") => "system",
                Some("assistant") => "assistant",
                // What the model wrote is no text that it was given.
                None if kind == "reasoning" || kind.ends_with("_call") => "assistant",
                _ => "user",
            };
            json!({"role": role, "content": text})
        });
        let messages: Vec<_> = messages.collect();
        let is_list = dialogue.is_array();
        kept.insert(name.to_owned(), if is_list { messages.into() } else { dialogue.clone() });
    }
    // That of the Responses API is a template, which the vendor keeps.
    if let Some(prompt) = body.get("prompt").filter(|prompt| prompt.is_string()) {
        kept.insert("prompt".to_owned(), prompt.clone());
    }
    kept.into()
}

/// Returns the texts of a message, of the result of a tool, or of a part.
fn texts(message: &Value) -> String {
    let content = ["content", "output", "text"].into_iter().find_map(|name| message.get(name));
    let Some(content) = content else { return String::new() };
    let parts = items(content).map(texts).filter(|text| !text.is_empty());
    content.as_str().map(str::to_owned).into_iter().chain(parts).collect::<Vec<_>>().join("\n\n")
}

/// Returns the names of all tools of a request.
pub(crate) fn tool_names(body: &Value) -> impl Iterator<Item = &str> {
    items(&body["tools"]).filter_map(|tool| tool["name"].as_str().or(tool["function"]["name"].as_str()))
}
