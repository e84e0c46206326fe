use std::sync::Arc;

use formwork_core::{Enforcement, Lower, LowerRequest, Lowered, Refused};

/// Another dialect that shows the model nothing: for applications whose prompt says in words of its own what the answer
/// looks like.
///
/// The enforcement, the way back of an answer and the lowering report stay. Where the dialect has the model answer in another
/// shape, as with a root that is no object, its own words are shown all the same, because the prompt does not know them.
///
/// ```
/// use formwork_core::{Enforcement, Lower, LowerRequest};
/// use formwork_dialect::{JsonObject, Silent};
/// use std::sync::Arc;
///
/// let silent = Silent::new(Arc::new(JsonObject));
/// let object = silent.lower(&LowerRequest::new(&serde_json::json!({"type": "object"})))?;
/// assert_eq!((object.shown, object.enforcement), (None, Enforcement::JsonObject));
/// let list = silent.lower(&LowerRequest::new(&serde_json::json!({"type": "array"})))?;
/// assert!(list.shown.is_some());
/// # Ok::<(), formwork_core::Refused>(())
/// ```
#[derive(Debug, Clone)]
pub struct Silent(Arc<dyn Lower>);

impl Silent {
    /// This dialect without its words.
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
            lowered.shown = None;
        }
        Ok(lowered)
    }
}
