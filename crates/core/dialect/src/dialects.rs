use std::sync::{Arc, LazyLock};

use formwork_core::{Capabilities, LintFinding, Lower, advised};
use serde_json::Value;

use crate::{Dialect, JsonObject, Native, Prompt, Reaction};

/// The table of dialects: resolves the names in `modes = [...]`, in the model registry and in `--dialect`.
///
/// A dialect is [data](crate::profile) for [`Native`], or a type of your own:
///
/// ```
/// use std::sync::Arc;
///
/// use formwork_core::{Capabilities, Enforcement, Lower, LowerRequest, Lowered, Refused};
/// use formwork_dialect::{Dialect, Dialects};
///
/// /// A server that accepts any JSON Schema unchanged.
/// #[derive(Debug)]
/// struct Verbatim;
///
/// impl Lower for Verbatim {
///     fn name(&self) -> &str {
///         "verbatim"
///     }
///     fn enforcement(&self) -> Enforcement {
///         Enforcement::Schema
///     }
///     fn lower(&self, request: &LowerRequest<'_>) -> Result<Lowered, Refused> {
///         let schema = Some(request.schema.clone());
///         Ok(Lowered::new(Enforcement::Schema, schema))
///     }
/// }
///
/// impl Dialect for Verbatim {
///     fn about(&self) -> &str {
///         "servers that take any schema"
///     }
/// }
///
/// let dialects = Dialects::builtin().with(Arc::new(Verbatim));
/// let promised = Capabilities::new(Enforcement::Schema).with_dialect("verbatim");
/// let names: Vec<_> = dialects.modes(&promised).iter().map(|mode| mode.name().to_owned()).collect();
/// assert_eq!(names, ["verbatim", "prompt"]);
/// assert!(dialects.get("verbatm").unwrap_err().contains("did you mean `verbatim`?"));
/// ```
#[derive(Debug, Clone)]
pub struct Dialects(Arc<[Arc<dyn Dialect>]>);

impl Dialects {
    /// Returns the dialects of this crate.
    pub fn builtin() -> Self {
        static BUILTIN: LazyLock<Dialects> = LazyLock::new(|| {
            Dialects(Arc::new([
                Arc::new(Native::OPENAI),
                Arc::new(Native::ANTHROPIC),
                Arc::new(Native::GEMINI),
                Arc::new(Native::GEMINI_OPENAPI),
                Arc::new(Native::AZURE),
                Arc::new(Native::MISTRAL),
                Arc::new(Native::GROQ),
                Arc::new(Native::XAI),
                Arc::new(Native::COHERE),
                Arc::new(Native::XGRAMMAR),
                Arc::new(Native::LLAMA_CPP),
                Arc::new(Native::OLLAMA),
                Arc::new(Native::LLGUIDANCE),
                Arc::new(JsonObject),
                Arc::new(Prompt::new()),
                Arc::new(Prompt::outline()),
            ]))
        });
        BUILTIN.clone()
    }

    /// Adds a dialect, or replaces the dialect of this name.
    #[must_use]
    pub fn with(self, dialect: Arc<dyn Dialect>) -> Self {
        let others = self.0.iter().filter(|other| other.name() != dialect.name()).cloned();
        Self(others.chain([dialect.clone()]).collect())
    }

    /// Returns all dialects, in the order of their addition.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Dialect>> {
        self.0.iter()
    }

    /// Returns the dialect of a name.
    ///
    /// # Errors
    /// A message in one line with the most similar name, or with all names if none is similar.
    pub fn get(&self, name: &str) -> Result<Arc<dyn Dialect>, String> {
        self.iter().find(|dialect| dialect.name() == name).cloned().ok_or_else(|| {
            let names: Vec<&str> = self.iter().map(|dialect| dialect.name()).collect();
            advised(&format!("there is no dialect `{name}`"), name, &names)
        })
    }

    /// Returns the output modes of a provider, the strictest first: the dialects that it promises, then the prompt
    /// alone. Unknown names are left out.
    pub fn modes(&self, capabilities: &Capabilities) -> Vec<Arc<dyn Lower>> {
        let taken = capabilities.dialects.iter().filter_map(|name| self.get(name).ok());
        let mut modes: Vec<Arc<dyn Lower>> = taken.map(|dialect| dialect as Arc<dyn Lower>).collect();
        if !modes.iter().any(|mode| mode.name().starts_with("prompt")) {
            modes.push(Arc::new(Prompt::new()));
        }
        modes
    }
}

impl Default for Dialects {
    fn default() -> Self {
        Self::builtin()
    }
}

/// Returns the parts of a schema that the server of a dialect would reject, ignore or misread, in the order of the
/// document. [`Dialect::lint`](crate::Dialect::lint) does the same for any dialect.
///
/// It covers `openai`, `anthropic`, `gemini`, `gemini-openapi`, `llama-cpp`, `ollama` and `llguidance`; for other names
/// the result is empty. The lint has no findings for a schema that the dialect itself wrote, nor for a keyword whose
/// treatment is uncertain.
///
/// ```
/// use formwork_dialect::{Reaction, lint};
///
/// let schema = serde_json::json!({"type": "number", "maximum": 1});
/// let findings = lint("llama-cpp", &schema);
/// assert_eq!((findings.len(), findings[0].verdict), (1, Reaction::Ignored));
/// assert_eq!(findings[0].to_string(), "#: `maximum` ignored: bounds hold for integers only");
/// assert!(lint("llguidance", &schema).is_empty());
/// ```
pub fn lint(dialect: &str, schema: &Value) -> Vec<LintFinding<Reaction>> {
    Dialects::builtin().get(dialect).map(|dialect| dialect.lint(schema)).unwrap_or_default()
}
