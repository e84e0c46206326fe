//! The evidence for an accepted value.

use formwork_evidence::{Evidence, Summary};
use serde::Serialize;
use serde_json::Value;

use crate::Outcome;

impl<T: Serialize> Outcome<T> {
    /// Returns the evidence for each leaf of the value: its status, and its places in [`Input::source`](crate::Input::source), in
    /// Unicode scalar values. It makes no call. The first call of this function searches the text; later calls return the same
    /// evidence, even if the value was changed in place.
    ///
    /// An outcome that was read from JSON has no text, and its evidence is empty.
    ///
    /// ```
    /// use formwork_core::Outcome;
    /// use formwork_core::evidence::Status;
    /// use serde_json::Value;
    ///
    /// /// Returns the paths of the values that do not stand in the text.
    /// fn unsupported(outcome: &Outcome<Value>) -> Vec<String> {
    ///     let all = outcome.evidence().iter();
    ///     all.filter(|it| it.status == Status::NotFound).map(|it| it.path.to_string()).collect()
    /// }
    /// ```
    pub fn evidence(&self) -> &[Evidence] {
        self.about.evidence(|| self.json())
    }

    /// Returns the number of leaves with each status in [`evidence`](Self::evidence).
    pub fn evidence_summary(&self) -> Summary {
        Summary::of(self.evidence(), &self.json())
    }

    fn json(&self) -> Value {
        serde_json::to_value(&self.value).unwrap_or(Value::Null)
    }
}
