//! Uses the model alone, without the rest of formwork: one call, one answer.
//!
//! `cargo run --release -p formwork-local --example embed-local`

use formwork_core::{Call, Enforcement, Lowered, Message, Provider};
use formwork_local::{Local, LocalOptions, Store};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let progress = |what: &str, done: u64, total: u64| eprintln!("{what}: {done} of {total}");
    let local = Local::open(LocalOptions::new().with_store(Store::open()?.with_progress(progress)))?;
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "city": {"type": "string"}},
        "required": ["name", "age", "city"],
        "additionalProperties": false,
    });
    let call = Call::new(
        vec![
            Message::system(
                "You answer with one JSON object only, no prose, no markdown. It must have this shape:\n\
                 {\"name\": string, \"age\": integer, \"city\": string}",
            ),
            Message::user("Maria Lindqvist, 34, moved to Lisbon last spring."),
        ],
        Lowered::new(Enforcement::Schema, schema),
    )
    .with_schema_name("person")
    .with_max_tokens(100);
    let answer = local.call(&call).await?.collect().await?;
    println!("{}", answer.text);
    eprintln!("{:?}, {:?}", answer.finish, answer.usage);
    Ok(())
}
