//! Makes any provider prompt-only: the schema stands in the prompt, and nothing enforces it.
//!
//! For models whose native mode is worse than none: it forbids right answers, makes the model think less, or is ignored by
//! the server. Answers are judged all the same.
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
//! [`PromptLayer`] is the same as a [`Layer`]. To embed it alone see `examples/embed-prompt.rs`.

use std::sync::Arc;

use async_trait::async_trait;
use formwork_core::{
    Answer, Call, Capabilities, Enforcement, Fault, FaultKind, Layer, Lowered, Provider, SharedProvider,
};

/// How the schema is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    JsonSchema,
    Outline,
}

impl Form {
    /// The name of its dialect, as in `formwork-dialect`.
    const fn dialect(self) -> &'static str {
        match self {
            Self::JsonSchema => "prompt",
            Self::Outline => "prompt-outline",
        }
    }

    /// The same promises without those that are about enforcing.
    fn only(self, inner: &Capabilities) -> Capabilities {
        let mut capabilities = inner.clone();
        capabilities.enforcement = Enforcement::None;
        capabilities.dialects = vec![self.dialect().to_owned()];
        // Only constrained decoding can keep to them.
        capabilities.rules = false;
        capabilities
    }
}

/// A provider whose model is told the schema and held to nothing.
///
/// Its name and all other promises are those of the provider inside.
#[derive(Debug, Clone)]
pub struct Prompt {
    inner: SharedProvider,
    form: Form,
    capabilities: Capabilities,
}

impl Prompt {
    /// Shows JSON Schema, with a space after each comma and colon.
    pub fn new(inner: SharedProvider) -> Self {
        Self::with_form(inner, Form::JsonSchema)
    }

    /// Shows an outline, `{"age": integer}`, which is shorter and which small models follow better.
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

    /// Makes the call without what enforces the schema.
    ///
    /// # Errors
    /// [`FaultKind::SchemaRefused`], if the schema is to be enforced and stands nowhere in the prompt: the model would
    /// know nothing of it. A run takes the next dialect then.
    async fn call(&self, call: &Call) -> Result<Answer, Fault> {
        if call.enforcement() == Enforcement::None && call.rules.is_empty() {
            return self.inner.call(call).await;
        }
        if call.schema().is_some() && call.lowered.shown.is_none() {
            let dialect = self.form.dialect();
            let message = format!("`{}` enforces nothing, use the dialect `{dialect}`", self.name());
            return Err(Fault::new(FaultKind::SchemaRefused, message));
        }
        let mut lowered = Lowered::clone(&call.lowered);
        lowered.schema = None;
        lowered.enforcement = Enforcement::None;
        let mut told = call.clone();
        told.lowered = Arc::new(lowered);
        told.rules.clear();
        self.inner.call(&told).await
    }

    async fn probe(&self) -> Result<Capabilities, Fault> {
        Ok(self.form.only(&self.inner.probe().await?))
    }
}

/// Wraps providers in [`Prompt`].
#[derive(Debug, Clone, Copy)]
pub struct PromptLayer {
    form: Form,
}

impl PromptLayer {
    /// Shows JSON Schema.
    pub const fn new() -> Self {
        Self { form: Form::JsonSchema }
    }

    /// Shows an outline.
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
