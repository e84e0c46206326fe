use serde_json::Value;

/// The input of a tool call, which arrives in pieces of JSON.
///
/// ```
/// use formwork_wire::ToolInput;
///
/// let mut document = ToolInput::default();
/// assert_eq!(document.push(r#"{"age""#), r#"{"age""#);
/// let mut held = ToolInput::default();
/// held.hold(r#""{\"age\": "#);
/// held.hold(r#"34}""#);
/// assert_eq!(held.rest(), r#"{"age": 34}"#);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolInput {
    initial: String,
    /// The text held back so far: white space, or the beginning of a JSON string.
    held: String,
    /// Whether text was passed on already.
    is_passed: bool,
}

impl ToolInput {
    /// Returns an input without pieces. `initial` is what the call began with, which counts if no piece follows: Anthropic sends an
    /// empty object, and compatible servers may send all of it.
    pub const fn new(initial: String) -> Self {
        Self { initial, held: String::new(), is_passed: false }
    }

    /// Adds a piece and returns the text that can be passed on. A JSON string is held back until it is complete, because some models
    /// write the document as text inside a string.
    pub fn push(&mut self, piece: &str) -> String {
        if self.is_passed {
            return piece.to_owned();
        }
        self.held.push_str(piece);
        if self.held.trim_start().is_empty() || self.held.trim_start().starts_with('"') {
            return String::new();
        }
        self.is_passed = true;
        std::mem::take(&mut self.held)
    }

    /// Adds a piece and holds it back.
    pub fn hold(&mut self, piece: &str) {
        self.held.push_str(piece);
    }

    /// Returns the text held back, at the end of the call.
    pub fn rest(self) -> String {
        match serde_json::from_str(&self.held) {
            _ if self.is_passed => String::new(),
            Ok(Value::String(text)) => text,
            _ if self.held.trim().is_empty() => self.initial,
            _ => self.held,
        }
    }
}
