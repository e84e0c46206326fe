//! Counts complete and valid answers of the default model: fifty seeds each of three schemas without bounds.
//!
//! `cargo run --release --manifest-path measure/Cargo.toml --example fifty [TEMPERATURE [MAX_TOKENS]]`

use formwork_core::{
    Call, Context, Enforcement, Finish, Lowered, Message, Provider, Report, Sampling, Validator as _, spaced,
};
use formwork_local::{Local, LocalOptions};
use serde_json::{Value, json};
use std::path::Path;

/// Schemas of the repository's examples, with a task for each.
const TASKS: [(&str, &str); 3] = [
    ("person", "Maria Lindqvist, 34, moved to Lisbon last spring."),
    (
        "ai-score",
        "Score this wallet from 0 to 1000: 1,240 transactions in 3 years on 4 chains, 18 tokens, one airdrop, no mixers. \
         Survey: experienced, long-term.",
    ),
    ("structured-answer-lite", "What is the capital of France?"),
];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let temperature = arguments.next().map_or(Ok(0.3), |text| text.parse())?;
    let max_tokens = arguments.next().map(|text| text.parse()).transpose()?;
    let local = Local::open(LocalOptions::new())?;
    for (name, task) in TASKS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../examples/{name}.schema.json"));
        let schema: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
        let judge = formwork_schema::compile(&schema)?;
        let system = if name == "person" {
            "You answer with one JSON object only, no prose, no markdown. It must have this shape:\n\
             {\"name\": string, \"age\": integer, \"city\": string}"
                .to_owned()
        } else {
            format!(
                "You answer with one JSON object only, no prose, no markdown. It must match this JSON Schema exactly:\n{}",
                spaced(&schema)
            )
        };
        let lowered = Lowered::new(Enforcement::Schema, closed(schema));
        let mut call = Call::new(vec![Message::system(system), Message::user(task)], lowered)
            .with_schema_name(name)
            .with_sampling(Sampling::default().with_temperature(temperature));
        call.max_tokens = max_tokens;
        let (mut valid, mut whole, mut restrained, mut right, mut tokens) = (0, 0, 0, 0, 0);
        for seed in 0..50 {
            call.sampling.seed = Some(seed);
            let answer = local.call(&call).await?.collect().await?;
            let value: Value = serde_json::from_str(&answer.text).unwrap_or_default();
            let mut report = Report::default();
            judge.validate(&value, &Context::EMPTY, &mut report);
            valid += u32::from(report.is_empty());
            whole += u32::from(answer.finish == Finish::Stop);
            restrained += u32::from(answer.restrained);
            right += u32::from(value == json!({"name": "Maria Lindqvist", "age": 34, "city": "Lisbon"}));
            tokens += answer.usage.output_tokens;
            if !report.is_empty() || answer.finish != Finish::Stop {
                println!("{name}, seed {seed}: {}", answer.text);
            }
        }
        println!("{name}: of 50, valid {valid}, complete {whole}, restrained {restrained}, {tokens} tokens");
        if name == "person" {
            println!("{name}: all three values right in {right}");
        }
    }
    Ok(())
}

/// Returns the schema with closed objects, as it is sent by default.
fn closed(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(members) => {
            if members.contains_key("properties") && !members.contains_key("additionalProperties") {
                members.insert("additionalProperties".to_owned(), json!(false));
            }
            members.values_mut().for_each(|member| *member = closed(member.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = closed(item.take())),
        _ => {}
    }
    schema
}
