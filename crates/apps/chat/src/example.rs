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
    /// The words that the answer is about, in lower case. A question with one of them may have the same answer.
    pub(crate) subjects: &'static [&'static str],
}
