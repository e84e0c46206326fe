//! Finds the places of the values of an answer in its input, with this crate alone.
//!
//! `cargo run -p formwork-evidence --example embed-evidence`

use formwork_evidence::Index;
use serde_json::json;

fn main() {
    let text = "Invoice 7 of 3 May 2024: two chairs, total 1.234,50 EUR.";
    let value = json!({"number": 7, "date": "2024-05-03", "total": 1234.5, "customer": "Ana Sousa"});
    for evidence in Index::new(text).evidence(&value, None) {
        println!("{}: {:?} at {:?}", evidence.path, evidence.status, evidence.spans.first());
    }
}
