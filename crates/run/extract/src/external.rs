use async_trait::async_trait;
use formwork_core::{CallRecord, Context, Cost, Input, Violation};
use serde_json::Value;

/// An asynchronous validator, for example one that queries a database, another model or a person.
///
/// It checks only values that satisfy the contract. Its violations have the same effect as other violations: the run
/// requests a corrected answer. All validators of a run check each such value, in order.
///
/// The validator decides the result if its own query fails: it accepts the value, or reports a violation. The run drops a
/// validator that is not complete at its deadline.
///
/// ```
/// use formwork_core::{Context, Stage, Violation};
/// use formwork_extract::{AsyncValidator, CheckResult};
/// use serde_json::Value;
///
/// struct KnownCustomer(std::collections::HashSet<String>);
///
/// #[async_trait::async_trait]
/// impl AsyncValidator for KnownCustomer {
///     async fn validate(&self, value: &Value, _: &Context<'_>) -> CheckResult {
///         match value["customer"].as_str() {
///             Some(name) if !self.0.contains(name) => {
///                 let path = formwork_core::JsonPath::root().key("customer");
///                 Violation::new(path, "known", Stage::AsyncCheck).with_expected("a known customer").into()
///             }
///             _ => CheckResult::none(),
///         }
///     }
/// }
/// ```
#[async_trait]
pub trait AsyncValidator: Send + Sync {
    /// Returns the violations of a value.
    ///
    /// A violation of [`Severity::Warning`](formwork_core::Severity) does not reject the value; it is reported with the answer.
    async fn validate(&self, value: &Value, cx: &Context<'_>) -> CheckResult;
}

/// The violations that an [`AsyncValidator`] found, and the cost of the check.
///
/// ```
/// use formwork_core::{Cost, JsonPath, Stage, Violation};
/// use formwork_extract::CheckResult;
///
/// let cost = Cost { tokens: 250, micro_usd: Some(40) };
/// let violation = Violation::new(JsonPath::root().key("customer"), "known", Stage::AsyncCheck);
/// let result = CheckResult::from(violation).with_spent(cost);
/// assert_eq!((result.violations.len(), result.spent), (1, cost));
/// assert_eq!(CheckResult::none().violations, []);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckResult {
    /// All violations of the value.
    pub violations: Vec<Violation>,
    /// The cost of the check. It is added to the cost of the run and to its budgets.
    pub spent: Cost,
}

impl CheckResult {
    /// Returns a result without violations and without cost.
    pub fn none() -> Self {
        Self::default()
    }

    /// Sets the cost of the check (default: 0).
    #[must_use]
    pub const fn with_spent(mut self, spent: Cost) -> Self {
        self.spent = spent;
        self
    }
}

impl From<Violation> for CheckResult {
    fn from(violation: Violation) -> Self {
        vec![violation].into()
    }
}

impl From<Vec<Violation>> for CheckResult {
    fn from(violations: Vec<Violation>) -> Self {
        Self { violations, spent: Cost::default() }
    }
}

/// Supplies a value when no answer of a model was accepted.
///
/// The value is judged like an answer, and [`Outcome::origin`](formwork_core::Outcome) is
/// [`Origin::Fallback`](formwork_core::Origin). With `None` the run fails with its original error.
///
/// The fallback runs even after the deadline of the run, and only a cancellation ends it. Therefore an implementation that
/// waits must limit its own time.
///
/// [`with_fallback_fn`](crate::ExtractorBuilder::with_fallback_fn) takes a synchronous closure instead.
///
/// ```
/// use std::sync::Arc;
///
/// use formwork_extract::{Extractor, Fallback, Situation};
/// use formwork_testkit::Scripted;
/// use serde_json::{Value, json};
///
/// struct Unknown;
///
/// #[async_trait::async_trait]
/// impl Fallback for Unknown {
///     async fn value(&self, situation: &Situation<'_>) -> Option<Value> {
///         (!situation.calls.is_empty()).then(|| json!({"age": null}))
///     }
/// }
///
/// let schema = json!({"properties": {"age": {"type": ["integer", "null"]}}, "required": ["age"]});
/// let extractor = Extractor::for_document("person", schema)
///     .with_target(Arc::new(Scripted::new(["I do not know."])))
///     .with_max_attempts(1)
///     .with_fallback(Unknown)
///     .build()?;
/// assert_eq!(extractor.extract_blocking("Maria moved to Lisbon.")?.value, json!({"age": null}));
/// # Ok::<(), formwork_core::Error>(())
/// ```
#[async_trait]
pub trait Fallback: Send + Sync {
    /// Returns the value, or `None` if there is none.
    async fn value(&self, situation: &Situation<'_>) -> Option<Value>;
}

/// The state of a run that a [`Fallback`] receives.
///
/// ```
/// use formwork_extract::Situation;
/// use serde_json::{Value, json};
///
/// /// Keeps the last document, or returns an empty object if there is none.
/// fn fallback(situation: &Situation<'_>) -> Option<Value> {
///     Some(if situation.draft.is_null() { json!({}) } else { situation.draft.clone() })
/// }
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Situation<'a> {
    /// The input of the run: messages, source text, data of the caller.
    pub input: &'a Input,
    /// The last document of a model; `null` if there is none.
    pub draft: &'a Value,
    /// Every call so far, in order.
    pub calls: &'a [CallRecord],
}

/// A [`Fallback`] that calls a closure.
pub(crate) struct FallbackFn<F>(pub(crate) F);

#[async_trait]
impl<F: Fn(&Situation<'_>) -> Option<Value> + Send + Sync> Fallback for FallbackFn<F> {
    async fn value(&self, situation: &Situation<'_>) -> Option<Value> {
        (self.0)(situation)
    }
}
