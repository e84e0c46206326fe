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
use crate::body::{Incoming, Limits};
use crate::transport::{add, request_of};

/// How many redirects a download follows.
pub const MOST_REDIRECTS: usize = 5;

/// How much of the body of an error is read, in bytes.
const ERROR_BYTES: usize = 64 * 1024;

/// Why a download did not come to its end. What had come is written already.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DownloadError {
    /// The server, or the way to it.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// Where it was written to.
    #[error("what was downloaded cannot be written: {0}")]
    Write(#[from] io::Error),
}

impl HttpTransport {
    /// Gets a file from a path below the base URL, and writes it as it comes; gives its length in bytes.
    ///
    /// Only here redirects are followed, up to [`MOST_REDIRECTS`] of them, because hubs keep their files elsewhere. The
    /// key and the headers of this transport go to the server of the base URL alone (same scheme, host and port), and
    /// never from https to http.
    ///
    /// `progress` is told how many bytes are written and how many there are, if the server says. The time limits for
    /// connecting, for the first byte and between two pieces hold; there is no limit for the size or for the whole.
    /// The server is asked not to pack, so that the length is known. Nothing is written of an answer that is an error.
    /// The writes block, as files do.
    ///
    /// # Errors
    /// [`DownloadError::Fault`], if the file does not come whole; [`DownloadError::Write`], if `to` does not take it.
    pub async fn download(
        &self,
        path: &str,
        to: &mut (dyn Write + Send),
        mut progress: impl FnMut(u64, Option<u64>) + Send,
    ) -> Result<u64, DownloadError> {
        let (response, host) = self.follow(path).await.map_err(|fault| self.hidden(fault))?;
        let total = response.content_length();
        let limits = Limits { idle: self.settings().idle(None), deadline: None, most: usize::MAX };
        let mut body = Incoming::new(response, limits, host);
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

    /// The response that has the file, and where it came from.
    async fn follow(&self, path: &str) -> Result<(reqwest::Response, Arc<str>), Fault> {
        let target: Uri = format!("/{}", path.trim_start_matches('/'))
            .parse()
            .map_err(|error| Fault::new(FaultKind::BadRequest, format!("{path:?} is no path: {error}")))?;
        let base = &self.settings().base;
        let mut url = base.join(&target)?;
        for _ in 0..=MOST_REDIRECTS {
            let mut headers = HeaderMap::new();
            if base.is_origin_of(&url) {
                add(&mut headers, &self.settings().headers);
            }
            // Packed, its length would not be known.
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
            let request = request_of(Method::GET, url.clone(), headers, Bytes::new());
            let from: Arc<str> = host(&url).into();
            let response = self.exchange(request, &from, None).await?;
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

    /// Returns the fault that a status means which is no success.
    async fn refused(&self, mut response: reqwest::Response, from: Arc<str>) -> Fault {
        let (mut head, ()) = http::Response::new(()).into_parts();
        (head.status, head.headers) = (response.status(), std::mem::take(response.headers_mut()));
        let limits = Limits { idle: self.settings().idle(None), deadline: None, most: usize::MAX };
        let body = Body::new(Incoming::new(response, limits, from)).beginning(ERROR_BYTES).await;
        fault_of(&head, &body, false, self.now())
    }

    fn hidden(&self, mut fault: Fault) -> Fault {
        fault.message = self.redact(&fault.message);
        fault
    }
}

/// Where a redirect goes (RFC 9110, section 10.2.2).
fn moved(from: &Url, to: &HeaderValue) -> Result<Url, Fault> {
    let wrong = |why: &str| {
        let to = quoted(&String::from_utf8_lossy(to.as_bytes()));
        Fault::new(FaultKind::BadWire, format!("{} redirects to {to}, {why}", host(from)))
    };
    let text = to.to_str().map_err(|_| wrong("which is no address"))?;
    let url = from.join(text).map_err(|_| wrong("which is no address"))?;
    match (from.scheme(), url.scheme()) {
        ("http", "http" | "https") | ("https", "https") => Ok(url),
        _ => Err(wrong("which is not followed: it is not https")),
    }
}

async fn next(body: &mut Incoming) -> Option<Result<Bytes, Fault>> {
    std::future::poll_fn(|cx| std::pin::Pin::new(&mut *body).poll_next(cx)).await
}
