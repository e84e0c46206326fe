//! The contract as the model reads it, and as its answers are judged by it.

use std::sync::Arc;

use formwork_core::{Schema as _, Typed, Validator, spaced};
use formwork_schema::SchemaError;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::validator::{Data, Envelope};
use crate::{Example, StructuredAnswer, StructuredAnswerLite, V1_0, V1_1};

/// The contract StructuredAnswerLite 1.0, as every first system message has it, byte for byte.
pub const CONTRACT_1_0: &str = r#"{
  "task": {
    "type": "qa | extraction | classification | summarization | other",
    "user_intent": "string"
  },
  "answer": {
    "text": "string"
  },
  "quality": {
    "confidence": "number between 0.0 and 1.0",
    "assumptions": ["string"],
    "risks": ["string"]
  },
  "debug": {
    "schema_version": "1.0",
    "model": "string"
  }
}"#;

/// A question whose own words stand in the answer: very small models then take the words of the user's question, where they
/// copy an answer to something else as it stands.
const EXAMPLE_1_0: Example = Example {
    question: "What is XML?",
    answer: r#"{"task": {"type": "qa", "user_intent": "What is XML?"}, "answer": {"text": "XML is a text format for documents. Its elements stand between tags."}, "quality": {"confidence": 0.9, "assumptions": [], "risks": []}, "debug": {"schema_version": "1.0", "model": "assistant"}}"#,
    subject: "xml",
};

/// The contract StructuredAnswer 1.1; the schema of `answer.data` stands below it.
pub const CONTRACT_1_1: &str = r#"{
  "task": {
    "type": "qa | extraction | classification | summarization | other",
    "user_intent": "string"
  },
  "answer": {
    "text": "string",
    "data": "value that matches the JSON Schema of answer.data"
  },
  "quality": {
    "confidence": "number between 0.0 and 1.0",
    "assumptions": ["string"],
    "risks": ["string"]
  },
  "debug": {
    "schema_version": "1.1",
    "model": "string"
  }
}"#;

/// A contract that answers keep to: [`StructuredAnswerLite`] and [`StructuredAnswer`]. No others: the contract governs.
pub trait AnswerContract: sealed::Sealed + DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// Its version.
    const VERSION: &'static str;

    /// Returns the contract as the model is told it.
    fn told() -> String;

    /// An answer that keeps to it, and the question, if there is one for every payload. Without one, very small models copy
    /// the contract's own words.
    fn example() -> Option<Example> {
        None
    }

    /// The validator that is written by hand.
    ///
    /// # Errors
    /// [`SchemaError`] if the schema of the payload's type cannot be used.
    fn validator() -> Result<Arc<dyn Validator>, SchemaError>;
}

impl AnswerContract for StructuredAnswerLite {
    const VERSION: &'static str = V1_0::TEXT;

    fn told() -> String {
        format!("StructuredAnswerLite 1.0:\n\n{CONTRACT_1_0}")
    }

    fn example() -> Option<Example> {
        Some(EXAMPLE_1_0)
    }

    fn validator() -> Result<Arc<dyn Validator>, SchemaError> {
        Ok(Arc::new(Envelope::new(Self::VERSION, Data::None)))
    }
}

impl<T: DeserializeOwned + JsonSchema + Send + Sync + 'static> AnswerContract for StructuredAnswer<T> {
    const VERSION: &'static str = V1_1::TEXT;

    fn told() -> String {
        let data = spaced(&identified(Typed::<T>::new().document().clone()));
        format!("StructuredAnswer 1.1:\n\n{CONTRACT_1_1}\n\nThe JSON Schema of answer.data:\n{data}")
    }

    fn validator() -> Result<Arc<dyn Validator>, SchemaError> {
        let data = formwork_schema::compile(Typed::<T>::new().document())?;
        Ok(Arc::new(Envelope::new(Self::VERSION, Data::Compiled(data))))
    }
}

/// Without what names a schema for machines.
pub(crate) fn identified(mut schema: serde_json::Value) -> serde_json::Value {
    if let Some(keywords) = schema.as_object_mut() {
        keywords.retain(|keyword, _| !matches!(keyword.as_str(), "$schema" | "$id" | "$comment"));
    }
    schema
}

/// The system prompt that governs: nobody replaces it.
pub(crate) fn governance<A: AnswerContract>() -> String {
    let (told, version) = (A::told(), A::VERSION);
    let example = A::example()
        .map(|Example { question, answer, .. }| {
            format!(" The question \"{question}\" would be answered:\n{answer}")
        })
        .unwrap_or_default();
    format!(
        "You answer with exactly one JSON object and with nothing else: no prose, no explanations, no markdown fence. It \
         conforms exactly to the contract {told}\n\n\
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
        let Example { question, answer, subject } = StructuredAnswerLite::example().unwrap();
        assert!(question.to_lowercase().contains(subject));
        let value = serde_json::from_str(answer).unwrap();
        let mut report = formwork_core::Report::default();
        let validator = StructuredAnswerLite::validator().unwrap();
        validator.validate(&value, &formwork_core::Context::EMPTY, &mut report);
        assert!(report.is_empty(), "{:?}", report.violations());
        let told = governance::<StructuredAnswerLite>();
        assert!(told.contains(CONTRACT_1_0) && told.contains(question) && told.ends_with(answer));
    }
}

mod sealed {
    /// Keeps the contracts to those of this crate.
    pub trait Sealed {}

    impl Sealed for crate::StructuredAnswerLite {}
    impl<T> Sealed for crate::StructuredAnswer<T> {}
}
