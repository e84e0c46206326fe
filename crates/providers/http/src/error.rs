/// An error in the configuration of a transport. No message contains a key or a password.
///
/// ```
/// use formwork_http::{ConfigError, HttpTransport};
///
/// let error = HttpTransport::new("localhost:11434").unwrap_err();
/// assert!(matches!(error, ConfigError::BaseUrl { .. }));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The base URL is invalid.
    #[error(
        "{value} is no base URL: expected http:// or https:// and a host, without a user name, a password or a \
         #fragment, such as http://localhost:11434 or https://api.openai.com/v1"
    )]
    BaseUrl {
        /// The value in quotation marks, without the parts that may contain a password.
        value: String,
    },
    /// The environment variable of the key is not set.
    #[error("the environment variable `{variable}` is not set: it has to hold the API key")]
    NoKey {
        /// Its name.
        variable: String,
    },
    /// A key stands where the name of its environment variable belongs. The key is not part of the error.
    #[error(
        "an API key stands where the name of an environment variable belongs (it is not shown here): put the key into a \
         variable, such as OPENAI_API_KEY, and write the name of the variable"
    )]
    KeyForName,
    /// The key is invalid.
    #[error("the API key in {source_name} {problem}")]
    BadKey {
        /// The source of the key: ``the environment variable `OPENAI_API_KEY` ``.
        source_name: String,
        /// The reason.
        problem: &'static str,
    },
    /// The header is invalid (RFC 9110, section 5).
    #[error("the header {name:?} cannot be sent: {problem}")]
    Header {
        /// Its name.
        name: String,
        /// The reason.
        problem: &'static str,
    },
    /// The root certificate is invalid.
    #[error("the root certificate cannot be used: {0}")]
    Certificate(String),
    /// The certificate of this client, or its key, is invalid.
    #[error("the client's certificate cannot be used: {0}")]
    ClientCertificate(String),
    /// The command for a key has no program.
    #[error(
        "the command for the API key is empty: it needs a program, such as [\"vault\", \"read\", \"key\"]"
    )]
    NoCommand,
    /// The address of the proxy is invalid.
    #[error("the proxy's address has to be http://, https://, socks5:// or socks5h:// and a host")]
    Proxy,
}

impl ConfigError {
    /// Returns the error of an environment variable that is not set: [`NoKey`](Self::NoKey), or
    /// [`KeyForName`](Self::KeyForName) if its name looks like a key.
    ///
    /// ```
    /// use formwork_http::ConfigError;
    ///
    /// assert_eq!(ConfigError::missing("sk-0123456789abcdef"), ConfigError::KeyForName);
    /// assert_eq!(ConfigError::missing("TEAM_KEY"), ConfigError::NoKey { variable: "TEAM_KEY".to_owned() });
    /// ```
    pub fn missing(variable: &str) -> Self {
        match formwork_core::looks_like_key(variable) {
            true => Self::KeyForName,
            false => Self::NoKey { variable: variable.to_owned() },
        }
    }
}
