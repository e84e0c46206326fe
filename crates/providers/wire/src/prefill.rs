//! Answers of models that continue a last message of the assistant.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use formwork_core::{Answer, Call, Delta, Fault, FaultKind, Message};
use futures_core::Stream;
use serde_json::json;

use crate::fault::is_error;

/// Returns a call whose last message is the prefill, for [`Prefilled`]. A call with tools has none, because the answer may be a
/// tool call.
pub(crate) fn prefilled(call: &Call) -> Option<(Call, Cow<'static, str>)> {
    let opening = call.prefill.clone().filter(|_| call.tools.is_empty())?;
    let mut call = call.clone();
    call.prefill = None;
    call.messages.push(Arc::new(Message::assistant(opening.as_ref())));
    Some((call, opening))
}

/// Returns whether a fault says that the model accepts no last message of the assistant.
pub(crate) fn refuses(fault: &Fault) -> bool {
    let is_refusal = fault.kind == FaultKind::BadRequest || fault.kind == FaultKind::Unsupported;
    is_refusal && is_error(&json!({"message": fault.message}), "prefill refused")
}

/// Joins an opening with the answer that continues it. An answer that begins anew, with the opening or with prose, is left as it is.
pub(crate) struct Prefilled {
    answer: Answer,
    opening: Cow<'static, str>,
    /// The white space before the first other character of the answer.
    held: String,
    /// The number of bytes that were added to the answer; `None` until its first character is known.
    added: Option<usize>,
    note: Option<String>,
    last: Option<Delta>,
}

impl Prefilled {
    pub(crate) const fn new(answer: Answer, opening: Cow<'static, str>) -> Self {
        Self { answer, opening, held: String::new(), added: None, note: None, last: None }
    }

    /// Returns the answer of a model that refused the opening, with a note that says so.
    pub(crate) fn refused(answer: Answer, reason: &str) -> Self {
        let note = format!(
            "the model does not continue the opening of an answer ({reason}): it is not sent anymore"
        );
        Self { added: Some(0), note: Some(note), ..Self::new(answer, Cow::Borrowed("")) }
    }

    /// Returns the delta that is passed on now.
    fn take(&mut self, delta: Delta) -> Option<Delta> {
        match (delta, self.added) {
            (Delta::Text(text), None) => {
                self.held.push_str(&text);
                let first = self.held.trim_start().chars().next()?;
                let held = std::mem::take(&mut self.held);
                if !continues(&self.opening, first) {
                    self.added = Some(0);
                    return Some(Delta::Text(held));
                }
                self.added = Some(self.opening.len());
                Some(Delta::Text(format!("{}{held}", self.opening)))
            }
            (Delta::End(mut end), added) => {
                end.closed_at = end.closed_at.map(|at| at + added.unwrap_or_default());
                let end = Delta::End(end);
                let held = Some(std::mem::take(&mut self.held)).filter(|held| !held.is_empty());
                match self.note.take().map(Delta::Note).or_else(|| held.map(Delta::Text)) {
                    Some(first) => {
                        self.last = Some(end);
                        Some(first)
                    }
                    None => Some(end),
                }
            }
            (other, _) => Some(other),
        }
    }
}

/// Returns whether a text that begins with this character continues a document with this opening.
fn continues(opening: &str, first: char) -> bool {
    // A key, an item, a comment, or the end. Single quotes are a mistake that the reader repairs.
    match opening {
        "{" => matches!(first, '"' | '\'' | '/' | '}'),
        "[" => matches!(first, '"' | '\'' | '/' | '{' | '-' | ']') || first.is_ascii_digit(),
        // After a value that has ended. An answer that begins anew has no such character first.
        _ => matches!(first, ',' | '}' | ']'),
    }
}

impl Stream for Prefilled {
    type Item = Result<Delta, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(last) = self.last.take() {
            return Poll::Ready(Some(Ok(last)));
        }
        loop {
            match ready!(Pin::new(&mut self.answer).poll_next(cx)) {
                Some(Ok(delta)) => {
                    if let Some(delta) = self.take(delta) {
                        return Poll::Ready(Some(Ok(delta)));
                    }
                }
                ended => return Poll::Ready(ended),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use formwork_core::{Completion, End, Finish, Usage};

    use super::*;

    /// A stream of these deltas.
    struct Ready(std::vec::IntoIter<Delta>);

    impl Stream for Ready {
        type Item = Result<Delta, Fault>;

        fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            Poll::Ready(self.0.next().map(Ok))
        }
    }

    fn joined(opening: &'static str, text: &str, size: usize, closed_at: Option<usize>) -> Completion {
        let characters: Vec<char> = text.chars().collect();
        let pieces = characters.chunks(size).map(|piece| Delta::Text(piece.iter().collect()));
        let end = End::new(Finish::Stop, Usage::new(1, 1)).with_closed_at(closed_at);
        let deltas: Vec<Delta> = pieces.chain([Delta::End(end)]).collect();
        let mut stream = Prefilled::new(Answer::new(Ready(deltas.into_iter())), Cow::Borrowed(opening));
        let mut completion = Completion::new("");
        let mut cx = Context::from_waker(std::task::Waker::noop());
        while let Poll::Ready(Some(Ok(delta))) = Pin::new(&mut stream).poll_next(&mut cx) {
            if completion.push(delta) {
                break;
            }
        }
        completion
    }

    #[test]
    fn the_text_is_whole_in_whatever_pieces_it_comes() {
        for (opening, text, expected) in [
            ("{", "\"a\": 1}", "{\"a\": 1}"),
            ("{", "\n  \"a\": 1}", "{\n  \"a\": 1}"),
            ("{", "}", "{}"),
            ("{", "'a': 1}", "{'a': 1}"),
            // The model begins anew.
            ("{", "{\"a\": 1}", "{\"a\": 1}"),
            ("{", " \n{\"a\": 1}", " \n{\"a\": 1}"),
            ("{", "```json\n{\"a\": 1}\n```", "```json\n{\"a\": 1}\n```"),
            ("{", "Sure: {\"a\": 1}", "Sure: {\"a\": 1}"),
            ("[", "1, 2]", "[1, 2]"),
            ("[", "{\"a\": 1}]", "[{\"a\": 1}]"),
            ("[", "]", "[]"),
            ("[", "[{\"a\": 1}]", "[{\"a\": 1}]"),
            ("{", "", ""),
            ("{", "  ", "  "),
        ] {
            for size in [1, 2, usize::MAX] {
                assert_eq!(joined(opening, text, size, None).text, expected, "{text:?}");
            }
        }
    }

    #[test]
    fn the_byte_at_which_a_document_was_closed_moves_with_the_text() {
        assert_eq!(joined("{", "\"a\": 1}", 3, Some(4)).closed_at, Some(5));
        assert_eq!(joined("{", "{\"a\": 1}", 3, Some(5)).closed_at, Some(5));
    }
}
