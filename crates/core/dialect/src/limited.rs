use std::sync::Arc;

use formwork_core::{Enforcement, Lower, LowerRequest, Lowered, Refused};

use crate::limits::Size;
use crate::profile;
use crate::registry::Limits;

/// Wraps a dialect and refuses lowered schemas over the limits of a model, so that no call is spent on them.
///
/// ```
/// use formwork_core::{Lower, LowerRequest};
/// use formwork_dialect::registry::Limits;
/// use formwork_dialect::{Limited, Native};
/// use std::sync::Arc;
///
/// let mut limits = Limits::default();
/// limits.properties = Some(1);
/// let lower = Limited::wrap(Arc::new(Native::OPENAI), limits);
/// let two = serde_json::json!({"type": "object", "properties": {"a": {}, "b": {}}});
/// assert!(lower.lower(&LowerRequest::new(&two)).unwrap_err().to_string().contains("properties"));
/// ```
#[derive(Debug, Clone)]
pub struct Limited {
    inner: Arc<dyn Lower>,
    limits: profile::Limits,
}

impl Limited {
    /// Wraps a dialect; a dialect that sends no schema is returned as it is.
    pub fn wrap(inner: Arc<dyn Lower>, limits: Limits) -> Arc<dyn Lower> {
        if inner.enforcement() < Enforcement::Tool {
            return inner;
        }
        let most = |limit: Option<u32>| limit.map_or(usize::MAX, |limit| limit as usize);
        let limits = profile::Limits {
            properties: most(limits.properties),
            depth: most(limits.depth),
            values: most(limits.enum_values),
            characters: most(limits.characters),
            optional: most(limits.optional),
            unions: most(limits.unions),
            ..profile::Limits::NONE
        };
        Arc::new(Self { inner, limits })
    }
}

impl Lower for Limited {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn enforcement(&self) -> Enforcement {
        self.inner.enforcement()
    }

    fn lower(&self, request: &LowerRequest<'_>) -> Result<Lowered, Refused> {
        let lowered = self.inner.lower(request)?;
        match lowered.schema.as_ref().and_then(|schema| Size::of(schema).over(&self.limits)) {
            None => Ok(lowered),
            Some((what, size, most)) => Err(Refused::new(
                self.name(),
                format!(
                    "it comes to {size} {what}, and the model takes {most}: split it, or ask for its parts one by one"
                ),
            )),
        }
    }
}
