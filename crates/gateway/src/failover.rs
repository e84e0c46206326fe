//! The loop over the targets of a request, in whatever way they are called.

use formwork_core::{Fault, FaultKind, Usage};
use tokio::time::{Duration, Instant};

use crate::access::now;
use crate::engine::Engine;
use crate::names::Target;
use crate::problem::{Kind, Problem};
use crate::record::Made;

/// One way of calling targets.
pub(crate) trait Attempt {
    type Answer;

    /// Returns whether a target can be called in this way.
    fn takes(&self, _target: &Target) -> bool {
        true
    }

    /// Whether an answer is whole once it is returned. Of others, the end shows whether the target is in service.
    const IS_WHOLE: bool;

    /// Returns the end of the time that the client gives the request; `None` if it leaves that to the service.
    fn until(&self) -> Option<Instant>;

    /// Returns the usage of a call that has begun, if nothing else is ever known of it.
    fn begun(&self) -> Usage;

    /// Calls a target.
    fn call(&mut self, target: &Target) -> impl Future<Output = Result<Self::Answer, Failed>> + Send;
}

/// A call without an answer.
pub(crate) struct Failed {
    /// The failure of the target; `None` if it is not to blame.
    pub(crate) fault: Option<Fault>,
    pub(crate) problem: Problem,
    /// The usage of the call all the same.
    pub(crate) usage: Usage,
    /// Whether no other target may be called, because a part of the answer was shown or the client left.
    pub(crate) is_final: bool,
}

/// Calls the first of the targets that answers, and notes each call and the health of each target. Targets that fail are taken from the
/// list, except the last. Returns `None` if there is no target, or if the next one cannot be called in this way.
///
/// # Errors
/// The [`Problem`] of the last call, which has ended.
pub(crate) async fn first<A: Attempt>(
    engine: &Engine,
    targets: &mut Vec<usize>,
    made: &mut Vec<Made>,
    attempt: &mut A,
) -> Result<Option<A::Answer>, Problem> {
    while let Some(nth) = targets.first().copied() {
        let Some(target) = engine.names.targets().get(nth) else {
            targets.remove(0);
            continue;
        };
        if !attempt.takes(target) {
            break;
        }
        made.push(Made::new(nth, now(), attempt.begun()));
        let failed = match attempt.call(target).await {
            Ok(answer) => {
                if A::IS_WHOLE {
                    answered(engine, made);
                }
                target.has_answered(now());
                return Ok(Some(answer));
            }
            Err(failed) => failed,
        };
        let is_late = |fault: &&Fault| attempt.until().is_some_and(|until| is_late(fault, until));
        if let Some(fault) = failed.fault.as_ref().filter(|fault| !is_late(fault)) {
            engine.outages.failed(target.name(), fault);
        }
        if let Some(made) = made.last_mut() {
            made.fail(failed.usage, &failed.problem);
        }
        if failed.is_final || targets.len() == 1 {
            return Err(failed.problem);
        }
        targets.remove(0);
    }
    Ok(None)
}

/// Returns whether a call failed because the time for its request is over, which says nothing about its target.
pub(crate) fn is_late(fault: &Fault, until: Instant) -> bool {
    /// The transport's clock has milliseconds.
    const SLACK: Duration = Duration::from_millis(20);

    fault.kind == FaultKind::Timeout && until.saturating_duration_since(Instant::now()) < SLACK
}

/// Returns the problem of a request that only targets of its protocol take, which have all failed.
pub(crate) fn unanswered() -> Problem {
    Problem::new(Kind::Unavailable, "the targets of the protocol of the request do not answer")
}

/// Returns the target of the last call.
pub(crate) fn called<'e>(engine: &'e Engine, made: &[Made]) -> Option<&'e Target> {
    engine.names.targets().get(made.last()?.target())
}

/// Notes that the target of the last call failed after its answer had begun. One that only finds fault with the request is in service, as
/// is one that lacks an API.
pub(crate) fn failed(engine: &Engine, made: &[Made], fault: &Fault) {
    if matches!(fault.kind, FaultKind::BadRequest | FaultKind::SchemaRefused | FaultKind::Unsupported) {
        answered(engine, made);
    } else if let Some(target) = called(engine, made) {
        engine.outages.failed(target.name(), fault);
    }
}

/// Notes that the answer of the last call came to its end.
pub(crate) fn answered(engine: &Engine, made: &[Made]) {
    if let (Some(target), Some(made)) = (called(engine, made), made.last()) {
        engine.outages.answered(target.name(), made.started());
    }
}
