//! Processes a row in a worker, with any durable journal.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use formwork_core::{Clock as _, Error, ErrorKind, Run, Step, Time};
use formwork_extract::{Extractor, TokioClock};
use formwork_ledger::RecordId;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::entry::{Entry, resume};
use super::message::{Lost, RowReply, RowRequest, RunEnd};
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
///
/// Each execution of a row has a name, which is not kept, and each entry has the name of the execution that wrote it. An execution makes
/// a call only if the newest entry is its own. Therefore the writer of an entry that another execution's note follows may have made
/// one call whose result is lost, and no other execution can have made one.
pub(super) async fn row<D: Durable>(
    durable: &D,
    extractor: &Extractor<Value>,
    calls: &Calls,
    request: RowRequest,
) -> Result<RowReply, D::Error> {
    let RowRequest { input, run, stored, .. } = request;
    let continued = run.as_deref().filter(|run| extractor.continued((*run).clone()).is_some()).cloned();
    let restarted = run.is_some() && continued.is_none();
    let (me, mut newest, mut lost) = (RecordId::next().to_string(), None, Lost::default());
    let (mut run, mut now) =
        (continued.unwrap_or_else(|| extractor.extraction(input).into_parts().1), stored);
    loop {
        let Some(extraction) = extractor.continued(run.clone()) else {
            return Ok(RowReply { restarted, lost, end: unavailable(ANEW) });
        };
        // The worker's observations are applied to a run before its first step, so a copy takes the step.
        let (plan, mut copy) = extraction.into_parts();
        let (mut called, mut most) = (None, None);
        match copy.step(&plan, now) {
            Err(misuse) => {
                return Ok(RowReply { restarted, lost, end: RunEnd::from(Err(misuse.into())) });
            }
            Ok(Step::Done) => return Ok(RowReply { restarted, lost, end: run.finish().into() }),
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
            Ok(Step::Call { target, reserve, .. }) => {
                (called, most) = (plan.targets().nth(target).map(str::to_owned), reserve.micro_usd);
            }
            Ok(_) => {}
        }
        // Every execution asks for the same steps: the entry of a step that was carried out says whether it was a note or a call.
        let by = me.clone();
        let work: BoxFuture<'static, Entry> = if newest.as_ref() == Some(&me) {
            Box::pin(carried_on(extractor.clone(), run.clone(), now, called, calls.clone(), by))
        } else {
            Box::pin(async { Entry::Begun { by } })
        };
        match durable.step(work).await? {
            Entry::Begun { by } => {
                if newest.replace(by).is_some() {
                    // The other execution may have made the call of this step.
                    lost.calls += 1;
                    lost.micro_usd = lost.micro_usd.saturating_add(most.unwrap_or_default());
                }
            }
            Entry::Ended(end) => return Ok(RowReply { restarted, lost, end }),
            Entry::Going { run: after, stored, by } => match resume(&run, after) {
                Ok(after) => (run, now, newest) = (after, stored, Some(by)),
                Err(error) => {
                    let message = format!("the journal of the row is one of another version: {error}");
                    return Ok(RowReply { restarted, lost, end: unavailable(message) });
                }
            },
        }
    }
}

const ANEW: &str = "the worker was configured anew while the row was open";

fn unavailable(message: impl Into<String>) -> RunEnd {
    RunEnd::from(Err(Error::new(ErrorKind::Unavailable, message)))
}

/// Carries a run on by one call. The time until the call begins does not count towards the deadline of the run.
async fn carried_on(
    extractor: Extractor<Value>,
    run: Run,
    now: Time,
    called: Option<String>,
    calls: Calls,
    by: String,
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
        Ok(after) => Entry::going(&run, &after, calls.clock.now(), by),
        Err(result) => Entry::ended(result.into()),
    }
}
