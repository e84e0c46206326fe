use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use formwork_core::{Connection, Fault, FaultKind, RateLimit, Time, is_secret_name};
use formwork_wire::{Auth, Body, Transport, rate_limits};
use http::header::HeaderName;
use http::{HeaderMap, Request, Response, StatusCode};
use reqwest::{Proxy, Url};
use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};

use crate::base::Base;
use crate::body::{Incoming, Limits, Received, far};
use crate::client::{Kept, request_of};
use crate::direct::{self, Direct};
use crate::fault::{Failure, before_head};
use crate::header::{add, header};
use crate::hold::Hold;
use crate::settings::Settings;
use crate::trace::add_trace;
use crate::{ConfigError, Credentials, Key};

/// Sends requests to one server, over connections that are kept for later requests.
///
/// Clones share the connections. It works in any Tokio runtime with IO and time enabled, with one thread or several, and in
/// several runtimes in succession; without a runtime every request is a fault.
///
/// Redirects are not followed: a 3xx status is a response like any other. Responses may be compressed with gzip (RFC 9110,
/// section 8.4.1.3).
///
/// After a response whose headers leave no further request, the next ones wait until the limit is full again, if that takes at most
/// 20 seconds and ends before the deadline; see [`RateLimit::pause`](formwork_core::RateLimit::pause). Waiting does not count as the server's time.
///
/// ```
/// use std::time::Duration;
/// use formwork_http::HttpTransport;
///
/// let transport = HttpTransport::new("http://localhost:11434")?
///     .with_header("x-team", "forms")?
///     .with_connect_timeout(Duration::from_secs(2))
///     .with_max_body_bytes(1024 * 1024);
/// assert!(HttpTransport::new("ftp://localhost").is_err());
/// # let _ = transport;
/// # Ok::<(), formwork_http::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct HttpTransport {
    settings: Arc<Settings>,
    clients: Arc<Clients>,
}

impl HttpTransport {
    /// Creates a transport for the server with this base URL, which may have a path and a query for every request:
    /// `http://localhost:11434`, `https://h.openai.azure.com/openai?api-version=2024-10-21`.
    ///
    /// # Errors
    /// [`ConfigError::BaseUrl`], if the scheme is not `http` or `https`, or if the URL contains a user name or a password.
    pub fn new(base_url: &str) -> Result<Self, ConfigError> {
        Ok(Self { settings: Arc::new(Settings::new(Base::new(base_url)?)), clients: Arc::default() })
    }

    /// Sets the API key (default: none), which is sent with every request and never printed.
    ///
    /// # Errors
    /// [`ConfigError::Header`], if the name of the header in `auth` is invalid.
    pub fn with_key(self, auth: Auth, key: Key) -> Result<Self, ConfigError> {
        self.with_secret(auth.header, &format!("{}{}", auth.prefix, key.expose()), &key)
    }

    /// Sets the API key like [`with_key`](Self::with_key) (default: none), in a header of this name, without a text before it.
    ///
    /// # Errors
    /// [`ConfigError::Header`], if the name is invalid.
    pub fn with_key_header(self, name: &str, key: Key) -> Result<Self, ConfigError> {
        self.with_secret(name, key.expose(), &key)
    }

    /// Sets the authorisation of each request (default: none), in place of [`with_key`](Self::with_key). If the credentials
    /// [can be renewed](Credentials::can_renew), a request that is answered with 401 is authorised and sent a second time.
    #[must_use]
    pub fn with_credentials(self, credentials: impl Credentials + 'static) -> Self {
        self.set(|settings| settings.credentials = Some(Arc::new(credentials)))
    }

    /// Adds a header to every request, which replaces one of the protocol with the same name (default: none). The value of a header
    /// whose name suggests a secret, such as `Authorization`, is never printed.
    ///
    /// # Errors
    /// [`ConfigError::Header`], if the name or the value is invalid (RFC 9110, section 5).
    pub fn with_header(self, name: &str, value: &str) -> Result<Self, ConfigError> {
        // A value that is a secret by the name of its header is never printed either.
        if is_secret_name(name)
            && let Ok(secret) = Key::of_header("the header", value.to_owned())
        {
            return self.with_secret(name, value, &secret);
        }
        let (name, value) = header(name, value)?;
        Ok(self.set(|settings| _ = settings.headers.insert(name, value)))
    }

    /// Adds a header like [`with_header`](Self::with_header) (default: none), whose value is never printed.
    ///
    /// # Errors
    /// [`ConfigError::Header`], if the name is invalid.
    pub fn with_secret_header(self, name: &str, value: Key) -> Result<Self, ConfigError> {
        self.with_secret(name, value.expose(), &value)
    }

    fn with_secret(self, name: &str, value: &str, secret: &Key) -> Result<Self, ConfigError> {
        let (name, mut value) = header(name, value)?;
        value.set_sensitive(true);
        Ok(self.set(|settings| {
            settings.secrets.add(secret.expose());
            // Servers quote the key alone, without the `Basic` or `Bearer` before it.
            settings.secrets.add(secret.expose().rsplit_once(' ').map_or("", |(_, key)| key));
            settings.headers.insert(name, value);
        }))
    }

    /// Sets the time limit for connecting, including TLS and the lookup of the name (default: 10 seconds).
    #[must_use]
    pub fn with_connect_timeout(self, timeout: Duration) -> Self {
        self.set_up(|settings| settings.connect = timeout)
    }

    /// Sets the time limit from sending a request to the head of its response, connecting included (default: the time until
    /// the call's deadline, or 5 minutes without one, because local servers load a model first).
    #[must_use]
    pub fn with_first_byte_timeout(self, timeout: Duration) -> Self {
        self.set(|settings| settings.first_byte = Some(timeout))
    }

    /// Sets the time limit between two pieces of a body (default: the time until the call's deadline, or 5 minutes without
    /// one, because some servers send the head before they read the prompt). Only the deadline stops a server that keeps
    /// sending single bytes.
    #[must_use]
    pub fn with_idle_timeout(self, timeout: Duration) -> Self {
        self.set(|settings| settings.idle = Some(timeout))
    }

    /// Sends no request twice (default: a request whose kept connection the server closed within a second, before any response, is
    /// sent again once, because servers close idle connections at any time). The server may have carried out the first one: this is
    /// for requests that must not be carried out twice.
    #[must_use]
    pub fn without_resending(self) -> Self {
        self.set(|settings| settings.resends = false)
    }

    /// Sets the maximum size of a body in bytes, after decompression (default: 64 MiB).
    #[must_use]
    pub fn with_max_body_bytes(self, max_bytes: usize) -> Self {
        self.set(|settings| settings.max_bytes = max_bytes)
    }

    /// Sets the proxy (default: that of the environment), even for a server on this machine. The address may contain a user
    /// name and a password, which are never printed.
    ///
    /// # Errors
    /// [`ConfigError::Proxy`], if the address is invalid.
    pub fn with_proxy(self, url: &str) -> Result<Self, ConfigError> {
        let address = Url::parse(url).map_err(|_| ConfigError::Proxy)?;
        if !matches!(address.scheme(), "http" | "https" | "socks5" | "socks5h") || !address.has_host() {
            return Err(ConfigError::Proxy);
        }
        let proxy = Proxy::all(address.clone()).map_err(|_| ConfigError::Proxy)?;
        Ok(self.set_up(|settings| {
            settings.secrets.add(address.password().unwrap_or_default());
            settings.proxy = Some(proxy);
            settings.proxy_host = Some(crate::base::host(&address).into());
        }))
    }

    /// Adds trusted root certificates (default: the system's alone): one or more in PEM (RFC 7468), such as those of a
    /// company.
    ///
    /// # Errors
    /// [`ConfigError::Certificate`], if there is none in `pem`, or one is invalid.
    pub fn with_root_certificate(self, pem: &[u8]) -> Result<Self, ConfigError> {
        let mut roots = Vec::new();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| ConfigError::Certificate(error.to_string()))?;
            let checked = RootCertStore::empty().add(certificate.clone());
            checked.map_err(|error| ConfigError::Certificate(error.to_string()))?;
            roots.push(certificate);
        }
        if roots.is_empty() {
            return Err(ConfigError::Certificate("it contains no certificate in PEM".to_owned()));
        }
        Ok(self.set_up(|settings| settings.roots.extend(roots)))
    }

    /// Sets the certificate that servers know this client by (mutual TLS; default: none): its chain and its private key, both in PEM.
    ///
    /// # Errors
    /// [`ConfigError::ClientCertificate`], if there is no certificate or no key, or one does not fit the other.
    pub fn with_client_certificate(self, chain: &[u8], key: &[u8]) -> Result<Self, ConfigError> {
        let wrong = |error: String| ConfigError::ClientCertificate(error);
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
        let chain = chain.map_err(|error| wrong(error.to_string()))?;
        if chain.is_empty() {
            return Err(wrong("the file contains no certificate in PEM".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|error| wrong(format!("the file of its key contains no private key in PEM: {error}")))?;
        let identity = CertifiedKey::from_der(chain, key, &ring::default_provider());
        let identity = identity.map_err(|error| wrong(error.to_string()))?;
        Ok(self.set_up(|settings| settings.identity = Some(Arc::new(identity))))
    }

    fn set(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self
    }

    /// Changes a setting of the connections, which are created again.
    fn set_up(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        self.clients = Arc::default();
        self.set(change)
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Sends a request unchanged, and waits for the head of the response.
    pub(crate) async fn exchange(
        &self,
        request: impl Fn() -> reqwest::Request + Send + Sync,
        url: &Url,
        host: &str,
        deadline: Option<Instant>,
    ) -> Result<reqwest::Response, Fault> {
        has_runtime()?;
        let client = self.clients.of(&self.settings, url)?;
        self.within(client.execute(request, self.settings.resends), host, deadline).await
    }

    /// Waits for the head of a response within the limits of time.
    async fn within<R>(
        &self,
        sent: impl Future<Output = Result<R, Failure>>,
        host: &str,
        deadline: Option<Instant>,
    ) -> Result<R, Fault> {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let limit = self.settings.first_byte(left);
        let first_byte = far(limit);
        let until = deadline.map_or(first_byte, |deadline| deadline.min(first_byte));
        match timeout_at(until, sent).await {
            Ok(done) => done.map_err(|error| before_head(&error, host, &self.settings)),
            Err(_) if deadline.is_some_and(|deadline| deadline <= first_byte) => {
                let left = left.unwrap_or_default();
                let message = format!("{host} sent no response by the deadline, after {left:.1?}");
                Err(Fault::new(FaultKind::Timeout, message))
            }
            Err(_) => {
                let message = format!("{host} sent no response within {limit:?} (first-byte timeout)");
                Err(Fault::new(FaultKind::Timeout, message))
            }
        }
    }

    async fn respond(
        &self,
        request: Request<Bytes>,
        deadline: Option<Time>,
    ) -> Result<Response<Body>, Fault> {
        let (head, body) = request.into_parts();
        let host = Arc::clone(self.settings.base.host());
        let left = deadline.map(|deadline| deadline.since(self.now()));
        if left.is_some_and(|left| left.is_zero()) {
            let message = format!("the deadline passed before the request to {host} was sent");
            return Err(Fault::new(FaultKind::Timeout, message).with_connection(Connection::Late));
        }
        let deadline = left.map(far);
        self.clients.hold.wait(self.now(), left).await;
        let mut headers = head.headers;
        add(&mut headers, &self.settings.headers);
        add_trace(&mut headers);
        let is_direct = self.settings.is_direct();
        if is_direct {
            direct::complete(&mut headers);
        }
        let send = async |headers: &HeaderMap| {
            if is_direct {
                has_runtime()?;
                let uri = self.settings.base.join_uri(&head.uri)?;
                let request = (&head.method, &uri, headers, &body);
                let sent = self.clients.direct(&self.settings).send(request, self.settings.resends);
                return self
                    .within(sent, &host, deadline)
                    .await
                    .map(|response| response.map(|pieces| Received::Direct(Box::new(pieces))));
            }
            let url = self.settings.base.join(&head.uri)?;
            let request = || request_of(head.method.clone(), url.clone(), headers.clone(), body.clone());
            // In a box, which requests over connections of our own do not need.
            let mut response = Box::pin(self.exchange(request, &url, &host, deadline)).await?;
            let mut out = Response::new(());
            (*out.status_mut(), *out.version_mut(), *out.headers_mut()) =
                (response.status(), response.version(), std::mem::take(response.headers_mut()));
            Ok(out.map(|()| Received::of(response)))
        };
        let mut response = match &self.settings.credentials {
            None => send(&headers).await?,
            Some(credentials) => {
                has_runtime()?;
                let authorized = async |refused: Option<&HeaderMap>| {
                    let (mut parts, ()) = Request::new(()).into_parts();
                    parts.method = head.method.clone();
                    parts.uri = self.settings.base.join_uri(&head.uri)?;
                    parts.headers.clone_from(&headers);
                    credentials.authorize(&mut parts, &body, refused).await.map(|()| parts.headers)
                };
                let sent = async {
                    let first = authorized(None).await?;
                    let response = send(&first).await?;
                    match response.status() {
                        StatusCode::UNAUTHORIZED if credentials.can_renew() => {
                            send(&authorized(Some(&first)).await?).await
                        }
                        _ => Ok(response),
                    }
                };
                Box::pin(sent).await?
            }
        };
        if response.status().is_success() {
            let (parts, chunks) = response.into_parts();
            let pause = RateLimit::pause(&rate_limits(&parts, self.now()));
            self.clients.hold.set(pause, self.now());
            response = Response::from_parts(parts, chunks);
        }
        let limits = Limits { idle: self.settings.idle(left), deadline, max_bytes: self.settings.max_bytes };
        Ok(response.map(|chunks| Body::of_chunks(Incoming::new(chunks, limits, host))))
    }
}

#[async_trait]
impl Transport for HttpTransport {
    async fn send(&self, request: Request<Bytes>, deadline: Option<Time>) -> Result<Response<Body>, Fault> {
        self.respond(request, deadline).await.map_err(|mut fault| {
            fault.message = self.redact(&fault.message);
            fault
        })
    }

    fn redact(&self, text: &str) -> String {
        let text = self.settings.secrets.redact(text);
        match &self.settings.credentials {
            Some(credentials) => credentials.redact(&text),
            None => text,
        }
    }

    fn now(&self) -> Time {
        let passed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Time(u64::try_from(passed.as_millis()).unwrap_or(u64::MAX))
    }
}

impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { base, headers, connect, first_byte, idle, max_bytes, .. } = self.settings();
        f.debug_struct("HttpTransport")
            .field("base_url", &self.redact(&base.display()))
            .field("headers", &headers.keys().map(HeaderName::as_str).collect::<Vec<_>>())
            .field("connect_timeout", connect)
            .field("first_byte_timeout", first_byte)
            .field("idle_timeout", idle)
            .field("max_body_bytes", max_bytes)
            .finish_non_exhaustive()
    }
}

/// The clients, created for the first request, because reading the system's certificates takes milliseconds.
#[derive(Default)]
struct Clients {
    /// The client for servers on this machine without TLS.
    plain: OnceLock<Result<Kept, String>>,
    /// The client for all other servers, and for proxies.
    tls: OnceLock<Result<Kept, String>>,
    /// The client of requests to such servers as `plain` is for, other than downloads.
    direct: OnceLock<Direct>,
    /// The rate limits of the server.
    hold: Hold,
}

impl Clients {
    fn direct(&self, settings: &Settings) -> &Direct {
        self.direct.get_or_init(|| Direct::new(settings.connect))
    }

    fn of(&self, settings: &Settings, url: &Url) -> Result<&Kept, Fault> {
        let is_plain = url.scheme() == "http" && settings.is_direct();
        let (client, is_for_tls) = if is_plain { (&self.plain, false) } else { (&self.tls, true) };
        client.get_or_init(|| crate::client::client(settings, is_for_tls)).as_ref().map_err(|why| {
            Fault::new(FaultKind::Unsupported, format!("HTTP cannot be set up on this machine: {why}"))
        })
    }
}

/// Checks that there is a runtime.
fn has_runtime() -> Result<(), Fault> {
    let message = "HTTP needs a Tokio runtime with IO and time enabled, and there is none here";
    Handle::try_current().map(drop).map_err(|_| Fault::new(FaultKind::Unsupported, message))
}
