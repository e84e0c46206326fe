use std::fmt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use formwork_core::{Fault, FaultKind};
use formwork_wire::Auth;
use http::header::{AUTHORIZATION, HeaderName};
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use tokio::process::Command;
use tokio::time::{Instant, timeout};

use crate::header::header;
use crate::secrets::{SentSecrets, sensitive};
use crate::{ConfigError, Credentials, Key};

/// The source of an API key that is renewed: a command that prints it, such as `["vault", "kv", "get", "-field=key",
/// "secret/openai"]`, or a file.
///
/// The command is run, without a shell, or the file is read when the first request needs the key, again when the key is older
/// than its lifetime, and once more when a server answers a request with 401 (Unauthorized). The command has 30 seconds and
/// reads nothing from standard input. Both contain the key alone; one line break at the end is allowed.
///
/// ```
/// use std::time::Duration;
///
/// use formwork_http::KeySource;
/// use formwork_wire::Auth;
///
/// let command = KeySource::command(["gcloud", "auth", "print-access-token"])?.with_lifetime(Duration::from_secs(1800));
/// assert_eq!(format!("{command:?}"), "KeySource(the command `gcloud`)");
/// let file = KeySource::file("/run/secrets/key").with_header(Auth { header: "x-api-key", prefix: "" })?;
/// assert_eq!(format!("{file:?}"), "KeySource(the file /run/secrets/key)");
/// # Ok::<(), formwork_http::ConfigError>(())
/// ```
pub struct KeySource {
    place: Place,
    header: HeaderName,
    prefix: &'static str,
    lifetime: Duration,
    current: tokio::sync::Mutex<Option<(Key, Instant)>>,
    known: SentSecrets,
}

enum Place {
    Command { program: String, arguments: Vec<String> },
    File(PathBuf),
}

/// The time that the command has.
const LIMIT: Duration = Duration::from_secs(30);

impl KeySource {
    /// Returns the command of this program and its arguments.
    ///
    /// # Errors
    /// [`ConfigError::NoCommand`], if there is no program.
    pub fn command<S: Into<String>>(command: impl IntoIterator<Item = S>) -> Result<Self, ConfigError> {
        let mut command = command.into_iter().map(Into::into);
        let program =
            command.next().filter(|program: &String| !program.is_empty()).ok_or(ConfigError::NoCommand)?;
        Ok(Self::of(Place::Command { program, arguments: command.collect() }))
    }

    /// Returns the file at this path. It is read when a request needs the key.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::of(Place::File(path.into()))
    }

    fn of(place: Place) -> Self {
        Self {
            place,
            header: AUTHORIZATION,
            prefix: Auth::BEARER.prefix,
            lifetime: Duration::from_secs(300),
            current: tokio::sync::Mutex::default(),
            known: SentSecrets::default(),
        }
    }

    /// Sets how long a key is used before the source is read again (default: 5 minutes).
    #[must_use]
    pub const fn with_lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// Sets the header that carries the key (default: `Authorization: Bearer KEY`).
    ///
    /// # Errors
    /// [`ConfigError::Header`], if `auth` names no header.
    pub fn with_header(self, auth: Auth) -> Result<Self, ConfigError> {
        Ok(Self { prefix: auth.prefix, ..self.with_header_name(auth.header)? })
    }

    /// Sets the name of the header that carries the key (default: `Authorization`), without a text before the key.
    ///
    /// # Errors
    /// [`ConfigError::Header`], if the name is invalid.
    pub fn with_header_name(self, name: &str) -> Result<Self, ConfigError> {
        Ok(Self { header: header(name, "")?.0, prefix: "", ..self })
    }

    /// Returns the key, and reads the source where there is none or it is too old. `refused` is the header of a request that a
    /// server did not take; only one of several requests that were refused with the same key reads the source again.
    async fn key(&self, refused: Option<&HeaderValue>) -> Result<HeaderValue, Fault> {
        let mut current = self.current.lock().await;
        if let Some((key, since)) = &*current
            && since.elapsed() < self.lifetime
        {
            let value = self.value(key)?;
            if refused != Some(&value) {
                return Ok(value);
            }
        }
        let key = self.read().await.map_err(|reason| {
            Fault::new(FaultKind::Auth, format!("{} gave no API key: {reason}", self.place))
        })?;
        self.known.add(key.expose());
        let value = self.value(&key);
        *current = Some((key, Instant::now()));
        value
    }

    fn value(&self, key: &Key) -> Result<HeaderValue, Fault> {
        sensitive(format!("{}{}", self.prefix, key.expose()), "API key")
    }

    async fn read(&self) -> Result<Key, String> {
        let bytes = match &self.place {
            Place::Command { program, arguments } => run(program, arguments).await?,
            Place::File(path) => std::fs::read(path).map_err(|error| error.to_string())?,
        };
        let text = String::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?;
        let text = text.strip_suffix('\n').map_or(text.as_str(), |text| text.trim_end_matches('\r'));
        Key::new("its output", text).map_err(|error| error.to_string())
    }
}

/// Returns the standard output of a command.
async fn run(program: &str, arguments: &[String]) -> Result<Vec<u8>, String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(LIMIT, command.output()).await;
    let output = output.map_err(|_| format!("it did not end within {} s", LIMIT.as_secs()))?;
    let output = output.map_err(|error| format!("it could not be started: {error}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let stderr = stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let stderr: String = stderr.trim().chars().take(200).collect();
    Err(format!("it ended with {}{}{stderr}", output.status, if stderr.is_empty() { "" } else { ": " }))
}

#[async_trait]
impl Credentials for KeySource {
    async fn authorize(
        &self,
        request: &mut Parts,
        _: &Bytes,
        refused: Option<&HeaderMap>,
    ) -> Result<(), Fault> {
        let key = self.key(refused.and_then(|headers| headers.get(&self.header))).await?;
        request.headers.insert(self.header.clone(), key);
        Ok(())
    }

    fn can_renew(&self) -> bool {
        true
    }

    fn redact(&self, text: &str) -> String {
        self.known.redact(text)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command { program, .. } => write!(f, "the command `{program}`"),
            Self::File(path) => write!(f, "the file {}", path.display()),
        }
    }
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeySource({})", self.place)
    }
}
