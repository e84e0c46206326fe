//! Measures memory while a server sends a very long completion, to a reader that stops and to a reader that reads all of it.

use std::time::Duration;

use formwork_core::{Call, Delta, Lowered, Message};
use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::ours;
use super::wires::CHAT;
use crate::Failure;
use crate::bench::client::get;
use crate::bench::process::{Server, Used};

/// The number of deltas after which the slow reader stops, and the time for which it stops.
const PIECES: usize = 200;
const STOP: Duration = Duration::from_secs(2);

/// Returns the bytes that were read and the growth of this process.
pub(in crate::bench) async fn measure(is_whole: bool, bytes: u64) -> Result<Value, Failure> {
    let server = Server::start(&["http"])?;
    let provider = ours::provider(CHAT, &server.url(), true, usize::MAX)?;
    drain(provider.call(&call()).await?).await?;

    let provider = ours::provider(CHAT, &format!("{}/flood/{bytes}", server.url()), true, usize::MAX)?;
    let before = Used::here()?.resident;
    let mut answer = provider.call(&call()).await?;
    let read = if is_whole {
        drain(answer).await?
    } else {
        let mut read = 0;
        for _ in 0..PIECES {
            tokio::time::sleep(Duration::from_millis(5)).await;
            read += length(&answer.next().await.ok_or("the flood ended")??);
        }
        tokio::time::sleep(STOP).await;
        read
    };
    let grown = Used::here()?.peak.saturating_sub(before);
    let sent = get(&server.address, "/sent").await?;
    Ok(json!({"read": read, "sent": sent, "grown": grown}))
}

async fn drain(mut answer: formwork_core::Answer) -> Result<usize, Failure> {
    let mut read = 0;
    while let Some(delta) = answer.next().await {
        read += length(&delta?);
    }
    Ok(read)
}

fn length(delta: &Delta) -> usize {
    if let Delta::Text(text) = delta { text.len() } else { 0 }
}

fn call() -> Call {
    Call::new(vec![Message::user("Write without end.")], Lowered::default())
}
