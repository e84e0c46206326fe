use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response};
use formwork_serve::{Connections, Draining, Tls, serve};
use rcgen::{CertificateParams, KeyPair};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tokio::sync::oneshot;

/// Writes a self-signed certificate for `localhost` and its key.
fn certificate(folder: &Path, name: &str) -> (PathBuf, PathBuf) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let files = (folder.join(format!("{name}.pem")), folder.join(format!("{name}.key")));
    std::fs::write(&files.0, certificate.pem()).unwrap();
    std::fs::write(&files.1, key.serialize_pem()).unwrap();
    files
}

/// Sends a request of a client that trusts one certificate.
fn asked(address: SocketAddr, trusted: &Path) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(trusted).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connection = ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
    let mut stream = StreamOwned::new(connection, TcpStream::connect(address).unwrap());
    stream.write_all(b"GET /secret HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

#[test]
fn a_client_that_trusts_the_certificate_is_answered_and_others_end_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, key) = certificate(folder.path(), "own");
    let tls = Tls::from_files(&chain, &key).unwrap();
    let limits = Connections {
        read_timeout: Duration::from_secs(30),
        write_timeout: Duration::from_secs(30),
        max: 10,
        max_per_address: 10,
        drain: Duration::from_secs(10),
        accept_while_draining: false,
        tls: Some(tls.clone()),
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let service = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let answer = async |request: Request<_>| {
            let path = request.uri().path().to_owned();
            Ok(Response::new(Body::from(path)))
        };
        let stopped = async move { _ = stopped.await };
        runtime.block_on(serve(listener, answer, limits, Draining::new(), stopped)).unwrap();
    });

    // Without TLS there is no answer in HTTP.
    let mut plain = TcpStream::connect(address).unwrap();
    plain.write_all(b"GET /plain HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut text = Vec::new();
    _ = plain.read_to_end(&mut text);
    assert!(!String::from_utf8_lossy(&text).contains("HTTP/1.1"), "{text:?}");

    let text = asked(address, &chain).unwrap();
    assert!(text.starts_with("HTTP/1.1 200 ") && text.ends_with("/secret"), "{text}");
    // A renewed certificate holds for connections that begin later.
    let (renewed, renewed_key) = certificate(folder.path(), "renewed");
    assert!(asked(address, &renewed).is_err());
    tls.replace(&Tls::from_files(&renewed, &renewed_key).unwrap());
    assert!(asked(address, &renewed).unwrap().ends_with("/secret") && asked(address, &chain).is_err());
    stop.send(()).unwrap();
    service.join().unwrap();
}

#[test]
fn files_that_cannot_be_used_are_named_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, key) = certificate(folder.path(), "own");
    let (_, foreign) = certificate(folder.path(), "foreign");
    let missing = folder.path().join("missing.pem");
    let text = folder.path().join("text.pem");
    std::fs::write(&text, "no PEM").unwrap();
    let broken = folder.path().join("broken.pem");
    std::fs::write(&broken, "-----BEGIN CERTIFICATE-----\nMII!\n-----END CERTIFICATE-----\n").unwrap();
    for (certificate, private, named, what) in [
        (&missing, &key, &missing, "cannot be read"),
        (&chain, &missing, &missing, "cannot be read"),
        (&text, &key, &text, "no certificate"),
        (&chain, &text, &text, "no private key"),
        (&chain, &chain, &chain, "no private key"),
        (&broken, &key, &broken, "cannot be read"),
        (&chain, &foreign, &foreign, "does not belong to"),
    ] {
        let message = Tls::from_files(certificate, private).unwrap_err().to_string();
        assert!(message.contains(what) && message.contains(named.to_str().unwrap()), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}
