//! The text that an accepted value is about, and the evidence for the value in it.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use formwork_evidence::{Evidence, Index, Summary};
use serde_json::Value;

use crate::{Calibrations, Schema};

/// The part of the contract of an accepted value that evidence and confidence need; empty before the value is accepted, and after the run
/// was stored. One pointer, because each outcome has it.
#[derive(Clone, Default)]
pub(crate) struct Accepted(Option<Arc<Parts>>);

struct Parts {
    schema: Arc<dyn Schema>,
    with_rules: Option<Arc<Value>>,
    calibrations: Option<Arc<Calibrations>>,
}

impl Accepted {
    /// `with_rules` is the schema with the rules that derive values, if there are any.
    pub(crate) fn new(
        schema: Arc<dyn Schema>,
        with_rules: Option<Arc<Value>>,
        calibrations: Option<Arc<Calibrations>>,
    ) -> Self {
        Self(Some(Arc::new(Parts { schema, with_rules, calibrations })))
    }
}

/// The text that a value is about, and the part of its contract that evidence and confidence need. It is not stored with the outcome.
#[derive(Clone, Default)]
pub(crate) struct About {
    text: Arc<String>,
    accepted: Accepted,
    found: OnceLock<Vec<Evidence>>,
    /// The factors of the value's leaves, if it was stored with them instead of its history.
    pub(crate) factors: Option<Arc<HashMap<String, f64>>>,
}

impl About {
    pub(crate) fn new(text: String, accepted: Accepted) -> Self {
        Self { text: text.into(), accepted, found: OnceLock::new(), factors: None }
    }

    /// Returns the evidence for a value, which is found once.
    pub(crate) fn evidence(&self, value: impl FnOnce() -> Value) -> &[Evidence] {
        self.found.get_or_init(|| {
            if self.text.is_empty() {
                return Vec::new();
            }
            Index::new(self.text.as_str()).evidence(&value(), self.schema())
        })
    }

    /// Returns the summary of the evidence for a value.
    pub(crate) fn summary(&self, value: &Value) -> Summary {
        match self.found.get() {
            Some(found) => Summary::of(found, value),
            None if self.text.is_empty() => Summary::default(),
            None => Index::new(self.text.as_str()).summary(value, self.schema()),
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the schema of the value, with the rules that derive values; `None` after the outcome was stored.
    pub(crate) fn schema(&self) -> Option<&Value> {
        let parts = self.accepted.0.as_deref()?;
        Some(parts.with_rules.as_deref().unwrap_or_else(|| parts.schema.document()))
    }

    /// Returns the calibrations of the contract; `None` without any, and after the outcome was stored.
    pub(crate) fn calibrations(&self) -> Option<&Calibrations> {
        self.accepted.0.as_deref()?.calibrations.as_deref()
    }

    /// Replaces the evidence.
    pub(crate) fn replace(&mut self, evidence: Vec<Evidence>) {
        self.found = OnceLock::from(evidence);
    }

    /// Returns the same text for a value that was changed.
    pub(crate) fn of_another(self) -> Self {
        Self { found: OnceLock::new(), ..self }
    }
}

// Two outcomes are equal whether or not one of them was stored.
crate::equal::always_equal!(About, Accepted);

crate::debug_fields!(About {});

crate::debug_fields!(Accepted {});
