//! Anthropic's Message Batches: a batch is created of the requests themselves.

use async_trait::async_trait;
use formwork_core::{Fault, Time};
use formwork_wire::batch::{
    BatchApi, BatchClient, FileLimits, FileRequest, FileResult, FileStatus, Found, bad_request, required,
    text,
};
use formwork_wire::http::{HeaderMap, HeaderName, HeaderValue};
use formwork_wire::{Bytes, SharedTransport, Wire};
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use serde_json::Value;
use time::UtcDateTime;

use crate::Anthropic;

/// The path of the batches.
const BATCHES: &str = "/v1/messages/batches";

/// The version of the API.
const VERSION: &str = "2023-06-01";

/// The number of batches on a page of the listing.
const PAGE: usize = 100;

/// The number of pages that a search reads.
const PAGES: usize = 20;

/// Anthropic's [Message Batches API](https://docs.anthropic.com/en/docs/build-with-claude/batch-processing) for one model.
///
/// The API keeps no metadata, so a lost batch is found by the ids of its results: a batch of the same size that is not finished may be
/// the one, and is waited for.
///
/// ```
/// use std::sync::Arc;
///
/// use formwork_anthropic::{Anthropic, AnthropicBatches};
/// use formwork_wire::SharedTransport;
/// use formwork_wire::batch::SharedBatchApi;
///
/// fn batches(transport: SharedTransport) -> SharedBatchApi {
///     Arc::new(AnthropicBatches::new(Anthropic::new("claude-sonnet-4-6"), transport))
/// }
/// ```
#[derive(Debug, Clone)]
pub struct AnthropicBatches {
    wire: Anthropic,
    client: BatchClient,
}

impl AnthropicBatches {
    /// Creates the API of the server that the transport sends to. The requests are those of the Messages API, without streams.
    pub fn new(wire: Anthropic, transport: SharedTransport) -> Self {
        let version = (HeaderName::from_static("anthropic-version"), HeaderValue::from_static(VERSION));
        let headers = HeaderMap::from_iter([version]);
        Self { wire: wire.with_stream(false), client: BatchClient::new(transport).with_headers(headers) }
    }

    async fn lines(&self, id: &str) -> Result<BoxStream<'static, Result<FileResult, Fault>>, Fault> {
        let lines = self.client.lines(&format!("{BATCHES}/{id}/results")).await?;
        Ok(lines.map(|line| result(&line?)).boxed())
    }
}

#[async_trait]
impl BatchApi for AnthropicBatches {
    fn wire(&self) -> &dyn Wire {
        &self.wire
    }

    fn limits(&self) -> FileLimits {
        FileLimits { requests: 100_000, bytes: 256_000_000 }
    }

    async fn submit(&self, _: &str, requests: Vec<FileRequest>) -> Result<String, Fault> {
        let Some(first) = requests.first() else { return Err(bad_request("the file has no requests")) };
        // Beta features are enabled by a header, which holds for all requests of a batch.
        let client = self.client.clone().with_headers(first.request.headers().clone());
        let mut body = br#"{"requests":["#.to_vec();
        for (nth, FileRequest { custom_id, request }) in requests.iter().enumerate() {
            let comma = if nth == 0 { "" } else { "," };
            body.extend_from_slice(format!(r#"{comma}{{"custom_id":"{custom_id}","params":"#).as_bytes());
            // The body is JSON, as the protocol writes it.
            body.extend_from_slice(request.body());
            body.push(b'}');
        }
        body.extend_from_slice(b"]}");
        required(&client.post(BATCHES, body).await?, "id")
    }

    async fn find(&self, key: &str, requests: usize, since: Time, known: &[String]) -> Result<Found, Fault> {
        let oldest = day_before(since);
        let mut after = String::new();
        let mut found = Found::No;
        for _ in 0..PAGES {
            let (batches, last) = self.client.page(&format!("{BATCHES}?limit={PAGE}{after}")).await?;
            for batch in &batches {
                let id = required(batch, "id")?;
                if known.contains(&id) || total(batch) != requests as u64 || is_older(batch, &oldest) {
                    continue;
                }
                if text(batch, "processing_status") != Some("ended") {
                    found = Found::Perhaps;
                    continue;
                }
                let first = self.lines(&id).await?.next().await.transpose()?;
                if first.is_some_and(|result| result.custom_id.starts_with(&format!("{key}-"))) {
                    return Ok(Found::Id(id));
                }
            }
            // The newest batches are first.
            match last.filter(|last| !is_older(last, &oldest)) {
                Some(last) => after = format!("&after_id={}", required(&last, "id")?),
                None => break,
            }
        }
        Ok(found)
    }

    async fn status(&self, id: &str) -> Result<FileStatus, Fault> {
        let batch = self.client.get(&format!("{BATCHES}/{id}")).await?;
        Ok(match text(&batch, "processing_status") {
            Some("ended") => FileStatus::Ended,
            _ => FileStatus::Open { finished: total(&batch) - count(&batch, "processing") },
        })
    }

    async fn results(&self, id: &str) -> Result<BoxStream<'static, Result<FileResult, Fault>>, Fault> {
        self.lines(id).await
    }

    async fn cancel(&self, id: &str) -> Result<(), Fault> {
        self.client.post(&format!("{BATCHES}/{id}/cancel"), Bytes::new()).await.map(|_| ())
    }
}

fn count(batch: &Value, name: &str) -> u64 {
    batch.pointer(&format!("/request_counts/{name}")).and_then(Value::as_u64).unwrap_or_default()
}

/// Returns the number of requests of a batch.
fn total(batch: &Value) -> u64 {
    ["processing", "succeeded", "errored", "canceled", "expired"].iter().map(|name| count(batch, name)).sum()
}

/// Returns whether a batch was created before this day. Dates of RFC 3339 in UTC have the order of their letters.
fn is_older(batch: &Value, day: &str) -> bool {
    text(batch, "created_at").is_some_and(|created| created < day)
}

/// Returns the day before a time, as RFC 3339 writes it: a file's batch was not created earlier, even if clocks differ.
fn day_before(time: Time) -> String {
    let seconds = i64::try_from(time.0 / 1000).unwrap_or(i64::MAX).saturating_sub(86_400).max(0);
    UtcDateTime::from_unix_timestamp(seconds).unwrap_or(UtcDateTime::MAX).date().to_string()
}

/// Reads a line of results.
fn result(line: &Value) -> Result<FileResult, Fault> {
    let custom_id = required(line, "custom_id")?;
    let result = line.get("result").unwrap_or(&Value::Null);
    match text(result, "type") {
        Some("succeeded") => FileResult::answered(custom_id, 200, result.get("message")),
        Some("errored") => {
            let error = result.get("error").unwrap_or(&Value::Null);
            FileResult::answered(custom_id, status(error), result.get("error"))
        }
        _ => Ok(FileResult::unprocessed(custom_id)),
    }
}

/// Returns the HTTP status that the Messages API sends with an error of this type.
fn status(error: &Value) -> u16 {
    let kind = error.pointer("/error/type").or_else(|| error.get("type")).and_then(Value::as_str);
    match kind.unwrap_or_default() {
        "invalid_request_error" | "invalid_request" => 400,
        "authentication_error" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => 500,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (seconds, day) in [
            (86_400, "1970-01-01"),
            (951_868_800, "2000-02-29"),
            (1_709_251_200, "2024-02-29"),
            (1_735_689_600, "2024-12-31"),
            (1_735_776_000, "2025-01-01"),
            (4_107_542_400, "2100-02-28"),
        ] {
            assert_eq!(day_before(Time(seconds * 1000)), day, "{seconds}");
        }
    }
}
