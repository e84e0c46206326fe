//! Checks before a request is read: hosts, origins, media types.

use axum::http::{HeaderMap, HeaderValue, Method, header};
use formwork_serve::{is_compressed, media_type};

use crate::problem::{Kind, Problem};

/// The hosts and origins that are allowed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Guard {
    pub(crate) hosts: Vec<String>,
    pub(crate) origins: Vec<String>,
}

impl Guard {
    /// Checks a request's `Host` and `Origin`. A name that resolves to this machine is not enough: a web page could have its
    /// own name resolve to it (DNS rebinding). Returns the origin, if it is allowed to read the response.
    ///
    /// # Errors
    /// [`Kind::Forbidden`] with the name that is not allowed.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, Problem> {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        if !self.is_allowed_host(host) {
            let message = match host.chars().take(100).collect::<String>() {
                host if host.is_empty() => {
                    "the header `Host` is missing: send the name of the service".to_owned()
                }
                host => format!("the host `{host}` is not served: name it in `hosts` of [serve]"),
            };
            return Err(Problem::new(Kind::Forbidden, message));
        }
        let Some(origin) = headers.get(header::ORIGIN) else {
            let is_foreign = headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site");
            return if is_foreign { Err(foreign("another site")) } else { Ok(None) };
        };
        let text = origin.to_str().unwrap_or_default();
        // A page of this service sends its forms with its own origin; a host that is served has no other pages.
        let own = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
        if own == Some(host) {
            return Ok(None);
        }
        match self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(text)) {
            true => Ok(Some(origin.clone())),
            false => Err(foreign(text)),
        }
    }

    fn is_allowed_host(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        name.eq_ignore_ascii_case("localhost")
            || bare.parse::<std::net::IpAddr>().is_ok()
            || self
                .hosts
                .iter()
                .any(|allowed| allowed.eq_ignore_ascii_case(name) || allowed.eq_ignore_ascii_case(host))
    }
}

fn foreign(origin: &str) -> Problem {
    let origin: String = origin.chars().take(100).collect();
    let message =
        format!("web pages of `{origin}` may not call this service: name it in `origins` of [serve]");
    Problem::new(Kind::Forbidden, message)
}

/// Checks that a body is uncompressed JSON. Other bodies are rejected before they are read.
///
/// # Errors
/// [`Kind::UnsupportedMediaType`].
pub(crate) fn is_json(headers: &HeaderMap) -> Result<(), Problem> {
    let refuse = |message: &str| Err(Problem::new(Kind::UnsupportedMediaType, message));
    if is_compressed(headers) {
        return refuse("compressed bodies are not supported");
    }
    if media_type(headers).is_some_and(|media| media.eq_ignore_ascii_case("application/json")) {
        return Ok(());
    }
    refuse("the body has to be JSON: set `Content-Type: application/json`")
}

/// Returns the method as metrics name it: clients may make up others.
pub(crate) fn known(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_named_hosts_and_origins_are_served() {
        let guard = Guard {
            hosts: vec!["llm.example.org".to_owned()],
            origins: vec!["https://app.example.org".to_owned()],
        };
        for (host, origin, allowed) in [
            ("127.0.0.1:8190", None, true),
            ("[::1]:8190", None, true),
            ("[::1]", None, true),
            ("localhost:8190", None, true),
            ("LLM.example.org", None, true),
            ("llm.example.org:443", None, true),
            ("evil.example", None, false),
            ("127.0.0.1.evil.example", None, false),
            ("localhost.evil.example:8190", None, false),
            ("", None, false),
            ("localhost", Some("https://app.example.org"), true),
            ("localhost", Some("https://app.example.org.evil.example"), false),
            ("localhost", Some("http://localhost:3000"), false),
            ("localhost:8190", Some("http://localhost:8190"), true),
            ("llm.example.org", Some("https://llm.example.org"), true),
            ("evil.example", Some("https://evil.example"), false),
            ("localhost", Some("null"), false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            origin.map(|origin| headers.insert(header::ORIGIN, origin.parse().unwrap()));
            assert_eq!(guard.check(&headers).is_ok(), allowed, "{host} {origin:?}");
        }
        let cross = HeaderMap::from_iter([
            (header::HOST, "localhost".parse().unwrap()),
            ("sec-fetch-site".parse().unwrap(), "cross-site".parse().unwrap()),
        ]);
        assert!(guard.check(&cross).is_err());
    }
}
