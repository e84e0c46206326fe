//! Values of configuration fields.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The API feature that enforces a schema.
///
/// ```
/// use formwork_anthropic::{Anthropic, Mode};
/// use formwork_core::{Call, Enforcement, Lowered, Message};
/// use formwork_wire::Wire;
///
/// let schema = serde_json::json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
/// let call = Call::new(vec![Message::user("Hi.")], Lowered::new(Enforcement::Schema, schema));
/// let sent = |mode| Anthropic::new("claude-sonnet-4-6").with_mode(mode).encode(&call).map(|request| request.into_body());
/// assert!(sent(Mode::Schema)?.windows(13).any(|text| text == b"output_config"));
/// assert!(sent(Mode::Tool)?.windows(11).any(|text| text == b"tool_choice"));
/// # Ok::<(), formwork_core::Fault>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The output format (`output_config.format`).
    #[default]
    Schema,
    /// A strict tool that the model is forced to call. The input of the call is the document.
    Tool,
}

/// Whether and how much a model thinks before it answers (the `thinking` parameter of the API).
///
/// ```
/// use formwork_anthropic::Thinking;
///
/// let budget: Thinking = serde_json::from_str(r#"{"budget_tokens": 2048}"#)?;
/// assert_eq!(budget, Thinking::Budget { budget_tokens: 2048 });
/// assert_eq!(serde_json::to_string(&Thinking::Adaptive)?, r#""adaptive""#);
/// assert!(budget.is_on() && !Thinking::Off.is_on());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "snake_case",
    expecting = "thinking is `off`, `adaptive`, or `{ budget_tokens = 2048 }` with another number"
)]
pub enum Thinking {
    /// No thinking (`"disabled"`). Models that always think refuse this value.
    Off,
    /// The model decides how much it thinks (`"adaptive"`). Models before Claude Opus 4.6 refuse this value.
    Adaptive,
    /// Thinking with a maximum number of tokens (`"enabled"`). Newer models refuse this value.
    #[serde(untagged)]
    Budget {
        /// The maximum number of thinking tokens: at least 1024, and less than the `max_tokens` of the request.
        budget_tokens: u32,
    },
}

impl Thinking {
    /// Returns whether thinking is on. The API refuses a temperature and forced tools while it is.
    pub const fn is_on(self) -> bool {
        !matches!(self, Self::Off)
    }
}
