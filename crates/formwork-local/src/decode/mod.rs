//! From what a model expects to an answer: constraint, choice, closing.

mod bounds;
mod closing;
mod cursor;
mod entries;
mod grammar;
mod guide;
mod narrowing;
mod repetition;
mod restraint;
mod sampler;
mod utf8;

use formwork_core::{Fault, FaultKind, Finish};
use toktrie::{TokTrie, TokenId};

pub(crate) use grammar::Grammar;
pub(crate) use guide::{Guide, Unguided};
pub(crate) use sampler::Sampler;

use guide::Taken;
use utf8::Utf8;

/// Why an answer was broken off.
#[derive(Debug)]
pub(crate) enum Halt {
    /// Nobody reads it any more.
    Dropped,
    /// It failed.
    Fault(Fault),
}

/// What an answer goes through on its way.
pub(crate) trait Host {
    /// Looks at more tokens and says how much each token is expected to come next.
    fn next(&mut self, tokens: &[TokenId]) -> Result<Vec<f32>, Halt>;

    /// Takes text of the answer, whole characters of it.
    fn emit(&mut self, text: String);
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) finish: Finish,
    /// The tokens of the answer.
    pub(crate) tokens: usize,
    /// The byte from which on the model did not write it.
    pub(crate) closed_at: Option<usize>,
}

/// One answer in the making.
pub(crate) struct Decoder<'d> {
    pub(crate) trie: &'d TokTrie,
    /// The tokens that end an answer.
    pub(crate) ends: &'d [TokenId],
    pub(crate) guide: Option<Guide<'d>>,
    pub(crate) sampler: Sampler,
    /// The most tokens that the answer may have.
    pub(crate) room: usize,
}

impl Decoder<'_> {
    /// Writes the answer to a dialogue whose last tokens are `pending`: those that the host has not looked at.
    pub(crate) fn run(mut self, mut pending: Vec<TokenId>, host: &mut impl Host) -> Result<Ended, Halt> {
        let mut answer = Answer { trie: self.trie, text: Utf8::default(), tokens: 0 };
        if let Some(guide) = &mut self.guide {
            let forced = guide.forced();
            answer.push(&forced, host);
            pending.extend(forced);
        }
        loop {
            if self.guide.as_ref().is_some_and(Guide::is_done) {
                return Ok(answer.end(Finish::Stop, None, host));
            }
            let left = self.room.saturating_sub(answer.tokens);
            if left == 0 {
                return Ok(self.close(answer, host));
            }
            let logits = host.next(&pending)?;
            let mask = match &mut self.guide {
                Some(guide) => Some(guide.mask(left).map_err(failed)?),
                None => None,
            };
            let token = self.sampler.pick(&logits, mask.as_ref());
            let token = token.ok_or_else(|| failed("no token may come next".to_owned()))?;
            if self.ends.contains(&token) {
                return Ok(answer.end(Finish::Stop, None, host));
            }
            pending = match &mut self.guide {
                None => vec![token],
                Some(guide) => match guide.take(token, left).map_err(failed)? {
                    Taken::Tokens(tokens) => tokens,
                    Taken::NoRoom => return Ok(self.close(answer, host)),
                },
            };
            answer.push(&pending, host);
        }
    }

    /// Ends the answer without the model.
    fn close(&mut self, mut answer: Answer<'_>, host: &mut impl Host) -> Ended {
        let left = self.room.saturating_sub(answer.tokens);
        let path = self.guide.as_mut().and_then(|guide| guide.close(left));
        // Bytes of a character that was begun are the model's; the character as a whole is not.
        let at = answer.text.len();
        match path {
            Some(path) => {
                answer.push(&path, host);
                answer.end(Finish::Length, Some(at), host)
            }
            None => answer.end(Finish::Length, None, host),
        }
    }
}

/// What there is of the answer.
struct Answer<'a> {
    trie: &'a TokTrie,
    text: Utf8,
    tokens: usize,
}

impl Answer<'_> {
    fn push(&mut self, tokens: &[TokenId], host: &mut impl Host) {
        self.tokens += tokens.len();
        let text = self.text.push(&self.trie.decode_ext(tokens, false));
        if !text.is_empty() {
            host.emit(text);
        }
    }

    fn end(mut self, finish: Finish, closed_at: Option<usize>, host: &mut impl Host) -> Ended {
        let rest = self.text.finish();
        if !rest.is_empty() {
            host.emit(rest);
        }
        Ended { finish, tokens: self.tokens, closed_at }
    }
}

/// A failure of the constraint itself: the schema asks more of it than it can do.
fn failed(reason: String) -> Halt {
    Halt::Fault(Fault::new(FaultKind::SchemaRefused, format!("the constraint failed: {reason}")))
}
