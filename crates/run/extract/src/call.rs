use formwork_core::{
    Call, CallId, Completion, Context, Event, Fault, FaultKind, Finish, Follower, Plan, Provider, Usage,
    Violation, Watch,
};
use futures_util::StreamExt as _;

use crate::interrupt::{Interrupt, Interruption};
use crate::observer::Observers;

/// The answer to one call, read along with its contract.
pub(crate) struct Reading<'a> {
    pub(crate) plan: &'a Plan,
    /// The text and the data for the rules.
    pub(crate) cx: Context<'a>,
    pub(crate) follower: Follower,
}

/// Makes a call, reads the answer as it arrives, and stops runaway output and answers that cannot become valid. Returns the event that
/// reports the result.
pub(crate) async fn make(
    provider: &dyn Provider,
    id: CallId,
    call: &Call,
    reading: &mut Reading<'_>,
    interrupt: &mut Interrupt<'_>,
    observers: &Observers<'_>,
) -> Event {
    let (mut completion, mut began) = (Completion::new(""), false);
    let heard = listen(provider, call, reading, interrupt, observers, &mut completion, &mut began).await;
    let fault = match heard {
        Ok(Ok(None)) => return Event::answered(id, completion),
        Ok(Ok(Some(reason))) => return Event::stopped(id, completion, reason),
        Ok(Err(fault)) => fault,
        Err(Interruption::Late) => {
            Fault::new(FaultKind::Timeout, "the deadline passed before the answer began")
        }
        Err(Interruption::Cancelled) if began => return Event::dropped(id, completion),
        Err(Interruption::Cancelled) => return Event::Cancelled,
    };
    if began { Event::broken_off(id, completion, fault) } else { Event::failed(id, fault, Usage::default()) }
}

/// Reads an answer into `completion`, and sets `began` when the server begins it. Returns the reason why the answer was stopped, if it was and the document was
/// incomplete.
async fn listen(
    provider: &dyn Provider,
    call: &Call,
    reading: &mut Reading<'_>,
    interrupt: &mut Interrupt<'_>,
    observers: &Observers<'_>,
    completion: &mut Completion,
    began: &mut bool,
) -> Result<Result<Option<Violation>, Fault>, Interruption> {
    let mut answer = match interrupt.or(provider.call(call)).await? {
        Ok(answer) => answer,
        Err(fault) => return Ok(Err(fault)),
    };
    *began = true;
    // Reasoning and answer have separate watches, because both may start with the same text.
    let mut thinking = Watched::new(Watch::over_prose());
    let mut watch = Watched::new(if call.ends_loops { Watch::for_tiny_model() } else { Watch::default() });
    let (mut followed, mut pieces) = (0, 0);
    loop {
        let delta = match interrupt.or(answer.next()).await? {
            Some(Ok(delta)) => delta,
            Some(Err(fault)) => return Ok(Err(fault)),
            None => return Ok(Err(Fault::cut_off("its end marker is missing"))),
        };
        observers.notify(|observer, run| observer.delta(run, &delta));
        let is_ended = completion.push(delta);
        let reason = reading.follower.push(completion.text.get(followed..).unwrap_or_default());
        let has_grown = followed < completion.text.len();
        followed = completion.text.len();
        pieces += usize::from(has_grown);
        if is_ended {
            observers.progress(|| reading.follower.last_progress(reading.plan, &reading.cx));
        } else if has_grown {
            observers.progress(|| reading.follower.progress(reading.plan, &reading.cx));
        }
        observers.pause().await;
        if is_ended {
            return Ok(Ok(None));
        }
        let stop = |completion: &mut Completion| {
            // The server does not count all tokens of a call that is stopped, and a piece has at least one.
            let written = completion.text.len() + completion.reasoning.len();
            completion.usage = completion.usage.or_more(Usage::estimate(call, written.max(4 * pieces)));
            completion.finish = Finish::Stopped;
        };
        if let Some(reason) = reason {
            stop(completion);
            return Ok(Ok(Some(reason)));
        }
        watch.watch.allow_runs(reading.follower.possible_until());
        // Spans refer to the text of the answer, not to the reasoning.
        let endless_thought = thinking.look(&completion.reasoning).map(|runaway| runaway.with_span(None));
        let runaway = endless_thought.or_else(|| watch.look(&completion.text));
        if let Some(runaway) = runaway {
            // The rest of the chunk is dropped like all later chunks, so that the result does not depend on the chunks.
            if let Some(span) = runaway.span {
                completion.text.truncate(completion.text.ceil_char_boundary(span.end));
            }
            stop(completion);
            // Runaway text after a complete document does not affect the document, which is judged normally.
            return Ok(Ok(Some(runaway).filter(|_| !watch.watch.is_after_document())));
        }
    }
}

/// A watch over a growing text. It skips texts below the minimum length of runaway output, as most answers are.
struct Watched {
    watch: Watch,
    /// The number of bytes that the watch has read.
    seen: usize,
}

impl Watched {
    const fn new(watch: Watch) -> Self {
        Self { watch, seen: 0 }
    }

    /// Passes the new part of the text to the watch.
    fn look(&mut self, text: &str) -> Option<Violation> {
        if text.len() < self.watch.min_len() {
            return None;
        }
        let more = text.get(self.seen..).unwrap_or_default();
        self.seen = text.len();
        self.watch.push(more)
    }
}
