/// A question that a model is shown with its answer.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    pub(crate) question: &'static str,
    pub(crate) answer: &'static str,
    /// The word of the question that it is about, in small letters.
    pub(crate) subject: &'static str,
}
