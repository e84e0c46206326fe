use std::future::poll_fn;
use std::pin::Pin;

use formwork_core::{Answer, Call, Completion, Delta, Fault, FaultKind, Finish, Provider, Violation, Watch};
use formwork_json::{Incremental, Progress};
use futures_core::Stream;

use crate::interrupt::{Interrupt, Interruption};
use crate::observer::Audience;

/// What came of one call.
pub(crate) struct Heard {
    pub(crate) completion: Completion,
    /// Why it was stopped before its end, if it was and the document was not whole by then.
    pub(crate) stopped: Option<Violation>,
}

/// Makes a call and reads its answer as it arrives; stops it where it runs away.
///
/// The deadline is a fault like any other time-out, a cancel is not: then nobody wants to know any more.
pub(crate) async fn make(
    provider: &dyn Provider,
    call: &Call,
    interrupt: &mut Interrupt<'_>,
    audience: &Audience<'_>,
) -> Result<Result<Heard, Fault>, Interruption> {
    match listen(provider, call, interrupt, audience).await {
        Err(Interruption::Late) => {
            Ok(Err(Fault::new(FaultKind::Timeout, "the deadline passed before the answer was complete")))
        }
        other => other,
    }
}

async fn listen(
    provider: &dyn Provider,
    call: &Call,
    interrupt: &mut Interrupt<'_>,
    audience: &Audience<'_>,
) -> Result<Result<Heard, Fault>, Interruption> {
    let mut answer = match interrupt.or(provider.call(call)).await? {
        Ok(answer) => answer,
        Err(fault) => return Ok(Err(fault)),
    };
    let mut completion = Completion::new("");
    // Each has its own: what a model thinks and what it answers may well begin alike.
    let (mut watch, mut thinking) = (Watch::default(), Watch::default());
    loop {
        let delta = match interrupt.or(next(&mut answer)).await? {
            Some(Ok(delta)) => delta,
            Some(Err(fault)) => return Ok(Err(fault)),
            None => {
                let fault = Fault::new(FaultKind::BadWire, "the answer ended without its end marker");
                return Ok(Err(fault));
            }
        };
        audience.tell(|observer, run| observer.delta(run, &delta));
        audience.pause().await;
        let stopped = match delta {
            Delta::Text(text) => {
                completion.text.push_str(&text);
                watch.push(&text)
            }
            Delta::Reasoning(text) => {
                completion.reasoning.push_str(&text);
                thinking.push(&text)
            }
            Delta::End { finish, usage, closed_at, restrained, model } => {
                let completion = Completion { finish, usage, closed_at, restrained, model, ..completion };
                return Ok(Ok(Heard { completion, stopped: None }));
            }
            _ => None,
        };
        if stopped.is_some() {
            // What runs on after a whole document takes nothing away from it: that is judged like any other.
            let whole =
                matches!(Incremental::new().push(&completion.text, |_| {}), Progress::Complete { .. });
            let stopped = stopped.filter(|_| !whole);
            return Ok(Ok(Heard { completion: completion.with_finish(Finish::Stopped), stopped }));
        }
    }
}

async fn next(answer: &mut Answer) -> Option<Result<Delta, Fault>> {
    poll_fn(|cx| Pin::new(&mut *answer).poll_next(cx)).await
}
