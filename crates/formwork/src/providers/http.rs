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
pub(super) struct Server<'s> {
    pub(super) base_url: &'s str,
    pub(super) auth: Auth,
    pub(super) api_key_env: Option<&'s str>,
    pub(super) headers: &'s BTreeMap<String, String>,
}

/// The network, a cassette, or the network with a cassette that records it.
pub(super) fn transport(section: &Section, server: &Server<'_>) -> Result<SharedTransport, ConfigError> {
    if let Some(path) = &section.common.cassette {
        let path = section.path(path);
        let failed = |reason: String| section.error(format!("the cassette {}: {reason}", path.display()));
        let text = std::fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
        return Ok(Arc::new(Player::new(Cassette::from_json(&text).map_err(failed)?)));
    }
    let network = network(section, server).map_err(|error| section.error(error.to_string()))?;
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
