use formwork_core::{
    Enforcement, Lower, LowerRequest, Lowered, Refused, SchemaText, Tighten, spaced, without_marks,
};
use serde_json::Value;

use crate::Dialect;
use crate::expand::{Expanded, expand};
use crate::outline::{MAX_OUTLINE, outline};
use crate::tighten::close;

/// The dialect of models without enforcement: the schema is only in the prompt.
///
/// The prompt contains JSON Schema with spaces (small models copy the formatting, and answer better with `", "`), or an
/// outline.
///
/// ```
/// use formwork_core::{Tighten, Lower, LowerRequest, SchemaText};
/// use formwork_dialect::Prompt;
///
/// let schema = serde_json::json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]});
/// let lowered = Prompt::outline().lower(&LowerRequest::new(&schema))?;
/// assert_eq!(lowered.prompt_schema, Some(SchemaText::Outline(r#"{"age": integer}"#.into())));
/// # Ok::<(), formwork_core::Refused>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Prompt {
    outline: bool,
}

impl Prompt {
    /// Creates the dialect with JSON Schema in the prompt.
    pub const fn new() -> Self {
        Self { outline: false }
    }

    /// Creates the dialect with an outline in the prompt, which is shorter, and easier for small models.
    pub const fn outline() -> Self {
        Self { outline: true }
    }
}

impl Dialect for Prompt {
    fn about(&self) -> &str {
        if self.outline {
            "the same, as an outline"
        } else {
            "servers that enforce nothing; the prompt contains the schema"
        }
    }
}

impl Lower for Prompt {
    fn name(&self) -> &str {
        if self.outline { "prompt-outline" } else { "prompt" }
    }

    fn enforcement(&self) -> Enforcement {
        Enforcement::None
    }

    fn lower(&self, request: &LowerRequest<'_>) -> Result<Lowered, Refused> {
        let text = if self.outline {
            let Expanded { mut forms, mut losses } = expand(request.schema, self.name())?;
            close(&mut forms, &mut losses);
            SchemaText::Outline(outline(&forms, forms.root, MAX_OUTLINE, request.tighten == Tighten::Bounded))
        } else {
            SchemaText::JsonSchema(spaced(&without_identity(without_marks(request.schema).into_owned())))
        };
        Ok(Lowered::described(text))
    }
}

/// Returns the schema without keywords that identify it and do not describe answers.
fn without_identity(mut schema: Value) -> Value {
    if let Value::Object(keywords) = &mut schema {
        keywords.retain(|keyword, _| !matches!(keyword.as_str(), "$schema" | "$id" | "$comment"));
    }
    schema
}
