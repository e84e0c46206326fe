//! Turns the model's predictions into an answer: constraint, choice and completion.

mod chart;
mod cursor;
mod entries;
mod grammar;
mod ground;
mod guide;
mod lexemes;
mod narrowing;
mod number;
mod repetition;
mod restraint;
mod rules;
mod sampler;
mod utf8;

use formwork_core::{Fault, FaultKind, Finish, JsonPath, LogProb};
use toktrie::{TokTrie, TokenId};

pub(crate) use grammar::Grammar;
pub(crate) use guide::{Guide, Unguided};
pub(crate) use sampler::Sampler;
use sampler::log_prob;

use guide::Taken;
use utf8::Utf8;

/// The reason why an answer was stopped.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The receiver dropped the answer.
    Dropped,
    /// The deadline has passed.
    Late,
    /// The model or the constraint failed.
    Fault(Fault),
}

/// The environment of a decoder: the model and the receiver.
pub(crate) trait Host {
    /// Computes more tokens and returns the logits of the next token.
    fn next(&mut self, tokens: &[TokenId]) -> Result<Vec<f32>, Halt>;

    /// Receives text of the answer, in whole characters.
    fn emit(&mut self, text: String);
}

/// The end of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) finish: Finish,
    /// The byte from which on the decoder completed the answer without the model.
    pub(crate) closed_at: Option<usize>,
    /// Whether the restraint for tiny models excluded a token that the model would have chosen.
    pub(crate) restrained: bool,
    /// The paths of grounded values that could not follow the source text.
    pub(crate) strays: Vec<JsonPath>,
    /// The tokens of the answer; those that the constraint forced are certain.
    pub(crate) log_probs: Vec<LogProb>,
}

/// Decodes one answer.
pub(crate) struct Decoder<'d> {
    pub(crate) trie: &'d TokTrie,
    /// The tokens that end an answer.
    pub(crate) ends: &'d [TokenId],
    pub(crate) guide: Option<Guide<'d>>,
    pub(crate) sampler: Sampler,
    /// The maximum number of tokens of the answer.
    pub(crate) room: usize,
}

impl Decoder<'_> {
    /// Decodes the answer to a dialogue; `pending` are the last tokens of the prompt, which are not computed yet.
    pub(crate) fn run(mut self, pending: Vec<TokenId>, host: &mut impl Host) -> Result<Ended, Halt> {
        let mut ended = self.decode(pending, host)?;
        ended.strays = self.guide.map(Guide::strays).unwrap_or_default();
        Ok(ended)
    }

    fn decode(&mut self, mut pending: Vec<TokenId>, host: &mut impl Host) -> Result<Ended, Halt> {
        let mut answer = Answer {
            trie: self.trie,
            text: Utf8::default(),
            log_probs: Vec::new(),
            chosen: 0,
            restrained: false,
        };
        if let Some(guide) = &mut self.guide {
            let forced = guide.forced();
            answer.push(&forced, 0.0, host);
            pending.extend(forced);
        }
        loop {
            if self.guide.as_ref().is_some_and(Guide::is_done) {
                return Ok(answer.end(Finish::Stop, None, host));
            }
            let left = self.room.saturating_sub(answer.log_probs.len());
            if left == 0 {
                return Ok(self.close(answer, host));
            }
            let logits = match host.next(&pending) {
                // A partial answer, completed without the model, is worth more than an error about the deadline.
                Err(Halt::Late) if answer.chosen > 0 => return Ok(self.close(answer, host)),
                logits => logits?,
            };
            let (token, log) = self.choose(&logits, left, &mut answer)?;
            answer.chosen += 1;
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
            answer.push(&pending, log, host);
        }
    }

    /// Chooses the next token of an answer that has room for `left` more. Returns it with the logarithm of its probability among the
    /// tokens that the schema allows.
    fn choose(
        &mut self,
        logits: &[f32],
        left: usize,
        answer: &mut Answer<'_>,
    ) -> Result<(TokenId, f32), Halt> {
        let none = || failed("no token may come next".to_owned());
        let Some(guide) = &mut self.guide else {
            let token = self.sampler.pick(logits, None).ok_or_else(none)?;
            return Ok((token, log_prob(logits, None, token)));
        };
        let mask = guide.mask().map_err(failed)?;
        let grounded = guide.grounded(&mask);
        let allowed = grounded.as_ref().unwrap_or(&mask);
        let token = self.sampler.pick(logits, Some(allowed)).ok_or_else(none)?;
        let Some(narrow) = guide.restrain(token, allowed, left) else {
            return Ok((token, log_prob(logits, Some(&mask), token)));
        };
        answer.restrained = true;
        let token = self.sampler.pick(logits, Some(&narrow)).ok_or_else(none)?;
        Ok((token, log_prob(logits, Some(&mask), token)))
    }

    /// Completes the answer without the model.
    fn close(&mut self, mut answer: Answer<'_>, host: &mut impl Host) -> Ended {
        let way = self.guide.as_mut().and_then(Guide::way);
        // The bytes of an incomplete character are the model's; the complete character is not.
        let at = answer.text.len();
        match way {
            Some(way) => {
                answer.push(&way, 0.0, host);
                answer.end(Finish::Length, Some(at), host)
            }
            None => answer.end(Finish::Length, None, host),
        }
    }
}

/// The answer so far.
struct Answer<'a> {
    trie: &'a TokTrie,
    text: Utf8,
    /// The tokens, and how many of them the model chose.
    log_probs: Vec<LogProb>,
    chosen: usize,
    restrained: bool,
}

impl Answer<'_> {
    /// Appends tokens: a chosen one with the logarithm of its probability, and those that follow from it.
    fn push(&mut self, tokens: &[TokenId], log: f32, host: &mut impl Host) {
        let logs = std::iter::once(f64::from(log)).chain(std::iter::repeat(0.0));
        let length = |token: &TokenId| self.trie.decode_ext(std::slice::from_ref(token), false).len();
        self.log_probs.extend(tokens.iter().zip(logs).map(|(token, log)| LogProb::new(length(token), log)));
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
        Ended {
            finish,
            closed_at,
            restrained: self.restrained,
            strays: Vec::new(),
            log_probs: self.log_probs,
        }
    }
}

/// Returns the fault of a constraint that the schema overwhelms.
fn failed(reason: String) -> Halt {
    Halt::Fault(Fault::new(FaultKind::SchemaRefused, format!("the constraint failed: {reason}")))
}
