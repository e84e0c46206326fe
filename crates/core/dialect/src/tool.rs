use std::sync::Arc;

use formwork_core::{Capabilities, Enforcement, Lower, LowerRequest, Lowered, Refused};

use crate::{Dialects, Native};

/// Wraps a dialect, so that its schema is that of a tool which the model is forced to call; the arguments are the answer.
///
/// Some servers enforce schemas for tools only, and some models follow a tool more closely than a format. A provider without
/// forced tools (see [`Capabilities::enforcement`]) fails such a call as unsupported.
///
/// ```
/// use formwork_core::{Enforcement, Lower, LowerRequest};
/// use formwork_dialect::{Native, Tool};
/// use std::sync::Arc;
///
/// let tool = Tool::new(Arc::new(Native::OPENAI));
/// let lowered = tool.lower(&LowerRequest::new(&serde_json::json!({"type": "integer"})))?;
/// assert_eq!((tool.name(), lowered.enforcement), ("tool", Enforcement::Tool));
/// assert_eq!(lowered.schema.unwrap()["properties"]["value"]["type"], "integer");
/// # Ok::<(), formwork_core::Refused>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tool(Arc<dyn Lower>);

impl Tool {
    /// The name of the output mode.
    pub const NAME: &'static str = "tool";

    /// Wraps a dialect.
    pub const fn new(lower: Arc<dyn Lower>) -> Self {
        Self(lower)
    }

    /// Returns the tool mode of a provider: with its strictest dialect that has a schema, or with that of OpenAI. `None` if the
    /// provider forces no tools.
    ///
    /// ```
    /// use formwork_core::{Capabilities, Enforcement};
    /// use formwork_dialect::{Dialects, Tool};
    ///
    /// let dialects = Dialects::builtin();
    /// assert!(Tool::of(&Capabilities::new(Enforcement::Schema).with_dialect("gemini"), &dialects).is_some());
    /// assert!(Tool::of(&Capabilities::new(Enforcement::JsonObject), &dialects).is_none());
    /// ```
    pub fn of(capabilities: &Capabilities, dialects: &Dialects) -> Option<Self> {
        if capabilities.enforcement < Enforcement::Tool {
            return None;
        }
        let mut known = capabilities.dialects.iter().filter_map(|name| dialects.get(name).ok());
        let native = known.find(|dialect| dialect.enforcement() == Enforcement::Schema);
        Some(native.map_or_else(|| Self::new(Arc::new(Native::OPENAI)), |dialect| Self::new(dialect)))
    }
}

impl Lower for Tool {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn enforcement(&self) -> Enforcement {
        Enforcement::Tool
    }

    /// Lowers a schema by the inner dialect. A root that is no object is wrapped, because the arguments of a tool are an object.
    fn lower(&self, request: &LowerRequest<'_>) -> Result<Lowered, Refused> {
        let mut lowered = self.0.lower(request)?;
        if lowered.schema.as_ref().is_some_and(|schema| schema["type"] != "object") {
            lowered = Native::OPENAI.lower(request)?;
        }
        lowered.enforcement = Enforcement::Tool;
        Ok(lowered)
    }
}
