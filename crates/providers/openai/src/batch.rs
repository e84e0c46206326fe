//! OpenAI's Batch API: a file is uploaded, and a batch created of it.

use async_trait::async_trait;
use formwork_core::{Fault, Time};
use formwork_wire::batch::{
    BatchApi, BatchClient, FileLimits, FileRequest, FileResult, FileStatus, Found, bad_request, required,
    text,
};
use formwork_wire::http::HeaderValue;
use formwork_wire::{Bytes, SharedTransport, Wire};
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use serde_json::{Value, json};

use crate::OpenAi;

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
/// use formwork_openai::{OpenAi, OpenAiBatches};
/// use formwork_wire::SharedTransport;
/// use formwork_wire::batch::SharedBatchApi;
///
/// fn batches(transport: SharedTransport) -> SharedBatchApi {
///     Arc::new(OpenAiBatches::new(OpenAi::new("gpt-5.4-mini"), transport))
/// }
/// ```
#[derive(Debug, Clone)]
pub struct OpenAiBatches {
    wire: OpenAi,
    client: BatchClient,
}

impl OpenAiBatches {
    /// Creates the API of the server that the transport sends to, whose address ends in `/v1`. The requests are
    /// those of Chat Completions or Responses, without streams.
    pub fn new(wire: OpenAi, transport: SharedTransport) -> Self {
        Self { wire: wire.with_stream(false), client: BatchClient::new(transport) }
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
        let media_type = format!("multipart/form-data; boundary={key}");
        required(&self.client.upload("/files", &media_type, body).await?, "id")
    }
}

#[async_trait]
impl BatchApi for OpenAiBatches {
    fn wire(&self) -> &dyn Wire {
        &self.wire
    }

    fn limits(&self) -> FileLimits {
        FileLimits { requests: 50_000, bytes: 200_000_000 }
    }

    async fn submit(&self, key: &str, requests: Vec<FileRequest>) -> Result<String, Fault> {
        let Some(first) = requests.first() else { return Err(bad_request("the file has no requests")) };
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
            let (batches, last) = self.client.page(&format!("/batches?limit={PAGE}{after}")).await?;
            for batch in &batches {
                let is_this = batch.pointer(&format!("/metadata/{KEY}")).and_then(Value::as_str) == Some(key);
                if is_this && text(batch, "status") != Some("failed") {
                    return Ok(Found::Id(required(batch, "id")?));
                }
            }
            // The newest batches are first.
            let created = |batch: &Value| batch.get("created_at").and_then(Value::as_u64);
            match last.filter(|last| created(last).is_none_or(|created| created >= oldest)) {
                Some(last) => after = format!("&after={}", required(&last, "id")?),
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
fn result(line: &Value) -> Result<FileResult, Fault> {
    let custom_id = required(line, "custom_id")?;
    let status = line.pointer("/response/status_code").and_then(Value::as_u64);
    let status = status.and_then(|status| u16::try_from(status).ok());
    let Some(status) = status.filter(|status| *status > 0) else {
        return Ok(FileResult::unprocessed(custom_id));
    };
    let mut result = FileResult::answered(custom_id, status, line.pointer("/response/body"))?;
    let id = line.pointer("/response/request_id").and_then(Value::as_str);
    if let (Some(response), Some(Ok(id))) = (&mut result.response, id.map(HeaderValue::from_str)) {
        response.headers_mut().insert("x-request-id", id);
    }
    Ok(result)
}
