use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use reqwest::Proxy;
use rustls::pki_types::CertificateDer;

use crate::base::Base;
use crate::secrets::Secrets;

/// What a transport was told.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) base: Base,
    /// Those that only this transport knows, the key's among them.
    pub(crate) headers: HeaderMap<HeaderValue>,
    pub(crate) secrets: Secrets,
    pub(crate) connect: Duration,
    pub(crate) first_byte: Duration,
    pub(crate) idle: Duration,
    /// In bytes, unpacked.
    pub(crate) most: usize,
    pub(crate) proxy: Option<Proxy>,
    pub(crate) roots: Vec<CertificateDer<'static>>,
}

impl Settings {
    pub(crate) fn new(base: Base) -> Self {
        Self {
            base,
            headers: HeaderMap::new(),
            secrets: Secrets::default(),
            connect: Duration::from_secs(10),
            // A local server may load a model first, and a whole answer may be written before its head is sent.
            first_byte: Duration::from_secs(300),
            // Some servers send the head at once, and read the prompt after it.
            idle: Duration::from_secs(300),
            most: 64 * 1024 * 1024,
            proxy: None,
            roots: Vec::new(),
        }
    }
}
