//! Turns any provider into one that only prompts: the schema is written into the prompt and not enforced.
//!
//! Use it for models whose native mode is worse: it forbids right answers, makes the model reason less, or the server
//! ignores it. Answers are validated as usual.
//!
//! ```
//! use std::sync::Arc;
//!
//! use formwork_core::{Enforcement, Provider};
//! use formwork_prompt::Prompt;
//! use formwork_testkit::Scripted;
//!
//! let native = Arc::new(Scripted::new(["{}"]));
//! assert_eq!(native.capabilities().enforcement, Enforcement::Schema);
//! let told = Prompt::new(native);
//! assert_eq!(told.capabilities().enforcement, Enforcement::None);
//! assert_eq!(told.capabilities().dialects, ["prompt"]);
//! ```
//!
//! [`PromptLayer`] is the same as a [`Layer`].

use std::sync::Arc;

use async_trait::async_trait;
use formwork_core::{
    Answer, Call, Capabilities, Enforcement, Fault, FaultKind, Layer, Lowered, Provider, SharedProvider,
};

/// The form of the schema in the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    JsonSchema,
    Outline,
}

impl Form {
    /// Returns the name of the form's dialect in `formwork-dialect`.
    const fn dialect(self) -> &'static str {
        match self {
            Self::JsonSchema => "prompt",
            Self::Outline => "prompt-outline",
        }
    }

    /// Returns the capabilities without enforcement.
    fn only(self, inner: &Capabilities) -> Capabilities {
        let mut capabilities = inner.clone();
        capabilities.enforcement = Enforcement::None;
        capabilities.dialects = vec![self.dialect().to_owned()];
        // Rules can only be enforced by constrained decoding.
        capabilities.rules = false;
        capabilities
    }
}

/// A provider whose schema is written into the prompt and not enforced.
///
/// Its name and all other capabilities are those of the wrapped provider.
///
/// ```
/// use std::sync::Arc;
/// use formwork_core::Provider;
/// use formwork_prompt::Prompt;
///
/// let outline = Prompt::outline(Arc::new(formwork_testkit::Scripted::new(["{}"])));
/// assert_eq!((outline.name(), outline.capabilities().dialects[0].as_str()), ("scripted", "prompt-outline"));
/// ```
#[derive(Debug, Clone)]
pub struct Prompt {
    inner: SharedProvider,
    form: Form,
    capabilities: Capabilities,
}

impl Prompt {
    /// Writes the schema as JSON Schema, with a space after each comma and colon.
    pub fn new(inner: SharedProvider) -> Self {
        Self::with_form(inner, Form::JsonSchema)
    }

    /// Writes the schema as an outline, `{"age": integer}`, which is shorter and easier for small models.
    pub fn outline(inner: SharedProvider) -> Self {
        Self::with_form(inner, Form::Outline)
    }

    fn with_form(inner: SharedProvider, form: Form) -> Self {
        let capabilities = form.only(inner.capabilities());
        Self { inner, form, capabilities }
    }
}

#[async_trait]
impl Provider for Prompt {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// Makes the call without schema enforcement.
    ///
    /// # Errors
    /// [`FaultKind::SchemaRefused`], if the schema is to be enforced and is not part of the prompt, so that the model would
    /// not receive it. A run then uses the next dialect.
    async fn call(&self, call: &Call) -> Result<Answer, Fault> {
        if call.enforcement() == Enforcement::None && call.rules.is_empty() {
            return self.inner.call(call).await;
        }
        if call.schema().is_some() && call.lowered.prompt_schema.is_none() {
            let dialect = self.form.dialect();
            let message = format!("`{}` enforces nothing, use the dialect `{dialect}`", self.name());
            return Err(Fault::new(FaultKind::SchemaRefused, message));
        }
        let mut lowered = Lowered::clone(&call.lowered);
        lowered.schema = None;
        lowered.enforcement = Enforcement::None;
        let mut described = call.clone();
        described.lowered = Arc::new(lowered);
        described.rules.clear();
        self.inner.call(&described).await
    }

    async fn probe(&self) -> Result<Capabilities, Fault> {
        Ok(self.form.only(&self.inner.probe().await?))
    }
}

/// Wraps providers in [`Prompt`].
///
/// ```
/// use std::sync::Arc;
/// use formwork_core::{Enforcement, Layer};
/// use formwork_prompt::PromptLayer;
///
/// let prompted = PromptLayer::new().wrap(Arc::new(formwork_testkit::Scripted::new(["{}"])));
/// assert_eq!(prompted.capabilities().enforcement, Enforcement::None);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct PromptLayer {
    form: Form,
}

impl PromptLayer {
    /// Writes the schema as JSON Schema.
    pub const fn new() -> Self {
        Self { form: Form::JsonSchema }
    }

    /// Writes the schema as an outline.
    pub const fn outline() -> Self {
        Self { form: Form::Outline }
    }
}

impl Default for PromptLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl Layer for PromptLayer {
    fn wrap(&self, inner: SharedProvider) -> SharedProvider {
        Arc::new(Prompt::with_form(inner, self.form))
    }
}
