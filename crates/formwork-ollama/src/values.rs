//! Settings that Ollama takes in more than one type.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long a model stays loaded after a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum KeepAlive {
    /// In seconds: 0 unloads it at once, a negative number never does.
    Seconds(i64),
    /// As Go writes durations: `5m`, `1h30m`.
    Duration(String),
}

impl From<i64> for KeepAlive {
    fn from(seconds: i64) -> Self {
        Self::Seconds(seconds)
    }
}

impl From<Duration> for KeepAlive {
    /// In whole seconds.
    fn from(duration: Duration) -> Self {
        Self::Seconds(i64::try_from(duration.as_secs()).unwrap_or(i64::MAX))
    }
}

impl From<&str> for KeepAlive {
    fn from(duration: &str) -> Self {
        Self::Duration(duration.to_owned())
    }
}

/// Whether a model that can think does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Think {
    /// It does or does not.
    Switch(bool),
    /// How much, for models that take a level: `low`, `medium`, `high`.
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
