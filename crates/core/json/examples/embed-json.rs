//! Uses this crate alone: finds the JSON in a model's text, and lists the repairs.
//!
//! `cargo run -p formwork-json --example embed-json`

use formwork_json::{Level, ReadError, line_column, read};

fn main() -> Result<(), ReadError> {
    let text = "Sure! Here it is:\n```json\n{'name': 'Maria', \"risks\": [\"new\",],\n```";
    let reading = read(text, Level::Lenient)?;
    let best = &reading.candidates()[0];
    println!("{}", best.value);
    for edit in best.all_edits() {
        let (line, column) = line_column(text, edit.span.start);
        println!("  {line}:{column}: {edit}");
    }
    Ok(())
}
