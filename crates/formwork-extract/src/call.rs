use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use formwork_core::{
    Answer, Call, Completion, Delta, Fault, FaultKind, Finish, Provider, Usage, Violation, Watch,
};
use futures_core::Stream;

use crate::interrupt::{Interrupt, Interruption};
use crate::observer::Observers;

/// The outcome of one call.
pub(crate) struct CallResult {
    pub(crate) completion: Completion,
    /// Why it was stopped before its end, if it was and the document was not whole by then.
    pub(crate) stopped: Option<Violation>,
}

/// Makes a call and reads its answer as it arrives; stops it where it runs away.
///
/// A deadline that passes while text arrives cuts the answer off, as a limit of tokens does. If there is no text by then
/// it is a time-out like any other. A cancel is neither: then nobody wants to know any more.
pub(crate) async fn make(
    provider: &dyn Provider,
    call: &Call,
    interrupt: &mut Interrupt<'_>,
    observers: &Observers<'_>,
) -> Result<Result<CallResult, (Fault, Usage)>, Interruption> {
    let mut completion = Completion::new("");
    let missed = match listen(provider, call, interrupt, observers, &mut completion).await {
        Ok(Ok(stopped)) => return Ok(Ok(CallResult { completion, stopped })),
        Ok(Err(fault)) => Ok(fault),
        Err(interruption) => Err(interruption),
    };
    let is_late = match &missed {
        Err(interruption) => *interruption == Interruption::Late,
        Ok(fault) => {
            fault.kind == FaultKind::Timeout && interrupt.left().is_some_and(|left| left <= DEADLINE_SLACK)
        }
    };
    // What arrived of an answer was paid for, whatever became of it.
    let arrived = completion.text.len() + completion.reasoning.len();
    let usage = if arrived > 0 { Usage::estimate(call, arrived) } else { Usage::default() };
    if is_late && !completion.text.is_empty() {
        let completion = completion.with_finish(Finish::Length).with_usage(usage);
        return Ok(Ok(CallResult { completion, stopped: None }));
    }
    if is_late && missed.is_ok() {
        // The clocks differ by milliseconds, and why the run ends must not depend on them.
        interrupt.until_deadline().await;
    }
    match missed {
        Ok(fault) => Ok(Err((fault, usage))),
        Err(Interruption::Late) => {
            let fault = Fault::new(FaultKind::Timeout, "the deadline passed before the answer began");
            Ok(Err((fault, usage)))
        }
        Err(Interruption::Cancelled) => Err(Interruption::Cancelled),
    }
}

/// How long before the deadline a time-out is one of the deadline: transports and engines keep the same deadline on
/// clocks of their own.
pub(crate) const DEADLINE_SLACK: Duration = Duration::from_millis(50);

/// Reads an answer into `completion`. Returns why it was stopped before its end, if it was and the document was not
/// whole by then.
async fn listen(
    provider: &dyn Provider,
    call: &Call,
    interrupt: &mut Interrupt<'_>,
    observers: &Observers<'_>,
    completion: &mut Completion,
) -> Result<Result<Option<Violation>, Fault>, Interruption> {
    let mut answer = match interrupt.or(provider.call(call)).await? {
        Ok(answer) => answer,
        Err(fault) => return Ok(Err(fault)),
    };
    // Each has its own: what a model thinks and what it answers may well begin alike.
    let (mut watch, mut thinking) = (Watched::new(Watch::default()), Watched::new(Watch::over_prose()));
    loop {
        let delta = match interrupt.or(next(&mut answer)).await? {
            Some(Ok(delta)) => delta,
            Some(Err(fault)) => return Ok(Err(fault)),
            None => return Ok(Err(Fault::cut_off("its end marker is missing"))),
        };
        observers.tell(|observer, run| observer.delta(run, &delta));
        observers.pause().await;
        let runaway = match delta {
            Delta::Text(text) => {
                completion.text.push_str(&text);
                watch.look(&completion.text)
            }
            Delta::Reasoning(text) => {
                completion.reasoning.push_str(&text);
                // Spans are bytes of the answer's text.
                thinking.look(&completion.reasoning).map(|runaway| runaway.with_span(None))
            }
            end @ Delta::End { .. } => {
                completion.push(end);
                return Ok(Ok(None));
            }
            _ => None,
        };
        if let Some(runaway) = runaway {
            // The rest of the piece goes the way of the pieces that would have come: where a piece ends makes no
            // difference.
            if let Some(span) = runaway.span {
                completion.text.truncate(completion.text.ceil_char_boundary(span.end));
            }
            completion.finish = Finish::Stopped;
            // What runs on after a whole document takes nothing away from it: that is judged like any other.
            return Ok(Ok(Some(runaway).filter(|_| !watch.watch.is_after_document())));
        }
    }
}

/// A watch over a text that grows. It looks at no byte of a text that is too short to have run away, as most answers are.
struct Watched {
    watch: Watch,
    /// How many bytes it has looked at.
    seen: usize,
}

impl Watched {
    const fn new(watch: Watch) -> Self {
        Self { watch, seen: 0 }
    }

    /// Looks at what the text has more than the last time.
    fn look(&mut self, text: &str) -> Option<Violation> {
        if text.len() < Watch::MIN_BYTES {
            return None;
        }
        let more = text.get(self.seen..).unwrap_or_default();
        self.seen = text.len();
        self.watch.push(more)
    }
}

async fn next(answer: &mut Answer) -> Option<Result<Delta, Fault>> {
    poll_fn(|cx| Pin::new(&mut *answer).poll_next(cx)).await
}
