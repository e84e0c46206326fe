//! Settings of the API.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The way in which the API is asked to enforce a schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// By the format of the output (`output_config.format`).
    #[default]
    Schema,
    /// By a strict tool that the model is forced to call; the input of the call is the answer.
    Tool,
}

/// The thinking of a model before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "snake_case",
    expecting = "thinking is `off`, `adaptive`, or `{ budget_tokens = 2048 }` with another number"
)]
pub enum Thinking {
    /// It does not (`"disabled"`). Models that always think refuse this.
    Off,
    /// The model decides how much (`"adaptive"`). Models before Claude Opus 4.6 refuse this.
    Adaptive,
    /// It thinks with at most this many tokens, at least 1024 and fewer than the limit of the answer (`"enabled"`). Newer
    /// models refuse this.
    #[serde(untagged)]
    Budget {
        /// The number of tokens.
        budget_tokens: u32,
    },
}

impl Thinking {
    /// Returns whether the model is asked to think. The API refuses a temperature and forced tools then.
    pub const fn is_on(self) -> bool {
        !matches!(self, Self::Off)
    }
}
