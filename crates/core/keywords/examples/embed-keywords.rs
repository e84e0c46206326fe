//! Lists the members that a schema names, with this crate alone.
//!
//! `cargo run -p formwork-keywords --example embed-keywords`

use formwork_keywords::{find, member_names};

fn main() {
    let schema = serde_json::json!({"properties": {"name": {"type": "string"}}, "allOf": [{"$ref": "#/$defs/aged"}],
        "$defs": {"aged": {"properties": {"age": {"type": "integer"}}}}});
    println!("members: {}", member_names(&schema, &schema).join(", "));
    println!("the integer: {:?}", find(&schema, |node| node["type"] == "integer"));
}
