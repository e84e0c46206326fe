//! Processes the items of a list while the model writes the rest: `cargo run -p formwork-extract --example stream-items`.
//!
//! The model is scripted: its first answer has a wrong item, which a second call corrects.

use std::sync::Arc;

use formwork_extract::{Extractor, Update, block_on};
use formwork_testkit::{Reply, Scripted};

#[derive(Debug, schemars::JsonSchema, serde::Deserialize)]
#[expect(dead_code, reason = "the fields are printed")]
struct Line {
    product: String,
    #[schemars(range(max = 100))]
    count: u32,
}

#[derive(schemars::JsonSchema, serde::Deserialize)]
struct Order {
    customer: String,
    lines: Vec<Line>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pieces = [
        r#"{"customer": "Ada", "lines": [{"product": "bolt","#,
        r#" "count": 12}, {"product": "nut", "count": 1200}, {"prod"#,
        r#"uct": "screw", "count": 7}]}"#,
    ];
    let patch = Reply::text(r#"{"lines[1].count": 12}"#);
    let model = Scripted::new([Reply::pieces(pieces), patch]);
    let extractor = Extractor::<Order>::builder().with_target(Arc::new(model)).build()?;
    let mut updates = extractor.stream("Ada: 12 bolts, 12 nuts, 7 screws");
    let customer = "$.customer".parse()?;
    block_on(async {
        while let Some(update) = updates.next().await {
            match update? {
                Update::Partial(order) => println!("customer: {:?}", order.get::<String>(&customer)),
                Update::Item(item) => println!("{}: {:?}", item.path, item.decode::<Line>()),
                Update::Replaced { path } => println!("{path} no longer stands"),
                Update::Done(outcome) => {
                    println!("{} ordered {} lines", outcome.value.customer, outcome.value.lines.len());
                }
                _ => {}
            }
        }
        Ok(())
    })?
}
