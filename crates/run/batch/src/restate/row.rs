//! Processes a row in a worker, with any durable journal.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use formwork_core::{Clock as _, Error, ErrorKind, Run, Step, Time};
use formwork_extract::{Extractor, TokioClock};
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::entry::{Entry, resume};
use super::message::{RowReply, RowRequest, RunEnd};
use super::slots::Slots;
use crate::halt::one_step;

/// The shortest wait that is a durable timer. A shorter one is waited for in the process, because a timer costs as much as a step.
const TIMER: Duration = Duration::from_secs(1);

/// Makes the steps of one row durable. A row that is begun again meets the same steps in the same order, and gets the results
/// that were kept.
#[async_trait]
pub(super) trait Durable: Sync {
    /// The reason why the row ends here, to be begun again.
    type Error: Send;

    /// Returns the entry of the next step; carries `work` out and keeps its entry if there is none.
    async fn step(&self, work: BoxFuture<'static, Entry>) -> Result<Entry, Self::Error>;

    /// Waits, even if the process ends meanwhile.
    async fn sleep(&self, time: Duration) -> Result<(), Self::Error>;
}

/// The clock and the permits that the rows of a worker share.
#[derive(Debug, Clone)]
pub(super) struct Calls {
    pub(super) clock: TokioClock,
    /// Limits the number of calls that the worker makes at the same time.
    pub(super) permits: Arc<Semaphore>,
    /// The pace of the targets, if they have one.
    pub(super) slots: Option<Arc<Slots>>,
}

/// Takes a row to its result.
pub(super) async fn row<D: Durable>(
    durable: &D,
    extractor: &Extractor<Value>,
    calls: &Calls,
    request: RowRequest,
) -> Result<RowReply, D::Error> {
    let RowRequest { input, run, stored, .. } = request;
    let continued = run.as_deref().filter(|run| extractor.continued((*run).clone()).is_some()).cloned();
    let restarted = run.is_some() && continued.is_none();
    let (mut run, mut now) =
        (continued.unwrap_or_else(|| extractor.extraction(input).into_parts().1), stored);
    loop {
        let Some(extraction) = extractor.continued(run.clone()) else {
            return Ok(RowReply { restarted, end: unavailable(ANEW) });
        };
        // The worker's observations are applied to a run before its first step, so a copy takes the step.
        let (plan, mut copy) = extraction.into_parts();
        let mut called = None;
        match copy.step(&plan, now) {
            Err(misuse) => return Ok(RowReply { restarted, end: RunEnd::from(Err(misuse.into())) }),
            Ok(Step::Done) => return Ok(RowReply { restarted, end: run.finish().into() }),
            Ok(Step::Wait { until, .. }) => {
                let wait = until.since(now);
                if wait >= TIMER {
                    durable.sleep(wait).await?;
                } else {
                    tokio::time::sleep(wait).await;
                }
                now = until;
                continue;
            }
            Ok(Step::Call { target, .. }) => {
                called = plan.targets().nth(target).map(str::to_owned);
            }
            Ok(_) => {}
        }
        let work = carried_on(extractor.clone(), run.clone(), now, called, calls.clone());
        match after(durable.step(Box::pin(work)).await?, &run) {
            Ok((next, stored)) => (run, now) = (next, stored),
            Err(end) => return Ok(RowReply { restarted, end: *end }),
        }
    }
}

const ANEW: &str = "the worker was configured anew while the row was open";

fn unavailable(message: impl Into<String>) -> RunEnd {
    RunEnd::from(Err(Error::new(ErrorKind::Unavailable, message)))
}

/// Returns the run after a step and the time at which it was stored, or the end of the run.
fn after(entry: Entry, before: &Run) -> Result<(Run, Time), Box<RunEnd>> {
    match entry {
        Entry::Ended(end) => Err(Box::new(end)),
        Entry::Going { run, stored } => match resume(before, run) {
            Ok(run) => Ok((run, stored)),
            Err(error) => {
                let message = format!("the journal of the row is one of another version: {error}");
                Err(Box::new(unavailable(message)))
            }
        },
    }
}

/// Carries a run on by one call. The time until the call begins does not count towards the deadline of the run.
async fn carried_on(
    extractor: Extractor<Value>,
    run: Run,
    now: Time,
    called: Option<String>,
    calls: Calls,
) -> Entry {
    if let (Some(slots), Some(target)) = (&calls.slots, &called) {
        slots.wait(target).await;
    }
    // The semaphore is never closed.
    let _permit = calls.permits.acquire().await;
    let Some(extraction) = extractor.continued(run.clone().resumed(now, calls.clock.now())) else {
        return Entry::ended(unavailable(ANEW));
    };
    match one_step(extraction).await {
        Ok(after) => Entry::going(&run, &after, calls.clock.now()),
        Err(result) => Entry::ended(result.into()),
    }
}
