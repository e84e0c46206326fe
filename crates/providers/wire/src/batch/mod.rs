//! Batch APIs of providers: files of requests that are processed within a day.
//!
//! A provider crate implements [`BatchApi`] on a [`BatchClient`]; the engine of `formwork-batch` submits the files.

mod client;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use formwork_core::{Fault, Time};
use futures_util::stream::BoxStream;
use http::{Request, Response};
use serde_json::Value;

use crate::Wire;

pub use crate::bad_request;
pub use client::{BatchClient, required, text, unexpected};

/// The batch API of one provider for one model: files of requests that are processed within a day, at half the price.
///
/// ```
/// use async_trait::async_trait;
/// use formwork_core::{Fault, Time};
/// use formwork_wire::Wire;
/// use formwork_wire::batch::{BatchApi, FileLimits, FileRequest, FileResult, FileStatus, Found, SharedBatchApi};
/// use futures_util::stream::BoxStream;
///
/// /// Another API with files of at most 500 requests.
/// #[derive(Debug)]
/// struct SmallFiles(SharedBatchApi);
///
/// #[async_trait]
/// impl BatchApi for SmallFiles {
///     fn wire(&self) -> &dyn Wire {
///         self.0.wire()
///     }
///     fn limits(&self) -> FileLimits {
///         FileLimits { requests: 500, ..self.0.limits() }
///     }
///     async fn submit(&self, key: &str, requests: Vec<FileRequest>) -> Result<String, Fault> {
///         self.0.submit(key, requests).await
///     }
///     async fn find(&self, key: &str, requests: usize, since: Time, known: &[String]) -> Result<Found, Fault> {
///         self.0.find(key, requests, since, known).await
///     }
///     async fn status(&self, id: &str) -> Result<FileStatus, Fault> {
///         self.0.status(id).await
///     }
///     async fn results(&self, id: &str) -> Result<BoxStream<'static, Result<FileResult, Fault>>, Fault> {
///         self.0.results(id).await
///     }
///     async fn cancel(&self, id: &str) -> Result<(), Fault> {
///         self.0.cancel(id).await
///     }
/// }
/// ```
#[async_trait]
pub trait BatchApi: Send + Sync + fmt::Debug {
    /// Returns the protocol that writes the requests and reads the responses. It must not request streams.
    fn wire(&self) -> &dyn Wire;

    /// Returns the limits of one file.
    fn limits(&self) -> FileLimits;

    /// Submits a file and returns its id at the provider. `key` is unique to the file; [`find`](Self::find) finds the file by it.
    ///
    /// # Errors
    /// A [`Fault`]. The provider may have accepted the file nevertheless, unless the status of the response is 4xx.
    async fn submit(&self, key: &str, requests: Vec<FileRequest>) -> Result<String, Fault>;

    /// Looks for a file that may have been submitted under this key, not long before `since`. `requests` is the number of its
    /// requests, and `known` has the ids of other files.
    ///
    /// # Errors
    /// A [`Fault`] if the provider cannot list its batches.
    async fn find(&self, key: &str, requests: usize, since: Time, known: &[String]) -> Result<Found, Fault>;

    /// Returns the state of a submitted file.
    ///
    /// # Errors
    /// A [`Fault`] if there is no answer.
    async fn status(&self, id: &str) -> Result<FileStatus, Fault>;

    /// Returns the results of a file that has [ended](FileStatus::Ended), in any order. A request may have none.
    ///
    /// # Errors
    /// A [`Fault`] if there is no answer. The stream ends with a fault if it is cut off.
    async fn results(&self, id: &str) -> Result<BoxStream<'static, Result<FileResult, Fault>>, Fault>;

    /// Cancels a file: the provider processes no further request of it. It [ends](FileStatus::Ended) some time later.
    ///
    /// # Errors
    /// A [`Fault`] if the provider refuses.
    async fn cancel(&self, id: &str) -> Result<(), Fault>;
}

/// A shared [`BatchApi`].
pub type SharedBatchApi = Arc<dyn BatchApi>;

/// The limits of one file; by default 64 MiB and any number of requests.
///
/// ```
/// use formwork_wire::batch::FileLimits;
///
/// let limits = FileLimits { requests: 10_000, ..FileLimits::default() };
/// assert_eq!(limits.bytes, 64 << 20);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileLimits {
    /// The maximum number of requests.
    pub requests: usize,
    /// The maximum size in bytes.
    pub bytes: usize,
}

impl Default for FileLimits {
    fn default() -> Self {
        // A file is held in memory while it is submitted.
        Self { requests: usize::MAX, bytes: 64 << 20 }
    }
}

/// A request in a file.
#[derive(Debug, Clone)]
pub struct FileRequest {
    /// The id by which the result is found again: 1 to 64 letters, digits, `-` and `_`.
    pub custom_id: String,
    /// The request as the protocol writes it.
    pub request: Request<Bytes>,
}

/// The result of one request.
#[derive(Debug, Clone)]
pub struct FileResult {
    /// The id of the request.
    pub custom_id: String,
    /// The response; `None` if the request was not processed, because the file expired or was cancelled.
    pub response: Option<Response<Bytes>>,
}

impl FileResult {
    /// Returns the result of a request that was processed, with this response. `body` is the document of the response, if it has one.
    ///
    /// # Errors
    /// A [`Fault`] if the status is not one of HTTP.
    pub fn answered(custom_id: String, status: u16, body: Option<&Value>) -> Result<Self, Fault> {
        let response = Response::builder().status(status).header("content-type", "application/json");
        let response = response.body(body.map(ToString::to_string).unwrap_or_default().into());
        let response = response.map_err(|error| unexpected(&format!("a line of the results: {error}")))?;
        Ok(Self { custom_id, response: Some(response) })
    }

    /// Returns the result of a request that was not processed.
    pub const fn unprocessed(custom_id: String) -> Self {
        Self { custom_id, response: None }
    }
}

/// The state of a submitted file.
///
/// ```
/// use formwork_wire::batch::FileStatus;
///
/// let status = FileStatus::Refused { message: "too many enqueued tokens".to_owned(), is_transient: true };
/// assert!(matches!(status, FileStatus::Refused { is_transient: true, .. }));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileStatus {
    /// The provider works on it.
    Open {
        /// The number of requests that have a result.
        finished: u64,
    },
    /// The provider has ended its work; requests may be without a result.
    Ended,
    /// The provider refused the file as a whole, so that no request was processed.
    Refused {
        /// The provider's message.
        message: String,
        /// Whether the same file may be accepted later, because too many requests are enqueued now.
        is_transient: bool,
    },
}

/// The result of a search for a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The provider accepted the file under this id.
    Id(String),
    /// An unfinished file may be this one; its results will show it.
    Perhaps,
    /// The provider does not list the file.
    No,
}
