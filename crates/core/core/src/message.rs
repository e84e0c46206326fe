use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Original;

/// The author of a [`Message`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions that govern the whole dialogue.
    System,
    /// The caller.
    User,
    /// The model.
    Assistant,
    /// A tool that the model called.
    Tool,
}

/// One piece of a [`Message`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image {
        /// Its media type (RFC 2046), e.g. `image/png`.
        media_type: String,
        /// Its bytes in Base64 (RFC 4648, section 4).
        data: String,
    },
    /// A tool call that the model requests.
    ToolCall {
        /// The provider's identifier of this call.
        id: String,
        /// The tool's name.
        name: String,
        /// Its arguments.
        arguments: Value,
    },
    /// The result of a tool.
    ToolResult {
        /// The [identifier](Part::ToolCall) of the call.
        id: String,
        /// The result as text.
        text: String,
    },
    /// The model's reasoning before its answer; not part of the answer.
    Reasoning {
        /// The text.
        text: String,
    },
    /// The whole message in the form of the API that the model answered by. A provider with this API sends it in the place of
    /// the other parts; any other provider ignores it.
    Original(Original),
}

/// One turn of the dialogue with a model.
///
/// ```
/// use formwork_core::{Message, Role};
///
/// let message = Message::user("Maria, 34, moved to Lisbon.");
/// assert_eq!((message.role, message.text().as_str()), (Role::User, "Maria, 34, moved to Lisbon."));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The author.
    pub role: Role,
    /// The content, in order.
    pub parts: Vec<Part>,
}

impl Message {
    /// Creates a message with one text part.
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        Self { role, parts: vec![Part::Text { text: text.into() }] }
    }

    /// Creates a system message: instructions for the whole dialogue.
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(Role::System, text)
    }

    /// Creates a message of the caller.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, text)
    }

    /// Creates a message of the model, such as the answer in an example.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, text)
    }

    /// Returns the text parts, joined, as a copy.
    pub fn text(&self) -> String {
        self.joined().into_owned()
    }

    /// Returns the text parts, joined. The text is copied only if there are several.
    ///
    /// ```
    /// use std::borrow::Cow;
    ///
    /// let message = formwork_core::Message::user("Maria, 34, moved to Lisbon.");
    /// assert!(matches!(message.joined(), Cow::Borrowed("Maria, 34, moved to Lisbon.")));
    /// ```
    pub fn joined(&self) -> Cow<'_, str> {
        let mut texts = self.texts();
        let first = texts.next().unwrap_or_default();
        texts.fold(Cow::Borrowed(first), |text, more| text + more)
    }

    /// Returns the text parts.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        })
    }

    /// Appends text to the last part if that is text, and as a new part otherwise.
    pub(crate) fn push_text(&mut self, more: &str) {
        match self.parts.last_mut() {
            Some(Part::Text { text }) => text.push_str(more),
            _ => self.parts.push(Part::Text { text: more.to_owned() }),
        }
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Self::user(text)
    }
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Self::user(text)
    }
}

/// A tool that the model may call.
///
/// ```
/// use formwork_core::{Call, Enforcement, Lowered, Message, Tool};
///
/// let mut call = Call::new(vec![Message::user("Is it raining in Lisbon?")], Lowered::new(Enforcement::None, None));
/// call.tools.push(Tool {
///     name: "weather".to_owned(),
///     description: "Returns the current weather of a city.".to_owned(),
///     parameters: serde_json::json!({"type": "object", "properties": {"city": {"type": "string"}}}),
/// });
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// The name: every provider accepts `[A-Za-z0-9_-]{1,64}`.
    pub name: String,
    /// A description for the model: what the tool does and when to call it.
    pub description: String,
    /// The JSON Schema of the arguments.
    pub parameters: Value,
}
