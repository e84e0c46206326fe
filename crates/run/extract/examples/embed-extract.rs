//! Uses this crate alone, with a custom provider: `cargo run -p formwork-extract --example embed-extract`.
//!
//! The provider answers from a table. A real provider sends the call to a model and streams the response.

use std::sync::Arc;

use formwork_core::{Answer, Call, Capabilities, Completion, Fault, Provider};
use formwork_extract::Extractor;

#[derive(Debug, schemars::JsonSchema, serde::Deserialize)]
struct Person {
    name: String,
    #[schemars(range(max = 150))]
    age: u8,
}

#[derive(Debug)]
struct Table(Capabilities);

#[async_trait::async_trait]
impl Provider for Table {
    fn name(&self) -> &str {
        "table"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.0
    }

    async fn call(&self, call: &Call) -> Result<Answer, Fault> {
        // The first answer has a mistake; the second call requests only the invalid value.
        let first = call.messages.len() == 2;
        let text = if first { r#"{"name": "Maria Lindqvist", "age": 340}"# } else { r#"{"age": 34}"# };
        Ok(Completion::new(text).into())
    }
}

fn main() -> Result<(), formwork_core::Error> {
    let table = Arc::new(Table(Capabilities::default()));
    let extractor = Extractor::<Person>::builder().with_target(table).build()?;
    let outcome = extractor.extract_blocking("Maria Lindqvist, 34, moved to Lisbon last spring.")?;
    for call in &outcome.calls {
        println!("attempt {}: {}", call.attempt, call.text);
    }
    println!("{} is {}", outcome.value.name, outcome.value.age);
    Ok(())
}
