use std::sync::Arc;
use std::time::{Instant, SystemTime};

use formwork_core::{
    Call, End, Enforcement, Fault, FaultKind, JsonPath, Lift, LiftOp, LogProb, Part, Rule, Time, Usage,
};
use serde_json::{Value, json};
use toktrie::{TokEnv, TokenizerEnv};

use crate::decode::{Decoder, Ended, Grammar, Guide, Halt, Host, Sampler, Unguided};
use crate::model::{Cache, Model, Tensors};
use crate::template::Template;
use crate::timing::Timer;
use crate::vocabulary::Vocabulary;
use crate::{LocalError, Restraint};

/// The number of tokens in a block; whole blocks of a prompt stay in the cache between calls.
///
/// Kernels for one row and for several rows may round differently. A block is always computed with several rows, so
/// that its cached keys and values equal recomputed ones, and an answer does not depend on earlier calls.
const BLOCK: usize = 16;

/// The number of blocks per forward pass. More blocks load the weights into the processor's caches less often, but
/// delay the check of the deadline.
const BLOCKS_AT_ONCE: usize = 4;

/// A loaded model with its caches, which answers one call after another.
pub(crate) struct Engine {
    name: String,
    model: Model,
    cache: Cache,
    /// The tokens whose keys and values are in the cache and can be reused.
    held: Vec<u32>,
    vocabulary: Arc<Vocabulary>,
    template: Template,
    grammar: Grammar,
    restraint: Restraint,
    timer: Timer,
}

/// The receiver of an answer.
pub(crate) trait Listener {
    /// Receives text.
    fn text(&mut self, text: String);

    /// Receives all tokens of the text, at its end.
    fn log_probs(&mut self, tokens: Vec<LogProb>);

    /// Receives a remark on the answer.
    fn note(&mut self, note: String);

    /// Returns whether the receiver dropped the answer.
    fn is_gone(&self) -> bool;
}

impl Engine {
    /// Loads a model from its tensors. `context` limits the tokens of prompt and answer together. Without a restraint,
    /// the size of the model determines it.
    pub(crate) fn load(
        mut tensors: Tensors,
        context: usize,
        restraint: Option<Restraint>,
    ) -> Result<Self, LocalError> {
        let gguf = tensors.gguf();
        let vocabulary = Arc::new(Vocabulary::read(gguf)?);
        let template = Template::read(gguf, &vocabulary)?;
        let stem = gguf.path().file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let restraint = restraint.unwrap_or_else(|| Restraint::of(gguf.parameters()));
        let name = gguf.text("general.name").map(str::to_owned).or(stem).unwrap_or_default();
        let environment: TokEnv = vocabulary.clone();
        let grammar = Grammar::new(&environment).map_err(|reason| gguf.error(reason))?;
        let model = Model::load(&mut tensors)?;
        let capacity = context.min(model.config().context);
        let cache = Cache::new(model.config(), capacity).map_err(|reason| tensors.gguf().error(reason))?;
        let mut engine = Self {
            name,
            model,
            cache,
            held: Vec::new(),
            vocabulary,
            template,
            grammar,
            restraint,
            timer: Timer::default(),
        };
        engine.warm_up().map_err(|error| tensors.gguf().error(error))?;
        Ok(engine)
    }

    /// Returns the name in the model's file.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the maximum number of tokens of prompt and answer together.
    pub(crate) const fn context(&self) -> usize {
        self.cache.capacity()
    }

    /// Returns the timer of the model.
    pub(crate) fn timer(&self) -> Timer {
        self.timer.clone()
    }

    /// Returns the restraint of answers.
    pub(crate) const fn restraint(&self) -> Restraint {
        self.restraint
    }

    pub(crate) fn takes_late_system(&self) -> bool {
        self.template.takes_late_system()
    }

    /// Answers a call; `None` if the receiver dropped it.
    pub(crate) fn answer(&mut self, call: &Call, listener: &mut dyn Listener) -> Result<Option<End>, Fault> {
        let start = Instant::now();
        let schema = schema(call)?;
        let sampler = Sampler::new(&call.sampling).map_err(bad)?;
        self.bound(call)?;
        let prompt = self.template.encode(&call.messages, &self.vocabulary).map_err(bad)?;
        let mut room = self.room(call, prompt.len())?;
        let vocabulary = Arc::clone(&self.vocabulary);
        // Separate borrows let the host run the model while the guide borrows the grammar.
        let Self { model, cache, held, grammar, restraint, timer, .. } = self;
        let left = cache.capacity() - prompt.len();
        let guide = match &schema {
            None => None,
            Some(schema) => {
                let source = call.source.as_deref();
                let guide = |room| Guide::new(grammar, schema, rules(call), source, room, *restraint);
                let guide = match guide(room) {
                    // The call sets no limit, so the default may be too small for the schema.
                    Err(Unguided::Short(needed)) if call.max_tokens.is_none() && needed <= left => {
                        room = (needed + room).min(left);
                        guide(room)
                    }
                    guide => guide,
                };
                Some(guide.map_err(|unguided| match unguided {
                    Unguided::Schema(reason) => Fault::new(FaultKind::SchemaRefused, reason),
                    Unguided::Short(tokens) => bad(too_short(call, room, prompt.len(), tokens)),
                })?)
            }
        };
        timer.change(|timing| timing.preparing += start.elapsed());
        timer.begin();
        let (deadline, since) = (call.deadline, Instant::now());
        let mut host = Running { model, cache, held, deadline, listener, timer, prompt: prompt.len(), since };
        let ended = host.read(&prompt).and_then(|cached| {
            host.since = Instant::now();
            let trie = vocabulary.tok_trie();
            let decoder = Decoder { trie, ends: vocabulary.ends(), guide, sampler, room };
            let pending = prompt[host.cache.len()..].to_vec();
            let ended = decoder.run(pending, &mut host);
            timer.chose(host.since.elapsed());
            Ok((cached, ended?))
        });
        match ended {
            Ok((cached, Ended { finish, closed_at, restrained, strays, omitted, log_probs })) => {
                let mut usage = Usage::new(prompt.len() as u64, log_probs.len() as u64);
                listener.log_probs(log_probs);
                if let Some(first) = strays.first() {
                    listener.note(stray(first, strays.len()));
                }
                if let Some(first) = omitted.first() {
                    listener.note(left_out(first, omitted.len()));
                }
                usage.cached_tokens = cached as u64;
                let end = End::new(finish, usage).with_model(Some(self.name.clone()));
                Ok(Some(end.with_closed_at(closed_at).with_restrained(restrained)))
            }
            Err(Halt::Dropped) => Ok(None),
            Err(Halt::Late) => {
                let message = "the deadline passed before the local model began to answer";
                Err(Fault::new(FaultKind::Timeout, message))
            }
            Err(Halt::Fault(fault)) => Err(fault),
        }
    }

    /// Rejects a call whose messages cannot fit, before they are tokenized.
    fn bound(&self, call: &Call) -> Result<(), Fault> {
        let parts = call.messages.iter().flat_map(|message| &message.parts);
        let texts = parts.filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        });
        let (tokens, context) = (self.vocabulary.min_tokens(texts), self.context());
        if tokens >= context { Err(bad(too_long(&format!("at least {tokens}"), context))) } else { Ok(()) }
    }

    /// Returns the token budget of an answer.
    fn room(&self, call: &Call, prompt: usize) -> Result<usize, Fault> {
        let context = self.context();
        // An answer needs room for at least one token.
        if prompt == 0 || prompt >= context {
            return Err(bad(too_long(&prompt.to_string(), context)));
        }
        let limit = call.max_tokens.map_or(self.restraint.default_tokens(), |tokens| tokens as usize);
        if limit == 0 {
            return Err(bad("max_tokens is 0"));
        }
        Ok(limit.min(context - prompt))
    }

    /// Runs the model once, so that candle's lazy initialisation does not delay the first call.
    fn warm_up(&mut self) -> candle_core::Result<()> {
        self.model.forward(&mut self.cache, &[0])?;
        self.cache.truncate(0);
        Ok(())
    }
}

/// The engine's model while it answers a call.
struct Running<'e, 'l> {
    model: &'e Model,
    cache: &'e mut Cache,
    held: &'e mut Vec<u32>,
    deadline: Option<Time>,
    listener: &'l mut dyn Listener,
    timer: &'e Timer,
    /// The number of tokens of the prompt.
    prompt: usize,
    /// The end of the last forward pass.
    since: Instant,
}

impl Running<'_, '_> {
    /// Computes all whole blocks of a prompt except the last tokens. Returns the number of tokens that an earlier call
    /// had computed.
    fn read(&mut self, prompt: &[u32]) -> Result<usize, Halt> {
        let whole = (prompt.len() - 1) / BLOCK * BLOCK;
        let known = self.held.iter().zip(prompt).take_while(|(held, token)| held == token).count();
        let kept = known.min(whole) / BLOCK * BLOCK;
        self.held.truncate(kept);
        self.cache.truncate(kept);
        let start = Instant::now();
        for blocks in prompt[kept..whole].chunks(BLOCKS_AT_ONCE * BLOCK) {
            self.check()?;
            self.model.read(self.cache, blocks).map_err(broken)?;
            self.held.extend(blocks);
        }
        self.timer.change(|timing| {
            timing.prompt_tokens += (whole - kept) as u64;
            timing.prompt += start.elapsed();
        });
        Ok(kept)
    }

    fn check(&self) -> Result<(), Halt> {
        if self.listener.is_gone() {
            return Err(Halt::Dropped);
        }
        let now = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_millis());
        if self.deadline.is_some_and(|Time(deadline)| now >= u128::from(deadline)) {
            return Err(Halt::Late);
        }
        Ok(())
    }
}

impl Host for Running<'_, '_> {
    fn next(&mut self, tokens: &[u32]) -> Result<Vec<f32>, Halt> {
        self.check()?;
        // The first tokens are the end of the prompt, and those that the schema forces after it.
        let is_prompt = self.cache.len() < self.prompt;
        let start = Instant::now();
        self.timer.chose(start - self.since);
        let logits = self.model.forward(self.cache, tokens).map_err(broken)?;
        self.since = Instant::now();
        let (took, tokens) = (self.since - start, tokens.len() as u64);
        if is_prompt {
            self.timer.read(tokens, took);
        } else {
            self.timer.looked(tokens, took);
        }
        Ok(logits)
    }

    fn rewind(&mut self, count: usize) {
        self.cache.truncate(self.cache.len() - count);
    }

    fn emit(&mut self, text: String) {
        self.listener.text(text);
    }
}

/// Returns the schema of the call, if it has one.
fn schema(call: &Call) -> Result<Option<Value>, Fault> {
    if !call.tools.is_empty() {
        return Err(Fault::new(FaultKind::Unsupported, "a local model takes no tools"));
    }
    match call.enforcement() {
        Enforcement::None => Ok(None),
        Enforcement::JsonObject => Ok(Some(json!({"type": "object"}))),
        Enforcement::Schema => match call.schema() {
            Some(schema) => Ok(Some(schema.clone())),
            None => Err(bad("the call asks for a schema to be enforced and brings none")),
        },
        _ => {
            let message = "a local model enforces a schema while decoding, not as the arguments of a tool";
            Err(Fault::new(FaultKind::Unsupported, message))
        }
    }
}

/// Returns the rules to enforce while decoding. Their paths refer to the original document, so there are none if
/// lifting moves any value.
fn rules(call: &Call) -> &[Rule] {
    let stays =
        |op: &LiftOp| matches!(op.lift, Lift::Reorder(_) | Lift::DropNull(_) | Lift::DropAbsent { .. });
    if call.lowered.lift.iter().all(stays) { &call.rules } else { &[] }
}

/// Returns the first of some paths, and the number of the others.
fn counted(first: &JsonPath, count: usize) -> String {
    let more = if count > 1 { format!(" and {} further values", count - 1) } else { String::new() };
    format!("{first}{more}")
}

/// Returns the remark on optional members without a probable text.
fn left_out(first: &JsonPath, count: usize) -> String {
    let paths = counted(first, count);
    format!("{paths} was left out, because the model finds no text of the source probable there")
}

/// Returns the remark on values that did not follow the source text.
fn stray(first: &JsonPath, count: usize) -> String {
    let paths = counted(first, count);
    format!(
        "{paths} was not written along the words and numbers of the source text, because none of them fits the schema or it has a `pattern` or `format`: only the rule `grounded` checks the value"
    )
}

fn bad(message: impl Into<String>) -> Fault {
    Fault::new(FaultKind::BadRequest, message)
}

fn too_long(tokens: &str, context: usize) -> String {
    format!(
        "the prompt has {tokens} tokens and the model's context {context}: shorten it, or use a model with a larger context"
    )
}

fn too_short(call: &Call, room: usize, prompt: usize, needed: usize) -> String {
    match call.max_tokens {
        Some(limit) if room == limit as usize => {
            format!("max_tokens {limit} is below the shortest document of this schema ({needed} tokens)")
        }
        _ => format!(
            "after the prompt's {prompt} tokens there is room for {room}, below the shortest document of this schema ({needed} tokens)"
        ),
    }
}

/// Returns the fault of a model that failed on valid tokens: a defect, for which no retry helps.
fn broken(error: candle_core::Error) -> Halt {
    let message = format!("the local model failed: {}", crate::error::one_line(&error.to_string()));
    Halt::Fault(Fault::new(FaultKind::Unsupported, message))
}
