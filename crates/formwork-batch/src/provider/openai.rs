//! OpenAI's Batch API: a file is uploaded, and a batch created of it.

use std::sync::Arc;

use async_trait::async_trait;
use formwork_core::{Fault, Time};
use formwork_wire::http::{HeaderMap, Method, Response};
use formwork_wire::{Bytes, SharedTransport, Wire};
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use serde_json::{Value, json};

use super::api::{BatchApi, FileLimits, FileRequest, FileResult, FileStatus, Found};
use super::http::{Client, bad, required, set, text, unexpected};

/// The name of the member of a batch's metadata that has the key of its file.
const KEY: &str = "formwork";

/// The maximum number of seconds by which a batch may have been created before its planned time, because clocks differ.
const SKEW: u64 = 24 * 3600;

/// The number of batches on a page of the listing.
const PAGE: usize = 100;

/// OpenAI's [Batch API](https://platform.openai.com/docs/guides/batch) for one model.
///
/// ```
/// use std::sync::Arc;
///
/// use formwork_batch::{BatchApi, OpenAiBatches};
/// use formwork_openai::OpenAi;
/// use formwork_wire::SharedTransport;
///
/// fn batches(transport: SharedTransport) -> Arc<dyn BatchApi> {
///     Arc::new(OpenAiBatches::new(Arc::new(OpenAi::new("gpt-4o-mini").with_stream(false)), transport))
/// }
/// ```
#[derive(Debug, Clone)]
pub struct OpenAiBatches {
    wire: Arc<dyn Wire>,
    client: Client,
}

impl OpenAiBatches {
    /// Creates the API of the server that the transport sends to, whose address ends in `/v1`. The protocol writes requests for
    /// Chat Completions or Responses, without streams.
    pub fn new(wire: Arc<dyn Wire>, transport: SharedTransport) -> Self {
        Self { wire, client: Client { transport, headers: HeaderMap::new() } }
    }

    /// Uploads a file; returns its id.
    async fn upload(&self, key: &str, endpoint: &str, requests: &[FileRequest]) -> Result<String, Fault> {
        let mut body = Vec::new();
        let part = |name: &str| format!("--{key}\r\nContent-Disposition: form-data; name=\"{name}\"");
        body.extend_from_slice(
            format!(
                "{}\r\n\r\nbatch\r\n{}; filename=\"{key}.jsonl\"\r\nContent-Type: application/jsonl\r\n\r\n",
                part("purpose"),
                part("file")
            )
            .as_bytes(),
        );
        for FileRequest { custom_id, request } in requests {
            // The body is JSON, as the protocol writes it.
            let start = format!(r#"{{"custom_id":"{custom_id}","method":"POST","url":"{endpoint}","body":"#);
            body.extend_from_slice(start.as_bytes());
            body.extend_from_slice(request.body());
            body.extend_from_slice(b"}\n");
        }
        body.extend_from_slice(format!("\r\n--{key}--\r\n").as_bytes());
        let mut request = self.client.request(Method::POST, "/files", body.into())?;
        set(request.headers_mut(), "content-type", &format!("multipart/form-data; boundary={key}"))?;
        required(&self.client.upload(request).await?, "id")
    }
}

#[async_trait]
impl BatchApi for OpenAiBatches {
    fn wire(&self) -> &dyn Wire {
        self.wire.as_ref()
    }

    fn limits(&self) -> FileLimits {
        FileLimits { requests: 50_000, bytes: 200_000_000 }
    }

    async fn submit(&self, key: &str, requests: Vec<FileRequest>) -> Result<String, Fault> {
        let Some(first) = requests.first() else { return Err(bad("the file has no requests".to_owned())) };
        let endpoint = format!("/v1{}", first.request.uri().path());
        let file = self.upload(key, &endpoint, &requests).await?;
        let batch = json!({
            "input_file_id": file, "endpoint": endpoint, "completion_window": "24h", "metadata": {KEY: key},
        });
        required(&self.client.post("/batches", batch.to_string()).await?, "id")
    }

    async fn find(&self, key: &str, _: usize, since: Time, _: &[String]) -> Result<Found, Fault> {
        let oldest = (since.0 / 1000).saturating_sub(SKEW);
        let mut after = String::new();
        loop {
            let page = self.client.get(&format!("/batches?limit={PAGE}{after}")).await?;
            let batches = page.get("data").and_then(Value::as_array);
            let batches = batches.ok_or_else(|| unexpected("the list of batches has no `data`"))?;
            for batch in batches {
                let is_this = batch.pointer(&format!("/metadata/{KEY}")).and_then(Value::as_str) == Some(key);
                if is_this && text(batch, "status") != Some("failed") {
                    return Ok(Found::Id(required(batch, "id")?));
                }
            }
            // The newest batches are first.
            let last = batches.last().filter(|_| page.get("has_more") == Some(&Value::Bool(true)));
            let created = |batch: &&Value| batch.get("created_at").and_then(Value::as_u64);
            match last.filter(|last| created(last).is_none_or(|created| created >= oldest)) {
                Some(last) => after = format!("&after={}", required(last, "id")?),
                None => return Ok(Found::No),
            }
        }
    }

    async fn status(&self, id: &str) -> Result<FileStatus, Fault> {
        let batch = self.client.get(&format!("/batches/{id}")).await?;
        let count = |name: &str| {
            batch.pointer(&format!("/request_counts/{name}")).and_then(Value::as_u64).unwrap_or_default()
        };
        Ok(match text(&batch, "status") {
            Some("completed" | "expired" | "cancelled") => FileStatus::Ended,
            Some("failed") => {
                let errors = batch.pointer("/errors/data").and_then(Value::as_array);
                let errors: Vec<_> = errors.into_iter().flatten().collect();
                let is_transient = errors.iter().any(|error| {
                    matches!(text(error, "code"), Some("token_limit_exceeded" | "rate_limit_exceeded"))
                });
                let messages: Vec<_> =
                    errors.iter().take(3).filter_map(|error| text(error, "message")).collect();
                FileStatus::Refused { message: messages.join("; "), is_transient }
            }
            _ => FileStatus::Open { finished: count("completed") + count("failed") },
        })
    }

    async fn results(&self, id: &str) -> Result<BoxStream<'static, Result<FileResult, Fault>>, Fault> {
        let batch = self.client.get(&format!("/batches/{id}")).await?;
        let files = ["output_file_id", "error_file_id"].into_iter().filter_map(|file| text(&batch, file));
        let mut all = stream::empty().boxed();
        for file in files {
            let lines = self.client.lines(&format!("/files/{file}/content")).await?;
            all = all.chain(lines.map(|line| result(&line?))).boxed();
        }
        Ok(all)
    }

    async fn cancel(&self, id: &str) -> Result<(), Fault> {
        self.client.post(&format!("/batches/{id}/cancel"), Bytes::new()).await.map(|_| ())
    }
}

/// Reads a line of results. Requests that were not processed have an error and no response.
fn result(line: &[u8]) -> Result<FileResult, Fault> {
    let line: Value =
        serde_json::from_slice(line).map_err(|_| unexpected("a line of the results is not JSON"))?;
    let custom_id = required(&line, "custom_id")?;
    let status = line.pointer("/response/status_code").and_then(Value::as_u64);
    let status = status.and_then(|status| u16::try_from(status).ok());
    let Some(status) = status.filter(|status| *status > 0) else {
        return Ok(FileResult { custom_id, response: None });
    };
    let body = line.pointer("/response/body").map(ToString::to_string).unwrap_or_default();
    let mut response = Response::builder().status(status).header("content-type", "application/json");
    if let Some(id) = line.pointer("/response/request_id").and_then(Value::as_str) {
        response = response.header("x-request-id", id);
    }
    let response = response.body(body.into());
    let response = response.map_err(|error| unexpected(&format!("a line of the results: {error}")))?;
    Ok(FileResult { custom_id, response: Some(response) })
}
