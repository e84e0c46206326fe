//! The text that an accepted value is about, and the evidence for the value in it.

use std::sync::{Arc, OnceLock};

use formwork_evidence::{Evidence, Index, Summary};
use serde_json::Value;

use crate::Schema;

/// The schema of an accepted value; empty before the value is accepted, and after the run was stored.
#[derive(Clone, Default)]
pub(crate) struct Accepted(pub(crate) Option<Arc<dyn Schema>>);

/// The text that a value is about, and its schema. It is not stored with the outcome.
#[derive(Clone, Default)]
pub(crate) struct About {
    text: Arc<String>,
    schema: Accepted,
    found: OnceLock<Vec<Evidence>>,
}

impl About {
    pub(crate) fn new(text: String, schema: Accepted) -> Self {
        Self { text: text.into(), schema, found: OnceLock::new() }
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

    /// Returns the schema of the value; `None` after the outcome was stored.
    pub(crate) fn schema(&self) -> Option<&Value> {
        self.schema.0.as_deref().map(Schema::document)
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
