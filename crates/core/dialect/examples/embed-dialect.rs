//! Lowers a schema, and prints the sent schema, the text for the prompt and the losses.
//!
//! `cargo run -p formwork-dialect --example embed-dialect`

use formwork_core::{LowerRequest, Refused};
use serde_json::json;

fn main() -> Result<(), Refused> {
    let schema = json!({
        "type": "object",
        "properties": {
            "reasoning": {"type": "string"},
            "risks": {"type": "array", "items": {"enum": ["low", "high"]}, "uniqueItems": true},
        },
        "required": ["reasoning"],
    });
    for dialect in formwork_dialect::Dialects::builtin().iter() {
        let lowered = dialect.lower(&LowerRequest::new(&schema))?;
        println!("{}:\n  sent {:?}\n  shown {:?}", dialect.name(), lowered.schema, lowered.prompt_schema);
        lowered.losses.iter().for_each(|loss| println!("  {loss}"));
    }
    Ok(())
}
