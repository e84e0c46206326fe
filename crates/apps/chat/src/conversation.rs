use formwork_core::Message;
use formwork_extract::CancellationToken;

use crate::{AnswerContract, ChatResult, JsonModeChatClient};

/// A series of questions that share a history.
///
/// The history holds the answered questions, each with the answer as the model wrote it, up to the last
/// [`MAX_TURNS`](Self::MAX_TURNS). It holds no failed questions and no corrections.
///
/// ```
/// use formwork_chat::JsonModeChatClient;
/// use formwork_testkit::Scripted;
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), formwork_core::Error> {
/// let good = r#"{"task": {"type": "qa", "user_intent": "learn"}, "answer": {"text": "A text format."},
///   "quality": {"confidence": 0.9, "assumptions": [], "risks": []}, "debug": {"schema_version": "1.0", "model": "m"}}"#;
/// let client = JsonModeChatClient::builder().with_target(Arc::new(Scripted::new([good, good]))).build()?;
/// let mut talk = client.conversation();
/// talk.ask("What is JSON?").await;
/// talk.ask("Who uses it?").await;
/// assert_eq!(talk.history().count(), 4);
/// talk.clear();
/// assert_eq!(talk.history().count(), 0);
/// # Ok(()) }
/// ```
pub struct Conversation<A> {
    client: JsonModeChatClient<A>,
    turns: Vec<[Message; 2]>,
}

impl<A: AnswerContract> JsonModeChatClient<A> {
    /// Starts a conversation, whose questions share a history.
    pub fn conversation(&self) -> Conversation<A> {
        Conversation { client: self.clone(), turns: Vec::new() }
    }
}

impl<A: AnswerContract> Conversation<A> {
    /// The maximum number of questions in the history.
    pub const MAX_TURNS: usize = 20;

    /// Asks the next question.
    pub async fn ask(&mut self, question: impl Into<String>) -> ChatResult<A> {
        self.ask_with(question, &CancellationToken::new()).await
    }

    /// Asks the next question, with a token that cancels it.
    pub async fn ask_with(
        &mut self,
        question: impl Into<String>,
        cancel: &CancellationToken,
    ) -> ChatResult<A> {
        let question = Message::user(question);
        let messages = self.turns.iter().flatten().cloned().chain([question.clone()]).collect();
        let result = self.client.answer(messages, cancel).await;
        if let ChatResult::Answered(reply) = &result {
            let text = reply.calls.last().map(|call| &*call.text).unwrap_or_default();
            if self.turns.len() >= Self::MAX_TURNS {
                self.turns.remove(0);
            }
            self.turns.push([question, Message::assistant(text)]);
        }
        result
    }

    /// Returns the history: questions and answers in turns.
    pub fn history(&self) -> impl Iterator<Item = &Message> {
        self.turns.iter().flatten()
    }

    /// Clears the history.
    pub fn clear(&mut self) {
        self.turns.clear();
    }
}

formwork_core::debug_fields!(Conversation<A> { turns.len() });
