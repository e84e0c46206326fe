//! Files of requests that Acme processes overnight.

use async_trait::async_trait;
use formwork::core::{Fault, Time};
use formwork::wire::batch::{
    BatchApi, BatchClient, FileLimits, FileRequest, FileResult, FileStatus, Found, required, text, unexpected,
};
use formwork::wire::{Bytes, SharedTransport, Wire};
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use serde_json::Value;

use crate::Acme;

/// Acme's batch API: `POST /v2/nights` takes a file under a name, and `GET` lists the files, or returns the state or the results of
/// one.
#[derive(Debug, Clone)]
pub struct AcmeBatches {
    wire: Acme,
    client: BatchClient,
}

impl AcmeBatches {
    /// Creates the API of the server that the transport sends to.
    pub fn new(wire: Acme, transport: SharedTransport) -> Self {
        Self { wire: wire.with_stream(false), client: BatchClient::new(transport) }
    }
}

#[async_trait]
impl BatchApi for AcmeBatches {
    fn wire(&self) -> &dyn Wire {
        &self.wire
    }

    fn limits(&self) -> FileLimits {
        FileLimits { requests: 1000, ..FileLimits::default() }
    }

    async fn submit(&self, key: &str, requests: Vec<FileRequest>) -> Result<String, Fault> {
        let bodies = requests.iter().map(|FileRequest { custom_id, request }| {
            // The body is JSON, as the protocol writes it.
            format!(r#"{{"id":"{custom_id}","ask":{}}}"#, String::from_utf8_lossy(request.body()))
        });
        let bodies: Vec<String> = bodies.collect();
        let night = format!(r#"{{"name":"{key}","requests":[{}]}}"#, bodies.join(","));
        required(&self.client.post("/v2/nights", night).await?, "night")
    }

    async fn find(&self, key: &str, _: usize, _: Time, _: &[String]) -> Result<Found, Fault> {
        let (nights, _) = self.client.page("/v2/nights").await?;
        let found = nights.iter().find(|night| text(night, "name") == Some(key));
        found.map_or(Ok(Found::No), |night| required(night, "night").map(Found::Id))
    }

    async fn status(&self, id: &str) -> Result<FileStatus, Fault> {
        let night = self.client.get(&format!("/v2/nights/{id}")).await?;
        Ok(match text(&night, "state") {
            Some("over") => FileStatus::Ended,
            _ => FileStatus::Open { finished: night["done"].as_u64().unwrap_or_default() },
        })
    }

    async fn results(&self, id: &str) -> Result<BoxStream<'static, Result<FileResult, Fault>>, Fault> {
        let lines = self.client.lines(&format!("/v2/nights/{id}/results")).await?;
        Ok(lines.map(|line| result(&line?)).boxed())
    }

    async fn cancel(&self, id: &str) -> Result<(), Fault> {
        self.client.post(&format!("/v2/nights/{id}/end"), Bytes::new()).await.map(|_| ())
    }
}

/// Reads a line of results. Requests that were not processed have no answer.
fn result(line: &Value) -> Result<FileResult, Fault> {
    let id = required(line, "id")?;
    let Some(status) = line.get("status").and_then(Value::as_u64) else {
        return Ok(FileResult::unprocessed(id));
    };
    let status = u16::try_from(status).map_err(|_| unexpected("a line of the results has no HTTP status"))?;
    FileResult::answered(id, status, line.get("answer"))
}
