//! Creates the HTTP transport of a section.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use formwork_http::{HttpTransport, Key, KeySource};
use formwork_wire::cassette::{Cassette, Player};
use formwork_wire::{Auth, SharedTransport};

use super::redacted::Redacted;
use super::server::Server;
use super::tape::Tape;
use super::trust;
use crate::config::{CloudCredentials, Common, ConfigError, Section};

/// The maximum size of a file of results of a batch API in bytes.
const MAX_RESULTS: usize = 1 << 30;

/// Returns the transport of a section, for the `make` function of a [`Kind`](super::Kind): the network, the cassette in
/// `cassette`, or the network recorded to the cassette in `record`. The section's time limits apply. The API key is
/// read from its environment variable here, and only the transport knows it.
///
/// ```
/// use formwork::config::Config;
/// use formwork::providers::{Server, transport};
/// use formwork::wire::{Auth, SharedTransport};
///
/// let config = Config::from_toml("[providers.mine]\nkind = \"acme\"\nconnect_timeout_seconds = 2")?;
/// let server = Server::new("https://api.acme.example", Auth { header: "x-acme-key", prefix: "" });
/// let _: SharedTransport = transport(config.section("mine")?, &server)?;
/// # Ok::<(), formwork::config::ConfigError>(())
/// ```
///
/// # Errors
/// [`ConfigError`] with the location of the section, if the address or a header is invalid, the variable with the key
/// is not set, or the cassette cannot be read or must not be overwritten.
pub fn transport(section: &Section, server: &Server) -> Result<SharedTransport, ConfigError> {
    limited(section, server, None)
}

/// Returns the transport of a section for a batch API. The maximum size of a response is 1 GiB. The transport sends no request twice,
/// because a file that is submitted twice is paid for twice.
///
/// # Errors
/// The errors of [`transport`].
pub fn batch_transport(section: &Section, server: &Server) -> Result<SharedTransport, ConfigError> {
    limited(section, server, Some(MAX_RESULTS))
}

/// Returns the transport of a section, that of a batch API with the maximum size of its responses in bytes.
fn limited(
    section: &Section,
    server: &Server,
    max_bytes: Option<usize>,
) -> Result<SharedTransport, ConfigError> {
    if let Some(path) = &section.common.cassette {
        let path = section.path(path);
        let failed = |reason: String| section.error(format!("the cassette {}: {reason}", path.display()));
        let text = std::fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
        let player = Player::new(Cassette::from_json(&text).map_err(failed)?);
        return Ok(Redacted::over(Arc::new(player), &section.redaction, true));
    }
    trust::check(section, server)?;
    check_credentials(section)?;
    check_headers(section, server)?;
    let mut network = network(section, server).map_err(|error| {
        let lacks_key = matches!(error, formwork_http::ConfigError::NoKey { .. });
        ConfigError { lacks_key, ..section.error(error.to_string()) }
    })?;
    if let Some(max_bytes) = max_bytes {
        network = network.with_max_body_bytes(max_bytes).without_resending();
    }
    if let Some(path) = &section.common.ca_file {
        let path = section.path(path);
        let failed = |reason: String| section.error(format!("`ca_file` {}: {reason}", path.display()));
        let pem = std::fs::read(&path).map_err(|error| failed(error.to_string()))?;
        network = network.with_root_certificate(&pem).map_err(|error| failed(error.to_string()))?;
    }
    if let Some(chain) = &section.common.client_cert_file {
        let read = |path: &PathBuf| {
            let path = section.path(path);
            std::fs::read(&path).map_err(|error| section.error(format!("{}: {error}", path.display())))
        };
        let key = section.common.client_key_file.as_ref().unwrap_or(chain);
        let identified = network.with_client_certificate(&read(chain)?, &read(key)?);
        network = identified.map_err(|error| section.error(format!("`client_cert_file`: {error}")))?;
    }
    let network = Redacted::over(Arc::new(network), &section.redaction, false);
    Ok(match &section.common.record {
        Some(path) => {
            let failed = |reason: String| section.error(format!("the cassette {}: {reason}", path.display()));
            Arc::new(Tape::new(network, section.below(path)?).map_err(failed)?)
        }
        None => network,
    })
}

/// Returns an error for two sources of credentials, and for those that this build does not have.
fn check_credentials(section: &Section) -> Result<(), ConfigError> {
    let Common { api_key_command, api_key_file, credentials, client_cert_file, client_key_file, .. } =
        &section.common;
    let set = [
        ("api_key_command", api_key_command.is_some()),
        ("api_key_file", api_key_file.is_some()),
        ("credentials", credentials.is_some()),
    ];
    let set: Vec<&str> = set.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| *name).collect();
    if let [one, other, ..] = set[..] {
        return Err(section.error(format!("`{one}` and `{other}` exclude each other: remove one of them")));
    }
    if client_key_file.is_some() && client_cert_file.is_none() {
        return Err(section.error("`client_key_file` needs `client_cert_file`"));
    }
    let (name, is_here) = match credentials {
        Some(CloudCredentials::Aws) => ("aws", cfg!(feature = "aws")),
        Some(CloudCredentials::Google) => ("google", cfg!(feature = "google")),
        None => return Ok(()),
    };
    match is_here {
        true => Ok(()),
        false => Err(section.error(format!(
            "this build has no `credentials = \"{name}\"`: build it with `--features {name}`, or let `api_key_command` print a token"
        ))),
    }
}

/// Returns an error for a header whose variable is not set, and for one that would replace another one: that of the key, or one of
/// the same name.
fn check_headers(section: &Section, server: &Server) -> Result<(), ConfigError> {
    let common = &section.common;
    let sends_key = server.api_key_env.as_deref().is_some_and(|name| !name.is_empty())
        || common.api_key_command.is_some()
        || common.api_key_file.is_some()
        || common.credentials.is_some();
    let key_header = match (common.credentials, &common.api_key_header) {
        (Some(_), _) => "authorization",
        (None, Some(name)) => name,
        (None, None) => server.auth.header,
    };
    let is_same = |one: &str, other: &str| one.eq_ignore_ascii_case(other);
    let names = server.headers.keys().chain(common.secret_headers.keys());
    if let Some(name) = names.clone().find(|name| sends_key && is_same(name, key_header)) {
        return Err(section.error(format!(
            "the header `{name}` would replace that of the API key: remove it, or set `api_key_env = \"\"` to send no key"
        )));
    }
    let names: Vec<&String> = names.collect();
    let repeated = |(at, name): &(usize, &&String)| names[..*at].iter().any(|other| is_same(other, name));
    if let Some((_, name)) = names.iter().enumerate().find(repeated) {
        return Err(section.error(format!("the header `{name}` is set twice: remove one of them")));
    }
    let is_missing = |(_, variable): &(&String, &String)| {
        std::env::var_os(variable).is_none() && !formwork_core::looks_like_key(variable)
    };
    match common.secret_headers.iter().find(is_missing) {
        Some((name, variable)) => {
            let message = format!(
                "the environment variable `{variable}` is not set: it has to hold the value of the header `{name}`"
            );
            Err(ConfigError { lacks_key: true, ..section.error(message) })
        }
        None => Ok(()),
    }
}

/// Returns the transport with the credentials of a cloud.
#[cfg_attr(not(feature = "aws"), expect(unused_variables, reason = "the server is of interest to AWS alone"))]
fn authorized(transport: HttpTransport, credentials: CloudCredentials, server: &Server) -> HttpTransport {
    match credentials {
        #[cfg(feature = "aws")]
        CloudCredentials::Aws => {
            let (region, profile) =
                (server.region.as_deref().unwrap_or("us-east-1"), server.profile.as_deref());
            let credentials = formwork_http::AwsCredentials::new("bedrock", region, profile, &transport);
            transport.with_credentials(credentials)
        }
        #[cfg(feature = "google")]
        CloudCredentials::Google => transport.with_credentials(formwork_http::GoogleCredentials::new()),
        // `check_credentials` refused them.
        #[cfg(not(all(feature = "aws", feature = "google")))]
        _ => transport,
    }
}

fn network(section: &Section, server: &Server) -> Result<HttpTransport, formwork_http::ConfigError> {
    let mut transport = HttpTransport::new(&server.base_url)?;
    let Common {
        connect_timeout_seconds,
        first_timeout_seconds,
        idle_timeout_seconds,
        timeout_seconds,
        api_key_command,
        api_key_file,
        api_key_header,
        credentials,
        api_key_lifetime_seconds,
        secret_headers,
        proxy,
        ..
    } = &section.common;
    let limit = |seconds: &Option<f64>| seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let source = match (api_key_command, api_key_file) {
        (Some(command), _) => Some(KeySource::command(command.iter().cloned())?),
        (None, Some(path)) => Some(KeySource::file(section.path(path))),
        (None, None) => None,
    };
    let own_header = api_key_header.as_deref().filter(|name| !name.eq_ignore_ascii_case(Auth::BEARER.header));
    let auth = if api_key_header.is_some() { Auth::BEARER } else { server.auth };
    if let Some(source) = source {
        let source = match own_header {
            Some(name) => source.with_header_name(name)?,
            None => source.with_header(auth)?,
        };
        transport = transport.with_credentials(match limit(api_key_lifetime_seconds) {
            Some(lifetime) => source.with_lifetime(lifetime),
            None => source,
        });
    } else if credentials.is_none()
        && let Some(variable) = server.api_key_env.as_deref().filter(|variable| !variable.is_empty())
    {
        let key = Key::from_env(variable)?;
        transport = match own_header {
            Some(name) => transport.with_key_header(name, key)?,
            None => transport.with_key(auth, key)?,
        };
    }
    for (name, value) in &server.headers {
        transport = transport.with_header(name, value)?;
    }
    for (name, variable) in secret_headers {
        transport = transport.with_secret_header(name, Key::from_env(variable)?)?;
    }
    if let Some(proxy) = proxy {
        transport = transport.with_proxy(proxy)?;
    }
    // They are requested through the same proxy.
    if let Some(credentials) = credentials {
        transport = authorized(transport, *credentials, server);
    }
    if let Some(limit) = limit(connect_timeout_seconds) {
        transport = transport.with_connect_timeout(limit);
    }
    // The transport's own default limits would end a call before longer limits of the configuration.
    if let Some(limit) = limit(&first_timeout_seconds.or(*timeout_seconds)) {
        transport = transport.with_first_byte_timeout(limit);
    }
    if let Some(limit) = limit(&idle_timeout_seconds.or(*timeout_seconds)) {
        transport = transport.with_idle_timeout(limit);
    }
    Ok(transport)
}
