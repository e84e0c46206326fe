use std::sync::Arc;

use reqwest::{Certificate, Client, ClientBuilder, redirect, retry};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

use crate::settings::Settings;

/// What sends, and keeps connections for the next request.
///
/// # Errors
/// Words, if there is no TLS to be had.
pub(crate) fn client(settings: &Settings) -> Result<Client, String> {
    ensure_crypto();
    let mut certificates = Vec::new();
    for root in &settings.roots {
        certificates.push(Certificate::from_der(root).map_err(|error| error.to_string())?);
    }
    // reqwest reads the system's certificates here. Where there are none, as in an empty container, it gives up, even
    // if only plain HTTP is spoken.
    builder(settings).tls_certs_merge(certificates).build().or_else(|_| {
        let config = bundled(&settings.roots).map_err(|error| error.to_string())?;
        builder(settings).tls_backend_preconfigured(config).build().map_err(|error| error.to_string())
    })
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

/// Mozilla's certificates, as they were when this was built.
fn bundled(roots: &[CertificateDer<'static>]) -> Result<ClientConfig, rustls::Error> {
    let mut store = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for root in roots {
        store.add(root.clone())?;
    }
    let provider = CryptoProvider::get_default()
        .cloned()
        .unwrap_or_else(|| Arc::new(rustls::crypto::ring::default_provider()));
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(store)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// reqwest panics without a provider of cryptography. One that the process chose itself stays.
fn ensure_crypto() {
    if CryptoProvider::get_default().is_none() {
        // It fails if another thread was faster, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

#[cfg(test)]
mod tests {
    use super::{bundled, ensure_crypto};

    #[test]
    fn there_are_certificates_without_a_system() {
        ensure_crypto();
        let config = bundled(&[]).unwrap();
        assert_eq!(config.alpn_protocols.len(), 2);
        assert!(webpki_roots::TLS_SERVER_ROOTS.len() > 50);
    }
}
