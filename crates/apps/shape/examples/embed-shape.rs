//! Uses this crate alone: converts a shape to JSON Schema and back, validates a value, and shows a mistake in a shape.
//!
//! `cargo run -p formwork-shape --example embed-shape`

use formwork_core::Schema as _;
use formwork_shape::Shape;
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let shape = Shape::parse("{name: string, mood?: calm | cross, risks: [string] /* one sentence each */}")?;
    println!("{shape}\n{}", shape.document());
    for violation in shape.validate(&json!({"mood": "sad", "risks": ["none", 5]})) {
        println!("{violation}");
    }
    let (again, unsaid) = Shape::from_schema(shape.document())?;
    assert!(again == shape && unsaid.is_empty());
    if let Err(error) = Shape::parse("{\n  name: string,\n  age: intger\n}") {
        print!("{}", error.pointed("person.shape"));
    }
    Ok(())
}
