//! Measures the CPU time of a call, from a text to a validated, typed value. Both sides take turns.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use formwork_core::{Call, Provider as _};
use formwork_extract::{Observer, RunId, Started};
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};

use crate::bare::Bare;
use crate::oracle::INPUT;
use crate::process::{Server, cpu};
use crate::{Failure, ours};

/// Keeps the last call that was made.
#[derive(Clone, Default)]
struct Last(Arc<Mutex<Option<Call>>>);

impl Observer for Last {
    fn attempt_started(&self, _: RunId, started: &Started<'_>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(started.call.clone());
    }
}

/// Compares both sides. With `alone`, only the provider is ours and the completion is validated like the bare client's, so that
/// the figure covers the HTTP path without the run around it.
pub(crate) async fn measure(
    stream: bool,
    alone: bool,
    in_flight: usize,
    calls: usize,
    rounds: usize,
) -> Result<Value, Failure> {
    let server = Server::start()?;
    let base_url = format!("{}/v1", server.address);
    let extractor = ours::extractor(&base_url, stream)?;

    // First check that both sides do equal work: the same request, the same value.
    let last = Last::default();
    let value = extractor.extraction(INPUT).with_observer(last.clone()).run().await?.value;
    let call = last.0.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or("there was no call")?;
    let body = server.ask("/last").await?;
    let request: Value = serde_json::from_str(&body)?;
    let bare = Bare::new(&base_url, &request)?;
    if bare.call(INPUT).await? != value {
        return Err("the sides do not read the same value".into());
    }
    let other = server.ask("/last").await?;
    if serde_json::from_str::<Value>(&other)? != request || other.len() != body.len() {
        return Err(format!("the sides do not send the same request: {body} and {other}").into());
    }

    let provider = ours::provider(&base_url, stream, 64 << 20)?;
    let ours = async || {
        if !alone {
            return Ok(extractor.extract(INPUT).await?.value);
        }
        let completion = provider.call(&call.clone()).await?.collect().await?;
        bare.judge(&completion.text)
    };
    let peer = async || bare.call(INPUT).await;
    // Warm up connections, branch predictors and the allocator.
    turn(&ours, in_flight, calls).await?;
    turn(&peer, in_flight, calls).await?;
    let mut turns = Vec::with_capacity(rounds);
    for round in 0..rounds {
        // The sides swap the order every round, because the second one finds warm caches.
        turns.push(if round % 2 == 0 {
            let ours = turn(&ours, in_flight, calls).await?;
            (ours, turn(&peer, in_flight, calls).await?)
        } else {
            let peer = turn(&peer, in_flight, calls).await?;
            (turn(&ours, in_flight, calls).await?, peer)
        });
    }
    Ok(json!({
        "ours": median(turns.iter().map(|(ours, _)| *ours)),
        "peer": median(turns.iter().map(|(_, peer)| *peer)),
        "ratio": median(turns.iter().map(|(ours, peer)| ours / peer)),
        "request": body.len(),
    }))
}

/// Makes calls of one side, one at a time. Two runs that differ in their number show what one call costs.
pub(crate) async fn only(is_ours: bool, stream: bool, calls: usize) -> Result<Value, Failure> {
    let server = Server::start()?;
    let base_url = format!("{}/v1", server.address);
    let extractor = ours::extractor(&base_url, stream)?;
    extractor.extract(INPUT).await?;
    let request: Value = serde_json::from_str(&server.ask("/last").await?)?;
    let bare = Bare::new(&base_url, &request)?;
    for _ in 0..calls {
        if is_ours {
            extractor.extract(INPUT).await?;
        } else {
            bare.call(INPUT).await?;
        }
    }
    Ok(json!({"calls": calls}))
}

/// Returns the CPU time per call in microseconds.
async fn turn<T, F>(call: &impl Fn() -> F, in_flight: usize, calls: usize) -> Result<f64, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    let start = cpu();
    let mut answers = stream::iter((0..calls).map(|_| call())).buffer_unordered(in_flight);
    while let Some(answer) = answers.next().await {
        answer?;
    }
    Ok((cpu() - start) / calls as f64)
}

pub(crate) fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}
