use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use formwork_core::{Fault, FaultKind};
use formwork_wire::{Body, Transport, fault_of, quoted};
use futures_core::Stream;
use http::header::{ACCEPT_ENCODING, LOCATION};
use http::{HeaderMap, HeaderValue, Method, Uri};
use reqwest::Url;

use crate::HttpTransport;
use crate::base::host;
use crate::body::{Incoming, Limits, Received};
use crate::client::request_of;
use crate::header::add;

/// The maximum number of redirects that a download follows.
pub const MOST_REDIRECTS: usize = 5;

/// The maximum number of bytes that are read of an error body.
const ERROR_BYTES: usize = 64 * 1024;

/// The reason why a download is incomplete. The bytes before the failure are written already.
///
/// ```
/// use formwork_core::FaultKind;
/// use formwork_http::DownloadError;
///
/// fn is_missing(error: &DownloadError) -> bool {
///     matches!(error, DownloadError::Fault(fault) if fault.kind == FaultKind::Unsupported)
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DownloadError {
    /// The server or the connection failed.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// Writing failed.
    #[error("the download cannot be written: {0}")]
    Write(#[from] io::Error),
}

impl HttpTransport {
    /// Downloads a file from a path below the base URL, writes it while it arrives, and returns its length in bytes.
    ///
    /// This is the only request that follows redirects, up to [`MOST_REDIRECTS`] of them, because model hubs store their
    /// files on other servers. The key and the headers of this transport are sent only to the server of the base URL (same
    /// scheme, host and port), and never from https to http.
    ///
    /// `progress` is called with the number of bytes that are written and the total, if the server states it. The time
    /// limits for connecting, for the first byte and between two pieces apply; the size and the total time are not limited.
    /// The transport requests no compression, so that the total is known. Nothing is written of an error response. Writing
    /// blocks the task.
    ///
    /// # Errors
    /// [`DownloadError::Fault`], if the file does not arrive completely; [`DownloadError::Write`], if writing to `to` fails.
    ///
    /// ```no_run
    /// use formwork_http::{DownloadError, HttpTransport};
    ///
    /// async fn weights(hub: &HttpTransport, to: &mut std::fs::File) -> Result<u64, DownloadError> {
    ///     hub.download("/qwen/model.gguf", to, |done, total| println!("{done} of {total:?} bytes")).await
    /// }
    /// ```
    pub async fn download(
        &self,
        path: &str,
        to: &mut (dyn Write + Send),
        mut progress: impl FnMut(u64, Option<u64>) + Send,
    ) -> Result<u64, DownloadError> {
        let (response, host) = self.follow(path).await.map_err(|fault| self.hidden(fault))?;
        let total = response.content_length();
        let limits = Limits { idle: self.settings().idle(None), deadline: None, max_bytes: usize::MAX };
        let mut body = Incoming::new(Received::of(response), limits, host);
        let mut done = 0;
        progress(done, total);
        while let Some(chunk) = next(&mut body).await {
            let chunk = chunk.map_err(|fault| self.hidden(fault))?;
            to.write_all(&chunk)?;
            done += chunk.len() as u64;
            progress(done, total);
        }
        to.flush()?;
        Ok(done)
    }

    /// Returns the response with the file, and the `host:port` that sent it.
    async fn follow(&self, path: &str) -> Result<(reqwest::Response, Arc<str>), Fault> {
        let target: Uri = format!("/{}", path.trim_start_matches('/')).parse().map_err(|error| {
            Fault::new(FaultKind::BadRequest, format!("{path:?} is not a valid path: {error}"))
        })?;
        let base = &self.settings().base;
        let mut url = base.join(&target)?;
        for _ in 0..=MOST_REDIRECTS {
            let mut headers = HeaderMap::new();
            if base.is_origin_of(&url) {
                add(&mut headers, &self.settings().headers);
            }
            // The length of a compressed body is unknown.
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
            let request = || request_of(Method::GET, url.clone(), headers.clone(), Bytes::new());
            let from: Arc<str> = host(&url).into();
            let response = self.exchange(request, &url, &from, None).await?;
            if response.status().is_success() {
                return Ok((response, from));
            }
            match response.headers().get(LOCATION) {
                Some(to) if response.status().is_redirection() => url = moved(&url, to)?,
                _ => return Err(self.refused(response, from).await),
            }
        }
        let message = format!("{} redirects more than {MOST_REDIRECTS} times: check the path", base.host());
        Err(Fault::new(FaultKind::BadWire, message))
    }

    /// Returns the fault for a response without a success status.
    async fn refused(&self, mut response: reqwest::Response, from: Arc<str>) -> Fault {
        let (mut head, ()) = http::Response::new(()).into_parts();
        (head.status, head.headers) = (response.status(), std::mem::take(response.headers_mut()));
        let limits = Limits { idle: self.settings().idle(None), deadline: None, max_bytes: usize::MAX };
        let body =
            Body::new(Incoming::new(Received::of(response), limits, from)).beginning(ERROR_BYTES).await;
        fault_of(&head, &body, false, self.now())
    }

    fn hidden(&self, mut fault: Fault) -> Fault {
        fault.message = self.redact(&fault.message);
        fault
    }
}

/// Returns the target of a redirect (RFC 9110, section 10.2.2).
fn moved(from: &Url, to: &HeaderValue) -> Result<Url, Fault> {
    let wrong = |why: &str| {
        let to = quoted(&String::from_utf8_lossy(to.as_bytes()));
        Fault::new(FaultKind::BadWire, format!("{} redirects to {to}, {why}", host(from)))
    };
    let text = to.to_str().map_err(|_| wrong("which is not a URL"))?;
    let url = from.join(text).map_err(|_| wrong("which is not a URL"))?;
    match (from.scheme(), url.scheme()) {
        ("http", "http" | "https") | ("https", "https") => Ok(url),
        _ => Err(wrong("which is not followed: it is not https")),
    }
}

async fn next(body: &mut Incoming) -> Option<Result<Bytes, Fault>> {
    std::future::poll_fn(|cx| std::pin::Pin::new(&mut *body).poll_next(cx)).await
}
