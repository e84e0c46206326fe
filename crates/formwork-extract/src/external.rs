use async_trait::async_trait;
use formwork_core::{Attempt, Context, Cost, Input, Violation};
use serde_json::Value;

/// A validator that waits for something: a database, another model, a person.
///
/// It is asked only about values that satisfy the contract otherwise. What it finds is treated like any other
/// violation: the model is told and asked again. All of a run's validators are asked, in order, each time.
///
/// The validator decides what happens when the lookup itself fails: it accepts the value, or reports a violation that
/// says so. One that does not come back is given up at the run's deadline.
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
///                 Violation::new(path, "known", Stage::AsyncCheck).with_expected("a customer of ours").into()
///             }
///             _ => CheckResult::none(),
///         }
///     }
/// }
/// ```
#[async_trait]
pub trait AsyncValidator: Send + Sync {
    /// Says what is wrong with a value.
    ///
    /// A violation of [`Severity::Warning`](formwork_core::Severity) rejects nothing and is reported with the answer.
    async fn validate(&self, value: &Value, cx: &Context<'_>) -> CheckResult;
}

/// The findings of an [`AsyncValidator`], and what asking has cost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckResult {
    /// All that is wrong.
    pub violations: Vec<Violation>,
    /// The cost of asking; it counts as spent by the run and by its budgets.
    pub spent: Cost,
}

impl CheckResult {
    /// Returns a result without violations and without cost.
    pub fn none() -> Self {
        Self::default()
    }

    /// Sets the cost of asking (default: nothing).
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

/// Makes the value that is used when no model gave an acceptable one.
///
/// The value is judged like an answer, and the outcome says that it is a fallback. `None` leaves the run failed, with
/// the reason that it had.
///
/// A fallback is asked after the deadline too, because that is when it is needed most; only a cancel ends it. One that
/// waits for something has to bound that wait itself.
///
/// A closure that does not wait goes to [`with_fallback_fn`](crate::ExtractorBuilder::with_fallback_fn).
#[async_trait]
pub trait Fallback: Send + Sync {
    /// The value to use.
    async fn value(&self, situation: &Situation<'_>) -> Option<Value>;
}

/// The state that a [`Fallback`] may look at.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Situation<'a> {
    /// The start of the run: the dialogue, the source text, the caller's data.
    pub input: &'a Input,
    /// The last document that a model gave; `null` if there was none.
    pub draft: &'a Value,
    /// Every call so far, in order.
    pub attempts: &'a [Attempt],
}

/// A closure as a [`Fallback`].
pub(crate) struct FallbackFn<F>(pub(crate) F);

#[async_trait]
impl<F: Fn(&Situation<'_>) -> Option<Value> + Send + Sync> Fallback for FallbackFn<F> {
    async fn value(&self, situation: &Situation<'_>) -> Option<Value> {
        (self.0)(situation)
    }
}
