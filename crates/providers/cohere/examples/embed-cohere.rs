//! Encodes a call and decodes a response without a network: `cargo run -p formwork-cohere --example embed-cohere`.

use formwork_cohere::Cohere;
use formwork_core::{Call, Delta, Enforcement, Lowered, Message};
use formwork_wire::http::Response;
use formwork_wire::{Deltas, Wire};
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let schema = json!({
        "type": "object",
        "properties": {"age": {"type": "integer"}},
        "required": ["age"],
        "additionalProperties": false,
    });
    let messages = vec![Message::system("Extract."), Message::user("Maria, 34, moved to Lisbon.")];
    let call = Call::new(messages, Lowered::new(Enforcement::Schema, schema)).with_schema_name("person");
    let wire = Cohere::new("command-a-03-2025");
    let request = wire.encode(&call)?;
    println!("{} {}\n{}", request.method(), request.uri(), String::from_utf8_lossy(request.body()));

    let response = json!({
        "message": {"role": "assistant", "content": [{"type": "text", "text": "{\"age\": 34}"}]},
        "finish_reason": "COMPLETE",
        "usage": {"tokens": {"input_tokens": 40, "output_tokens": 7}},
    });
    let (head, ()) = Response::new(()).into_parts();
    let (mut decoder, mut deltas) = (wire.decoder(&call, &head), Deltas::new());
    decoder.push(response.to_string().as_bytes(), &mut deltas)?;
    decoder.end(&mut deltas)?;
    for delta in deltas {
        if let Delta::Text(text) = delta {
            println!("{text}");
        }
    }
    Ok(())
}
