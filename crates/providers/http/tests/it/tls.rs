//! Invalid certificates, and servers without TLS.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use formwork_core::FaultKind::{BadWire, Timeout, Unreachable};
use formwork_http::{ConfigError, HttpTransport};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use crate::support::{SHORT, ask, assert_fault};

/// Serves one TLS connection with a self-signed certificate; returns the address and the certificate in PEM. The thread
/// ends with the process.
fn tls_server(name: &str, expired: bool) -> (SocketAddr, String) {
    serving(name, expired, None)
}

/// The same for clients with a certificate of `clients`.
fn serving(name: &str, expired: bool, clients: Option<RootCertStore>) -> (SocketAddr, String) {
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    if expired {
        (params.not_before, params.not_after) = (date_time_ymd(2001, 1, 1), date_time_ymd(2002, 1, 1));
    }
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(default_provider());
    let builder =
        ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let builder = builder.unwrap();
    let config = match clients {
        None => builder.with_no_client_auth(),
        Some(roots) => builder.with_client_cert_verifier(
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap(),
        ),
    };
    let config = config.with_single_cert(vec![certificate.der().clone()], private).unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(tls) = ServerConnection::new(Arc::clone(&config)) else { return };
            let mut stream = StreamOwned::new(tls, connection.unwrap());
            // A client that does not trust the certificate has closed the connection.
            if stream.read(&mut [0; 4096]).is_ok() {
                let _ = stream
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\none\n.\n");
                let _ = stream.flush();
            }
        }
    });
    (address, certificate.pem())
}

fn transport(address: SocketAddr) -> HttpTransport {
    HttpTransport::new(&format!("https://{address}")).unwrap()
}

#[tokio::test]
async fn a_certificate_without_a_trusted_authority_is_not_accepted() {
    let (address, pem) = tls_server("127.0.0.1", false);
    let fault = ask(transport(address)).await.unwrap_err();
    assert_fault(
        &fault,
        BadWire,
        &["certificate", &address.to_string(), "no trusted authority", "root certificate"],
    );
    assert!(!fault.kind.is_transient());
    let trusting = transport(address).with_root_certificate(pem.as_bytes()).unwrap();
    assert_eq!(ask(trusting).await.unwrap().text, "one");
}

/// Finding D6: a library must not choose the cryptography provider of the process.
#[tokio::test]
async fn no_provider_of_cryptography_is_installed_for_the_process() {
    let (address, pem) = tls_server("127.0.0.1", false);
    assert!(ask(transport(address)).await.is_err());
    assert_eq!(
        ask(transport(address).with_root_certificate(pem.as_bytes()).unwrap()).await.unwrap().text,
        "one"
    );
    assert!(rustls::crypto::CryptoProvider::get_default().is_none());
}

#[tokio::test]
async fn a_certificate_for_another_name_is_not_accepted() {
    let (address, pem) = tls_server("elsewhere.example", false);
    let fault = ask(transport(address).with_root_certificate(pem.as_bytes()).unwrap()).await.unwrap_err();
    assert_fault(&fault, BadWire, &["certificate", "another name", "base URL"]);
}

#[tokio::test]
async fn a_certificate_that_has_expired_is_not_accepted() {
    let (address, pem) = tls_server("127.0.0.1", true);
    let fault = ask(transport(address).with_root_certificate(pem.as_bytes()).unwrap()).await.unwrap_err();
    assert_fault(&fault, BadWire, &["certificate", "expired", "clock"]);
}

#[tokio::test]
async fn a_plain_server_that_is_spoken_to_with_tls_is_named() {
    // The scripted server would wait for the end of a line, which TLS may not send.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let _ = connection.read(&mut [0; 4096]);
            let _ = connection.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
        }
    });
    let fault = ask(transport(address)).await.unwrap_err();
    assert_fault(&fault, BadWire, &[&address.to_string(), "does not speak TLS", "http://"]);
}

#[tokio::test]
async fn a_tls_server_that_is_spoken_to_plainly_is_not_the_protocol() {
    let (address, _) = tls_server("127.0.0.1", false);
    let fault = ask(HttpTransport::new(&format!("http://{address}")).unwrap()).await.unwrap_err();
    // Whether the alert arrives before the connection ends is chance.
    assert!(matches!(fault.kind, BadWire | Unreachable), "{fault}");
    assert_fault(&fault, fault.kind, &[&address.to_string()]);
}

#[tokio::test]
async fn a_connection_that_does_not_come_about_runs_into_the_connect_timeout() {
    // The system accepts the connection, and no server answers over it.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let fault = ask(transport(address).with_connect_timeout(SHORT)).await.unwrap_err();
    assert_fault(&fault, Timeout, &["connect timeout", &address.to_string(), "base URL"]);
}

#[test]
fn what_is_no_certificate_is_refused() {
    let broken = b"-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
    for wrong in [&b""[..], b"no certificate", broken] {
        let error = HttpTransport::new("https://h").unwrap().with_root_certificate(wrong).unwrap_err();
        assert!(matches!(error, ConfigError::Certificate(_)), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_requires_a_certificate_gets_that_of_the_client() {
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(["client.example".to_owned()]).unwrap().self_signed(&key).unwrap();
    let mut clients = RootCertStore::empty();
    clients.add(certificate.der().clone()).unwrap();
    let (address, pem) = serving("127.0.0.1", false, Some(clients));
    let bare = transport(address).with_root_certificate(pem.as_bytes()).unwrap();
    assert!(ask(bare.clone()).await.is_err());
    let (chain, key) = (certificate.pem(), key.serialize_pem());
    let known = bare.clone().with_client_certificate(chain.as_bytes(), key.as_bytes()).unwrap();
    assert_eq!(ask(known).await.unwrap().text, "one");
    let other = KeyPair::generate().unwrap().serialize_pem();
    for (chain, key) in [("", key.as_str()), (&chain, ""), (&chain, &chain), (&chain, &other)] {
        let wrong = bare.clone().with_client_certificate(chain.as_bytes(), key.as_bytes());
        assert!(matches!(wrong.unwrap_err(), ConfigError::ClientCertificate(_)), "{chain} {key}");
    }
}
