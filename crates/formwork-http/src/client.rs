use std::sync::Arc;

use reqwest::{Client, ClientBuilder, redirect, retry};
use rustls::{ClientConfig, RootCertStore};

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
pub(crate) fn client(settings: &Settings, is_for_tls: bool) -> Result<Client, String> {
    let config = tls(if is_for_tls { roots(&settings.roots)? } else { RootCertStore::empty() })?;
    builder(settings).tls_backend_preconfigured(config).build().map_err(|error| error.to_string())
}

fn builder(settings: &Settings) -> ClientBuilder {
    let builder = Client::builder()
        .user_agent(concat!("formwork/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(settings.connect)
        // The key would go along, and a wrong base URL would stay unnoticed.
        .redirect(redirect::Policy::none())
        // Whether a call is repeated is the policy's to decide, and goes into the ledger.
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
