//! Compares answers with gold, with this crate alone.
//!
//! `cargo run -p formwork-eval --example embed-eval`

use formwork_eval::{Evaluation, Profile};
use serde_json::json;

fn main() -> Result<(), String> {
    let mut evaluation = Evaluation::new(Profile::default());
    let (gold, answer) =
        (json!({"total": 320.5, "city": "Porto"}), json!({"total": 320.5, "city": "Lisbon"}));
    evaluation.add(json!(1), None, &gold, Some(&answer))?;
    let report = evaluation.report(7);
    println!("score {:.2}", report.score);
    for path in &report.paths {
        println!("{}: {:?}", path.path, path.tally);
    }
    Ok(())
}
