//! The root certificates that server certificates are verified with.

use std::env;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls_native_certs::{CertificateResult, load_native_certs};

/// The environment variables that replace the system's certificates, as in OpenSSL.
const VARIABLES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// Returns these certificates, and those of the system or of the environment variables.
///
/// # Errors
/// A message, if there are certificates that cannot be used: other certificates would trust a server that the user did not
/// choose.
pub(crate) fn roots(more: &[CertificateDer<'static>]) -> Result<RootCertStore, String> {
    let named = VARIABLES.into_iter().find(|name| env::var_os(name).is_some_and(|value| !value.is_empty()));
    let mut store = store(load_native_certs(), named)?;
    for root in more {
        store.add(root.clone()).map_err(|error| error.to_string())?;
    }
    Ok(store)
}

fn store(loaded: CertificateResult, named: Option<&str>) -> Result<RootCertStore, String> {
    let CertificateResult { certs, errors, .. } = loaded;
    let whose = named
        .map_or_else(|| "the system's certificates".to_owned(), |name| format!("the certificates of {name}"));
    // One unreadable file among many of the system's does not disable TLS, but an explicitly named file has to be valid.
    if let Some(error) = errors.first() {
        if named.is_some() || certs.is_empty() {
            return Err(format!("{whose} cannot be read: {error}"));
        }
        tracing::warn!(target: "formwork", "not all of {whose} can be read: {error}");
    }
    let mut store = RootCertStore::empty();
    let found = certs.len();
    let (valid, _) = store.add_parsable_certificates(certs);
    if valid > 0 {
        return Ok(store);
    }
    if named.is_some() || found > 0 {
        return Err(format!("{whose} cannot be used: none of them is valid"));
    }
    // For example in an empty container.
    tracing::warn!(target: "formwork", "this system has no root certificates: Mozilla's are used, as of the build");
    store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    Ok(store)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls_native_certs::load_certs_from_paths;
    use std::fs;

    /// Finding D6: Mozilla's certificates are for systems without any, and do not hide an error.
    #[test]
    fn certificates_that_cannot_be_used_are_an_error() {
        let folder = std::env::temp_dir().join(format!("formwork-roots-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = |name: &str, content: &str| {
            let path = folder.join(name);
            fs::write(&path, content).unwrap();
            load_certs_from_paths(Some(&path), None)
        };
        let key = rcgen::KeyPair::generate().unwrap();
        let good = rcgen::CertificateParams::new(["h".to_owned()]).unwrap().self_signed(&key).unwrap().pem();
        let mangled = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
        let no_certificate = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
        let missing = || load_certs_from_paths(Some(&folder.join("missing")), None);
        let (file_named, system) = (Some("SSL_CERT_FILE"), None);
        let both = format!("{good}{mangled}");
        for (loaded, named, expected) in [
            (file("good", &good), file_named, Ok(1)),
            (file("good", &good), system, Ok(1)),
            (missing(), file_named, Err("SSL_CERT_FILE cannot be read")),
            (missing(), system, Err("the system's certificates cannot be read")),
            (file("mangled", mangled), file_named, Err("SSL_CERT_FILE cannot be read")),
            (file("mangled", mangled), system, Err("the system's certificates cannot be read")),
            (file("empty", ""), file_named, Err("none of them is valid")),
            (file("text", "hello"), file_named, Err("none of them is valid")),
            (file("no", no_certificate), file_named, Err("none of them is valid")),
            (file("no", no_certificate), system, Err("none of them is valid")),
            (file("both", &both), file_named, Err("SSL_CERT_FILE cannot be read")),
            (file("both", &both), system, Ok(1)),
            (CertificateResult::default(), system, Ok(webpki_roots::TLS_SERVER_ROOTS.len())),
        ] {
            let case = format!("{loaded:?} {named:?}");
            match (store(loaded, named), expected) {
                (Ok(store), Ok(count)) => assert_eq!(store.len(), count, "{case}"),
                (Err(error), Err(words)) => assert!(error.contains(words), "{error} {case}"),
                (found, _) => panic!("{found:?} {case}"),
            }
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
