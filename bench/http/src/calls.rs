//! Measures the CPU time of a call, from a text to a validated, typed value. Both sides take turns.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use formwork_core::Call;
use formwork_extract::{Extractor, Observer, RunId, Started};
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};

use crate::bare::Bare;
use crate::oracle::{INPUT, Score};
use crate::process::{Server, cpu};
use crate::wires::Wire;
use crate::{Failure, ours};

/// Keeps the last call that was made.
#[derive(Clone, Default)]
struct Last(Arc<Mutex<Option<Call>>>);

impl Observer for Last {
    fn attempt_started(&self, _: RunId, started: &Started<'_>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(started.call.clone());
    }
}

/// The part of a call that is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The whole run.
    Extractor,
    /// Only the provider. The completion is validated like the bare client's, so that the figure covers the HTTP path without the
    /// run around it.
    Provider,
    /// The whole run with a planted mistake: CPU time of [`BURNT`].
    Burning,
}

/// The CPU time that [`Part::Burning`] wastes in each call, more than twice that of a call.
const BURNT: Duration = Duration::from_micros(200);

/// Both sides of a protocol.
struct Sides {
    server: Server,
    extractor: Extractor<Score>,
    bare: Bare,
    /// The call of our request.
    call: Call,
    /// The length of the request in bytes.
    length: usize,
}

impl Sides {
    /// Prepares both sides, and checks that they do equal work: the same request, the same value.
    async fn new(wire: &'static Wire, stream: bool) -> Result<Self, Failure> {
        let server = Server::start()?;
        let extractor = ours::extractor(wire, &server.address, stream)?;
        let last = Last::default();
        let value = extractor.extraction(INPUT).with_observer(last.clone()).run().await?.value;
        let call = last.0.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or("there was no call")?;
        let (head, body) = (sorted(&server.ask("/head").await?), server.ask("/last").await?);
        let request: Value = serde_json::from_str(&body)?;
        let bare = Bare::new(wire, &server.address, stream, &request)?;
        if bare.call(INPUT).await? != value {
            return Err("the sides do not read the same value".into());
        }
        let (other_head, other) = (sorted(&server.ask("/head").await?), server.ask("/last").await?);
        if head != other_head {
            return Err(format!("the sides do not send the same head: {head:?} and {other_head:?}").into());
        }
        if serde_json::from_str::<Value>(&other)? != request || other.len() != body.len() {
            return Err(format!("the sides do not send the same request: {body} and {other}").into());
        }
        Ok(Self { server, extractor, bare, call, length: body.len() })
    }
}

/// Returns the lines of a head, without the order of its headers and the case of their names, which have no meaning.
fn sorted(head: &str) -> Vec<String> {
    let line = |line: &str| match line.split_once(": ") {
        Some((name, value)) => format!("{}: {value}", name.to_ascii_lowercase()),
        None => line.to_owned(),
    };
    let mut lines: Vec<String> = head.lines().map(line).collect();
    lines.sort();
    lines
}

/// Compares both sides.
pub(crate) async fn measure(
    wire: &'static Wire,
    stream: bool,
    part: Part,
    in_flight: usize,
    calls: usize,
    rounds: usize,
) -> Result<Value, Failure> {
    let Sides { server, extractor, bare, call, length } = Sides::new(wire, stream).await?;
    let provider = ours::provider(wire, &server.address, stream, 64 << 20)?;
    let ours = async || {
        if part == Part::Provider {
            let completion = provider.call(&call.clone()).await?.collect().await?;
            return bare.judge(&completion.text);
        }
        if part == Part::Burning {
            let start = Instant::now();
            while start.elapsed() < BURNT {
                std::hint::spin_loop();
            }
        }
        Ok(extractor.extract(INPUT).await?.value)
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
        "request": length,
    }))
}

/// Makes calls of one side, one at a time. Two runs that differ in their number show what one call costs.
pub(crate) async fn only(
    wire: &'static Wire,
    is_ours: bool,
    stream: bool,
    calls: usize,
) -> Result<Value, Failure> {
    let Sides { server: _server, extractor, bare, .. } = Sides::new(wire, stream).await?;
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
