use std::time::Duration;

use formwork_core::{
    Call, Completion, Fault, FaultKind, Finish, Follower, Provider, Usage, Violation, Watch,
};
use futures_util::StreamExt as _;

use crate::interrupt::{Interrupt, Interruption};
use crate::observer::Observers;

/// The outcome of one call.
pub(crate) struct Called {
    pub(crate) completion: Completion,
    /// The reason why the driver stopped the answer, if it did and the document was incomplete.
    pub(crate) stopped: Option<Violation>,
}

/// Makes a call, reads the answer as it arrives, and stops runaway output and answers that cannot become valid.
///
/// A deadline that passes while text arrives cuts the answer off, like a token limit. Without any text it is a time-out.
pub(crate) async fn make(
    provider: &dyn Provider,
    call: &Call,
    follower: &mut Follower,
    interrupt: &mut Interrupt<'_>,
    observers: &Observers<'_>,
) -> Result<Result<Called, (Fault, Usage)>, Interruption> {
    let mut completion = Completion::new("");
    let missed = match listen(provider, call, follower, interrupt, observers, &mut completion).await {
        Ok(Ok(stopped)) => return Ok(Ok(Called { completion, stopped })),
        Ok(Err(fault)) => Ok(fault),
        Err(interruption) => Err(interruption),
    };
    let is_late = match &missed {
        Err(interruption) => *interruption == Interruption::Late,
        Ok(fault) => {
            fault.kind == FaultKind::Timeout && interrupt.left().is_some_and(|left| left <= DEADLINE_SLACK)
        }
    };
    // The provider charges for the text that arrived, even if the call failed afterwards.
    let arrived = completion.text.len() + completion.reasoning.len();
    let usage = if arrived > 0 { Usage::estimate(call, arrived) } else { Usage::default() };
    // The ledger has no separate entry for the probe before a failed call, so its usage is added here.
    let failed = completion.probe.as_deref().map_or(usage, |probe| usage.plus(*probe));
    if is_late && !completion.text.is_empty() {
        let completion = completion.with_finish(Finish::Length).with_usage(usage);
        return Ok(Ok(Called { completion, stopped: None }));
    }
    if is_late && missed.is_ok() {
        // The clocks of provider and driver differ by milliseconds, and the reason for the end must not depend on the difference.
        interrupt.until_deadline().await;
    }
    match missed {
        Ok(fault) => Ok(Err((fault, failed))),
        Err(Interruption::Late) => {
            let fault = Fault::new(FaultKind::Timeout, "the deadline passed before the answer began");
            Ok(Err((fault, failed)))
        }
        Err(Interruption::Cancelled) => Err(Interruption::Cancelled),
    }
}

/// The time before the deadline in which a time-out counts as caused by the deadline: transports and engines apply the same
/// deadline with clocks of their own.
pub(crate) const DEADLINE_SLACK: Duration = Duration::from_millis(50);

/// Reads an answer into `completion`. Returns the reason why the answer was stopped, if it was and the document was
/// incomplete.
async fn listen(
    provider: &dyn Provider,
    call: &Call,
    follower: &mut Follower,
    interrupt: &mut Interrupt<'_>,
    observers: &Observers<'_>,
    completion: &mut Completion,
) -> Result<Result<Option<Violation>, Fault>, Interruption> {
    let mut answer = match interrupt.or(provider.call(call)).await? {
        Ok(answer) => answer,
        Err(fault) => return Ok(Err(fault)),
    };
    // Reasoning and answer have separate watches, because both may start with the same text.
    let (mut watch, mut thinking) = (Watched::new(Watch::default()), Watched::new(Watch::over_prose()));
    let mut followed = 0;
    loop {
        let delta = match interrupt.or(answer.next()).await? {
            Some(Ok(delta)) => delta,
            Some(Err(fault)) => return Ok(Err(fault)),
            None => return Ok(Err(Fault::cut_off("its end marker is missing"))),
        };
        observers.notify(|observer, run| observer.delta(run, &delta));
        observers.pause().await;
        if completion.push(delta) {
            return Ok(Ok(None));
        }
        if let Some(reason) = follower.push(completion.text.get(followed..).unwrap_or_default()) {
            completion.finish = Finish::Stopped;
            return Ok(Ok(Some(reason)));
        }
        followed = completion.text.len();
        watch.watch.allow_runs(follower.possible_until());
        // Spans refer to the text of the answer, not to the reasoning.
        let endless_thought = thinking.look(&completion.reasoning).map(|runaway| runaway.with_span(None));
        let runaway = endless_thought.or_else(|| watch.look(&completion.text));
        if let Some(runaway) = runaway {
            // The rest of the chunk is dropped like all later chunks, so that the result does not depend on the chunks.
            if let Some(span) = runaway.span {
                completion.text.truncate(completion.text.ceil_char_boundary(span.end));
            }
            completion.finish = Finish::Stopped;
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
        if text.len() < Watch::MIN_BYTES {
            return None;
        }
        let more = text.get(self.seen..).unwrap_or_default();
        self.seen = text.len();
        self.watch.push(more)
    }
}
