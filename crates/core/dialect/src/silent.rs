use std::sync::Arc;

use formwork_core::{Enforcement, Lower, LowerRequest, Lowered, Refused};

/// Wraps a dialect and removes its text for the prompt, for applications whose own prompt describes the answer.
///
/// The enforcement, the lifting and the lowering report stay the same. If lowering changes the shape of the answer, for
/// example by wrapping the root, the text stays in the prompt, because the application's prompt does not describe that
/// shape.
///
/// ```
/// use formwork_core::{Enforcement, Lower, LowerRequest};
/// use formwork_dialect::{JsonObject, Silent};
/// use std::sync::Arc;
///
/// let silent = Silent::new(Arc::new(JsonObject));
/// let object = silent.lower(&LowerRequest::new(&serde_json::json!({"type": "object"})))?;
/// assert_eq!((object.prompt_schema, object.enforcement), (None, Enforcement::JsonObject));
/// let list = silent.lower(&LowerRequest::new(&serde_json::json!({"type": "array"})))?;
/// assert!(list.prompt_schema.is_some());
/// # Ok::<(), formwork_core::Refused>(())
/// ```
#[derive(Debug, Clone)]
pub struct Silent(Arc<dyn Lower>);

impl Silent {
    /// Wraps a dialect.
    pub const fn new(lower: Arc<dyn Lower>) -> Self {
        Self(lower)
    }
}

impl Lower for Silent {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn enforcement(&self) -> Enforcement {
        self.0.enforcement()
    }

    fn lower(&self, request: &LowerRequest<'_>) -> Result<Lowered, Refused> {
        let mut lowered = self.0.lower(request)?;
        if lowered.lift.is_empty() {
            lowered.prompt_schema = None;
        }
        Ok(lowered)
    }
}
