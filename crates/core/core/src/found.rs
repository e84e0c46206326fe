//! The evidence for an accepted value.

use formwork_evidence::{Evidence, Index, Question, Summary};
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

    /// Returns the question for quotes of the values that were not found; `None` if there are none. See [`quote`](Self::quote).
    pub fn unquoted(&self) -> Option<Question> {
        Question::for_quotes(&self.json(), self.evidence())
    }

    /// Adds quotes to the evidence: a value that was not found is [`Quoted`](formwork_evidence::Status::Quoted) if its quote stands in
    /// the text. Returns how many are.
    ///
    /// ```
    /// use formwork_core::Outcome;
    /// use serde_json::Value;
    ///
    /// /// `ask` makes one call with the schema and the instructions of the question.
    /// fn quoted(outcome: &mut Outcome<Value>, ask: impl Fn(&Value, &str) -> Value) -> usize {
    ///     let Some(question) = outcome.unquoted() else { return 0 };
    ///     outcome.quote(&question, &ask(question.schema(), question.instructions()))
    /// }
    /// ```
    pub fn quote(&mut self, question: &Question, answer: &Value) -> usize {
        let mut evidence = self.evidence().to_vec();
        let count = question.quote(answer, &Index::new(self.source()), &mut evidence);
        self.about.replace(evidence);
        count
    }

    /// Returns the text that the value is about; empty for an outcome that was read from JSON.
    pub fn source(&self) -> &str {
        self.about.text()
    }

    /// Returns the number of leaves with each status in [`evidence`](Self::evidence), without choosing places if that makes no difference.
    pub fn evidence_summary(&self) -> Summary {
        self.about.summary(&self.json())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::to_value(&self.value).unwrap_or(Value::Null)
    }
}
