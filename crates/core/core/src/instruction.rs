use crate::{Message, SchemaText};

/// The text that introduces the schema in a prompt. `{kind}` is replaced by `object`, `array` or `value`.
///
/// ```
/// use formwork_core::Instruction;
///
/// let german = Instruction {
///     json_schema: "Antworte nur mit JSON nach diesem JSON Schema:\n".to_owned(),
///     ..Instruction::default()
/// };
/// assert!(german.outline.contains("{kind}"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// The text before a JSON Schema.
    pub json_schema: String,
    /// The text before an outline.
    pub outline: String,
}

impl Default for Instruction {
    fn default() -> Self {
        let answer = "You answer with one JSON {kind} only, no prose, no markdown.";
        Self {
            json_schema: format!("{answer} It must match this JSON Schema exactly:\n"),
            outline: format!("{answer} It must have this shape:\n"),
        }
    }
}

impl Instruction {
    /// Returns the system message that describes a schema; `kind` is what it calls the values.
    pub(crate) fn message(&self, schema: &SchemaText, kind: &str) -> Message {
        let (before, text) = match schema {
            SchemaText::JsonSchema(text) => (&self.json_schema, text),
            SchemaText::Outline(text) => (&self.outline, text),
        };
        Message::system(before.replace("{kind}", kind) + text)
    }
}
