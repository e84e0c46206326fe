//! Converts errors of HTTP clients to faults that name the place of the failure.

use std::error::Error;
use std::io;

use formwork_core::{Connection, Fault, FaultKind};
use rustls::{CertificateError, Error as Tls};

use crate::settings::Settings;

/// The error of a request or of a body.
#[derive(Debug)]
pub(crate) enum Failure {
    Reqwest(reqwest::Error),
    /// Of a request that was sent without reqwest.
    Direct(hyper_util::client::legacy::Error),
    /// Of the body of such a request's response.
    Hyper(hyper::Error),
    /// Of a body that cannot be unpacked.
    Body(io::Error),
}

impl From<reqwest::Error> for Failure {
    fn from(error: reqwest::Error) -> Self {
        Self::Reqwest(error)
    }
}

impl From<hyper_util::client::legacy::Error> for Failure {
    fn from(error: hyper_util::client::legacy::Error) -> Self {
        Self::Direct(error)
    }
}

impl Failure {
    /// Returns the first error of the chain that says more than that a request failed.
    fn cause(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Reqwest(error) => error.source(),
            Self::Direct(error) => error.source(),
            Self::Hyper(error) => Some(error),
            Self::Body(error) => Some(error),
        }
    }

    pub(crate) fn is_connect(&self) -> bool {
        match self {
            Self::Reqwest(error) => error.is_connect(),
            Self::Direct(error) => error.is_connect(),
            Self::Hyper(_) | Self::Body(_) => false,
        }
    }

    fn is_dns(&self) -> bool {
        match self {
            Self::Reqwest(error) => error.is_dns(),
            // The type of the error is private.
            _ => self.is_connect() && self.cause().is_some_and(|cause| cause.to_string() == "dns error"),
        }
    }

    fn is_timeout(&self) -> bool {
        match self {
            Self::Reqwest(error) => error.is_timeout(),
            _ => find::<io::Error>(self).is_some_and(|io| io.kind() == io::ErrorKind::TimedOut),
        }
    }

    fn is_builder(&self) -> bool {
        matches!(self, Self::Reqwest(error) if error.is_builder())
    }
}

/// Returns the fault for a request to `host` (`host:port`) that failed before the head of a response.
pub(crate) fn before_head(error: &Failure, host: &str, settings: &Settings) -> Fault {
    let why = leaf(error);
    // The proxy, not the server, is the address that refuses a connection or does not exist.
    let proxy = settings.via().filter(|_| error.is_connect());
    if let Some(proxy) = proxy
        && find::<Tls>(error).is_none()
    {
        let time = if error.is_timeout() { format!(" within {:?}", settings.connect) } else { String::new() };
        let message = format!(
            "no connection to {host} through the proxy {proxy}{time} ({why}): is the proxy running, and is this its address?"
        );
        let kind = if error.is_timeout() { FaultKind::Timeout } else { FaultKind::Unreachable };
        return Fault::new(kind, message).with_connection(Connection::Failed);
    }
    if let Some(tls) = find::<Tls>(error) {
        return no_tls(tls, host);
    }
    if error.is_dns() {
        let message = format!("there is no address for {host} ({why}): check the base URL and the network");
        return Fault::new(FaultKind::Unreachable, message).with_connection(Connection::NoAddress);
    }
    if error.is_timeout() {
        if error.is_connect() {
            let message = format!(
                "no connection to {host} within {:?} (connect timeout): check the base URL, the network and proxies",
                settings.connect
            );
            return Fault::new(FaultKind::Timeout, message).with_connection(Connection::Late);
        }
        return Fault::new(FaultKind::Timeout, format!("the connection to {host} timed out ({why})"));
    }
    if error.is_connect() {
        let refused =
            find::<io::Error>(error).is_some_and(|io| io.kind() == io::ErrorKind::ConnectionRefused);
        let message = if refused {
            format!("nothing listens at {host}: is the server running, and is this its port?")
        } else {
            format!("no connection to {host} ({why}): check the base URL, the network and proxies")
        };
        return Fault::new(FaultKind::Unreachable, message).with_connection(Connection::Failed);
    }
    if error.is_builder() {
        return Fault::new(FaultKind::BadRequest, format!("the request cannot be sent: {why}"));
    }
    if find::<hyper::Error>(error).is_some_and(hyper::Error::is_parse) {
        let message = format!(
            "what {host} sent is not HTTP ({why}): check the port, and whether it has to be https://"
        );
        return Fault::new(FaultKind::BadWire, message);
    }
    formwork_wire::closed_early(&format!("{host}: {why}"))
}

/// Returns the fault for a body that failed after `seen` bytes. A lost connection is transient; invalid bytes are not.
pub(crate) fn within_body(error: &Failure, host: &str, seen: usize) -> Fault {
    let why = leaf(error);
    let invalid =
        |io: &io::Error| matches!(io.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput);
    if find::<io::Error>(error).is_some_and(invalid) {
        let message = format!("the response of {host} is malformed after {seen} bytes ({why})");
        return Fault::new(FaultKind::BadWire, message);
    }
    let message = format!("{host} closed the connection after {seen} bytes of the response ({why})");
    Fault::new(FaultKind::Unreachable, message).with_connection(Connection::Broken)
}

/// Returns the fault for a TLS error. A connection that merely ends is not one.
///
/// It is not [`FaultKind::Unreachable`], although there is no connection, because a retry does not make a certificate
/// valid.
fn no_tls(error: &Tls, host: &str) -> Fault {
    let message = match error {
        Tls::InvalidCertificate(problem) => {
            let problem = certificate_words(problem);
            format!("the certificate of {host} is not accepted: {problem}")
        }
        Tls::InvalidMessage(_) => {
            format!("{host} does not speak TLS ({error}): check the port, and whether it has to be http://")
        }
        _ => format!("no TLS connection to {host}: {error}"),
    };
    Fault::new(FaultKind::BadWire, message).with_connection(Connection::Failed)
}

fn certificate_words(problem: &CertificateError) -> String {
    use CertificateError as C;
    match problem {
        C::Expired | C::ExpiredContext { .. } => {
            "it has expired; is the clock of this machine right?".to_owned()
        }
        C::NotValidYet | C::NotValidYetContext { .. } => {
            "it is not valid yet; is the clock of this machine right?".to_owned()
        }
        C::NotValidForName | C::NotValidForNameContext { .. } => {
            format!("it is for another name ({problem}); check the host of the base URL")
        }
        C::UnknownIssuer => {
            "no trusted authority signed it; if it is your own or your company's, name its root certificate"
                .to_owned()
        }
        C::Revoked => "it has been revoked".to_owned(),
        _ => problem.to_string(),
    }
}

/// Returns the innermost error: the outer ones repeat the address with its query.
fn leaf(error: &Failure) -> String {
    let mut last = String::new();
    each(error, |cause| last = cause.to_string());
    if last.is_empty() { "no reason given".to_owned() } else { last }
}

/// Returns the first error of a type in the chain of sources.
pub(crate) fn find<E: Error + 'static>(error: &Failure) -> Option<&E> {
    let mut found = None;
    each(error, |cause| found = found.or_else(|| cause.downcast_ref::<E>()));
    found
}

/// Calls `see` with each error of the chain, outer ones first. An `io::Error` hides the error in it from [`Error::source`].
fn each<'a>(error: &'a Failure, mut see: impl FnMut(&'a (dyn Error + 'static))) {
    let mut next = error.cause();
    while let Some(cause) = next {
        see(cause);
        let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = inner.map(|inner| inner as &(dyn Error + 'static)).or_else(|| cause.source());
    }
}
