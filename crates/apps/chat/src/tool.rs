//! Tools that a model can call before it answers.

use std::fmt::Display;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use formwork_core::{Context, Contract, Inline, Judgement, decode};
use formwork_schema::SchemaError;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A tool: a function with typed arguments that the model can call.
///
/// The model calls it by `{"tool": {"name": …, "arguments": …}}` in place of its answer, which works in JSON mode with
/// every model. Invalid arguments are corrected like an invalid answer; the function receives valid ones only.
///
/// ```
/// use formwork_chat::ChatTool;
///
/// #[derive(schemars::JsonSchema, serde::Deserialize)]
/// struct City {
///     city: String,
/// }
///
/// let weather = ChatTool::new("weather", "Says what the weather is.", |City { city }| async move {
///     if city == "Lisbon" { Ok("sunny") } else { Err(format!("nobody knows {city}")) }
/// })?;
/// assert_eq!(weather.name(), "weather");
/// # Ok::<(), formwork_schema::SchemaError>(())
/// ```
#[derive(Clone)]
pub struct ChatTool {
    name: String,
    description: String,
    contract: Contract,
    run: Arc<dyn Fn(Value) -> BoxFuture<'static, Result<Value, String>> + Send + Sync>,
}

impl ChatTool {
    /// Creates a tool with a name of 1 to 64 letters, digits, `_` and `-`, and a description for the model. Errors of
    /// the function are texts.
    ///
    /// # Errors
    /// [`SchemaError`] if the schema of the arguments cannot be used.
    pub fn new<A, O, E, F>(
        name: impl Into<String>,
        description: impl Into<String>,
        run: impl Fn(A) -> F + Send + Sync + 'static,
    ) -> Result<Self, SchemaError>
    where
        A: JsonSchema + DeserializeOwned + Send + 'static,
        O: Serialize + 'static,
        E: Display + 'static,
        F: Future<Output = Result<O, E>> + Send + 'static,
    {
        let contract = formwork_schema::contract::<A>()?;
        let run = move |arguments: Value| -> BoxFuture<'static, Result<Value, String>> {
            match decode::<A>(&arguments) {
                Ok(arguments) => run(arguments).map(given).boxed(),
                Err(error) => std::future::ready(Err(error.to_string())).boxed(),
            }
        };
        Ok(Self { name: name.into(), description: description.into(), contract, run: Arc::new(run) })
    }

    /// Creates a tool with arguments of a JSON Schema.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn for_schema<O, E, F>(
        name: impl Into<String>,
        description: impl Into<String>,
        arguments: Value,
        run: impl Fn(Value) -> F + Send + Sync + 'static,
    ) -> Result<Self, SchemaError>
    where
        O: Serialize + 'static,
        E: Display + 'static,
        F: Future<Output = Result<O, E>> + Send + 'static,
    {
        let contract = formwork_schema::contract_for(Arc::new(Inline::new("arguments", arguments)))?;
        let run = move |arguments: Value| run(arguments).map(given).boxed();
        Ok(Self { name: name.into(), description: description.into(), contract, run: Arc::new(run) })
    }

    /// Returns the tool's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the tool's description for the model.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the JSON Schema of the arguments.
    pub fn arguments(&self) -> &Value {
        self.contract.schema().document()
    }

    /// Returns the violations of the arguments.
    pub(crate) fn judge(&self, arguments: &Value, cx: &Context<'_>) -> Judgement {
        self.contract.judge(arguments, cx)
    }

    /// Calls the function. A panic of the function is a failure like any other.
    pub(crate) async fn call(&self, arguments: Value) -> Result<Value, String> {
        let called = AssertUnwindSafe(async { (self.run)(arguments).await }).catch_unwind();
        called.await.unwrap_or_else(|_| Err("it panicked".to_owned()))
    }
}

fn given<O: Serialize, E: Display>(result: Result<O, E>) -> Result<Value, String> {
    let given = result.map_err(|error| error.to_string())?;
    serde_json::to_value(given).map_err(|error| format!("its result is no JSON: {error}"))
}

formwork_core::debug_fields!(ChatTool { name });
