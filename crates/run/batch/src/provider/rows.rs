//! Rows between two calls.

use std::sync::Arc;

use formwork_core::{
    Call, CallId, CallRecord, Completion, Cost, Error, ErrorKind, Event, Outcome, Plan, Run, Step, Time,
    Usage,
};
use formwork_extract::Extractor;
use formwork_wire::http::Response;
use formwork_wire::{Bytes, Deltas, Wire};
use serde_json::Value;

use crate::halt::one_step;
use crate::{BatchError, OpenRow, RowState};

/// A row that is open in this process.
pub(super) struct Active {
    pub(super) number: u64,
    plan: Arc<Plan>,
    run: Run,
    history: Vec<CallRecord>,
    pub(super) deferred: u32,
    /// The time of the run. Its delays are not waited for: a round takes longer than any of them.
    now: Time,
}

/// The next step of a row outside of its run.
pub(super) enum Next {
    Call(Box<Active>, NextCall),
    /// The history of the row, how often it was deferred, and the result of its run.
    Done(Vec<CallRecord>, u32, Box<Result<Outcome<Value>, Error>>),
}

/// A call that a row waits for.
pub(super) struct NextCall {
    pub(super) id: CallId,
    /// The name of the target.
    pub(super) target: String,
    pub(super) call: Arc<Call>,
    pub(super) reserve: Cost,
}

impl Active {
    /// Continues the run of a row, or starts one.
    pub(super) fn open(extractor: &Extractor<Value>, row: OpenRow, now: Time) -> Self {
        let OpenRow { number, input, state, .. } = row;
        match state.map(|state| Self::continued(extractor, number, state, now)) {
            Some(Ok(active)) => active,
            other => {
                let RowState { history, deferred, .. } = other.and_then(Result::err).unwrap_or_default();
                let (plan, run) = extractor.extraction(input).into_parts();
                Self { number, plan, run, history, deferred, now }
            }
        }
    }

    /// Continues the run of a row.
    ///
    /// # Errors
    /// The state of a row that starts over, if there is no run or it was created with another plan.
    pub(super) fn continued(
        extractor: &Extractor<Value>,
        number: u64,
        mut state: RowState,
        now: Time,
    ) -> Result<Self, RowState> {
        // The time that the provider takes for a file does not count towards the deadline of the run.
        let Some(extraction) = state.continued(extractor, now) else { return Err(state) };
        let (plan, run) = extraction.into_parts();
        Ok(Self { number, plan, run, history: state.history, deferred: state.deferred, now })
    }

    /// Returns the state of the row as it is stored.
    pub(super) fn state(&self) -> RowState {
        RowState {
            history: self.history.clone(),
            run: Some(Box::new(self.run.clone())),
            stored: self.now,
            deferred: self.deferred,
        }
    }

    /// Carries the run on until it needs a call or is done.
    pub(super) async fn next(mut self, extractor: &Extractor<Value>) -> Result<Next, BatchError> {
        loop {
            let step = self.run.step(&self.plan, self.now);
            match step.map_err(|misuse| BatchError::Engine(misuse.to_string()))? {
                Step::Done => {
                    return Ok(Next::Done(self.history, self.deferred, Box::new(self.run.finish())));
                }
                Step::Wait { until, .. } => self.now = self.now.max(until),
                Step::Call { id, target, call, reserve, .. } => {
                    let target = self.plan.targets().nth(target).unwrap_or_default().to_owned();
                    return Ok(Next::Call(Box::new(self), NextCall { id, target, call, reserve }));
                }
                Step::Check { .. } | Step::Fallback { .. } => match external(extractor, self.run).await? {
                    Ok(run) => self.run = run,
                    Err(result) => return Ok(Next::Done(self.history, self.deferred, Box::new(result))),
                },
                _ => {
                    let message = "the run wants a step that this engine does not know";
                    return Err(BatchError::Engine(message.to_owned()));
                }
            }
        }
    }

    /// Reports the result of the call to the run; returns the cost of the call.
    pub(super) fn on(&mut self, event: Event) -> Result<Cost, BatchError> {
        let done = self.run.on(&self.plan, self.now, event);
        done.map_err(|misuse| BatchError::Engine(misuse.to_string()))?;
        Ok(self.run.ledger().last().map(|call| call.cost).unwrap_or_default())
    }

    /// Ends the run, because the provider has processed its call in none of several files.
    pub(super) fn give_up(self, message: &str) -> Next {
        let calls = self.history.into_iter().chain(self.run.ledger().iter().cloned()).collect();
        Next::Done(calls, self.deferred, Box::new(Err(Error::new(ErrorKind::Unavailable, message))))
    }
}

/// Carries out asynchronous checks and the fallback. Returns the run before its next call, or its result.
async fn external(
    extractor: &Extractor<Value>,
    run: Run,
) -> Result<Result<Run, Result<Outcome<Value>, Error>>, BatchError> {
    let Some(extraction) = extractor.continued(run) else {
        return Err(BatchError::Engine("the run was started with another plan".to_owned()));
    };
    Ok(one_step(extraction).await)
}

/// Returns the event of a response to a call.
pub(super) fn event(wire: &dyn Wire, call: &Call, id: CallId, response: Response<Bytes>, now: Time) -> Event {
    let (head, body) = response.into_parts();
    if !head.status.is_success() {
        return match wire.rescue(call, &head, &body) {
            Some(completion) => Event::answered(id, completion),
            None => Event::failed(id, wire.fault(call, &head, &body, now), Usage::default()),
        };
    }
    let (mut decoder, mut deltas) = (wire.decoder(call, &head), Deltas::new());
    let decoded = decoder.push(&body, &mut deltas).and_then(|()| decoder.end(&mut deltas));
    let mut completion = Completion::new("");
    let is_whole = deltas.into_iter().any(|delta| completion.push(delta));
    match decoded {
        _ if is_whole => Event::answered(id, completion),
        Err(fault) => {
            let arrived = completion.text.len() + completion.reasoning.len();
            let usage = match arrived > 0 || completion.usage != Usage::default() {
                true => completion.usage.or_more(Usage::estimate(call, arrived)),
                false => Usage::default(),
            };
            Event::failed(id, fault, usage)
        }
        Ok(()) => {
            Event::failed(id, formwork_core::Fault::cut_off("its end marker is missing"), Usage::default())
        }
    }
}
