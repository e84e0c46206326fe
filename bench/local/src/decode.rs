//! Measures the tokens per CPU second without a schema.

use std::error::Error;
use std::sync::Arc;

use formwork_core::{Call, Delta, Enforcement, Lowered, Message, Provider, Sampling};
use formwork_local::{KNOWN, Local, LocalOptions, Store};
use futures_util::StreamExt as _;
use serde_json::{Value, json};

pub(crate) async fn measure(tokens: u32, system: &str, user: &str) -> Result<Value, Box<dyn Error>> {
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
                    start = Some(cpu_seconds()?);
                }
                text.push_str(&more);
            }
            Delta::End { usage, .. } => {
                let seconds = cpu_seconds()? - start.ok_or("the answer has no text")?;
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
fn weights() -> Result<String, Box<dyn Error>> {
    let known = KNOWN.first().ok_or("there is no default model")?;
    let file = Store::open()?.folder().join("q8_0").join(format!("{}.gguf", known.sha256));
    if file.is_file() {
        Ok(file.display().to_string())
    } else {
        Err(format!("{} is missing", file.display()).into())
    }
}

/// Returns the CPU time of this process: fields 14 and 15 of `/proc/self/stat` (proc(5)), in hundredths of a second.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').ok_or("/proc/self/stat is not what proc(5) says")?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    Ok(ticks.sum::<Result<f64, _>>()? / 100.0)
}
