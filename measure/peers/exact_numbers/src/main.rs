//! `numbers STEP DOCUMENT SCHEMA TIMES`: does one step with a document, several times.
//!
//! - `parse`: parses it with `serde_json`; without the feature `exact`, as a build without exact numbers does.
//! - `judge` (with the feature): judges the parsed value.
//! - `exact` (with the feature): reads the text with exact numbers, and judges the value.

use std::hint::black_box;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [step, document, schema, times] = &arguments[..] else {
        return Err("numbers STEP DOCUMENT SCHEMA TIMES".into());
    };
    let (text, schema) = (std::fs::read_to_string(document)?, std::fs::read_to_string(schema)?);
    let times: u32 = times.parse()?;
    if step != "parse" {
        return judged(step, &text, &schema, times);
    }
    for _ in 0..times {
        black_box(serde_json::from_str::<serde_json::Value>(black_box(&text))?);
    }
    Ok(())
}

#[cfg(feature = "exact")]
fn judged(step: &str, text: &str, schema: &str, times: u32) -> Result<(), Failure> {
    use std::sync::Arc;

    use formwork_core::{Context, Inline};

    let schema = Inline::new("answer", serde_json::from_str(schema)?);
    let contract = formwork_schema::contract_for(Arc::new(schema))?;
    let parsed = formwork_json::read_exact(text)?.value;
    let is_valid = |value: &serde_json::Value| contract.judge(value, &Context::EMPTY).is_accepted();
    for _ in 0..times {
        let accepted = match step {
            "exact" => {
                let document = formwork_json::read_exact(black_box(text))?;
                is_valid(black_box(&document.value))
            }
            _ => is_valid(black_box(&parsed)),
        };
        if !accepted {
            return Err("the document is not accepted".into());
        }
    }
    Ok(())
}

#[cfg(not(feature = "exact"))]
fn judged(_: &str, _: &str, _: &str, _: u32) -> Result<(), Failure> {
    Err("only with the feature `exact`".into())
}
