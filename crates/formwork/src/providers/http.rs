//! The transport of a section.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use formwork_http::{HttpTransport, Key};
use formwork_wire::cassette::{Cassette, Player};
use formwork_wire::{Auth, SharedTransport};

use super::tape::Tape;
use crate::config::{Common, ConfigError, Section};

/// Where a server is, and how it is told the key.
#[derive(Debug, Clone)]
pub struct Server<'s> {
    /// The address that the paths of requests are put behind: `https://api.example.org/v1`.
    pub base_url: &'s str,
    /// The header that carries the key.
    pub auth: Auth,
    /// The environment variable with the key (default: none is sent). An empty name stands for none as well.
    pub api_key_env: Option<&'s str>,
    /// Headers that are sent with every request.
    pub headers: &'s BTreeMap<String, String>,
}

/// Returns the transport of a section, for the `make` function of a [`Kind`](super::Kind): the network, the cassette that
/// `cassette` names, or the network with a cassette that `record` names. The section's time limits hold for it. The key is
/// read from its environment variable here, and is known to the transport alone.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use formwork::config::Config;
/// use formwork::providers::{Server, transport};
/// use formwork::wire::{Auth, SharedTransport};
///
/// let config = Config::from_toml("[providers.mine]\nkind = \"acme\"\nconnect_timeout_seconds = 2")?;
/// let server = Server {
///     base_url: "https://api.acme.example",
///     auth: Auth { header: "x-acme-key", prefix: "" },
///     api_key_env: None,
///     headers: &BTreeMap::new(),
/// };
/// let _: SharedTransport = transport(config.section("mine")?, &server)?;
/// # Ok::<(), formwork::config::ConfigError>(())
/// ```
///
/// # Errors
/// [`ConfigError`] at the place of the section: the address or a header cannot be used, the variable with the key is not
/// set, or the cassette cannot be read or must not be overwritten.
pub fn transport(section: &Section, server: &Server<'_>) -> Result<SharedTransport, ConfigError> {
    if let Some(path) = &section.common.cassette {
        let path = section.path(path);
        let failed = |reason: String| section.error(format!("the cassette {}: {reason}", path.display()));
        let text = std::fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
        return Ok(Arc::new(Player::new(Cassette::from_json(&text).map_err(failed)?)));
    }
    let network = network(section, server).map_err(|error| {
        let lacks_key = matches!(error, formwork_http::ConfigError::NoKey { .. });
        ConfigError { lacks_key, ..section.error(error.to_string()) }
    })?;
    Ok(match &section.common.record {
        Some(path) => {
            let failed = |reason: String| section.error(format!("the cassette {}: {reason}", path.display()));
            Arc::new(Tape::new(Arc::new(network), section.below(path)?).map_err(failed)?)
        }
        None => Arc::new(network),
    })
}

fn network(section: &Section, server: &Server<'_>) -> Result<HttpTransport, formwork_http::ConfigError> {
    let mut transport = HttpTransport::new(server.base_url)?;
    if let Some(variable) = server.api_key_env.filter(|variable| !variable.is_empty()) {
        transport = transport.with_key(server.auth, Key::from_env(variable)?)?;
    }
    for (name, value) in server.headers {
        transport = transport.with_header(name, value)?;
    }
    let Common {
        connect_timeout_seconds, first_timeout_seconds, idle_timeout_seconds, timeout_seconds, ..
    } = &section.common;
    let limit = |seconds: &Option<f64>| seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    if let Some(limit) = limit(connect_timeout_seconds) {
        transport = transport.with_connect_timeout(limit);
    }
    // The transport's own limits would end a call before longer ones of the configuration do.
    if let Some(limit) = limit(&first_timeout_seconds.or(*timeout_seconds)) {
        transport = transport.with_first_byte_timeout(limit);
    }
    if let Some(limit) = limit(&idle_timeout_seconds.or(*timeout_seconds)) {
        transport = transport.with_idle_timeout(limit);
    }
    Ok(transport)
}
