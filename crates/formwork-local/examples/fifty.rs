//! How good the default model is at the smallest useful task: fifty seeds, one schema, one sentence.
//!
//! `cargo run --release -p formwork-local --example fifty [TEMPERATURE [MAX_TOKENS]]`

use std::sync::Arc;

use formwork_core::{Call, Enforcement, Finish, Lowered, Message, Provider, Sampling};
use formwork_local::{Local, LocalOptions};
use serde_json::{Value, json};

const SYSTEM: &str = "You answer with one JSON object only, no prose, no markdown. It must have this shape:\n\
    {\"name\": string, \"age\": integer, \"city\": string}";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let temperature = arguments.next().map_or(Ok(0.3), |text| text.parse())?;
    let max_tokens = arguments.next().map_or(Ok(200), |text| text.parse())?;
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "city": {"type": "string"}},
        "required": ["name", "age", "city"],
        "additionalProperties": false,
    });
    let lowered = Lowered { schema: Some(schema), enforcement: Enforcement::Schema, ..Lowered::default() };
    let mut call = Call {
        messages: vec![
            Message::system(SYSTEM),
            Message::user("Maria Lindqvist, 34, moved to Lisbon last spring."),
        ],
        schema_name: "person".to_owned(),
        lowered: Arc::new(lowered),
        rules: Vec::new(),
        sampling: Sampling { temperature: Some(temperature), ..Sampling::default() },
        max_tokens: Some(max_tokens),
        deadline: None,
        tools: Vec::new(),
    };
    let local = Local::open(LocalOptions::new())?;
    let right = json!({"name": "Maria Lindqvist", "age": 34, "city": "Lisbon"});
    let (mut valid, mut closed, mut all, mut age) = (0, 0, 0, 0);
    for seed in 0..50 {
        call.sampling.seed = Some(seed);
        let answer = local.call(&call).await?.collect().await?;
        let value: Value = serde_json::from_str(&answer.text).unwrap_or_default();
        let is_valid = value["name"].is_string() && value["age"].is_i64() && value["city"].is_string();
        valid += u32::from(is_valid);
        closed += u32::from(answer.finish == Finish::Length);
        all += u32::from(value == right);
        age += u32::from(value["age"] == right["age"]);
        if value != right {
            println!("seed {seed}: {}", answer.text);
        }
    }
    println!("of 50: valid {valid}, closed {closed}, all three right {all}, age right {age}");
    Ok(())
}
