use std::sync::Arc;
use std::time::Duration;

use formwork_wire::Auth;
use http::{HeaderMap, HeaderValue};
use reqwest::Proxy;
use rustls::pki_types::CertificateDer;

use crate::KeyCommand;
use crate::base::Base;
use crate::secrets::Secrets;

/// The settings of a transport.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) base: Base,
    /// The headers that only this transport knows, the key's among them.
    pub(crate) headers: HeaderMap<HeaderValue>,
    pub(crate) secrets: Secrets,
    /// The command whose key is sent, and how.
    pub(crate) key_command: Option<(Auth, Arc<KeyCommand>)>,
    pub(crate) connect: Duration,
    /// `None`: as long as the call may take.
    pub(crate) first_byte: Option<Duration>,
    /// `None`: as long as the call may take.
    pub(crate) idle: Option<Duration>,
    /// In bytes, unpacked.
    pub(crate) most: usize,
    pub(crate) proxy: Option<Proxy>,
    pub(crate) roots: Vec<CertificateDer<'static>>,
}

/// How long a server may be silent in a call without a limit of its own. A local server may load a model before it
/// answers; some send the head at once and read the prompt after it.
const SILENCE: Duration = Duration::from_secs(300);

impl Settings {
    /// How long a call waits for the head of its response. A limit that was set counts, else the time that the call has
    /// left: whoever allows a call an hour does not expect it to end after five minutes.
    pub(crate) fn first_byte(&self, left: Option<Duration>) -> Duration {
        self.first_byte.or(left).unwrap_or(SILENCE)
    }

    /// How long a call waits between two pieces of a body, by the same rule.
    pub(crate) fn idle(&self, left: Option<Duration>) -> Duration {
        self.idle.or(left).unwrap_or(SILENCE)
    }

    pub(crate) fn new(base: Base) -> Self {
        Self {
            base,
            headers: HeaderMap::new(),
            secrets: Secrets::default(),
            key_command: None,
            connect: Duration::from_secs(10),
            first_byte: None,
            idle: None,
            most: 64 * 1024 * 1024,
            proxy: None,
            roots: Vec::new(),
        }
    }
}
