//! Measures the memory of concurrent calls. The server holds all of them in the middle of their responses, then releases them.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use formwork_core::Delta;
use formwork_extract::{Observer, RunId};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};

use super::bare::Bare;
use super::canned::{Completion, chat};
use super::ours;
use super::wires::CHAT;
use crate::Failure;
use crate::bench::client::get;
use crate::bench::oracle::INPUT;
use crate::bench::process::{Server, Used};

/// Counts the pieces of all answers.
#[derive(Clone, Default)]
struct Pieces(Arc<AtomicUsize>);

impl Observer for Pieces {
    fn delta(&self, _: RunId, delta: &Delta) {
        if let Delta::Text(_) = delta {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Returns the memory of each call in KiB.
pub(in crate::bench) async fn measure(is_ours: bool, calls: usize) -> Result<Value, Failure> {
    let server = Server::start(&["http"])?;
    let (warm, held) = (server.url(), format!("{}/held", server.url()));
    let pieces = Pieces::default();
    // One call before the measurement loads code and certificates into memory, for the bare client as well.
    ours::extractor(CHAT, &warm, true)?.extract(INPUT).await?;
    let request: Value = serde_json::from_str(&get(&server.address, "/last").await?)?;
    Bare::new(CHAT, &warm, true, request.clone())?.call(INPUT).await?;
    if is_ours {
        let extractor = ours::extractor(CHAT, &held, true)?;
        let call = async || {
            let outcome = extractor.extraction(INPUT).with_observer(pieces.clone()).run().await?;
            if outcome.calls.len() == 1 { Ok(()) } else { Err("a call was repeated".into()) }
        };
        all(&server, &pieces, calls, call).await
    } else {
        let bare = Bare::new(CHAT, &held, true, request)?;
        let call = async || {
            let count =
                |piece: &str| _ = pieces.0.fetch_add(usize::from(!piece.is_empty()), Ordering::Relaxed);
            bare.read(bare.send(INPUT).await?, count).await.map(|_| ())
        };
        all(&server, &pieces, calls, call).await
    }
}

async fn all<F>(
    server: &Server,
    pieces: &Pieces,
    calls: usize,
    call: impl Fn() -> F,
) -> Result<Value, Failure>
where
    F: Future<Output = Result<(), Failure>>,
{
    let before = Used::here()?.resident;
    let mut open: FuturesUnordered<F> = (0..calls).map(|_| call()).collect();
    // The first event of the first half has no text in it.
    let halves = calls * (chat(&Completion::valid()).events.len() / 2 - 1);
    loop {
        tokio::select! {
            ended = open.next() => return Err(format!("a held call ended: {ended:?}").into()),
            () = tokio::time::sleep(Duration::from_millis(20)) => {}
        }
        if pieces.0.load(Ordering::Relaxed) >= halves {
            break;
        }
    }
    let held = Used::here()?;
    get(&server.address, "/release").await?;
    while let Some(ended) = open.next().await {
        ended?;
    }
    let each = |bytes: u64| bytes.saturating_sub(before) as f64 / calls as f64 / 1024.0;
    Ok(json!({"held": each(held.resident), "peak_held": each(held.peak), "peak": each(Used::here()?.peak)}))
}
