//! The base URL of a server.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// The host as in a URL: an IPv6 address has brackets.
    host: String,
    port: u16,
}

impl Address {
    pub(super) fn loopback(port: u16) -> Self {
        Self { host: "127.0.0.1".to_owned(), port }
    }

    /// Returns the host as a program argument: an IPv6 address has no brackets.
    pub(super) fn host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the address one port above, or `None` if there is no higher port.
    pub(super) fn next_port(&self) -> Option<Self> {
        Some(Self { host: self.host.clone(), port: self.port.checked_add(1)? })
    }

    /// Returns host and port as in a URL.
    pub(super) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    pub(super) fn sockets(&self) -> Vec<SocketAddr> {
        (self.host(), self.port).to_socket_addrs().map(Iterator::collect).unwrap_or_default()
    }

    /// Returns whether the host is a loopback address.
    pub(super) fn is_loopback(&self) -> bool {
        let sockets = self.sockets();
        !sockets.is_empty() && sockets.iter().all(|socket| socket.ip().is_loopback())
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        let wrong = || format!("`{url}` is not a base URL such as http://127.0.0.1:28411");
        let rest = url.strip_prefix("http://").ok_or_else(wrong)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = rest.rsplit_once(':').ok_or_else(wrong)?;
        let port = port.parse().map_err(|_| wrong())?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let fits = match bare {
            Some(bare) => bare.parse::<std::net::Ipv6Addr>().is_ok(),
            None => !host.is_empty() && !host.contains(['/', ':', '@', '[', ']', '?', '#']),
        };
        if fits { Ok(Self { host: host.to_owned(), port }) } else { Err(wrong()) }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_is_host_and_port() {
        let address: Address = "http://127.0.0.1:28411/".parse().unwrap();
        assert_eq!(address, Address::loopback(28411));
        assert_eq!(address.to_string(), "http://127.0.0.1:28411");
        assert!(address.is_loopback());
        let address: Address = "http://[::1]:80".parse().unwrap();
        assert_eq!((address.host(), address.authority().as_str()), ("::1", "[::1]:80"));
        assert!(address.is_loopback());
        assert!(!"http://192.0.2.1:80".parse::<Address>().unwrap().is_loopback());
    }

    #[test]
    fn anything_else_says_how_one_looks() {
        for url in [
            "",
            "127.0.0.1:1",
            "https://127.0.0.1:1",
            "http://a",
            "http://a:b",
            "http://:1",
            "http://a:1/v1",
            "http://u@a:1",
            "http://::1:80",
        ] {
            let error = url.parse::<Address>().unwrap_err();
            assert!(error.contains("base URL such as"), "{url}: {error}");
        }
    }
}
