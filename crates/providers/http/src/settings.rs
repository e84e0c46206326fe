use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use reqwest::Proxy;
use rustls::pki_types::CertificateDer;
use rustls::sign::CertifiedKey;

use crate::Credentials;
use crate::base::Base;
use crate::secrets::Secrets;

/// The settings of a transport.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) base: Base,
    /// The headers that the transport adds, including that of the key.
    pub(crate) headers: HeaderMap<HeaderValue>,
    pub(crate) secrets: Secrets,
    /// The source of authorisation of each request.
    pub(crate) credentials: Option<Arc<dyn Credentials>>,
    pub(crate) connect: Duration,
    /// The time limit for the head of a response; `None` for the time that the call has left.
    pub(crate) first_byte: Option<Duration>,
    /// The time limit between two pieces; `None` for the time that the call has left.
    pub(crate) idle: Option<Duration>,
    /// Whether a request is sent again whose kept connection was closed before a response.
    pub(crate) resends: bool,
    /// The maximum number of bytes of a body after decompression.
    pub(crate) max_bytes: usize,
    /// Whether the server is on this machine and has no TLS.
    is_local: bool,
    pub(crate) proxy: Option<Proxy>,
    /// Whether the environment's proxy is used.
    pub(crate) is_proxied: bool,
    /// The `host:port` of `proxy`, for messages.
    pub(crate) proxy_host: Option<Arc<str>>,
    pub(crate) roots: Vec<CertificateDer<'static>>,
    /// The certificate of this client.
    pub(crate) identity: Option<Arc<CertifiedKey>>,
}

/// The time limit for calls without a limit or deadline. A local server may load a model before it responds, and some
/// servers send the head at once and read the prompt after it.
const SILENCE: Duration = Duration::from_secs(300);

impl Settings {
    /// Returns the time limit for the head of a response: the configured limit, or else the time that the call has left, so
    /// that a call with a deadline of an hour does not end after five minutes.
    pub(crate) fn first_byte(&self, left: Option<Duration>) -> Duration {
        self.first_byte.or(left).unwrap_or(SILENCE)
    }

    /// Returns the time limit between two pieces of a body, by the same rule.
    pub(crate) fn idle(&self, left: Option<Duration>) -> Duration {
        self.idle.or(left).unwrap_or(SILENCE)
    }

    /// Returns whether the server is on this machine and needs neither TLS nor a proxy.
    pub(crate) const fn is_direct(&self) -> bool {
        self.is_local && self.proxy.is_none()
    }

    /// Returns `host:port` of the proxy that requests go through, for messages: the configured one, or that of the environment.
    pub(crate) fn via(&self) -> Option<String> {
        if let Some(host) = &self.proxy_host {
            return Some(host.to_string());
        }
        let variable = |name: &str| {
            [name.to_owned(), name.to_lowercase()].into_iter().find_map(|name| std::env::var(name).ok())
        };
        // A list of exceptions may name this server.
        if !self.is_proxied || variable("NO_PROXY").is_some() {
            return None;
        }
        let of_scheme = if self.base.is_http() { "HTTP_PROXY" } else { "HTTPS_PROXY" };
        let address = variable(of_scheme).or_else(|| variable("ALL_PROXY"))?;
        let address =
            reqwest::Url::parse(&address).or_else(|_| reqwest::Url::parse(&format!("http://{address}")));
        address.ok().map(|url| crate::base::host(&url))
    }

    pub(crate) fn new(base: Base) -> Self {
        let is_loopback = base.is_loopback();
        Self {
            is_local: base.is_http() && is_loopback,
            base,
            headers: HeaderMap::new(),
            secrets: Secrets::default(),
            credentials: None,
            connect: Duration::from_secs(10),
            first_byte: None,
            idle: None,
            resends: true,
            max_bytes: 64 * 1024 * 1024,
            proxy: None,
            is_proxied: !is_loopback,
            proxy_host: None,
            roots: Vec::new(),
            identity: None,
        }
    }
}
