use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The speaker of a [`Message`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions that govern the whole dialogue.
    System,
    /// The caller.
    User,
    /// The model.
    Assistant,
    /// The result of a tool that the model called.
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
    /// A tool that the model wants called.
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
        /// The identifier of the call it answers.
        id: String,
        /// The result as text.
        text: String,
    },
    /// The model's thoughts before it answered; not part of the answer.
    Reasoning {
        /// The text.
        text: String,
    },
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
    /// The speaker.
    pub role: Role,
    /// The parts of what is said, in order.
    pub parts: Vec<Part>,
}

impl Message {
    /// A message of one text.
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        Self { role, parts: vec![Part::Text { text: text.into() }] }
    }

    /// An instruction.
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(Role::System, text)
    }

    /// Something that the caller says.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, text)
    }

    /// Something that the model said.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, text)
    }

    /// Its text parts, joined.
    pub fn text(&self) -> String {
        self.texts().collect()
    }

    /// Its text parts.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        })
    }

    /// Adds text to the end of the message, in the same part if that is text.
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// Its name: `[A-Za-z0-9_-]{1,64}` is safe with every provider.
    pub name: String,
    /// The purpose of the tool, for the model.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
}
