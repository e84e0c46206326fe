//! Measures how fast a model decodes, with and without a schema.
//!
//! `CANDLE_NUM_THREADS=1 cargo run --release --manifest-path measure/Cargo.toml --example speed [MODEL [TOKENS]]`

#[path = "../src/cpu.rs"]
mod cpu;

use cpu::cpu;
use formwork_core::{Call, Enforcement, Lowered, Message, Provider, Sampling};
use formwork_local::{Local, LocalOptions, Timing};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next().unwrap_or_else(|| "default".to_owned());
    let tokens = arguments.next().map_or(Ok(400), |text| text.parse())?;
    let local = Local::open(LocalOptions::new().with_model(model))?;
    let person = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 60},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "work": {"type": "string", "maxLength": 200},
        },
        "required": ["name", "age", "work"],
        "additionalProperties": false,
    });
    let people = json!({"type": "array", "items": person, "minItems": 4, "maxItems": 20});
    for (what, schema) in [("free text", None), ("under a schema", Some(people))] {
        let enforcement = if schema.is_some() { Enforcement::Schema } else { Enforcement::None };
        let call = Call::new(
            vec![Message::user("Tell me about many different people, one after another, at length.")],
            Lowered::new(enforcement, schema),
        )
        .with_schema_name("people")
        .with_sampling(Sampling::default().with_temperature(0.8).with_top_p(0.95).with_seed(1))
        .with_max_tokens(tokens);
        // The first call computes the prompt, so that the second one is nearly all decoding.
        local.call(&call).await?.collect().await?;
        let (before, clock) = (local.timing(), cpu()?);
        let answer = local.call(&call).await?.collect().await?;
        let (after, seconds) = (local.timing(), (cpu()? - clock).as_secs_f64());
        report(what, before, after, seconds);
        println!("  {:?} after {} tokens", answer.finish, answer.usage.output_tokens);
    }
    Ok(())
}

fn report(what: &str, before: Timing, after: Timing, seconds: f64) {
    let tokens = after.decode_tokens - before.decode_tokens;
    let decode = (after.decode - before.decode).as_secs_f64();
    let choosing = (after.choosing - before.choosing).as_secs_f64();
    let rest = (after.preparing + after.prompt - before.preparing - before.prompt).as_secs_f64();
    println!(
        "{what}: {tokens} tokens, {:.1} per CPU-second in all, {:.1} per second of decoding; masking and sampling \
         take {:.2} % of it; before the first token {:.0} ms",
        tokens as f64 / seconds,
        tokens as f64 / (decode + choosing),
        100.0 * choosing / (decode + choosing),
        1000.0 * rest,
    );
}
