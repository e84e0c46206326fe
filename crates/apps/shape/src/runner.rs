//! Gets values of a shape from models.

use std::sync::Arc;

use formwork_core::{
    Enforcement, Error, ErrorKind, Feedback, Input, Lower, LowerRequest, Lowered, Message, Outcome, Patching,
    Policy, Refused, SchemaText, Template, spaced,
};
use formwork_dialect::Silent;
use formwork_extract::{Backend, Extraction, Extractor, ExtractorBuilder};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Shape;

/// Gets values of one shape from models; one runner serves any number of inputs.
///
/// Each of the three attempts is one fresh prompt: the input, the shape, the instructions, and all errors of the last
/// answer. The JSON is found inside Markdown fences and prose ([`Level::Clean`](formwork_core::Level)).
///
/// ```
/// use formwork_shape::{Shape, ShapeRunner};
/// use formwork_testkit::Scripted;
/// use serde_json::json;
/// use std::sync::Arc;
///
/// let model = Arc::new(Scripted::new([r#"{"risks": []}"#, r#"{"name": "MyApp", "risks": []}"#]));
/// let shape = Shape::parse(r#"{"name": string, "risks": [string]}"#)?;
/// let runner = ShapeRunner::builder(shape).with_target(Arc::clone(&model)).build()?;
/// let outcome = runner.run_blocking(&json!({"repo_summary": "A web application for managing tasks"}))?;
/// assert_eq!((&outcome.value["name"], outcome.calls.len()), (&json!("MyApp"), 2));
/// assert!(model.calls()[1].messages[0].text().contains("- Missing required field at path $.name"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ShapeRunner<T = Value> {
    extractor: Extractor<T>,
    prompt: Arc<Prompt>,
}

/// Builds a [`ShapeRunner`].
///
/// ```
/// use formwork_shape::{Shape, ShapeRunner};
/// use formwork_testkit::Scripted;
/// use std::sync::Arc;
///
/// let model = Arc::new(Scripted::new([r#"{"name": "Maria"}"#]));
/// let runner = ShapeRunner::builder(Shape::parse("{name: string}")?)
///     .with_target(Arc::clone(&model))
///     .with_task("Find the name.")
///     .settings(|extractor| extractor.with_max_tokens(100))
///     .build()?;
/// assert_eq!(runner.run_blocking(&"Maria moved.".into())?.value["name"], "Maria");
/// assert_eq!(model.calls()[0].max_tokens, Some(100));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct ShapeRunnerBuilder<T = Value> {
    shape: Shape,
    task: Option<String>,
    extractor: Result<ExtractorBuilder<T>, Error>,
}

/// Returns the policy of the runner: 3 whole attempts without a temperature of its own, each one fresh prompt that ends in
/// all errors of the last answer.
pub fn policy() -> Policy {
    let template = Template::new(
        "\n\nYour last answer had these errors:\n",
        "- {message}",
        "\n\nFix all of them. Output valid JSON only.",
    )
    .with_line_for_each();
    Policy::new(3)
        .with_patching(Patching::Never)
        .with_feedback(Feedback::new(template).folded())
        .with_stop_on_repeat(false)
        .with_stop(false)
}

impl ShapeRunner<Value> {
    /// Returns a builder of a runner whose values are JSON.
    pub fn builder(shape: Shape) -> ShapeRunnerBuilder<Value> {
        Self::typed(shape)
    }
}

impl<T: DeserializeOwned + Send + 'static> ShapeRunner<T> {
    /// Returns a builder of a runner whose values are a Rust type. A value that cannot be deserialized is requested
    /// again.
    pub fn typed(shape: Shape) -> ShapeRunnerBuilder<T> {
        let contract = shape
            .contract()
            .map_err(|error| Error::new(ErrorKind::Schema, format!("the shape cannot be used: {error}")));
        let extractor = contract.map(|contract| Extractor::for_contract(contract).with_policy(policy()));
        ShapeRunnerBuilder { shape, task: None, extractor }
    }

    /// Gets one value.
    ///
    /// # Errors
    /// [`Error`] with every call, if none of the three answers has the shape.
    pub async fn run(&self, input: &Value) -> Result<Outcome<T>, Error> {
        self.extraction(input).run().await
    }

    /// Gets one value and blocks the thread.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run), and [`ErrorKind::Config`] inside an async runtime.
    pub fn run_blocking(&self, input: &Value) -> Result<Outcome<T>, Error> {
        self.extraction(input).run_blocking()
    }

    /// Returns a run that has not started, to set its cancellation token or observer. A string is inserted verbatim
    /// into the prompt, any other input as JSON.
    pub fn extraction(&self, input: &Value) -> Extraction<T> {
        let source = match input {
            Value::String(text) => text.clone(),
            other => spaced(other),
        };
        let message = Message::user(self.prompt.words(input));
        self.extractor.extraction(Input::new([message]).with_source(source).with_data(input.clone()))
    }
}

impl<T: DeserializeOwned + Send + 'static> ShapeRunnerBuilder<T> {
    /// Adds a provider (default: none; at least one is required). The runner calls the first one, and the next one if
    /// that one is unavailable.
    pub fn with_target(self, backend: impl Into<Backend>) -> Self {
        let backend: Backend = backend.into();
        // The prompt contains the shape of an object, so no output mode has to describe it again. Some modes take only objects:
        // each mode describes the answer for a shape of another type.
        let mode = |lower| match self.shape.root().kind {
            crate::Kind::Object(_) => Arc::new(Silent::new(lower)) as Arc<dyn Lower>,
            _ => Arc::new(Shaped { lower, shape: self.shape.clone() }),
        };
        let modes: Vec<_> = backend.modes().into_iter().map(mode).collect();
        self.settings(|extractor| extractor.with_target(backend.with_modes(modes)))
    }

    /// Sets the task, which precedes the input in the prompt (default: none).
    pub fn with_task(mut self, task: impl Into<String>) -> Self {
        self.task = Some(task.into());
        self
    }

    /// Changes other settings of the extractor (default: no change), for example its time limit, observers, seed, clock,
    /// budget or checks. Add
    /// targets by [`with_target`](Self::with_target) instead. A changed policy no longer follows the specification.
    pub fn settings(mut self, change: impl FnOnce(ExtractorBuilder<T>) -> ExtractorBuilder<T>) -> Self {
        self.extractor = self.extractor.map(change);
        self
    }

    /// Compiles the shape and the settings.
    ///
    /// # Errors
    /// The errors of [`ExtractorBuilder::build`].
    pub fn build(self) -> Result<ShapeRunner<T>, Error> {
        let extractor = self.extractor?.build()?;
        Ok(ShapeRunner { extractor, prompt: Arc::new(Prompt::new(&self.shape, self.task)) })
    }
}

impl<T> Clone for ShapeRunner<T> {
    fn clone(&self) -> Self {
        Self { extractor: self.extractor.clone(), prompt: Arc::clone(&self.prompt) }
    }
}

formwork_core::debug_fields!(ShapeRunner<T> { extractor });

formwork_core::debug_fields!(ShapeRunnerBuilder<T> { shape });

/// An output mode that describes its answers by a shape, which may be wrapped in an object.
#[derive(Debug)]
struct Shaped {
    lower: Arc<dyn Lower>,
    shape: Shape,
}

impl Lower for Shaped {
    fn name(&self) -> &str {
        self.lower.name()
    }

    fn enforcement(&self) -> Enforcement {
        self.lower.enforcement()
    }

    fn lower(&self, request: &LowerRequest<'_>) -> Result<Lowered, Refused> {
        let mut lowered = self.lower.lower(request)?;
        // The schema of a patch has its own description.
        if request.schema.get("type") == formwork_core::Schema::document(&self.shape).get("type") {
            let shape = self.shape.to_string();
            let shape = match lowered.wrapper() {
                Some(name) => format!("{{\n  \"{name}\": {}\n}}", shape.replace('\n', "\n  ")),
                None => shape,
            };
            lowered.prompt_schema = Some(SchemaText::Outline(shape));
        }
        Ok(lowered)
    }
}

/// The prompt before and after an input.
#[derive(Debug)]
struct Prompt {
    before: String,
    after: String,
}

impl Prompt {
    fn new(shape: &Shape, task: Option<String>) -> Self {
        let task = task.map_or(String::new(), |task| format!("{}\n\n", task.trim_end()));
        let mut after = match shape.root().kind {
            crate::Kind::Object(_) => format!(
                "\n\nThe output has this shape:\n{shape}\n\nOutput one valid JSON object only, no prose, no markdown fence."
            ),
            _ => "\n\nOutput valid JSON only, no prose, no markdown fence.".to_owned(),
        };
        if shape.has_optional_fields() {
            after.push_str(" Every field is required but those with a `?`.");
        } else if matches!(shape.root().kind, crate::Kind::Object(_) | crate::Kind::Array(_)) {
            after.push_str(" Every field is required.");
        }
        if shape.has_grounded_fields() {
            after.push_str(" The value of a field with a `~` stands in the input, word for word.");
        }
        if shape.has_markdown() {
            after.push_str(" `markdown` stands for a string of Markdown.");
        }
        Self { before: format!("{task}Input:\n"), after }
    }

    fn words(&self, input: &Value) -> String {
        let display = match input {
            Value::String(text) => text.clone(),
            other => format!("{other:#}"),
        };
        format!("{}{display}{}", self.before, self.after)
    }
}
