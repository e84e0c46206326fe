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
use crate::{Known, LocalError, LocalOptions, Restraint, Step, Store, Timing};

/// A language model in this process.
///
/// A clone is another handle to the same model. Calls are answered in the order of their arrival, on the model's own
/// thread. Dropping an [`Answer`] stops it within one token.
///
/// The defaults of a call are temperature 0 (the most probable token), top-p 0.95 and a constant seed, so that the same
/// call gives the same answer. The default of `max_tokens` is the rest of the context, at most 8,192 tokens, or at most
/// 512 under [`Restraint::TinyModel`].
///
/// An answer to a schema is always a complete document. If the tokens run out, or the deadline passes after the first
/// token, the decoder completes the document in the shortest way without the model. The answer then has
/// [`Finish::Length`](formwork_core::Finish) and `closed_at`.
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
    /// Loads a model. A known model that is not on this machine is fetched first.
    ///
    /// Blocks for half a second with the default model, and for the duration of a download. Async code calls it on a
    /// thread for blocking work.
    ///
    /// # Errors
    /// [`LocalError`] with the file and the reason, or the command that gets the weights.
    pub fn open(options: LocalOptions) -> Result<Self, LocalError> {
        let (jobs, facts) = worker::start(move || {
            let store = options.store.map_or_else(Store::open, Ok)?;
            let known = Known::find(&options.model);
            // A folder may have the name of a known model.
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

    /// Returns the name in the model's file.
    pub fn model(&self) -> &str {
        &self.facts.model
    }

    /// Returns the restraint of answers.
    pub const fn restraint(&self) -> Restraint {
        self.facts.restraint
    }

    /// Returns the time that the model spent on each kind of work, up to the end of the last call.
    pub fn timing(&self) -> Timing {
        self.facts.timer.get()
    }

    /// Returns the time of each step of the last answer.
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

/// The stream of an answer's pieces from the model's thread.
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
            Poll::Ready(Some(Ok(Delta::End(_)) | Err(_))) => self.ended = true,
            Poll::Ready(None) => {
                // The thread has ended without a final piece, which must not look like a truncated answer.
                self.ended = true;
                return Poll::Ready(Some(Err(worker::gone())));
            }
            _ => {}
        }
        piece
    }
}
