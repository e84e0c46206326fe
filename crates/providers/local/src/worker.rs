use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use formwork_core::{Call, Delta, Fault, FaultKind, LogProb};
use tokio::sync::mpsc::UnboundedSender;

use crate::engine::{Engine, Listener};
use crate::error::panic_text;
use crate::timing::Timer;
use crate::{LocalError, Restraint};

/// The receiver of one answer's pieces. An answer is bounded, so the channel needs no bound.
pub(crate) type Sink = UnboundedSender<Result<Delta, Fault>>;

/// A call with its receiver.
pub(crate) struct Job {
    pub(crate) call: Call,
    pub(crate) sink: Sink,
}

/// The properties of a loaded model.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) model: String,
    pub(crate) context: usize,
    pub(crate) late_system: bool,
    pub(crate) restraint: Restraint,
    pub(crate) timer: Timer,
}

/// Starts the thread that loads and runs a model: it computes for seconds, which would block an async task.
///
/// Waits until the model is loaded. The thread ends when the last sender of jobs is dropped.
pub(crate) fn start(
    load: impl FnOnce() -> Result<Engine, LocalError> + Send + 'static,
) -> Result<(Sender<Job>, Facts), LocalError> {
    let (jobs, queue) = channel();
    let (ready, loaded) = channel();
    let run = move || {
        let engine = catch_unwind(AssertUnwindSafe(load))
            .unwrap_or_else(|panic| Err(LocalError::Thread(panic_text(&*panic))));
        match engine {
            Ok(engine) => {
                let facts = Facts {
                    model: engine.name().to_owned(),
                    context: engine.context(),
                    late_system: engine.takes_late_system(),
                    restraint: engine.restraint(),
                    timer: engine.timer(),
                };
                if ready.send(Ok(facts)).is_ok() {
                    serve(engine, &queue);
                }
            }
            // Sending fails only if the waiting thread is gone.
            Err(error) => drop(ready.send(Err(error))),
        }
    };
    thread::Builder::new()
        .name("formwork-local".to_owned())
        .spawn(run)
        .map_err(|error| LocalError::Thread(error.to_string()))?;
    let facts = loaded.recv().map_err(|_| LocalError::Thread("it ended while loading".to_owned()))??;
    Ok((jobs, facts))
}

/// Returns the fault of a call to a model whose thread has ended.
pub(crate) fn gone() -> Fault {
    Fault::new(FaultKind::Unsupported, "the local model's thread has ended")
}

/// Answers calls in the order of their arrival.
fn serve(mut engine: Engine, queue: &Receiver<Job>) {
    let mut broken: Option<Fault> = None;
    for Job { call, sink } in queue {
        if let Some(fault) = &broken {
            drop(sink.send(Err(fault.clone())));
            continue;
        }
        let mut listener = Stream { sink: &sink };
        let answered = catch_unwind(AssertUnwindSafe(|| engine.answer(&call, &mut listener)));
        // Sending fails if the answer was dropped.
        drop(match answered {
            Ok(Ok(Some(end))) => sink.send(Ok(Delta::End(end))),
            Ok(Ok(None)) => Ok(()),
            Ok(Err(fault)) => sink.send(Err(fault)),
            Err(panic) => {
                // A panic may have left the engine in an inconsistent state, so it answers no more calls.
                let message =
                    format!("the local model panicked and is out of service: {}", panic_text(&*panic));
                let fault = Fault::new(FaultKind::Unsupported, message);
                broken = Some(fault.clone());
                sink.send(Err(fault))
            }
        });
    }
}

struct Stream<'s> {
    sink: &'s Sink,
}

impl Listener for Stream<'_> {
    fn text(&mut self, text: String) {
        drop(self.sink.send(Ok(Delta::Text(text))));
    }

    fn log_probs(&mut self, tokens: Vec<LogProb>) {
        drop(self.sink.send(Ok(Delta::LogProbs(tokens))));
    }

    fn note(&mut self, note: String) {
        drop(self.sink.send(Ok(Delta::Note(note))));
    }

    fn is_gone(&self) -> bool {
        self.sink.is_closed()
    }
}
