use std::fmt;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use formwork_core::{Fault, FaultKind};
use tokio::process::Command;
use tokio::time::{Instant, timeout};

use crate::secrets::Secrets;
use crate::{ConfigError, Key};

/// A command that prints an API key: `["vault", "kv", "get", "-field=key", "secret/openai"]`.
///
/// The command is run without a shell when the first request needs the key, again when the key is older than its lifetime, and
/// once more when a server answers a request with 401 (Unauthorized). It has 30 seconds, reads nothing from standard input,
/// and prints the key alone; one line break at the end is allowed.
///
/// ```
/// use std::time::Duration;
///
/// use formwork_http::KeyCommand;
///
/// let command = KeyCommand::new(["gcloud", "auth", "print-access-token"])?.with_lifetime(Duration::from_secs(1800));
/// assert_eq!(format!("{command:?}"), "KeyCommand(gcloud)");
/// # Ok::<(), formwork_http::ConfigError>(())
/// ```
pub struct KeyCommand {
    program: String,
    arguments: Vec<String>,
    lifetime: Duration,
    current: tokio::sync::Mutex<Option<(Key, Instant)>>,
    /// Every key that was ever sent: servers quote keys in messages.
    printed: Mutex<Secrets>,
}

/// The time that the command has.
const LIMIT: Duration = Duration::from_secs(30);

impl KeyCommand {
    /// Returns the command of this program and its arguments.
    ///
    /// # Errors
    /// [`ConfigError::NoCommand`], if there is no program.
    pub fn new<S: Into<String>>(command: impl IntoIterator<Item = S>) -> Result<Self, ConfigError> {
        let mut command = command.into_iter().map(Into::into);
        let program =
            command.next().filter(|program: &String| !program.is_empty()).ok_or(ConfigError::NoCommand)?;
        Ok(Self {
            program,
            arguments: command.collect(),
            lifetime: Duration::from_secs(300),
            current: tokio::sync::Mutex::default(),
            printed: Mutex::default(),
        })
    }

    /// Sets how long a key is used before the command is run again (default: 5 minutes).
    #[must_use]
    pub const fn with_lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// Returns the key, and runs the command where there is none or it is too old. `refused` is a key that a server did not
    /// take; only one of several requests that were refused with the same key runs the command again.
    pub(crate) async fn key(&self, refused: Option<&Key>) -> Result<Key, Fault> {
        let mut current = self.current.lock().await;
        if let Some((key, since)) = &*current
            && since.elapsed() < self.lifetime
            && refused.is_none_or(|refused| refused.expose() != key.expose())
        {
            return Ok(key.clone());
        }
        let key = self.run().await.map_err(|reason| {
            let message = format!("the command `{}` gave no API key: {reason}", self.program);
            Fault::new(FaultKind::Auth, message)
        })?;
        self.printed.lock().unwrap_or_else(PoisonError::into_inner).add(key.expose());
        *current = Some((key.clone(), Instant::now()));
        Ok(key)
    }

    async fn run(&self) -> Result<Key, String> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::null()).kill_on_drop(true);
        let output = timeout(LIMIT, command.output()).await;
        let output = output.map_err(|_| format!("it did not end within {} s", LIMIT.as_secs()))?;
        let output = output.map_err(|error| format!("it could not be started: {error}"))?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            let stderr = stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
            let stderr: String = stderr.trim().chars().take(200).collect();
            return Err(format!(
                "it ended with {}{}{stderr}",
                output.status,
                if stderr.is_empty() { "" } else { ": " }
            ));
        }
        let printed = String::from_utf8(output.stdout).map_err(|_| "it did not print text".to_owned())?;
        let printed = printed.strip_suffix('\n').map_or(printed.as_str(), |text| text.trim_end_matches('\r'));
        Key::new("what it printed", printed).map_err(|error| error.to_string())
    }

    pub(crate) fn redact(&self, text: &str) -> String {
        self.printed.lock().unwrap_or_else(PoisonError::into_inner).redact(text)
    }
}

impl fmt::Debug for KeyCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyCommand({})", self.program)
    }
}
