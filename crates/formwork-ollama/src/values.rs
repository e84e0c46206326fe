//! Settings that Ollama accepts in more than one type.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The time for which a model stays loaded after a call (Ollama's default: 5 minutes).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum KeepAlive {
    /// The time in seconds: 0 unloads the model at once, a negative number never.
    Seconds(i64),
    /// The time in Go's notation of durations: `5m`, `1h30m`.
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

/// Whether and how much a model reasons before it answers.
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
