use std::collections::BTreeMap;

use formwork_wire::Auth;

/// The address and the authentication of a server, for [`transport`](super::transport).
///
/// ```
/// use formwork::providers::Server;
/// use formwork::wire::Auth;
/// use std::collections::BTreeMap;
///
/// let headers = BTreeMap::from([("x-team".to_owned(), "docs".to_owned())]);
/// let server = Server::new("https://api.acme.example/v1", Auth::BEARER).with_key_env(Some("ACME_KEY")).with_headers(&headers);
/// assert_eq!(server.headers["x-team"], "docs");
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Server {
    /// The base of all request URLs, for example `https://api.example.org/v1`.
    pub base_url: String,
    /// The header with the API key.
    pub auth: Auth,
    /// The environment variable with the API key. An empty name counts as none.
    pub api_key_env: Option<String>,
    /// Headers of every request.
    pub headers: BTreeMap<String, String>,
    /// The vendor's own address, which every configuration file may send secrets to.
    pub own_address: Option<String>,
    /// The region in which AWS's credentials sign requests; `None` for `us-east-1`.
    pub region: Option<String>,
    /// The profile of AWS's credentials; `None` for that of the environment.
    pub profile: Option<String>,
}

impl Server {
    /// Creates a server without a key and without headers of its own.
    pub fn new(base_url: impl Into<String>, auth: Auth) -> Self {
        Self {
            base_url: base_url.into(),
            auth,
            api_key_env: None,
            headers: BTreeMap::new(),
            own_address: None,
            region: None,
            profile: None,
        }
    }

    /// Sets the environment variable with the API key (default: none, no key is sent).
    #[must_use]
    pub fn with_key_env(mut self, variable: Option<&str>) -> Self {
        self.api_key_env = variable.map(str::to_owned);
        self
    }

    /// Sets the vendor's own address, to which every configuration file may send secrets (default: none). A file that was found, and
    /// neither named nor trusted, sends no secret to another address that its setting `base_url`, or a setting with this address,
    /// chose; addresses on this machine are excepted.
    #[must_use]
    pub fn with_own_address(mut self, address: impl Into<String>) -> Self {
        self.own_address = Some(address.into());
        self
    }

    /// Sets the region in which AWS's credentials sign requests (default: `us-east-1`), and their profile (default: that of the
    /// environment).
    #[must_use]
    pub fn with_aws(self, region: impl Into<String>, profile: Option<String>) -> Self {
        Self { region: Some(region.into()), profile, ..self }
    }

    /// Sets the headers of every request (default: none).
    #[must_use]
    pub fn with_headers(mut self, headers: &BTreeMap<String, String>) -> Self {
        self.headers.clone_from(headers);
        self
    }
}
