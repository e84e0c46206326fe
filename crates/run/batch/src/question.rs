//! The question that a batch asks about each row, by which stored answers are found again.

use std::collections::HashMap;

use formwork_core::{Step, Time};
use formwork_extract::Extractor;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The question of a batch about its rows: the targets, the instructions and examples, the sampling, and the number of the sample.
/// An answer to the same question about the same text is not paid for again.
///
/// ```
/// use std::sync::Arc;
/// use formwork_batch::Question;
/// use formwork_extract::Extractor;
/// use formwork_testkit::Scripted;
/// use serde_json::json;
///
/// let model = Scripted::new([r#"{"age": 34}"#]);
/// let extractor = Extractor::for_document("person", json!({"properties": {"age": {}}})).with_target(Arc::new(model)).build()?;
/// let question = Question::of(&extractor);
/// assert_ne!(question.clone().with_sample(1), question);
/// # Ok::<(), formwork_core::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// The names and identities of the targets.
    targets: Vec<(String, String)>,
    /// The models of targets, by name.
    models: HashMap<String, String>,
    pub(crate) prompt: String,
    pub(crate) sampling: String,
    pub(crate) sample: u32,
}

impl Question {
    /// Returns the question of an extractor, for sample 0.
    pub fn of(extractor: &Extractor<Value>) -> Self {
        let (plan, mut run) = extractor.extraction("").into_parts();
        let identity =
            |(nth, name): (usize, &str)| (name.to_owned(), plan.identity(nth).unwrap_or(name).to_owned());
        let prompt = serde_json::to_string(&run.input().messages).unwrap_or_default();
        let sampling = match run.step(&plan, Time(0)) {
            Ok(Step::Call { call, .. }) => serde_json::to_string(&call.sampling).unwrap_or_default(),
            _ => String::new(),
        };
        Self {
            targets: plan.targets().enumerate().map(identity).collect(),
            models: HashMap::new(),
            prompt: digest(&prompt),
            sampling,
            sample: 0,
        }
    }

    /// Returns a digest of the targets, the prompt, the sampling and the sample, for answers that are stored elsewhere.
    pub fn digest(&self) -> String {
        let Self { targets, models: _, prompt, sampling, sample } = self;
        digest(&serde_json::json!([targets, prompt, sampling, sample]).to_string())
    }

    formwork_core::setters! {
        /// Sets the number of the sample (default: 0). Answers of another sample do not count.
        pub const fn with_sample(sample: u32);

        /// Sets the models of the targets by their names, for people who read the store (default: not known).
        pub fn with_models(models: HashMap<String, String>);
    }

    /// Returns the question with the instructions and examples of a contract, as [`Spec`](crate::Spec) has it, in the place of those of
    /// the extractor (default: those of the extractor).
    #[must_use]
    pub fn with_prompt_of(mut self, contract: &Value) -> Self {
        self.prompt = prompt_of(contract);
        self
    }

    /// Returns the identity of a target, or its name if the question does not have it.
    pub(crate) fn identity<'a>(&'a self, name: &'a str) -> &'a str {
        self.targets.iter().find(|(own, _)| own == name).map_or(name, |(_, identity)| identity)
    }

    /// Returns the model of a target, where it is known.
    pub(crate) fn model(&self, name: &str) -> Option<&str> {
        self.models.get(name).map(String::as_str)
    }

    /// Returns whether a target of this identity is asked.
    pub(crate) fn asks(&self, identity: &str) -> bool {
        self.targets.iter().any(|(_, own)| own == identity)
    }
}

/// Returns a digest as text: 32 hexadecimal digits.
pub(crate) fn digest(text: &str) -> String {
    Sha256::digest(text).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a digest of the instructions and examples of a contract.
pub(crate) fn prompt_of(contract: &Value) -> String {
    digest(&serde_json::json!([contract.get("instructions"), contract.get("examples")]).to_string())
}
