use std::io::{self, ErrorKind};
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method};
use reqwest::{Client, ClientBuilder, Request, Response, Url, redirect, retry};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore};
use tokio::time::{Duration, Instant};

use crate::fault::{Failure, find};
use crate::opened::{Noting, watched};
use crate::roots::roots;
use crate::settings::Settings;

/// Creates an HTTP client that keeps connections for later requests.
///
/// TLS is configured here with its own cryptography provider: reqwest would use the provider that is installed for the
/// whole process, which a library should not choose.
///
/// A client without TLS reads no certificates, which takes milliseconds, and trusts no server over TLS.
///
/// # Errors
/// A message, if the root certificates cannot be used.
pub(crate) fn client(settings: &Settings, is_for_tls: bool) -> Result<Kept, String> {
    let store = if is_for_tls { roots(&settings.roots)? } else { RootCertStore::empty() };
    let config = tls(store, settings.identity.clone())?;
    let builder = builder(settings).tls_backend_preconfigured(config).connector_layer(Noting);
    builder.build().map(Kept).map_err(|error| error.to_string())
}

/// A client that keeps connections.
#[derive(Debug)]
pub(crate) struct Kept(Client);

impl Kept {
    /// Sends a request, and sends it again if it failed on a kept connection that the server had closed. Servers close idle
    /// connections, and llama.cpp closes after each stream although its header promises to keep the connection. A client
    /// notices that only when it sends (RFC 9112, section 9.5).
    ///
    /// A connection that was closed before the request fails at once. A later failure is a fault, because the server may
    /// have processed the request, which costs money; a failure of a new connection is a fault too. The retry policy
    /// decides about both.
    pub(crate) async fn execute(
        &self,
        request: impl Fn() -> Request + Send + Sync,
        resends: bool,
    ) -> Result<Response, Failure> {
        at_once_again(self.0.execute(request()), || resends.then(|| self.0.execute(request()))).await
    }
}

/// Sends a request, and sends it again as [`Kept::execute`] says.
pub(crate) async fn at_once_again<R, E: Into<Failure>, F: Future<Output = Result<R, E>>>(
    request: F,
    again: impl FnOnce() -> Option<F>,
) -> Result<R, Failure> {
    const AT_ONCE: Duration = Duration::from_secs(1);

    let sent = Instant::now();
    let (done, opened) = watched(request).await;
    let error = match done {
        Ok(response) => return Ok(response),
        Err(error) => error.into(),
    };
    if opened || sent.elapsed() >= AT_ONCE || !is_closed(&error) {
        return Err(error);
    }
    let Some(again) = again() else { return Err(error) };
    again.await.map_err(|other| {
        let other = other.into();
        // The first error says more than that the server now refuses connections.
        if other.is_connect() { error } else { other }
    })
}

/// Returns whether a connection ended before the head of a response was complete.
fn is_closed(error: &Failure) -> bool {
    find::<hyper::Error>(error).is_some_and(|error| error.is_incomplete_message() || error.is_canceled())
        || find::<io::Error>(error).is_some_and(|error| {
            matches!(
                error.kind(),
                ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted
            )
        })
}

fn builder(settings: &Settings) -> ClientBuilder {
    let builder = Client::builder()
        .user_agent(concat!("formwork/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(settings.connect)
        // A redirect would send the key to another server, and hide a wrong base URL.
        .redirect(redirect::Policy::none())
        // The retry policy decides about repetitions, which are recorded in the ledger; see `Kept::execute`.
        .retry(retry::never())
        .referer(false);
    match &settings.proxy {
        Some(proxy) => builder.proxy(proxy.clone()),
        None if !settings.is_proxied => builder.no_proxy(),
        None => builder,
    }
}

fn tls(store: RootCertStore, identity: Option<Arc<CertifiedKey>>) -> Result<ClientConfig, String> {
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(store);
    let mut config = match identity {
        Some(identity) => builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(identity))),
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

pub(crate) fn request_of(method: Method, url: Url, headers: HeaderMap, body: Bytes) -> Request {
    let mut request = Request::new(method, url);
    *request.headers_mut() = headers;
    if !body.is_empty() {
        *request.body_mut() = Some(body.into());
    }
    request
}
