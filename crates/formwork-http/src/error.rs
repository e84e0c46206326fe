/// An error in the configuration of a transport. No message holds a key or a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Not an address that requests can be sent to.
    #[error(
        "{shown} is no base URL: expected http:// or https:// and a host, without a user name, a password or a \
         #fragment, such as http://localhost:11434 or https://api.openai.com/v1"
    )]
    BaseUrl {
        /// The value that was given, in quotation marks, without what may hold a password.
        shown: String,
    },
    /// The variable that has to hold a key is not there.
    #[error("the environment variable `{variable}` is not set: it has to hold the API key")]
    NoKey {
        /// Its name.
        variable: String,
    },
    /// A key that cannot be one.
    #[error("the API key in {source_name} {problem}")]
    BadKey {
        /// Where it came from: ``the environment variable `OPENAI_API_KEY` ``.
        source_name: String,
        /// The reason.
        problem: &'static str,
    },
    /// Not a header (RFC 9110, section 5).
    #[error("the header {name:?} cannot be sent: {problem}")]
    Header {
        /// Its name.
        name: String,
        /// The reason.
        problem: &'static str,
    },
    /// Not a certificate.
    #[error("the root certificate cannot be used: {0}")]
    Certificate(String),
    /// A command for a key without a program.
    #[error(
        "the command for the API key is empty: it needs a program, such as [\"vault\", \"read\", \"key\"]"
    )]
    NoCommand,
    /// Not the address of a proxy.
    #[error("the proxy's address has to be http:// or https:// and a host")]
    Proxy,
}
