//! Measures the share of decoding outside the model: token masks, sampling, and advancing the grammar.

use std::sync::Arc;
use std::time::Duration;

use formwork_core::{Input, Policy, Provider, Temperature};
use formwork_extract::{Backend, Extractor};
use formwork_local::{Local, LocalOptions, Step};
use serde_json::{Value, json};

use crate::Failure;
use crate::bench::measure::median;

/// The default of `formwork extract`.
const TEMPERATURE: f64 = 0.3;

/// The default of `formwork extract`.
const MAX_TOKENS: u32 = 512;

/// Decodes with each seed several times. The same seed takes the same steps, so the median of a step excludes interruptions by
/// other processes. The share is computed from the sums of these medians.
pub(in crate::bench) async fn measure(
    seeds: u64,
    rounds: usize,
    schema: &str,
    text: &str,
) -> Result<Value, Failure> {
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(schema)?)?;
    let local = Local::open(LocalOptions::new())?;
    let backend = formwork_dialect::modes(local.capabilities())
        .into_iter()
        .fold(Backend::new(Arc::new(local.clone())), Backend::with_mode);
    let mut steps = Vec::new();
    for seed in 0..seeds {
        let extractor = Extractor::for_document("answer", schema.clone())
            .with_target(backend.clone())
            .with_policy(Policy::new(1).with_temperature(Temperature::Steps(vec![TEMPERATURE])))
            .with_max_tokens(MAX_TOKENS)
            .with_deadline(Duration::from_secs(120))
            .with_seed(seed)
            .build()?;
        let mut answers: Vec<Vec<Step>> = Vec::new();
        for _ in 0..rounds {
            // An invalid completion is measured as well.
            let _ = extractor.extraction(Input::from(text.to_owned())).run().await;
            answers.push(local.steps());
        }
        steps.extend(usual(&answers)?);
    }
    let sum = |part: fn(&(f64, f64)) -> f64| steps.iter().map(part).sum::<f64>();
    let (decode, choosing) = (sum(|step| step.0), sum(|step| step.1));
    Ok(json!({
        "steps": steps.len(),
        "share": choosing / (decode + choosing),
        "decode": median(steps.iter().map(|step| step.0)),
        "choosing": median(steps.iter().map(|step| step.1)),
    }))
}

/// Returns the medians of each step in seconds: the model's part and the rest.
fn usual(answers: &[Vec<Step>]) -> Result<Vec<(f64, f64)>, Failure> {
    let length = answers.first().map_or(0, Vec::len);
    if answers.iter().any(|answer| answer.len() != length) {
        return Err("the same seed did not take the same steps".into());
    }
    let of = |at: usize, part: fn(&Step) -> Duration| {
        median(answers.iter().filter_map(|answer| answer.get(at)).map(|step| part(step).as_secs_f64()))
    };
    Ok((0..length).map(|at| (of(at, |step| step.decode), of(at, |step| step.choosing))).collect())
}
