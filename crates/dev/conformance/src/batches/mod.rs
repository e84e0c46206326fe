//! Tests of a batch API, for which this crate plays the server.

mod trials;

use formwork_wire::SharedTransport;
use formwork_wire::batch::SharedBatchApi;

use crate::{Reply, ServerAnswer};

pub(crate) use trials::TRIALS;

/// The protocol of one batch API, for a suite that plays the server; see [`Suite::batches`](crate::Suite::batches).
///
/// ```
/// use std::sync::Arc;
///
/// use formwork_conformance::{BatchOutcome, BatchProtocol, BatchScene, Reply};
/// use formwork_wire::SharedTransport;
/// use formwork_wire::batch::SharedBatchApi;
///
/// /// A server whose results are lines with an id, a status and a text.
/// struct Nights(fn(SharedTransport) -> SharedBatchApi);
///
/// fn line((id, outcome): &(String, BatchOutcome)) -> String {
///     match outcome {
///         BatchOutcome::Answer(answer) => format!("{{\"id\": {id:?}, \"status\": 200, \"text\": {:?}}}\n", answer.text),
///         BatchOutcome::Error(status, message) => {
///             format!("{{\"id\": {id:?}, \"status\": {status}, \"problem\": {message:?}}}\n")
///         }
///         BatchOutcome::Unprocessed => format!("{{\"id\": {id:?}}}\n"),
///     }
/// }
///
/// impl BatchProtocol for Nights {
///     fn api(&self, transport: SharedTransport) -> SharedBatchApi {
///         (self.0)(transport)
///     }
///     fn replies(&self, scene: &BatchScene) -> Vec<Reply> {
///         let body = match scene {
///             BatchScene::Accepted { id } => format!("{{\"night\": {id:?}}}"),
///             BatchScene::Listed { id, key, .. } => format!("{{\"data\": [{{\"night\": {id:?}, \"name\": {key:?}}}]}}"),
///             BatchScene::Open { finished, .. } => format!("{{\"state\": \"running\", \"done\": {finished}}}"),
///             BatchScene::Ended { .. } => "{\"state\": \"over\"}".to_owned(),
///             BatchScene::Results(results) => results.iter().map(line).collect(),
///             BatchScene::Cancelled { .. } => "{}".to_owned(),
///         };
///         vec![Reply::new(200, "application/json", body)]
///     }
///     fn error(&self, status: u16, message: &str) -> Reply {
///         Reply::new(status, "application/json", format!("{{\"problem\": {message:?}}}"))
///     }
/// }
/// ```
pub trait BatchProtocol: Send + Sync + 'static {
    /// Returns the prefix of the names of its tests, which distinguishes several APIs of one provider (default: `batches`).
    fn name(&self) -> &'static str {
        "batches"
    }

    /// Returns the API under test, over this transport.
    fn api(&self, transport: SharedTransport) -> SharedBatchApi;

    /// Returns the server's responses to the requests of one operation, in the order of the requests.
    fn replies(&self, scene: &BatchScene) -> Vec<Reply>;

    /// Returns an error response with this message.
    fn error(&self, status: u16, message: &str) -> Reply;
}

/// The state of a simulated server during one operation of a batch API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchScene {
    /// `submit`: the server accepts the file.
    Accepted {
        /// The id that the server gives the file.
        id: String,
    },
    /// `find`: the server lists one file, which has ended; each of its requests has an answer.
    Listed {
        /// The id of the file.
        id: String,
        /// The key under which the file was submitted. The ids of its requests begin with it.
        key: String,
        /// The number of its requests.
        requests: u64,
    },
    /// `status`: the server works on the file.
    Open {
        /// The number of requests that have a result.
        finished: u64,
        /// The number of all requests.
        requests: u64,
    },
    /// `status`: the server has ended its work on the file.
    Ended {
        /// The number of requests.
        requests: u64,
    },
    /// `results`: the ids of the requests, each with its outcome.
    Results(Vec<(String, BatchOutcome)>),
    /// `cancel`: the server accepts the cancellation.
    Cancelled {
        /// The id of the file.
        id: String,
    },
}

/// The outcome of one request of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchOutcome {
    /// The model answered.
    Answer(ServerAnswer),
    /// The server responded with an error: its status and its message.
    Error(u16, String),
    /// The request was not processed, because the file expired.
    Unprocessed,
}
