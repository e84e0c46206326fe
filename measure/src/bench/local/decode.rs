//! Measures the tokens per CPU second without a schema.

use formwork_core::{Call, Delta, End, Enforcement, Lowered, Message, Provider, Sampling};
use formwork_local::{KNOWN, Local, LocalOptions, Store};
use futures_util::StreamExt as _;
use serde_json::{Value, json};

use crate::Failure;
use crate::bench::process::cpu;

pub(in crate::bench) async fn measure(tokens: u32, system: &str, user: &str) -> Result<Value, Failure> {
    let local = Local::open(LocalOptions::new())?;
    let call =
        Call::new(vec![Message::system(system), Message::user(user)], Lowered::new(Enforcement::None, None))
            .with_schema_name(String::new())
            .with_sampling(Sampling::default().with_temperature(0.0))
            .with_max_tokens(tokens + 1);
    let mut answer = local.call(&call).await?;
    let (mut text, mut start) = (String::new(), None);
    while let Some(piece) = answer.next().await {
        match piece? {
            Delta::Text(more) => {
                // The clock starts after the prompt and the first token, so that only decoding is measured.
                if start.is_none() {
                    start = Some(cpu()?);
                }
                text.push_str(&more);
            }
            Delta::End(End { usage, .. }) => {
                let seconds = (cpu()? - start.ok_or("the answer has no text")?) / 1e6;
                return Ok(json!({
                    "prompt": usage.input_tokens,
                    "tokens": usage.output_tokens - 1,
                    "seconds": seconds,
                    "text": text,
                    "weights": weights()?,
                }));
            }
            _ => {}
        }
    }
    Err("the answer was cut off".into())
}

/// The engine's converted file of the default model.
fn weights() -> Result<String, Failure> {
    let known = KNOWN.first().ok_or("there is no default model")?;
    let file = Store::open()?.folder().join("q8_0").join(format!("{}.gguf", known.sha256));
    if !file.is_file() {
        return Err(format!("{} is missing", file.display()).into());
    }
    Ok(file.display().to_string())
}
