use std::io::{self, ErrorKind};
use std::sync::Arc;

use reqwest::{Client, ClientBuilder, Request, Response, redirect, retry};
use rustls::{ClientConfig, RootCertStore};
use tokio::time::{Duration, Instant};

use crate::fault::find;
use crate::opened::{Noting, watched};
use crate::roots::roots;
use crate::settings::Settings;

/// Makes what sends, and keeps connections for the next request.
///
/// The configuration of TLS is made here, with a provider of cryptography of its own: reqwest would take the one that is
/// installed for the whole process, which is not a library's to choose.
///
/// A client that is not for TLS reads no certificates, which takes milliseconds, and trusts no server over TLS.
///
/// # Errors
/// Words, if the certificates that servers are checked with cannot be used.
pub(crate) fn client(settings: &Settings, is_for_tls: bool) -> Result<Kept, String> {
    let config = tls(if is_for_tls { roots(&settings.roots)? } else { RootCertStore::empty() })?;
    let builder = builder(settings).tls_backend_preconfigured(config).connector_layer(Noting);
    builder.build().map(Kept).map_err(|error| error.to_string())
}

/// A client that keeps connections.
#[derive(Debug)]
pub(crate) struct Kept(Client);

impl Kept {
    /// Sends a request, and sends it again if it went over a kept connection that turns out to be closed: servers close what is
    /// idle, and llama.cpp's closes after each stream although it says that it keeps the connection. A client learns of that
    /// only when it sends (RFC 9112, section 9.5).
    ///
    /// A connection that was closed already fails at once. Later the server may have been at work on the request, which costs:
    /// that is a fault, and the policy's to decide, as is the failure of a new connection.
    pub(crate) async fn execute(&self, request: Request) -> Result<Response, reqwest::Error> {
        const AT_ONCE: Duration = Duration::from_secs(1);

        let again = request.try_clone();
        let sent = Instant::now();
        let (done, opened) = watched(self.0.execute(request)).await;
        match (done, again) {
            (Err(error), Some(again)) if !opened && sent.elapsed() < AT_ONCE && is_closed(&error) => {
                // What the server did with the first one says more than that it takes no connection now.
                self.0.execute(again).await.map_err(|other| if other.is_connect() { error } else { other })
            }
            (done, _) => done,
        }
    }
}

/// Whether a connection ended before the whole head of a response was there.
fn is_closed(error: &reqwest::Error) -> bool {
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
        // The key would go along, and a wrong base URL would stay unnoticed.
        .redirect(redirect::Policy::none())
        // Whether a call is repeated is the policy's to decide, and goes into the ledger; see `Kept::execute`.
        .retry(retry::never())
        .referer(false);
    match &settings.proxy {
        Some(proxy) => builder.proxy(proxy.clone()),
        None if settings.base.is_loopback() => builder.no_proxy(),
        None => builder,
    }
}

fn tls(store: RootCertStore) -> Result<ClientConfig, String> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(store)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
