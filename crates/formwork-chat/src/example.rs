/// A question with its answer, as an example in the prompt.
///
/// ```
/// use formwork_chat::{AnswerContract, StructuredAnswerLite};
///
/// assert!(StructuredAnswerLite::example().is_some());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Example {
    pub(crate) question: &'static str,
    pub(crate) answer: &'static str,
    /// The word of the question that the answer is about, in lower case.
    pub(crate) subject: &'static str,
}
