use std::fmt;
use std::path::Path;
use std::pin::Pin;
use std::sync::mpsc::Sender;
use std::task::{Context, Poll};

use async_trait::async_trait;
use formwork_core::{Answer, Call, Capabilities, Delta, Enforcement, Fault, Provider};
use futures_core::Stream;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::engine::Engine;
use crate::model::Tensors;
use crate::worker::{self, Facts, Job};
use crate::{Known, LocalError, LocalOptions, Restraint, Step, Timing};

/// A language model in this process.
///
/// A clone is another handle to the same model. Calls are answered one after another, in the order in which they come,
/// on a thread of the model's own; dropping an [`Answer`] stops it within one token.
///
/// Temperature is 0 (the most probable token), top-p 0.95 and the seed a constant where a call does not say, so that the
/// same call brings the same answer. Where it does not say `max_tokens` either, an answer may have what the context leaves,
/// at most 8,192 tokens, and at most 512 under [`Restraint::TinyModel`].
///
/// An answer to a schema is always a whole document: when the tokens run out, or the deadline passes after the model has
/// begun to answer, the document is completed without the model in the shortest way.
/// [`Finish::Length`](formwork_core::Finish) says so and `closed_at` says from where on.
///
/// ```no_run
/// use formwork_core::Provider;
/// use formwork_local::{Local, LocalOptions};
///
/// let local = Local::open(LocalOptions::new())?;
/// println!("{}: {:?}", local.model(), local.capabilities());
/// # Ok::<(), formwork_local::LocalError>(())
/// ```
#[derive(Clone)]
pub struct Local {
    jobs: Sender<Job>,
    facts: Facts,
    capabilities: Capabilities,
}

impl Local {
    /// Loads a model; fetches it first if it is a known one that is not on this machine.
    ///
    /// Blocks for half a second with the default model, and for as long as a download takes: async code calls it on a
    /// thread for blocking work.
    ///
    /// # Errors
    /// [`LocalError`] says in one line what is wrong with which file, or how weights are got.
    pub fn open(options: LocalOptions) -> Result<Self, LocalError> {
        let (jobs, facts) = worker::start(move || {
            let store = options.store()?;
            let known = Known::find(&options.model);
            // A folder that has the name of a known model is in nobody's way.
            let folder = Path::new(&options.model);
            if known.is_none() && folder.is_dir() {
                return Err(LocalError::file(folder, "it is a folder: name the .gguf file in it"));
            }
            let path = store.fetch(&options.model)?;
            let sha256 = known.map(|known| known.sha256);
            Engine::load(Tensors::open(&path, sha256, &store)?, options.context, options.restraint)
        })?;
        let mut capabilities = Capabilities::new(Enforcement::Schema)
            .with_dialect("llguidance")
            .with_temperature()
            .with_top_p()
            .with_seed()
            .with_rules()
            .with_limit_kept()
            .with_context_tokens(u32::try_from(facts.context).unwrap_or(u32::MAX));
        if facts.late_system {
            capabilities = capabilities.with_late_system();
        }
        Ok(Self { jobs, facts, capabilities })
    }

    /// Returns the name that the model gives itself.
    pub fn model(&self) -> &str {
        &self.facts.model
    }

    /// Returns the restraint that its answers are written under.
    pub const fn restraint(&self) -> Restraint {
        self.facts.restraint
    }

    /// Where its time went until the end of the last call.
    pub fn timing(&self) -> Timing {
        self.facts.timer.get()
    }

    /// Where the time of its last answer went, step by step.
    pub fn steps(&self) -> Vec<Step> {
        self.facts.timer.steps()
    }
}

#[async_trait]
impl Provider for Local {
    fn name(&self) -> &str {
        "local"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn call(&self, call: &Call) -> Result<Answer, Fault> {
        let (sink, pieces) = unbounded_channel();
        self.jobs.send(Job { call: call.clone(), sink }).map_err(|_| worker::gone())?;
        Ok(Answer::new(Pieces { pieces, ended: false }))
    }
}

impl fmt::Debug for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Local").field("model", &self.facts.model).finish_non_exhaustive()
    }
}

/// The pieces of an answer as they come from the model's thread.
struct Pieces {
    pieces: UnboundedReceiver<Result<Delta, Fault>>,
    ended: bool,
}

impl Stream for Pieces {
    type Item = Result<Delta, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let piece = self.pieces.poll_recv(cx);
        match &piece {
            Poll::Ready(Some(Ok(Delta::End { .. }) | Err(_))) => self.ended = true,
            Poll::Ready(None) => {
                // The thread is gone without a word; it must not look like an answer that was cut off on the way.
                self.ended = true;
                return Poll::Ready(Some(Err(worker::gone())));
            }
            _ => {}
        }
        piece
    }
}
