//! Settings for which Ollama accepts more than one JSON type.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The time for which a model stays loaded after a call (Ollama's default: 5 minutes).
///
/// ```
/// use std::time::Duration;
/// use formwork_ollama::KeepAlive;
///
/// assert_eq!(KeepAlive::from(Duration::from_secs(90)), KeepAlive::Seconds(90));
/// assert_eq!(serde_json::to_string(&KeepAlive::from("30m"))?, r#""30m""#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum KeepAlive {
    /// The time in seconds. 0 unloads the model at once; with a negative number it stays loaded forever.
    Seconds(i64),
    /// The time as a Go duration: `5m`, `1h30m`.
    Duration(String),
}

impl From<i64> for KeepAlive {
    fn from(seconds: i64) -> Self {
        Self::Seconds(seconds)
    }
}

impl From<Duration> for KeepAlive {
    /// Converts a duration to whole seconds.
    fn from(duration: Duration) -> Self {
        Self::Seconds(i64::try_from(duration.as_secs()).unwrap_or(i64::MAX))
    }
}

impl From<&str> for KeepAlive {
    fn from(duration: &str) -> Self {
        Self::Duration(duration.to_owned())
    }
}

/// Whether and how much a model reasons before it answers (`think`).
///
/// ```
/// use formwork_ollama::Think;
///
/// assert_eq!(serde_json::to_string(&Think::from(false))?, "false");
/// assert_eq!(serde_json::from_str::<Think>(r#""low""#)?, Think::Level("low".to_owned()));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Think {
    /// On or off.
    Switch(bool),
    /// The effort, for models that support levels: `low`, `medium`, `high`.
    Level(String),
}

impl Think {
    pub(crate) const fn is_on(&self) -> bool {
        !matches!(self, Self::Switch(false))
    }
}

impl From<bool> for Think {
    fn from(thinks: bool) -> Self {
        Self::Switch(thinks)
    }
}

impl From<&str> for Think {
    fn from(level: &str) -> Self {
        Self::Level(level.to_owned())
    }
}
