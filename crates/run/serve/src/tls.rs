use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// The certificate of a service and its key, for connections over TLS 1.2 and 1.3. Clones share them.
///
/// ```
/// use std::path::Path;
///
/// use formwork_serve::{Tls, TlsError};
///
/// let error = Tls::from_files(Path::new("no-such.pem"), Path::new("key.pem")).err();
/// assert!(matches!(error, Some(TlsError::File(file, _)) if file == Path::new("no-such.pem")));
/// ```
#[derive(Clone)]
pub struct Tls(Arc<RwLock<TlsAcceptor>>);

/// The reason why files cannot be used for TLS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read, or its PEM is broken; the file and the reason.
    #[error("{} cannot be read: {}", .0.display(), .1)]
    File(PathBuf, String),
    /// The file has no certificate.
    #[error("{} has no certificate in PEM", .0.display())]
    NoCertificate(PathBuf),
    /// The file has no private key, or an encrypted one.
    #[error("{} has no private key in PEM without a password", .0.display())]
    NoKey(PathBuf),
    /// The key in the second file is not the one of the certificate in the first.
    #[error("the key in {} does not belong to the certificate in {}", .1.display(), .0.display())]
    Mismatch(PathBuf, PathBuf),
    /// The certificate or the key cannot be used; the file of the certificate and the reason.
    #[error("{} cannot be used for TLS: {}", .0.display(), .1)]
    Unusable(PathBuf, String),
}

impl Tls {
    /// Reads a certificate chain, the service's own certificate first, and its private key (PKCS#8, PKCS#1 or SEC1), both in PEM.
    ///
    /// # Errors
    /// [`TlsError`] that names the file.
    pub fn from_files(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let broken = |file: &Path, error: PemError| TlsError::File(file.to_owned(), error.to_string());
        let chain = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| broken(certificate, error))?;
        if chain.is_empty() {
            return Err(TlsError::NoCertificate(certificate.to_owned()));
        }
        let private = PrivateKeyDer::from_pem_file(key).map_err(|error| match error {
            PemError::NoItemsFound => TlsError::NoKey(key.to_owned()),
            error => broken(key, error),
        })?;
        let unusable = |error: rustls::Error| TlsError::Unusable(certificate.to_owned(), error.to_string());
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_no_client_auth()
            .with_single_cert(chain, private)
            .map_err(|error| match error {
                rustls::Error::InconsistentKeys(_) => {
                    TlsError::Mismatch(certificate.to_owned(), key.to_owned())
                }
                error => unusable(error),
            })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(RwLock::new(TlsAcceptor::from(Arc::new(config))))))
    }

    /// Replaces the certificate and the key by those of another value, for the connections of all clones that begin later.
    pub fn replace(&self, by: &Self) {
        let by = by.acceptor();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = by;
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}
