//! Tests of the servers that a section of a kind names: its pass-through and its batch API.

use std::fs;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use formwork_testkit::server::{Received, Reply, Server};
use formwork_wire::batch::SharedBatchApi;
use formwork_wire::{Body, SharedTransport};
use futures_util::StreamExt as _;
use http::{Request, Response};

use crate::script::KEY;
use crate::wire::equal;

/// The server that a section has to name: an address on this machine, and a file with the key.
///
/// ```
/// use formwork_conformance::ServerOfSection;
///
/// fn section(server: &ServerOfSection) -> String {
///     let (url, key) = (&server.base_url, server.key_file.display().to_string());
///     format!("[providers.a]\nkind = \"acme\"\nmodel = \"m\"\nbase_url = {url:?}\napi_key_file = {key:?}")
/// }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerOfSection {
    /// The address, such as `http://127.0.0.1:41873`.
    pub base_url: String,
    /// The file with the key.
    pub key_file: PathBuf,
}

/// Opens the transport or the API of a section that names this server.
pub(crate) type Open<T> = Arc<dyn Fn(&ServerOfSection) -> Result<T, String> + Send + Sync>;

type Check = Pin<Box<dyn Future<Output = Result<(), String>>>>;
type Trial<T> = fn(Open<T>) -> Check;

/// The names and functions of the tests of a pass-through.
pub(crate) const PASS_THROUGH: &[(&str, Trial<SharedTransport>)] = &[
    ("requests_arrive_unchanged_with_the_key", |open| Box::pin(requests(open))),
    ("responses_return_unchanged", |open| Box::pin(responses(open))),
    ("streams_return_piece_by_piece", |open| Box::pin(streams(open))),
];

/// The names and functions of the tests of the batch API of a section.
pub(crate) const BATCH: &[(&str, Trial<SharedBatchApi>)] =
    &[("requests_go_to_the_server_of_the_section_with_the_key", |open| Box::pin(batch(open)))];

/// The server of one test, and what its section opened.
struct Opened<T> {
    server: Server,
    key_file: PathBuf,
    of_section: T,
}

impl<T: std::fmt::Debug> Opened<T> {
    fn new(open: &Open<T>, replies: impl IntoIterator<Item = Reply>) -> Result<Self, String> {
        static FILES: AtomicUsize = AtomicUsize::new(0);

        let server = Server::start(replies).map_err(|error| error.to_string())?;
        let nth = FILES.fetch_add(1, Ordering::Relaxed);
        let key_file =
            std::env::temp_dir().join(format!("formwork-conformance-{}-{nth}.key", std::process::id()));
        fs::write(&key_file, KEY).map_err(|error| error.to_string())?;
        let of_section = open(&ServerOfSection { base_url: server.url(), key_file: key_file.clone() })?;
        equal("the key is printed", &format!("{of_section:?}").contains(KEY), &false)?;
        Ok(Self { server, key_file, of_section })
    }

    /// Returns the requests that arrived; an error if one of them has no key.
    fn received(&self) -> Result<Vec<Received>, String> {
        let received = self.server.received();
        equal("no request arrives", &received.is_empty(), &false)?;
        for request in &received {
            let keys = request.headers.iter().filter(|(_, value)| value.contains(KEY)).count();
            equal(&format!("headers of {} with the key", request.path), &keys, &1)?;
            equal("the path has the key", &request.path.contains(KEY), &false)?;
        }
        Ok(received)
    }
}

impl<T> Drop for Opened<T> {
    fn drop(&mut self) {
        _ = fs::remove_file(&self.key_file);
    }
}

async fn send(transport: &SharedTransport, body: &'static [u8]) -> Result<Response<Body>, String> {
    let request = Request::post("/some/path?beta=true&n=1").header("content-type", "application/json");
    let request = request.header("x-of-client", "7").body(body.into());
    let request = request.map_err(|error: http::Error| error.to_string())?;
    transport.send(request, None).await.map_err(|fault| fault.to_string())
}

async fn requests(open: Open<SharedTransport>) -> Result<(), String> {
    // Spelling, order and unknown members are those of the client.
    for body in [&b"{ \"unknown\" : 1.50,\n\t\"model\": \"m\" , \"n\": 1e2 }"[..], b"", b"\xff\x00no JSON"] {
        let opened = Opened::new(&open, [Reply::json("{}")])?;
        send(&opened.of_section, body).await?;
        let received = opened.received()?;
        let [request] = received.as_slice() else {
            return Err(format!("{} requests for one", received.len()));
        };
        equal("method", &request.method.as_str(), &"POST")?;
        equal("path and query", &request.path.ends_with("/some/path?beta=true&n=1"), &true)?;
        equal("header of the client", &request.header("x-of-client"), &Some("7"))?;
        equal("body", &request.body.as_slice(), &body)?;
    }
    Ok(())
}

async fn responses(open: Open<SharedTransport>) -> Result<(), String> {
    let body = "{ \"error\" : {\"message\": \"é🦀\"}, \"n\": 1.50 }";
    for status in [200, 201, 400, 404, 422, 429, 500, 503] {
        let reply = Reply::json(body).with_status(status).with_header("x-request-id", "r-1");
        let opened = Opened::new(&open, [reply])?;
        let (head, received) = send(&opened.of_section, b"{}").await?.into_parts();
        let place = |what: &str| format!("{what} of {status}");
        equal(&place("status"), &head.status.as_u16(), &status)?;
        let id = head.headers.get("x-request-id").and_then(|id| id.to_str().ok());
        equal(&place("header"), &id, &Some("r-1"))?;
        let received = received.collect(1 << 20).await.map_err(|fault| fault.to_string())?;
        equal(&place("body"), &&*received, &body.as_bytes())?;
    }
    Ok(())
}

/// Tests that a piece of a stream is there before the stream ends.
async fn streams(open: Open<SharedTransport>) -> Result<(), String> {
    let piece = "data: {\"n\": 1}\n\n";
    let opened =
        Opened::new(&open, [Reply::endless(piece).with_header("content-type", "text/event-stream")])?;
    let mut body = Box::pin(send(&opened.of_section, b"{}").await?.into_body());
    let mut received = Vec::new();
    while received.len() < 3 * piece.len() {
        let Some(chunk) = body.next().await else { return Err("the stream ends".to_owned()) };
        received.extend_from_slice(&chunk.map_err(|fault| fault.to_string())?);
    }
    let received: Vec<u8> = received.into_iter().take(3 * piece.len()).collect();
    equal("the stream", &String::from_utf8_lossy(&received).into_owned(), &piece.repeat(3))
}

async fn batch(open: Open<SharedBatchApi>) -> Result<(), String> {
    let opened = Opened::new(&open, [Reply::json("{}")])?;
    // The response need not be one of the API: the requests are what is tested.
    _ = opened.of_section.status("file-7").await;
    opened.received().map(|_| ())
}
