use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use formwork_core::{Fault, FaultKind};
use http::Uri;
use reqwest::Url;

use crate::ConfigError;

/// The base URL, which all paths are relative to.
#[derive(Debug, Clone)]
pub(crate) struct Base {
    url: Url,
    /// `host:port`, for messages.
    host: Arc<str>,
    /// The first path that was requested, with its URL. Usually there is no other.
    first: OnceLock<(Uri, Url)>,
    /// The same for clients that take URIs.
    first_uri: OnceLock<(Uri, Uri)>,
}

impl Base {
    pub(crate) fn new(text: &str) -> Result<Self, ConfigError> {
        let wrong = || {
            let value = if text.contains('@') { "what was given".to_owned() } else { format!("{text:?}") };
            ConfigError::BaseUrl { value }
        };
        let url = Url::parse(text.trim()).map_err(|_| wrong())?;
        let bare = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() || !bare {
            return Err(wrong());
        }
        Ok(Self { host: host(&url).into(), url, first: OnceLock::new(), first_uri: OnceLock::new() })
    }

    /// Returns the URL of a path: the base's own path comes first, and its query before the path's. The path `/` is the base itself.
    pub(crate) fn join(&self, target: &Uri) -> Result<Url, Fault> {
        if let Some((first, joined)) = self.first.get()
            && first == target
        {
            return Ok(joined.clone());
        }
        let joined = self.joined(target)?;
        self.first.get_or_init(|| (target.clone(), joined.clone()));
        Ok(joined)
    }

    /// Returns the same as [`join`](Self::join), as a URI.
    pub(crate) fn join_uri(&self, target: &Uri) -> Result<Uri, Fault> {
        if let Some((first, joined)) = self.first_uri.get()
            && first == target
        {
            return Ok(joined.clone());
        }
        let joined: Uri = self.joined(target)?.as_str().parse().map_err(|error| {
            Fault::new(FaultKind::BadRequest, format!("the request cannot be sent: {error}"))
        })?;
        self.first_uri.get_or_init(|| (target.clone(), joined.clone()));
        Ok(joined)
    }

    fn joined(&self, target: &Uri) -> Result<Url, Fault> {
        if target.authority().is_some() || !target.path().starts_with('/') {
            let message =
                "a request's URI has to be a path that begins with `/`: the base URL says which server";
            return Err(Fault::new(FaultKind::BadRequest, message));
        }
        let mut url = self.url.clone();
        if target.path() != "/" {
            url.set_path(&format!("{}{}", self.url.path().trim_end_matches('/'), target.path()));
        }
        let queries = [self.url.query(), target.query()];
        let query: Vec<&str> = queries.into_iter().flatten().filter(|query| !query.is_empty()).collect();
        url.set_query((!query.is_empty()).then(|| query.join("&")).as_deref());
        Ok(url)
    }

    /// Returns `host:port`, for messages.
    pub(crate) fn host(&self) -> &Arc<str> {
        &self.host
    }

    /// Returns whether the scheme is `http`.
    pub(crate) fn is_http(&self) -> bool {
        self.url.scheme() == "http"
    }

    /// Returns whether the server is on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        is_on_loopback(&self.url)
    }

    /// Returns whether a URL is on the same server: the same scheme, host and port (RFC 6454, section 4).
    pub(crate) fn is_origin_of(&self, url: &Url) -> bool {
        self.url.origin() == url.origin()
    }

    /// Returns the URL without its query, which may contain secrets.
    pub(crate) fn display(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        url.into()
    }
}

fn is_on_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    address.map_or_else(
        || host == "localhost" || host.ends_with(".localhost"),
        |address| address.to_canonical().is_loopback(),
    )
}

/// Returns whether an address is on this machine: a loopback address, `localhost`, or a name below it. A text that is no address
/// is not.
///
/// ```
/// assert!(formwork_http::is_loopback("http://127.0.0.1:8080/v1"));
/// assert!(!formwork_http::is_loopback("http://localhost.example.org"));
/// ```
pub fn is_loopback(address: &str) -> bool {
    Url::parse(address.trim()).is_ok_and(|url| is_on_loopback(&url))
}

/// Returns whether two addresses name the same server: the same scheme, host and port (RFC 6454, section 4).
///
/// ```
/// assert!(formwork_http::is_same_server("https://api.openai.com/v1", "https://API.openai.com:443"));
/// assert!(!formwork_http::is_same_server("http://api.openai.com/v1", "https://api.openai.com/v1"));
/// ```
pub fn is_same_server(one: &str, other: &str) -> bool {
    let origin = |address: &str| Url::parse(address.trim()).map(|url| url.origin());
    matches!((origin(one), origin(other)), (Ok(one), Ok(other)) if one.is_tuple() && one == other)
}

/// Returns `host:port`, for messages.
pub(crate) fn host(url: &Url) -> String {
    let port = url.port_or_known_default().map(|port| format!(":{port}"));
    format!("{}{}", url.host_str().unwrap_or_default(), port.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::Base;

    #[test]
    fn paths_are_joined_below_the_base() {
        for (base, path, whole) in [
            ("http://h/ollama", "/api/chat", "http://h/ollama/api/chat"),
            ("http://h/ollama/", "/api/chat", "http://h/ollama/api/chat"),
            ("http://h/ollama//", "/api/chat", "http://h/ollama/api/chat"),
            ("http://h", "/api/chat", "http://h/api/chat"),
            ("http://h:81/", "/", "http://h:81/"),
            ("http://h:81/v1/traces", "/", "http://h:81/v1/traces"),
            ("http://h:81/v1/?key=1", "/", "http://h:81/v1/?key=1"),
            (" https://h/v1 \n", "/models", "https://h/v1/models"),
            ("https://h/o?api-version=1", "/chat", "https://h/o/chat?api-version=1"),
            ("https://h/o/?api-version=1", "/chat?alt=sse", "https://h/o/chat?api-version=1&alt=sse"),
            ("https://h/?", "/chat?", "https://h/chat"),
            ("https://h/a%20b", "/c%2Fd", "https://h/a%20b/c%2Fd"),
            ("http://[::1]:8080/x", "/y", "http://[::1]:8080/x/y"),
        ] {
            let joined = Base::new(base).unwrap().join(&path.parse().unwrap()).unwrap();
            assert_eq!(joined.as_str(), whole, "{base} {path}");
        }
    }

    #[test]
    fn what_names_a_server_is_no_path() {
        let base = Base::new("http://h").unwrap();
        for uri in ["http://elsewhere/chat", "elsewhere:80", "*"] {
            assert!(base.join(&uri.parse().unwrap()).is_err(), "{uri}");
        }
    }

    #[test]
    fn only_plain_http_addresses_are_bases() {
        for wrong in [
            "",
            "h",
            "localhost:11434",
            "ftp://h",
            "file:///etc/passwd",
            "http://",
            "http://h/#top",
            "http://user@h",
            "https://user:hunter22@h/v1",
            "https://user:hunter22@",
        ] {
            let error = Base::new(wrong).unwrap_err().to_string();
            assert!(
                error.contains("is no base URL: expected http://") && !error.contains("hunter22"),
                "{error}"
            );
        }
    }

    #[test]
    fn servers_on_this_machine_are_known() {
        for (base, loopback) in [
            ("http://localhost:1", true),
            ("http://api.localhost", true),
            ("http://127.0.0.1", true),
            ("http://127.9.9.9", true),
            ("http://[::1]:1", true),
            ("http://[::ffff:127.0.0.1]", true),
            ("http://localhost.example.com", false),
            ("http://10.0.0.1", false),
            ("http://[::2]", false),
        ] {
            assert_eq!(Base::new(base).unwrap().is_loopback(), loopback, "{base}");
        }
    }
}
