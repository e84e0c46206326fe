//! Wraps a provider that could enforce a schema, and prints the prompt that contains the schema instead.
//!
//! `cargo run -p formwork-prompt --example embed-prompt`

use std::sync::Arc;

use formwork_core::{Call, Fault, LowerRequest, Message, Provider, Refused, SchemaText};
use formwork_prompt::Prompt;
use formwork_testkit::Scripted;
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Fault> {
    let native = Arc::new(Scripted::new([r#"{"age": 34}"#]));
    let described = Prompt::outline(native);
    for mode in formwork_dialect::modes(described.capabilities()) {
        let schema =
            json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]});
        let lowered = mode.lower(&LowerRequest::new(&schema)).map_err(|refused: Refused| {
            Fault::new(formwork_core::FaultKind::BadRequest, refused.to_string())
        })?;
        // A `Run` writes this text into the prompt.
        let words = match &lowered.prompt_schema {
            Some(SchemaText::Outline(text) | SchemaText::JsonSchema(text)) => {
                format!("Answer with JSON of this shape: {text}")
            }
            _ => String::new(),
        };
        println!("{}: {words}", mode.name());
        let messages = vec![Message::system(words), Message::user("Maria, 34, moved to Lisbon.")];
        let call = Call::new(messages, lowered).with_schema_name("Person");
        println!("{}", described.call(&call).await?.collect().await?.text);
    }
    Ok(())
}
