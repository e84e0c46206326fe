//! The contract in the prompt, and the validator of its answers.

use std::sync::Arc;

use formwork_core::{Inline, Schema as _, Validator, spaced};
use formwork_schema::SchemaError;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::validator::Part;
use crate::{Example, StructuredAnswer, StructuredAnswerLite, V1_0, V1_1};

/// The contract StructuredAnswerLite 1.0, byte for byte as in the first system message.
///
/// ```
/// assert!(formwork_chat::CONTRACT_1_0.contains(r#""schema_version": "1.0""#));
/// ```
pub const CONTRACT_1_0: &str = include_str!("contract_1_0.txt").trim_ascii_end();

/// A question whose words recur in the answer. Very small models then copy the words of the user's question; other
/// examples they copy verbatim.
const EXAMPLE_1_0: Example = Example {
    question: "Who builds violins?",
    answer: r#"{"task": {"type": "qa", "user_intent": "Who builds violins?"}, "answer": {"text": "A person who builds violins is called a luthier."}, "quality": {"confidence": 0.9, "assumptions": [], "risks": []}, "debug": {"schema_version": "1.0", "model": "assistant"}}"#,
    subjects: &["violin", "luthier"],
};

/// The contract StructuredAnswer 1.1; the prompt adds the schema of `answer.data` below.
///
/// ```
/// assert!(formwork_chat::CONTRACT_1_1.contains(r#""schema_version": "1.1""#));
/// ```
pub const CONTRACT_1_1: &str = include_str!("contract_1_1.txt").trim_ascii_end();

/// A contract of answers: [`StructuredAnswerLite`] or [`StructuredAnswer`]. The trait is sealed.
///
/// ```
/// use formwork_chat::{AnswerContract, StructuredAnswerLite};
///
/// assert_eq!(StructuredAnswerLite::VERSION, "1.0");
/// assert!(StructuredAnswerLite::prompt_text().contains(formwork_chat::CONTRACT_1_0));
/// ```
pub trait AnswerContract: sealed::Sealed + DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// The version of the contract.
    const VERSION: &'static str;

    /// Returns the contract's text in the prompt.
    fn prompt_text() -> String;

    /// Returns a question with an answer for the prompt, if one suits every payload. Without an example, very small
    /// models copy the contract's own words.
    fn example() -> Option<Example> {
        None
    }

    /// Returns the hand-written validator.
    ///
    /// # Errors
    /// [`SchemaError`] if the schema of the payload's type cannot be used.
    fn validator() -> Result<Arc<dyn Validator>, SchemaError>;
}

impl AnswerContract for StructuredAnswerLite {
    const VERSION: &'static str = V1_0::TEXT;

    fn prompt_text() -> String {
        format!("StructuredAnswerLite 1.0:\n\n{CONTRACT_1_0}")
    }

    fn example() -> Option<Example> {
        Some(EXAMPLE_1_0)
    }

    fn validator() -> Result<Arc<dyn Validator>, SchemaError> {
        Ok(Arc::new(Part::envelope(Self::VERSION, None)))
    }
}

impl<T: DeserializeOwned + JsonSchema + Send + Sync + 'static> AnswerContract for StructuredAnswer<T> {
    const VERSION: &'static str = V1_1::TEXT;

    fn prompt_text() -> String {
        let data = spaced(&identified(Inline::of::<T>().document().clone()));
        format!("StructuredAnswer 1.1:\n\n{CONTRACT_1_1}\n\nThe JSON Schema of answer.data:\n{data}")
    }

    fn validator() -> Result<Arc<dyn Validator>, SchemaError> {
        let data = formwork_schema::compile(Inline::of::<T>().document())?;
        Ok(Arc::new(Part::envelope(Self::VERSION, Some(data))))
    }
}

/// Removes the keywords that only identify a schema (`$schema` and the like).
pub(crate) fn identified(mut schema: serde_json::Value) -> serde_json::Value {
    if let Some(keywords) = schema.as_object_mut() {
        keywords.retain(|keyword, _| !matches!(keyword.as_str(), "$schema" | "$id" | "$comment"));
    }
    schema
}

/// Returns the governing system prompt, which callers cannot replace.
pub(crate) fn governance<A: AnswerContract>() -> String {
    let (contract, version) = (A::prompt_text(), A::VERSION);
    let example = A::example()
        .map(|Example { question, answer, .. }| {
            format!(" The question \"{question}\" would be answered:\n{answer}")
        })
        .unwrap_or_default();
    format!(
        "You answer with exactly one JSON object and with nothing else: no prose, no explanations, no markdown fence. It \
         conforms exactly to the contract {contract}\n\n\
         All fields are required; arrays may be empty, but must be there. Extra keys and renamed keys are forbidden at \
         every level. Its words stand for values of your own: \"text\" is your whole answer. \"type\" is one of the five \
         words. \"schema_version\" is exactly \"{version}\". \"model\" is your name.{example}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_keeps_to_the_contract() {
        let Example { question, answer, subjects } = StructuredAnswerLite::example().unwrap();
        let words = format!("{question} {answer}").to_lowercase();
        assert!(subjects.iter().all(|subject| words.contains(subject)));
        let value = serde_json::from_str(answer).unwrap();
        let mut report = formwork_core::Report::default();
        let validator = StructuredAnswerLite::validator().unwrap();
        validator.validate(&value, &formwork_core::Context::EMPTY, &mut report);
        assert!(report.is_empty(), "{:?}", report.violations());
        let prompt = governance::<StructuredAnswerLite>();
        assert!(prompt.contains(CONTRACT_1_0) && prompt.contains(question) && prompt.ends_with(answer));
    }
}

mod sealed {
    /// Seals [`AnswerContract`](super::AnswerContract).
    pub trait Sealed {}

    impl Sealed for crate::StructuredAnswerLite {}
    impl<T> Sealed for crate::StructuredAnswer<T> {}
}
