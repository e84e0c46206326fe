use std::fmt;

use formwork_core::Message;
use formwork_extract::CancellationToken;

use crate::{AnswerContract, ChatResult, JsonModeChatClient};

/// Questions that know of the ones before.
///
/// Only questions that were answered are remembered, with the answer as the model wrote it; of those the last
/// [`MAX_TURNS`](Self::MAX_TURNS). Corrections are not: the model sees its valid answers alone.
pub struct Conversation<A> {
    client: JsonModeChatClient<A>,
    turns: Vec<[Message; 2]>,
}

impl<A: AnswerContract> Conversation<A> {
    /// How many questions are remembered.
    pub const MAX_TURNS: usize = 20;

    pub(crate) const fn new(client: JsonModeChatClient<A>) -> Self {
        Self { client, turns: Vec::new() }
    }

    /// Asks the next question.
    pub async fn ask(&mut self, question: impl Into<String>) -> ChatResult<A> {
        self.ask_with(question, &CancellationToken::new()).await
    }

    /// Asks the next question, with a handle that ends it from outside.
    pub async fn ask_with(
        &mut self,
        question: impl Into<String>,
        cancel: &CancellationToken,
    ) -> ChatResult<A> {
        let question = Message::user(question);
        let messages = self.turns.iter().flatten().cloned().chain([question.clone()]).collect();
        let result = self.client.answer(messages, cancel).await;
        if let ChatResult::Answered(reply) = &result {
            let said = reply.calls.last().map(|call| call.text.as_str()).unwrap_or_default();
            if self.turns.len() >= Self::MAX_TURNS {
                self.turns.remove(0);
            }
            self.turns.push([question, Message::assistant(said)]);
        }
        result
    }

    /// Returns the questions and answers in turns that are remembered.
    pub fn history(&self) -> impl Iterator<Item = &Message> {
        self.turns.iter().flatten()
    }

    /// Forgets all of it.
    pub fn clear(&mut self) {
        self.turns.clear();
    }
}

impl<A> fmt::Debug for Conversation<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation").field("turns", &self.turns.len()).finish_non_exhaustive()
    }
}
