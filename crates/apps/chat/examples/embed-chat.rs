//! Uses this crate alone: a question, a correction, a tool call, and a failure as data, with a scripted model.
//!
//! `cargo run -p formwork-chat --example embed-chat`

use std::sync::Arc;

use formwork_chat::{ChatTool, JsonModeChatClient};
use formwork_testkit::Scripted;
use serde_json::json;

#[derive(schemars::JsonSchema, serde::Deserialize)]
struct City {
    city: String,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tool_call = json!({"tool": {"name": "weather", "arguments": {"city": "Lisbon"}}}).to_string();
    let answer = json!({
        "task": {"type": "qa", "user_intent": "know the weather"},
        "answer": {"text": "It is sunny in Lisbon."},
        "quality": {"confidence": 0.9, "assumptions": [], "risks": []},
        "debug": {"schema_version": "1.0", "model": "a script"},
    });
    let model = Arc::new(Scripted::new([tool_call.as_str(), "Sunny!", &answer.to_string(), "{}"]));
    let weather = ChatTool::new("weather", "Says what the weather is.", |City { city }| async move {
        Ok::<_, String>(format!("sunny in {city}"))
    })?;
    let client =
        JsonModeChatClient::builder().with_target(model).with_tool(weather).with_debug(true).build()?;
    let reply = client.ask_blocking("How is the weather in Lisbon?").into_result()?;
    println!("{} (after {})", reply.answer.answer.text, reply.tools[0]);
    if let Some(failure) = client.ask_blocking("And tomorrow?").failure() {
        println!("{}, {} errors", failure.code, failure.errors.len());
    }
    Ok(())
}
