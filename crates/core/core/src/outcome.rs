//! The result of a run.

use formwork_json::JsonPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::about::About;
use crate::ledger::is_restrained;
use crate::{CallRecord, Contract, Cost, Origin, Provenance, Source, Trust, Usage, Warning};

/// An accepted value with its history: the result of a run.
///
/// `schemas/outcome.json` is its JSON Schema.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Outcome<T> {
    /// The value.
    pub value: T,
    /// The origin of the value.
    pub origin: Origin,
    /// The sources of its parts; the first entry is the whole document.
    pub provenance: Vec<Provenance>,
    /// Warnings for readers of the value: whatever was cut, repaired, dropped, chosen, rounded, coerced or restrained, and what
    /// soft checks found.
    pub warnings: Vec<Warning>,
    /// The paths of the members that are `null`, because the text does not state them; see [`Absent`](crate::Absent).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_stated: Vec<JsonPath>,
    /// The history of its leaves: how many the model wrote freely, and which it did not.
    #[serde(default)]
    pub trust: Trust,
    /// Every call, in order.
    #[serde(alias = "attempts")]
    pub calls: Vec<CallRecord>,
    /// The tokens of all calls together.
    pub usage: Usage,
    /// The cost of all calls and external checks together.
    pub cost: Cost,
    /// The text that the value is about.
    #[serde(skip)]
    pub(crate) about: About,
    /// The number of calls at the end that belong to other runs, which did not write the value.
    #[serde(skip)]
    pub(crate) absorbed: usize,
}

impl<T> Outcome<T> {
    /// Returns every call in order, like [`Error::calls`](crate::Error::calls).
    pub fn calls(&self) -> &[CallRecord] {
        &self.calls
    }

    /// Returns the tokens of all calls together, like [`Error::usage`](crate::Error::usage).
    pub const fn usage(&self) -> Usage {
        self.usage
    }

    /// Returns the cost of all calls and external checks together, like [`Error::cost`](crate::Error::cost). The amount of money is `None` if
    /// the price of a call is not known.
    pub const fn cost(&self) -> Cost {
        self.cost
    }

    /// Returns the paths of the values that the token limit left incomplete: those with [`Source::Closed`].
    pub fn closed(&self) -> impl Iterator<Item = &JsonPath> {
        self.provenance.iter().filter(|part| part.source == Source::Closed).map(|part| &part.path)
    }

    /// Returns whether the provider ended values of the accepted answer early; see [`CallRecord::restrained`].
    pub fn is_restrained(&self) -> bool {
        is_restrained(&self.calls)
    }

    /// Adds the calls, the tokens and the cost of another run for the same answer, such as a second opinion.
    ///
    /// ```
    /// use formwork_core::Outcome;
    /// use serde_json::Value;
    ///
    /// fn together(mut first: Outcome<Value>, second: Outcome<Value>) -> Outcome<Value> {
    ///     first.absorb(second);
    ///     first
    /// }
    /// ```
    pub fn absorb<U>(&mut self, other: Outcome<U>) {
        self.usage = self.usage.plus(other.usage);
        self.cost = self.cost.plus(other.cost);
        self.absorbed += other.calls.len();
        self.calls.extend(other.calls);
    }

    /// Adds the calls, the tokens and the cost of another run for the same answer that failed.
    ///
    /// ```
    /// use formwork_core::{Error, Outcome};
    /// use serde_json::Value;
    ///
    /// fn without_second(mut first: Outcome<Value>, second: &Error) -> Outcome<Value> {
    ///     first.absorb_failed(second);
    ///     first
    /// }
    /// ```
    pub fn absorb_failed(&mut self, other: &crate::Error) {
        self.usage = self.usage.plus(other.usage());
        self.cost = self.cost.plus(other.cost());
        self.absorbed += other.calls().len();
        self.calls.extend_from_slice(other.calls());
    }

    /// Sets the text that the value is about and its schema, for an outcome that was stored without them (default: those of its run).
    /// Evidence and confidence need them.
    ///
    /// ```
    /// use formwork_core::{Contract, Outcome};
    /// use serde_json::Value;
    ///
    /// fn evidence(stored: Outcome<Value>, text: &str, contract: &Contract) -> usize {
    ///     stored.with_source(text, contract).evidence().len()
    /// }
    /// ```
    #[must_use]
    pub fn with_source(self, text: impl Into<String>, contract: &Contract) -> Self {
        let mut about = About::new(text.into(), contract.accepted());
        about.factors = self.about.factors;
        Self { about, ..self }
    }

    /// Sets the [factors](crate::Confidence::factor) of leaves by their paths, for an outcome that was stored without its history (default:
    /// those of its history). Other leaves have the factor 1.
    #[must_use]
    pub fn with_factors(mut self, factors: std::collections::HashMap<String, f64>) -> Self {
        self.about.factors = Some(factors.into());
        self
    }

    /// Changes the value and keeps the history.
    ///
    /// ```
    /// use formwork_core::{Error, Outcome};
    /// use serde_json::Value;
    ///
    /// fn age(outcome: Outcome<Value>) -> Option<u64> {
    ///     let calls = outcome.calls().len();
    ///     println!("{calls} calls, {} tokens", outcome.cost().tokens);
    ///     outcome.map(|person| person["age"].as_u64()).value
    /// }
    /// ```
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Outcome<U> {
        let Self {
            value,
            origin,
            provenance,
            warnings,
            not_stated,
            trust,
            calls,
            usage,
            cost,
            about,
            absorbed,
        } = self;
        let about = about.of_another();
        Outcome {
            value: change(value),
            origin,
            provenance,
            warnings,
            not_stated,
            trust,
            calls,
            usage,
            cost,
            about,
            absorbed,
        }
    }
}
